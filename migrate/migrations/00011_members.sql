-- +goose Up
-- These tables say which rows a database user sees: the policies that `fairlease migrate --roles` makes read them.

create table members (
    tenant text not null,
    user_name text not null,
    primary key (user_name, tenant)
);
comment on table members is 'Slurm users of every tenant, from Slurm''s associations. The daemon writes them when they change.';
comment on column members.tenant is 'The tenant.';
comment on column members.user_name is 'User in Slurm.';

create table database_users (
    name text primary key,
    slurm_user text
);
comment on table database_users is 'Database users whose Slurm user has another name. Written by administrators.';
comment on column database_users.name is 'User in PostgreSQL.';
comment on column database_users.slurm_user is 'User in Slurm; null = none: this database user sees the rows of no tenant.';

alter table overrides add column database_user text not null default session_user;
comment on column overrides.database_user is 'Database user who gave the override, recorded by PostgreSQL. For overrides from before this column, the user who ran the migration.';
comment on column overrides.by is 'User who gave the override, recorded by the program: the user that it ran as, with the value of SUDO_USER.';

-- +goose StatementBegin
do $$
begin
    execute format('comment on schema %I is %L', current_schema(),
        'The journal of fairlease: its observations, decisions and actions, round by round. Only the daemon in the seat writes it, but administrators write overrides (through the CLI) and database_users. Read the views; tables may change between versions. Put views of your own into another schema: every upgrade drops views here that fairlease does not know. Names end in their units: _gpu_ms is GPU-milliseconds, _ms milliseconds, _gpus GPUs. Times named _at or _until are the cluster''s unless their comment says that the database stamped them.');
end
$$;
-- +goose StatementEnd
