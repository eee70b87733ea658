create or replace view entitlements_now as
select
    tenant,
    pool,
    base_gpus,
    divided_gpus,
    entitlement_gpus,
    entitlement_gpus - divided_gpus as traded_gpus,
    usable_gpus,
    holds_gpus,
    speed,
    at as since
from entitlements
order by tenant, pool;

comment on view entitlements_now is 'GPUs that every tenant is due of each model, where a policy divides heterogeneous GPU models, as of the last round.';
comment on column entitlements_now.tenant is 'The tenant.';
comment on column entitlements_now.pool is 'GPU model.';
comment on column entitlements_now.base_gpus is 'Share by weight, without any policy.';
comment on column entitlements_now.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlements_now.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlements_now.traded_gpus is 'GPUs from trades; negative = given away.';
comment on column entitlements_now.usable_gpus is 'Part of its share by weight that its active jobs can use at once, the fastest models first.';
comment on column entitlements_now.holds_gpus is 'GPUs that its jobs hold.';
comment on column entitlements_now.speed is 'Speedup of its active jobs, averaged by requested GPUs: throughput of one GPU relative to the reference model; 1 = unknown, 0 = of no use to them.';
comment on column entitlements_now.since is 'Start of this state.';

create or replace view entitlements_over_time as
select
    tenant,
    pool,
    at as from_at,
    lead(at) over (partition by tenant, pool order by at) as until_at,
    base_gpus,
    divided_gpus,
    entitlement_gpus,
    entitlement_gpus - divided_gpus as traded_gpus,
    usable_gpus,
    holds_gpus,
    speed
from entitlement_history
order by tenant, pool, at;

comment on view entitlements_over_time is 'GPUs that every tenant was due of each model, where a policy divides heterogeneous GPU models, oldest first, to a minute (settable).';
comment on column entitlements_over_time.tenant is 'The tenant.';
comment on column entitlements_over_time.pool is 'GPU model.';
comment on column entitlements_over_time.from_at is 'From when.';
comment on column entitlements_over_time.until_at is 'Until when; null = still.';
comment on column entitlements_over_time.base_gpus is 'Share by weight, without any policy; 0 in all columns = no policy divided any more, or the tenant had gone.';
comment on column entitlements_over_time.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlements_over_time.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlements_over_time.traded_gpus is 'GPUs from trades; negative = given away.';
comment on column entitlements_over_time.usable_gpus is 'Part of its share by weight that its active jobs could use at once, the fastest models first.';
comment on column entitlements_over_time.holds_gpus is 'GPUs that its jobs held.';
comment on column entitlements_over_time.speed is 'Speedup of its active jobs: throughput of one GPU relative to the reference model.';

create or replace view effective_throughput as
select
    tenant,
    sum(holds_gpus * speed) as throughput,
    sum(entitlement_gpus::double precision * speed) as due_throughput,
    sum(usable_gpus::double precision * speed) as share_throughput,
    sum(holds_gpus * speed) / nullif(sum(usable_gpus::double precision * speed), 0) as ratio,
    max(at) as since
from entitlements
group by tenant
order by tenant;

comment on view effective_throughput is 'Throughput of every tenant''s GPUs, by the speedups of its jobs, beside that of its share by weight, as of the last round. Throughputs are in GPUs of the reference model.';
comment on column effective_throughput.tenant is 'The tenant.';
comment on column effective_throughput.throughput is 'Of the GPUs that its jobs hold.';
comment on column effective_throughput.due_throughput is 'Of the GPUs that it is due after policy and trades.';
comment on column effective_throughput.share_throughput is 'Of the part of its share by weight that its active jobs can use: its throughput without policy and trades.';
comment on column effective_throughput.ratio is 'throughput over share_throughput; null = it has no share that it could use.';
comment on column effective_throughput.since is 'Start of this state.';

create or replace view effective_throughput_over_time as
select
    tenant,
    at as from_at,
    lead(at) over moments as until_at,
    sum(throughput) over moments as throughput,
    sum(due_throughput) over moments as due_throughput,
    sum(share_throughput) over moments as share_throughput
from (
    select
        tenant,
        at,
        sum(holds_gpus * speed - coalesce(was_throughput, 0)) as throughput,
        sum(entitlement_gpus * speed - coalesce(was_due, 0)) as due_throughput,
        sum(usable_gpus * speed - coalesce(was_share, 0)) as share_throughput
    from (
        select
            tenant,
            at,
            holds_gpus,
            entitlement_gpus,
            usable_gpus,
            speed::numeric as speed,
            lag(holds_gpus * speed::numeric) over pools as was_throughput,
            lag(entitlement_gpus * speed::numeric) over pools as was_due,
            lag(usable_gpus * speed::numeric) over pools as was_share
        from entitlement_history
        window pools as (partition by tenant, pool order by at)
    ) rows_and_before
    group by tenant, at
) changes
window moments as (partition by tenant order by at)
order by tenant, at;

comment on view effective_throughput_over_time is 'Throughput of every tenant''s GPUs beside that of its share by weight, oldest first, to a minute (settable). Throughputs are in GPUs of the reference model.';
comment on column effective_throughput_over_time.tenant is 'The tenant.';
comment on column effective_throughput_over_time.from_at is 'From when.';
comment on column effective_throughput_over_time.until_at is 'Until when; null = still.';
comment on column effective_throughput_over_time.throughput is 'Of the GPUs that its jobs held.';
comment on column effective_throughput_over_time.due_throughput is 'Of the GPUs that it was due after policy and trades.';
comment on column effective_throughput_over_time.share_throughput is 'Of the part of its share by weight that its active jobs could use.';

create or replace view effective_throughput_per_day as
select
    day,
    tenant,
    round(sum(throughput * seconds) / 3600, 6) as throughput_hours,
    round(sum(due_throughput * seconds) / 3600, 6) as due_hours,
    round(sum(share_throughput * seconds) / 3600, 6) as share_hours,
    round(sum(throughput * seconds) / nullif(sum(share_throughput * seconds), 0), 6) as ratio
from (
    select
        d.day::date as day,
        t.tenant,
        t.throughput,
        t.due_throughput,
        t.share_throughput,
        extract(epoch from least(t.ended_at, d.day + interval '1 day') - greatest(t.from_at at time zone 'UTC', d.day)) as seconds
    from (
        select
            *,
            coalesce(until_at, (select max(at) from rounds)) at time zone 'UTC' as ended_at
        from effective_throughput_over_time
    ) t
    cross join lateral generate_series(date_trunc('day', t.from_at at time zone 'UTC'), t.ended_at, interval '1 day') as d (day)
) stretches
group by day, tenant
order by day desc, tenant;

comment on view effective_throughput_per_day is 'Throughput of every tenant''s GPUs beside that of its share by weight, summed by day.';
comment on column effective_throughput_per_day.day is 'Day, UTC.';
comment on column effective_throughput_per_day.tenant is 'The tenant.';
comment on column effective_throughput_per_day.throughput_hours is 'Of the GPUs that its jobs held: hours of a GPU of the reference model.';
comment on column effective_throughput_per_day.due_hours is 'Of the GPUs that it was due after policy and trades.';
comment on column effective_throughput_per_day.share_hours is 'Of the part of its share by weight that its active jobs could use.';
comment on column effective_throughput_per_day.ratio is 'throughput_hours over share_hours: below 1 it had less than its share; null = it had no share that it could use.';
