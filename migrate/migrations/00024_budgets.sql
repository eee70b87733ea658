-- +goose Up

-- Budgets of tenants and their use, a row for each budget and period.

create table if not exists budget_periods (
    tenant text not null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    current boolean not null,
    per text not null,
    gpu_hours double precision not null check (gpu_hours > 0),
    prices jsonb not null,
    at_end text not null check (at_end in ('warn', 'idle-only')),
    base_gpu_ms jsonb not null,
    received_gpu_ms jsonb not null,
    used_gpu_hours double precision not null,
    at timestamptz not null,
    warned_at timestamptz,
    spent_at timestamptz,
    told_percent integer not null,
    primary key (tenant, start_at)
);
comment on table budget_periods is 'Budgets of tenants and their use, a row for each budget and period. The daemon counts every minute.';
comment on column budget_periods.tenant is 'The tenant.';
comment on column budget_periods.start_at is 'Begin of the period.';
comment on column budget_periods.end_at is 'End of the period: the begin of the next.';
comment on column budget_periods.current is 'True for the present period of a budget that the configuration has.';
comment on column budget_periods.per is 'Length of the period: week, month, quarter or year.';
comment on column budget_periods.gpu_hours is 'The budget: GPU hours at prices.';
comment on column budget_periods.prices is 'Price of a GPU hour by model, as in {"h100": 4}. A model that is not there costs 1.';
comment on column budget_periods.at_end is 'What follows when it is used up: warn, or idle-only (the tenant gets idle GPUs only).';
comment on column budget_periods.base_gpu_ms is 'GPU time that the tenant had received by model when the period began, since the beginning of the journal.';
comment on column budget_periods.received_gpu_ms is 'GPU time that it has received by model in the period.';
comment on column budget_periods.used_gpu_hours is 'GPU hours at prices that it has used.';
comment on column budget_periods.at is 'Up to when that is counted.';
comment on column budget_periods.warned_at is 'When 80 % were used; null = not yet.';
comment on column budget_periods.spent_at is 'When all was used; null = not yet.';
comment on column budget_periods.told_percent is 'The largest percentage that an event has reported: 80 or 100; 0 = none.';
