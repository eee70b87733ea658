-- +goose Up

-- What GPUs really do, by their counters (telemetry.gpu).

create table if not exists gpus (
    node text not null,
    gpu_index integer not null,
    instance text not null,
    model text not null,
    state text not null check (state in ('fresh', 'stale', 'broken', 'unknown')),
    why text not null,
    job_key bigint,
    util double precision,
    tensor double precision,
    power_w double precision,
    memory_bytes bigint,
    memory_size_bytes bigint,
    idle boolean not null,
    idle_since timestamptz,
    primary key (node, gpu_index, instance)
);
create index if not exists gpus_job on gpus (job_key) where job_key is not null;
comment on table gpus is 'Every GPU and MIG instance as it was seen last. Values are rounded, so that rows change seldom.';
comment on index gpus_job is 'For the GPUs of one job.';
comment on column gpus.node is 'Node, as Slurm calls it.';
comment on column gpus.gpu_index is 'Index of the GPU on the node.';
comment on column gpus.instance is 'MIG GPU instance; empty = the whole GPU.';
comment on column gpus.model is 'Model, as the driver calls it.';
comment on column gpus.state is 'fresh; stale = its values do not change; broken = they contradict each other; unknown = too little is reported.';
comment on column gpus.why is 'Why it is not fresh; empty = it is.';
comment on column gpus.job_key is 'The job that holds it; null = none, or several.';
comment on column gpus.util is 'Part of the time in which a kernel ran, 0 to 1; null = unknown.';
comment on column gpus.tensor is 'Activity of the tensor pipes, 0 to 1; null = unknown.';
comment on column gpus.power_w is 'Power, watts; null = unknown.';
comment on column gpus.memory_bytes is 'Memory in use; null = unknown.';
comment on column gpus.memory_size_bytes is 'All its memory; null = unknown.';
comment on column gpus.idle is 'True if it is fresh and idle.';
comment on column gpus.idle_since is 'Since when it is idle; null = it is not known to be.';

create table if not exists gpu_nodes (
    node text primary key,
    state text not null check (state in ('fresh', 'stale', 'broken', 'unknown', 'silent')),
    why text not null,
    since timestamptz,
    read_at timestamptz
);
comment on table gpu_nodes is 'How well the GPUs of each node are seen.';
comment on column gpu_nodes.node is 'Node, as Slurm calls it.';
comment on column gpu_nodes.state is 'silent = not read at the last look; else the worst state of its GPUs.';
comment on column gpu_nodes.why is 'Why it is not fresh; empty = it is.';
comment on column gpu_nodes.since is 'When the state began.';
comment on column gpu_nodes.read_at is 'When it was read last, to the minute; null = never.';

create table if not exists gpu_use (
    hour timestamptz not null,
    job_key bigint not null,
    model text not null,
    held_ms bigint not null,
    seen_ms bigint not null,
    idle_ms bigint not null,
    util_sum double precision not null,
    util_ms bigint not null,
    sm_sum double precision not null,
    sm_ms bigint not null,
    tensor_sum double precision not null,
    tensor_ms bigint not null,
    dram_sum double precision not null,
    dram_ms bigint not null,
    power_sum double precision not null,
    power_ms bigint not null,
    memory_bytes bigint not null,
    primary key (hour, job_key, model)
);
create index if not exists gpu_use_job on gpu_use (job_key);
comment on table gpu_use is 'What the GPUs of each job did, by hour and model. All times are GPU-milliseconds. Of each counter there is the sum of value times time, and the time in which it was known: their quotient is the mean.';
comment on index gpu_use_job is 'For one job.';
comment on column gpu_use.hour is 'The hour, by its begin.';
comment on column gpu_use.job_key is 'The job.';
comment on column gpu_use.model is 'GPU model, as Slurm calls it.';
comment on column gpu_use.held_ms is 'GPU time that the job held while telemetry looked.';
comment on column gpu_use.seen_ms is 'Of it, with fresh counters.';
comment on column gpu_use.idle_ms is 'Of that, idle.';
comment on column gpu_use.util_sum is 'Part of the time in which a kernel ran, times time.';
comment on column gpu_use.util_ms is 'Time in which that was known.';
comment on column gpu_use.sm_sum is 'Activity of the SMs, times time.';
comment on column gpu_use.sm_ms is 'Time in which that was known.';
comment on column gpu_use.tensor_sum is 'Activity of the tensor pipes, times time.';
comment on column gpu_use.tensor_ms is 'Time in which that was known.';
comment on column gpu_use.dram_sum is 'Activity of the memory''s interface, times time.';
comment on column gpu_use.dram_ms is 'Time in which that was known.';
comment on column gpu_use.power_sum is 'Watts, times time.';
comment on column gpu_use.power_ms is 'Time in which that was known.';
comment on column gpu_use.memory_bytes is 'Maximum in use on one GPU; 0 = unknown.';

create table if not exists gpu_memory (
    user_name text not null,
    command text not null,
    gpus integer not null,
    model text not null,
    bytes bigint not null,
    completed boolean not null,
    full_failed boolean not null,
    at timestamptz not null,
    primary key (user_name, command, gpus, model)
);
comment on table gpu_memory is 'How much memory of a GPU jobs of each type used, by model.';
comment on column gpu_memory.user_name is 'User of the type''s jobs.';
comment on column gpu_memory.command is 'Command line without numbers.';
comment on column gpu_memory.gpus is 'GPUs that its jobs request.';
comment on column gpu_memory.model is 'GPU model, as Slurm calls it.';
comment on column gpu_memory.bytes is 'Maximum in use on one GPU.';
comment on column gpu_memory.completed is 'A job completed there.';
comment on column gpu_memory.full_failed is 'The last one failed there with the memory full, and none has completed.';
comment on column gpu_memory.at is 'Newest evidence.';

create table if not exists gpu_sizes (
    model text primary key,
    bytes bigint not null
);
comment on table gpu_sizes is 'Memory of one GPU of each model.';
comment on column gpu_sizes.model is 'GPU model, as Slurm calls it.';
comment on column gpu_sizes.bytes is 'All its memory.';
