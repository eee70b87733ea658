-- name: round_blobs
select
    b.round,
    b.keyframe,
    b.snapshot,
    b.snapshot_bytes,
    b.plan,
    b.plan_bytes,
    k.snapshot,
    coalesce(k.snapshot_bytes, 0),
    k.plan,
    coalesce(k.plan_bytes, 0)
from fairlease.round_blobs b
left join fairlease.round_blobs k on k.round = b.keyframe and b.keyframe <> b.round
where b.round = $1;

-- name: rounds
select
    number,
    at,
    recorded_at,
    settled_at,
    nodes,
    nodes_bad,
    gpus,
    tenants,
    jobs,
    jobs_running,
    jobs_waiting,
    leases,
    leases_ended,
    claims,
    actions,
    actions_withheld,
    exists (select from fairlease.round_blobs where round = number) as replayable
from fairlease.rounds
order by number desc
limit $1;

-- name: pools
select
    pool,
    gpus,
    bad_gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms,
    as_of
from fairlease.pool_balance;

-- name: tenants
select
    tenant,
    pool,
    weight,
    fairlease.millionths(entitlement_gpus) as entitlement_gpus,
    fairlease.millionths(demand_gpus) as demand_gpus,
    holds_gpus,
    fairlease.millionths(borrowed_gpus) as borrowed_gpus,
    fairlease.millionths(lent_gpus) as lent_gpus,
    waiting_jobs,
    fairlease.millionths(rho) as rho,
    fairlease.millionths(rho_all) as rho_all,
    behind,
    deficit_gpu_ms,
    owed_gpu_ms,
    fairlease.millionths(repays_gpus) as repays_gpus,
    even_in,
    alloc_gpu_ms,
    due_gpu_ms,
    as_of
from fairlease.tenant_fairness;

-- name: debts
select
    pool,
    creditor,
    debtor,
    gpu_ms,
    as_of
from fairlease.debts;

-- name: leases
-- In force, or all of them; of one job, or of all.
select
    job_key,
    slurm_id,
    term,
    tenant,
    user_name,
    class,
    state,
    pool,
    gpus,
    nodes,
    granted_at,
    started_at,
    ends_at,
    noticed_at,
    ended_at,
    why,
    adopted,
    gpu_ms
from fairlease.lease_history
where ($1 or ended_at is null)
and ($2 = 0 or job_key = $2)
order by granted_at desc, job_key desc, term desc
limit $3;

-- name: waiting
select
    job_key,
    slurm_id,
    name,
    tenant,
    user_name,
    gpus,
    model,
    eligible_at,
    terms,
    code,
    reason,
    until_at,
    as_of
from fairlease.waiting_jobs
limit $1;

-- name: jobs_by_id
select
    key,
    slurm_id,
    name,
    user_name,
    account,
    tenant,
    qos,
    partitions,
    state,
    inactive,
    outcome,
    touch,
    touch_why,
    gpus,
    model,
    limit_ms,
    submitted_at,
    eligible_at,
    done_at,
    restarts,
    terms,
    failed,
    avoid_until,
    said,
    alloc_gpu_ms,
    due_gpu_ms,
    lost_gpu_ms
from fairlease.jobs
where ($1 > 0 and slurm_job = $1 and slurm_id = $2)
or ($1 = 0 and key = $3)
order by key desc
limit 1;

-- name: actions
-- Of one job, or of all.
select
    a.round,
    r.at,
    a.verb,
    a.job_key,
    a.slurm_id,
    a.nodes,
    a.until_at,
    a.reservation,
    a.signal,
    a.withheld,
    a.because ->> 'code' as because,
    a.ok,
    a.skipped,
    a.error,
    a.took_ms
from fairlease.actions a
join fairlease.rounds r on r.number = a.round
where $1 = 0
or a.job_key = $1
order by a.round desc, a.ordinal desc
limit $2;

-- name: events
select
    at,
    kind,
    slurm_id,
    node,
    text,
    round
from fairlease.events_recent
limit $1;

-- name: job_overrides
select
    id,
    kind,
    scope,
    name,
    until_at,
    reason,
    by,
    created_at,
    ended_at,
    ended_by
from fairlease.overrides
where ended_at is null
and until_at > now()
and (
    (scope = 'job' and name in ($1, split_part($1, '_', 1)))
    or (scope = 'user' and name = $2)
    or (scope = 'tenant' and name = $3)
)
order by id;
