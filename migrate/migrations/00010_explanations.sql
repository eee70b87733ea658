-- +goose Up

alter table verdicts
    add column slurm_says text not null default '',
    add column details jsonb;
comment on column verdicts.gate_until is 'Begin time that fairlease set on the waiting job, after which Slurm may start it by itself; null = none.';
comment on column verdicts.slurm_says is 'Slurm''s own reason why the job waits. The daemon refreshes it in rotation.';
comment on column verdicts.details is 'Further facts for `fairlease explain`, of jobs that have a lease or a claim, were stopped, or wait for a reason that the other columns cannot hold; null = none.';

create table settings (
    single boolean primary key default true check (single),
    settings jsonb not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table settings is 'Settings of the newest round: one row.';
comment on column settings.single is 'Always true: there is one row.';
comment on column settings.settings is 'The engine''s settings: cluster.Settings.';
comment on column settings.recorded_at is 'Time of their last change, by the database''s clock.';
