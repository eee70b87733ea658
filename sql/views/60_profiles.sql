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

comment on view job_profiles is 'How fast each kind of job is on each GPU model, as declared and as observed, as of the last round. Estimates are no rows: fairlease profiles makes them.';
comment on column job_profiles.kind is 'Kind of jobs: tenant/name; without a tenant it is the site''s, a reference for everybody.';
comment on column job_profiles.beside is 'Kind of the jobs that share its GPUs; empty = it has them to itself.';
comment on column job_profiles.model is 'GPU model.';
comment on column job_profiles.gang is 'GPUs of such a job.';
comment on column job_profiles.source is 'declared or observed. What was observed often enough goes before what was declared.';
comment on column job_profiles.rate is 'Steps a second of the whole gang; 0 = it does not run there.';
comment on column job_profiles.speedup is 'The rate over that on the slowest model of the same source; null = nothing to compare with.';
comment on column job_profiles.over_model is 'That slowest model.';
comment on column job_profiles.samples is 'How many reports an observed rate is the average of.';
comment on column job_profiles.spread is 'Standard deviation of these, as a part of the rate.';
comment on column job_profiles.heard_at is 'When the newest was heard, or the declaration was made; null = not known.';
comment on column job_profiles.basis is 'Who declared it: file = the administrator, or a job.';
