-- Tables that are not partitioned by day. Each takes an age (interval) and deletes a bounded number of older rows ("few"), so that
-- no lock is held long; run until nothing is left to delete.

-- name: prune_leases
delete from leases
where {few where ended_at < now() - $1::interval
and alloc_to_gpu_ms is not null};

-- name: prune_jobs
delete from jobs
where {few where done_at < now() - $1::interval};

-- name: prune_claims
delete from claims
where {few where ended_at < now() - $1::interval};

-- name: prune_buckets
delete from window_buckets
where {few where start_at < now() - $1::interval};

-- name: prune_violations
delete from violations
where {few where ended_at < now() - $1::interval};

-- name: prune_allocations
delete from allocations
where {few where ended_at < now() - $1::interval};

-- name: prune_trades
delete from trades
where {few where left_fast_gpus = 0
and undone_at < now() - $1::interval};

-- name: prune_audits
delete from audits
where {few where at < now() - $1::interval};

-- name: prune_nodes
delete from nodes
where gone_at < now() - $1::interval;

-- name: prune_overrides
delete from overrides
where {few where least(ended_at, until_at) < now() - $1::interval};

-- name: prune_tunings
-- The change that determines the term in force stays.
delete from tunings
where {few where at < now() - $1::interval
and id < (select coalesce(max(id), 0) from tunings where kind in ('taken', 'undone', 'ended'))};

-- name: prune_gpu_use
delete from gpu_use
where {few where hour < now() - $1::interval};

-- name: prune_gpu_memory
delete from gpu_memory
where {few where at < now() - $1::interval};

-- name: prune_gpu_baselines
delete from gpu_baselines
where {few where at < now() - $1::interval};

-- name: prune_forecasts
delete from forecasts
where {few where at < now() - $1::interval};

-- name: prune_notices
delete from notices
where {few where created_at < now() - least($1::interval, interval '30 days')};
