create or replace view tenant_fairness_over_time as
select
    tenant,
    pool,
    start_at as from_at,
    lead(start_at) over slices as until_at,
    alloc_gpu_ms,
    due_gpu_ms,
    case
        when exists (select from entitlements) then rho(sum(work_gpu_ms) over slice_of_all, sum(work_due_gpu_ms) over slice_of_all)
        else rho(work_gpu_ms, work_due_gpu_ms)
    end as rho,
    sum(alloc_gpu_ms) over slices as alloc_so_far_gpu_ms,
    sum(due_gpu_ms) over slices as due_so_far_gpu_ms,
    case
        when exists (select from entitlements) then rho(sum(work_gpu_ms) over slices_of_all, sum(work_due_gpu_ms) over slices_of_all)
        else rho(sum(work_gpu_ms) over slices, sum(work_due_gpu_ms) over slices)
    end as rho_so_far,
    work_gpu_ms,
    work_due_gpu_ms
from (
    select
        *,
        alloc_gpu_ms::numeric + extra_gpu_ms as work_gpu_ms,
        due_gpu_ms::numeric + extra_due_gpu_ms as work_due_gpu_ms
    from window_buckets
) b
window
    slices as (partition by tenant, pool order by start_at),
    slice_of_all as (partition by tenant, start_at),
    slices_of_all as (partition by tenant order by start_at)
order by tenant, pool, start_at;

comment on view tenant_fairness_over_time is 'How fair it was, slice by slice: disjoint periods, and beside each everything up to its end. For curves by the minute see tenant_history.';
comment on column tenant_fairness_over_time.tenant is 'The tenant.';
comment on column tenant_fairness_over_time.pool is 'GPU model.';
comment on column tenant_fairness_over_time.from_at is 'Beginning of the slice.';
comment on column tenant_fairness_over_time.until_at is 'Beginning of the next slice; null = this is the newest.';
comment on column tenant_fairness_over_time.alloc_gpu_ms is 'GPU time received in the slice.';
comment on column tenant_fairness_over_time.due_gpu_ms is 'GPU time due in the slice.';
comment on column tenant_fairness_over_time.rho is 'Received over due in the slice; null = neither. Where a policy divides GPU models it is work of all pools together.';
comment on column tenant_fairness_over_time.alloc_so_far_gpu_ms is 'GPU time received in all slices kept, up to this one.';
comment on column tenant_fairness_over_time.due_so_far_gpu_ms is 'GPU time due in all slices kept, up to this one.';
comment on column tenant_fairness_over_time.rho_so_far is 'Received over due in all slices kept, up to this one.';
comment on column tenant_fairness_over_time.work_gpu_ms is 'Work received in the slice: GPU time times the speedup at the time, in GPU time of the reference model.';
comment on column tenant_fairness_over_time.work_due_gpu_ms is 'Work due in the slice.';
