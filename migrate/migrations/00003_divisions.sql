-- +goose Up

create table divisions (
    number bigint generated always as identity primary key,
    policy text not null,
    digest text not null,
    objective double precision not null,
    why_not text not null,
    pools text[] not null,
    parties integer not null,
    since timestamptz not null,
    ended_at timestamptz
);
create unique index divisions_in_force on divisions ((true)) where ended_at is null;
create index divisions_since on divisions (since);
comment on table divisions is 'Divisions of heterogeneous GPU models by a policy: a row for each division that was in force. At most one has no end.';
comment on index divisions_in_force is 'No two are in force at once.';
comment on index divisions_since is 'For charts of a time.';
comment on column divisions.number is 'Number.';
comment on column divisions.policy is 'The policy that was asked.';
comment on column divisions.digest is 'Digest of all inputs of the answer.';
comment on column divisions.objective is 'The policy''s own figure of merit.';
comment on column divisions.why_not is 'Reason for weighted shares instead; empty = the policy had an answer.';
comment on column divisions.pools is 'GPU models that were divided.';
comment on column divisions.parties is 'Number of claimants: jobs, or tenants'' job types.';
comment on column divisions.since is 'First round that went by it.';
comment on column divisions.ended_at is 'First round that did not any more; null = it is in force.';

create table profiles (
    kind text not null,
    beside text not null,
    model text not null,
    gang integer not null,
    source text not null,
    rate double precision not null,
    samples integer not null,
    spread double precision not null,
    heard_at timestamptz,
    basis text not null,
    primary key (kind, beside, model, gang, source)
) with (fillfactor = 70);
comment on table profiles is 'Throughput of each job type on each GPU model, declared and observed, as of the last round. Estimates have no rows: they are computed when needed.';
comment on column profiles.kind is 'Job type: tenant/name; without a tenant it is a reference of the site for all tenants.';
comment on column profiles.beside is 'Job type that shares its GPUs; empty = none.';
comment on column profiles.model is 'GPU model.';
comment on column profiles.gang is 'GPUs of such a job.';
comment on column profiles.source is 'declared or observed.';
comment on column profiles.rate is 'Steps a second of the whole gang; 0 = it does not run there.';
comment on column profiles.samples is 'How many reports an observed rate is the average of.';
comment on column profiles.spread is 'Standard deviation of these, as a part of the rate.';
comment on column profiles.heard_at is 'Time of the newest report, or of the declaration; null = unknown.';
comment on column profiles.basis is 'Author of the declaration: file = the administrator, or a job.';

create table entitlements (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    base_gpus numeric not null,
    usable_gpus numeric not null,
    divided_gpus numeric not null,
    entitlement_gpus numeric not null,
    holds_gpus integer not null,
    speed double precision not null,
    primary key (tenant, pool)
) with (fillfactor = 50);
comment on table entitlements is 'GPUs that every tenant is due of each model, where a policy divides heterogeneous GPU models, and their worth to it, as of the last round.';
comment on column entitlements.tenant is 'The tenant.';
comment on column entitlements.pool is 'GPU model.';
comment on column entitlements.at is 'Since when the row is so.';
comment on column entitlements.base_gpus is 'Share by weight, without any policy.';
comment on column entitlements.usable_gpus is 'Part of the share that its active jobs can use at once, the fastest models first.';
comment on column entitlements.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlements.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlements.holds_gpus is 'GPUs that its jobs hold.';
comment on column entitlements.speed is 'Speedup of its active jobs, averaged by requested GPUs: throughput of one GPU relative to the slowest model; 1 = unknown, 0 = of no use to them.';

create table entitlement_history (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    base_gpus numeric not null,
    usable_gpus numeric not null,
    divided_gpus numeric not null,
    entitlement_gpus numeric not null,
    holds_gpus integer not null,
    speed double precision not null,
    primary key (tenant, pool, at)
);
create index entitlement_history_at on entitlement_history (at);
comment on table entitlement_history is 'entitlements, sampled as tenant_history is. A minute without a row is like the one before; a row of zeros means that the tenant has none any more.';
comment on index entitlement_history_at is 'For charts of all tenants, and for pruning by age.';
comment on column entitlement_history.tenant is 'The tenant.';
comment on column entitlement_history.pool is 'GPU model.';
comment on column entitlement_history.at is 'When.';
comment on column entitlement_history.base_gpus is 'Share by weight.';
comment on column entitlement_history.usable_gpus is 'Part of the share that its active jobs could use at once, the fastest models first.';
comment on column entitlement_history.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlement_history.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlement_history.holds_gpus is 'GPUs that its jobs held.';
comment on column entitlement_history.speed is 'Speedup of its active jobs, as in entitlements.';

