create or replace view gpu_hours as
select
    day,
    tenant,
    user_name,
    pool as model,
    gpu_ms,
    gpu_hours(gpu_ms) as gpu_hours
from charges
order by day desc, tenant, user_name, pool;

comment on view gpu_hours is 'GPU time charged, by day, tenant, user and GPU model. Sums agree with the ledger to the GPU-millisecond.';
comment on column gpu_hours.day is 'Day, UTC. A lease across midnight is split where midnight was.';
comment on column gpu_hours.tenant is 'The tenant.';
comment on column gpu_hours.user_name is 'The user; empty = charged to the tenant, but to no job that was still known.';
comment on column gpu_hours.model is 'GPU model.';
comment on column gpu_hours.gpu_ms is 'GPU-milliseconds, exact: add up these.';
comment on column gpu_hours.gpu_hours is 'The same in hours, rounded to millionths.';
