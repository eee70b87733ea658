create or replace view tenant_fairness as
select
    tenant,
    pool,
    weight,
    entitlement_gpus,
    demand_gpus,
    holds_gpus,
    borrowed_gpus,
    lent_gpus,
    waiting_jobs,
    rho,
    rho_all,
    span(behind_ms) as behind,
    deficit_gpu_ms,
    owed_gpu_ms,
    gpu_hours(owed_gpu_ms) as owed_gpu_hours,
    repays_gpus,
    even_in(owed_gpu_ms, repays_gpus, holds_gpus - entitlement_gpus + repays_gpus) as even_in,
    window_alloc_gpu_ms,
    window_due_gpu_ms,
    alloc_gpu_ms,
    due_gpu_ms,
    gpu_hours(alloc_gpu_ms) as alloc_gpu_hours,
    gpu_hours(due_gpu_ms) as due_gpu_hours,
    window_alloc_gpu_ms + window_extra_gpu_ms as window_work_gpu_ms,
    window_due_gpu_ms + window_extra_due_gpu_ms as window_work_due_gpu_ms,
    alloc_gpu_ms + extra_gpu_ms as work_gpu_ms,
    due_gpu_ms + extra_due_gpu_ms as work_due_gpu_ms,
    max(at) over () as as_of
from ledger
order by tenant, pool;

comment on view tenant_fairness is 'Fairness as of the last round: every tenant in every pool. rho near 1 = the tenant gets its due.';
comment on column tenant_fairness.tenant is 'The tenant.';
comment on column tenant_fairness.pool is 'GPU model.';
comment on column tenant_fairness.weight is 'Compares tenants; 0 = only idle GPUs.';
comment on column tenant_fairness.entitlement_gpus is 'GPUs that it is due now if it wants them.';
comment on column tenant_fairness.demand_gpus is 'GPUs that its active jobs ask for.';
comment on column tenant_fairness.holds_gpus is 'GPUs that its jobs hold.';
comment on column tenant_fairness.borrowed_gpus is 'GPUs that it holds above its entitlement.';
comment on column tenant_fairness.lent_gpus is 'GPUs that it is due and others hold.';
comment on column tenant_fairness.waiting_jobs is 'Its waiting jobs.';
comment on column tenant_fairness.rho is 'GPU time received over GPU time due, over the window; Infinity = received without being due. Where a policy divides GPU models it is work received over work due, of all pools together.';
comment on column tenant_fairness.rho_all is 'The same since the beginning.';
comment on column tenant_fairness.behind is 'How far it is behind, as time at its entitlement; negative = ahead; null = it is due nothing.';
comment on column tenant_fairness.deficit_gpu_ms is 'How far it is behind its entitlement, in GPU time; negative = ahead. Selects the tenant that goes next; bounded by credit.cap.';
comment on column tenant_fairness.owed_gpu_ms is 'GPU time that others had of its due while it wanted that; negative = GPU time that it had of others'' dues. Each pool sums to 0.';
comment on column tenant_fairness.owed_gpu_hours is 'The same in hours, rounded.';
comment on column tenant_fairness.repays_gpus is 'GPUs that it is given of others'' dues until it has that back; negative = that it gives. Part of entitlement_gpus.';
comment on column tenant_fairness.even_in is 'When nothing is owed any more at the pace at which GPUs are repaid now; null = never at this pace, or nothing is owed.';
comment on column tenant_fairness.window_alloc_gpu_ms is 'GPU time received in the window.';
comment on column tenant_fairness.window_due_gpu_ms is 'GPU time due in the window.';
comment on column tenant_fairness.alloc_gpu_ms is 'GPU time received since the beginning.';
comment on column tenant_fairness.due_gpu_ms is 'GPU time due since the beginning.';
comment on column tenant_fairness.alloc_gpu_hours is 'The same as alloc_gpu_ms, in hours, rounded.';
comment on column tenant_fairness.due_gpu_hours is 'The same as due_gpu_ms, in hours, rounded.';
comment on column tenant_fairness.window_work_gpu_ms is 'Work received in the window: GPU time times the speedup of the pool for the tenant''s jobs, in GPU time of the reference model. GPU time where no policy divides GPU models.';
comment on column tenant_fairness.window_work_due_gpu_ms is 'Work due in the window: that of its share by weight, where its jobs could use that.';
comment on column tenant_fairness.work_gpu_ms is 'Work received since the beginning.';
comment on column tenant_fairness.work_due_gpu_ms is 'Work due since the beginning.';
comment on column tenant_fairness.as_of is 'Up to when all this is charged.';
