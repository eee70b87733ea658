-- +goose Up

-- Requeues that fairlease did not order.

alter table jobs
    add column if not exists others_requeues bigint,
    add column if not exists others_preempted bigint,
    add column if not exists others_requeued_at timestamptz,
    add column if not exists others_requeue_cause text,
    add column if not exists others_requeue_node text;
comment on column jobs.others_requeues is 'How many of its restarts fairlease did not order; null = none. Without others_preempted, they are nobody''s preemption.';
comment on column jobs.others_preempted is 'How many of others_requeues may have been preemptions by Slurm: where it preempts by itself, or fairlease only observes; null = none.';
comment on column jobs.others_requeued_at is 'When the newest of them was seen; null = there was none.';
comment on column jobs.others_requeue_cause is 'The cause of the newest: node (its node failed or was drained), slurm (Slurm itself, its owner or an administrator), or null (its owner or an administrator).';
comment on column jobs.others_requeue_node is 'The node that had failed; null = none.';
