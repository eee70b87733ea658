-- Bounded lists for web pages. $1 of each list is the tenants that the person who asks may see; null = all.

-- name: members_now
select {columns}
from members
order by user_name, tenant;

-- name: leases_between
-- Held between two moments ($2, $3), of some nodes ($4) or of all, of a job ($5) or of all, older than the lease that $6, $7 and $8 name.
select {columns}
from lease_history
where ($1::text[] is null or tenant = any ($1))
and (ended_at is null or ended_at >= $2)
and granted_at <= $3
and ($4::text[] is null or nodes && $4)
and ($5::bigint = 0 or job_key = $5)
and (granted_at, job_key, term) < ($6::timestamptz, $7::bigint, $8::integer)
order by granted_at desc, job_key desc, term desc
limit $9;

-- name: rounds_before
select
    {columns but replayable},
    exists (select from round_blobs where round = number) as replayable
from rounds
where number < $1
order by number desc
limit $2;

-- name: events_before
-- Those of no tenant are for people who may see all, but for those of nodes. An event of a job that is pruned is of job ''.
select
    e.at,
    e.kind,
    coalesce(j.slurm_id, case when e.job_key is not null then '' end) as slurm_id,
    e.node,
    e.text,
    e.round,
    e.ordinal,
    coalesce(e.job_key, 0) as job_key,
    coalesce(j.tenant, '') as tenant
from events e
left join jobs j on j.key = e.job_key
where (e.round, e.ordinal) < ($2::bigint, $3::integer)
and ($1::text[] is null or j.tenant = any ($1) or (e.job_key is null and e.node <> ''))
order by e.round desc, e.ordinal desc
limit $4;

-- name: shares_between
-- Means of steps of $3 between two moments ($1, $2).
select
    tenant,
    pool,
    date_bin($3::interval, at, $1::timestamptz) as at,
    avg(holds_gpus)::double precision as holds_gpus,
    avg(least(entitlement_gpus, demand_gpus))::double precision as due_gpus,
    avg(entitlement_gpus)::double precision as entitlement_gpus
from tenant_history
where at >= $1
and at < $2
group by 1, 2, 3
order by 1, 2, 3
limit $4;

-- name: gpu_use_of_job
select
    hour,
    model,
    held_ms,
    seen_ms,
    idle_ms,
    case when util_ms > 0 then util_sum / util_ms end as util,
    case when tensor_ms > 0 then tensor_sum / tensor_ms end as tensor,
    case when power_ms > 0 then power_sum / power_ms end as power_w,
    memory_bytes
from gpu_use
where job_key = $1
order by hour desc, model
limit $2;
