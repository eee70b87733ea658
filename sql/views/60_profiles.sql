create or replace view job_profiles as
select
    p.kind,
    p.beside,
    p.model,
    p.gang,
    p.source,
    p.rate,
    p.rate / nullif(s.rate, 0) as speedup,
    s.model as over_model,
    p.samples,
    p.spread,
    p.heard_at,
    p.basis
from profiles p
left join lateral (
    select
        o.rate,
        o.model
    from profiles o
    where (o.kind, o.beside, o.gang, o.source) = (p.kind, p.beside, p.gang, p.source)
    and o.rate > 0
    order by o.rate, o.model
    limit 1
) s on true
order by p.kind, p.beside, p.gang, p.model, p.source;

comment on view job_profiles is 'Throughput of each job type on each GPU model, declared and observed, as of the last round. Estimates have no rows: fairlease profiles computes them.';
comment on column job_profiles.kind is 'Job type: tenant/name; without a tenant it is a reference of the site for all tenants.';
comment on column job_profiles.beside is 'Job type that shares its GPUs; empty = none.';
comment on column job_profiles.model is 'GPU model.';
comment on column job_profiles.gang is 'GPUs of such a job.';
comment on column job_profiles.source is 'declared or observed. Enough observations replace a declaration.';
comment on column job_profiles.rate is 'Steps a second of the whole gang; 0 = it does not run there.';
comment on column job_profiles.speedup is 'The rate over that on the slowest model of the same source; null = nothing to compare with.';
comment on column job_profiles.over_model is 'That slowest model.';
comment on column job_profiles.samples is 'How many reports an observed rate is the average of.';
comment on column job_profiles.spread is 'Standard deviation of these, as a part of the rate.';
comment on column job_profiles.heard_at is 'Time of the newest report, or of the declaration; null = unknown.';
comment on column job_profiles.basis is 'Author of the declaration: file = the administrator, or a job.';
