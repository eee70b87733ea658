"""The last store of ASTRAEA (§4): a snapshot of every n-th step, written as the lease ends even in the middle of a step."""

import io
import os
import pickle
import select
import shutil
import signal
import tempfile
import threading
import time
from typing import IO, Any, Callable, List, Optional, Tuple

from . import _daemon, _leases, _reports

_LOOK = 0.5  # seconds between two looks at the lease

_lock = threading.Lock()  # of these
_stores: List["LastStore"] = []
_follower: Optional[threading.Thread] = None
_bell = -1  # the end of a pipe on which signals arrive at once, even while the main thread computes; -1 = none


def _dump(state: object, file: IO[bytes]) -> None:
    pickle.dump(state, file, pickle.HIGHEST_PROTOCOL)


class LastStore:
    """Saves a training to a file: its state now, or where a step takes longer than the notice, that after an earlier step.

        store = fairlease.LastStore("run.ckpt", state, every=10)
        last = store.load()                       # (step, state), None at the first start
        for batch in fairlease.iterate(batches, store, start=step, total=90_000):
            train(batch)

    state returns all that the training depends on, as an object that dump can write: by default pickle's; torch.save is
    another. Every so many steps iterate calls after, which keeps a copy in the memory of the host, or in an unnamed file
    in folder, on the node's disk. When the lease will not be renewed, a thread writes the newest copy to path at once,
    while the step goes on. If the step ends in time, iterate saves the newer state over it. At most the step that was
    cut off and every - 1 before it are lost.

    path should be in a shared folder, as the job may resume on another node. A save that is cut off leaves the old one,
    and an old copy never replaces a newer save. Outside a job no copies are kept. In a job of several processes at most
    one may have a LastStore for a file, and it must know the whole state: copies of several are not of the same step.
    """

    def __init__(self, path: str, state: Callable[[], object], every: int = 1, folder: Optional[str] = None,
                 dump: Callable[[Any, Any], object] = _dump, load: Callable[[Any], Any] = pickle.load) -> None:
        if every < 1:
            raise ValueError("every must be 1 or more, got %r" % every)
        self.path, self.every = path, every
        self.error: Optional[BaseException] = None  # of the last write of a copy; None if it succeeded
        self._state, self._folder, self._dump, self._load = state, folder, dump, load
        self._writing = threading.Lock()  # of what follows, and of the file
        self._last: Optional[Tuple[int, IO[bytes]]] = None  # the newest copy
        self._stored = -1  # the step of the newest save

    def load(self) -> Optional[Tuple[int, Any]]:
        """The step and the state of the newest save; None if there is no file. Errors of reading it are raised."""
        try:
            file = open(self.path, "rb")
        except FileNotFoundError:
            return None
        with file:
            step, state = self._load(file)
        self._stored = int(step)
        return self._stored, state

    def after(self, step: int) -> None:
        """Keep a copy of the state after so many steps, if they are a multiple of every. It costs nothing outside a job."""
        if step % self.every == 0 and _daemon.job_id() is not None:
            self._keep(step)
            _follow(self)

    def __call__(self, step: int) -> None:
        """Save the state after so many steps now."""
        self._keep(step)
        self._write(-1)

    def flush(self) -> None:
        """Write the newest copy if it is newer than the newest save, and report the save. Errors are kept in error."""
        try:
            began, step = time.monotonic(), self._write(self._stored)
            if step is not None:
                _reports.saved(step, None, time.monotonic() - began)
            self.error = None
        except Exception as e:  # the step goes on, and the next save may succeed
            self.error = e

    def _keep(self, step: int) -> None:
        file: IO[bytes] = io.BytesIO() if self._folder is None else tempfile.TemporaryFile(dir=self._folder)
        self._dump((step, self._state()), file)
        self._last = step, file

    def _write(self, after: int) -> Optional[int]:
        """Write the newest copy if its step is after that one. Returns its step; None = it is not."""
        with self._writing:
            if self._last is None or self._last[0] <= after:
                return None
            step, file = self._last
            file.seek(0)
            beside = self.path + ".new"
            with open(beside, "wb") as f:
                shutil.copyfileobj(file, f, 1 << 20)
                f.flush()
                os.fsync(f.fileno())
            os.replace(beside, self.path)
            self._stored = step
            return step


def _follow(store: LastStore) -> None:
    """Write the store's copies as the lease ends, from now on."""
    global _follower
    if store in _stores:
        return
    with _lock:
        _stores.append(store)
        if _follower is not None:
            return
        _follower = threading.Thread(target=_watch, args=(_hang_bell(),), daemon=True)
        _follower.start()


def _hang_bell() -> int:
    """A pipe to which Python writes the numbers of signals; -1 if the script has another, or this is not the main thread."""
    global _bell
    _leases.listen()
    hear, ring = os.pipe()
    os.set_blocking(ring, False)
    try:
        theirs = signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        if theirs == -1:
            _bell = ring
            os.register_at_fork(after_in_child=_take_bell_down)
            return hear
        signal.set_wakeup_fd(theirs)
    except ValueError:
        pass
    os.close(hear)
    os.close(ring)
    return -1


def _take_bell_down() -> None:
    """A worker process, as a data loader's, does not ring for its parent."""
    global _follower
    _follower = None
    _stores.clear()
    try:
        signal.set_wakeup_fd(-1)
    except ValueError:
        pass


def _watch(hear: int) -> None:
    while True:
        rung = b""
        if hear < 0:
            time.sleep(_LOOK)
        elif select.select([hear], [], [], _LOOK)[0]:
            rung = os.read(hear, 256)
        if signal.SIGUSR1 in rung or signal.SIGTERM in rung or _leases.ending():
            for store in list(_stores):
                store.flush()
