-- Each takes its rows as one JSON array of objects with the columns' names.

-- name: end_divisions
update divisions d set
    ended_at = e.ended_at
from json_populate_recordset(null::divisions, $1) e
where (d.policy, d.digest) = (e.policy, e.digest)
and d.ended_at is null;

-- name: put_divisions
insert into divisions (
    policy,
    digest,
    objective,
    why_not,
    pools,
    parties,
    since
)
select
    policy,
    digest,
    objective,
    why_not,
    pools,
    parties,
    since
from json_populate_recordset(null::divisions, $1)
on conflict ((true)) where ended_at is null do nothing;

-- name: drop_profiles
delete from profiles
where (kind, beside, model, gang, source) in (select kind, beside, model, gang, source from json_populate_recordset(null::profiles, $1));

-- name: put_profiles
insert into profiles (
    kind,
    beside,
    model,
    gang,
    source,
    rate,
    samples,
    spread,
    heard_at,
    basis
)
select
    kind,
    beside,
    model,
    gang,
    source,
    rate,
    samples,
    spread,
    heard_at,
    basis
from json_populate_recordset(null::profiles, $1)
on conflict (kind, beside, model, gang, source) do update set
    rate = excluded.rate,
    samples = excluded.samples,
    spread = excluded.spread,
    heard_at = excluded.heard_at,
    basis = excluded.basis;

-- name: speeds
-- What one GPU does for each tenant's jobs, as written last.
select
    tenant,
    pool,
    speed
from entitlements;

-- name: drop_entitlements
delete from entitlements
where (tenant, pool) in (select tenant, pool from json_populate_recordset(null::entitlements, $1));

-- name: put_entitlements
insert into entitlements as had (
    tenant,
    pool,
    at,
    base_gpus,
    usable_gpus,
    divided_gpus,
    entitlement_gpus,
    holds_gpus,
    speed
)
select
    tenant,
    pool,
    at,
    base_gpus,
    usable_gpus,
    divided_gpus,
    entitlement_gpus,
    holds_gpus,
    speed
from json_populate_recordset(null::entitlements, $1)
on conflict (tenant, pool) do update set
    at = excluded.at,
    base_gpus = excluded.base_gpus,
    usable_gpus = excluded.usable_gpus,
    divided_gpus = excluded.divided_gpus,
    entitlement_gpus = excluded.entitlement_gpus,
    holds_gpus = excluded.holds_gpus,
    speed = excluded.speed
where (had.base_gpus, had.usable_gpus, had.divided_gpus, had.entitlement_gpus, had.holds_gpus, had.speed)
    is distinct from (excluded.base_gpus, excluded.usable_gpus, excluded.divided_gpus, excluded.entitlement_gpus, excluded.holds_gpus, excluded.speed);

-- name: put_entitlement_history
insert into entitlement_history (
    tenant,
    pool,
    at,
    base_gpus,
    usable_gpus,
    divided_gpus,
    entitlement_gpus,
    holds_gpus,
    speed
)
select
    tenant,
    pool,
    at,
    base_gpus,
    usable_gpus,
    divided_gpus,
    entitlement_gpus,
    holds_gpus,
    speed
from json_populate_recordset(null::entitlement_history, $1)
on conflict do nothing;

-- name: end_trades
update trades t set
    left_fast_gpus = 0,
    left_slow_gpus = 0,
    undone_at = e.undone_at,
    undone_why = e.undone_why
from json_populate_recordset(null::trades, $1) e
where t.id = e.id
and t.left_fast_gpus > 0;

-- name: put_trades
-- Of one that is known, what it gains now, and what was undone of it if there is less left.
insert into trades as had (
    id,
    made_at,
    fast,
    slow,
    fast_to,
    fast_to_kind,
    slow_to,
    slow_to_kind,
    fast_gpus,
    slow_gpus,
    price,
    fast_to_speedup,
    slow_to_speedup,
    fast_to_gain,
    slow_to_gain,
    left_fast_gpus,
    left_slow_gpus,
    undone_why
)
select
    id,
    made_at,
    fast,
    slow,
    fast_to,
    fast_to_kind,
    slow_to,
    slow_to_kind,
    left_fast_gpus,
    left_slow_gpus,
    price,
    fast_to_speedup,
    slow_to_speedup,
    fast_to_gain,
    slow_to_gain,
    left_fast_gpus,
    left_slow_gpus,
    undone_why
from json_populate_recordset(null::trades, $1)
on conflict (id) where left_fast_gpus > 0 do update set
    fast_to_gain = excluded.fast_to_gain,
    slow_to_gain = excluded.slow_to_gain,
    left_fast_gpus = excluded.left_fast_gpus,
    left_slow_gpus = excluded.left_slow_gpus,
    undone_at = case when excluded.left_fast_gpus < had.left_fast_gpus then excluded.made_at else had.undone_at end,
    undone_why = case when excluded.left_fast_gpus < had.left_fast_gpus then excluded.undone_why else had.undone_why end;

-- name: put_audits
insert into audits (
    day,
    at,
    policy,
    pareto_slack,
    tenants,
    envy,
    misreports
)
select
    day,
    at,
    policy,
    pareto_slack,
    coalesce(tenants, '[]'),
    coalesce(envy, '[]'),
    coalesce(misreports, '[]')
from json_populate_recordset(null::audits, $1)
on conflict (day) do update set
    at = excluded.at,
    policy = excluded.policy,
    pareto_slack = excluded.pareto_slack,
    tenants = excluded.tenants,
    envy = excluded.envy,
    misreports = excluded.misreports,
    recorded_at = clock_timestamp();

-- name: trades
-- In force, or all of them.
select
    id,
    made_at,
    in_force,
    fast,
    slow,
    fast_to,
    fast_to_kind,
    slow_to,
    slow_to_kind,
    millionths(fast_gpus) as fast_gpus,
    millionths(slow_gpus) as slow_gpus,
    price,
    fast_to_speedup,
    slow_to_speedup,
    fast_to_gain,
    slow_to_gain,
    undone_at,
    millionths(undone_fast_gpus) as undone_fast_gpus,
    millionths(undone_slow_gpus) as undone_slow_gpus,
    undone_why
from trade_history
where $1
or in_force
limit $2;

-- name: effective
-- Of one tenant, or of all.
select
    tenant,
    throughput,
    due_throughput,
    share_throughput,
    ratio
from effective_throughput
where $1 = ''
or tenant = $1;
