-- +goose Up

-- Jobs hold parts of GPUs: what counts the GPUs of a job, a lease or a tenant is a number with at most six decimals. That of a node or of the
-- site stays whole.
alter table jobs alter column gpus type numeric;
comment on column jobs.gpus is 'GPUs asked for: all or none. Half a GPU is 0.5.';

alter table job_statuses alter column need_gpus type numeric,
    alter column free_gpus type numeric;

alter table leases alter column gpus type numeric;
comment on column leases.gpus is 'GPUs held. Half a GPU is 0.5.';

alter table claims alter column gpus type numeric;

alter table ledger alter column holds_gpus type numeric;

alter table tenant_history alter column holds_gpus type numeric;

alter table entitlements alter column holds_gpus type numeric;

alter table entitlement_history alter column holds_gpus type numeric;

alter table bound_jobs alter column gpus type numeric;

comment on column actions.verb is 'lock, gate, reserve, grant, take_back, notice, reclaim, release, unreserve, suspend, resume or open.';
