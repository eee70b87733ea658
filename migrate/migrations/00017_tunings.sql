-- +goose Up

-- The record of the term of leases as it was chosen by the journal. Rows are never changed, but for the round that named
-- them first.

create table tunings (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    kind text not null check (kind in ('kept', 'proposed', 'taken', 'undone', 'ended')),
    file_ms bigint not null check (file_ms > 0),
    before_ms bigint not null check (before_ms > 0),
    term_ms bigint not null check (term_ms > 0),
    by text not null check (by <> ''),
    why text not null check (why <> ''),
    round bigint not null default 0,
    study jsonb,
    database_user text not null default session_user
);
create index tunings_decisive on tunings (id) where kind in ('taken', 'undone', 'ended');
comment on table tunings is 'The term of leases as it was chosen by the journal (ASTRAEA section 5.1.3): what each night decided, and what people ordered. The newest row of kind taken, undone or ended determines the term in force.';
comment on index tunings_decisive is 'The newest of them is read before every round.';
comment on column tunings.id is 'Number of the row.';
comment on column tunings.at is 'When, by the database''s clock.';
comment on column tunings.kind is 'kept (the term stays), proposed (another is better, and is not taken over), taken (another is in force from now on), undone (the term before is in force again) or ended (the configuration''s is, since it says so).';
comment on column tunings.file_ms is 'lease.term in the configuration at that time.';
comment on column tunings.before_ms is 'Term in force before.';
comment on column tunings.term_ms is 'Term in force after; of a proposal, the proposed term.';
comment on column tunings.by is 'Author: fairlease, or the user that the program ran as, with the value of SUDO_USER.';
comment on column tunings.why is 'Why, in words.';
comment on column tunings.round is 'First round that named it in an event; 0 = none has.';
comment on column tunings.study is 'The measures that it was decided by: of the days before, of the days since a takeover, and of the replays with each term; null = none.';
comment on column tunings.database_user is 'Database user who wrote the row, recorded by PostgreSQL.';
