create or replace view tenant_fairness_over_time as
select
    tenant,
    pool,
    start_at as from_at,
    lead(start_at) over slices as until_at,
    alloc_gpu_ms,
    due_gpu_ms,
    rho(alloc_gpu_ms, due_gpu_ms) as rho,
    sum(alloc_gpu_ms) over slices as alloc_so_far_gpu_ms,
    sum(due_gpu_ms) over slices as due_so_far_gpu_ms,
    rho(sum(alloc_gpu_ms) over slices, sum(due_gpu_ms) over slices) as rho_so_far
from window_buckets
window slices as (partition by tenant, pool order by start_at)
order by tenant, pool, start_at;

comment on view tenant_fairness_over_time is 'How fair it was, slice by slice: disjoint periods, and beside each everything up to its end. For curves by the minute see tenant_history.';
comment on column tenant_fairness_over_time.tenant is 'The tenant.';
comment on column tenant_fairness_over_time.pool is 'GPU model.';
comment on column tenant_fairness_over_time.from_at is 'Beginning of the slice.';
comment on column tenant_fairness_over_time.until_at is 'Beginning of the next slice; null = this is the newest.';
comment on column tenant_fairness_over_time.alloc_gpu_ms is 'GPU time received in the slice.';
comment on column tenant_fairness_over_time.due_gpu_ms is 'GPU time due in the slice.';
comment on column tenant_fairness_over_time.rho is 'Received over due in the slice; null = neither.';
comment on column tenant_fairness_over_time.alloc_so_far_gpu_ms is 'GPU time received in all slices kept, up to this one.';
comment on column tenant_fairness_over_time.due_so_far_gpu_ms is 'GPU time due in all slices kept, up to this one.';
comment on column tenant_fairness_over_time.rho_so_far is 'Received over due in all slices kept, up to this one.';
