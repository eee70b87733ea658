-- +goose Up

-- Where a policy divides GPU models, accounts count work: GPU time times the measured speedup, in GPU-milliseconds of the
-- reference model. Only what differs from GPU time is stored, so rows of before count their GPU time as work.

alter table ledger
    add column if not exists extra_gpu_ms bigint not null default 0,
    add column if not exists extra_due_gpu_ms bigint not null default 0,
    add column if not exists window_extra_gpu_ms numeric not null default 0,
    add column if not exists window_extra_due_gpu_ms numeric not null default 0;
comment on column ledger.extra_gpu_ms is 'Work received since the beginning beyond the GPU time: by the speedup of the model for the tenant''s jobs, as it was known then. Negative = slower than the reference model. 0 where no policy divides GPU models.';
comment on column ledger.extra_due_gpu_ms is 'Work due since the beginning beyond the GPU time due: that of the part of base_gpus that its jobs could use, less due_gpu_ms.';
comment on column ledger.window_extra_gpu_ms is 'Work received in the window beyond the GPU time.';
comment on column ledger.window_extra_due_gpu_ms is 'Work due in the window beyond the GPU time due.';
comment on column ledger.rho is 'Fairness degree over the window: received over due; Infinity = received without being due. Where a policy divides GPU models, work of all pools together.';

alter table window_buckets
    add column if not exists extra_gpu_ms bigint not null default 0,
    add column if not exists extra_due_gpu_ms bigint not null default 0;
comment on column window_buckets.extra_gpu_ms is 'Work received in the slice beyond the GPU time; see ledger.';
comment on column window_buckets.extra_due_gpu_ms is 'Work due in the slice beyond the GPU time due.';

alter table tenant_history
    add column if not exists extra_gpu_ms bigint not null default 0,
    add column if not exists extra_due_gpu_ms bigint not null default 0;
comment on column tenant_history.extra_gpu_ms is 'Work received since the beginning beyond the GPU time; see ledger.';
comment on column tenant_history.extra_due_gpu_ms is 'Work due since the beginning beyond the GPU time due.';

alter table jobs
    add column if not exists extra_gpu_ms bigint not null default 0,
    add column if not exists extra_due_gpu_ms bigint not null default 0;
comment on column jobs.extra_gpu_ms is 'Work received beyond the GPU time, by the speedup of the model for the job''s type. 0 where no policy divides GPU models.';
comment on column jobs.extra_due_gpu_ms is 'Work due beyond the GPU time due.';

alter table job_statuses
    add column if not exists extra_gpu_ms bigint not null default 0,
    add column if not exists extra_due_gpu_ms bigint not null default 0;
comment on column job_statuses.extra_gpu_ms is 'Work received beyond the GPU time. Refreshed in turn.';
comment on column job_statuses.extra_due_gpu_ms is 'Work due beyond the GPU time due. Refreshed in turn.';
