"""A real training: a small network, fitted by Adam or in pure Python, with checkpoints. It prints the digest of its end.

    train.py CHECKPOINT STEPS [NOTICE]

At step NOTICE it sends itself the notice, as Slurm would. After a requeue it goes on from CHECKPOINT. With STORE=N in the
environment a LastStore keeps a copy of every N-th step, in STORE_FOLDER if that is set; with CUT step NOTICE does not end.
"""

import hashlib
import os
import pickle
import random
import signal
import sys

import fairlease

try:
    import torch
except ImportError:
    torch = None

CHECKPOINT, STEPS, NOTICE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else -1


class Torch:
    """A network with dropout: its end depends on the weights, on Adam's moments and on the generator's state."""

    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
        self.adam = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def step(self, seed):
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(seed))
        self.adam.zero_grad()
        (self.net(x) - x.sin().sum(1, keepdim=True)).square().mean().backward()
        self.adam.step()

    def state(self):
        return self.net.state_dict(), self.adam.state_dict(), torch.get_rng_state()

    def load(self, state):
        self.net.load_state_dict(state[0])
        self.adam.load_state_dict(state[1])
        torch.set_rng_state(state[2])

    def digest(self):
        return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in self.net.parameters())).hexdigest()


class Pure:
    """Stochastic gradient descent with momentum and noise, in pure Python."""

    def __init__(self):
        self.noise, self.weights, self.momentum = random.Random(1), [0.0] * 8, [0.0] * 8

    def step(self, seed):
        draw = random.Random(seed)
        x = [draw.gauss(0, 1) for _ in self.weights]
        off = sum(w * v for w, v in zip(self.weights, x)) - sum(x) + self.noise.gauss(0, 0.1)
        self.momentum = [0.9 * m + 2 * off * v for m, v in zip(self.momentum, x)]
        self.weights = [w - 0.01 * m for w, m in zip(self.weights, self.momentum)]

    def state(self):
        return self.noise.getstate(), self.weights, self.momentum

    def load(self, state):
        self.noise.setstate(state[0])
        self.weights, self.momentum = state[1], state[2]

    def digest(self):
        return hashlib.sha256(repr(self.weights).encode()).hexdigest()


model = Torch() if torch and os.environ.get("TRAIN") != "pure" else Pure()
begin = 0
if os.path.exists(CHECKPOINT):
    with open(CHECKPOINT, "rb") as f:
        begin, state = pickle.load(f)
    model.load(state)
print("begin", begin, flush=True)


def save(step):
    with open(CHECKPOINT + ".new", "wb") as f:
        pickle.dump((step, model.state()), f)
    os.replace(CHECKPOINT + ".new", CHECKPOINT)
    print("saved", step, flush=True)


if os.environ.get("STORE"):
    save = fairlease.LastStore(CHECKPOINT, model.state, every=int(os.environ["STORE"]), folder=os.environ.get("STORE_FOLDER") or None)
for number in fairlease.iterate(range(begin, STEPS), save, start=begin, total=STEPS):
    if number == NOTICE and begin == 0:
        os.kill(os.getpid(), signal.SIGUSR1)
        if os.environ.get("CUT"):
            hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)
    model.step(number)
print(type(model).__name__, model.digest(), flush=True)
