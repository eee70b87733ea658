"""What the callbacks of all frameworks do after a step."""

from typing import Callable, Optional

from . import _iterate, _leases, _reports


def after(step: int, total: Optional[int], save: Callable[[], object], agree: Callable[[int], int]) -> None:
    """Report a step. If the lease ends, save, report the save and wait for the requeue."""
    _reports.progress(step, total)
    if agree(int(_leases.should_stop())):
        with _reports.saving(step, total):
            save()
        _iterate.hold(agree)
