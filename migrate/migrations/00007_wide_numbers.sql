-- +goose Up
-- Users may ask for any number of GPUs, nodes and CPUs, so counts are 64-bit.

alter table rounds
    alter column nodes type bigint,
    alter column nodes_bad type bigint,
    alter column gpus type bigint,
    alter column tenants type bigint,
    alter column jobs type bigint,
    alter column jobs_running type bigint,
    alter column jobs_waiting type bigint,
    alter column leases type bigint,
    alter column leases_ended type bigint,
    alter column claims type bigint,
    alter column actions type bigint,
    alter column actions_withheld type bigint,
    alter column events type bigint,
    add column jobs_aside bigint not null default 0;
comment on column rounds.jobs_aside is 'Number of jobs set aside, because their records cannot be read or because the engine or the journal failed on them.';

alter table nodes
    alter column cpus type bigint;

alter table jobs
    alter column gpus type bigint,
    alter column nodes type bigint,
    alter column cpus type bigint,
    alter column restarts type bigint,
    alter column terms type bigint,
    alter column failed type bigint;

alter table verdicts
    alter column need_gpus type bigint,
    alter column free_gpus type bigint,
    alter column rank type bigint;

alter table leases
    alter column term type bigint,
    alter column gpus type bigint;

alter table claims
    alter column gpus type bigint;

alter table ledger
    alter column holds_gpus type bigint,
    alter column waiting_jobs type bigint;

alter table tenant_history
    alter column holds_gpus type bigint,
    alter column waiting_jobs type bigint;

alter table pools
    alter column gpus type bigint,
    alter column bad_gpus type bigint;

alter table pool_history
    alter column gpus type bigint;

alter table losses
    alter column lease_term type bigint,
    alter column type_gpus type bigint;

alter table vc_cells
    alter column cell_gpus type bigint,
    alter column reserved type bigint,
    alter column pinned type bigint,
    alter column bound type bigint,
    alter column lost type bigint,
    alter column free type bigint,
    alter column lent type bigint;

alter table vc_cell_history
    alter column cell_gpus type bigint,
    alter column reserved type bigint,
    alter column pinned type bigint,
    alter column bound type bigint,
    alter column lost type bigint,
    alter column free type bigint,
    alter column lent type bigint;

alter table bound_cells
    alter column gpu type bigint,
    alter column gpus type bigint,
    alter column used_gpus type bigint,
    alter column bad_gpus type bigint;

alter table fragmentation_history
    alter column cell_gpus type bigint,
    alter column broken type bigint,
    alter column cells type bigint;

alter table divisions
    alter column parties type bigint;

alter table profiles
    alter column gang type bigint,
    alter column samples type bigint;

alter table entitlements
    alter column holds_gpus type bigint;

alter table entitlement_history
    alter column holds_gpus type bigint;
