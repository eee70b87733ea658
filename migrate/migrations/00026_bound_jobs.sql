-- +goose Up

-- Running jobs whose GPUs cannot be taken back soon.

create table if not exists bound_jobs (
    job_key bigint primary key,
    way text not null,
    pool text not null,
    gpus integer not null,
    since_at timestamptz not null,
    until_at timestamptz
);
comment on table bound_jobs is 'Running jobs whose GPUs cannot be taken back within an hour or two terms, whichever is longer, as of the last round. Written when that begins or changes.';
comment on column bound_jobs.job_key is 'The job.';
comment on column bound_jobs.way is 'Why its GPUs cannot be taken back: no_requeue, contiguous, session, het, other (words of opt_out); age (it has run for too long since its start to be stopped within its stop budget), saves (its saves are rare or slow), min_lease (its minimum lease has hours to go), pool (its pool cannot afford its stop), exempt (by an administrator); excluded, reservation, no_tenant, aside (left alone).';
comment on column bound_jobs.pool is 'GPU model.';
comment on column bound_jobs.gpus is 'GPUs that it holds.';
comment on column bound_jobs.since_at is 'When it could last have been stopped, at the earliest its start.';
comment on column bound_jobs.until_at is 'When it ends at the latest, or can be stopped; null = not known.';
