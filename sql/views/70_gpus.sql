create or replace view gpus_now as
select
    g.node,
    g.gpu_index,
    g.instance,
    g.model,
    g.state,
    g.why,
    j.slurm_id,
    j.name as job_name,
    j.user_name,
    j.tenant,
    g.util,
    g.tensor,
    g.power_w,
    g.memory_bytes,
    g.memory_size_bytes,
    g.idle,
    g.idle_since,
    n.read_at,
    (
        select string_agg(distinct r.kind, ',' order by r.kind)
        from gpu_remarks r
        where r.job_key = g.job_key and (r.node = '' or r.node = g.node and r.gpu_index in (-1, g.gpu_index))
    ) as remarks,
    j.key as job_key
from gpus g
left join gpu_nodes n on n.node = g.node
left join jobs j on j.key = g.job_key
order by g.node, g.gpu_index, g.instance;

comment on view gpus_now is 'Every GPU and MIG instance as it was seen last, and the job that holds it.';
comment on column gpus_now.node is 'Node.';
comment on column gpus_now.gpu_index is 'Index of the GPU on the node.';
comment on column gpus_now.instance is 'MIG GPU instance; empty = the whole GPU.';
comment on column gpus_now.model is 'Model, as the driver calls it.';
comment on column gpus_now.state is 'fresh, stale, broken or unknown: only fresh ones count.';
comment on column gpus_now.why is 'Why it is not fresh; empty = it is.';
comment on column gpus_now.slurm_id is 'The job that holds it; null = none, or several.';
comment on column gpus_now.job_name is 'Name of that job.';
comment on column gpus_now.user_name is 'Its user.';
comment on column gpus_now.tenant is 'Its tenant.';
comment on column gpus_now.util is 'Part of the time in which a kernel ran, 0 to 1, rounded; null = unknown.';
comment on column gpus_now.tensor is 'Activity of the tensor pipes, 0 to 1, rounded; null = unknown.';
comment on column gpus_now.power_w is 'Power, watts, rounded; null = unknown.';
comment on column gpus_now.memory_bytes is 'Memory in use, rounded; null = unknown.';
comment on column gpus_now.memory_size_bytes is 'All its memory; null = unknown.';
comment on column gpus_now.idle is 'True if it is fresh and idle.';
comment on column gpus_now.idle_since is 'Since when it is idle; null = it is not known to be.';
comment on column gpus_now.read_at is 'When its node was read last, to the minute.';
comment on column gpus_now.job_key is 'Our own number of that job: Slurm reuses its ids.';
comment on column gpus_now.remarks is 'Kinds of the remarks on it, or on its job as a whole (see gpu_remarks_now); null = none.';

create or replace view gpu_remarks_now as
select
    j.slurm_id,
    r.job_key,
    j.tenant,
    j.user_name,
    j.name as job_name,
    r.kind,
    r.node,
    nullif(r.gpu_index, -1) as gpu_index,
    r.since,
    r.text
from gpu_remarks r
join jobs j on j.key = r.job_key
order by r.since, r.job_key, r.kind, r.node, r.gpu_index;

comment on view gpu_remarks_now is 'Running jobs that do not do what is usual for them, the oldest remark first. Nothing follows from it for their leases.';
comment on column gpu_remarks_now.slurm_id is 'Slurm''s id.';
comment on column gpu_remarks_now.job_key is 'Our own number of the job.';
comment on column gpu_remarks_now.tenant is 'The tenant.';
comment on column gpu_remarks_now.user_name is 'The user.';
comment on column gpu_remarks_now.job_name is 'Name of the job.';
comment on column gpu_remarks_now.kind is 'drift = its activity or speed is far from the baseline of its type; stall = it does nearly nothing now; straggler = one GPU or node is far from its others; misreport = its counters contradict a speedup that its type claims.';
comment on column gpu_remarks_now.node is 'Node that it is about; empty = the whole job.';
comment on column gpu_remarks_now.gpu_index is 'GPU that it is about, by index on the node; null = all of the job''s there.';
comment on column gpu_remarks_now.since is 'Since when.';
comment on column gpu_remarks_now.text is 'In words.';

create or replace view gpu_nodes_now as
select
    node,
    state,
    why,
    since,
    read_at
from gpu_nodes
order by node;

comment on view gpu_nodes_now is 'How well the GPUs of each node are seen.';
comment on column gpu_nodes_now.node is 'Node.';
comment on column gpu_nodes_now.state is 'fresh, stale, broken, unknown, or silent = not read at the last look.';
comment on column gpu_nodes_now.why is 'Why it is not fresh; empty = it is.';
comment on column gpu_nodes_now.since is 'When the state began.';
comment on column gpu_nodes_now.read_at is 'When it was read last, to the minute; null = never.';

