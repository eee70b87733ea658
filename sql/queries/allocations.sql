-- name: end_allocations
update allocations d set
    ended_at = e.ended_at
from json_populate_recordset(null::allocations, $1) e
where (d.policy, d.digest) = (e.policy, e.digest)
and d.ended_at is null;

-- name: put_allocations
insert into allocations {rows}
on conflict ((true)) where ended_at is null do nothing;

-- name: drop_profiles
delete from profiles
where (kind, beside, model, gang, source) in (select kind, beside, model, gang, source from json_populate_recordset(null::profiles, $1));

-- name: put_profiles
insert into profiles {rows}
on conflict (kind, beside, model, gang, source) do update set {new};

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
insert into entitlements as had {rows}
on conflict (tenant, pool) do update set {new}
where {changed but at};

-- name: put_entitlement_history
insert into entitlement_history {rows}
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
-- A known trade gets its present gain, and the part of it that was undone.
insert into trades as had (
    {columns},
    fast_gpus,
    slow_gpus
)
select
    {columns},
    left_fast_gpus,
    left_slow_gpus
from json_populate_recordset(null::trades, $1)
on conflict (id) where left_fast_gpus > 0 do update set
    fast_to_gain = excluded.fast_to_gain,
    slow_to_gain = excluded.slow_to_gain,
    left_fast_gpus = excluded.left_fast_gpus,
    left_slow_gpus = excluded.left_slow_gpus,
    undone_at = case when excluded.left_fast_gpus < had.left_fast_gpus then excluded.made_at else had.undone_at end,
    undone_why = case when excluded.left_fast_gpus < had.left_fast_gpus then excluded.undone_why else had.undone_why end;

-- name: put_audits
insert into audits {rows}
on conflict (day) do update set
    {new},
    recorded_at = clock_timestamp();

-- name: trades
-- In force, or all of them.
select {columns}
from trade_history
where $1
or in_force
limit $2;

-- name: effective
-- Of one tenant, or of all.
select {columns}
from effective_throughput
where $1 = ''
or tenant = $1;
