-- +goose Up

alter table verdicts
    add column cell text not null default '',
    add column chain text not null default '',
    add column for_right text not null default '';
comment on column verdicts.cell is 'Type of the cell that is missing; empty = none.';
comment on column verdicts.chain is 'The largest type of that cell''s chain.';
comment on column verdicts.for_right is 'Right by which for_job has such a cell: guaranteed, shared or opportunistic; empty = none from fairlease, or unknown.';

create index leases_recalled on leases (job_key, term) where why = 'recalled';
comment on index leases_recalled is 'The leases that were recalled, few among many.';

create table vc_cells (
    vc text not null,
    chain text not null,
    type text not null,
    at timestamptz not null,
    cell_gpus integer not null,
    reserved integer not null,
    pinned integer not null,
    bound integer not null,
    lost integer not null,
    free integer not null,
    lent integer not null,
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
    cell_gpus integer not null,
    reserved integer not null,
    pinned integer not null,
    bound integer not null,
    lost integer not null,
    free integer not null,
    lent integer not null,
    primary key (vc, chain, type, at)
);
create index vc_cell_history_at on vc_cell_history (at);
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
    gpu integer not null,
    vc text not null,
    nodes text[] not null,
    node_gpus text not null,
    gpus integer not null,
    pinned boolean not null,
    used_gpus integer not null,
    bad_gpus integer not null,
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
    cell_gpus integer not null,
    broken integer not null,
    cells integer not null,
    primary key (chain, type, at)
);
create index fragmentation_history_at on fragmentation_history (at);
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
create unique index violations_standing on violations (md5(what)) where ended_at is null;
comment on table violations is 'When the safety condition (HiveD Theorem 1) did not hold, and how. Must be empty.';
comment on index violations_standing is 'Each is noted once while it lasts.';
comment on column violations.id is 'Number.';
comment on column violations.what is 'The violation, in words.';
comment on column violations.since is 'First round that found it.';
comment on column violations.ended_at is 'First round that did not find it any more; null = it still is so.';
