"""The job's lease: what the daemon says of it, and the signals with which it ends."""

import json
import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any, Callable, Dict, Optional, Tuple, Union

from . import _daemon

_SOON = 10.0  # seconds between two looks at the lease's file, or after a failure
_LONGEST = 600.0  # maximum seconds between two questions that fairlease may request


@dataclass(frozen=True)
class Lease:
    """A job's right to its GPUs for a term.

    ends is the end of the term, as time.time() gives it. notice is how many seconds before the end fairlease decides on
    the renewal. model is the GPU model, gpus their number: 4, or 0.5 for half of one. renewed is False if the job will be requeued when the term
    ends, True if its lease will be renewed in any case, and None while that is not decided.
    """

    ends: float
    notice: float
    model: str
    gpus: Union[int, float]
    renewed: Optional[bool]


_lock = threading.Lock()  # of the answer
_asking = threading.Lock()
_answer: Optional[Lease] = None
_fresh_until = 0.0  # monotonic
_watcher: Optional[threading.Thread] = None

_signal = 0  # the last signal that announced the end of the lease
_term = threading.Event()  # SIGTERM has arrived: the job is being requeued or cancelled
_theirs: Optional[Callable[[int, Optional[FrameType]], object]] = None  # the script's own handler of SIGTERM
_pid = os.getpid()


def lease() -> Optional[Lease]:
    """The job's lease; None if it has none, or nothing can be learnt of it.

    It waits for the daemon's answer, at most some seconds, and repeats the last answer while that is fresh. Only the
    first process of a job step gets an answer.
    """
    global _answer, _fresh_until
    if not _daemon.speaks():
        return None
    with _asking:
        now = time.monotonic()
        if now < _fresh_until:
            return _answer
        got, again = _ask()
        with _lock:
            _answer, _fresh_until = got, now + min(max(again, 1.0), _LONGEST)
        return got


def should_stop() -> bool:
    """Whether the job should save and stop: its lease will not be renewed, or a signal has announced its end.

    It does not wait. The first call installs handlers of the signals (see listen) and starts a thread that asks the
    daemon, about once a minute and when the renewal has been decided.
    """
    listen()
    _watch()
    return ending()


def ending() -> bool:
    """should_stop by what is known, without handlers and questions."""
    with _lock:
        return _signal != 0 or _answer is not None and _answer.renewed is False


def listen() -> None:
    """Install handlers of the notice (SIGUSR1) and of SIGTERM, which only take note: see should_stop.

    A script's own handler of the notice stays. Its handler of SIGTERM, as Lightning has one, is called after the note.
    Only the main thread can install handlers. Outside a job it does nothing.
    """
    global _pid, _theirs
    if _daemon.job_id() is None or threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGUSR1, signal.SIGTERM):
        installed = signal.getsignal(number)
        if installed in (signal.SIG_DFL, signal.SIG_IGN) or number == signal.SIGTERM and callable(installed) and installed is not _note:
            _pid = os.getpid()
            if number == signal.SIGTERM:
                _theirs = installed if callable(installed) else None
            signal.signal(number, _note)


def terminated() -> bool:
    """Whether SIGTERM has arrived: the job is being requeued or cancelled."""
    return _term.is_set()


def wait(seconds: float) -> None:
    """Wait until SIGTERM has arrived, at most so many seconds."""
    _term.wait(seconds)


def forget() -> None:
    """Forget the notice, after which the lease was renewed."""
    global _signal, _answer, _fresh_until
    with _lock:
        _signal, _answer, _fresh_until = 0, None, 0.0


def _note(number: int, frame: Optional[FrameType]) -> None:
    global _signal
    if os.getpid() != _pid:  # a worker process that was forked later, as a data loader's
        if number == signal.SIGTERM:
            signal.signal(number, _theirs or signal.SIG_DFL)
            os.kill(os.getpid(), number)
        return
    _signal = number
    if number == signal.SIGTERM:
        _term.set()
        if _theirs is not None:
            _theirs(number, frame)


def _watch() -> None:
    """Start the thread that asks the daemon, once."""
    global _watcher
    if _watcher is not None or not _daemon.speaks() or _daemon.url() is None and _path() is None:
        return
    _watcher = threading.Thread(target=_follow, daemon=True)
    _watcher.start()


def _follow() -> None:
    while not _term.is_set():
        lease()
        with _lock:
            wait = _fresh_until - time.monotonic()
        # Leases end together: their jobs should not all ask at the same moment.
        _term.wait(max(wait, 0.0) + random.uniform(0, min(wait / 10, 3.0) if wait > 0 else 0.1))


def _path() -> Optional[str]:
    folder = os.environ.get("FAIRLEASE_LEASE_FOLDER")
    return os.path.join(folder, "%s.json" % _daemon.job_id()) if folder else None


def _ask() -> Tuple[Optional[Lease], float]:
    """The lease, and the seconds until it is useful to ask again. Trouble of any kind is no lease."""
    try:
        path = _path()
        if _daemon.url():
            text, again = _daemon.post("/v1/lease", json.dumps({"job": _daemon.job_id()}))
        elif path:
            again = _SOON
            with open(path, "rb") as f:
                text = f.read(4096)
        else:
            return None, _LONGEST
        return _read(json.loads(text)), again or _SOON
    except _daemon.Refused as e:
        return None, e.again or _SOON
    except Exception:
        return None, _SOON


def _read(said: Dict[str, Any]) -> Optional[Lease]:
    if not said.get("ends"):
        return None
    gpus = float(said.get("gpus", 0))
    return Lease(float(said["ends"]), float(said.get("notice", 0)), str(said.get("model", "")), int(gpus) if gpus.is_integer() else gpus,
                 {"yes": True, "no": False}.get(said.get("renewed", "")))