create table trades (
    number bigint generated always as identity primary key,
    id bigint not null,
    made_at timestamptz not null,
    fast text not null,
    slow text not null,
    fast_to text not null,
    fast_to_kind text not null,
    slow_to text not null,
    slow_to_kind text not null,
    fast_gpus numeric not null,
    slow_gpus numeric not null,
    price double precision not null,
    fast_to_speedup double precision not null,
    slow_to_speedup double precision not null,
    fast_to_gain double precision not null,
    slow_to_gain double precision not null,
    left_fast_gpus numeric not null,
    left_slow_gpus numeric not null,
    undone_at timestamptz,
    undone_why text not null
);
create unique index trades_in_force on trades (id) where left_fast_gpus > 0;
create index trades_undone on trades (undone_at);
comment on table trades is 'Swaps of entitlements between two tenants'' job types (Gandiva_fair section 3.4), in force and past.';
comment on index trades_in_force is 'Each is noted once while it lasts.';
comment on index trades_undone is 'For pruning by age.';
comment on column trades.number is 'Number of the row.';
comment on column trades.id is 'The trade''s own number; comes round again when the policy was another for a while.';
comment on column trades.made_at is 'First round that went by it.';
comment on column trades.fast is 'The faster GPU model.';
comment on column trades.slow is 'The slower one.';
comment on column trades.fast_to is 'Tenant that gets fast GPUs and gives slow ones.';
comment on column trades.fast_to_kind is 'Its job type.';
comment on column trades.slow_to is 'Tenant that gets slow GPUs and gives fast ones.';
comment on column trades.slow_to_kind is 'Its job type.';
comment on column trades.fast_gpus is 'Fast GPUs traded.';
comment on column trades.slow_gpus is 'Slow GPUs traded for them.';
comment on column trades.price is 'Slow GPUs for a fast one.';
comment on column trades.fast_to_speedup is 'Speedup, fast over slow, of the side that gets fast GPUs: the lower bound at the time of the trade.';
comment on column trades.slow_to_speedup is 'The same of the other: the upper bound.';
comment on column trades.fast_to_gain is 'Gain of the side that gets fast GPUs while the trade is in force: throughput in GPUs of its slowest model.';
comment on column trades.slow_to_gain is 'Gain of the other side.';
comment on column trades.left_fast_gpus is 'Fast GPUs that are still traded; 0 = it is over.';
comment on column trades.left_slow_gpus is 'Slow GPUs that are still traded.';
comment on column trades.undone_at is 'When it was undone, in part or wholly, last; null = it was not.';
comment on column trades.undone_why is 'Why: left (a party or model is gone), speedups (it gains no more), entitlement (a party is due less than it gives), demand (a party cannot use what it gets), policy (it is another, or has no answer); empty = it was not.';

create table audits (
    day date primary key,
    at timestamptz not null,
    policy text not null,
    pareto_slack double precision,
    tenants jsonb not null,
    envy jsonb not null,
    misreports jsonb not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table audits is 'How fair a division was, computed once a day.';
comment on column audits.day is 'Day, UTC.';
comment on column audits.at is 'The round that was audited.';
comment on column audits.policy is 'The policy.';
comment on column audits.pareto_slack is 'Possible increase of total throughput with no tenant losing, as a fraction; 0 = Pareto efficient; null = not computed.';
comment on column audits.tenants is 'By tenant: its incentive to share, and its gains from misreports.';
comment on column audits.envy is 'By pairs of tenants: throughput of one with the other''s GPUs, over that with its own.';
comment on column audits.misreports is 'Declared rates that observation does not bear out.';
comment on column audits.recorded_at is 'When the row was last written, by the database''s clock.';
