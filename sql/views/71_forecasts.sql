create or replace view forecasts_now as
select
    f.job_key,
    j.slurm_id,
    j.name,
    j.tenant,
    j.user_name,
    j.gpus,
    f.waits,
    coalesce(nullif(f.why, ''), o.why, '') as why,
    case when o.why is null then f.start_p10 end as start_p10,
    case when o.why is null then f.start_p50 end as start_p50,
    case when o.why is null then f.start_p90 end as start_p90,
    case when o.why is null then f.end_p10 end as end_p10,
    case when o.why is null then f.end_p50 end as end_p50,
    case when o.why is null then f.end_p90 end as end_p90,
    f.at as as_of,
    f.runs,
    span(f.horizon_ms) as horizon,
    j.state
from forecasts f
join jobs j on j.key = f.job_key
-- A forecast of a job that ran says nothing of one that waits, and the other way round.
cross join lateral (
    select case
        when f.why <> '' then null
        when j.state = 'waiting' and not f.waits then 'it has begun to wait again since the newest forecasts were made'
        when j.state = 'running' and f.waits then 'it has started since the newest forecasts were made'
    end as why
) o
where f.at = (
    select max(at)
    from forecasts
)
and j.done_at is null
order by j.tenant, f.job_key;

comment on view forecasts_now is 'When each job will start and end, by the newest forecast.';
comment on column forecasts_now.job_key is 'Our own number of the job.';
comment on column forecasts_now.slurm_id is 'Slurm''s id.';
comment on column forecasts_now.name is 'Job name.';
comment on column forecasts_now.tenant is 'The tenant.';
comment on column forecasts_now.user_name is 'The user.';
comment on column forecasts_now.gpus is 'GPUs asked for.';
comment on column forecasts_now.waits is 'True if it waited for GPUs, for the first time or again.';
comment on column forecasts_now.why is 'Why there is no forecast, or no longer one since its state has changed; empty = there is one.';
comment on column forecasts_now.start_p10 is 'Start: in one of ten runs it was then or earlier. Null = beyond the horizon, or the job runs.';
comment on column forecasts_now.start_p50 is 'Start in half of the runs, or earlier.';
comment on column forecasts_now.start_p90 is 'Start in nine of ten runs, or earlier.';
comment on column forecasts_now.end_p10 is 'End in one of ten runs, or earlier. Null = beyond the horizon.';
comment on column forecasts_now.end_p50 is 'End in half of the runs, or earlier.';
comment on column forecasts_now.end_p90 is 'End in nine of ten runs, or earlier.';
comment on column forecasts_now.as_of is 'The moment from which it looks ahead.';
comment on column forecasts_now.runs is 'Number of runs.';
comment on column forecasts_now.horizon is 'How far ahead it looks.';
comment on column forecasts_now.state is 'The job''s state now.';
