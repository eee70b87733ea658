-- GPUs by their counters, and the jobs that hold them.

-- name: clear_gpus
-- A new leader knows nothing of the rows before it.
delete from gpus;

-- name: clear_gpu_nodes
delete from gpu_nodes;

-- name: clear_gpu_remarks
delete from gpu_remarks;

-- name: put_gpus
insert into gpus {rows}
on conflict (node, gpu_index, instance) do update set {new};

-- name: drop_gpus
delete from gpus
where (node, gpu_index, instance) in (select node, gpu_index, instance from json_populate_recordset(null::gpus, $1));

-- name: put_gpu_nodes
insert into gpu_nodes {rows}
on conflict (node) do update set {new};

-- name: drop_gpu_nodes
delete from gpu_nodes
where node in (select node from json_populate_recordset(null::gpu_nodes, $1));

-- name: add_gpu_use
insert into gpu_use as had {rows}
on conflict (hour, job_key, model) do update set
    held_ms = had.held_ms + excluded.held_ms,
    seen_ms = had.seen_ms + excluded.seen_ms,
    idle_ms = had.idle_ms + excluded.idle_ms,
    util_sum = had.util_sum + excluded.util_sum,
    util_ms = had.util_ms + excluded.util_ms,
    sm_sum = had.sm_sum + excluded.sm_sum,
    sm_ms = had.sm_ms + excluded.sm_ms,
    tensor_sum = had.tensor_sum + excluded.tensor_sum,
    tensor_ms = had.tensor_ms + excluded.tensor_ms,
    dram_sum = had.dram_sum + excluded.dram_sum,
    dram_ms = had.dram_ms + excluded.dram_ms,
    power_sum = had.power_sum + excluded.power_sum,
    power_ms = had.power_ms + excluded.power_ms,
    memory_bytes = greatest(had.memory_bytes, excluded.memory_bytes);

-- name: put_gpu_memory
insert into gpu_memory {rows}
on conflict (user_name, command, gpus, model) do update set {new};

-- name: drop_gpu_memory
delete from gpu_memory
where (user_name, command, gpus, model) in (select user_name, command, gpus, model from json_populate_recordset(null::gpu_memory, $1));

-- name: put_gpu_sizes
insert into gpu_sizes {rows}
on conflict (model) do update set {new};

-- name: put_gpu_remarks
insert into gpu_remarks {rows}
on conflict (job_key, kind, node, gpu_index) do update set {new};

-- name: drop_gpu_remarks
delete from gpu_remarks
where (job_key, kind, node, gpu_index) in (select job_key, kind, node, gpu_index from json_populate_recordset(null::gpu_remarks, $1));

-- name: put_gpu_baselines
insert into gpu_baselines {rows}
on conflict (user_name, command, gpus, model, measure) do update set {new};

-- name: put_gpu_events
-- They follow the events of the newest round; without a round there is nothing to tell them of.
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
    r.round,
    r.last + row_number() over (),
    clock_timestamp(),
    e.kind,
    e.job_key,
    e.node,
    e.text
from json_populate_recordset(null::events, $1) e
cross join (
    select
        n.round,
        coalesce((select max(ordinal) from events where events.round = n.round), -1) as last
    from (select max(number) as round from rounds) n
    where n.round is not null
) r;

-- name: gpu_memory
select {columns}
from gpu_memory
order by user_name, command, gpus, model;

-- name: gpu_sizes
select {columns}
from gpu_sizes
order by model;

-- name: gpu_baselines
select {columns}
from gpu_baselines
order by user_name, command, gpus, model, measure;

-- name: gpu_remarks_now
select {columns}
from gpu_remarks_now
where ($1::bigint = 0 or job_key = $1)
order by since, job_key, kind, node, gpu_index
limit $2;

-- name: gpus_now
-- Slurm reuses its ids: those that an older job with the id held are not the newest one's.
select {columns}
from gpus_now
where ($1 = '' or node = $1 or user_name = $1 or (
    slurm_id = $1
    and job_key = (select max(key) from jobs where slurm_job = $3 and slurm_id = $1)
))
order by node, gpu_index, instance
limit $2;

-- name: gpus_of_job
select {columns}
from gpus_now
where job_key = $1;

-- name: gpu_nodes_now
select {columns}
from gpu_nodes_now
where state <> 'fresh'
order by node;

-- name: gpu_looks
-- How many nodes are seen how well, and when one was read last.
select {columns}
from (
    select
        state,
        count(*) as nodes,
        max(read_at) as read_at
    from gpu_nodes_now
    group by state
) s
order by state;
