create or replace view round_latency as
select
    number,
    at,
    at - lag(at) over (order by number) as since_previous,
    recorded_at - at as deciding,
    settled_at - recorded_at as settling,
    span(acting_ms) as acting,
    jobs,
    actions,
    actions_suppressed,
    preset
from rounds
order by number desc;

comment on view round_latency is 'How long every round took, newest first.';
comment on column round_latency.number is 'Number of the round.';
comment on column round_latency.at is 'When the cluster was looked at.';
comment on column round_latency.since_previous is 'Time since the round before that was written down; rounds in which nothing changed are not.';
comment on column round_latency.deciding is 'From the look to the journal: seeing, deciding and writing down. Reads two clocks, the daemon''s and the database''s.';
comment on column round_latency.settling is 'From there until the outcomes of all actions were written down; null = not yet.';
comment on column round_latency.acting is 'Time that the actions took together; null = not settled.';
comment on column round_latency.jobs is 'Live jobs.';
comment on column round_latency.actions is 'Actions decided.';
comment on column round_latency.actions_suppressed is 'Of these, not carried out.';
comment on column round_latency.preset is 'Preset that decided.';

create or replace view round_latency_per_hour as
select
    date_trunc('hour', at) as hour,
    count(*) as rounds,
    percentile_disc(0.5) within group (order by recorded_at - at) as deciding_median,
    percentile_disc(0.95) within group (order by recorded_at - at) as deciding_p95,
    max(recorded_at - at) as deciding_max,
    percentile_disc(0.5) within group (order by settled_at - recorded_at) as settling_median,
    percentile_disc(0.95) within group (order by settled_at - recorded_at) as settling_p95,
    max(settled_at - recorded_at) as settling_max,
    sum(actions)::bigint as actions
from rounds
group by 1
order by 1 desc;

comment on view round_latency_per_hour is 'How long rounds took, by hour.';
comment on column round_latency_per_hour.hour is 'The hour, in the session''s time zone.';
comment on column round_latency_per_hour.rounds is 'Rounds written down.';
comment on column round_latency_per_hour.deciding_median is 'From the look to the journal, median.';
comment on column round_latency_per_hour.deciding_p95 is 'The same, 95 of 100 rounds are faster.';
comment on column round_latency_per_hour.deciding_max is 'The same, slowest.';
comment on column round_latency_per_hour.settling_median is 'From the journal to the outcomes, median.';
comment on column round_latency_per_hour.settling_p95 is 'The same, 95 of 100 rounds are faster.';
comment on column round_latency_per_hour.settling_max is 'The same, slowest.';
comment on column round_latency_per_hour.actions is 'Actions decided.';
