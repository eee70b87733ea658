-- +goose Up

create table notices (
    id bigint generated always as identity primary key,
    kind text not null,
    job_key bigint not null,
    event text not null,
    user_name text not null,
    channel text not null,
    facts jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null,
    tries integer not null default 0,
    error text not null default '',
    sent_at timestamptz,
    dead_at timestamptz,
    constraint notices_cause unique (user_name, kind, job_key, event, channel),
    constraint notices_channel_check check (channel in ('mail', 'webhook')),
    constraint notices_kind_check check (kind in ('stop', 'start', 'idle', 'budget', 'slip', 'digest'))
);
create index notices_due on notices (due_at) where sent_at is null and dead_at is null;
create index notices_unsent on notices (id) where sent_at is null;
create index notices_recent on notices (user_name, created_at);
comment on table notices is 'Notices to users: those that wait, and those of the last 30 days that were sent. A notice is written in the transaction of what caused it, once for each channel.';
comment on index notices_cause is 'A cause makes one notice.';
comment on index notices_due is 'The sender asks what is due.';
comment on index notices_unsent is 'The daemon counts those that wait or were given up.';
comment on index notices_recent is 'How many notices a user had within the last hour.';
comment on column notices.id is 'Number of the notice.';
comment on column notices.kind is 'stop (the job will be stopped), start (it has started), idle (it holds idle GPUs), budget (80 or 100 % of a budget are used), slip (it is expected to start later) or digest (a sum of others).';
comment on column notices.job_key is 'The job; 0 = none.';
comment on column notices.event is 'Tells notices of a kind about a job apart: the term of the lease, the number of restarts, or a moment.';
comment on column notices.user_name is 'The user.';
comment on column notices.channel is 'How it is sent: mail or webhook.';
comment on column notices.facts is 'What the letter tells: job, name, tenant, gpus, at and was (ms since 1970), text, and of a digest the counts by kind.';
comment on column notices.created_at is 'When it was caused, by the database''s clock.';
comment on column notices.due_at is 'When it is sent, or tried again, by the database''s clock.';
comment on column notices.tries is 'How often it was tried.';
comment on column notices.error is 'Why the last try failed; empty = it did not.';
comment on column notices.sent_at is 'When it was sent, by the database''s clock; null = not yet.';
comment on column notices.dead_at is 'When it was given up, by the database''s clock; null = it was not.';

create table notice_choices (
    user_name text primary key,
    kinds text[],
    quiet text,
    changed_at timestamptz not null default clock_timestamp(),
    constraint notice_choices_kinds_check check (kinds <@ '{stop,start,idle,budget,slip}' and cardinality(kinds) <= 5 and coalesce(array_ndims(kinds), 1) = 1),
    constraint notice_choices_quiet_check check (quiet ~ '^(([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9])?$')
);
comment on table notice_choices is 'Choices of users: which notices they get, and when. choose_notices writes them (fairlease notices).';
comment on column notice_choices.user_name is 'The user.';
comment on column notice_choices.kinds is 'Kinds that the user gets, of those that the site sends; null = all of these.';
comment on column notice_choices.quiet is 'Quiet hours, as in 22:00-07:00; empty = none; null = those of the site.';
comment on column notice_choices.changed_at is 'When the user chose, by the database''s clock.';

-- +goose StatementBegin
create function choose_notices(of_user text, of_kinds text[], of_quiet text) returns void language plpgsql set search_path from current as $$
declare
    own text := case
        when exists (select from database_users where name = session_user) then (select slurm_user from database_users where name = session_user)
        else session_user::text
    end;
begin
    if of_user is distinct from own and not has_table_privilege(session_user, 'notice_choices', 'insert') then
        raise exception 'user % of the database may not choose for user % of Slurm', session_user, of_user using errcode = 'insufficient_privilege';
    end if;
    insert into notice_choices (user_name, kinds, quiet) values (of_user, of_kinds, of_quiet)
    on conflict (user_name) do update set kinds = excluded.kinds, quiet = excluded.quiet, changed_at = clock_timestamp();
end
$$;
-- +goose StatementEnd
comment on function choose_notices is 'Writes which notices a user gets, and its quiet hours. Tenants, who have no right to write the table and so none to lock it, write their own; roles with that right write all.';
