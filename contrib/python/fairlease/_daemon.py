"""Requests to fairlease's daemon. A MUNGE credential, or else a token of Slurm's auth/jwt, tells it the author."""

import base64
import getpass
import json
import os
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPMessage
from typing import IO, Dict, Mapping, Optional, Tuple

TIMEOUT = 10.0  # seconds
_LONGEST = 64 * 1024  # bytes of an answer
_LIFE = 600  # seconds for which a token of our own is good: whoever reads one can do all that its user can
_REST = 60.0  # seconds before its end at which another one is made

_lock = threading.Lock()
_token = ""  # of our own; may have expired
_forgot: Optional[float] = None  # when one was last forgotten; monotonic


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
    """Post a text as its author. Returns the answer, and the seconds until the next request is useful.

    Raises OSError if the author cannot be proven or the daemon cannot be reached, and Refused if the daemon says no.
    """
    body, headers = _proof(text)
    request = urllib.request.Request((url() or "").rstrip("/") + path, data=body, headers={"Content-Type": "text/plain"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    try:
        with _opener(bool(headers)).open(request, timeout=TIMEOUT) as answer:
            return answer.read(_LONGEST), _seconds(answer.headers.get("Retry-After"))
    except urllib.error.HTTPError as e:
        again = _seconds(e.headers.get("Retry-After"))
        if e.code == 401:
            _forget()
            again = again or _REST
        text = "fairlease: %d: %s" % (e.code, e.read(1024).decode(errors="replace").strip())
        raise Refused(text, again) from e


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirection."""

    def redirect_request(self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str) -> None:
        return None


def _opener(token: bool) -> urllib.request.OpenerDirector:
    """What sends a request. A token goes to no other address."""
    return urllib.request.build_opener(_Stay) if token else urllib.request.build_opener()


def _proof(text: str) -> Tuple[bytes, Dict[str, str]]:
    """The body and the headers of a request that proves its author: by munge where that is, else by a token.

    FAIRLEASE_AUTH=munge or FAIRLEASE_AUTH=jwt forces one of them.
    """
    how = os.environ.get("FAIRLEASE_AUTH", "")
    if how != "jwt" and (how == "munge" or shutil.which("munge")):
        munge = subprocess.run(["munge"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=TIMEOUT, check=False)
        if not munge.returncode:
            return munge.stdout, {}
        wrong = "munge: " + munge.stderr.decode(errors="replace").strip()
        if how == "munge" or not os.environ.get("SLURM_JWT"):
            raise OSError(wrong)
    if urllib.parse.urlsplit(url() or "").scheme != "https":  # on this host, too: anybody may listen at a port that is free
        raise OSError("without munge a token would be sent in clear: FAIRLEASE_PROGRESS_URL must be https://")
    token = _good_token()
    headers = {"Authorization": "Bearer " + token}
    if not _claims(token).get("sun"):  # as of tokens that are not Slurm's own
        headers["X-SLURM-USER-NAME"] = getpass.getuser()
    return text.encode(), headers


def _good_token() -> str:
    """The job's token: that of SLURM_JWT while it is good, else one that scontrol makes for some minutes.

    Raises OSError with the reason if there is none.
    """
    global _token
    given = os.environ.get("SLURM_JWT", "")
    if _left(given) > 0:
        return given
    with _lock:
        if _left(_token) < _REST:
            # With SLURM_JWT scontrol would ask by that token, which has expired.
            env = {k: v for k, v in os.environ.items() if k != "SLURM_JWT"}
            try:
                made = subprocess.run(["scontrol", "token", "lifespan=%d" % _LIFE], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      timeout=TIMEOUT, check=False, env=env)
            except FileNotFoundError as e:
                raise OSError("there is neither munge nor scontrol, and SLURM_JWT has no good token") from e
            text = made.stdout.decode(errors="replace").strip()
            if made.returncode or not text:
                raise OSError("scontrol token: " + made.stderr.decode(errors="replace").strip())
            _token = text[len("SLURM_JWT="):] if text.startswith("SLURM_JWT=") else text
        return _token


def _forget() -> None:
    """Forget the token of our own, which was refused; at most once in its life, since scontrol asks slurmctld for another one."""
    global _token, _forgot
    with _lock:
        now = time.monotonic()
        if _forgot is None or now - _forgot >= _LIFE:
            _token, _forgot = "", now


def _claims(token: str) -> Dict[str, object]:
    """What a token says; {} = it is none."""
    try:
        body = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return said if isinstance(said, dict) else {}
    except (IndexError, ValueError):
        return {}


def _left(token: str) -> float:
    """The seconds until a token expires; 0 = it has expired, or is none."""
    ends = _claims(token).get("exp")
    return max(ends - time.time(), 0.0) if isinstance(ends, (int, float)) else 0.0


def _seconds(text: Optional[str]) -> float:
    """The seconds of a header; 0 = none, or no number of seconds."""
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0
