create or replace view sharing_loss as
select
    'tenant' as scope,
    tenant,
    case when not exists (select from entitlements) then pool end as pool,
    null::text as slurm_id,
    null::text as user_name,
    null::text as state,
    rho,
    sum(window_work_gpu_ms) as received_gpu_ms,
    sum(window_work_due_gpu_ms) as due_gpu_ms,
    sum(window_work_due_gpu_ms - window_work_gpu_ms) as missing_gpu_ms
from tenant_fairness
where rho < 0.95
group by 1, 2, 3, rho
having sum(window_work_due_gpu_ms) > 0
union all
select
    'job',
    tenant,
    null,
    slurm_id,
    user_name,
    state,
    rho,
    work_gpu_ms,
    work_due_gpu_ms,
    work_due_gpu_ms - work_gpu_ms
from job_fairness
where rho < 0.95
and work_due_gpu_ms > 0
order by scope desc, missing_gpu_ms desc;

comment on view sharing_loss is 'Tenants and jobs that get less than 95 % of their due (ASTRAEA section 6.3): tenants over the window, then jobs, most missing first. A job that waits for its first lease is listed with rho 0.';
comment on column sharing_loss.scope is 'tenant or job.';
comment on column sharing_loss.tenant is 'The tenant.';
comment on column sharing_loss.pool is 'GPU model; null for a job, and where a policy divides GPU models: then all together.';
comment on column sharing_loss.slurm_id is 'Slurm''s id; null for a tenant.';
comment on column sharing_loss.user_name is 'The job''s user; null for a tenant.';
comment on column sharing_loss.state is 'The job''s state; null for a tenant.';
comment on column sharing_loss.rho is 'Received over due.';
comment on column sharing_loss.received_gpu_ms is 'GPU time received; work where a policy divides GPU models.';
comment on column sharing_loss.due_gpu_ms is 'GPU time due, or work.';
comment on column sharing_loss.missing_gpu_ms is 'GPU time missing, or work.';

create or replace view sharing_loss_summary as
with done as (
    select
        tenant,
        count(*) as jobs,
        count(*) filter (where rho < 0.95) as in_loss
    from job_fairness
    where state = 'done'
    and work_due_gpu_ms > 0
    group by tenant
),
slices as (
    select
        tenant,
        count(*) as slices,
        count(*) filter (where rho < 1) as in_loss
    from tenant_fairness_over_time
    where work_due_gpu_ms > 0
    group by tenant
)
select
    tenant,
    coalesce(done.jobs, 0) as jobs_done,
    coalesce(done.in_loss, 0) as jobs_in_loss,
    round(100.0 * done.in_loss / done.jobs, 1) as jobs_in_loss_percent,
    coalesce(slices.slices, 0) as slices,
    coalesce(slices.in_loss, 0) as slices_in_loss,
    round(100.0 * slices.in_loss / slices.slices, 1) as slices_in_loss_percent
from done
full join slices using (tenant)
order by tenant;

comment on view sharing_loss_summary is 'How many of a tenant''s finished jobs ended with rho < 0.95, and in how many slices of time it got less than it was due (ASTRAEA section 6.3).';
comment on column sharing_loss_summary.tenant is 'The tenant.';
comment on column sharing_loss_summary.jobs_done is 'Its finished jobs that were due GPU time.';
comment on column sharing_loss_summary.jobs_in_loss is 'Of these, jobs with rho < 0.95.';
comment on column sharing_loss_summary.jobs_in_loss_percent is 'The same in per cent; null = no job.';
comment on column sharing_loss_summary.slices is 'Slices of time (by pool) in which it was due GPU time.';
comment on column sharing_loss_summary.slices_in_loss is 'Of these, slices with rho < 1.';
comment on column sharing_loss_summary.slices_in_loss_percent is 'The same in per cent; null = no slice.';
