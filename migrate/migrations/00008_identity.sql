-- +goose Up

create table identity (
    single boolean primary key default true check (single),
    name text not null,
    cluster_id bigint not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table identity is 'Which cluster the journal is of: one row, from the first daemon that wrote to it. Daemons of other clusters are refused.';
comment on column identity.single is 'Always true: there is one row.';
comment on column identity.name is 'ClusterName of slurm.conf.';
comment on column identity.cluster_id is 'Number that slurmctld gave itself when it first started; 0 = this Slurm does not tell (before 25.11, and while it has no job).';
comment on column identity.recorded_at is 'When the row was written, by the database''s clock.';

create table repairs (
    id bigint generated always as identity primary key,
    kind text not null,
    found text not null,
    done text not null,
    reason text not null,
    by text not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table repairs is 'What administrators mended in the journal with `fairlease repair`.';
comment on column repairs.id is 'Number of the repair.';
comment on column repairs.kind is 'clock = books that were ahead of the time; cluster = the journal was given to another cluster.';
comment on column repairs.found is 'What was wrong.';
comment on column repairs.done is 'What was done about it.';
comment on column repairs.reason is 'Why, in the words of who did it.';
comment on column repairs.by is 'Who did it.';
comment on column repairs.recorded_at is 'When, by the database''s clock.';
