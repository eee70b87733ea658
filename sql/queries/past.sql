-- The outcome of the jobs of a window of time, for `fairlease shadow`.

-- name: past_edges
-- The rounds that a window begins and ends with, of those whose snapshots are kept: the
-- first at $1 or later, the last at $2 or before (0 = none); and the bounds of all such.
select
    coalesce((
        select r.number
        from rounds r
        join round_blobs b on b.round = r.number
        where r.number >= kept.first
        and r.at >= $1
        order by r.number
        limit 1
    ), 0) as first_round,
    coalesce((
        select r.number
        from rounds r
        join round_blobs b on b.round = r.number
        where r.number >= kept.first
        and r.at <= $2
        order by r.number desc
        limit 1
    ), 0) as last_round,
    oldest.number as oldest_round,
    oldest.at as oldest_at,
    newest.at as newest_at
from (select min(round) as first, max(round) as last from round_blobs) kept
left join rounds oldest on oldest.number = kept.first
left join rounds newest on newest.number = kept.last;

-- name: past_jobs
-- The jobs that were there between two moments. Their leases tell what they held, when they
-- started first, and when exactly they finished: a job has many, so only the first and the last are looked up.
select
    {columns but gpus, started_at, done_at},
    coalesce(greatest(f.gpus, l.gpus), j.gpus) as gpus,
    f.started_at,
    coalesce(case when l.why = 'finished' then l.ended_at end, j.done_at) as done_at
from jobs j
left join lateral (
    select
        gpus,
        started_at
    from leases
    where job_key = j.key
    and started_at is not null
    order by term
    limit 1
) f on true
left join lateral (
    select
        gpus,
        why,
        ended_at
    from leases
    where job_key = j.key
    order by term desc
    limit 1
) l on true
where (j.done_at is null or j.done_at > $1)
and coalesce(j.eligible_at, f.started_at, j.submitted_at) < $2
order by j.key;

-- name: past_tenants
-- How tenants stood between two moments: millions of rows, so no more than is needed.
select
    tenant,
    pool,
    at,
    millionths(least(entitlement_gpus, demand_gpus)) as rate_gpus,
    millionths(holds_gpus) as holds_gpus,
    alloc_gpu_ms + extra_gpu_ms as work_gpu_ms,
    due_gpu_ms + extra_due_gpu_ms as work_due_gpu_ms
from tenant_history
where at > $1
and at < $2
order by at;

-- name: past_gpus
-- From when on there were how many healthy GPUs, from one round to another.
select
    at,
    gpus
from (
    select
        number,
        at,
        gpus,
        lag(gpus) over (order by number) as before
    from rounds
    where number between $1 and $2
) r
where before is distinct from gpus
order by number;

-- name: past_acted
-- The rounds, from one to another, in which fairlease did more than to watch.
select
    count(*) as rounds,
    min(at) as first_at,
    max(at) as last_at
from rounds
where number between $1 and $2
and actions > actions_suppressed;

-- name: past_span
-- The rounds between two moments, whether or not their snapshots are kept (0 = none), and the newest of those kept by then, or else
-- the oldest kept.
select
    coalesce(min(number), 0) as first_round,
    coalesce(max(number), 0) as last_round,
    min(at) as first_at,
    max(at) as last_at,
    coalesce(
        (select max(round) from round_blobs where at <= $2),
        (select min(round) from round_blobs),
        0
    ) as seen_round,
    (select min(at) from rounds) as oldest_at,
    (select max(at) from rounds) as newest_at
from rounds
where at between $1 and $2;

-- name: past_records
-- The jobs that were there at a moment ($1), as their leases and losses tell: what they had received, and lost, by then, and whether they
-- held GPUs.
select
    j.key,
    coalesce(l.from_gpu_ms + l.gpu_ms, 0)::bigint as alloc_gpu_ms,
    coalesce(s.gpu_ms, 0)::bigint as lost_gpu_ms,
    coalesce(s.stops, 0) as stops,
    coalesce(l.holds, false) as holds
from jobs j
left join lateral (
    select
        alloc_from_gpu_ms as from_gpu_ms,
        case
            when ended_at <= $1 and gpu_ms is not null then gpu_ms
            else gpus * extract(epoch from least(ended_at, $1) - started_at) * 1000
        end as gpu_ms,
        ended_at is null or ended_at > $1 as holds
    from leases
    where job_key = j.key
    and started_at <= $1
    and alloc_from_gpu_ms is not null
    order by term desc
    limit 1
) l on true
left join (
    select
        job_key,
        sum(gpu_ms) as gpu_ms,
        count(*) as stops
    from losses
    where at <= $1
    group by job_key
) s on s.job_key = j.key
where (j.done_at is null or j.done_at > $1)
and coalesce(j.eligible_at, j.submitted_at) <= $1
order by j.key;

-- name: past_accounts
-- How tenants stood at a moment ($1), by the last sample until then.
select
    h.tenant,
    h.pool,
    h.at,
    millionths(least(h.entitlement_gpus, h.demand_gpus)) as rate_gpus,
    millionths(h.holds_gpus) as holds_gpus,
    h.alloc_gpu_ms + h.extra_gpu_ms as work_gpu_ms,
    h.due_gpu_ms + h.extra_due_gpu_ms as work_due_gpu_ms
from ledger g
cross join lateral (
    select *
    from tenant_history
    where tenant = g.tenant
    and pool = g.pool
    and at <= $1
    order by at desc
    limit 1
) h
order by h.tenant, h.pool;

-- name: past_ends
-- How leases that ran ended between two moments, and how many of them were not renewed since their GPUs idled.
select
    count(*) filter (where why = 'renewed') as renewed,
    count(*) filter (where why = 'reclaimed') as reclaimed,
    count(*) filter (where why = 'recalled') as recalled,
    (select count(*) from events where kind = 'idle_reclaim' and at > $1 and at <= $2) as idle
from leases
where ended_at > $1
and ended_at <= $2
and started_at is not null;
