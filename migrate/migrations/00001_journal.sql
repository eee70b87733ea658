-- +goose Up

-- +goose StatementBegin
do $$
begin
    execute format('comment on schema %I is %L', current_schema(),
        'The journal of fairlease: what was seen, decided and done, round by round. Written by the seated daemon only (overrides: by administrators, through the CLI). Read the views; tables may change between versions. Views of your own belong in another schema: all views here are dropped and made anew on every upgrade. Units stand in the names: _gpu_ms is GPU-milliseconds, _ms milliseconds, _gpus GPUs. Times named _at or _until are the cluster''s unless their comment says that the database stamped them.');
end
$$;
-- +goose StatementEnd


comment on table schema_version is 'Which schema migrations were applied. Written by `fairlease migrate`.';
comment on column schema_version.id is 'Order of application.';
comment on column schema_version.version_id is 'Number of the migration; 0 stands for the empty schema.';
comment on column schema_version.is_applied is 'Always true: there is no way back.';
comment on column schema_version.tstamp is 'When it was applied, by the database''s clock, in the session''s time zone.';

create table seats (
    term bigint generated always as identity primary key,
    holder text not null,
    acquired_at timestamptz not null default clock_timestamp(),
    renewed_at timestamptz not null default clock_timestamp(),
    takeover_after interval not null,
    ended_at timestamptz,
    why text
);
create unique index seats_one_seated on seats ((true)) where ended_at is null;
comment on table seats is 'Leaders and their terms. At most one row has no end: its holder leads. Only that term can write rounds.';
comment on index seats_one_seated is 'No two holders are seated at once.';
comment on column seats.term is 'Number of this time in the seat, given by the database; grows, never repeats.';
comment on column seats.holder is 'The leader: host and process, as the daemon named itself.';
comment on column seats.acquired_at is 'When the seat was taken, by the database''s clock.';
comment on column seats.renewed_at is 'Last sign of life, by the database''s clock: every commit is one.';
comment on column seats.takeover_after is 'How long after the last sign of life another may take the seat.';
comment on column seats.ended_at is 'When the seat was given up or taken over, by the database''s clock; null while seated.';
comment on column seats.why is 'How it ended: "resigned" or "taken over".';

create table rounds (
    number bigint primary key,
    at timestamptz not null,
    seat_term bigint not null references seats (term),
    preset text not null,
    nodes integer not null,
    nodes_bad integer not null,
    gpus integer not null,
    tenants integer not null,
    jobs integer not null,
    jobs_running integer not null,
    jobs_waiting integer not null,
    leases integer not null,
    leases_ended integer not null,
    claims integer not null,
    actions integer not null,
    actions_withheld integer not null,
    events integer not null,
    recorded_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    acting_ms bigint
);
create index rounds_recorded_at on rounds (recorded_at);
comment on table rounds is 'One row for each decision that was written down. Rounds in which nothing changed leave no row.';
comment on index rounds_recorded_at is 'For pruning by age.';
comment on column rounds.number is 'Number of the round; grows, never repeats, may skip.';
comment on column rounds.at is 'When the cluster was looked at, by the daemon''s clock.';
comment on column rounds.seat_term is 'In which time in the seat it was decided.';
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
comment on column rounds.actions_withheld is 'Of these, actions recorded but not carried out (mode or partition).';
comment on column rounds.events is 'Events noted.';
comment on column rounds.recorded_at is 'When the round was written down, by the database''s clock.';
comment on column rounds.settled_at is 'When the outcomes of its actions were written down, by the database''s clock; null until then.';
comment on column rounds.acting_ms is 'Time that its actions took together; null until settled.';

create table round_blobs (
    round bigint primary key references rounds (number) on delete cascade,
    keyframe bigint not null,
    snapshot bytea not null,
    plan bytea not null,
    snapshot_bytes bigint not null,
    plan_bytes bigint not null
);
alter table round_blobs
    alter column snapshot set storage external,
    alter column plan set storage external;
