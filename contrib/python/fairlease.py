"""Report a job's completed steps to fairlease. Copy this file beside the training script.

    import fairlease
    for step in range(start, total):
        train(step)
        fairlease.progress(step + 1, total)

progress() may be called after every step. It sends at most one report a minute, or less often if
fairlease requests that (at most an hour), in its own thread, and never raises or waits. Only the
first process of a Slurm job step reports, and only if one of these variables is set:

    FAIRLEASE_PROGRESS_URL     of the daemon, like http://slurm1:8765; needs the program munge
    FAIRLEASE_PROGRESS_FOLDER  a shared folder that contains a folder of the user, for nodes that
                               do not reach the daemon

saved() reports that the job has just written a checkpoint from which it can resume:

    torch.save(state, path)
    fairlease.saved(step + 1, total)

It reports at once, at most every ten seconds, and neither raises nor waits. fairlease learns from it how
often jobs of this type save, and prefers to stop a job just after a save, when the loss is smallest.

FAIRLEASE_PROGRESS_EVERY is the minimum number of seconds between two reports, 60 by default.

Steps count from the job's first start: after a requeue continue from the checkpoint's step. All
steps of a job should take equally long; different counting on some GPU models is detected.
"""

import getpass
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request

try:
    INTERVAL = float(os.environ.get("FAIRLEASE_PROGRESS_EVERY", 60))  # seconds between two reports
except ValueError:
    INTERVAL = 60.0
_TIMEOUT = 10.0
_LONGEST = 3600.0  # maximum seconds between reports that fairlease may request
_BETWEEN_SAVES = 10.0  # seconds between two reports of a save

_lock = threading.Lock()
_next = 0.0
_next_save = 0.0
_begun = 0  # reports of progress() and saved()

_sending = threading.Lock()
_sent = 0  # number of the newest sent report
_last_error = None


def job_id(env=os.environ):
    """The job's id as users write it, 123 or 123_4 of an array; None outside Slurm."""
    if env.get("SLURM_ARRAY_JOB_ID") and env.get("SLURM_ARRAY_TASK_ID"):
        return env["SLURM_ARRAY_JOB_ID"] + "_" + env["SLURM_ARRAY_TASK_ID"]
    return env.get("SLURM_JOB_ID")


def progress(steps, total=None):
    """Report the completed steps, of total if that is known."""
    global _next
    if not _reports():
        return
    with _lock:
        now = time.monotonic()
        if now < _next:
            return
        _next = now + INTERVAL
    _send(steps, total, False)


def saved(steps, total=None):
    """Report that the job has just saved its state after so many steps, of total if that is known."""
    global _next, _next_save
    if not _reports():
        return
    with _lock:
        now = time.monotonic()
        if now < _next_save:
            return
        _next_save = now + _BETWEEN_SAVES
        _next = max(_next, now + INTERVAL)  # a report in the folder stays long enough to be read
    _send(steps, total, True)


def report(steps, total=None, saved=False):
    """Report now, and wait for the answer. Raises OSError or ValueError with the reason of a refusal."""
    text = {"job": job_id(), "steps": float(steps)}
    if total is not None:
        text["total"] = float(total)
    if saved:
        text["saved"] = True
    text = json.dumps(text, allow_nan=False)
    url = os.environ.get("FAIRLEASE_PROGRESS_URL")
    folder = os.environ.get("FAIRLEASE_PROGRESS_FOLDER")
    if url:
        _post(url.rstrip("/") + "/v1/progress", text)
    elif folder:
        _leave(os.path.join(folder, getpass.getuser(), job_id() + ".json"), text)


def last_error():
    """The error of the last report of progress() or saved(); None if it succeeded."""
    return _last_error


def _reports():
    """Whether this process reports: it is the first of a job step."""
    return job_id() is not None and os.environ.get("SLURM_PROCID", "0") == "0"


def _send(steps, total, saved):
    """Report in a separate thread."""
    global _begun
    with _lock:
        _begun += 1
        number = _begun
    try:
        threading.Thread(target=_quietly, args=(number, steps, total, saved), daemon=True).start()
    except RuntimeError:  # no more threads, or the interpreter ends
        pass


def _quietly(number, steps, total, saved):
    global _last_error, _sent
    try:
        with _sending:
            if number < _sent:
                return  # a newer report was sent: this one would hide its save
            _sent = number
            report(steps, total, saved)
        _last_error = None
    except Exception as e:  # training continues after any error
        _last_error = e


def _post(url, text):
    """Send a report, and store when the next one is useful."""
    munge = subprocess.run(["munge"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=_TIMEOUT, check=False)
    if munge.returncode:
        raise OSError("munge: " + munge.stderr.decode(errors="replace").strip())
    request = urllib.request.Request(url, data=munge.stdout, headers={"Content-Type": "text/plain"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            _put_off(answer.headers.get("Retry-After"))
    except urllib.error.HTTPError as e:
        _put_off(e.headers.get("Retry-After"))
        raise OSError("fairlease: %d: %s" % (e.code, e.read(1024).decode(errors="replace").strip())) from e


def _put_off(seconds):
    """Send no report through progress() for so many seconds; ignore invalid numbers."""
    global _next
    try:
        wait = float(seconds or 0)
    except ValueError:
        return
    if wait > 0:
        with _lock:
            _next = max(_next, time.monotonic() + min(wait, _LONGEST))


def _leave(path, text):
    """Write a file in one step."""
    beside = "%s.%d" % (path, os.getpid())
    with open(beside, "w") as f:
        f.write(text + "\n")
    os.replace(beside, path)
