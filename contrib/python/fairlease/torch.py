"""Plain PyTorch: steps counted at the optimizer, without a change to the loop, and agreement between processes."""

import importlib
import os
from typing import Any, Callable, Optional

import torch

from . import _reports


def count(total: Optional[int] = None, start: Optional[int] = None) -> bool:
    """Report a step after each step of the first optimizer that steps. Returns whether it does: it needs PyTorch 2.

    start is the number of steps of the checkpoint from which the script resumed. Without it the optimizer's own count
    is used, which Adam and its kin keep in their state. An optimizer that keeps none, as SGD, is counted from 0 in the
    job's first attempt, and not at all after a requeue, since the count would be wrong.
    """
    register = getattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if register is None:
        return False
    register(counter(total, start))
    return True


def counter(total: Optional[int] = None, start: Optional[int] = None) -> Callable[..., None]:
    """The hook that count registers: to be called with an optimizer after its step."""
    return _Counter(total, start)


class _Counter:
    """A hook after an optimizer's step: hook(optimizer, args, kwargs)."""

    def __init__(self, total: Optional[int], start: Optional[int]) -> None:
        self.total, self.start, self.calls = total, start, 0
        self.optimizer: Any = None

    def __call__(self, optimizer: Any, *_: Any) -> None:
        if self.optimizer is None:
            self.optimizer = optimizer
        if optimizer is not self.optimizer:
            return
        self.calls += 1
        steps = self.steps()
        if steps is not None:
            _reports.progress(steps, self.total)

    def steps(self) -> Optional[float]:
        """The steps since the job's first start; None = unknown."""
        if self.start is not None:
            return self.start + self.calls
        for state in self.optimizer.state.values():
            if "step" in state:
                return float(state["step"])
        return self.calls if os.environ.get("SLURM_RESTART_COUNT", "0") == "0" else None


def leave() -> None:
    """Close the connections of gloo, in all processes at once. Else it aborts a process whose peers end while it shuts down."""
    distributed = torch.distributed
    if distributed.get_backend() != "gloo":
        return
    try:
        distributed.barrier()
    except RuntimeError:  # a peer has ended
        pass
    distributed.destroy_process_group()


def largest(number: int) -> int:
    """The largest of the numbers that all processes of torch.distributed give. Every process must call it."""
    distributed = torch.distributed
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    one = torch.tensor([number], dtype=torch.int32, device=device)
    distributed.all_reduce(one, op=distributed.ReduceOp.MAX)
    return int(one.item())
