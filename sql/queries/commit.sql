-- Each query takes its rows as one JSON array of objects with the columns' names.

-- name: last_round
select coalesce(max(number), 0)
from rounds;

-- name: put_rounds
insert into rounds (
    number,
    at,
    seat_term,
    preset,
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
    gates,
    actions_withheld,
    events
)
select
    number,
    at,
    seat_term,
    preset,
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
    gates,
    actions_withheld,
    events
from json_populate_recordset(null::rounds, $1);

-- name: put_blobs
insert into round_blobs (
    round,
    keyframe,
    link,
    at,
    snapshot,
    plan,
    snapshot_bytes,
    plan_bytes
)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: put_tenants
insert into tenants (
    name,
    weight,
    gone_at
)
select
    name,
    weight,
    gone_at
from json_populate_recordset(null::tenants, $1)
on conflict (name) do update set
    weight = excluded.weight,
    gone_at = excluded.gone_at,
    recorded_at = now();

-- name: put_nodes
insert into nodes (
    name,
    gpus,
    cpus,
    memory_mb,
    partitions,
    features,
    bad,
    busy,
    gone_at
)
select
    name,
    gpus,
    cpus,
    memory_mb,
    partitions,
    features,
    bad,
    busy,
    gone_at
from json_populate_recordset(null::nodes, $1)
on conflict (name) do update set
    gpus = excluded.gpus,
    cpus = excluded.cpus,
    memory_mb = excluded.memory_mb,
    partitions = excluded.partitions,
    features = excluded.features,
    bad = excluded.bad,
    busy = excluded.busy,
    gone_at = excluded.gone_at,
    recorded_at = now()
where (nodes.gpus, nodes.cpus, nodes.memory_mb, nodes.partitions, nodes.features, nodes.bad, nodes.busy, nodes.gone_at)
    is distinct from (excluded.gpus, excluded.cpus, excluded.memory_mb, excluded.partitions, excluded.features, excluded.bad, excluded.busy, excluded.gone_at);

-- name: put_jobs
insert into jobs (
    key,
    slurm_id,
    slurm_job,
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
    nodes,
    cpus,
    memory_mb,
    limit_ms,
    submitted_at,
    eligible_at,
    done_at,
    user_begin_at,
    restarts,
    terms,
    failed,
    avoid_until,
    said,
    alloc_gpu_ms,
    due_gpu_ms,
    lost_gpu_ms
)
select
    key,
    slurm_id,
    slurm_job,
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
    nodes,
    cpus,
    memory_mb,
    limit_ms,
    submitted_at,
    eligible_at,
    done_at,
    user_begin_at,
    restarts,
    terms,
    failed,
    avoid_until,
    said,
    alloc_gpu_ms,
    due_gpu_ms,
    lost_gpu_ms
from json_populate_recordset(null::jobs, $1)
on conflict (key) do update set
    slurm_id = excluded.slurm_id,
    slurm_job = excluded.slurm_job,
    name = excluded.name,
    user_name = excluded.user_name,
    account = excluded.account,
    tenant = excluded.tenant,
    qos = excluded.qos,
    partitions = excluded.partitions,
    state = excluded.state,
    inactive = excluded.inactive,
    outcome = excluded.outcome,
    touch = excluded.touch,
    touch_why = excluded.touch_why,
    gpus = excluded.gpus,
    model = excluded.model,
    nodes = excluded.nodes,
    cpus = excluded.cpus,
    memory_mb = excluded.memory_mb,
    limit_ms = excluded.limit_ms,
    submitted_at = excluded.submitted_at,
    eligible_at = excluded.eligible_at,
    done_at = excluded.done_at,
    user_begin_at = excluded.user_begin_at,
    restarts = excluded.restarts,
    terms = excluded.terms,
    failed = excluded.failed,
    avoid_until = excluded.avoid_until,
    said = excluded.said,
    alloc_gpu_ms = excluded.alloc_gpu_ms,
    due_gpu_ms = excluded.due_gpu_ms,
    lost_gpu_ms = excluded.lost_gpu_ms,
    recorded_at = now();

