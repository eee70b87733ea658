-- name: overrides_at
select
    id,
    kind,
    scope,
    name,
    until_at,
    reason,
    by,
    coalesce(job_key, 0),
    coalesce(job_user, ''),
    job_submitted_at
from overrides
where ended_at is null
and until_at > $1
order by id;

-- name: override_add
insert into overrides (
    kind,
    scope,
    name,
    until_at,
    reason,
    by,
    job_key,
    job_user,
    job_submitted_at
)
values ($1, $2, $3, $4, $5, $6, nullif($7::bigint, 0), nullif($8, ''), $9)
returning id;

-- name: override_target
-- The jobs that have an id now, or had it last: of an array, all its tasks.
select
    max(key) as key,
    (array_agg(user_name order by key desc))[1] as user_name,
    min(submitted_at) as submitted_at,
    count(*) filter (where done_at is null and state = 'waiting') as waiting,
    count(*) filter (where done_at is null and state <> 'waiting') as running,
    max(done_at) as done_at
from jobs
where slurm_job = $1
and ($3 or slurm_id = $2)
and (done_at is null) = (
    select bool_or(done_at is null)
    from jobs
    where slurm_job = $1
    and ($3 or slurm_id = $2)
)
having count(*) > 0;

-- name: override_lapse
-- Its job has ended.
update overrides set
    ended_at = now(),
    ended_by = $2
where id = $1
and ended_at is null;

-- name: override_end
update overrides set
    ended_at = now(),
    ended_by = $2
where id = $1
and ended_at is null
and until_at > now();

-- name: override_list
select {columns}
from overrides
order by id desc
limit $1;
