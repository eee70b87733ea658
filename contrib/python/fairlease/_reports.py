"""Reports of progress and of saves."""

import contextlib
import getpass
import json
import os
import threading
import time
from typing import Any, Dict, Iterator, Optional

from . import _daemon

try:
    INTERVAL = float(os.environ.get("FAIRLEASE_PROGRESS_EVERY", 60))  # seconds between two reports
except ValueError:
    INTERVAL = 60.0
_LONGEST = 3600.0  # maximum seconds between reports that fairlease may request
_BETWEEN_SAVES = 10.0  # seconds between two reports of a save

_lock = threading.Lock()
_next = 0.0
_next_save = 0.0
_begun = 0  # reports of progress() and saved()

_sending = threading.Lock()
_sent = 0  # number of the newest sent report
_last_error: Optional[BaseException] = None


def progress(steps: float, total: Optional[float] = None) -> None:
    """Report the completed steps, of total if that is known. Call it after every step if you like.

    It sends at most one report a minute, or less often if fairlease requests that (at most an hour), in its own thread.
    Only the first process of a job step reports.
    """
    global _next
    if not _daemon.speaks():
        return
    with _lock:
        now = time.monotonic()
        if now < _next:
            return
        _next = now + INTERVAL
    _send(steps, total, {})


def saved(steps: float, total: Optional[float] = None, took: Optional[float] = None) -> None:
    """Report that the job has just written a checkpoint after so many steps, from which it can resume.

    took is the number of seconds that the save took; saving() measures it. It reports at once, at most every ten
    seconds. fairlease learns from it how often and how long jobs of this type save. It prefers to stop a job just after
    a save, when the loss is smallest, and gives a job as much notice as its save needs.
    """
    global _next, _next_save
    if not _daemon.speaks():
        return
    with _lock:
        now = time.monotonic()
        if now < _next_save:
            return
        _next_save = now + _BETWEEN_SAVES
        _next = max(_next, now + INTERVAL)  # a report in the folder stays long enough to be read
    _send(steps, total, {"saved": True} if took is None else {"saved": True, "took": took})


@contextlib.contextmanager
def saving(steps: float, total: Optional[float] = None) -> Iterator[None]:
    """Report the save that is written inside the with statement, and how long it took. A save that fails is not reported."""
    began = time.monotonic()
    yield
    saved(steps, total, time.monotonic() - began)


def report(steps: float, total: Optional[float] = None, saved: bool = False, took: Optional[float] = None) -> None:
    """Report now, and wait for the answer. Raises OSError or ValueError with the reason of a refusal."""
    text: Dict[str, Any] = {"job": _daemon.job_id(), "steps": float(steps)}
    if total is not None:
        text["total"] = float(total)
    if saved:
        text["saved"] = True
    if took is not None:
        text["took"] = float(took)
    line = json.dumps(text, allow_nan=False)
    folder = os.environ.get("FAIRLEASE_PROGRESS_FOLDER")
    if _daemon.url():
        _post(line)
    elif folder:
        _leave(os.path.join(folder, getpass.getuser(), "%s.json" % _daemon.job_id()), line)


def last_error() -> Optional[BaseException]:
    """The error of the last report of progress() or saved(); None if it succeeded."""
    return _last_error


def _send(steps: float, total: Optional[float], more: Dict[str, Any]) -> None:
    """Report in a separate thread."""
    global _begun
    with _lock:
        _begun += 1
        number = _begun
    try:
        threading.Thread(target=_quietly, args=(number, steps, total, more), daemon=True).start()
    except RuntimeError:  # no more threads, or the interpreter ends
        pass


def _quietly(number: int, steps: float, total: Optional[float], more: Dict[str, Any]) -> None:
    global _last_error, _sent
    try:
        with _sending:
            if number < _sent:
                return  # a newer report was sent: this one would hide its save
            _sent = number
            report(steps, total, **more)
        _last_error = None
    except Exception as e:  # training continues after any error
        _last_error = e


def _post(line: str) -> None:
    """Send a report, and store when the next one is useful."""
    try:
        _, again = _daemon.post("/v1/progress", line)
    except _daemon.Refused as e:
        _put_off(e.again)
        raise
    _put_off(again)


def _put_off(seconds: float) -> None:
    """Send no report through progress() for so many seconds."""
    global _next
    if seconds > 0:
        with _lock:
            _next = max(_next, time.monotonic() + min(seconds, _LONGEST))


def _leave(path: str, line: str) -> None:
    """Write a file in one step."""
    beside = "%s.%d" % (path, os.getpid())
    with open(beside, "w") as f:
        f.write(line + "\n")
    os.replace(beside, path)
