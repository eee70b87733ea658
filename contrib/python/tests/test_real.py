"""The frameworks themselves, where they are installed: a training that is noticed, requeued and resumed ends with the same
bits as one that was never stopped. It runs on a GPU if there is one. test_frameworks.py has doubles of them for machines
without."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)


def have(*names):
    return all(importlib.util.find_spec(name) for name in names)


try:
    import torch
    HOOKED = hasattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_post_hook")
except ImportError:
    HOOKED = False

# Data depend on the step alone; the notice comes at step NOTICE of the first attempt, and the requeue right after it.
HEAD = """
import hashlib, os, signal, sys, threading
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
STEPS, NOTICE = 12, int(os.environ["NOTICE"])
where = "cuda" if torch.cuda.is_available() else "cpu"
def batch(step):
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
    return x, x.sin().sum(1, keepdim=True)
def network(dropout):
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(32, 1))
def notice(step):
    if step == NOTICE:
        os.kill(os.getpid(), signal.SIGUSR1)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
def end(net):
    print("steps", STEPS, "on", where, hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in net.parameters())).hexdigest())
"""

PLAIN = HEAD + """
import fairlease
net = network(0.2).to(where)
adam = torch.optim.Adam(net.parameters(), lr=0.01)
begin = 0
if os.path.exists("run.ckpt"):
    begin, weights, moments, cpu, gpu = torch.load("run.ckpt", weights_only=False, map_location="cpu")
    net.load_state_dict(weights); adam.load_state_dict(moments); torch.set_rng_state(cpu)
    if where == "cuda": torch.cuda.set_rng_state(gpu)
def save(step):
    torch.save((step, net.state_dict(), adam.state_dict(), torch.get_rng_state(), torch.cuda.get_rng_state() if where == "cuda" else None), "run.ckpt.new")
    os.replace("run.ckpt.new", "run.ckpt")
for step in fairlease.iterate(range(begin, STEPS), save, start=begin, total=STEPS):
    notice(step)
    x, y = (t.to(where) for t in batch(step))
    adam.zero_grad(); (net(x) - y).square().mean().backward(); adam.step()
end(net)
"""

# Lightning's checkpoints hold no state of random generators: no dropout here.
LIGHTNING = HEAD + """
import LIGHTNING as pl, fairlease.lightning
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network(0.0)
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), lr=0.01)
    def training_step(self, _, number):
        notice(self.global_step)
        x, y = (t.to(self.device) for t in batch(self.global_step))
        return (self.net(x) - y).square().mean()
model = Net()
trainer = pl.Trainer(callbacks=[fairlease.lightning.callback("run.ckpt")], max_steps=STEPS, accelerator="auto", devices=1, logger=False,
                     enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, torch.utils.data.DataLoader(torch.arange(5.0), batch_size=1), ckpt_path="run.ckpt" if os.path.exists("run.ckpt") else None)
assert trainer.global_step == STEPS
end(model)
"""

TRANSFORMERS = HEAD + """
import fairlease.hf, transformers
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = network(0.2)
    def forward(self, x, labels):
        out = self.net(x)
        return {"loss": (out - labels).square().mean(), "logits": out}
class Data(torch.utils.data.Dataset):
    def __len__(self): return 80
    def __getitem__(self, i):
        x, y = batch(i)
        return {"x": x[0], "labels": y[0]}
class At(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **_): notice(state.global_step)
args = transformers.TrainingArguments("out", max_steps=STEPS, per_device_train_batch_size=16, learning_rate=0.01, save_strategy="no", report_to=[],
                                      disable_tqdm=True, full_determinism=False, seed=1, dataloader_pin_memory=False)
trainer = transformers.Trainer(model=Net(), args=args, train_dataset=Data(), callbacks=[At(), fairlease.hf.callback()])
trainer.train(resume_from_checkpoint=transformers.trainer_utils.get_last_checkpoint("out") if os.path.isdir("out") else None)
assert trainer.state.global_step == STEPS
end(trainer.model)
"""

UNCHANGED = HEAD + """
import json, time
net = network(0.0).to(where)
adam = torch.optim.Adam(net.parameters(), lr=0.01)
until = time.monotonic() + 60
step = 0
while not os.path.exists(os.environ["REPORT"]) and time.monotonic() < until:
    x, y = (t.to(where) for t in batch(step))
    adam.zero_grad(); (net(x) - y).square().mean().backward(); adam.step()
    step += 1
with open(os.environ["REPORT"]) as f: print("counted", json.load(f)["steps"])
"""


class Real(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name

    def run_job(self, script, folder, wrapper=(), **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FAIRLEASE"))}
        folder = os.path.join(self.home, folder)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "train.py")
        with open(path, "w") as f:
            f.write(script)
        done = subprocess.run([*wrapper, sys.executable, path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                              env=dict(clean, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", SLURM_JOB_ID="7", LOGNAME="me", **env))
        return done.returncode, done.stdout.splitlines(), done.stderr

    def resumes(self, script, **env):
        """Run a script to its end, and again with an interruption. The ends must be equal."""
        code, whole, trouble = self.run_job(script, "whole", NOTICE="-1", **env)
        self.assertEqual(code, 0, trouble)
        code, _, trouble = self.run_job(script, "parts", NOTICE="7", **env)
        self.assertEqual(code, 143, trouble)
        code, parts, trouble = self.run_job(script, "parts", NOTICE="-1", **env)
        self.assertEqual(code, 0, trouble)
        self.assertEqual(parts[-1], whole[-1])

    @unittest.skipUnless(have("torch"), "PyTorch is not installed")
    def test_pytorch(self):
        self.resumes(PLAIN)

    def test_lightning(self):
        # Lightning finds Slurm by these, and would take the signals.
        for name in ("lightning.pytorch", "pytorch_lightning"):
            if have(name.partition(".")[0]):
                with self.subTest(name):
                    self.resumes(LIGHTNING.replace("LIGHTNING", name))

    @unittest.skipUnless(have("transformers", "accelerate"), "transformers is not installed")
    def test_transformers(self):
        self.resumes(TRANSFORMERS)

    @unittest.skipUnless(HOOKED, "PyTorch 2 is not installed")
    def test_steps_of_an_unchanged_script(self):
        os.makedirs(os.path.join(self.home, "reports", "me"))
        report = os.path.join(self.home, "reports", "me", "7.json")
        code, said, trouble = self.run_job(UNCHANGED, "one", [sys.executable, "-m", "fairlease", "run", "--"], NOTICE="-1", REPORT=report,
                                           FAIRLEASE_PROGRESS_FOLDER=os.path.join(self.home, "reports"))
        self.assertEqual((code, said), (0, ["counted 1.0"]), trouble)


if __name__ == "__main__":
    unittest.main()
