"""Report a job's progress and saves to fairlease, and save in time when its lease ends.

    import fairlease
    for batch in fairlease.iterate(batches, save, start=step, total=90_000):
        train(batch)

with steps that may take longer than the notice, save = fairlease.LastStore("run.ckpt", state, every=10); or, call by call:

    fairlease.progress(step, total)       after a step
    with fairlease.saving(step, total):   around a checkpoint's writing
        write_checkpoint()
    if fairlease.should_stop(): ...       the lease ends: save now
    fairlease.lease()                     when the lease ends, on which GPU model, whether it is renewed

Nothing here raises an error, or waits, because of fairlease. Outside a Slurm job every call does nothing.
These environment variables say where fairlease is; usually the site sets them:

    FAIRLEASE_PROGRESS_URL     of the daemon, like http://slurm1:8765; needs the program munge, or https:// and a token
                               of auth/jwt (SLURM_JWT, or scontrol token); FAIRLEASE_AUTH=munge or jwt forces one of them
    FAIRLEASE_PROGRESS_FOLDER  a shared folder that contains a folder of the user, for nodes that do not reach the daemon
    FAIRLEASE_LEASE_FOLDER     the folder in which the daemon writes each job's lease, for the same nodes

FAIRLEASE_PROGRESS_EVERY is the minimum number of seconds between two reports, 60 by default.

Steps count from the job's first start: after a requeue continue from the checkpoint's step. All steps of a job should
take equally long; different counting on some GPU models is detected.
"""

from ._daemon import job_id
from ._iterate import Stopped, hold, iterate
from ._leases import Lease, lease, listen, should_stop
from ._reports import INTERVAL, last_error, progress, report, saved, saving
from ._store import LastStore

__version__ = "0.1.0"

__all__ = ["INTERVAL", "LastStore", "Lease", "Stopped", "hold", "iterate", "job_id", "last_error", "lease", "listen", "progress",
           "report", "saved", "saving", "should_stop"]
