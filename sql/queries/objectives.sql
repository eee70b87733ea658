-- Counts of objectives, by day of UTC.

-- name: objective_count
insert into objective_days as d (day, objective, tenant, target_percent, within_ms, total, bad)
select
    (clock_timestamp() at time zone 'UTC')::date,
    n.objective,
    n.tenant,
    n.target_percent,
    n.within_ms,
    n.total,
    n.bad
from json_populate_recordset(null::objective_days, $1) n
on conflict (day, objective, tenant) do update set
    target_percent = excluded.target_percent,
    within_ms = excluded.within_ms,
    total = d.total + excluded.total,
    bad = d.bad + excluded.bad;

-- name: objectives
select {columns}
from objectives_kept;