-- name: put_verdicts
insert into verdicts (
    job_key,
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
    rho,
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
)
select
    job_key,
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
    rho,
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
from json_populate_recordset(null::verdicts, $1)
on conflict (job_key) do update set
    round = excluded.round,
    at = excluded.at,
    code = excluded.code,
    pool = excluded.pool,
    need_gpus = excluded.need_gpus,
    free_gpus = excluded.free_gpus,
    behind_ms = excluded.behind_ms,
    other = excluded.other,
    other_behind_ms = excluded.other_behind_ms,
    rank = excluded.rank,
    until_at = excluded.until_at,
    for_job = excluded.for_job,
    note = excluded.note,
    rho = excluded.rho,
    alloc_gpu_ms = excluded.alloc_gpu_ms,
    due_gpu_ms = excluded.due_gpu_ms,
    gate_until = excluded.gate_until,
    cell = excluded.cell,
    chain = excluded.chain,
    for_right = excluded.for_right,
    queue = excluded.queue,
    other_job = excluded.other_job,
    slurm_says = excluded.slurm_says,
    details = excluded.details;

-- name: put_settings
insert into settings (settings)
select settings
from json_populate_recordset(null::settings, $1)
on conflict (single) do update set
    settings = excluded.settings,
    recorded_at = clock_timestamp();

-- name: drop_verdicts
delete from verdicts
where job_key in (select job_key from json_populate_recordset(null::verdicts, $1));

-- name: put_leases
insert into leases (
    job_key,
    term,
    slurm_id,
    tenant,
    user_name,
    state,
    class,
    pool,
    gpus,
    nodes,
    holdings,
    granted_at,
    started_at,
    ends_at,
    noticed_at,
    ended_at,
    adopted,
    why,
    granted_round,
    ended_round,
    alloc_from_gpu_ms
)
select
    job_key,
    term,
    slurm_id,
    tenant,
    user_name,
    state,
    class,
    pool,
    gpus,
    nodes,
    holdings,
    granted_at,
    started_at,
    ends_at,
    noticed_at,
    ended_at,
    adopted,
    why,
    granted_round,
    ended_round,
    alloc_from_gpu_ms
from json_populate_recordset(null::leases, $1)
on conflict (job_key, term) do update set
    state = excluded.state,
    class = excluded.class,
    pool = excluded.pool,
    gpus = excluded.gpus,
    nodes = excluded.nodes,
    holdings = excluded.holdings,
    granted_at = excluded.granted_at,
    started_at = excluded.started_at,
    ends_at = excluded.ends_at,
    noticed_at = excluded.noticed_at,
    ended_at = excluded.ended_at,
    adopted = excluded.adopted,
    why = excluded.why,
    ended_round = excluded.ended_round,
    alloc_to_gpu_ms = null,
    recorded_at = now();

-- name: mark_ends
-- What a job had received when a lease ended, known when the boundary has passed.
update leases l set
    ended_at = m.ended_at,
    alloc_to_gpu_ms = m.alloc_gpu_ms
from json_to_recordset($1) as m (job_key bigint, term bigint, ended_at timestamptz, alloc_gpu_ms bigint)
where l.job_key = m.job_key
and l.term = m.term;

-- name: mark_begins
-- The same for the lease that follows at once.
update leases l set
    alloc_from_gpu_ms = m.alloc_gpu_ms
from json_to_recordset($1) as m (job_key bigint, next_term bigint, alloc_gpu_ms bigint)
where l.job_key = m.job_key
and l.term = m.next_term;

-- name: boundaries
-- Leases that are renewed, but whose boundary had not passed when it was written.
select
    l.job_key,
    l.term,
    coalesce(min(n.term), 0),
    l.ended_at
