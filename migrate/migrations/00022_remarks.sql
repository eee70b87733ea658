-- +goose Up

-- Jobs that do not do what is usual for them, by the counters of their GPUs and the steps that they report.

create table if not exists gpu_remarks (
    job_key bigint not null,
    kind text not null,
    node text not null,
    gpu_index integer not null,
    since timestamptz not null,
    text text not null,
    primary key (job_key, kind, node, gpu_index)
);
comment on table gpu_remarks is 'Remarks on running jobs that hold now.';
comment on column gpu_remarks.job_key is 'The job.';
comment on column gpu_remarks.kind is 'drift = its activity or speed is far from the baseline of its type; stall = it does nearly nothing now; straggler = one GPU or node is far from its others; misreport = its counters contradict a speedup that its type claims.';
comment on column gpu_remarks.node is 'Node that it is about; empty = the whole job.';
comment on column gpu_remarks.gpu_index is 'GPU that it is about, by index on the node; -1 = all of the job''s there.';
comment on column gpu_remarks.since is 'Since when.';
comment on column gpu_remarks.text is 'In words.';

create table if not exists gpu_baselines (
    user_name text not null,
    command text not null,
    gpus integer not null,
    model text not null,
    measure text not null,
    jobs integer not null,
    mean double precision not null,
    spread double precision not null,
    apart integer not null,
    at timestamptz not null,
    primary key (user_name, command, gpus, model, measure)
);
comment on table gpu_baselines is 'What is usual for jobs of each type on each GPU model. Levels are in the natural logarithm.';
comment on column gpu_baselines.user_name is 'User of the type''s jobs.';
comment on column gpu_baselines.command is 'Command line without numbers.';
comment on column gpu_baselines.gpus is 'GPUs that its jobs request.';
comment on column gpu_baselines.model is 'GPU model, as Slurm calls it.';
comment on column gpu_baselines.measure is 'speed (steps/s), tensor or memory activity (0 to 1), or PCIe read rate (bytes/s).';
comment on column gpu_baselines.jobs is 'Jobs that count, at most 50.';
comment on column gpu_baselines.mean is 'Mean over jobs.';
comment on column gpu_baselines.spread is 'Standard deviation over jobs.';
comment on column gpu_baselines.apart is 'Newest jobs in a row that were far off and do not count.';
comment on column gpu_baselines.at is 'End of the newest job.';
