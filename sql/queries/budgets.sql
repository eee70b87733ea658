-- Accounts of tenants' budgets.

-- name: budget_accounts
select
    tenant,
    start_at,
    end_at,
    per,
    gpu_hours,
    prices,
    at_end,
    base_gpu_ms,
    received_gpu_ms,
    used_gpu_hours,
    at,
    warned_at,
    spent_at,
    told_percent
from budget_periods
where current;

-- name: budget_put
insert into budget_periods {rows}
on conflict (tenant, start_at) do update set {new};

-- name: budget_retire
-- Those that are not among the rows are over, or not in the configuration any more.
update budget_periods set
    current = false
where current
and (tenant, start_at) not in (select tenant, start_at from json_populate_recordset(null::budget_periods, $1));

-- name: budget_base
-- GPU time that a tenant ($1) had received at a moment ($2), by model: between the samples before and after it, or after the newest round.
select
    l.pool,
    case
        when l.at <= $2 then l.alloc_gpu_ms + trunc(l.holds_gpus * (1000 * extract(epoch from $2 - l.at))::bigint)::bigint
        when b.at is null then coalesce(a.alloc_gpu_ms, l.alloc_gpu_ms)
        else b.alloc_gpu_ms + ((coalesce(a.alloc_gpu_ms, l.alloc_gpu_ms) - b.alloc_gpu_ms)
            * (extract(epoch from $2 - b.at) / nullif(extract(epoch from coalesce(a.at, l.at) - b.at), 0)))::bigint
    end as gpu_ms
from ledger l
left join lateral (
    select at, alloc_gpu_ms
    from tenant_history
    where tenant = l.tenant and pool = l.pool and at <= $2
    order by at desc
    limit 1
) b on true
left join lateral (
    select at, alloc_gpu_ms
    from tenant_history
    where tenant = l.tenant and pool = l.pool and at > $2
    order by at
    limit 1
) a on true
where l.tenant = $1;

-- name: budgets
select {columns}
from budgets
where $1 = ''
or tenant = $1
order by tenant;
