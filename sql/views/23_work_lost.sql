create view fairlease.work_lost as
select
    x.at,
    x.slurm_id,
    x.job_key,
    x.tenant,
    x.user_name,
    x.pool,
    x.lease_term,
    x.gpu_ms,
    l.gpus,
    fairlease.span(x.gpu_ms / l.gpus) as run_time,
    x.round
from fairlease.losses x
left join fairlease.leases l on l.job_key = x.job_key and l.term = x.lease_term
order by x.at desc, x.job_key;

comment on view fairlease.work_lost is 'Work lost to each reclaim, newest first: GPU time since the job''s last checkpoint, as far as known.';
comment on column fairlease.work_lost.at is 'When.';
comment on column fairlease.work_lost.slurm_id is 'Slurm''s id.';
comment on column fairlease.work_lost.job_key is 'Our own number of the job.';
comment on column fairlease.work_lost.tenant is 'The tenant.';
comment on column fairlease.work_lost.user_name is 'The user.';
comment on column fairlease.work_lost.pool is 'GPU model.';
comment on column fairlease.work_lost.lease_term is 'Which of the job''s leases.';
comment on column fairlease.work_lost.gpu_ms is 'GPU time lost.';
comment on column fairlease.work_lost.gpus is 'GPUs that the job held; null = the lease was pruned.';
comment on column fairlease.work_lost.run_time is 'The loss as run time of the job.';
comment on column fairlease.work_lost.round is 'Round that noted it.';

create view fairlease.work_lost_per_day as
select
    (at at time zone 'UTC')::date as day,
    tenant,
    user_name,
    count(*) as reclaims,
    sum(gpu_ms) as gpu_ms,
    fairlease.gpu_hours(sum(gpu_ms)) as gpu_hours
from fairlease.losses
group by 1, 2, 3
order by 1 desc, 2, 3;

comment on view fairlease.work_lost_per_day is 'Work lost to reclaims, by day, tenant and user.';
comment on column fairlease.work_lost_per_day.day is 'Day, UTC.';
comment on column fairlease.work_lost_per_day.tenant is 'The tenant.';
comment on column fairlease.work_lost_per_day.user_name is 'The user.';
comment on column fairlease.work_lost_per_day.reclaims is 'Reclaims that lost work.';
comment on column fairlease.work_lost_per_day.gpu_ms is 'GPU time lost.';
comment on column fairlease.work_lost_per_day.gpu_hours is 'The same in hours, rounded to millionths.';
