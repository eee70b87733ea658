-- +goose Up

-- Actions that are recorded and not carried out are called suppressed everywhere.

alter table actions rename column withheld to suppressed;
comment on column actions.suppressed is 'Recorded only: the mode or the partition forbids acting.';
comment on column actions.skipped is 'Not tried: suppressed, the job had moved on, or what it needed had failed.';
alter table rounds rename column actions_withheld to actions_suppressed;
