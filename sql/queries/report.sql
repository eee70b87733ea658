-- The monthly report of a tenant ($1), from a day ($2) up to another ($3), both UTC.

-- name: report_tenants
-- Those that received or lent GPU time from a day ($1) up to another ($2).
select tenant
from gpu_hours
where day >= $1::date
and day < $2::date
union
select lender
from lending_per_day
where day >= $1::date
and day < $2::date
order by 1;

-- name: report_charges
select
    day::timestamp at time zone 'UTC' as day,
    user_name,
    model,
    gpu_ms::bigint as gpu_ms
from gpu_hours
where tenant = $1
and day >= $2::date
and day < $3::date
order by day, user_name, model;

-- name: report_lending
-- GPU time lent to others, and borrowed from them.
select
    pool as model,
    coalesce(sum(gpu_ms) filter (where lender = $1), 0)::bigint as lent_gpu_ms,
    coalesce(sum(gpu_ms) filter (where borrower = $1), 0)::bigint as borrowed_gpu_ms
from lending_per_day
where $1 in (lender, borrower)
and day >= $2::date
and day < $3::date
group by pool
order by pool;

-- name: report_trades
-- Entitlement that trades brought, and that was given for it.
select
    pool as model,
    (1000 * coalesce(sum(greatest(traded_gpus, 0) * seconds), 0))::bigint as got_gpu_ms,
    (1000 * coalesce(sum(greatest(-traded_gpus, 0) * seconds), 0))::bigint as gave_gpu_ms
from (
    select
        pool,
        traded_gpus,
        extract(epoch from least(coalesce(until_at, now()), $3) - greatest(from_at, $2)) as seconds
    from entitlements_over_time
    where tenant = $1
    and from_at < $3
    and coalesce(until_at, now()) > $2
) e
where traded_gpus <> 0
group by pool
order by pool;

-- name: report_waits
-- Waits of jobs that began their first lease then. A job that was never seen waiting began soon after its submission.
select
    user_name,
    extract(epoch from greatest(started_at - eligible_at, interval '0'))::double precision as seconds
from (
    select
        l.user_name,
        coalesce(j.eligible_at, j.submitted_at) as eligible_at,
        min(l.started_at) as started_at
    from lease_history l
    join jobs j on j.key = l.job_key
    where l.tenant = $1
    group by l.job_key, l.user_name, 2
) f
where started_at >= $2
and started_at < $3
and eligible_at is not null
order by seconds;

-- name: report_lost
select
    user_name,
    sum(stops)::bigint as stops,
    sum(gpu_ms)::bigint as gpu_ms
from work_lost_per_day
where tenant = $1
and day >= $2::date
and day < $3::date
group by user_name
order by user_name;

-- name: report_idle
select
    user_name,
    model,
    sum(idle_gpu_ms)::bigint as gpu_ms
from idle_held
where tenant = $1
and day >= $2::date
and day < $3::date
group by user_name, model
order by user_name, model;

-- name: report_rho
-- Work received and due: GPU time where no policy divides GPU models.
select
    coalesce(sum(work_gpu_ms), 0)::double precision as received,
    coalesce(sum(work_due_gpu_ms), 0)::double precision as due
from tenant_fairness_over_time
where tenant = $1
and from_at >= $2
and from_at < $3;

-- name: report_budget
-- The budget of the newest period that began before the end.
select
    per,
    start_at,
    end_at,
    gpu_hours,
    used_gpu_hours,
    prices,
    at_end,
    spent_at
from budget_periods
where tenant = $1
and start_at < $3
and end_at > $2
order by start_at desc
limit 1;

-- name: report_shares
-- GPUs held and due, as means of steps of six hours.
select
    pool as model,
    date_bin(interval '6 hours', at, $2::timestamptz) as at,
    avg(holds_gpus)::double precision as holds,
    avg(least(entitlement_gpus, demand_gpus))::double precision as due
from tenant_history
where tenant = $1
and at >= $2
and at < $3
group by 1, 2
order by 1, 2;
