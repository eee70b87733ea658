create or replace view recalls as
select
    d.at as decided_at,
    l.slurm_id,
    l.job_key,
    l.term,
    l.tenant,
    l.user_name,
    l.class,
    l.pool,
    l.gpus,
    l.ended_at,
    l.ended_at - d.at as freeing,
    d.for_job,
    b.slurm_id as for_slurm_id,
    b.tenant as for_tenant,
    b.class as for_class,
    b.gpus as for_gpus,
    b.started_at as for_started_at,
    b.started_at - d.at as latency
from leases l
join lateral (
    select
        r.at,
        (a.reason ->> 'for')::bigint as for_job
    from actions a
    join rounds r on r.number = a.round
    where a.job_key = l.job_key
    and a.round between l.granted_round and coalesce(l.ended_round, a.round)
    and a.verb in ('notice', 'reclaim')
    and not a.suppressed
    and a.reason ? 'for'
    order by a.round, a.ordinal
    limit 1
) d on true
left join lateral (
    select
        n.slurm_id,
        n.tenant,
        n.class,
        n.gpus,
        n.started_at
    from leases n
    where n.job_key = d.for_job
    and n.started_at >= d.at
    order by n.term
    limit 1
) b on true
where l.why = 'recalled'
order by d.at desc, l.job_key;

comment on view recalls is 'Every lease that was recalled for another job, newest first, and how long it took until that job''s lease started.';
comment on column recalls.decided_at is 'When the recall was decided: the first notice or reclaim that names the job for which.';
comment on column recalls.slurm_id is 'Slurm''s id of the job that had to give way.';
comment on column recalls.job_key is 'Our own number of it.';
comment on column recalls.term is 'Which of its leases.';
comment on column recalls.tenant is 'Its tenant.';
comment on column recalls.user_name is 'Its user.';
comment on column recalls.class is 'Class of its lease: opportunistic where the GPUs were lent; otherwise a job that never had a lease went first.';
comment on column recalls.pool is 'GPU model.';
comment on column recalls.gpus is 'GPUs that it held.';
comment on column recalls.ended_at is 'When its lease ended; null = not yet.';
comment on column recalls.freeing is 'How long that took.';
comment on column recalls.for_job is 'Our own number of the job for which.';
comment on column recalls.for_slurm_id is 'Slurm''s id of it; null = no lease of it has started.';
comment on column recalls.for_tenant is 'Its tenant.';
comment on column recalls.for_class is 'Class of its lease.';
comment on column recalls.for_gpus is 'GPUs of that lease.';
comment on column recalls.for_started_at is 'When that lease started, the first after the recall was decided.';
comment on column recalls.latency is 'From the decision to that start.';

create or replace view recalls_per_day as
select
    (decided_at at time zone 'UTC')::date as day,
    for_class,
    count(*) as jobs_served,
    sum(recalls) as recalls,
    trim_scale(sum(gpus)) as gpus,
    percentile_disc(0.5) within group (order by latency) as latency_median,
    percentile_disc(0.95) within group (order by latency) as latency_p95,
    max(latency) as latency_max
from (
    select
        for_job,
        for_class,
        min(decided_at) as decided_at,
        count(*) as recalls,
        sum(gpus) as gpus,
        for_started_at - min(decided_at) as latency
    from recalls
    group by for_job, for_class, for_started_at
) served
group by 1, 2
order by 1 desc, 2;

comment on view recalls_per_day is 'How long jobs waited for the leases that were recalled for them, by day and by the right that they have.';
comment on column recalls_per_day.day is 'Day, UTC, of the decision.';
comment on column recalls_per_day.for_class is 'guaranteed: into cells of their own; shared: first leases. Null = not started (yet).';
comment on column recalls_per_day.jobs_served is 'Jobs for which leases were recalled.';
comment on column recalls_per_day.recalls is 'Leases recalled for them.';
comment on column recalls_per_day.gpus is 'GPUs of these.';
comment on column recalls_per_day.latency_median is 'From the first recall for a job to the start of its lease, median.';
comment on column recalls_per_day.latency_p95 is 'The same, 95 of 100 are faster.';
comment on column recalls_per_day.latency_max is 'The same, slowest.';
