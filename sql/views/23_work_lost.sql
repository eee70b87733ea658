create or replace view work_lost as
select
    x.at,
    x.slurm_id,
    x.job_key,
    x.tenant,
    x.user_name,
    x.pool,
    x.lease_term,
    x.gpu_ms,
    nullif(greatest(x.most_gpu_ms, case when x.certainty <> 'bounded' then x.gpu_ms end), 0) as most_gpu_ms,
    x.certainty,
    x.command,
    l.gpus,
    span(trunc(x.gpu_ms / l.gpus)::bigint) as run_time,
    x.round
from losses x
left join leases l on l.job_key = x.job_key and l.term = x.lease_term
order by x.at desc, x.job_key;

comment on view work_lost is 'Work that fairlease''s stops destroyed or may have destroyed, a row a stop, newest first: GPU time since the save from which the job goes on.';
comment on column work_lost.at is 'When.';
comment on column work_lost.slurm_id is 'Slurm''s id.';
comment on column work_lost.job_key is 'Our own number of the job.';
comment on column work_lost.tenant is 'The tenant.';
comment on column work_lost.user_name is 'The user.';
comment on column work_lost.pool is 'GPU model.';
comment on column work_lost.lease_term is 'Which of the job''s leases.';
comment on column work_lost.gpu_ms is 'GPU time that was destroyed, by the best knowledge of how the job saves. It is overhead: the tenant did not receive it.';
comment on column work_lost.most_gpu_ms is 'Upper bound of the GPU time that was destroyed, whatever the job declares: since the newest save that the attempt reported, or all of the attempt; null = noted by a fairlease that did not tell.';
comment on column work_lost.certainty is 'known = exact: since a save that the job reported, or all of the attempt of a job whose type was seen to restart from the beginning; bounded = if the job saved as it declares or is known to, and at most most_gpu_ms if it did not; unknown = nothing is known of how it saves, and all of the attempt is counted.';
comment on column work_lost.command is 'The job''s type: its command line without numbers; - = it belongs to none.';
comment on column work_lost.gpus is 'GPUs that the job held; null = the lease was pruned.';
comment on column work_lost.run_time is 'The loss as run time of the job.';
comment on column work_lost.round is 'Round that noted it.';

create or replace view work_lost_per_day as
select
    (at at time zone 'UTC')::date as day,
    tenant,
    user_name,
    certainty,
    count(*) as stops,
    sum(gpu_ms) as gpu_ms,
    gpu_hours(sum(gpu_ms)) as gpu_hours,
    gpu_hours(sum(greatest(most_gpu_ms, gpu_ms))) as most_gpu_hours
from losses
group by 1, 2, 3, 4
order by 1 desc, 2, 3, 4;

comment on view work_lost_per_day is 'Work that fairlease''s stops destroyed, by day, tenant, user and how well it is known.';
comment on column work_lost_per_day.day is 'Day, UTC.';
comment on column work_lost_per_day.tenant is 'The tenant.';
comment on column work_lost_per_day.user_name is 'The user.';
comment on column work_lost_per_day.certainty is 'known, bounded or unknown; see work_lost.';
comment on column work_lost_per_day.stops is 'Stops that destroyed work, or may have.';
comment on column work_lost_per_day.gpu_ms is 'GPU time that they destroyed.';
comment on column work_lost_per_day.gpu_hours is 'The same in hours, rounded to millionths.';
comment on column work_lost_per_day.most_gpu_hours is 'Its upper bound; see work_lost.most_gpu_ms. Stops without a bound count as gpu_ms.';

create or replace view work_lost_per_kind as
select
    tenant,
    user_name,
    command,
    type_gpus as gpus,
    count(*) as stops,
    gpu_hours(sum(gpu_ms)) as gpu_hours,
    gpu_hours(coalesce(sum(gpu_ms) filter (where certainty = 'known'), 0)) as known_gpu_hours,
    gpu_hours(coalesce(sum(gpu_ms) filter (where certainty = 'bounded'), 0)) as bounded_gpu_hours,
    gpu_hours(coalesce(sum(gpu_ms) filter (where certainty = 'unknown'), 0)) as unknown_gpu_hours,
    gpu_hours(sum(greatest(most_gpu_ms, gpu_ms))) as most_gpu_hours,
    max(at) as last_at
from losses
group by 1, 2, 3, 4
order by sum(gpu_ms) desc, 1, 2, 3, 4;

comment on view work_lost_per_kind is 'Work that fairlease''s stops destroyed, by type of job, most first: jobs of these types gain most by saving, and by reporting their saves.';
comment on column work_lost_per_kind.tenant is 'The tenant.';
comment on column work_lost_per_kind.user_name is 'The user.';
comment on column work_lost_per_kind.command is 'Command line without numbers; - = jobs that belong to no type.';
comment on column work_lost_per_kind.gpus is 'GPUs that its jobs request; 0 = recorded by an older fairlease.';
comment on column work_lost_per_kind.stops is 'Stops that destroyed work, or may have.';
comment on column work_lost_per_kind.gpu_hours is 'GPU time that they destroyed, in hours, rounded to millionths.';
comment on column work_lost_per_kind.known_gpu_hours is 'Of it, known; see work_lost.';
comment on column work_lost_per_kind.bounded_gpu_hours is 'Of it, bounded: if the jobs saved as they declare or are known to.';
comment on column work_lost_per_kind.unknown_gpu_hours is 'Of it, unknown: it may be far less.';
comment on column work_lost_per_kind.most_gpu_hours is 'Upper bound of gpu_hours, whatever the jobs declare; see work_lost.most_gpu_ms.';
comment on column work_lost_per_kind.last_at is 'When the last of these stops was noted.';
