-- Rows come as one JSON array of objects with the columns' names. See sql.Query for what stands in braces.

-- name: last_round
select coalesce(max(number), 0)
from rounds;

-- name: put_rounds
insert into rounds {rows};

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
insert into tenants {rows}
on conflict (name) do update set
    {new},
    recorded_at = now();

-- name: put_nodes
insert into nodes as had {rows}
on conflict (name) do update set
    {new},
    recorded_at = now()
where {changed};

-- name: put_jobs
insert into jobs {rows}
on conflict (key) do update set
    {new},
    recorded_at = now();

-- name: put_job_statuses
insert into job_statuses {rows}
on conflict (job_key) do update set {new};

-- name: put_settings
insert into settings {rows}
on conflict (single) do update set
    {new},
    recorded_at = clock_timestamp();

-- name: drop_job_statuses
delete from job_statuses
where job_key in (select job_key from json_populate_recordset(null::job_statuses, $1));

-- name: put_leases
insert into leases {rows}
on conflict (job_key, term) do update set
    {new but slurm_id, tenant, user_name, granted_round, alloc_from_gpu_ms},
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
insert into claims {rows}
on conflict (job_key, made_at) do update set
    {new},
    recorded_at = now();

-- name: put_ledger
insert into ledger {rows}
on conflict (tenant, pool) do update set {new};

-- name: drop_ledger
delete from ledger
where (tenant, pool) in (select tenant, pool from json_populate_recordset(null::ledger, $1));

-- name: put_buckets
insert into window_buckets {rows}
on conflict (tenant, pool, start_at) do update set {new};

-- name: put_pools
insert into pools {rows}
on conflict (pool) do update set {new};

-- name: drop_pools
delete from pools
where pool in (select pool from json_populate_recordset(null::pools, $1));

-- name: put_tenant_history
insert into tenant_history {rows}
on conflict do nothing;

-- name: put_pool_history
insert into pool_history {rows but bad_gpus, stops_gpu_ms}
on conflict do nothing;

-- name: add_charges
insert into charges as charged {rows}
on conflict (day, tenant, user_name, pool) do update set
    gpu_ms = charged.gpu_ms + excluded.gpu_ms;

-- name: put_lending
insert into lending {rows}
on conflict (pool, lender, borrower) do update set {new};

-- name: drop_lending
delete from lending
where (pool, lender, borrower) in (select pool, lender, borrower from json_populate_recordset(null::lending, $1));

-- name: add_lending_days
insert into lending_days as lent {rows}
on conflict (day, pool, lender, borrower) do update set
    gpu_ms = lent.gpu_ms + excluded.gpu_ms;

-- name: put_losses
insert into losses {rows};

-- name: put_actions
insert into actions {rows};

-- name: put_events
insert into events {rows};
