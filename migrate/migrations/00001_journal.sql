-- +goose Up

-- +goose StatementBegin
do $$
begin
    execute format('comment on schema %I is %L', current_schema(), 'The journal of fairlease: its observations, decisions and actions, round by round. Only the leading daemon writes it, but administrators write overrides (through the CLI) and database_users. Read the views; tables may change between versions. Put views of your own into another schema: every upgrade drops views here that fairlease does not know. Names end in their units: _gpu_ms is GPU-milliseconds, _ms milliseconds, _gpus GPUs. Times named _at or _until are the cluster''s unless their comment says that the database stamped them.');
end
$$;
-- +goose StatementEnd

comment on table schema_version is 'Which schema migrations were applied. Written by `fairlease migrate`.';
comment on column schema_version.id is 'Order of application.';
comment on column schema_version.version_id is 'Number of the migration; 0 stands for the empty schema.';
comment on column schema_version.is_applied is 'Always true: there is no way back.';
comment on column schema_version.tstamp is 'When it was applied, by the database''s clock, in the session''s time zone.';

create table leaders (
    term bigint generated always as identity primary key,
    holder text not null,
    acquired_at timestamptz not null default clock_timestamp(),
    renewed_at timestamptz not null default clock_timestamp(),
    takeover_after interval not null,
    ended_at timestamptz,
    why text,
    schema_version bigint not null,
    turns bigint not null default 0
);
create unique index leaders_one_leads on leaders ((true)) where (ended_at is null);
comment on table leaders is 'Leaders and their terms. At most one row has no end: its holder leads. Only that term can write rounds.';
comment on index leaders_one_leads is 'No two holders lead at once.';
comment on column leaders.term is 'Number of this time in the lead, given by the database; grows, never repeats.';
comment on column leaders.holder is 'The leader: host and process, as the daemon named itself.';
comment on column leaders.acquired_at is 'When the holder began to lead, by the database''s clock.';
comment on column leaders.renewed_at is 'Last sign of life, by the database''s clock: every commit is one.';
comment on column leaders.takeover_after is 'How long after the last sign of life another daemon may lead.';
comment on column leaders.ended_at is 'When the holder resigned or was replaced, by the database''s clock; null while it leads.';
comment on column leaders.why is 'How it ended: "resigned", "taken over", "crashed", "migrated" (the schema was brought to a newer version) or "skipped" (a number that was given before a dump was restored).';
comment on column leaders.schema_version is 'Version of the schema that the holder was made for. It commits to no other.';
comment on column leaders.turns is 'Turns of the holder that succeeded in this term, those too that found nothing to do: while it grows, leases are granted.';

create table rounds (
    number bigint not null,
    at timestamptz not null,
    leader_term bigint not null references leaders (term),
    preset text not null,
    nodes bigint not null,
    nodes_bad bigint not null,
    gpus bigint not null,
    tenants bigint not null,
    jobs bigint not null,
    jobs_running bigint not null,
    jobs_waiting bigint not null,
    leases bigint not null,
    leases_ended bigint not null,
    claims bigint not null,
    actions bigint not null,
    actions_suppressed bigint not null,
    events bigint not null,
    recorded_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    acting_ms bigint,
    jobs_aside bigint not null default 0,
    gates bigint not null default 0,
    constraint rounds_by primary key (number, at)
) partition by range (at);
create table rounds_other partition of rounds default;
create index rounds_recorded_at on rounds (recorded_at);
comment on table rounds is 'One row for each recorded decision. Rounds in which nothing changed leave no row.';
comment on index rounds_recorded_at is 'For pruning by age.';
comment on column rounds.number is 'Number of the round; grows, never repeats, may skip.';
comment on column rounds.at is 'When the cluster was looked at, by the daemon''s clock.';
comment on column rounds.leader_term is 'Term of the leader that decided it.';
comment on column rounds.preset is 'Preset of the engine that decided.';
comment on column rounds.nodes is 'GPU nodes seen.';
comment on column rounds.nodes_bad is 'Of these, nodes whose GPUs were no capacity (down, drained, not responding).';
comment on column rounds.gpus is 'GPUs on healthy nodes.';
comment on column rounds.tenants is 'Tenants known.';
comment on column rounds.jobs is 'Live jobs seen.';
comment on column rounds.jobs_running is 'Of these, running ones.';
comment on column rounds.jobs_waiting is 'Of these, waiting ones.';
comment on column rounds.leases is 'Leases in force after the decision.';
comment on column rounds.leases_ended is 'Leases that ended in this round.';
comment on column rounds.claims is 'Claims in force after the decision.';
comment on column rounds.actions is 'Actions decided.';
comment on column rounds.actions_suppressed is 'Of these, actions recorded but not carried out (mode or partition).';
comment on column rounds.events is 'Events noted.';
comment on column rounds.recorded_at is 'When the round was written down, by the database''s clock.';
comment on column rounds.settled_at is 'When the outcomes of its actions were written down, by the database''s clock; null until then.';
comment on column rounds.acting_ms is 'Time that its actions took together; null until settled.';
comment on column rounds.jobs_aside is 'Number of jobs set aside, because their records cannot be read or because the engine or the journal failed on them.';
comment on column rounds.gates is 'Number of actions that shut or renewed gates of waiting jobs as usual. They have no rows in actions unless they failed.';

create table round_blobs (
    round bigint not null,
    keyframe bigint not null,
    snapshot bytea not null,
    plan bytea not null,
    snapshot_bytes bigint not null,
    plan_bytes bigint not null,
    at timestamptz not null default now(),
    link integer not null,
    constraint round_blobs_by primary key (round, at)
) partition by range (at);
alter table round_blobs alter column snapshot set storage external;
alter table round_blobs alter column plan set storage external;
create table round_blobs_other partition of round_blobs default;
create index round_blobs_keyframe_link on round_blobs (keyframe, link);
comment on table round_blobs is 'Input and outcome of each round, for replay; a new daemon goes on from the state in the newest plan. Stored as columns of numbers, as differences from what the round before predicts, compressed with zstd; read with `fairlease replay`. Pruned by age.';
comment on index round_blobs_keyframe_link is 'Finds the rounds that belong to a keyframe, in order.';
comment on column round_blobs.round is 'The round.';
comment on column round_blobs.keyframe is 'First of the rounds that must be read, in order, to restore this one; the round''s own number where it is stored complete.';
comment on column round_blobs.snapshot is 'All that the engine knew: cluster.Snapshot.';
comment on column round_blobs.plan is 'All that the engine wanted: cluster.Plan.';
comment on column round_blobs.snapshot_bytes is 'Length of the uncompressed snapshot.';
comment on column round_blobs.plan_bytes is 'Length of the uncompressed plan.';
comment on column round_blobs.at is 'Time of the round.';
comment on column round_blobs.link is 'Number of rounds since the keyframe; each of them is stored as the difference from the one before.';

create table tenants (
    name text primary key,
    weight bigint not null,
    gone_at timestamptz,
    recorded_at timestamptz not null default now()
);
comment on table tenants is 'Every tenant ever seen: a Slurm account at the configured level.';
comment on column tenants.name is 'Name of the account.';
comment on column tenants.weight is 'Compares tenants, only ratios matter; 0 = only idle GPUs.';
comment on column tenants.gone_at is 'When it was first missing; null while it is there.';
comment on column tenants.recorded_at is 'When the row was last written, by the database''s clock.';

create table nodes (
    name text primary key,
    gpus jsonb not null,
    cpus bigint not null,
    memory_mb bigint not null,
    partitions text[] not null,
    features text[] not null,
    bad text not null,
    busy text not null,
    gone_at timestamptz,
    recorded_at timestamptz not null default now()
);
comment on table nodes is 'Every GPU node ever seen, as it was seen last.';
comment on column nodes.name is 'Name in Slurm.';
comment on column nodes.gpus is 'GPUs by model, drained ones taken off: [{"model": "h100", "count": 8}].';
comment on column nodes.cpus is 'CPUs.';
comment on column nodes.memory_mb is 'Memory, megabytes.';
comment on column nodes.partitions is 'Partitions that it belongs to.';
comment on column nodes.features is 'Slurm features.';
comment on column nodes.bad is 'Why its GPUs are no capacity at all; empty = healthy.';
comment on column nodes.busy is 'Why nothing can be granted there for the moment though it is healthy; empty = grantable.';
comment on column nodes.gone_at is 'When it was first missing; null while it is there.';
comment on column nodes.recorded_at is 'When the row last changed, by the database''s clock.';

