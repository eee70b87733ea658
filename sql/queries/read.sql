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

-- name: rounds
select
    {columns but replayable},
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
select {columns}
from pool_balance;

-- name: tenants
select {columns}
from tenant_fairness;

-- name: debts
select {columns}
from debts;

-- name: leases
-- In force, or all of them; of one job, or of all.
select {columns}
from lease_history
where ($1 or ended_at is null)
and ($2 = 0 or job_key = $2)
order by granted_at desc, job_key desc, term desc
limit $3;

-- name: waiting
select {columns}
from waiting_jobs
limit $1;

-- name: jobs_by_id
select
    {columns but work_gpu_ms, work_due_gpu_ms},
    alloc_gpu_ms + extra_gpu_ms as work_gpu_ms,
    due_gpu_ms + extra_due_gpu_ms as work_due_gpu_ms
from jobs
where ($1 > 0 and slurm_job = $1 and slurm_id = $2)
or ($1 = 0 and key = $3)
order by key desc
limit $4;

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

-- name: status_of
select {columns}
from job_statuses
where job_key = $1;

-- name: standings_of
select {columns}
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
    {columns but at, reason},
    seen_at as at,
    reason ->> 'code' as reason
from actions
join (select number, at as seen_at from rounds) r on number = round
where $1 = 0
or job_key = $1
order by round desc, ordinal desc
limit $2;

-- name: events
select {columns}
from events_recent
limit $1;

-- name: job_overrides
select {columns}
from overrides
where ended_at is null
and until_at > now()
and (
    (scope = 'job' and name in ($1, split_part($1, '_', 1)) and (job_key >= $4 or (job_user = $2 and job_submitted_at >= $5)))
    or (scope = 'user' and name = $2)
    or (scope = 'tenant' and name = $3)
)
order by id;

-- name: own_actions
-- Of one job, from the view that tenants may read.
select
    {columns but reservation, signal, suppressed, ok, skipped, took_ms},
    '' as reservation,
    '' as signal,
    status = 'suppressed' as suppressed,
    case status
        when 'done' then true
        when 'failed' then false
        when 'skipped' then false
    end as ok,
    status = 'skipped' as skipped,
    round(1000 * extract(epoch from took))::bigint as took_ms
from actions_recent
where job_key = $1
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
select {columns}
from waiting_jobs
where job_key = $1;
