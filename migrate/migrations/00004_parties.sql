-- +goose Up

alter table fairlease.verdicts
    add column queue text not null default '',
    add column other_job bigint,
    add column other_kind text not null default '';
comment on column fairlease.verdicts.queue is 'Who queues, where a policy divides unlike GPU models: job, or kind (a tenant''s jobs of one kind). Empty = the tenant.';
comment on column fairlease.verdicts.other_job is 'Key of the job that went before it, where jobs queue; null = none. Refreshed in turn.';
comment on column fairlease.verdicts.other_kind is 'Kind whose jobs went before it, where kinds queue; empty = none.';
comment on column fairlease.verdicts.behind_ms is 'How far its tenant, or who else queues, is behind, as time at the entitlement. Refreshed in turn.';
comment on column fairlease.verdicts.other is 'The tenant that went before it, or whose job or kind did.';
comment on column fairlease.verdicts.other_behind_ms is 'How far who went before it is behind. Refreshed in turn.';
