create or replace view audits_per_day as
select
    a.day,
    a.at,
    a.policy,
    a.pareto_slack,
    t.least_sharing_incentive,
    e.most_envy,
    t.most_gained_by_more,
    t.most_gained_by_less,
    jsonb_array_length(a.misreports) as misreports
from audits a
cross join lateral (
    select
        min(incentive) as least_sharing_incentive,
        max(more) as most_gained_by_more,
        max(less) as most_gained_by_less
    from jsonb_to_recordset(a.tenants) as x (incentive double precision, more double precision, less double precision)
) t
cross join lateral (
    select max(ratio) as most_envy
    from jsonb_to_recordset(a.envy) as x (ratio double precision)
) e
order by a.day desc;

comment on view audits_per_day is 'Fairness of the division of heterogeneous GPU models, computed once a day, newest first: the worst values.';
comment on column audits_per_day.day is 'Day, UTC.';
comment on column audits_per_day.at is 'The round that was audited.';
comment on column audits_per_day.policy is 'The policy.';
comment on column audits_per_day.pareto_slack is 'Possible increase of total throughput with no tenant losing, as a fraction; 0 = Pareto efficient; null = not computed.';
comment on column audits_per_day.least_sharing_incentive is 'Minimum over tenants: throughput of the entitlement over that of a part of every model by weight; below 1 a tenant would have been better off alone.';
comment on column audits_per_day.most_envy is 'Maximum over tenants: throughput with another tenant''s GPUs over that with its own; above 1 a tenant was envious.';
comment on column audits_per_day.most_gained_by_more is 'The most that a tenant would gain, as a part, by speedups said to be a fifth higher than they are; null = not worked out.';
comment on column audits_per_day.most_gained_by_less is 'The same for a fifth lower.';
comment on column audits_per_day.misreports is 'Declared rates or speedups that observation does not bear out.';

create or replace view fairness_audit as
select
    a.day,
    t.tenant,
    t.incentive as sharing_incentive,
    e.most_envy,
    e.envies,
    t.more as gained_by_more,
    t.less as gained_by_less,
    a.policy,
    a.at
from audits a
cross join lateral jsonb_to_recordset(a.tenants) as t (tenant text, incentive double precision, more double precision, less double precision)
left join lateral (
    select
        x.ratio as most_envy,
        x.of as envies
    from jsonb_to_recordset(a.envy) as x (tenant text, "of" text, ratio double precision)
    where x.tenant = t.tenant
    order by x.ratio desc, x.of
    limit 1
) e on true
order by a.day desc, t.tenant;

comment on view fairness_audit is 'Fairness of the division of heterogeneous GPU models to every tenant, computed once a day, newest first. Ratios are at most 1000000.';
comment on column fairness_audit.day is 'Day, UTC.';
comment on column fairness_audit.tenant is 'The tenant.';
comment on column fairness_audit.sharing_incentive is 'Throughput of its entitlement over that of a part of every model by weight; below 1 it would have been better off alone (OEF section 2.3.1).';
comment on column fairness_audit.most_envy is 'Throughput with the GPUs of the tenant that it envies most, scaled by weight, over its own; above 1 it was envious.';
comment on column fairness_audit.envies is 'That tenant.';
comment on column fairness_audit.gained_by_more is 'Gain, as a fraction, from declaring speedups that are a fifth too high; negative = loss; null = not computed.';
comment on column fairness_audit.gained_by_less is 'The same for a fifth lower.';
comment on column fairness_audit.policy is 'The policy.';
comment on column fairness_audit.at is 'The round that was audited.';

create or replace view envy_matrix as
select
    a.day,
    e.tenant,
    e.of as of_tenant,
    e.ratio
from audits a
cross join lateral jsonb_to_recordset(a.envy) as e (tenant text, "of" text, ratio double precision)
order by a.day desc, e.tenant, e.of;

comment on view envy_matrix is 'Envy between tenants, computed once a day, newest first.';
comment on column envy_matrix.day is 'Day, UTC.';
comment on column envy_matrix.tenant is 'The tenant.';
comment on column envy_matrix.of_tenant is 'Another.';
comment on column envy_matrix.ratio is 'Throughput of the first with the GPUs of the other, scaled by weight, over its own; above 1 it was envious.';

create or replace view suspected_misreports as
select
    a.day,
    m.kind,
    m.model,
    m.than as over_model,
    m.gang,
    m.by,
    m.said,
    m.seen,
    m.spread,
    m.samples
from audits a
cross join lateral jsonb_to_recordset(a.misreports) as m (
    kind text, model text, than text, gang integer, "by" text, said double precision, seen double precision, spread double precision, samples integer
)
order by a.day desc, m.kind, m.model, m.than nulls first, m.gang;

comment on view suspected_misreports is 'Declared rates and speedups that observations contradict, computed once a day, newest first. Observations count.';
comment on column suspected_misreports.day is 'Day, UTC.';
comment on column suspected_misreports.kind is 'Job type.';
comment on column suspected_misreports.model is 'GPU model.';
comment on column suspected_misreports.over_model is 'A speedup over this model is meant; null = the rate itself.';
comment on column suspected_misreports.gang is 'GPUs of such a job.';
comment on column suspected_misreports.by is 'Author of the declaration: file = the administrator, or a job.';
comment on column suspected_misreports.said is 'Declared value.';
comment on column suspected_misreports.seen is 'Observed value.';
comment on column suspected_misreports.spread is 'Standard deviation of that, as a part.';
comment on column suspected_misreports.samples is 'How many reports it is the average of.';