create table jobs (
    key bigint primary key,
    slurm_id text not null,
    slurm_job bigint not null,
    name text not null,
    user_name text not null,
    account text not null,
    tenant text not null,
    qos text not null,
    partitions text[] not null,
    state text not null,
    inactive text not null,
    outcome text not null,
    control text not null,
    control_why text not null,
    gpus bigint not null,
    model text not null,
    nodes bigint not null,
    cpus bigint not null,
    memory_mb bigint not null,
    limit_ms bigint not null,
    submitted_at timestamptz,
    eligible_at timestamptz,
    done_at timestamptz,
    user_begin_at timestamptz,
    restarts bigint not null,
    terms bigint not null,
    failed bigint not null,
    avoid_until timestamptz,
    said text not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    lost_gpu_ms bigint not null,
    recorded_at timestamptz not null default now(),
    extra_gpu_ms bigint not null default 0,
    extra_due_gpu_ms bigint not null default 0,
    others_requeues bigint,
    others_preempted bigint,
    others_requeued_at timestamptz,
    others_requeue_cause text,
    others_requeue_node text
);
create index jobs_done_at on jobs (done_at);
create index jobs_slurm_job on jobs (slurm_job, key);
comment on table jobs is 'Every job or array task ever seen with GPUs in our care. A row is written when something about the job changes, not every round.';
comment on index jobs_done_at is 'For pruning by age.';
comment on index jobs_slurm_job is 'For looking up a job by the id that users know.';
comment on column jobs.key is 'Our own number of the job. Slurm''s ids come round again, keys never do.';
comment on column jobs.slurm_id is 'Slurm''s id as users write it: 123, or 123_4 for an array task.';
comment on column jobs.slurm_job is 'The number before the underscore.';
comment on column jobs.name is 'Job name.';
comment on column jobs.user_name is 'User that submitted it.';
comment on column jobs.account is 'Slurm account that it runs under.';
comment on column jobs.tenant is 'Tenant that it counts as; empty = none.';
comment on column jobs.qos is 'Slurm QOS.';
comment on column jobs.partitions is 'Partitions asked for.';
comment on column jobs.state is 'waiting, running, suspended, completing or done.';
comment on column jobs.inactive is 'Why it could not start even on an empty cluster (held, dependency, ...); empty = it could.';
comment on column jobs.outcome is 'Slurm''s final state of a done job (COMPLETED, TIMEOUT, ...); empty before, or where it was not seen.';
comment on column jobs.control is 'Control of fairlease over it: act, watch (record only), keep (never requeue), leave (only count its GPUs as taken).';
comment on column jobs.control_why is 'Why it is not act, in words.';
comment on column jobs.gpus is 'GPUs asked for: all or none.';
comment on column jobs.model is 'GPU model asked for; empty = any.';
comment on column jobs.nodes is 'Least number of nodes asked for; 0 = not said.';
comment on column jobs.cpus is 'CPUs asked for, in all.';
comment on column jobs.memory_mb is 'Memory asked for, in all, megabytes.';
comment on column jobs.limit_ms is 'Time limit as Slurm shows it now; 0 = none.';
comment on column jobs.submitted_at is 'Time of submission or of the last requeue, from Slurm.';
comment on column jobs.eligible_at is 'When it first could have started; null = not yet.';
comment on column jobs.done_at is 'When it was seen finished or gone; null while it lives.';
comment on column jobs.user_begin_at is 'The user''s own --begin; null = none.';
comment on column jobs.restarts is 'How often Slurm has requeued it.';
comment on column jobs.terms is 'Leases so far.';
comment on column jobs.failed is 'Grants in a row that did not start.';
comment on column jobs.avoid_until is 'Until when it is passed over after a failed grant; null = it is not.';
comment on column jobs.said is 'Slurm''s words about the failed grant.';
comment on column jobs.alloc_gpu_ms is 'GPU time received (ASTRAEA eq. 2), as of recorded_at. While the job lives, job_statuses has a fresher number.';
comment on column jobs.due_gpu_ms is 'GPU time due (ASTRAEA eq. 14), as of recorded_at. While the job lives, job_statuses has a fresher number.';
comment on column jobs.lost_gpu_ms is 'GPU time that fairlease''s stops destroyed so far; not part of alloc_gpu_ms. Without a stop budget: what came after notices, and part of it.';
comment on column jobs.recorded_at is 'When the row was last written, by the database''s clock.';
comment on column jobs.extra_gpu_ms is 'Work received beyond the GPU time, by the speedup of the model for the job''s type. 0 where no policy divides GPU models.';
comment on column jobs.extra_due_gpu_ms is 'Work due beyond the GPU time due.';
comment on column jobs.others_requeues is 'How many of its restarts fairlease did not order; null = none. Without others_preempted, they are nobody''s preemption.';
comment on column jobs.others_preempted is 'How many of others_requeues may have been preemptions by Slurm: where it preempts by itself, or fairlease only observes; null = none.';
comment on column jobs.others_requeued_at is 'When the newest of them was seen; null = there was none.';
comment on column jobs.others_requeue_cause is 'The cause of the newest: node (its node failed or was drained), slurm (Slurm itself, its owner or an administrator), or null (its owner or an administrator).';
comment on column jobs.others_requeue_node is 'The node that had failed; null = none.';

