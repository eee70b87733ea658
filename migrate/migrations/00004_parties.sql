-- +goose Up

alter table verdicts
    add column queue text not null default '',
    add column other_job bigint;
comment on column verdicts.queue is 'Claimant in line, where a policy divides heterogeneous GPU models: job, where the policy knows jobs only. Empty = the tenant.';
comment on column verdicts.other_job is 'Key of the job that went before it, where jobs queue; null = none. Refreshed in turn.';
comment on column verdicts.behind_ms is 'How far its tenant, or where jobs queue the job, is behind, as time at the entitlement. Refreshed in turn.';
comment on column verdicts.other is 'The tenant that went before it, or whose job did.';
comment on column verdicts.other_behind_ms is 'How far who went before it is behind. Refreshed in turn.';
