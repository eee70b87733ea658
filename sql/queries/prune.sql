-- What is not partitioned by day. Each takes an age (interval) and deletes a bounded number of what is older, so
-- that no lock is held long; run until nothing is left to delete.

-- name: prune_leases
delete from leases
where ctid = any (array(
    select ctid
    from leases
    where ended_at < now() - $1::interval
    and alloc_to_gpu_ms is not null
    limit 10000
));

-- name: prune_jobs
delete from jobs
where ctid = any (array(
    select ctid
    from jobs
    where done_at < now() - $1::interval
    limit 10000
));

-- name: prune_claims
delete from claims
where ctid = any (array(
    select ctid
    from claims
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_buckets
delete from window_buckets
where ctid = any (array(
    select ctid
    from window_buckets
    where start_at < now() - $1::interval
    limit 10000
));

-- name: prune_violations
delete from violations
where ctid = any (array(
    select ctid
    from violations
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_divisions
delete from divisions
where ctid = any (array(
    select ctid
    from divisions
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_trades
delete from trades
where ctid = any (array(
    select ctid
    from trades
    where left_fast_gpus = 0
    and undone_at < now() - $1::interval
    limit 10000
));

-- name: prune_audits
delete from audits
where ctid = any (array(
    select ctid
    from audits
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_nodes
delete from nodes
where gone_at < now() - $1::interval;

-- name: prune_overrides
delete from overrides
where ctid = any (array(
    select ctid
    from overrides
    where least(ended_at, until_at) < now() - $1::interval
    limit 10000
));
