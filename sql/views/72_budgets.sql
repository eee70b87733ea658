create or replace view budgets as
select
    b.tenant,
    b.per,
    b.start_at,
    b.end_at,
    b.gpu_hours,
    b.used_gpu_hours,
    round((100 * b.used_gpu_hours / b.gpu_hours)::numeric, 2) as used_percent,
    b.at_end,
    b.prices,
    b.received_gpu_ms,
    r.per_day as gpu_hours_per_day,
    case
        when b.spent_at is not null then b.spent_at
        when (b.gpu_hours - b.used_gpu_hours) / nullif(r.per_day, 0) < 3650 then b.at + make_interval(secs => (b.gpu_hours - b.used_gpu_hours) / r.per_day * 86400)
    end as used_up_at,
    round((100 * (b.used_gpu_hours + r.per_day * extract(epoch from greatest(b.end_at - b.at, interval '0'))::double precision / 86400) / b.gpu_hours)::numeric, 2) as end_percent,
    b.warned_at,
    b.spent_at,
    b.spent_at is not null and b.at_end <> 'warn' as idle_only,
    b.at as as_of
from budget_periods b
cross join lateral (
    select coalesce(sum(c.gpu_ms * coalesce((b.prices ->> c.pool)::double precision, 1))
        / greatest(extract(epoch from b.at at time zone 'UTC' - min(c.day)::timestamp)::double precision, 3600) / 1000 * 24, 0) as per_day
    from charges c
    where c.tenant = b.tenant
    and c.day >= (b.at at time zone 'UTC')::date - 7
) r
where b.current
order by b.tenant;

comment on view budgets is 'Budgets of tenants in the present period, and their use.';
comment on column budgets.tenant is 'The tenant.';
comment on column budgets.per is 'Length of the period: week, month, quarter or year.';
comment on column budgets.start_at is 'Begin of the period.';
comment on column budgets.end_at is 'End of the period: the begin of the next.';
comment on column budgets.gpu_hours is 'The budget: GPU hours at prices.';
comment on column budgets.used_gpu_hours is 'Of it, used, with running leases up to as_of.';
comment on column budgets.used_percent is 'The same in per cent of the budget.';
comment on column budgets.at_end is 'What follows when it is used up: warn, idle-only (the tenant gets idle GPUs only), or refuse (that, and the submit plugin refuses jobs that may use more than is left).';
comment on column budgets.prices is 'Price of a GPU hour by model. A model that is not there costs 1.';
comment on column budgets.received_gpu_ms is 'GPU time received by model in the period, without prices.';
comment on column budgets.gpu_hours_per_day is 'GPU hours at prices a day, by the last seven days.';
comment on column budgets.used_up_at is 'When the budget was used up, or will be at that rate; null = not within ten years.';
comment on column budgets.end_percent is 'Per cent of the budget used at the end of the period at that rate.';
comment on column budgets.warned_at is 'When 80 % were used; null = not yet.';
comment on column budgets.spent_at is 'When all was used; null = not yet.';
comment on column budgets.idle_only is 'True while the tenant gets idle GPUs only, since its budget is used up.';
comment on column budgets.as_of is 'Up to when all this is counted.';
