-- +goose Up

-- Slurm reuses job ids: an override for a job is for the job that had the id when it was given.

alter table overrides
    add column if not exists job_key bigint,
    add column if not exists job_user text,
    add column if not exists job_submitted_at timestamptz;
comment on column overrides.job_key is 'The job that it is for; of an array, the task with the highest key then. Null = it is for a user or a tenant, or was given by an older version and has ended.';
comment on column overrides.job_user is 'User of that job.';
comment on column overrides.job_submitted_at is 'When that job was submitted, of an array the earliest of its tasks. A task that fairlease first sees later belongs to the array if it was submitted then.';
comment on column overrides.ended_by is 'User that ended it before its time; fairlease, with the reason, where its job has ended.';

-- Overrides in force are for the job that has their id, if that had been submitted when they were given. Requeues renew the time of
-- submission, but not the moment from which the job could have had a lease. The clocks of Slurm and of PostgreSQL may differ a little.
update overrides o set
    job_key = j.key,
    job_user = j.user_name,
    job_submitted_at = j.submitted_at
from (
    select
        x.id,
        max(t.key) as key,
        min(t.user_name) as user_name,
        min(t.submitted_at) as submitted_at
    from overrides x
    join jobs t on t.slurm_job::text = split_part(x.name, '_', 1) and (t.slurm_id = x.name or strpos(x.name, '_') = 0)
    where x.scope = 'job'
    and t.done_at is null
    and least(t.submitted_at, t.eligible_at) <= x.created_at + interval '10 seconds'
    group by x.id
) j
where o.id = j.id
and o.scope = 'job'
and o.job_key is null
and o.ended_at is null
and o.until_at > now();

update overrides set
    ended_at = now(),
    ended_by = 'fairlease migrate: no job that waits or runs had its id when it was given'
where scope = 'job'
and job_key is null
and ended_at is null
and until_at > now();

alter table overrides drop constraint if exists overrides_name_jobs;
alter table overrides add constraint overrides_name_jobs check (scope <> 'job' or job_key is not null or ended_at is not null) not valid;
