"""Steps counted without a change of the script. PyTorch is a double here that has the hook of PyTorch 2; test_real.py has
the real one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)

OPTIMIZER = """
hooks = []
register_optimizer_step_post_hook = hooks.append
class SGD:
    state = {}
    def step(self):
        for hook in hooks: hook(self, (), {})
"""

SCRIPT = """
import os, sys, time
import torch.optim
end = time.monotonic() + WAIT
a, b = torch.optim.SGD(), torch.optim.SGD()
while True:
    a.step(); b.step()
    if os.path.exists(REPORT) or time.monotonic() > end: break
    time.sleep(0.01)
"""


class Startup(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name
        self.report = os.path.join(self.home, "reports", "me", "7.json")
        for path, text in (("lib/torch/__init__.py", ""), ("lib/torch/optim/__init__.py", "from .optimizer import SGD\n"),
                           ("lib/torch/optim/optimizer.py", OPTIMIZER), ("reports/me/none", "")):
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def run_script(self, script="", options=(), wait=30, **env):
        """Run a script in a job, under the wrapper. Returns what it printed, and the steps of its report; None without one."""
        path = self.write("train.py", script + SCRIPT.replace("REPORT", repr(self.report)).replace("WAIT", str(wait)))
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FAIRLEASE"))}
        done = subprocess.run([sys.executable, "-m", "fairlease", "run", *options, "--", sys.executable, path], cwd=self.home, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(
                                  clean, PYTHONPATH=os.pathsep.join([os.path.join(self.home, "lib"), PACKAGE]), PYTHONDONTWRITEBYTECODE="1", LOGNAME="me",
                                  SLURM_JOB_ID="7", FAIRLEASE_PROGRESS_FOLDER=os.path.join(self.home, "reports"), **env))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        if not os.path.exists(self.report):
            return done.stdout, None
        with open(self.report) as f:
            return done.stdout, json.load(f)["steps"]

    def test_steps_are_counted_at_the_first_optimizer(self):
        self.assertEqual(self.run_script(), ("", 1))

    def test_only_the_first_process_counts(self):
        self.assertEqual(self.run_script(wait=0.2, SLURM_PROCID="1"), ("", None))
        self.assertEqual(self.run_script(wait=0.2, SLURM_PROCID="0", RANK="1"), ("", None))  # a worker of torchrun
        self.assertEqual(self.run_script(SLURM_PROCID="0", RANK="0"), ("", 1))

    def test_a_script_with_the_library_reports_by_itself(self):
        self.assertEqual(self.run_script("import fairlease\n", wait=0.2), ("", None))

    def test_it_can_be_switched_off(self):
        self.assertEqual(self.run_script(options=["--no-count"], wait=0.2), ("", None))
        self.assertEqual(self.run_script(wait=0.2, FAIRLEASE_COUNT="0"), ("", None))

    def test_the_site_s_own_start_is_kept(self):
        self.write("lib/sitecustomize.py", "print('the site', __file__.endswith('lib/sitecustomize.py'))\n")
        self.assertEqual(self.run_script("import sys; print(sys.modules['sitecustomize'].__file__.endswith('lib/sitecustomize.py'))\n"),
                         ("the site True\n" * 2 + "True\n", 1))  # the wrapper starts, too

    def test_an_older_pytorch(self):
        self.write("lib/torch/optim/optimizer.py", OPTIMIZER.replace("register_optimizer_step_post_hook = hooks.append", ""))
        self.assertEqual(self.run_script(wait=0), ("", None))

    def test_a_broken_pytorch_is_as_broken_as_without(self):
        self.write("lib/torch/optim/optimizer.py", "raise ImportError('no GPU here')\n")
        said = self.run_script("try: import torch.optim\nexcept ImportError as e: print(e)\nraise SystemExit\n")
        self.assertEqual(said, ("no GPU here\n", None))


if __name__ == "__main__":
    unittest.main()