create index round_blobs_keyframe on round_blobs (keyframe);
comment on table round_blobs is 'Snapshot and plan of each round, for replay. The newest plan also holds the memory from which a new daemon continues. JSON, compressed with zstd; read with `fairlease replay`. Pruned by age.';
comment on index round_blobs_keyframe is 'For pruning: a keyframe stays while a difference needs it.';
comment on column round_blobs.round is 'The round.';
comment on column round_blobs.keyframe is 'The round to which this one''s blobs are differences; its own number where they are whole.';
comment on column round_blobs.snapshot is 'All that the engine knew: cluster.Snapshot.';
comment on column round_blobs.plan is 'All that the engine wanted: cluster.Plan.';
comment on column round_blobs.snapshot_bytes is 'Length of the snapshot''s JSON.';
comment on column round_blobs.plan_bytes is 'Length of the plan''s JSON.';

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
    cpus integer not null,
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
    touch text not null,
    touch_why text not null,
    gpus integer not null,
    model text not null,
    nodes integer not null,
    cpus integer not null,
    memory_mb bigint not null,
    limit_ms bigint not null,
    submitted_at timestamptz,
    eligible_at timestamptz,
    done_at timestamptz,
    user_begin_at timestamptz,
    restarts integer not null,
    terms integer not null,
    failed integer not null,
    avoid_until timestamptz,
    said text not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    lost_gpu_ms bigint not null,
    recorded_at timestamptz not null default now()
);
create index jobs_slurm_job on jobs (slurm_job, key);
create index jobs_done_at on jobs (done_at);
comment on table jobs is 'Every job or array task ever seen with GPUs in our care. A row is written when something about the job changes, not every round.';
comment on index jobs_slurm_job is 'For looking up a job by the id that users know.';
comment on index jobs_done_at is 'For pruning by age.';
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
comment on column jobs.touch is 'Control of fairlease over it: act, watch (record only), keep (never requeue), leave (only count its GPUs as taken).';
comment on column jobs.touch_why is 'Why it is not act, in words.';
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
comment on column jobs.alloc_gpu_ms is 'GPU time received (ASTRAEA eq. 2), as of recorded_at. While the job lives, verdicts has a fresher number.';
comment on column jobs.due_gpu_ms is 'GPU time due (ASTRAEA eq. 14), as of recorded_at. While the job lives, verdicts has a fresher number.';
comment on column jobs.lost_gpu_ms is 'GPU time lost to reclaims so far: work since the last checkpoint.';
comment on column jobs.recorded_at is 'When the row was last written, by the database''s clock.';

create table verdicts (
    job_key bigint primary key,
    round bigint not null,
    at timestamptz not null,
    code text not null,
    pool text not null,
    need_gpus integer not null,
    free_gpus integer not null,
    behind_ms bigint not null,
    other text not null,
    other_behind_ms bigint not null,
    rank integer not null,
    until_at timestamptz,
    for_job bigint,
    note text not null,
    rho numeric not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    gate_until timestamptz
) with (fillfactor = 70);
comment on table verdicts is 'The engine''s latest word on every live job. Written when the reason changes; the numbers alone are refreshed every few minutes, in turn, so that a long queue costs little. The round''s plan has them to the round.';
comment on column verdicts.job_key is 'The job.';
comment on column verdicts.round is 'Round in which the row was written.';
comment on column verdicts.at is 'Time of that round: the numbers here are as of then.';
comment on column verdicts.code is 'The reason by name: granted, renewed, holding, behind, shape, claim, ...';
comment on column verdicts.pool is 'GPU model that the reason speaks of; empty = any.';
comment on column verdicts.need_gpus is 'GPUs wanted.';
comment on column verdicts.free_gpus is 'GPUs that it could have had. Refreshed in turn.';
comment on column verdicts.behind_ms is 'How far its tenant is behind, as time at its entitlement. Refreshed in turn.';
comment on column verdicts.other is 'The tenant that went before it.';
comment on column verdicts.other_behind_ms is 'How far that tenant is behind. Refreshed in turn.';
comment on column verdicts.rank is 'Place in the order of choice; 0 = not said. Refreshed in turn.';
comment on column verdicts.until_at is 'When it may change: end of the next lease that could serve it, of its own lease, of a back-off; null = not known.';
comment on column verdicts.for_job is 'Key of the job that gets the GPUs, or that holds them; null = none.';
comment on column verdicts.note is 'Words of Slurm or of an administrator.';
comment on column verdicts.rho is 'The job''s fairness degree, received over due. Refreshed in turn.';
comment on column verdicts.alloc_gpu_ms is 'GPU time received so far. Refreshed in turn.';
comment on column verdicts.due_gpu_ms is 'GPU time due so far. Refreshed in turn.';
comment on column verdicts.gate_until is 'Begin time that we set on the waiting job, after which Slurm may start it by itself; null = none. Refreshed in turn.';