from leases l
left join leases n on n.job_key = l.job_key and n.term > l.term
where l.alloc_to_gpu_ms is null
and l.ended_at is not null
group by l.job_key, l.term;

-- name: put_claims
insert into claims (
    job_key,
    made_at,
    pool,
    gpus,
    nodes,
    at,
    ended_at
)
select
    job_key,
    made_at,
    pool,
    gpus,
    nodes,
    at,
    ended_at
from json_populate_recordset(null::claims, $1)
on conflict (job_key, made_at) do update set
    pool = excluded.pool,
    gpus = excluded.gpus,
    nodes = excluded.nodes,
    at = excluded.at,
    ended_at = excluded.ended_at,
    recorded_at = now();

-- name: put_ledger
insert into ledger (
    tenant,
    pool,
    at,
    weight,
    base_gpus,
    entitlement_gpus,
    demand_gpus,
    holds_gpus,
    lent_gpus,
    borrowed_gpus,
    waiting_jobs,
    deficit_gpu_ms,
    behind_ms,
    window_alloc_gpu_ms,
    window_due_gpu_ms,
    alloc_gpu_ms,
    due_gpu_ms,
    rho,
    rho_all,
    owed_gpu_ms,
    repays_gpus
)
select
    tenant,
    pool,
    at,
    weight,
    base_gpus,
    entitlement_gpus,
    demand_gpus,
    holds_gpus,
    lent_gpus,
    borrowed_gpus,
    waiting_jobs,
    deficit_gpu_ms,
    behind_ms,
    window_alloc_gpu_ms,
    window_due_gpu_ms,
    alloc_gpu_ms,
    due_gpu_ms,
    rho,
    rho_all,
    owed_gpu_ms,
    repays_gpus
from json_populate_recordset(null::ledger, $1)
on conflict (tenant, pool) do update set
    at = excluded.at,
    weight = excluded.weight,
    base_gpus = excluded.base_gpus,
    entitlement_gpus = excluded.entitlement_gpus,
    demand_gpus = excluded.demand_gpus,
    holds_gpus = excluded.holds_gpus,
    lent_gpus = excluded.lent_gpus,
    borrowed_gpus = excluded.borrowed_gpus,
    waiting_jobs = excluded.waiting_jobs,
    deficit_gpu_ms = excluded.deficit_gpu_ms,
    behind_ms = excluded.behind_ms,
    window_alloc_gpu_ms = excluded.window_alloc_gpu_ms,
    window_due_gpu_ms = excluded.window_due_gpu_ms,
    alloc_gpu_ms = excluded.alloc_gpu_ms,
    due_gpu_ms = excluded.due_gpu_ms,
    rho = excluded.rho,
    rho_all = excluded.rho_all,
    owed_gpu_ms = excluded.owed_gpu_ms,
    repays_gpus = excluded.repays_gpus;

-- name: drop_ledger
delete from ledger
where (tenant, pool) in (select tenant, pool from json_populate_recordset(null::ledger, $1));

-- name: put_buckets
insert into window_buckets (
    tenant,
    pool,
    start_at,
    alloc_gpu_ms,
    due_gpu_ms
)
select
    tenant,
    pool,
    start_at,
    alloc_gpu_ms,
    due_gpu_ms
from json_populate_recordset(null::window_buckets, $1)
on conflict (tenant, pool, start_at) do update set
    alloc_gpu_ms = excluded.alloc_gpu_ms,
    due_gpu_ms = excluded.due_gpu_ms;

-- name: put_pools
insert into pools (
    pool,
    at,
    gpus,
    bad_gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms,
    stops_gpu_ms
)
select
    pool,
    at,
    gpus,
    bad_gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms,
    stops_gpu_ms
