-- When jobs will start and end.

-- name: forecast_put
-- A forecast that is newer than six hours after the last kept one is kept.
insert into forecasts (
    at,
    job_key,
    round,
    runs,
    horizon_ms,
    waits,
    why,
    start_p10,
    start_p50,
    start_p90,
    end_p10,
    end_p50,
    end_p90,
    raw_ms,
    kept
)
select
    to_timestamp($1::bigint / 1000.0),
    r.job,
    $2,
    $3,
    $4,
    r.waits,
    r.why,
    to_timestamp(nullif(r.start_p10, 0) / 1000.0),
    to_timestamp(nullif(r.start_p50, 0) / 1000.0),
    to_timestamp(nullif(r.start_p90, 0) / 1000.0),
    to_timestamp(nullif(r.end_p10, 0) / 1000.0),
    to_timestamp(nullif(r.end_p50, 0) / 1000.0),
    to_timestamp(nullif(r.end_p90, 0) / 1000.0),
    r.raw,
    not exists (
        select from forecasts k
        where k.kept
        and k.at > to_timestamp($1::bigint / 1000.0) - interval '6 hours'
    )
from jsonb_to_recordset($5::jsonb) as r (
    job bigint,
    waits boolean,
    why text,
    start_p10 bigint,
    start_p50 bigint,
    start_p90 bigint,
    end_p10 bigint,
    end_p50 bigint,
    end_p90 bigint,
    raw bigint[]
)
on conflict (job_key, at) do nothing;

-- name: forecast_replace
delete from forecasts
where not kept
and at < to_timestamp($1::bigint / 1000.0);

-- name: forecast_classes_clear
delete from forecast_classes;

-- name: forecast_classes_put
insert into forecast_classes (
    kind,
    divided_by,
    class,
    at,
    statements,
    forecasts,
    percent,
    low,
    high
)
select
    r.kind,
    coalesce(r.by, ''),
    coalesce(r.class, ''),
    to_timestamp($1::bigint / 1000.0),
    r.statements,
    r.forecasts,
    r.percent,
    r.low,
    r.high
from jsonb_to_recordset($2::jsonb) as r (
    kind text,
    by text,
    class text,
    statements integer,
    forecasts integer,
    percent double precision,
    low double precision,
    high double precision
);

-- name: forecast_classes
select {columns}
from forecast_coverage
order by divided_by, kind desc, class;

-- name: forecast_at
select coalesce(max(at), '0001-01-01 00:00:00Z')
from forecasts;

-- name: forecast_of
select {columns}
from forecasts_now
where $1 = 0
or job_key = $1
order by job_key;

-- name: forecast_outcomes
-- The kept forecasts since a moment, with the outcomes.
select
    f.waits,
    f.at,
    f.horizon_ms,
    f.raw_ms,
    f.job_key,
    j.tenant,
    j.gpus,
    f.start_p10,
    f.start_p50,
    f.start_p90,
    f.end_p10,
    f.end_p50,
    f.end_p90,
    (
        select min(l.started_at)
        from leases l
        where l.job_key = f.job_key
        and l.started_at >= f.at
    ) as started_at,
    j.done_at
from forecasts f
join jobs j on j.key = f.job_key
where f.kept
and f.at >= $1
and f.why = ''
order by f.at, f.job_key;

-- name: forecast_past
-- The jobs that came since a moment, or ran since then.
select
    {columns but started_at, work_gpu_ms},
    f.started_at,
    j.alloc_gpu_ms + j.extra_gpu_ms as work_gpu_ms
from jobs j
left join lateral (
    select started_at
    from leases
    where job_key = j.key
    and started_at is not null
    order by term
    limit 1
) f on true
where j.gpus > 0
and (j.done_at is null or j.done_at > $1)
order by j.key;
