-- Each takes its rows as one JSON array of objects with the columns' names.

-- name: put_vc_cells
insert into vc_cells as had (
    vc,
    chain,
    type,
    at,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent
)
select
    vc,
    chain,
    type,
    at,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent
from json_populate_recordset(null::vc_cells, $1)
on conflict (vc, chain, type) do update set
    at = excluded.at,
    cell_gpus = excluded.cell_gpus,
    reserved = excluded.reserved,
    pinned = excluded.pinned,
    bound = excluded.bound,
    lost = excluded.lost,
    free = excluded.free,
    lent = excluded.lent
where (had.cell_gpus, had.reserved, had.pinned, had.bound, had.lost, had.free, had.lent)
    is distinct from (excluded.cell_gpus, excluded.reserved, excluded.pinned, excluded.bound, excluded.lost, excluded.free, excluded.lent);

-- name: drop_vc_cells
delete from vc_cells
where (vc, chain, type) in (select vc, chain, type from json_populate_recordset(null::vc_cells, $1));

-- name: put_vc_cell_history
insert into vc_cell_history (
    vc,
    chain,
    type,
    at,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent
)
select
    vc,
    chain,
    type,
    at,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent
from json_populate_recordset(null::vc_cell_history, $1)
on conflict do nothing;

-- name: put_bound_cells
insert into bound_cells (
    chain,
    type,
    node,
    gpu,
    vc,
    nodes,
    node_gpus,
    gpus,
    pinned,
    used_gpus,
    bad_gpus,
    holders,
    guests,
    since
)
select
    chain,
    type,
    node,
    gpu,
    vc,
    nodes,
    node_gpus,
    gpus,
    pinned,
    used_gpus,
    bad_gpus,
    holders,
    guests,
    since
from json_populate_recordset(null::bound_cells, $1)
on conflict (chain, type, node, gpu, vc) do update set
    nodes = excluded.nodes,
    node_gpus = excluded.node_gpus,
    gpus = excluded.gpus,
    pinned = excluded.pinned,
    used_gpus = excluded.used_gpus,
    bad_gpus = excluded.bad_gpus,
    holders = excluded.holders,
    guests = excluded.guests;

-- name: drop_bound_cells
delete from bound_cells
where (chain, type, node, gpu, vc) in (select chain, type, node, gpu, vc from json_populate_recordset(null::bound_cells, $1));

-- name: put_fragmentation_history
insert into fragmentation_history (
    chain,
    type,
    at,
    cell_gpus,
    broken,
    cells
)
select
    chain,
    type,
    at,
    cell_gpus,
    broken,
    cells
from json_populate_recordset(null::fragmentation_history, $1)
on conflict do nothing;

-- name: put_violations
insert into violations (
    what,
    since
)
select
    what,
    since
from json_populate_recordset(null::violations, $1)
on conflict (md5(what)) where ended_at is null do nothing;

-- name: end_violations
update violations v set
    ended_at = e.ended_at
from json_populate_recordset(null::violations, $1) e
where v.what = e.what
and v.ended_at is null;
