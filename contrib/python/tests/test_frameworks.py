"""The adapters of frameworks. Lightning, transformers and Composer are protocol doubles here: small modules with the
calls that the adapters use, as the frameworks' sources have them. PyTorch is real where it is installed."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

try:
    import torch
except ImportError:
    torch = None

# Reports are written to standard output in place of being sent.
HEAD = """
import os, signal, sys
import fairlease._reports as reports
reports._send = lambda steps, total, more: print("report", steps, total, *sorted(more))
reports.INTERVAL = reports._BETWEEN_SAVES = 0.0
def notice(): os.kill(os.getpid(), signal.SIGUSR1)
def requeue(): os.kill(os.getpid(), signal.SIGTERM)
"""

LIGHTNING = """
import signal
class Callback: pass
class Strategy:
    def reduce_boolean_decision(self, decision, all=True): return decision
class Trainer:
    def __init__(self, callbacks, max_steps):
        self.callbacks, self.max_steps, self.global_step, self.strategy, self.is_global_zero = callbacks, max_steps, 0, Strategy(), True
    def save_checkpoint(self, path):
        for c in self.callbacks: c.on_save_checkpoint(self, None, {})
        with open(path, "w") as f: f.write(str(self.global_step))
    def fit(self, at=lambda step: None):
        def term(number, frame): print("Lightning heard", number)
        signal.signal(signal.SIGTERM, term)  # Lightning's own handler stops the training after the batch
        while self.global_step < self.max_steps:
            self.global_step += 1
            at(self.global_step)
            for c in self.callbacks: c.on_train_batch_end(self, None, None, None, self.global_step - 1)
"""

TRANSFORMERS = """
class TrainerCallback: pass
class State: global_step, max_steps = 0, 4
class Control: should_save = False
class Trainer:
    def __init__(self, callbacks): self.callbacks, self.state = callbacks, State()
    def train(self, at=lambda step: None):
        control = Control()
        while self.state.global_step < self.state.max_steps:
            self.state.global_step += 1
            at(self.state.global_step)
            for c in self.callbacks: control = c.on_step_end(None, self.state, control, model=None) or control
            if control.should_save:
                control.should_save = False
                print("checkpoint", self.state.global_step)
                for c in self.callbacks: c.on_save(None, self.state, control, model=None)
"""

COMPOSER = """
class Callback: pass
class Time(int): pass
class Timestamp: batch = Time(0)
class State:
    def __init__(self): self.timestamp = Timestamp()
class Trainer:
    def __init__(self, callbacks): self.callbacks, self.state = callbacks, State()
    def fit(self, batches, at=lambda step: None):
        for _ in range(batches):
            self.state.timestamp.batch = Time(self.state.timestamp.batch + 1)
            at(self.state.timestamp.batch)
            for c in self.callbacks: c.batch_end(self.state, None)
"""


class Jobs(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        for path, text in (("lightning/__init__.py", ""), ("lightning/pytorch/__init__.py", LIGHTNING),
                           ("transformers.py", TRANSFORMERS), ("composer.py", COMPOSER)):
            path = os.path.join(self.home.name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)

    def run_job(self, script, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FAIRLEASE"))}
        path = os.pathsep.join([self.home.name, os.path.dirname(HERE)])
        done = subprocess.run([sys.executable, "-c", HEAD + script], cwd=self.home.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(clean, PYTHONPATH=path, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", SLURM_JOB_ID="7", **env))
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()


class Doubles(Jobs):
    def test_lightning(self):
        code, said = self.run_job("""
import fairlease.lightning, lightning.pytorch as pl
c = fairlease.lightning.callback("run.ckpt")
assert isinstance(c, pl.Callback)
t = pl.Trainer([c], 5)
def at(step):
    if step == 1: t.save_checkpoint("other.ckpt")
    if step == 3: notice(); reports._send = sent
def sent(steps, total, more):
    print("report", steps, total, *sorted(more))
    if "took" in more: requeue()
t.fit(at)
""")
        self.assertEqual((code, said), (143, ["report 1 5 saved", "report 1 5", "report 2 5", "report 3 5", "report 3 5 saved took", "Lightning heard 15"]))
        with open(os.path.join(self.home.name, "run.ckpt")) as f:
            self.assertEqual(f.read(), "3")
        self.assertFalse(os.path.exists(os.path.join(self.home.name, "run.ckpt.new")))

    def test_lightning_under_its_old_name(self):
        os.rename(os.path.join(self.home.name, "lightning", "pytorch"), os.path.join(self.home.name, "pytorch_lightning"))
        code, said = self.run_job("""
import fairlease.lightning, pytorch_lightning as pl
pl.Trainer([fairlease.lightning.callback("run.ckpt")], -1).fit()
pl.Trainer([fairlease.lightning.callback("run.ckpt")], 1).fit()
""")
        self.assertEqual((code, said), (0, ["report 1 1"]))

    def test_transformers(self):
        code, said = self.run_job("""
