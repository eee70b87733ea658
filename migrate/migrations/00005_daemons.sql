-- +goose Up

create table daemons (
    holder text primary key,
    host text not null generated always as (regexp_replace(holder, ':[0-9]+$', '')) stored,
    since timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    silent_after interval not null
);
comment on table daemons is 'Daemons that lead or stand by. A daemon that ends takes its row away; one that crashed leaves it for a day.';
comment on column daemons.holder is 'Host and process, as in leaders.';
comment on column daemons.host is 'The host alone.';
comment on column daemons.since is 'When the daemon began to stand by or to lead, by the database''s clock.';
comment on column daemons.seen_at is 'Last sign of life, by the database''s clock.';
comment on column daemons.silent_after is 'How long after that it counts as gone.';
