create or replace view overrides_in_force as
select
    id,
    kind,
    scope,
    name,
    until_at,
    reason,
    by,
    created_at,
    job_key
from overrides
where ended_at is null
and until_at > now()
order by id;

comment on view overrides_in_force is 'Orders of administrators that are in force now.';
comment on column overrides_in_force.id is 'Number of the order.';
comment on column overrides_in_force.kind is 'exempt, boost or freeze.';
comment on column overrides_in_force.scope is 'job, user or tenant.';
comment on column overrides_in_force.name is 'Job id in Slurm, user or tenant.';
comment on column overrides_in_force.until_at is 'When it lapses.';
comment on column overrides_in_force.reason is 'Why.';
comment on column overrides_in_force.by is 'Author of the override.';
comment on column overrides_in_force.created_at is 'When.';
comment on column overrides_in_force.job_key is 'The job that it is for; of an array, the task with the highest key when it was given; null = it is for a user or a tenant. Slurm reuses ids.';

create or replace view events_recent as
select
    e.at,
    e.kind,
    j.slurm_id,
    e.node,
    e.text,
    e.round
from events e
left join jobs j on j.key = e.job_key
order by e.round desc, e.ordinal desc
limit 1000;

comment on view events_recent is 'The last 1000 events, newest first.';
comment on column events_recent.at is 'When.';
comment on column events_recent.kind is 'Kind of event.';
comment on column events_recent.slurm_id is 'Job that it is about; null = none.';
comment on column events_recent.node is 'Node that it is about; empty = none.';
comment on column events_recent.text is 'In words.';
comment on column events_recent.round is 'Round that noted it.';

create or replace view actions_recent as
select
    r.at,
    a.round,
    a.ordinal,
    a.verb,
    a.slurm_id,
    a.nodes,
    a.until_at,
    a.reason ->> 'code' as reason,
    case
        when a.suppressed then 'suppressed'
        when a.skipped then 'skipped'
        when a.ok then 'done'
        when not a.ok then 'failed'
        when r.number < (select max(number) from rounds) then 'unknown'
        else 'under way'
    end as status,
    a.error,
    span(a.took_ms) as took,
    a.job_key
from actions a
join rounds r on r.number = a.round
order by a.round desc, a.ordinal desc
limit 1000;

comment on view actions_recent is 'The last 1000 changes that fairlease asked of Slurm, newest first, with their outcome.';
comment on column actions_recent.at is 'When it was decided.';
comment on column actions_recent.round is 'Round that decided it.';
comment on column actions_recent.ordinal is 'Place in the round''s order.';
comment on column actions_recent.verb is 'Kind of change; docs/operations.md lists all verbs.';
comment on column actions_recent.slurm_id is 'The job; empty = none.';
comment on column actions_recent.nodes is 'Nodes granted or reserved.';
comment on column actions_recent.until_at is 'Until when.';
comment on column actions_recent.reason is 'The reason by name.';
comment on column actions_recent.status is 'done, failed, skipped, suppressed, under way, or unknown: the daemon died in between.';
comment on column actions_recent.error is 'Error message.';
comment on column actions_recent.took is 'How long it took.';
comment on column actions_recent.job_key is 'Our own number of the job; null = none. Slurm reuses its ids.';

create or replace view leader_now as
select
    term,
    holder,
    acquired_at,
    renewed_at,
    clock_timestamp() - renewed_at as silent_for,
    renewed_at + takeover_after as takeover_at
from leaders
where ended_at is null;

comment on view leader_now is 'Which daemon leads; no row = none.';
comment on column leader_now.term is 'Number of this time in the lead.';
comment on column leader_now.holder is 'The leader: host and process.';
comment on column leader_now.acquired_at is 'Since when.';
comment on column leader_now.renewed_at is 'Last sign of life.';
comment on column leader_now.silent_for is 'How long ago that was.';
comment on column leader_now.takeover_at is 'When another may take the lead if there is no other sign of life.';

create or replace view standbys_now as
select
    d.holder,
    d.since,
    d.seen_at,
    clock_timestamp() - d.seen_at as silent_for,
    d.seen_at + d.silent_after > clock_timestamp() as alive
from daemons d
where d.seen_at > clock_timestamp() - interval '1 day'
and not exists (select from leaders l where l.holder = d.holder and l.ended_at is null)
and (
    d.seen_at + d.silent_after > clock_timestamp()
    or not exists (select from daemons later where later.host = d.host and later.seen_at > d.seen_at)
)
order by d.holder;

comment on view standbys_now is 'Daemons that do not lead: those that stand by, and those that gave no sign of life lately and did not end by themselves, for a day.';
comment on column standbys_now.holder is 'The daemon: host and process.';
comment on column standbys_now.since is 'Since when it runs.';
comment on column standbys_now.seen_at is 'Last sign of life.';
comment on column standbys_now.silent_for is 'How long ago that was.';
comment on column standbys_now.alive is 'Whether it stands by; false = it is gone, and takes over from none.';

create or replace view nodes_out_of_service as
select
    name,
    gpus,
    case
        when gone_at is not null then 'gone'
        when bad <> '' then bad
        else busy
    end as why,
    bad <> '' or gone_at is not null as no_capacity,
    coalesce(gone_at, recorded_at) as since
from nodes
where bad <> ''
or busy <> ''
or gone_at is not null
order by name;

comment on view nodes_out_of_service is 'Nodes on which nothing can be granted now.';
comment on column nodes_out_of_service.name is 'Name in Slurm.';
comment on column nodes_out_of_service.gpus is 'Its GPUs by model.';
comment on column nodes_out_of_service.why is 'Why: down, drained, completing, ...; gone = Slurm does not list it any more.';
comment on column nodes_out_of_service.no_capacity is 'True where its GPUs are no capacity at all; false = healthy, but nothing can be granted for the moment.';
comment on column nodes_out_of_service.since is 'When we first saw it so.';
