create or replace view pool_balance as
select
    pool,
    gpus,
    bad_gpus,
    capacity_gpu_ms,
    tenants_gpu_ms,
    untouchable_gpu_ms,
    overhead_gpu_ms,
    idle_gpu_ms,
    bad_gpu_ms,
    capacity_gpu_ms::numeric - tenants_gpu_ms - untouchable_gpu_ms - overhead_gpu_ms - idle_gpu_ms - bad_gpu_ms as unaccounted_gpu_ms,
    round(100.0 * tenants_gpu_ms / nullif(capacity_gpu_ms, 0), 2) as tenants_percent,
    round(100.0 * idle_gpu_ms / nullif(capacity_gpu_ms, 0), 2) as idle_percent,
    round(100.0 * overhead_gpu_ms / nullif(capacity_gpu_ms, 0), 2) as overhead_percent,
    at as as_of,
    stops_gpu_ms
from pools
order by pool;

comment on view pool_balance is 'Where the GPU time of every pool went since the beginning. Nothing may be unaccounted for.';
comment on column pool_balance.pool is 'GPU model.';
comment on column pool_balance.gpus is 'GPUs now, bad ones too.';
comment on column pool_balance.bad_gpus is 'Of these, bad ones with nothing running on them.';
comment on column pool_balance.capacity_gpu_ms is 'All GPU time.';
comment on column pool_balance.tenants_gpu_ms is 'Of it, received by tenants'' jobs: without work that stops destroyed.';
comment on column pool_balance.untouchable_gpu_ms is 'Of it, used by jobs that are charged to no tenant.';
comment on column pool_balance.overhead_gpu_ms is 'Of it, neither used nor free (completing, handing over), or used by work that stops destroyed.';
comment on column pool_balance.idle_gpu_ms is 'Of it, idle.';
comment on column pool_balance.bad_gpu_ms is 'Of it, on bad hardware.';
comment on column pool_balance.unaccounted_gpu_ms is 'Remainder: 0, otherwise there is a defect.';
comment on column pool_balance.tenants_percent is 'Used by tenants'' jobs, per cent of capacity.';
comment on column pool_balance.idle_percent is 'Idle, per cent of capacity.';
comment on column pool_balance.overhead_percent is 'Overhead, per cent of capacity.';
comment on column pool_balance.as_of is 'Up to when it is charged.';
comment on column pool_balance.stops_gpu_ms is 'Remaining cost of stops for all its jobs together (stop.total); below 0 = excess.';
