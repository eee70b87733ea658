"""Run a training command under fairlease's notice: fairlease run -- COMMAND.

    notice (SIGUSR1)  ──►  the signal that the command's framework knows  ──►  it saves and ends
    it has ended      ──►  wait for the requeue's SIGTERM: a job that ends by itself would be COMPLETED

Without a notice the wrapper is invisible: it passes signals on, and ends as the command does. This file needs nothing
but Python. If the command is a PyTorch script that does not report its steps, the folder startup counts them.
"""

import argparse
import os
import re
import resource
import signal
import sys
import time
from typing import Dict, List, NoReturn, Optional, Sequence, Set

PASSED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGALRM]
_KERNEL = 0x80  # si_code of a signal from the terminal, which the command has had, too

# What Python imports first in the command: it counts the steps of a PyTorch script.
STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")

# Programs that start workers, and would die of the notice, or end the workers at SIGTERM.
LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "ft_launcher")


# Words in a command or its script, and the signal on which that framework saves.
KNOWN = (("submitit", "USR2"), ("lightning", "USR1"), ("fairlease.", "USR1"))


def framework_signal(command: Sequence[str], env: Dict[str, str]) -> str:
    """The signal on which a command saves, by its environment, its words and the text of its script; else TERM."""
    if env.get("SUBMITIT_PREEMPT_SIGNAL"):
        return env["SUBMITIT_PREEMPT_SIGNAL"]
    text = " ".join(command)
    for word in command:
        if word.endswith(".py") and os.path.isfile(word):
            with open(word, "rb") as f:
                text += f.read(1 << 16).decode(errors="replace")
            break
    return next((name for known, name in KNOWN if known in text), "TERM")


def launches(command: Sequence[str]) -> bool:
    """Whether a command starts the processes that train, which must get the signal in its place."""
    words = [os.path.basename(word) for word in command[:4]]
    return any(word in LAUNCHERS for word in words)


def number(name: str) -> Optional[int]:
    """The number of a signal like USR1 or SIGUSR1; None for "none". Raises ValueError for another text."""
    short = name.upper()[3:] if name.upper().startswith("SIG") else name.upper()
    if short == "NONE":
        return None
    try:
        return int(signal.Signals["SIG" + short])
    except KeyError:
        raise ValueError("%r is no signal: write one like USR1, TERM or none" % name) from None


# The signal that a job asks for in its hints, as in kind=bert,signal=B:TERM; other ones are no hints.
HINTED = re.compile(r"(?:^|[,;\s])signal=(?:B:)?(?:SIG)?(USR1|USR2|TERM|INT|HUP|QUIT|CONT|URG|WINCH|ALRM|PROF|VTALRM|none)(?=[,;\s]|$)", re.IGNORECASE)


def notice_signal(env: Dict[str, str]) -> str:
    """The signal of the job's notice: FAIRLEASE_NOTICE, else the first one in its hints, else USR1."""
    return env.get("FAIRLEASE_NOTICE") or (HINTED.findall(env.get("FAIRLEASE_HINTS", "")) + ["USR1"])[0]


class Wrapper:
    """One command, from its start to its end. signals: the framework's and the notice; None = none."""

    def __init__(self, command: Sequence[str], saves_on: Optional[int], notice: Optional[int], hold: float, workers: bool, counts: bool) -> None:
        self.command, self.saves_on, self.notice, self.hold, self.workers, self.counts = command, saves_on, notice, hold, workers, counts
        self.waits_for: Set[int] = {int(s) for s in PASSED} | {int(signal.SIGCHLD)} | ({notice} if notice else set())
        self.child = 0
        self.noticed = False
        self.terminated = False

    def run(self) -> int:
        """Run the command, again if no requeue follows its save. Returns its exit status as os.waitpid gives it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.waits_for)
        while True:
            self.start()
            status = self.follow()
            if not self.noticed or self.terminated:
                return status
            say("the command has ended after the notice; waiting for the requeue")
            if self.requeued():
                return 128 + int(signal.SIGTERM) << 8
            say("no requeue has come in %g s; starting the command again" % self.hold)

    def start(self) -> None:
        """Start the command. A notice that it does not know must not end it."""
        self.noticed = False
        self.child = os.fork()
        if self.child:
            return
        if self.saves_on:  # ignored here, as after nohup, it would be ignored there, and a shell could not trap it
            signal.signal(self.saves_on, signal.SIG_DFL)
        if self.notice and (self.notice != self.saves_on or self.workers):
            signal.signal(self.notice, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.waits_for)
        if self.counts:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [STARTUP, os.environ.get("PYTHONPATH")]))
        become(self.command)

    def follow(self) -> int:
        """Pass signals on until the command has ended. Returns its status."""
        while True:
            got = signal.sigwaitinfo(self.waits_for)
            if got.si_signo == signal.SIGCHLD:
                pid, status = os.waitpid(self.child, os.WNOHANG)
                if pid:
                    return status
            elif got.si_signo == self.notice:
                if not self.noticed:
                    self.noticed = True
                    self.tell()
            elif got.si_code != _KERNEL:
                told = self.noticed and got.si_signo == self.saves_on and not self.workers  # twice may end it before it has saved
                self.terminated = self.terminated or got.si_signo == signal.SIGTERM
                if not told:
                    send(self.child, got.si_signo)

    def tell(self) -> None:
        """Send the framework's signal to the processes that save."""
        if self.saves_on is None:
            return
        told = workers(self.child) if self.workers else [self.child]
        say("notice: sending %s to %s" % (signal.Signals(self.saves_on).name, " ".join(map(str, told)) or "no process"))
        for pid in told:
            send(pid, self.saves_on)

    def requeued(self) -> bool:
        """Wait for the requeue's SIGTERM, at most as long as the setting says."""
        until = time.monotonic() + self.hold
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return False
            got = signal.sigtimedwait([signal.SIGTERM, signal.SIGINT], left)
            if got is not None:
                return True