import fairlease.hf, transformers
c = fairlease.hf.callback()
assert isinstance(c, transformers.TrainerCallback)
def at(step):
    if step == 2: notice(); requeue()
transformers.Trainer([c]).train(at)
""")
        self.assertEqual((code, said), (143, ["report 1 4", "report 2 4", "checkpoint 2", "report 2 4 saved"]))

    def test_transformers_goes_on_without_a_requeue(self):
        code, said = self.run_job("""
import fairlease.hf, transformers
transformers.Trainer([fairlease.hf.callback()]).train(lambda step: notice() if step == 3 else None)
print("end")
""", FAIRLEASE_HOLD="0")
        self.assertEqual((code, said[-4:]), (0, ["checkpoint 3", "report 3 4 saved", "report 4 4", "end"]))

    def test_composer(self):
        code, said = self.run_job("""
import composer, fairlease.composer
c = fairlease.composer.callback(lambda step: print("checkpoint", step))
assert isinstance(c, composer.Callback)
def at(step):
    if step == 2: notice(); requeue()
composer.Trainer([c]).fit(5, at)
""")
        self.assertEqual((code, said), (143, ["report 1 None", "report 2 None", "checkpoint 2", "report 2 None saved took"]))

    def test_a_framework_that_is_missing(self):
        script = "import fairlease.%s as f\ntry: f.callback(*%r)\nexcept ImportError as e: print(e.name)\n"
        for name, args, want in (("lightning", ["x"], "pytorch_lightning"), ("hf", [], "transformers"), ("composer", [None], "composer")):
            code, said = self.run_job("sys.path[:] = [p for p in sys.path if p not in ('', %r)]\n" % self.home.name + script % (name, args))
            self.assertEqual((code, said), (0, [want]))


@unittest.skipUnless(torch, "PyTorch is not installed (Debian: python3-torch)")
class Torch(Jobs):
    # The hook for all optimizers is PyTorch 2's; with an older one the test calls the optimizer's own step and then the hook.
    script = """
import torch, fairlease.torch
hooks = []
optim = sys.modules["torch.optim.optimizer"]
if not hasattr(optim, "register_optimizer_step_post_hook"):
    assert not fairlease.torch.count()
    optim.register_optimizer_step_post_hook = hooks.append
def optimizer(kind):
    p = torch.nn.Parameter(torch.ones(1))
    return kind([p], lr=0.1), p
def step(o, p):
    p.sum().backward()
    o.step()
    for h in hooks: h(o, (), {})
"""

    def test_steps_are_counted_at_the_first_optimizer(self):
        code, said = self.run_job(self.script + """
assert fairlease.torch.count(total=9)
a, b = optimizer(torch.optim.SGD), optimizer(torch.optim.Adam)
step(*a); step(*b); step(*a)
""")
        self.assertEqual((code, said), (0, ["report 1 9", "report 2 9"]))

    def test_after_a_requeue(self):
        code, said = self.run_job(self.script + """
o, p = optimizer(torch.optim.Adam)
for _ in range(3): step(o, p)
state = o.state_dict()
assert fairlease.torch.count()
o, p = optimizer(torch.optim.Adam)
o.load_state_dict(state)
step(o, p)
""", SLURM_RESTART_COUNT="1")
        self.assertEqual((code, said), (0, ["report 4.0 None"]))
        code, said = self.run_job(self.script + "assert fairlease.torch.count()\nstep(*optimizer(torch.optim.SGD))\n", SLURM_RESTART_COUNT="1")
        self.assertEqual((code, said), (0, []))
        code, said = self.run_job(self.script + "assert fairlease.torch.count(start=40)\nstep(*optimizer(torch.optim.SGD))\n", SLURM_RESTART_COUNT="1")
        self.assertEqual((code, said), (0, ["report 41 None"]))

    def test_two_processes_stop_at_the_same_step(self):
        script = """
import torch, fairlease
rank = int(os.environ["SLURM_PROCID"])
torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=rank, world_size=2)
def save(step):
    print("saved", step, flush=True)
    torch.distributed.barrier()
    if rank == 0: requeue()  # the other one hears of it through this one
for n in fairlease.iterate(range(9), save):
    if n == 3 and rank == 1: notice()
"""
        with open(os.path.join(self.home.name, "script.py"), "w") as f:
            f.write(HEAD + script)
        env = dict(os.environ, PYTHONPATH=os.path.dirname(HERE), SLURM_JOB_ID="7")
        ranks = [subprocess.Popen([sys.executable, "script.py"], cwd=self.home.name, env=dict(env, SLURM_PROCID=str(r)), stdout=subprocess.PIPE, text=True)
                 for r in range(2)]
        for r in ranks:
            out, _ = r.communicate(timeout=120)
            self.assertEqual((r.returncode, [line for line in out.splitlines() if "report" not in line]), (143, ["saved 4"]))


if __name__ == "__main__":
    unittest.main()
