import os

import torch

import fairlease

net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters())
step = 0
if os.path.exists("run.ckpt"):                 # after a requeue
    saved = torch.load("run.ckpt")
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["random"])
    step = saved["step"]
print("start at step", step, flush=True)


def save(step):
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state(), "step": step}, "run.ckpt.new")
    os.replace("run.ckpt.new", "run.ckpt")     # a save that is cut off leaves the old one


def batches():
    for _ in range(step, 90_000):
        yield torch.randn(16, 8)


for x in fairlease.iterate(batches(), save, start=step, total=90_000):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 100 == 0:
        print("step", step, "loss", loss.item(), flush=True)