def workers(launcher: int) -> List[int]:
    """The processes that a launcher started for training: its children, and of them those with a LOCAL_RANK if any has one."""
    children, ranked = [], []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                parent = f.read().rpartition(")")[2].split()[1]
            if parent != str(launcher):
                continue
            children.append(int(name))
            with open("/proc/%s/environ" % name, "rb") as f:
                if b"\0LOCAL_RANK=" in b"\0" + f.read():
                    ranked.append(int(name))
        except (OSError, IndexError):  # it has ended
            continue
    return sorted(ranked or children)


def become(command: Sequence[str]) -> NoReturn:
    """Replace this process by a command."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and its children would
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))
    except OSError as e:
        say("%s: %s" % (command[0], e.strerror))
        os._exit(127 if isinstance(e, FileNotFoundError) else 126)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def say(text: str) -> None:
    print("fairlease run: " + text, file=sys.stderr, flush=True)


def keep_archive() -> None:
    """If this program lies in an archive in memory, as that of the binary, the command gets no descriptor of it."""
    own = re.match(r"/proc/%d/fd/(\d+)/" % os.getpid(), STARTUP)
    if own:
        os.set_inheritable(int(own.group(1)), False)


def end(status: int) -> NoReturn:
    """End as a process with that status did."""
    if os.WIFSIGNALED(status):
        by = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
        if by not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(by, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [by])
        os.kill(os.getpid(), by)
        os._exit(128 + by)
    sys.exit(os.WEXITSTATUS(status))


def main(argv: Optional[Sequence[str]] = None) -> NoReturn:
    """The program. argv: its options, -- and the command; sys.argv's without it."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="fairlease run", description="Run a training command, and save in time when its lease ends.")
    parser.add_argument("--signal", default=os.environ.get("FAIRLEASE_SIGNAL", ""), metavar="NAME",
                        help="signal on which the command saves, or none (default: $FAIRLEASE_SIGNAL, else by the command: USR2 for submitit, TERM for others)")
    parser.add_argument("--notice", default=notice_signal(dict(os.environ)), metavar="NAME",
                        help="signal of the job's notice (default: $FAIRLEASE_NOTICE, else signal= in $FAIRLEASE_HINTS, else USR1)")
    parser.add_argument("--hold", default=os.environ.get("FAIRLEASE_HOLD", "900"), metavar="SECONDS",
                        help="how long to wait for the requeue before the command is started again (default: $FAIRLEASE_HOLD, else 900)")
    parser.add_argument("--no-count", action="store_true", default=os.environ.get("FAIRLEASE_COUNT") == "0",
                        help="do not count the optimizer's steps of a PyTorch script (default: $FAIRLEASE_COUNT is 0)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    o = parser.parse_args(argv)
    command: List[str] = o.command[1:] if o.command[:1] == ["--"] else o.command
    if not command:
        parser.error("a command is missing, as in: fairlease run -- python train.py")
    try:
        saves_on, notice, hold = number(o.signal or framework_signal(command, dict(os.environ))), number(o.notice), float(o.hold)
    except ValueError as e:
        parser.error(str(e))
    keep_archive()
    if not os.environ.get("SLURM_JOB_ID"):
        become(command)
    end(Wrapper(command, saves_on, notice, hold, launches(command), not o.no_count).run())


if __name__ == "__main__":
    main()
