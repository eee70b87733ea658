create or replace view job_fairness as
select
    j.key as job_key,
    j.slurm_id,
    j.name,
    j.tenant,
    j.user_name,
    j.state,
    j.gpus,
    j.terms,
    coalesce(v.alloc_gpu_ms, j.alloc_gpu_ms) as alloc_gpu_ms,
    coalesce(v.due_gpu_ms, j.due_gpu_ms) as due_gpu_ms,
    rho(
        coalesce(v.alloc_gpu_ms::numeric + v.extra_gpu_ms, j.alloc_gpu_ms::numeric + j.extra_gpu_ms),
        coalesce(v.due_gpu_ms::numeric + v.extra_due_gpu_ms, j.due_gpu_ms::numeric + j.extra_due_gpu_ms)
    ) as rho,
    j.lost_gpu_ms,
    coalesce(j.done_at, v.at) - j.eligible_at as age,
    coalesce(v.at, j.recorded_at) as as_of,
    coalesce(v.alloc_gpu_ms + v.extra_gpu_ms, j.alloc_gpu_ms + j.extra_gpu_ms) as work_gpu_ms,
    coalesce(v.due_gpu_ms + v.extra_due_gpu_ms, j.due_gpu_ms + j.extra_due_gpu_ms) as work_due_gpu_ms
from jobs j
left join job_statuses v on v.job_key = j.key
order by j.key desc;

comment on view job_fairness is 'Fairness to every job, newest first: GPU time received against GPU time due.';
comment on column job_fairness.job_key is 'Our own number of the job.';
comment on column job_fairness.slurm_id is 'Slurm''s id.';
comment on column job_fairness.name is 'Job name.';
comment on column job_fairness.tenant is 'The tenant.';
comment on column job_fairness.user_name is 'The user.';
comment on column job_fairness.state is 'waiting, running, suspended, completing or done.';
comment on column job_fairness.gpus is 'GPUs asked for.';
comment on column job_fairness.terms is 'Leases so far.';
comment on column job_fairness.alloc_gpu_ms is 'GPU time received.';
comment on column job_fairness.due_gpu_ms is 'GPU time due.';
comment on column job_fairness.rho is 'Received over due; null = neither yet. Where a policy divides GPU models it is work over work.';
comment on column job_fairness.lost_gpu_ms is 'GPU time that stops destroyed; not received.';
comment on column job_fairness.age is 'Time since it first could have started, up to its end; null = it never could.';
comment on column job_fairness.as_of is 'As of when the numbers are: a live job''s are refreshed every few minutes and when its lease begins or ends.';
comment on column job_fairness.work_gpu_ms is 'Work received: GPU time times the speedup of the model for the job''s type, in GPU time of the reference model.';
comment on column job_fairness.work_due_gpu_ms is 'Work due.';
