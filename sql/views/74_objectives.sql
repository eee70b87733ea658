create or replace view objectives_kept as
select
    d.objective,
    d.tenant,
    newest.target_percent,
    newest.within_ms,
    sum(d.total) as total,
    sum(d.bad) as bad,
    round((100 * (1 - sum(d.bad) / sum(d.total)))::numeric, 3) as reached_percent,
    round((100 * (1 - sum(d.bad) / (sum(d.total) * (1 - newest.target_percent / 100))))::numeric, 3) as budget_left_percent,
    min(d.day) as from_day,
    max(d.day) as to_day
from objective_days d
cross join lateral (
    select
        n.target_percent,
        n.within_ms
    from objective_days n
    where n.objective = d.objective
    order by n.day desc
    limit 1
) newest
where d.day > (clock_timestamp() at time zone 'UTC')::date - 28
group by d.objective, d.tenant, newest.target_percent, newest.within_ms
having sum(d.total) > 0
order by d.objective, d.tenant;

comment on view objectives_kept is 'How the site kept its objectives over the last 28 days (UTC), for all tenants and for each.';
comment on column objectives_kept.objective is 'first_lease: jobs whose first lease began in time. gpus: GPU-seconds that were not idle while jobs waited. rounds: beats of the daemon''s clock with a round in time.';
comment on column objectives_kept.tenant is 'The tenant; empty = the whole site.';
comment on column objectives_kept.target_percent is 'Part of the events that should be good, per cent.';
comment on column objectives_kept.within_ms is 'How long a job waits for its first lease at most, ms; null = the objective has no such bound.';
comment on column objectives_kept.total is 'Events: jobs, GPU-seconds or beats.';
comment on column objectives_kept.bad is 'Of these, bad ones.';
comment on column objectives_kept.reached_percent is 'Part of the events that were good, per cent.';
comment on column objectives_kept.budget_left_percent is 'Rest of the error budget, per cent of it: 100 = no event was bad, 0 = as many as the target allows, below 0 = more.';
comment on column objectives_kept.from_day is 'First day that counts.';
comment on column objectives_kept.to_day is 'Last day with events.';
