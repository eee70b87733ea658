-- +goose Up

alter table administration drop constraint administration_kind_check,
    add constraint administration_kind_check check (kind in ('setting', 'configuration', 'override', 'term', 'release', 'breaker', 'repair', 'schema'));
comment on column administration.kind is 'setting, configuration (a file that was taken over, waits to be accepted, or was rejected), override, term (of leases, by fairlease tune), release, breaker (an operator let fairlease act again), repair or schema.';

alter table budget_periods drop constraint budget_periods_at_end_check,
    add constraint budget_periods_at_end_check check (at_end in ('warn', 'idle-only', 'refuse'));
comment on column budget_periods.at_end is 'What follows when it is used up: warn, idle-only (the tenant gets idle GPUs only), or refuse (that, and the submit plugin refuses jobs that may use more than is left).';

create table objective_days (
    day date not null,
    objective text not null,
    tenant text not null,
    target_percent double precision not null,
    within_ms bigint,
    total double precision not null,
    bad double precision not null,
    primary key (day, objective, tenant)
);
comment on table objective_days is 'Events of the site''s objectives, by day (UTC), objective and tenant. Never pruned: there are few.';
comment on column objective_days.day is 'Day, UTC.';
comment on column objective_days.objective is 'first_lease, gpus or rounds.';
comment on column objective_days.tenant is 'The tenant; empty = the whole site.';
comment on column objective_days.target_percent is 'Part of the events that should be good, per cent, as configured last that day.';
comment on column objective_days.within_ms is 'How long a job waits for its first lease at most, ms; null = the objective has no such bound.';
comment on column objective_days.total is 'Events: jobs, GPU-seconds or beats.';
comment on column objective_days.bad is 'Of these, bad ones.';
