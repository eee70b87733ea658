-- +goose Up

-- Leases of short jobs that wait behind another lease of their tenant, for its GPUs.

alter table leases
    add column if not exists behind bigint not null default 0;
comment on column leases.behind is 'The job whose GPUs this granted lease takes over when that job has ended, on the same node; 0 = none. Until then gpus is 0, since the GPUs are those of that job.';