create table job_statuses (
    job_key bigint primary key,
    round bigint not null,
    at timestamptz not null,
    code text not null,
    pool text not null,
    need_gpus bigint not null,
    free_gpus bigint not null,
    behind_ms bigint not null,
    other text not null,
    other_behind_ms bigint not null,
    rank bigint not null,
    until_at timestamptz,
    for_job bigint,
    note text not null,
    rho numeric not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    gate_until timestamptz,
    cell text not null default '',
    chain text not null default '',
    for_right text not null default '',
    queue text not null default '',
    other_job bigint,
    slurm_says text not null default '',
    details jsonb,
    extra_gpu_ms bigint not null default 0,
    extra_due_gpu_ms bigint not null default 0
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
comment on table job_statuses is 'The engine''s latest reason for every live job. Written when the reason changes; the numbers alone are refreshed every few minutes, in rotation.';
comment on column job_statuses.job_key is 'The job.';
comment on column job_statuses.round is 'Round in which the row was written.';
comment on column job_statuses.at is 'Time of that round: the numbers here are as of then.';
comment on column job_statuses.code is 'The reason by name: granted, renewed, holding, behind, shape, claim, ...';
comment on column job_statuses.pool is 'GPU model that the reason speaks of; empty = any.';
comment on column job_statuses.need_gpus is 'GPUs wanted.';
comment on column job_statuses.free_gpus is 'GPUs that it could have had. Refreshed in turn.';
comment on column job_statuses.behind_ms is 'How far its tenant, or where jobs queue the job, is behind, as time at the entitlement. Refreshed in turn.';
comment on column job_statuses.other is 'The tenant that went before it, or whose job did.';
comment on column job_statuses.other_behind_ms is 'How far who went before it is behind. Refreshed in turn.';
comment on column job_statuses.rank is 'Place in the order of choice; 0 = not said. Refreshed in turn.';
comment on column job_statuses.until_at is 'When it may change: end of the next lease that could serve it, of its own lease, of a back-off; null = not known.';
comment on column job_statuses.for_job is 'Key of the job that gets the GPUs, or that holds them; null = none.';
comment on column job_statuses.note is 'Words of Slurm or of an administrator.';
comment on column job_statuses.rho is 'The job''s fairness degree, received over due. Refreshed in turn.';
comment on column job_statuses.alloc_gpu_ms is 'GPU time received so far. Refreshed in turn.';
comment on column job_statuses.due_gpu_ms is 'GPU time due so far. Refreshed in turn.';
comment on column job_statuses.gate_until is 'Begin time that fairlease set on the waiting job, after which Slurm may start it by itself; null = none.';
comment on column job_statuses.cell is 'Type of the cell that is missing; empty = none.';
comment on column job_statuses.chain is 'The largest type of that cell''s chain.';
comment on column job_statuses.for_right is 'Right by which for_job has such a cell: guaranteed, shared or opportunistic; empty = none from fairlease, or unknown.';
comment on column job_statuses.queue is 'Claimant in line, where a policy divides heterogeneous GPU models: job, where the policy knows jobs only. Empty = the tenant.';
comment on column job_statuses.other_job is 'Key of the job that went before it, where jobs queue; null = none. Refreshed in turn.';
comment on column job_statuses.slurm_says is 'Slurm''s own reason why the job waits. The daemon refreshes it in rotation.';
comment on column job_statuses.details is 'Further facts for `fairlease explain`, of jobs that have a lease or a claim, were stopped, or wait for a reason that the other columns cannot hold; null = none.';
comment on column job_statuses.extra_gpu_ms is 'Work received beyond the GPU time. Refreshed in turn.';
comment on column job_statuses.extra_due_gpu_ms is 'Work due beyond the GPU time due. Refreshed in turn.';

create table leases (
    job_key bigint not null,
    term bigint not null,
    slurm_id text not null,
    tenant text not null,
    user_name text not null,
    state text not null,
    class text not null,
    pool text not null,
    gpus bigint not null,
    nodes text[] not null,
    holdings jsonb,
    granted_at timestamptz not null,
    started_at timestamptz,
    ends_at timestamptz not null,
    noticed_at timestamptz,
    ended_at timestamptz,
    adopted boolean not null,
    why text not null,
    granted_round bigint not null,
    ended_round bigint,
    alloc_from_gpu_ms bigint,
    alloc_to_gpu_ms bigint,
    gpu_ms bigint generated always as ((alloc_to_gpu_ms - alloc_from_gpu_ms)) stored,
    recorded_at timestamptz not null default now(),
    behind bigint not null default 0,
    primary key (job_key, term)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index leases_ended_at on leases (ended_at);
create index leases_in_force on leases (pool, ends_at) where (ended_at is null);
create index leases_recalled on leases (job_key, term) where (why = 'recalled');
create index leases_unmarked on leases (job_key, term) where (alloc_to_gpu_ms is null);
comment on table leases is 'Every lease: a job''s right to hold GPUs for a term. A renewal is a new row with the next term.';
comment on index leases_ended_at is 'For history by time, and for pruning by age.';
comment on index leases_in_force is 'The leases of now.';
comment on index leases_recalled is 'The leases that were recalled, few among many.';
comment on index leases_unmarked is 'The leases whose GPU time is not known yet.';
comment on column leases.job_key is 'The job.';
comment on column leases.term is 'Number of the lease among the job''s own, 1 for its first.';
comment on column leases.slurm_id is 'The job''s id in Slurm then.';
comment on column leases.tenant is 'The job''s tenant then.';
comment on column leases.user_name is 'The job''s user.';
comment on column leases.state is 'granted (not yet seen running), active, noticed (told to end), ending (requeue ordered, GPUs not free yet), over.';
comment on column leases.class is 'Right: guaranteed, shared or opportunistic.';
comment on column leases.pool is 'GPU model.';
comment on column leases.gpus is 'GPUs held.';
comment on column leases.nodes is 'Nodes held.';
comment on column leases.holdings is 'What is held on each node: [{"node", "model", "gpus", ...}]; null = all GPUs are on the one node in nodes, and of the model in pool.';
comment on column leases.granted_at is 'When the lease was decided.';
comment on column leases.started_at is 'When it was first held; null = not seen yet, or never.';
comment on column leases.ends_at is 'When the term ends.';
comment on column leases.noticed_at is 'When the job was told that the lease will not be renewed; null = it was not.';
comment on column leases.ended_at is 'When it really ended; null while in force. A lease that is renewed before its time has its boundary here, which is still to come.';
comment on column leases.adopted is 'True where the job ran before we gave it a lease.';
comment on column leases.why is 'Why it ended: finished, renewed, reclaimed, taken back, lost, ...; empty while in force. "dropped" = the engine listed it no more: in observe mode an end that was decided but not carried out.';
comment on column leases.granted_round is 'First round that wrote it down.';
comment on column leases.ended_round is 'Round that wrote its end down.';
comment on column leases.alloc_from_gpu_ms is 'GPU time that the job had received when the lease began; null = it begins at a future boundary.';
comment on column leases.alloc_to_gpu_ms is 'GPU time that the job had received when the lease ended; null until known.';
comment on column leases.gpu_ms is 'GPU time charged under this lease; null until it is over. A job''s leases sum to what the job received.';
comment on column leases.recorded_at is 'When the row was last written, by the database''s clock.';
comment on column leases.behind is 'The job whose GPUs this granted lease takes over when that job has ended, on the same node; 0 = none. Until then gpus is 0, since the GPUs are those of that job.';

create table claims (
    job_key bigint not null,
    made_at timestamptz not null,
    pool text not null,
    gpus bigint not null,
    nodes text[] not null,
    at timestamptz not null,
    ended_at timestamptz,
    recorded_at timestamptz not null default now(),
    primary key (job_key, made_at)
);
comment on table claims is 'GPUs kept from renewal until a gang that is due fits on them.';
comment on column claims.job_key is 'The gang''s job.';
comment on column claims.made_at is 'When the claim was made.';
comment on column claims.pool is 'GPU model.';
comment on column claims.gpus is 'GPUs claimed.';
comment on column claims.nodes is 'Nodes claimed.';
comment on column claims.at is 'When the leases there end and the gang can start.';
comment on column claims.ended_at is 'When it was given up or fulfilled; null while in force.';
comment on column claims.recorded_at is 'When the row was last written, by the database''s clock.';

create table ledger (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    weight bigint not null,
    base_gpus numeric not null,
    entitlement_gpus numeric not null,
    demand_gpus numeric not null,
    holds_gpus bigint not null,
    lent_gpus numeric not null,
    borrowed_gpus numeric not null,
    waiting_jobs bigint not null,
    deficit_gpu_ms bigint not null,
    behind_ms bigint not null,
    window_alloc_gpu_ms numeric not null,
    window_due_gpu_ms numeric not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    rho numeric not null,
    rho_all numeric not null,
    owed_gpu_ms bigint not null default 0,
    repays_gpus numeric not null default 0,
    extra_gpu_ms bigint not null default 0,
    extra_due_gpu_ms bigint not null default 0,
    window_extra_gpu_ms numeric not null default 0,
    window_extra_due_gpu_ms numeric not null default 0,
    primary key (tenant, pool)
) with (fillfactor = 50);
comment on table ledger is 'Accounts of every tenant in every pool, as of the last recorded round.';
comment on column ledger.tenant is 'The tenant.';
comment on column ledger.pool is 'GPU model.';
comment on column ledger.at is 'Since when the row is so. All rows hold up to the newest of these.';
comment on column ledger.weight is 'Weight of the tenant in this pool.';
comment on column ledger.base_gpus is 'Its quota (ASTRAEA eq. 6).';
comment on column ledger.entitlement_gpus is 'Entitlement: the quota after policy, trades and repayments.';
comment on column ledger.demand_gpus is 'GPUs that its active jobs request, each counted in one pool.';
comment on column ledger.holds_gpus is 'GPUs that its jobs hold.';
comment on column ledger.lent_gpus is 'How many of the GPUs that it is due others hold.';
comment on column ledger.borrowed_gpus is 'How many GPUs it holds above its entitlement.';
comment on column ledger.waiting_jobs is 'Its waiting jobs.';
comment on column ledger.deficit_gpu_ms is 'How far it is behind its entitlement; negative = ahead. This selects the tenant that goes next, and is bounded by credit.cap, and by one term of its largest gang and reclaim.threshold of its share.';
comment on column ledger.behind_ms is 'The deficit as time at its entitlement.';
comment on column ledger.window_alloc_gpu_ms is 'GPU time received in the window, not faded by a half-life.';
comment on column ledger.window_due_gpu_ms is 'GPU time due in the window, not faded by a half-life.';
comment on column ledger.alloc_gpu_ms is 'GPU time received since the beginning (eq. 11).';
comment on column ledger.due_gpu_ms is 'GPU time due since the beginning (eq. 9).';
comment on column ledger.rho is 'Fairness degree over the window: received over due; Infinity = received without being due. Where a policy divides GPU models, work of all pools together.';
comment on column ledger.rho_all is 'Fairness degree since the beginning.';
comment on column ledger.owed_gpu_ms is 'GPU time that others had of its due while it wanted that; negative = GPU time that it had of others'' dues. Each pool sums to 0. Kept for fairness.window, and repaid.';
comment on column ledger.repays_gpus is 'GPUs that it is given of others'' dues until it has that back; negative = that it gives. Part of entitlement_gpus.';
comment on column ledger.extra_gpu_ms is 'Work received since the beginning beyond the GPU time: by the speedup of the model for the tenant''s jobs, as it was known then. Negative = slower than the reference model. 0 where no policy divides GPU models.';
comment on column ledger.extra_due_gpu_ms is 'Work due since the beginning beyond the GPU time due: that of the part of base_gpus that its jobs could use, less due_gpu_ms.';
comment on column ledger.window_extra_gpu_ms is 'Work received in the window beyond the GPU time.';
comment on column ledger.window_extra_due_gpu_ms is 'Work due in the window beyond the GPU time due.';

create table window_buckets (
    tenant text not null,
    pool text not null,
    start_at timestamptz not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    extra_gpu_ms bigint not null default 0,
    extra_due_gpu_ms bigint not null default 0,
    primary key (tenant, pool, start_at)
) with (fillfactor = 80);
create index window_buckets_start_at on window_buckets (start_at);
comment on table window_buckets is 'The slices of time that the window is made of. They stay here when the window has moved on, until they are pruned.';
comment on index window_buckets_start_at is 'For pruning by age.';
comment on column window_buckets.tenant is 'The tenant.';
comment on column window_buckets.pool is 'GPU model.';
comment on column window_buckets.start_at is 'When the slice begins; it lasts until the next begins.';
comment on column window_buckets.alloc_gpu_ms is 'GPU time received in the slice.';
comment on column window_buckets.due_gpu_ms is 'GPU time due in the slice.';
comment on column window_buckets.extra_gpu_ms is 'Work received in the slice beyond the GPU time; see ledger.';
comment on column window_buckets.extra_due_gpu_ms is 'Work due in the slice beyond the GPU time due.';

create table tenant_history (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    entitlement_gpus numeric not null,
    demand_gpus numeric not null,
    holds_gpus bigint not null,
    waiting_jobs bigint not null,
    deficit_gpu_ms bigint not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    rho numeric not null,
    extra_gpu_ms bigint not null default 0,
    extra_due_gpu_ms bigint not null default 0,
    constraint tenant_history_by primary key (tenant, pool, at)
) partition by range (at);
create table tenant_history_other partition of tenant_history default;
create index tenant_history_at on tenant_history USING brin (at) WITH (pages_per_range='16', autosummarize='on');
comment on table tenant_history is 'How tenants stood, sampled once a minute (settable), for charts. A minute without a row is like the one before: idle tenants leave none.';
comment on index tenant_history_at is 'For charts of all tenants, and for pruning by age.';
comment on column tenant_history.tenant is 'The tenant.';
comment on column tenant_history.pool is 'GPU model.';
comment on column tenant_history.at is 'When.';
comment on column tenant_history.entitlement_gpus is 'Entitlement.';
comment on column tenant_history.demand_gpus is 'GPUs that its active jobs requested.';
comment on column tenant_history.holds_gpus is 'GPUs that its jobs held.';
comment on column tenant_history.waiting_jobs is 'Its waiting jobs.';
comment on column tenant_history.deficit_gpu_ms is 'GPU time due less GPU time received; negative = ahead.';
comment on column tenant_history.alloc_gpu_ms is 'GPU time received since the beginning.';
comment on column tenant_history.due_gpu_ms is 'GPU time due since the beginning.';
comment on column tenant_history.rho is 'Fairness degree over the window that ended then.';
comment on column tenant_history.extra_gpu_ms is 'Work received since the beginning beyond the GPU time; see ledger.';
comment on column tenant_history.extra_due_gpu_ms is 'Work due since the beginning beyond the GPU time due.';

create table pools (
    pool text primary key,
    at timestamptz not null,
    gpus bigint not null,
    bad_gpus bigint not null,
    capacity_gpu_ms bigint not null,
    tenants_gpu_ms bigint not null,
    untouchable_gpu_ms bigint not null,
    overhead_gpu_ms bigint not null,
    idle_gpu_ms bigint not null,
    bad_gpu_ms bigint not null,
    stops_gpu_ms bigint not null default 0
) with (fillfactor = 50);
comment on table pools is 'Where the GPU time of every pool went, as of the last round: capacity = tenants + untouchable + overhead + idle + bad.';
comment on column pools.pool is 'GPU model.';
comment on column pools.at is 'Up to when it is charged.';
comment on column pools.gpus is 'GPUs at the last look, bad ones too.';
comment on column pools.bad_gpus is 'Of these, bad ones with nothing running on them.';
comment on column pools.capacity_gpu_ms is 'All GPU time since the beginning.';
comment on column pools.tenants_gpu_ms is 'Of it, used by tenants'' jobs.';
comment on column pools.untouchable_gpu_ms is 'Of it, used by jobs of no tenant.';
comment on column pools.overhead_gpu_ms is 'GPU time neither used nor free (completing, handing over), and work that stops destroyed.';
comment on column pools.idle_gpu_ms is 'Of it, idle.';
comment on column pools.bad_gpu_ms is 'Of it, on bad hardware.';
comment on column pools.stops_gpu_ms is 'Remaining cost of stops for all its jobs together (stop.total); below 0 = excess.';

create table pool_history (
    pool text not null,
    at timestamptz not null,
    gpus bigint not null,
    capacity_gpu_ms bigint not null,
    tenants_gpu_ms bigint not null,
    untouchable_gpu_ms bigint not null,
    overhead_gpu_ms bigint not null,
    idle_gpu_ms bigint not null,
    bad_gpu_ms bigint not null,
    constraint pool_history_by primary key (pool, at)
) partition by range (at);
create table pool_history_other partition of pool_history default;
create index pool_history_at on pool_history USING brin (at) WITH (pages_per_range='16', autosummarize='on');
comment on table pool_history is 'The pools, sampled as tenant_history is, for charts.';
comment on index pool_history_at is 'For charts of all pools, and for pruning by age.';
comment on column pool_history.pool is 'GPU model.';
comment on column pool_history.at is 'When.';
comment on column pool_history.gpus is 'GPUs then, bad ones too.';
comment on column pool_history.capacity_gpu_ms is 'All GPU time since the beginning.';
comment on column pool_history.tenants_gpu_ms is 'Of it, used by tenants'' jobs.';
comment on column pool_history.untouchable_gpu_ms is 'Of it, used by jobs of no tenant.';
comment on column pool_history.overhead_gpu_ms is 'Of it, neither used nor free.';
comment on column pool_history.idle_gpu_ms is 'Of it, idle.';
comment on column pool_history.bad_gpu_ms is 'Of it, on bad hardware.';

create table charges (
    day date not null,
    tenant text not null,
    user_name text not null,
    pool text not null,
    gpu_ms bigint not null,
    primary key (day, tenant, user_name, pool)
);
comment on table charges is 'GPU time charged, by day (UTC), tenant, user and pool. For each tenant and pool the rows sum to ledger.alloc_gpu_ms, to the GPU-millisecond. Never pruned: these are the accounts.';
comment on column charges.day is 'Day, UTC. Time across midnight is split where midnight was.';
comment on column charges.tenant is 'The tenant.';
comment on column charges.user_name is 'User of the jobs; empty = charged to the tenant without a known job, or moved between pools afterwards (may then be negative).';
comment on column charges.pool is 'GPU model.';
comment on column charges.gpu_ms is 'GPU time charged.';

create table lending (
    pool text not null,
    lender text not null,
    borrower text not null,
    gpus numeric not null,
    at timestamptz not null,
    primary key (pool, lender, borrower)
);
comment on table lending is 'Lending between tenants, as of the last round. GPUs that borrowers hold above their entitlement are spread over the lenders of the pool in proportion.';
comment on column lending.pool is 'GPU model.';
comment on column lending.lender is 'Tenant that is due the GPUs and does not hold them.';
comment on column lending.borrower is 'Tenant that holds them.';
comment on column lending.gpus is 'GPUs, to a millionth.';
comment on column lending.at is 'Start of this number: time of the round.';

create table lending_days (
    day date not null,
    pool text not null,
    lender text not null,
    borrower text not null,
    gpu_ms numeric not null,
    primary key (day, pool, lender, borrower)
);
comment on table lending_days is 'GPU time lent, by day (UTC): the integral of lending over time. Never pruned.';
comment on column lending_days.day is 'Day, UTC.';
comment on column lending_days.pool is 'GPU model.';
comment on column lending_days.lender is 'Tenant that was due the GPUs.';
comment on column lending_days.borrower is 'Tenant that held them.';
comment on column lending_days.gpu_ms is 'GPU time lent, to a millionth of a GPU-millisecond.';

create table losses (
    round bigint not null,
    job_key bigint not null,
    at timestamptz not null,
    slurm_id text not null,
    tenant text not null,
    user_name text not null,
    pool text not null,
    lease_term bigint not null,
    gpu_ms bigint not null,
    certainty text not null,
    command text not null,
    type_gpus bigint not null,
    most_gpu_ms bigint not null default 0,
    constraint losses_by primary key (round, job_key, at)
) partition by range (at);
create table losses_other partition of losses default;
create index losses_at on losses (at);
comment on table losses is 'Work that fairlease''s stops destroyed or may have destroyed, a row a stop: GPU time since the save from which the job goes on.';
comment on index losses_at is 'For pruning by age.';
comment on column losses.round is 'Round that noted the loss.';
comment on column losses.job_key is 'The job that was reclaimed.';
comment on column losses.at is 'When.';
comment on column losses.slurm_id is 'The job''s id in Slurm then.';
comment on column losses.tenant is 'The job''s tenant.';
comment on column losses.user_name is 'The job''s user.';
comment on column losses.pool is 'GPU model.';
comment on column losses.lease_term is 'Lease in which it was lost; see leases.';
comment on column losses.gpu_ms is 'GPU time that was destroyed. It is overhead, not received by the tenant. Without a stop budget: what came after the notice, and received.';
comment on column losses.certainty is 'known = since a save that the job reported, or all of the attempt of a job whose type was seen to restart from the beginning; bounded = if the job saves as it declares or is known to, and at most most_gpu_ms if it does not; unknown = all of the attempt, since nothing is known of how the job saves.';
comment on column losses.command is 'The job''s type: its command line without numbers; - = it belongs to none, or the loss was noted by a fairlease that did not tell.';
comment on column losses.type_gpus is 'The job''s type: GPUs that it asks for; 0 = the loss was noted by a fairlease that did not tell.';
comment on column losses.most_gpu_ms is 'Upper bound of the GPU time that was destroyed, whatever the job declares: since the newest save that the attempt reported, or all of the attempt. 0 where gpu_ms is above 0: noted by a fairlease that did not tell.';

create table actions (
    round bigint not null,
    ordinal integer not null,
    verb text not null,
    job_key bigint,
    slurm_id text not null,
    until_at timestamptz,
    nodes text[] not null,
    reservation text not null,
    limit_ms bigint not null,
    signal text not null,
    suppressed boolean not null,
    reason jsonb not null,
    ok boolean,
    skipped boolean,
    error text,
    done_at timestamptz,
    took_ms bigint,
    at timestamptz not null default now(),
    constraint actions_by primary key (round, ordinal, at)
) partition by range (at);
create table actions_other partition of actions default;
create index actions_job on actions (job_key, round);
comment on table actions is 'Every change that fairlease wanted in Slurm, recorded before it was tried, and its outcome. Routine gates have no rows unless they failed: rounds.gates counts them.';
comment on index actions_job is 'For the story of one job.';
comment on column actions.round is 'Round that decided it.';
comment on column actions.ordinal is 'Place in the round''s order, from 0.';
comment on column actions.verb is 'lock, gate, reserve, grant, take_back, notice, reclaim, release, unreserve or open.';
comment on column actions.job_key is 'The job; null for an action on none.';
comment on column actions.slurm_id is 'The job''s id in Slurm then; empty for an action on no job.';
comment on column actions.until_at is 'Until when: the gate''s begin time, the end of a reservation; null = none.';
comment on column actions.nodes is 'Nodes granted or reserved.';
comment on column actions.reservation is 'Reservation used, made or deleted.';
comment on column actions.limit_ms is 'Time limit set; 0 = left alone.';
comment on column actions.signal is 'Signal sent as notice.';
comment on column actions.suppressed is 'Recorded only: the mode or the partition forbids acting.';
comment on column actions.reason is 'Why, in numbers: {"code": ..., "pool": ..., ...}; spans and instants in milliseconds.';
comment on column actions.ok is 'Whether it succeeded; null = not known: not tried yet, or the daemon died in between.';
comment on column actions.skipped is 'Not tried: suppressed, the job had moved on, or what it needed had failed.';
comment on column actions.error is 'Error message.';
comment on column actions.done_at is 'When it was done or given up.';
comment on column actions.took_ms is 'How long it took.';
comment on column actions.at is 'Time of the round.';

create table events (
    round bigint not null,
    ordinal integer not null,
    at timestamptz not null,
    kind text not null,
    job_key bigint,
    node text not null,
    text text not null,
    constraint events_by primary key (round, ordinal, at)
) partition by range (at);
create table events_other partition of events default;
create index events_at on events (at);
create index events_job on events (job_key, round) where (job_key is not null);
comment on table events is 'Events, as in the log.';
comment on index events_at is 'For the newest events.';
comment on index events_job is 'For the story of one job.';
comment on column events.round is 'Round that noted it.';
comment on column events.ordinal is 'Place among the round''s events, from 0.';
comment on column events.at is 'When.';
comment on column events.kind is 'Kind of event.';
comment on column events.job_key is 'Job that it is about; null = none.';
comment on column events.node is 'Node that it is about; empty = none.';
comment on column events.text is 'In words.';

create table overrides (
    id bigint generated always as identity primary key,
    kind text not null,
    scope text not null,
    name text not null,
    until_at timestamptz not null,
    reason text not null,
    by text not null,
    created_at timestamptz not null default now(),
    ended_at timestamptz,
    ended_by text,
    database_user text not null default SESSION_USER,
    job_key bigint,
    job_user text,
    job_submitted_at timestamptz,
    constraint overrides_by_check check (by <> ''),
    constraint overrides_kind_check check (kind in ('exempt', 'boost', 'freeze')),
    constraint overrides_name_check check (name <> ''),
    constraint overrides_name_jobs check ((scope <> 'job') or (job_key is not null) or (ended_at is not null)),
    constraint overrides_reason_check check (reason <> ''),
    constraint overrides_scope_check check (scope in ('job', 'user', 'tenant'))
);
comment on table overrides is 'Orders of administrators. Each has an end and a reason.';
comment on column overrides.id is 'Number of the order.';
comment on column overrides.kind is 'exempt (never reclaimed, never gated), boost (goes first) or freeze (no new lease, no renewal).';
comment on column overrides.scope is 'Scope of the name: job, user or tenant.';
comment on column overrides.name is 'Job id in Slurm, user or tenant.';
comment on column overrides.until_at is 'When it lapses.';
comment on column overrides.reason is 'Why, in the administrator''s words.';
comment on column overrides.by is 'User who gave the override, recorded by the program: the user that it ran as, with the value of SUDO_USER.';
comment on column overrides.created_at is 'When, by the database''s clock.';
comment on column overrides.ended_at is 'When it was ended before its time, by the database''s clock; null = it was not.';
comment on column overrides.ended_by is 'User that ended it before its time; fairlease, with the reason, where its job has ended.';
comment on column overrides.database_user is 'Database user who gave the override, recorded by PostgreSQL. For overrides from before this column, the user who ran the migration.';
comment on column overrides.job_key is 'The job that it is for; of an array, the task with the highest key then. Null = it is for a user or a tenant, or was given by an older version and has ended.';
comment on column overrides.job_user is 'User of that job.';
comment on column overrides.job_submitted_at is 'When that job was submitted, of an array the earliest of its tasks. A task that fairlease first sees later belongs to the array if it was submitted then.';

create table vc_cells (
    vc text not null,
    chain text not null,
    type text not null,
    at timestamptz not null,
    cell_gpus bigint not null,
    reserved bigint not null,
    pinned bigint not null,
    bound bigint not null,
    lost bigint not null,
    free bigint not null,
    lent bigint not null,
    primary key (vc, chain, type)
) with (fillfactor = 50);
comment on table vc_cells is 'Cells of every virtual cluster by level, as of the last round.';
comment on column vc_cells.vc is 'The virtual cluster: a tenant.';
comment on column vc_cells.chain is 'Largest type of the chain of cells: one for each GPU model and shape of nodes.';
comment on column vc_cells.type is 'Type of the cells: the level.';
comment on column vc_cells.at is 'Since when the row is so.';
comment on column vc_cells.cell_gpus is 'GPUs of one such cell.';
comment on column vc_cells.reserved is 'Cells promised, pinned ones not counted.';
comment on column vc_cells.pinned is 'Cells that are its own for ever, each a certain one.';
comment on column vc_cells.bound is 'Of those reserved, cells that its jobs are in.';
comment on column vc_cells.lost is 'Of those reserved, cells that cannot be had until hardware is repaired.';
comment on column vc_cells.free is 'Of those reserved, cells that it may have at any time: reserved = bound + lost + free.';
comment on column vc_cells.lent is 'Of those free, cells that cannot be had without a recall.';

create table vc_cell_history (
    vc text not null,
    chain text not null,
    type text not null,
    at timestamptz not null,
    cell_gpus bigint not null,
    reserved bigint not null,
    pinned bigint not null,
    bound bigint not null,
    lost bigint not null,
    free bigint not null,
    lent bigint not null,
    constraint vc_cell_history_by primary key (vc, chain, type, at)
) partition by range (at);
create table vc_cell_history_other partition of vc_cell_history default;
create index vc_cell_history_at on vc_cell_history USING brin (at) WITH (pages_per_range='16', autosummarize='on');
comment on table vc_cell_history is 'vc_cells, sampled as tenant_history is. A minute without a row is like the one before; a row of zeros means that the level no longer exists.';
comment on index vc_cell_history_at is 'For charts of all virtual clusters, and for pruning by age.';
comment on column vc_cell_history.vc is 'The virtual cluster.';
comment on column vc_cell_history.chain is 'The chain.';
comment on column vc_cell_history.type is 'Type of the cells.';
comment on column vc_cell_history.at is 'When.';
comment on column vc_cell_history.cell_gpus is 'GPUs of one such cell.';
comment on column vc_cell_history.reserved is 'Cells promised, pinned ones not counted.';
comment on column vc_cell_history.pinned is 'Cells that were its own for ever.';
comment on column vc_cell_history.bound is 'Cells that its jobs were in.';
comment on column vc_cell_history.lost is 'Cells that could not be had: hardware was bad.';
comment on column vc_cell_history.free is 'Cells that it could have had at any time.';
comment on column vc_cell_history.lent is 'Of those free, cells that it could not have had without a recall.';

create table bound_cells (
    chain text not null,
    type text not null,
    node text not null,
    gpu bigint not null,
    vc text not null,
    nodes text[] not null,
    node_gpus text not null,
    gpus bigint not null,
    pinned boolean not null,
    used_gpus bigint not null,
    bad_gpus bigint not null,
    holders bigint[] not null,
    guests bigint[] not null,
    since timestamptz not null,
    primary key (chain, type, node, gpu, vc)
) with (fillfactor = 70);
comment on table bound_cells is 'The physical cells that are bound to a virtual cluster, and the jobs in them, as of the last round. Written when something about the cell changes.';
comment on column bound_cells.chain is 'The chain.';
comment on column bound_cells.type is 'Type of the cell.';
comment on column bound_cells.node is 'Its first node.';
comment on column bound_cells.gpu is 'Its first GPU there, from 0.';
comment on column bound_cells.vc is 'The virtual cluster that has it.';
comment on column bound_cells.nodes is 'Its nodes.';
comment on column bound_cells.node_gpus is 'Its GPUs on each node: 0-3.';
comment on column bound_cells.gpus is 'Its GPUs, bad ones too.';
comment on column bound_cells.pinned is 'True where it is its virtual cluster''s for ever.';
comment on column bound_cells.used_gpus is 'Of its GPUs, those under guaranteed leases.';
comment on column bound_cells.bad_gpus is 'Of its GPUs, bad ones.';
comment on column bound_cells.holders is 'Keys of the jobs in it with guaranteed leases.';
comment on column bound_cells.guests is 'Keys of the jobs in it with opportunistic leases.';
comment on column bound_cells.since is 'Since when it is bound.';

create table fragmentation_history (
    chain text not null,
    type text not null,
    at timestamptz not null,
    cell_gpus bigint not null,
    broken bigint not null,
    cells bigint not null,
    constraint fragmentation_history_by primary key (chain, type, at)
) partition by range (at);
create table fragmentation_history_other partition of fragmentation_history default;
create index fragmentation_history_at on fragmentation_history USING brin (at) WITH (pages_per_range='16', autosummarize='on');
comment on table fragmentation_history is 'How many cells of each level could not give their full affinity to a guaranteed lease (HiveD section 5.2), sampled as tenant_history is. A minute without a row is like the one before.';
comment on index fragmentation_history_at is 'For pruning by age.';
comment on column fragmentation_history.chain is 'The chain.';
comment on column fragmentation_history.type is 'Type of the cells: the level.';
comment on column fragmentation_history.at is 'When.';
comment on column fragmentation_history.cell_gpus is 'GPUs of one such cell.';
comment on column fragmentation_history.broken is 'Cells in which a GPU was under a guaranteed lease, or bad. Lent cells count as free.';
comment on column fragmentation_history.cells is 'All cells of the level.';

create table violations (
    id bigint generated always as identity primary key,
    what text not null,
    since timestamptz not null,
    ended_at timestamptz
);
create unique index violations_standing on violations (md5(what)) where (ended_at is null);
comment on table violations is 'When the safety condition (HiveD Theorem 1) did not hold, and how. Must be empty.';
comment on index violations_standing is 'Each is noted once while it lasts.';
comment on column violations.id is 'Number.';
comment on column violations.what is 'The violation, in words.';
comment on column violations.since is 'First round that found it.';
comment on column violations.ended_at is 'First round that did not find it any more; null = it still is so.';

create table allocations (
    number bigint generated always as identity primary key,
    policy text not null,
    digest text not null,
    objective double precision not null,
    why_not text not null,
    pools text[] not null,
    parties bigint not null,
    since timestamptz not null,
    ended_at timestamptz,
    bound double precision not null default 0
);
create unique index allocations_in_force on allocations ((true)) where (ended_at is null);
create index allocations_since on allocations (since);
comment on table allocations is 'Allocations of heterogeneous GPU models by a policy: a row for each allocation that was in force. At most one has no end.';
comment on index allocations_in_force is 'No two are in force at once.';
comment on index allocations_since is 'For charts of a time.';
comment on column allocations.number is 'Number.';
comment on column allocations.policy is 'The policy that was asked.';
comment on column allocations.digest is 'Digest of all inputs of the answer.';
comment on column allocations.objective is 'The policy''s own figure of merit.';
comment on column allocations.why_not is 'Reason for weighted shares instead; empty = the policy had an answer.';
comment on column allocations.pools is 'GPU models that were divided.';
comment on column allocations.parties is 'Number of claimants: jobs, or tenants'' job types.';
comment on column allocations.since is 'First round that went by it.';
comment on column allocations.ended_at is 'First round that did not any more; null = it is in force.';
comment on column allocations.bound is 'Upper bound of the largest objective, where it is not proven that the policy reached it; 0 = it did.';

create table profiles (
    kind text not null,
    beside text not null,
    model text not null,
    gang bigint not null,
    source text not null,
    rate double precision not null,
    samples bigint not null,
    spread double precision not null,
    heard_at timestamptz,
    basis text not null,
    primary key (kind, beside, model, gang, source)
) with (fillfactor = 70);
comment on table profiles is 'Throughput of each job type on each GPU model, declared and observed, as of the last round. Estimates have no rows: they are computed when needed.';
comment on column profiles.kind is 'Job type: tenant/name; without a tenant it is a reference of the site for all tenants.';
comment on column profiles.beside is 'Job type that shares its GPUs; empty = none.';
comment on column profiles.model is 'GPU model.';
comment on column profiles.gang is 'GPUs of such a job.';
comment on column profiles.source is 'declared or observed.';
comment on column profiles.rate is 'Steps a second of the whole gang; 0 = it does not run there.';
comment on column profiles.samples is 'How many reports an observed rate is the average of.';
comment on column profiles.spread is 'Standard deviation of these, as a part of the rate.';
comment on column profiles.heard_at is 'Time of the newest report, or of the declaration; null = unknown.';
comment on column profiles.basis is 'Author of the declaration: file = the administrator, or a job.';

create table entitlements (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    base_gpus numeric not null,
    usable_gpus numeric not null,
    divided_gpus numeric not null,
    entitlement_gpus numeric not null,
    holds_gpus bigint not null,
    speed double precision not null,
    primary key (tenant, pool)
) with (fillfactor = 50);
comment on table entitlements is 'GPUs that every tenant is due of each model, where a policy divides heterogeneous GPU models, and their worth to it, as of the last round.';
comment on column entitlements.tenant is 'The tenant.';
comment on column entitlements.pool is 'GPU model.';
comment on column entitlements.at is 'Since when the row is so.';
comment on column entitlements.base_gpus is 'Share by weight, without any policy.';
comment on column entitlements.usable_gpus is 'Part of the share that its active jobs can use at once, the fastest models first.';
comment on column entitlements.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlements.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlements.holds_gpus is 'GPUs that its jobs hold.';
comment on column entitlements.speed is 'Speedup of its active jobs, averaged by requested GPUs: throughput of one GPU relative to the slowest model; 1 = unknown, 0 = of no use to them.';

create table entitlement_history (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    base_gpus numeric not null,
    usable_gpus numeric not null,
    divided_gpus numeric not null,
    entitlement_gpus numeric not null,
    holds_gpus bigint not null,
    speed double precision not null,
    constraint entitlement_history_by primary key (tenant, pool, at)
) partition by range (at);
create table entitlement_history_other partition of entitlement_history default;
create index entitlement_history_at on entitlement_history USING brin (at) WITH (pages_per_range='16', autosummarize='on');
comment on table entitlement_history is 'entitlements, sampled as tenant_history is. A minute without a row is like the one before; a row of zeros means that the tenant has none any more.';
comment on index entitlement_history_at is 'For charts of all tenants, and for pruning by age.';
comment on column entitlement_history.tenant is 'The tenant.';
comment on column entitlement_history.pool is 'GPU model.';
comment on column entitlement_history.at is 'When.';
comment on column entitlement_history.base_gpus is 'Share by weight.';
comment on column entitlement_history.usable_gpus is 'Part of the share that its active jobs could use at once, the fastest models first.';
comment on column entitlement_history.divided_gpus is 'Part from the policy, before trades.';
comment on column entitlement_history.entitlement_gpus is 'Entitlement: the part after trades.';
comment on column entitlement_history.holds_gpus is 'GPUs that its jobs held.';
comment on column entitlement_history.speed is 'Speedup of its active jobs, as in entitlements.';

create table trades (
    number bigint generated always as identity primary key,
    id bigint not null,
    made_at timestamptz not null,
    fast text not null,
    slow text not null,
    fast_to text not null,
    fast_to_kind text not null,
    slow_to text not null,
    slow_to_kind text not null,
    fast_gpus numeric not null,
    slow_gpus numeric not null,
    price double precision not null,
    fast_to_speedup double precision not null,
    slow_to_speedup double precision not null,
    fast_to_gain double precision not null,
    slow_to_gain double precision not null,
    left_fast_gpus numeric not null,
    left_slow_gpus numeric not null,
    undone_at timestamptz,
    undone_why text not null
);
create unique index trades_in_force on trades (id) where (left_fast_gpus > 0);
create index trades_undone on trades (undone_at);
comment on table trades is 'Swaps of entitlements between two tenants'' job types (Gandiva_fair section 3.4), in force and past.';
comment on index trades_in_force is 'Each is noted once while it lasts.';
comment on index trades_undone is 'For pruning by age.';
comment on column trades.number is 'Number of the row.';
comment on column trades.id is 'The trade''s own number; comes round again when the policy was another for a while.';
comment on column trades.made_at is 'First round that went by it.';
comment on column trades.fast is 'The faster GPU model.';
comment on column trades.slow is 'The slower one.';
comment on column trades.fast_to is 'Tenant that gets fast GPUs and gives slow ones.';
comment on column trades.fast_to_kind is 'Its job type.';
comment on column trades.slow_to is 'Tenant that gets slow GPUs and gives fast ones.';
comment on column trades.slow_to_kind is 'Its job type.';
comment on column trades.fast_gpus is 'Fast GPUs traded.';
comment on column trades.slow_gpus is 'Slow GPUs traded for them.';
comment on column trades.price is 'Slow GPUs for a fast one.';
comment on column trades.fast_to_speedup is 'Speedup, fast over slow, of the side that gets fast GPUs: the lower bound at the time of the trade.';
comment on column trades.slow_to_speedup is 'The same of the other: the upper bound.';
comment on column trades.fast_to_gain is 'Gain of the side that gets fast GPUs while the trade is in force: throughput in GPUs of its slowest model.';
comment on column trades.slow_to_gain is 'Gain of the other side.';
comment on column trades.left_fast_gpus is 'Fast GPUs that are still traded; 0 = it is over.';
comment on column trades.left_slow_gpus is 'Slow GPUs that are still traded.';
comment on column trades.undone_at is 'When it was undone, in part or wholly, last; null = it was not.';
comment on column trades.undone_why is 'Why: left (a party or model is gone), speedups (it gains no more), entitlement (a party is due less than it gives), demand (a party cannot use what it gets), policy (it is another, or has no answer); empty = it was not.';

create table audits (
    day date primary key,
    at timestamptz not null,
    policy text not null,
    pareto_slack double precision,
    tenants jsonb not null,
    envy jsonb not null,
    misreports jsonb not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table audits is 'How fair a division was, computed once a day.';
comment on column audits.day is 'Day, UTC.';
comment on column audits.at is 'The round that was audited.';
comment on column audits.policy is 'The policy.';
comment on column audits.pareto_slack is 'Possible increase of total throughput with no tenant losing, as a fraction; 0 = Pareto efficient; null = not computed.';
comment on column audits.tenants is 'By tenant: its incentive to share, and its gains from misreports.';
comment on column audits.envy is 'By pairs of tenants: throughput of one with the other''s GPUs, over that with its own.';
comment on column audits.misreports is 'Declared rates that observation does not bear out.';
comment on column audits.recorded_at is 'When the row was last written, by the database''s clock.';

create table identity (
    single boolean primary key default true,
    name text not null,
    cluster_id bigint not null,
    recorded_at timestamptz not null default clock_timestamp(),
    constraint identity_single_check check (single)
);
comment on table identity is 'Which cluster the journal is of: one row, from the first daemon that wrote to it. Daemons of other clusters are refused.';
comment on column identity.single is 'Always true: there is one row.';
comment on column identity.name is 'ClusterName of slurm.conf.';
comment on column identity.cluster_id is 'Number that slurmctld gave itself when it first started; 0 = this Slurm does not tell (before 25.11, and while it has no job).';
comment on column identity.recorded_at is 'When the row was written, by the database''s clock.';

create table repairs (
    id bigint generated always as identity primary key,
    kind text not null,
    found text not null,
    done text not null,
    reason text not null,
    by text not null,
    recorded_at timestamptz not null default clock_timestamp()
);
comment on table repairs is 'What administrators mended in the journal with `fairlease repair`.';
comment on column repairs.id is 'Number of the repair.';
comment on column repairs.kind is 'clock = books that were ahead of the time; cluster = the journal was given to another cluster.';
comment on column repairs.found is 'What was wrong.';
comment on column repairs.done is 'What was done about it.';
comment on column repairs.reason is 'Why, in the words of who did it.';
comment on column repairs.by is 'Who did it.';
comment on column repairs.recorded_at is 'When, by the database''s clock.';

create table administration (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    round bigint not null default 0,
    kind text not null,
    key text not null,
    before text,
    after text,
    by text not null,
    why text not null,
    database_user text not null default SESSION_USER,
    constraint administration_by_check check (by <> ''),
    constraint administration_kind_check check (kind in ('setting', 'configuration', 'override', 'term', 'release', 'repair', 'schema'))
);
create index administration_keys on administration (key, id) where kind in ('setting', 'configuration');
comment on table administration is 'Record of administration: each change of a setting and each act of an administrator. Rows are only ever added, for any user: see its trigger.';
comment on index administration_keys is 'The newest value of each setting is compared with the one in force.';
comment on column administration.id is 'Number of the row.';
comment on column administration.at is 'When it was recorded, by the database''s clock.';
comment on column administration.round is 'First round in which a setting was in force; it is written in the transaction of that round. 0 = of no round.';
comment on column administration.kind is 'setting, configuration (a file that was taken over, waits to be accepted, or was rejected), override, term (of leases, by fairlease tune), release, repair or schema.';
comment on column administration.key is 'Key of the configuration; of an override, its scope and name; else what was changed.';
comment on column administration.before is 'Value before, without passwords; null = there was none.';
comment on column administration.after is 'Value after, without passwords; null = there is none any more.';
comment on column administration.by is 'Author: the owner of the configuration''s file, or the user that a command ran as, with the value of SUDO_USER; fairlease, where the daemon did it.';
comment on column administration.why is 'How it came about, or the reason that was given.';
comment on column administration.database_user is 'Database user who wrote the row, recorded by PostgreSQL.';

create table settings (
    single boolean primary key default true,
    settings jsonb not null,
    recorded_at timestamptz not null default clock_timestamp(),
    constraint settings_single_check check (single)
);
comment on table settings is 'Settings of the newest round: one row.';
comment on column settings.single is 'Always true: there is one row.';
comment on column settings.settings is 'The engine''s settings: cluster.Settings.';
comment on column settings.recorded_at is 'Time of their last change, by the database''s clock.';

create table members (
    tenant text not null,
    user_name text not null,
    primary key (user_name, tenant)
);
comment on table members is 'Slurm users of every tenant, from Slurm''s associations. The daemon writes them when they change.';
comment on column members.tenant is 'The tenant.';
comment on column members.user_name is 'User in Slurm.';

create table database_users (
    name text primary key,
    slurm_user text
);
comment on table database_users is 'Database users whose Slurm user has another name. Written by administrators.';
comment on column database_users.name is 'User in PostgreSQL.';
comment on column database_users.slurm_user is 'User in Slurm; null = none: this database user sees the rows of no tenant.';

create table tunings (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    kind text not null,
    file_ms bigint not null,
    before_ms bigint not null,
    term_ms bigint not null,
    by text not null,
    why text not null,
    round bigint not null default 0,
    study jsonb,
    database_user text not null default SESSION_USER,
    constraint tunings_before_ms_check check (before_ms > 0),
    constraint tunings_by_check check (by <> ''),
    constraint tunings_file_ms_check check (file_ms > 0),
    constraint tunings_kind_check check (kind in ('kept', 'proposed', 'taken', 'undone', 'ended')),
    constraint tunings_term_ms_check check (term_ms > 0),
    constraint tunings_why_check check (why <> '')
);
create index tunings_decisive on tunings (id) where kind in ('taken', 'undone', 'ended');
comment on table tunings is 'The term of leases as it was chosen by the journal (ASTRAEA section 5.1.3): what each night decided, and what people ordered. The newest row of kind taken, undone or ended determines the term in force.';
comment on index tunings_decisive is 'The newest of them is read before every round.';
comment on column tunings.id is 'Number of the row.';
comment on column tunings.at is 'When, by the database''s clock.';
comment on column tunings.kind is 'kept (the term stays), proposed (another is better, and is not taken over), taken (another is in force from now on), undone (the term before is in force again) or ended (the configuration''s is, since it says so).';
comment on column tunings.file_ms is 'lease.term in the configuration at that time.';
comment on column tunings.before_ms is 'Term in force before.';
comment on column tunings.term_ms is 'Term in force after; of a proposal, the proposed term.';
comment on column tunings.by is 'Author: fairlease, or the user that the program ran as, with the value of SUDO_USER.';
comment on column tunings.why is 'Why, in words.';
comment on column tunings.round is 'First round that named it in an event; 0 = none has.';
comment on column tunings.study is 'The measures that it was decided by: of the days before, of the days since a takeover, and of the replays with each term; null = none.';
comment on column tunings.database_user is 'Database user who wrote the row, recorded by PostgreSQL.';

create table gpus (
    node text not null,
    gpu_index integer not null,
    instance text not null,
    model text not null,
    state text not null,
    why text not null,
    job_key bigint,
    util double precision,
    tensor double precision,
    power_w double precision,
    memory_bytes bigint,
    memory_size_bytes bigint,
    idle boolean not null,
    idle_since timestamptz,
    primary key (node, gpu_index, instance),
    constraint gpus_state_check check (state in ('fresh', 'stale', 'broken', 'unknown'))
);
create index gpus_job on gpus (job_key) where (job_key is not null);
comment on table gpus is 'Every GPU and MIG instance as it was seen last. Values are rounded, so that rows change seldom.';
comment on index gpus_job is 'For the GPUs of one job.';
comment on column gpus.node is 'Node, as Slurm calls it.';
comment on column gpus.gpu_index is 'Index of the GPU on the node.';
comment on column gpus.instance is 'MIG GPU instance; empty = the whole GPU.';
comment on column gpus.model is 'Model, as the driver calls it.';
comment on column gpus.state is 'fresh; stale = its values do not change; broken = they contradict each other; unknown = too little is reported.';
comment on column gpus.why is 'Why it is not fresh; empty = it is.';
comment on column gpus.job_key is 'The job that holds it; null = none, or several.';
comment on column gpus.util is 'Part of the time in which a kernel ran, 0 to 1; null = unknown.';
comment on column gpus.tensor is 'Activity of the tensor pipes, 0 to 1; null = unknown.';
comment on column gpus.power_w is 'Power, watts; null = unknown.';
comment on column gpus.memory_bytes is 'Memory in use; null = unknown.';
comment on column gpus.memory_size_bytes is 'All its memory; null = unknown.';
comment on column gpus.idle is 'True if it is fresh and idle.';
comment on column gpus.idle_since is 'Since when it is idle; null = it is not known to be.';

create table gpu_nodes (
    node text primary key,
    state text not null,
    why text not null,
    since timestamptz,
    read_at timestamptz,
    constraint gpu_nodes_state_check check (state in ('fresh', 'stale', 'broken', 'unknown', 'silent'))
);
comment on table gpu_nodes is 'How well the GPUs of each node are seen.';
comment on column gpu_nodes.node is 'Node, as Slurm calls it.';
comment on column gpu_nodes.state is 'silent = not read at the last look; else the worst state of its GPUs.';
comment on column gpu_nodes.why is 'Why it is not fresh; empty = it is.';
comment on column gpu_nodes.since is 'When the state began.';
comment on column gpu_nodes.read_at is 'When it was read last, to the minute; null = never.';

create table gpu_use (
    hour timestamptz not null,
    job_key bigint not null,
    model text not null,
    held_ms bigint not null,
    seen_ms bigint not null,
    idle_ms bigint not null,
    util_sum double precision not null,
    util_ms bigint not null,
    sm_sum double precision not null,
    sm_ms bigint not null,
    tensor_sum double precision not null,
    tensor_ms bigint not null,
    dram_sum double precision not null,
    dram_ms bigint not null,
    power_sum double precision not null,
    power_ms bigint not null,
    memory_bytes bigint not null,
    primary key (hour, job_key, model)
);
create index gpu_use_job on gpu_use (job_key);
comment on table gpu_use is 'What the GPUs of each job did, by hour and model. All times are GPU-milliseconds. Of each counter there is the sum of value times time, and the time in which it was known: their quotient is the mean.';
comment on index gpu_use_job is 'For one job.';
comment on column gpu_use.hour is 'The hour, by its begin.';
comment on column gpu_use.job_key is 'The job.';
comment on column gpu_use.model is 'GPU model, as Slurm calls it.';
comment on column gpu_use.held_ms is 'GPU time that the job held while telemetry looked.';
comment on column gpu_use.seen_ms is 'Of it, with fresh counters.';
comment on column gpu_use.idle_ms is 'Of that, idle.';
comment on column gpu_use.util_sum is 'Part of the time in which a kernel ran, times time.';
comment on column gpu_use.util_ms is 'Time in which that was known.';
comment on column gpu_use.sm_sum is 'Activity of the SMs, times time.';
comment on column gpu_use.sm_ms is 'Time in which that was known.';
comment on column gpu_use.tensor_sum is 'Activity of the tensor pipes, times time.';
comment on column gpu_use.tensor_ms is 'Time in which that was known.';
comment on column gpu_use.dram_sum is 'Activity of the memory''s interface, times time.';
comment on column gpu_use.dram_ms is 'Time in which that was known.';
comment on column gpu_use.power_sum is 'Watts, times time.';
comment on column gpu_use.power_ms is 'Time in which that was known.';
comment on column gpu_use.memory_bytes is 'Maximum in use on one GPU; 0 = unknown.';

create table gpu_memory (
    user_name text not null,
    command text not null,
    gpus integer not null,
    model text not null,
    bytes bigint not null,
    completed boolean not null,
    full_failed boolean not null,
    at timestamptz not null,
    primary key (user_name, command, gpus, model)
);
comment on table gpu_memory is 'How much memory of a GPU jobs of each type used, by model.';
comment on column gpu_memory.user_name is 'User of the type''s jobs.';
comment on column gpu_memory.command is 'Command line without numbers.';
comment on column gpu_memory.gpus is 'GPUs that its jobs request.';
comment on column gpu_memory.model is 'GPU model, as Slurm calls it.';
comment on column gpu_memory.bytes is 'Maximum in use on one GPU.';
comment on column gpu_memory.completed is 'A job completed there.';
comment on column gpu_memory.full_failed is 'The last one failed there with the memory full, and none has completed.';
comment on column gpu_memory.at is 'Newest evidence.';

create table gpu_sizes (
    model text primary key,
    bytes bigint not null
);
comment on table gpu_sizes is 'Memory of one GPU of each model.';
comment on column gpu_sizes.model is 'GPU model, as Slurm calls it.';
comment on column gpu_sizes.bytes is 'All its memory.';

create table gpu_remarks (
    job_key bigint not null,
    kind text not null,
    node text not null,
    gpu_index integer not null,
    since timestamptz not null,
    text text not null,
    primary key (job_key, kind, node, gpu_index)
);
comment on table gpu_remarks is 'Remarks on running jobs that hold now.';
comment on column gpu_remarks.job_key is 'The job.';
comment on column gpu_remarks.kind is 'drift = its activity or speed is far from the baseline of its type; stall = it does nearly nothing now; straggler = one GPU or node is far from its others; misreport = its counters contradict a speedup that its type claims.';
comment on column gpu_remarks.node is 'Node that it is about; empty = the whole job.';
comment on column gpu_remarks.gpu_index is 'GPU that it is about, by index on the node; -1 = all of the job''s there.';
comment on column gpu_remarks.since is 'Since when.';
comment on column gpu_remarks.text is 'In words.';

create table gpu_baselines (
    user_name text not null,
    command text not null,
    gpus integer not null,
    model text not null,
    measure text not null,
    jobs integer not null,
    mean double precision not null,
    spread double precision not null,
    apart integer not null,
    at timestamptz not null,
    primary key (user_name, command, gpus, model, measure)
);
comment on table gpu_baselines is 'What is usual for jobs of each type on each GPU model. Levels are in the natural logarithm.';
comment on column gpu_baselines.user_name is 'User of the type''s jobs.';
comment on column gpu_baselines.command is 'Command line without numbers.';
comment on column gpu_baselines.gpus is 'GPUs that its jobs request.';
comment on column gpu_baselines.model is 'GPU model, as Slurm calls it.';
comment on column gpu_baselines.measure is 'speed (steps/s), tensor or memory activity (0 to 1), or PCIe read rate (bytes/s).';
comment on column gpu_baselines.jobs is 'Jobs that count, at most 50.';
comment on column gpu_baselines.mean is 'Mean over jobs.';
comment on column gpu_baselines.spread is 'Standard deviation over jobs.';
comment on column gpu_baselines.apart is 'Newest jobs in a row that were far off and do not count.';
comment on column gpu_baselines.at is 'End of the newest job.';

create table forecasts (
    at timestamptz not null,
    job_key bigint not null,
    round bigint not null,
    runs integer not null,
    horizon_ms bigint not null,
    waits boolean not null,
    why text not null,
    start_p10 timestamptz,
    start_p50 timestamptz,
    start_p90 timestamptz,
    end_p10 timestamptz,
    end_p50 timestamptz,
    end_p90 timestamptz,
    raw_ms bigint[] not null,
    kept boolean not null,
    primary key (job_key, at)
);
create index forecasts_at on forecasts (at);
comment on table forecasts is 'When each job will start and end. There are the rows of the newest forecast, and of one in six hours, by which later ones are calibrated.';
comment on index forecasts_at is 'For replacing a forecast, and for pruning.';
comment on column forecasts.at is 'The moment from which it looks ahead: that of its round.';
comment on column forecasts.job_key is 'The job.';
comment on column forecasts.round is 'Round whose queue it continues.';
comment on column forecasts.runs is 'Number of runs.';
comment on column forecasts.horizon_ms is 'How far ahead it looks.';
comment on column forecasts.waits is 'True if the job waited for GPUs, for the first time or again.';
comment on column forecasts.why is 'Why there is no forecast; empty = there is one.';
comment on column forecasts.start_p10 is 'Start of a waiting job: in one of ten runs it was then or earlier. Null = beyond the horizon, or the job runs.';
comment on column forecasts.start_p50 is 'In half of the runs it was then or earlier.';
comment on column forecasts.start_p90 is 'In nine of ten runs it was then or earlier.';
comment on column forecasts.end_p10 is 'End of the job: in one of ten runs it was then or earlier. Null = beyond the horizon.';
comment on column forecasts.end_p50 is 'In half of the runs it was then or earlier.';
comment on column forecasts.end_p90 is 'In nine of ten runs it was then or earlier.';
comment on column forecasts.raw_ms is 'The six moments before calibration, ms since 1970; 0 = beyond the horizon.';
comment on column forecasts.kept is 'True if it stays when there is a newer one.';

create table budget_periods (
    tenant text not null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    current boolean not null,
    per text not null,
    gpu_hours double precision not null,
    prices jsonb not null,
    at_end text not null,
    base_gpu_ms jsonb not null,
    received_gpu_ms jsonb not null,
    used_gpu_hours double precision not null,
    at timestamptz not null,
    warned_at timestamptz,
    spent_at timestamptz,
    told_percent integer not null,
    primary key (tenant, start_at),
    constraint budget_periods_at_end_check check (at_end in ('warn', 'idle-only')),
    constraint budget_periods_gpu_hours_check check (gpu_hours > 0)
);
comment on table budget_periods is 'Budgets of tenants and their use, a row for each budget and period. The daemon counts every minute.';
comment on column budget_periods.tenant is 'The tenant.';
comment on column budget_periods.start_at is 'Begin of the period.';
comment on column budget_periods.end_at is 'End of the period: the begin of the next.';
comment on column budget_periods.current is 'True for the present period of a budget that the configuration has.';
comment on column budget_periods.per is 'Length of the period: week, month, quarter or year.';
comment on column budget_periods.gpu_hours is 'The budget: GPU hours at prices.';
comment on column budget_periods.prices is 'Price of a GPU hour by model, as in {"h100": 4}. A model that is not there costs 1.';
comment on column budget_periods.at_end is 'What follows when it is used up: warn, or idle-only (the tenant gets idle GPUs only).';
comment on column budget_periods.base_gpu_ms is 'GPU time that the tenant had received by model when the period began, since the beginning of the journal.';
comment on column budget_periods.received_gpu_ms is 'GPU time that it has received by model in the period.';
comment on column budget_periods.used_gpu_hours is 'GPU hours at prices that it has used.';
comment on column budget_periods.at is 'Up to when that is counted.';
comment on column budget_periods.warned_at is 'When 80 % were used; null = not yet.';
comment on column budget_periods.spent_at is 'When all was used; null = not yet.';
comment on column budget_periods.told_percent is 'The largest percentage that an event has reported: 80 or 100; 0 = none.';

create table bound_jobs (
    job_key bigint primary key,
    way text not null,
    pool text not null,
    gpus integer not null,
    since_at timestamptz not null,
    until_at timestamptz
);
comment on table bound_jobs is 'Running jobs whose GPUs cannot be taken back within an hour or two terms, whichever is longer, as of the last round. Written when that begins or changes.';
comment on column bound_jobs.job_key is 'The job.';
comment on column bound_jobs.way is 'Why its GPUs cannot be taken back: no_requeue, contiguous, session, het, other (words of opt_out); age (it has run for too long since its start to be stopped within its stop budget), saves (its saves are rare or slow), min_lease (its minimum lease has hours to go), pool (its pool cannot afford its stop), exempt (by an administrator); excluded, reservation, no_tenant, aside (left alone).';
comment on column bound_jobs.pool is 'GPU model.';
comment on column bound_jobs.gpus is 'GPUs that it holds.';
comment on column bound_jobs.since_at is 'When it could last have been stopped, at the earliest its start.';
comment on column bound_jobs.until_at is 'When it ends at the latest, or can be stopped; null = not known.';

create table forecast_classes (
    kind text not null,
    divided_by text not null,
    class text not null,
    at timestamptz not null,
    statements integer not null,
    forecasts integer not null,
    percent double precision not null,
    low double precision not null,
    high double precision not null,
    primary key (kind, divided_by, class)
);
comment on table forecast_classes is 'How many statements of the forecasts of the last days (forecast.last) kept their word. Each forecast replaces all rows.';
comment on column forecast_classes.kind is 'waiting_start, waiting_end or running_end: what the statement is about.';
comment on column forecast_classes.divided_by is 'What divides the kind: tenant, gpus or ahead; empty = the whole kind.';
comment on column forecast_classes.class is 'The part of the kind; empty = the whole kind.';
comment on column forecast_classes.at is 'The moment of the forecast that counted them.';
comment on column forecast_classes.statements is 'Statements whose word can be judged.';
comment on column forecast_classes.forecasts is 'Forecasts that made them.';
comment on column forecast_classes.percent is 'The part that kept its word, on the scale of intervals for 8 of 10: 80 is as promised.';
comment on column forecast_classes.low is 'Lower end of its 95 percent interval of confidence.';
comment on column forecast_classes.high is 'Upper end of its 95 percent interval of confidence.';

-- +goose StatementBegin
create function history_tables() returns table (name name) language sql stable as $$
    select c.relname
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace
    and c.relkind = 'p'
    order by 1
$$;
-- +goose StatementEnd
comment on function history_tables is 'The tables that are partitioned by day.';

-- +goose StatementBegin
create function make_days(first date, last date) returns integer language plpgsql as $$
declare
    t name;
    day date;
    part text;
    begins timestamptz;
    ends timestamptz;
    made integer := 0;
begin
    for t in select name from history_tables() loop
        for day in select generate_series(first, last, interval '1 day') loop
            part := t || '_' || to_char(day, 'YYYYMMDD');
            begins := day::timestamp at time zone 'UTC';
            ends := begins + interval '1 day';
            continue when to_regclass(quote_ident(part)) is not null
                or exists (select from history_parts() p where p.parent = t and not p.rest and p.ends > begins);
            execute format('create table %I (like %I including defaults including storage)', part, t);
            execute format('with moved as (delete from %I where at >= %L and at < %L returning *) insert into %I select * from moved', t || '_other', begins, ends, part);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)', t, part, begins, ends);
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;
-- +goose StatementEnd
comment on function make_days is 'Makes the missing partitions of the days from first to last, moves rows of these days from the default partitions into them, and returns the number of partitions made.';

-- +goose StatementBegin
create function history_parts() returns table (parent name, part name, rest boolean, ends timestamptz) language sql stable as $$
    select
        p.relname,
        c.relname,
        pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT',
        substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class p on p.oid = i.inhparent
    where p.relnamespace = current_schema()::regnamespace
    and p.relkind = 'p'
    and c.relkind = 'r'
$$;
-- +goose StatementEnd
comment on function history_parts is 'The partitions of the tables that are partitioned by day. rest: the default partition, for rows of any other day; ends: the upper bound of its times.';

-- +goose StatementBegin
create function drop_days(blobs interval, history interval) returns integer language plpgsql as $$
declare
    p record;
    newest timestamptz;
    dropped integer := 0;
begin
    select max(at) from rounds into newest;
    for p in
        select part
        from history_parts()
        where not rest
        and ends <= now() - case when parent = 'round_blobs' then blobs else history end
        and (parent not in ('rounds', 'round_blobs') or ends <= newest)
    loop
        execute format('drop table %I', p.part);
        dropped := dropped + 1;
    end loop;
    return dropped;
end
$$;
-- +goose StatementEnd
comment on function drop_days is 'Drops the partitions whose rows are all older than blobs (of round_blobs) or history (of all other tables), but keeps the newest round. Returns the number of partitions dropped.';

-- +goose StatementBegin
create function prune_rest(blobs interval, history interval) returns bigint language plpgsql as $$
declare
    p record;
    gone bigint;
    total bigint := 0;
    newest timestamptz;
begin
    select max(at) from rounds into newest;
    for p in select parent, part from history_parts() where rest loop
        execute format('delete from %I where at < least(date_trunc(''day'', $1, ''UTC''), date_trunc(''day'', $2, ''UTC''))', p.part)
        using now() - case when p.parent = 'round_blobs' then blobs else history end,
            case when p.parent in ('rounds', 'round_blobs') then newest else 'infinity' end;
        get diagnostics gone = row_count;
        total := total + gone;
    end loop;
    return total;
end
$$;
-- +goose StatementEnd
comment on function prune_rest is 'Deletes the rows of the default partitions that are older than blobs (of round_blobs) or history (of all other tables). Returns the number of rows deleted.';

-- +goose StatementBegin
create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'table % is append-only: % is refused', tg_table_name, lower(tg_op) using errcode = 'insufficient_privilege';
end
$$;
-- +goose StatementEnd
comment on function refuse_change is 'Refuses whatever calls it, the owner''s statements too.';

create trigger append_only before update or delete or truncate on administration for each statement execute function refuse_change();
comment on trigger append_only on administration is 'The record of administration is only added to.';

-- +goose StatementBegin
create function record_override() returns trigger language plpgsql set search_path from current as $$
declare
    o overrides := coalesce(new, old);
    value text := format('%s until %s', o.kind, to_char(o.until_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'));
begin
    if tg_op = 'INSERT' then
        insert into administration (kind, key, after, by, why) values ('override', o.scope || ' ' || o.name, value, o."by", o.reason);
    else
        insert into administration (kind, key, before, by, why)
        values ('override', o.scope || ' ' || o.name, value, coalesce(nullif(o.ended_by, ''), session_user), 'ended before its time');
    end if;
    return null;
end
$$;
-- +goose StatementEnd
comment on function record_override is 'Records that an override was given, or ended before its time.';

create trigger record_given after insert on overrides for each row execute function record_override();
create trigger record_ended after update on overrides for each row when (old.ended_at is null and new.ended_at is not null) execute function record_override();
create trigger record_deleted after delete on overrides for each row when (old.ended_at is null and old.until_at > now()) execute function record_override();
comment on trigger record_given on overrides is 'Overrides are in the record of administration, whoever gives them.';
comment on trigger record_ended on overrides is 'So are their ends before their time.';
comment on trigger record_deleted on overrides is 'So are those that are deleted while they are in force.';

-- +goose StatementBegin
create function record_term() returns trigger language plpgsql set search_path from current as $$
begin
    insert into administration (kind, key, before, after, by, why)
    values ('term', 'lease.term', (new.before_ms * interval '1 ms')::text, (new.term_ms * interval '1 ms')::text, new."by", new.kind || ': ' || new.why);
    return null;
end
$$;
-- +goose StatementEnd
comment on function record_term is 'Records another term of leases.';

create trigger record_term after insert on tunings for each row when (new.kind in ('taken', 'undone', 'ended') and new.before_ms <> new.term_ms) execute function record_term();
comment on trigger record_term on tunings is 'Terms that are in force are in the record of administration.';

-- +goose StatementBegin
create function record_repair() returns trigger language plpgsql set search_path from current as $$
begin
    insert into administration (kind, key, before, after, by, why) values ('repair', new.kind, new.found, new.done, new."by", new.reason);
    return null;
end
$$;
-- +goose StatementEnd
comment on function record_repair is 'Records a repair.';

create trigger record_repair after insert on repairs for each row execute function record_repair();
comment on trigger record_repair on repairs is 'Repairs are in the record of administration.';

-- +goose StatementBegin
create function record_schema() returns trigger language plpgsql set search_path from current as $$
begin
    insert into administration (kind, key, before, after, by, why)
    select 'schema', current_schema(), nullif(max(version_id), 0)::text, new.version_id::text,
        coalesce(nullif(current_setting('fairlease.by', true), ''), session_user), 'fairlease migrate'
    from schema_version
    where version_id < new.version_id;
    return null;
end
$$;
-- +goose StatementEnd
comment on function record_schema is 'Records another version of the schema. The setting fairlease.by names the author.';

create trigger record_schema after insert on schema_version for each row execute function record_schema();
comment on trigger record_schema on schema_version is 'Migrations are in the record of administration.';