from json_populate_recordset(null::pools, $1)
on conflict (pool) do update set
    at = excluded.at,
    gpus = excluded.gpus,
    bad_gpus = excluded.bad_gpus,
    capacity_gpu_ms = excluded.capacity_gpu_ms,
    tenants_gpu_ms = excluded.tenants_gpu_ms,
    untouchable_gpu_ms = excluded.untouchable_gpu_ms,
    overhead_gpu_ms = excluded.overhead_gpu_ms,
    idle_gpu_ms = excluded.idle_gpu_ms,
    bad_gpu_ms = excluded.bad_gpu_ms,
    stops_gpu_ms = excluded.stops_gpu_ms;

-- name: drop_pools
delete from pools
where pool in (select pool from json_populate_recordset(null::pools, $1));

-- name: put_tenant_history
insert into tenant_history (
    tenant,
    pool,
    at,
    entitlement_gpus,
    demand_gpus,
    holds_gpus,
    waiting_jobs,
    deficit_gpu_ms,
    alloc_gpu_ms,
    due_gpu_ms,
    rho
)
select
    tenant,
    pool,
    at,
    entitlement_gpus,
    demand_gpus,
    holds_gpus,
    waiting_jobs,
    deficit_gpu_ms,
    alloc_gpu_ms,
    due_gpu_ms,
    rho
from json_populate_recordset(null::tenant_history, $1)
on conflict do nothing;

-- name: put_pool_history
insert into pool_history (
    pool,
    at,
    gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms
)
select
    pool,
    at,
    gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms
from json_populate_recordset(null::pool_history, $1)
on conflict do nothing;

-- name: add_charges
insert into charges as charged (
    day,
    tenant,
    user_name,
    pool,
    gpu_ms
)
select
    day,
    tenant,
    user_name,
    pool,
    gpu_ms
from json_populate_recordset(null::charges, $1)
on conflict (day, tenant, user_name, pool) do update set
    gpu_ms = charged.gpu_ms + excluded.gpu_ms;

-- name: put_lending
insert into lending (
    pool,
    lender,
    borrower,
    gpus,
    at
)
select
    pool,
    lender,
    borrower,
    gpus,
    at
from json_populate_recordset(null::lending, $1)
on conflict (pool, lender, borrower) do update set
    gpus = excluded.gpus,
    at = excluded.at;

-- name: drop_lending
delete from lending
where (pool, lender, borrower) in (select pool, lender, borrower from json_populate_recordset(null::lending, $1));

-- name: add_lending_days
insert into lending_days as lent (
    day,
    pool,
    lender,
    borrower,
    gpu_ms
)
select
    day,
    pool,
    lender,
    borrower,
    gpu_ms
from json_populate_recordset(null::lending_days, $1)
on conflict (day, pool, lender, borrower) do update set
    gpu_ms = lent.gpu_ms + excluded.gpu_ms;

-- name: put_losses
insert into losses (
    round,
    job_key,
    at,
    slurm_id,
    tenant,
    user_name,
    pool,
    lease_term,
    gpu_ms,
    certainty,
    command,
    type_gpus
)
select
    round,
    job_key,
    at,
    slurm_id,
    tenant,
    user_name,
    pool,
    lease_term,
    gpu_ms,
    certainty,
    command,
    type_gpus
from json_populate_recordset(null::losses, $1);

-- name: put_actions
insert into actions (
    round,
    ordinal,
    at,
    verb,
    job_key,
    slurm_id,
    until_at,
    nodes,
    reservation,
    limit_ms,
    signal,
    withheld,
    because
)
select
    round,
    ordinal,
    at,
    verb,
    job_key,
    slurm_id,
    until_at,
    nodes,
    reservation,
    limit_ms,
    signal,
    withheld,
    because
from json_populate_recordset(null::actions, $1);

-- name: put_events
insert into events (
    round,
    ordinal,
    at,
    kind,
    job_key,
    node,
    text
)
select
    round,
    ordinal,
    at,
    kind,
    job_key,
    node,
    text
from json_populate_recordset(null::events, $1);
