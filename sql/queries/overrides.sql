-- name: overrides_at
select
    id,
    kind,
    scope,
    name,
    until_at,
    reason,
    by
from overrides
where ended_at is null
and until_at > $1
order by id;

-- name: override_add
insert into overrides (
    kind,
    scope,
    name,
    until_at,
    reason,
    by
)
values ($1, $2, $3, $4, $5, $6)
returning id;

-- name: override_end
update overrides set
    ended_at = now(),
    ended_by = $2
where id = $1
and ended_at is null
and until_at > now();

-- name: override_list
select {columns}
from overrides
order by id desc
limit $1;
