-- name: identity
select
    name,
    cluster_id
from identity;

-- name: identity_claim
-- The first comes; a number that was not known is added.
insert into identity as known (
    name,
    cluster_id
)
values ($1, $2)
on conflict (single) do update set
    cluster_id = excluded.cluster_id
where known.name = excluded.name
and known.cluster_id = 0
and excluded.cluster_id <> 0;

-- name: identity_change
update identity set
    name = $1,
    cluster_id = $2,
    recorded_at = clock_timestamp();

-- name: repair_add
insert into repairs (
    kind,
    found,
    done,
    reason,
    by
)
values ($1, $2, $3, $4, $5);

-- name: journal_size
-- Bytes of the schema's tables, with their indexes.
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = current_schema() and c.relkind in ('r', 'm');

-- name: database_clock
select clock_timestamp();
