-- Each takes an age (interval) and deletes a bounded number of what is older, so
-- that no lock is held long; run until nothing is left to delete.

-- name: prune_blobs
delete from fairlease.round_blobs
where round in (
    select b.round
    from fairlease.round_blobs b
    join fairlease.rounds r on r.number = b.round
    where r.recorded_at < now() - $1::interval
    and b.round < (select max(number) from fairlease.rounds)
    and not exists (
        select
        from fairlease.round_blobs d
        join fairlease.rounds s on s.number = d.round
        where d.keyframe = b.round
        and d.round <> b.round
        and (s.recorded_at >= now() - $1::interval or d.round = (select max(number) from fairlease.rounds))
    )
    order by b.round
    limit 1000
);

-- name: prune_rounds
-- Actions and events go with their round.
delete from fairlease.rounds
where number in (
    select r.number
    from fairlease.rounds r
    where r.recorded_at < now() - $1::interval
    and not exists (select from fairlease.round_blobs b where b.round = r.number)
    order by r.number
    limit 1000
);

-- name: prune_leases
delete from fairlease.leases
where ctid = any (array(
    select ctid
    from fairlease.leases
    where ended_at < now() - $1::interval
    and alloc_to_gpu_ms is not null
    limit 10000
));

-- name: prune_jobs
delete from fairlease.jobs
where ctid = any (array(
    select ctid
    from fairlease.jobs
    where done_at < now() - $1::interval
    limit 10000
));

-- name: prune_claims
delete from fairlease.claims
where ctid = any (array(
    select ctid
    from fairlease.claims
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_losses
delete from fairlease.losses
where ctid = any (array(
    select ctid
    from fairlease.losses
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_buckets
delete from fairlease.window_buckets
where ctid = any (array(
    select ctid
    from fairlease.window_buckets
    where start_at < now() - $1::interval
    limit 10000
));

-- name: prune_tenant_history
delete from fairlease.tenant_history
where ctid = any (array(
    select ctid
    from fairlease.tenant_history
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_pool_history
delete from fairlease.pool_history
where ctid = any (array(
    select ctid
    from fairlease.pool_history
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_vc_cell_history
delete from fairlease.vc_cell_history
where ctid = any (array(
    select ctid
    from fairlease.vc_cell_history
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_fragmentation_history
delete from fairlease.fragmentation_history
where ctid = any (array(
    select ctid
    from fairlease.fragmentation_history
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_violations
delete from fairlease.violations
where ctid = any (array(
    select ctid
    from fairlease.violations
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_divisions
delete from fairlease.divisions
where ctid = any (array(
    select ctid
    from fairlease.divisions
    where ended_at < now() - $1::interval
    limit 10000
));

-- name: prune_trades
delete from fairlease.trades
where ctid = any (array(
    select ctid
    from fairlease.trades
    where left_fast_gpus = 0
    and undone_at < now() - $1::interval
    limit 10000
));

-- name: prune_entitlement_history
delete from fairlease.entitlement_history
where ctid = any (array(
    select ctid
    from fairlease.entitlement_history
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_audits
delete from fairlease.audits
where ctid = any (array(
    select ctid
    from fairlease.audits
    where at < now() - $1::interval
    limit 10000
));

-- name: prune_nodes
delete from fairlease.nodes
where gone_at < now() - $1::interval;

-- name: prune_overrides
delete from fairlease.overrides
where ctid = any (array(
    select ctid
    from fairlease.overrides
    where least(ended_at, until_at) < now() - $1::interval
    limit 10000
));
