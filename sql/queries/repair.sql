-- Queries of `fairlease repair clock`, which takes rounds back that were ahead of the time.

-- name: clock_newest
select
    number,
    at
from rounds
order by number desc
limit 1;

-- name: clock_right
-- The last round that was not ahead of the time; 0 = its snapshot is kept no longer.
select coalesce(max(number), 0)
from rounds
where at <= $1
and exists (select from round_blobs where round = number);

-- name: clock_rounds
select number
from rounds
where number >= $1
and exists (select from round_blobs where round = number)
order by number;

-- name: clock_round_times
update rounds set
    at = least(recorded_at, $1)
where number > $2;

-- name: clock_events
update events set
    at = $1
where round > $2
and at > $1;

-- name: clock_actions
update actions set
    at = $1
where round > $2
and at > $1;

-- name: clock_blobs
update round_blobs set
    at = $1
where round > $2
and at > $1;

-- name: clock_losses
delete from losses
where round > $1;

-- name: clock_leases
delete from leases
where granted_round > $1;

-- name: clock_leases_of_later
delete from leases
where granted_at > $1;

-- name: clock_claims
delete from claims
where made_at > $1;

-- name: clock_buckets
delete from window_buckets
where start_at > $1;

-- name: clock_tenant_history
delete from tenant_history
where at > $1;

-- name: clock_pool_history
delete from pool_history
where at > $1;

-- name: clock_vc_cell_history
delete from vc_cell_history
where at > $1;

-- name: clock_fragmentation_history
delete from fragmentation_history
where at > $1;

-- name: clock_entitlement_history
delete from entitlement_history
where at > $1;

-- name: clock_audits
delete from audits
where at > $1;

-- name: clock_charges
delete from charges
where gpu_ms = 0;

-- name: clock_lending_days
delete from lending_days
where gpu_ms = 0;
