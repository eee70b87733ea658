create or replace view cell_holders as
select
    c.vc,
    c.chain,
    c.type,
    c.nodes,
    c.node_gpus,
    c.gpus,
    c.used_gpus,
    c.bad_gpus,
    c.pinned,
    c.since,
    h.by_right,
    h.job_key,
    j.slurm_id,
    j.tenant,
    j.user_name,
    l.gpus as job_gpus,
    l.state,
    l.ends_at
from bound_cells c
left join lateral (
    select
        key as job_key,
        'guaranteed' as by_right
    from unnest(c.holders) as holder (key)
    union all
    select
        key,
        'opportunistic'
    from unnest(c.guests) as guest (key)
) h on true
left join jobs j on j.key = h.job_key
left join leases l on l.job_key = h.job_key and l.ended_at is null
order by c.vc, c.chain, c.gpus desc, c.node, c.gpu, h.by_right, h.job_key;

comment on view cell_holders is 'Jobs in bound cells, with their right, as of the last round: a row for each job, or one without a job (an unused pinned cell).';
comment on column cell_holders.vc is 'The virtual cluster that has the cell: a tenant.';
comment on column cell_holders.chain is 'Largest type of the cell''s chain.';
comment on column cell_holders.type is 'Type of the cell: its level.';
comment on column cell_holders.nodes is 'Its nodes.';
comment on column cell_holders.node_gpus is 'Its GPUs on each node: 0-3.';
comment on column cell_holders.gpus is 'Its GPUs, bad ones too.';
comment on column cell_holders.used_gpus is 'Of these, GPUs under guaranteed leases.';
comment on column cell_holders.bad_gpus is 'Of these, bad GPUs.';
comment on column cell_holders.pinned is 'It is its virtual cluster''s for ever.';
comment on column cell_holders.since is 'Since when it is bound.';
comment on column cell_holders.by_right is 'guaranteed: the job''s own tenant''s cell. opportunistic: lent, and recalled as soon as the owner needs it. Null = no job is in it.';
comment on column cell_holders.job_key is 'Our own number of the job.';
comment on column cell_holders.slurm_id is 'Slurm''s id.';
comment on column cell_holders.tenant is 'The job''s tenant.';
comment on column cell_holders.user_name is 'The job''s user.';
comment on column cell_holders.job_gpus is 'All GPUs that the job holds, in this cell and others.';
comment on column cell_holders.state is 'State of its lease: granted, active, noticed or ending.';
comment on column cell_holders.ends_at is 'When its term ends.';

create or replace view vc_cells_now as
select
    vc,
    chain,
    type,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent,
    (free - lent) * cell_gpus as free_at_once_gpus,
    lent * cell_gpus as lent_gpus,
    at as since
from vc_cells
order by vc, chain, cell_gpus desc, type;

comment on view vc_cells_now is 'Cells of every virtual cluster by level, as of the last round. Free cells are available at any time, lent ones by a recall.';
comment on column vc_cells_now.vc is 'The virtual cluster: a tenant.';
comment on column vc_cells_now.chain is 'Largest type of the chain.';
comment on column vc_cells_now.type is 'Type of the cells: the level.';
comment on column vc_cells_now.cell_gpus is 'GPUs of one such cell.';
comment on column vc_cells_now.reserved is 'Cells promised, pinned ones not counted: bound + lost + free.';
comment on column vc_cells_now.pinned is 'Cells that are its own for ever, each a certain one.';
comment on column vc_cells_now.bound is 'Cells that its jobs are in.';
comment on column vc_cells_now.lost is 'Cells that cannot be had until hardware is repaired.';
comment on column vc_cells_now.free is 'Cells that it may have at any time.';
comment on column vc_cells_now.lent is 'Of these, cells that cannot be had without a recall.';
comment on column vc_cells_now.free_at_once_gpus is 'GPUs of the free cells that are not lent.';
comment on column vc_cells_now.lent_gpus is 'GPUs of the cells that are lent.';
comment on column vc_cells_now.since is 'Start of this state.';

create or replace view vc_cells_over_time as
select
    vc,
    chain,
    type,
    at as from_at,
    lead(at) over (partition by vc, chain, type order by at) as until_at,
    cell_gpus,
    reserved,
    pinned,
    bound,
    lost,
    free,
    lent
from vc_cell_history
order by vc, chain, type, at;

comment on view vc_cells_over_time is 'Cells of every virtual cluster by level, oldest first, to a minute (settable).';
comment on column vc_cells_over_time.vc is 'The virtual cluster: a tenant.';
comment on column vc_cells_over_time.chain is 'Largest type of the chain.';
comment on column vc_cells_over_time.type is 'Type of the cells: the level.';
comment on column vc_cells_over_time.from_at is 'From when.';
comment on column vc_cells_over_time.until_at is 'Until when; null = still.';
comment on column vc_cells_over_time.cell_gpus is 'GPUs of one such cell; 0 with all else = the level was taken away.';
comment on column vc_cells_over_time.reserved is 'Cells promised, pinned ones not counted.';
comment on column vc_cells_over_time.pinned is 'Cells that were its own for ever.';
comment on column vc_cells_over_time.bound is 'Cells that its jobs were in.';
comment on column vc_cells_over_time.lost is 'Cells that could not be had: hardware was bad.';
comment on column vc_cells_over_time.free is 'Cells that it could have had at any time.';
comment on column vc_cells_over_time.lent is 'Of these, cells that it could not have had without a recall.';

create or replace view fragmentation_over_time as
select
    chain,
    type,
    cell_gpus,
    at as from_at,
    lead(at) over (partition by chain, type order by at) as until_at,
    broken,
    cells,
    round(100.0 * broken / nullif(cells, 0), 1) as broken_percent
from fragmentation_history
order by chain, cell_gpus desc, type, at;

comment on view fragmentation_over_time is 'How many cells of each level cannot give their full affinity to a guaranteed lease (HiveD section 5.2), oldest first, to a minute (settable).';
comment on column fragmentation_over_time.chain is 'Largest type of the chain.';
comment on column fragmentation_over_time.type is 'Type of the cells: the level.';
comment on column fragmentation_over_time.cell_gpus is 'GPUs of one such cell; 0 with all else = the level was taken away.';
comment on column fragmentation_over_time.from_at is 'From when.';
comment on column fragmentation_over_time.until_at is 'Until when; null = still.';
comment on column fragmentation_over_time.broken is 'Cells in which a GPU is under a guaranteed lease, or bad. Lent cells count as free.';
comment on column fragmentation_over_time.cells is 'All cells of the level.';
comment on column fragmentation_over_time.broken_percent is 'The share, per cent.';

create or replace view safety_violations as
select
    id,
    what,
    since,
    ended_at,
    ended_at - since as lasted
from violations
order by since desc, id desc;

comment on view safety_violations is 'When a promise to a virtual cluster did not add up (HiveD Theorem 1, invariant (2)), newest first. Must be empty, else there is a defect: nothing is granted while one lasts.';
comment on column safety_violations.id is 'Number.';
comment on column safety_violations.what is 'The violation.';
comment on column safety_violations.since is 'First round that found it.';
comment on column safety_violations.ended_at is 'First round that did not find it any more; null = it still is so.';
comment on column safety_violations.lasted is 'How long it lasted.';
