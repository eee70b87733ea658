-- name: put_vc_cells
insert into vc_cells as had {rows}
on conflict (vc, chain, type) do update set {new}
where {changed but at};

-- name: drop_vc_cells
delete from vc_cells
where (vc, chain, type) in (select vc, chain, type from json_populate_recordset(null::vc_cells, $1));

-- name: put_vc_cell_history
insert into vc_cell_history {rows}
on conflict do nothing;

-- name: put_bound_cells
insert into bound_cells {rows}
on conflict (chain, type, node, gpu, vc) do update set {new but since};

-- name: drop_bound_cells
delete from bound_cells
where (chain, type, node, gpu, vc) in (select chain, type, node, gpu, vc from json_populate_recordset(null::bound_cells, $1));

-- name: put_fragmentation_history
insert into fragmentation_history {rows}
on conflict do nothing;

-- name: put_violations
insert into violations {rows}
on conflict (md5(what)) where ended_at is null do nothing;

-- name: end_violations
update violations v set
    ended_at = e.ended_at
from json_populate_recordset(null::violations, $1) e
where v.what = e.what
and v.ended_at is null;