create or replace view gpu_use_hourly as
select
    u.hour,
    j.slurm_id,
    u.job_key,
    j.tenant,
    j.user_name,
    j.name as job_name,
    u.model,
    gpu_hours(u.held_ms) as held_gpu_hours,
    gpu_hours(u.seen_ms) as seen_gpu_hours,
    gpu_hours(u.idle_ms) as idle_gpu_hours,
    u.util_sum / nullif(u.util_ms, 0) as util,
    u.sm_sum / nullif(u.sm_ms, 0) as sm,
    u.tensor_sum / nullif(u.tensor_ms, 0) as tensor,
    u.dram_sum / nullif(u.dram_ms, 0) as dram,
    u.power_sum / nullif(u.power_ms, 0) as power_w,
    nullif(u.memory_bytes, 0) as memory_bytes
from gpu_use u
join jobs j on j.key = u.job_key
order by u.hour desc, u.job_key, u.model;

comment on view gpu_use_hourly is 'What the GPUs of each job did, by hour and model, newest first.';
comment on column gpu_use_hourly.hour is 'The hour, by its begin.';
comment on column gpu_use_hourly.slurm_id is 'Slurm''s id.';
comment on column gpu_use_hourly.job_key is 'Our own number of the job.';
comment on column gpu_use_hourly.tenant is 'The tenant.';
comment on column gpu_use_hourly.user_name is 'The user.';
comment on column gpu_use_hourly.job_name is 'Name of the job.';
comment on column gpu_use_hourly.model is 'GPU model, as Slurm calls it.';
comment on column gpu_use_hourly.held_gpu_hours is 'GPU-hours that the job held while telemetry looked.';
comment on column gpu_use_hourly.seen_gpu_hours is 'Of them, with fresh counters.';
comment on column gpu_use_hourly.idle_gpu_hours is 'Of those, idle.';
comment on column gpu_use_hourly.util is 'Mean part of the time in which a kernel ran, 0 to 1; null = unknown.';
comment on column gpu_use_hourly.sm is 'Mean activity of the SMs, 0 to 1; null = unknown.';
comment on column gpu_use_hourly.tensor is 'Mean activity of the tensor pipes, 0 to 1; null = unknown.';
comment on column gpu_use_hourly.dram is 'Mean activity of the memory''s interface, 0 to 1; null = unknown.';
comment on column gpu_use_hourly.power_w is 'Mean power of a GPU, watts; null = unknown.';
comment on column gpu_use_hourly.memory_bytes is 'Maximum memory in use on one GPU; null = unknown.';

create or replace view idle_held as
select
    (u.hour at time zone 'UTC')::date as day,
    j.tenant,
    j.user_name,
    j.slurm_id,
    u.job_key,
    j.name as job_name,
    u.model,
    sum(u.idle_ms)::bigint as idle_gpu_ms,
    gpu_hours(sum(u.idle_ms)) as idle_gpu_hours,
    gpu_hours(sum(u.seen_ms)) as seen_gpu_hours,
    gpu_hours(sum(u.held_ms)) as held_gpu_hours
from gpu_use u
join jobs j on j.key = u.job_key
group by 1, 2, 3, 4, 5, 6, 7
having sum(u.idle_ms) > 0
order by 1 desc, sum(u.idle_ms) desc, 5, 7;

comment on view idle_held is 'GPU time that jobs held idle, by day, job and model, most first. Add up idle_gpu_ms by tenant or user. Idle is proven only: a GPU without fresh counters counts as not idle.';
comment on column idle_held.day is 'Day, UTC.';
comment on column idle_held.tenant is 'The tenant.';
comment on column idle_held.user_name is 'The user.';
comment on column idle_held.slurm_id is 'Slurm''s id.';
comment on column idle_held.job_key is 'Our own number of the job.';
comment on column idle_held.job_name is 'Name of the job.';
comment on column idle_held.model is 'GPU model, as Slurm calls it.';
comment on column idle_held.idle_gpu_ms is 'GPU-milliseconds that it held idle, exact: add up these.';
comment on column idle_held.idle_gpu_hours is 'The same in hours, rounded to millionths.';
comment on column idle_held.seen_gpu_hours is 'GPU-hours that it held with fresh counters.';
comment on column idle_held.held_gpu_hours is 'GPU-hours that it held while telemetry looked.';
