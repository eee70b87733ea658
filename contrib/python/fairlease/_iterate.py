"""The iterator that counts steps and saves when the lease ends (the iterator of Gavel)."""

import os
import sys
import time
from typing import Callable, Iterable, Iterator, Optional, TypeVar

from . import _daemon, _leases, _reports, _store

Batch = TypeVar("Batch")
Agree = Callable[[int], int]

try:
    HOLD = float(os.environ.get("FAIRLEASE_HOLD", 900))  # seconds to wait for a requeue
except ValueError:
    HOLD = 900.0
_LOOK = 0.5  # seconds between two looks while holding


class Stopped(SystemExit):
    """The job has saved its work and is being requeued; the process ends with code 143, as one that SIGTERM ended."""

    def __init__(self) -> None:
        super().__init__(143)


def iterate(loader: Iterable[Batch], save: Callable[[int], object], start: int = 0, total: Optional[int] = None,
            agree: Optional[Agree] = None) -> Iterator[Batch]:
    """Yield the batches of a loader, and save in time when the job's lease ends.

    start is the number of steps that the job had done before this loop; each batch is one more. After each it reports
    the steps, of total. If the lease will not be renewed (see should_stop) it calls save with the number of steps,
    reports the save, and waits for the requeue: then it raises Stopped. If the lease is renewed after all, it goes on.
    A lease that is renewed costs no save.

    save must write its file under a temporary name and rename it; or it is a LastStore, which also saves where a step
    takes longer than the notice. In a job of several processes all must save at the
    same step: agree takes a number and returns the largest that any process gave. Without it, torch.distributed is used
    where it is initialised. save is called in every process.
    """
    if agree is None:
        agree = agreement()
    step = start
    for batch in loader:
        yield batch
        step += 1
        _reports.progress(step, total)
        if agree(int(_leases.should_stop())):
            with _reports.saving(step, total):
                save(step)
            hold(agree)
        elif isinstance(save, _store.LastStore):
            save.after(step)


def hold(agree: Optional[Agree] = None) -> None:
    """Wait for the requeue after the save at the end of a lease, and raise Stopped when it comes.

    A job that ended by itself here would be COMPLETED, and never run again. It returns if the lease is renewed after
    all, or after FAIRLEASE_HOLD seconds (900): then the job should go on. Outside a job it returns at once.
    """
    if _daemon.job_id() is None:
        return
    if agree is None:
        agree = agreement()
    until, refused = time.monotonic() + HOLD, False
    while True:
        now = _leases.lease()
        refused = refused or now is not None and now.renewed is False
        # An answer from before the notice is no renewal.
        renewed = refused and now is not None and now.renewed is not False and now.ends > time.time()
        verdict = agree(2 if _leases.terminated() else int(renewed or time.monotonic() > until))
        if verdict == 2:
            _part(agree)
            raise Stopped
        if verdict == 1:
            _leases.forget()
            return
        _leases.wait(_LOOK)


def _part(agree: Agree) -> None:
    """End the agreement of several processes that have all decided to end."""
    if "torch.distributed" in sys.modules:
        from .torch import largest, leave
        if agree is largest:
            leave()


def agreement() -> Agree:
    """torch.distributed's, if the script has initialised it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        from .torch import largest
        return largest
    return lambda n: n
