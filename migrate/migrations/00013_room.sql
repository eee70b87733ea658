-- +goose Up

alter table leases alter column holdings drop not null;
comment on column leases.holdings is 'What is held on each node: [{"node", "model", "gpus", ...}]; null = all GPUs are on the one node in nodes, and of the model in pool.';

-- Rows that are written again and again stay in their place, and what is left of them is cleared early.
alter table verdicts set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
alter table leases set (autovacuum_vacuum_scale_factor = 0.05);
