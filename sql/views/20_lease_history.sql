create or replace view lease_history as
select
    l.job_key,
    l.slurm_id,
    l.term,
    l.tenant,
    l.user_name,
    l.class,
    l.state,
    l.pool,
    l.gpus,
    l.nodes,
    l.granted_at,
    l.started_at,
    l.ends_at,
    l.noticed_at,
    l.ended_at,
    l.ended_at - l.started_at as held,
    l.why,
    l.adopted,
    coalesce(l.gpu_ms, v.alloc_gpu_ms - l.alloc_from_gpu_ms) as gpu_ms,
    l.granted_round,
    l.ended_round,
    l.behind
from leases l
left join job_statuses v on v.job_key = l.job_key and l.ended_at is null
order by l.granted_at desc, l.job_key desc, l.term desc;

comment on view lease_history is 'Every lease, newest first.';
comment on column lease_history.job_key is 'Our own number of the job.';
comment on column lease_history.slurm_id is 'Slurm''s id.';
comment on column lease_history.term is 'Which of the job''s leases, from 1.';
comment on column lease_history.tenant is 'The tenant.';
comment on column lease_history.user_name is 'The user.';
comment on column lease_history.class is 'guaranteed, shared or opportunistic.';
comment on column lease_history.state is 'granted, active, noticed, ending or over.';
comment on column lease_history.pool is 'GPU model.';
comment on column lease_history.gpus is 'GPUs.';
comment on column lease_history.nodes is 'Nodes.';
comment on column lease_history.granted_at is 'When it was decided.';
comment on column lease_history.started_at is 'When it was first held.';
comment on column lease_history.ends_at is 'When the term ends.';
comment on column lease_history.noticed_at is 'When the job was told that it will not be renewed.';
comment on column lease_history.ended_at is 'When it really ended; null = in force. May lie ahead where the next term is granted already.';
comment on column lease_history.held is 'How long it was held; null = in force, or never held.';
comment on column lease_history.why is 'Why it ended: finished, renewed, reclaimed, requeued by others, taken back, lost, dropped (decided without effect), ...';
comment on column lease_history.adopted is 'The job ran before we gave it a lease.';
comment on column lease_history.gpu_ms is 'GPU time received under it, less what its end destroyed, also of earlier leases; for one in force up to the job''s last refreshed number; null = not known yet.';
comment on column lease_history.granted_round is 'Round that granted it.';
comment on column lease_history.ended_round is 'Round that noted its end.';
comment on column lease_history.behind is 'The job whose GPUs it takes over when that has ended; 0 = none.';
