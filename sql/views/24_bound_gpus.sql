create or replace view bound_gpus as
select
    b.job_key,
    j.slurm_id,
    j.name,
    j.tenant,
    j.user_name,
    b.way,
    b.pool,
    b.gpus,
    b.since_at,
    case when not passed(b.until_at) then b.until_at end as until_at,
    greatest(0, least(b.gpus, sum(b.gpus) over earlier - coalesce(l.entitlement_gpus, 0))) as beyond_gpus
from bound_jobs b
join jobs j on j.key = b.job_key
left join ledger l on l.tenant = j.tenant and l.pool = b.pool
where j.done_at is null
window earlier as (partition by j.tenant, b.pool order by b.since_at, b.job_key)
order by j.tenant, b.pool, b.since_at, b.job_key;

comment on view bound_gpus is 'Running jobs whose GPUs cannot be taken back soon, and those without GPUs that keep others'' idle, the longest first.';
comment on column bound_gpus.job_key is 'Our own number of the job.';
comment on column bound_gpus.slurm_id is 'Slurm''s id.';
comment on column bound_gpus.name is 'Job name.';
comment on column bound_gpus.tenant is 'The tenant; empty = none.';
comment on column bound_gpus.user_name is 'The user.';
comment on column bound_gpus.way is 'Why its GPUs cannot be taken back: no_requeue, contiguous, session, het, other, no_gpus, age, saves, min_lease, pool, exempt, excluded, reservation, no_tenant or aside.';
comment on column bound_gpus.pool is 'GPU model.';
comment on column bound_gpus.gpus is 'GPUs that it holds; with no_gpus, those that idle since it holds their CPUs or memory.';
comment on column bound_gpus.since_at is 'When it could last have been stopped, at the earliest its start.';
comment on column bound_gpus.until_at is 'When it ends at the latest, or can be stopped; null = not known, or that time has passed.';
comment on column bound_gpus.beyond_gpus is 'GPUs of it beyond what its tenant is due now of the model. Jobs that have been bound for longer come first within the due.';