create table leases (
    job_key bigint not null,
    term integer not null,
    slurm_id text not null,
    tenant text not null,
    user_name text not null,
    state text not null,
    class text not null,
    pool text not null,
    gpus integer not null,
    nodes text[] not null,
    holdings jsonb not null,
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
    gpu_ms bigint generated always as (alloc_to_gpu_ms - alloc_from_gpu_ms) stored,
    recorded_at timestamptz not null default now(),
    primary key (job_key, term)
);
create index leases_in_force on leases (pool, ends_at) where ended_at is null;
create index leases_ended_at on leases (ended_at);
create index leases_unmarked on leases (job_key, term) where alloc_to_gpu_ms is null;
comment on table leases is 'Every lease: a job''s right to hold GPUs for a term. A renewal is a new row with the next term.';
comment on index leases_in_force is 'The leases of now.';
comment on index leases_ended_at is 'For history by time, and for pruning by age.';
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
comment on column leases.holdings is 'Holdings by node: [{"node", "model", "gpus", ...}].';
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

create table claims (
    job_key bigint not null,
    made_at timestamptz not null,
    pool text not null,
    gpus integer not null,
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
    holds_gpus integer not null,
    lent_gpus numeric not null,
    borrowed_gpus numeric not null,
    waiting_jobs integer not null,
    deficit_gpu_ms bigint not null,
    behind_ms bigint not null,
    window_alloc_gpu_ms numeric not null,
    window_due_gpu_ms numeric not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    rho numeric not null,
    rho_all numeric not null,
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
comment on column ledger.deficit_gpu_ms is 'GPU time due less GPU time received; negative = ahead. The tenant with the largest deficit per entitlement is next.';
comment on column ledger.behind_ms is 'The deficit as time at its entitlement.';
comment on column ledger.window_alloc_gpu_ms is 'GPU time received in the window, not faded by a half-life.';
comment on column ledger.window_due_gpu_ms is 'GPU time due in the window, not faded by a half-life.';
comment on column ledger.alloc_gpu_ms is 'GPU time received since the beginning (eq. 11).';
comment on column ledger.due_gpu_ms is 'GPU time due since the beginning (eq. 9).';
comment on column ledger.rho is 'Fairness degree over the window: received over due; Infinity = received without being due.';
comment on column ledger.rho_all is 'Fairness degree since the beginning.';

create table window_buckets (
    tenant text not null,
    pool text not null,
    start_at timestamptz not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
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

create table tenant_history (
    tenant text not null,
    pool text not null,
    at timestamptz not null,
    entitlement_gpus numeric not null,
    demand_gpus numeric not null,
    holds_gpus integer not null,
    waiting_jobs integer not null,
    deficit_gpu_ms bigint not null,
    alloc_gpu_ms bigint not null,
    due_gpu_ms bigint not null,
    rho numeric not null,
    primary key (tenant, pool, at)
);
create index tenant_history_at on tenant_history (at);
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

create table pools (
    pool text primary key,
    at timestamptz not null,
    gpus integer not null,
    bad_gpus integer not null,
    capacity_gpu_ms bigint not null,
    tenants_gpu_ms bigint not null,
    untouchable_gpu_ms bigint not null,
    overhead_gpu_ms bigint not null,
    idle_gpu_ms bigint not null,
    bad_gpu_ms bigint not null
) with (fillfactor = 50);
comment on table pools is 'Where the GPU time of every pool went, as of the last round: capacity = tenants + untouchable + overhead + idle + bad.';
comment on column pools.pool is 'GPU model.';
comment on column pools.at is 'Up to when it is charged.';
comment on column pools.gpus is 'GPUs at the last look, bad ones too.';
comment on column pools.bad_gpus is 'Of these, bad ones with nothing running on them.';
comment on column pools.capacity_gpu_ms is 'All GPU time since the beginning.';
comment on column pools.tenants_gpu_ms is 'Of it, used by tenants'' jobs.';
comment on column pools.untouchable_gpu_ms is 'Of it, used by jobs of no tenant.';
comment on column pools.overhead_gpu_ms is 'Of it, neither used nor free: completing, handing over.';
comment on column pools.idle_gpu_ms is 'Of it, idle.';
comment on column pools.bad_gpu_ms is 'Of it, on bad hardware.';

create table pool_history (
    pool text not null,
    at timestamptz not null,
    gpus integer not null,
    capacity_gpu_ms bigint not null,
    tenants_gpu_ms bigint not null,
    untouchable_gpu_ms bigint not null,
    overhead_gpu_ms bigint not null,
    idle_gpu_ms bigint not null,
    bad_gpu_ms bigint not null,
    primary key (pool, at)
);
create index pool_history_at on pool_history (at);
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
    lease_term integer not null,
    gpu_ms bigint not null,
    primary key (round, job_key)
);
create index losses_at on losses (at);
comment on table losses is 'Work lost to requeues: known GPU time since the job''s last checkpoint.';
comment on index losses_at is 'For pruning by age.';
comment on column losses.round is 'Round that noted the loss.';
comment on column losses.job_key is 'The job that was reclaimed.';
comment on column losses.at is 'When.';
comment on column losses.slurm_id is 'The job''s id in Slurm then.';
comment on column losses.tenant is 'The job''s tenant.';
comment on column losses.user_name is 'The job''s user.';
comment on column losses.pool is 'GPU model.';
comment on column losses.lease_term is 'Lease in which it was lost; see leases.';
comment on column losses.gpu_ms is 'GPU time lost.';

create table actions (
    round bigint not null references rounds (number) on delete cascade,
    ordinal integer not null,
    verb text not null,
    job_key bigint,
    slurm_id text not null,
    until_at timestamptz,
    nodes text[] not null,
    reservation text not null,
    limit_ms bigint not null,
    signal text not null,
    withheld boolean not null,
    because jsonb not null,
    ok boolean,
    skipped boolean,
    error text,
    done_at timestamptz,
    took_ms bigint,
    primary key (round, ordinal)
);
create index actions_job on actions (job_key, round);
comment on table actions is 'Every change that fairlease asked of Slurm, recorded before it was tried, with its outcome.';
comment on index actions_job is 'For the story of one job.';
comment on column actions.round is 'Round that decided it.';
comment on column actions.ordinal is 'Place in the round''s order, from 0.';
comment on column actions.verb is 'gate, reserve, grant, take_back, notice, reclaim, release, unreserve or open.';
comment on column actions.job_key is 'The job; null for an action on none.';
comment on column actions.slurm_id is 'The job''s id in Slurm then; empty for an action on no job.';
comment on column actions.until_at is 'Until when: the gate''s begin time, the end of a reservation; null = none.';
comment on column actions.nodes is 'Nodes granted or reserved.';
comment on column actions.reservation is 'Reservation used, made or deleted.';
comment on column actions.limit_ms is 'Time limit set; 0 = left alone.';
comment on column actions.signal is 'Signal sent as notice.';
comment on column actions.withheld is 'Recorded only: the mode or the partition forbids acting.';
comment on column actions.because is 'Why, in numbers: {"code": ..., "pool": ..., ...}; spans and instants in milliseconds.';
comment on column actions.ok is 'Whether it succeeded; null = not known: not tried yet, or the daemon died in between.';
comment on column actions.skipped is 'Not tried: withheld, the job had moved on, or what it needed had failed.';
comment on column actions.error is 'Error message.';
comment on column actions.done_at is 'When it was done or given up.';
comment on column actions.took_ms is 'How long it took.';

create table events (
    round bigint not null references rounds (number) on delete cascade,
    ordinal integer not null,
    at timestamptz not null,
    kind text not null,
    job_key bigint,
    node text not null,
    text text not null,
    primary key (round, ordinal)
);
create index events_at on events (at);
create index events_job on events (job_key, round) where job_key is not null;
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
    kind text not null check (kind in ('exempt', 'boost', 'freeze')),
    scope text not null check (scope in ('job', 'user', 'tenant')),
    name text not null check (name <> ''),
    until_at timestamptz not null,
    reason text not null check (reason <> ''),
    by text not null check (by <> ''),
    created_at timestamptz not null default now(),
    ended_at timestamptz,
    ended_by text
);
comment on table overrides is 'Orders of administrators. Each has an end and a reason.';
comment on column overrides.id is 'Number of the order.';
comment on column overrides.kind is 'exempt (never reclaimed, never gated), boost (goes first) or freeze (no new lease, no renewal).';
comment on column overrides.scope is 'Scope of the name: job, user or tenant.';
comment on column overrides.name is 'Job id in Slurm, user or tenant.';
comment on column overrides.until_at is 'When it lapses.';
comment on column overrides.reason is 'Why, in the administrator''s words.';
comment on column overrides.by is 'Author of the override.';
comment on column overrides.created_at is 'When, by the database''s clock.';
comment on column overrides.ended_at is 'When it was ended before its time, by the database''s clock; null = it was not.';
comment on column overrides.ended_by is 'User that ended it before its time.';
