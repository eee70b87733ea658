-- What became of the jobs of a window of time, for `fairlease shadow`.

-- name: past_edges
-- The rounds that a window begins and ends with, of those whose snapshots are kept: the
-- first at $1 or later, the last at $2 or before (0 = none); and the bounds of all such.
with kept as (
    select
        r.number,
        r.at
    from fairlease.rounds r
    join fairlease.round_blobs b on b.round = r.number
)
select
    coalesce((select number from kept where at >= $1 order by number limit 1), 0) as first_round,
    coalesce((select number from kept where at <= $2 order by number desc limit 1), 0) as last_round,
    (select min(number) from kept) as oldest_round,
    (select at from kept order by number limit 1) as oldest_at,
    (select at from kept order by number desc limit 1) as newest_at;

-- name: past_jobs
-- The jobs that were there between two moments. Their leases tell what they held, when they
-- started first, and when exactly they finished.
select
    j.key,
    j.slurm_id,
    j.user_name,
    j.tenant,
    j.touch,
    coalesce(l.gpus, j.gpus) as gpus,
    j.model,
    j.outcome,
    j.submitted_at,
    j.eligible_at,
    l.started_at,
    coalesce(l.finished_at, j.done_at) as done_at,
    j.restarts,
    j.alloc_gpu_ms,
    j.due_gpu_ms,
    j.lost_gpu_ms
from fairlease.jobs j
left join lateral (
    select
        max(gpus) as gpus,
        min(started_at) as started_at,
        max(ended_at) filter (where why = 'finished') as finished_at
    from fairlease.leases
    where job_key = j.key
) l on true
where (j.done_at is null or j.done_at > $1)
and coalesce(j.eligible_at, l.started_at, j.submitted_at) < $2
order by j.key;

-- name: past_gpus
-- From when on there were how many healthy GPUs, from one round to another.
select
    at,
    gpus
from (
    select
        number,
        at,
        gpus,
        lag(gpus) over (order by number) as before
    from fairlease.rounds
    where number between $1 and $2
) r
where before is distinct from gpus
order by number;

-- name: past_acted
-- The rounds, from one to another, in which fairlease did more than to watch.
select
    count(*) as rounds,
    min(at) as first_at,
    max(at) as last_at
from fairlease.rounds
where number between $1 and $2
and actions > actions_withheld;
