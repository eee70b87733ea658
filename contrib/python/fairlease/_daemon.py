"""Requests to fairlease's daemon. The body of a request is a MUNGE credential, so the daemon knows its author."""

import os
import subprocess
import urllib.error
import urllib.request
from typing import Mapping, Optional, Tuple

TIMEOUT = 10.0  # seconds
_LONGEST = 64 * 1024  # bytes of an answer


class Refused(OSError):
    """The daemon refused a request. again is the number of seconds to wait before the next one."""

    def __init__(self, text: str, again: float = 0.0) -> None:
        super().__init__(text)
        self.again = again


def job_id(env: Mapping[str, str] = os.environ) -> Optional[str]:
    """The job's id as users write it, 123 or 123_4 of an array; None outside Slurm."""
    if env.get("SLURM_ARRAY_JOB_ID") and env.get("SLURM_ARRAY_TASK_ID"):
        return env["SLURM_ARRAY_JOB_ID"] + "_" + env["SLURM_ARRAY_TASK_ID"]
    return env.get("SLURM_JOB_ID")


def speaks() -> bool:
    """Whether this process speaks for its job: it is the first of a job step, and of the workers that a launcher like torchrun started there."""
    return job_id() is not None and os.environ.get("SLURM_PROCID", "0") == "0" and os.environ.get("RANK", "0") == "0"


def url() -> Optional[str]:
    """The daemon's address; None = it is not reached over the network."""
    return os.environ.get("FAIRLEASE_PROGRESS_URL") or None


def post(path: str, text: str) -> Tuple[bytes, float]:
    """Post a text as a credential. Returns the answer, and the seconds until the next request is useful.

    Raises OSError if munge or the daemon cannot be reached, and Refused if the daemon says no.
    """
    munge = subprocess.run(["munge"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=TIMEOUT, check=False)
    if munge.returncode:
        raise OSError("munge: " + munge.stderr.decode(errors="replace").strip())
    request = urllib.request.Request((url() or "").rstrip("/") + path, data=munge.stdout, headers={"Content-Type": "text/plain"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return answer.read(_LONGEST), _seconds(answer.headers.get("Retry-After"))
    except urllib.error.HTTPError as e:
        text = "fairlease: %d: %s" % (e.code, e.read(1024).decode(errors="replace").strip())
        raise Refused(text, _seconds(e.headers.get("Retry-After"))) from e


def _seconds(text: Optional[str]) -> float:
    """The seconds of a header; 0 = none, or no number of seconds."""
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0
