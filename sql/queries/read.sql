-- name: round_link
select
    keyframe,
    link
from round_blobs
where round = $1;

-- name: round_frames
-- The frames after link $2 of a keyframe, up to link $3.
select
    link,
    snapshot,
    snapshot_bytes,
    plan,
    plan_bytes
from round_blobs
where keyframe = $1
and link > $2
and link <= $3
order by link;

-- name: round_texts
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
from round_blobs b
left join round_blobs k on k.round = b.keyframe and b.keyframe <> b.round
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
    jobs_aside,
    leases,
    leases_ended,
    claims,
    actions,
    actions_withheld,
    exists (select from round_blobs where round = number) as replayable
from rounds
order by number desc
limit $1;

-- name: newest_round
select
    number,
    at
from rounds
order by number desc
limit 1;

-- name: may_read_rounds
-- Whether this user may read what rounds knew and decided; tenants may not, for that is of all tenants.
select has_table_privilege('round_blobs', 'select');

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
from pool_balance;

-- name: tenants
select
    tenant,
    pool,
    weight,
    millionths(entitlement_gpus) as entitlement_gpus,
    millionths(demand_gpus) as demand_gpus,
    holds_gpus,
    millionths(borrowed_gpus) as borrowed_gpus,
    millionths(lent_gpus) as lent_gpus,
    waiting_jobs,
    millionths(rho) as rho,
    millionths(rho_all) as rho_all,
    behind,
    deficit_gpu_ms,
    owed_gpu_ms,
    millionths(repays_gpus) as repays_gpus,
    even_in,
    alloc_gpu_ms,
    due_gpu_ms,
    as_of
from tenant_fairness;

-- name: debts
select
    pool,
    creditor,
    debtor,
    gpu_ms,
    as_of
from debts;

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
from lease_history
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
from waiting_jobs
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
from jobs
where ($1 > 0 and slurm_job = $1 and slurm_id = $2)
or ($1 = 0 and key = $3)
order by key desc
limit 1;

-- name: settings_now
-- With the newest round; null where none was written down since there are settings.
select
    r.number,
    r.at,
    s.settings
from rounds r
left join settings s on true
order by r.number desc
limit 1;

-- name: verdict_of
select
    round,
    at,
    code,
    pool,
    need_gpus,
    free_gpus,
    behind_ms,
    other,
    other_behind_ms,
    rank,
    until_at,
    for_job,
    note,
    millionths(rho) as rho,
    alloc_gpu_ms,
    due_gpu_ms,
    gate_until,
    cell,
    chain,
    for_right,
    queue,
    other_job,
    slurm_says,
    details
from verdicts
where job_key = $1;

-- name: standings_of
select
    pool,
    weight,
    millionths(base_gpus) as base_gpus,
    millionths(entitlement_gpus) as entitlement_gpus,
    millionths(demand_gpus) as demand_gpus,
    holds_gpus,
    millionths(lent_gpus) as lent_gpus,
    millionths(borrowed_gpus) as borrowed_gpus,
    waiting_jobs,
    deficit_gpu_ms,
    behind_ms,
    owed_gpu_ms,
    millionths(repays_gpus) as repays_gpus,
    millionths(rho) as rho,
    millionths(rho_all) as rho_all
from ledger
where tenant = $1
order by pool;

-- name: job_names
select
    key,
    slurm_id
from jobs
where key = any($1);

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
from actions a
join rounds r on r.number = a.round
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
from events_recent
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
from overrides
where ended_at is null
and until_at > now()
and (
    (scope = 'job' and name in ($1, split_part($1, '_', 1)))
    or (scope = 'user' and name = $2)
    or (scope = 'tenant' and name = $3)
)
order by id;

-- name: own_actions
-- Of one job, from the view that tenants may read.
select
    round,
    at,
    verb,
    null::bigint as job_key,
    slurm_id,
    nodes,
    until_at,
    '' as reservation,
    '' as signal,
    status = 'withheld' as withheld,
    because,
    case status
        when 'done' then true
        when 'failed' then false
        when 'skipped' then false
    end as ok,
    status = 'skipped' as skipped,
    error,
    round(1000 * extract(epoch from took))::bigint as took_ms
from actions_recent
where slurm_id = $1
order by round desc, ordinal desc
limit $2;

-- name: own_jobs
-- How many live jobs there are by state, and of those that wait by reason.
select
    state,
    '' as code,
    count(*) as jobs
from jobs
where state <> 'done'
group by state
union all
select
    'waiting',
    code,
    count(*)
from waiting_jobs
group by code;

-- name: own_waiting
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
from waiting_jobs
where job_key = $1;
