create or replace view trade_history as
select
    id,
    made_at,
    left_fast_gpus > 0 as in_force,
    fast,
    slow,
    fast_to,
    fast_to_kind,
    slow_to,
    slow_to_kind,
    fast_gpus,
    slow_gpus,
    price,
    fast_to_speedup,
    slow_to_speedup,
    fast_to_gain,
    slow_to_gain,
    undone_at,
    fast_gpus - left_fast_gpus as undone_fast_gpus,
    slow_gpus - left_slow_gpus as undone_slow_gpus,
    undone_why,
    case when left_fast_gpus = 0 then undone_at - made_at end as lasted
from trades
order by left_fast_gpus > 0 desc, made_at desc, number desc;

comment on view trade_history is 'Swaps of entitlements between two tenants'' job types (Gandiva_fair section 3.4): those in force, then past ones, newest first.';
comment on column trade_history.id is 'The trade''s own number.';
comment on column trade_history.made_at is 'First round that went by it.';
comment on column trade_history.in_force is 'Something of it is still traded.';
comment on column trade_history.fast is 'The faster GPU model.';
comment on column trade_history.slow is 'The slower one.';
comment on column trade_history.fast_to is 'Tenant that gets fast GPUs and gives slow ones.';
comment on column trade_history.fast_to_kind is 'Its job type.';
comment on column trade_history.slow_to is 'Tenant that gets slow GPUs and gives fast ones.';
comment on column trade_history.slow_to_kind is 'Its job type.';
comment on column trade_history.fast_gpus is 'Fast GPUs traded.';
comment on column trade_history.slow_gpus is 'Slow GPUs traded for them.';
comment on column trade_history.price is 'Slow GPUs for a fast one.';
comment on column trade_history.fast_to_speedup is 'Speedup, fast over slow, of the side that gets fast GPUs: the lower bound at the time of the trade.';
comment on column trade_history.slow_to_speedup is 'The same of the other: the upper bound.';
comment on column trade_history.fast_to_gain is 'Present or last gain of the side that gets fast GPUs: throughput in GPUs of its slowest model.';
comment on column trade_history.slow_to_gain is 'Gain of the other side.';
comment on column trade_history.undone_at is 'When it was undone, in part or wholly, last; null = it was not.';
comment on column trade_history.undone_fast_gpus is 'Fast GPUs that went back.';
comment on column trade_history.undone_slow_gpus is 'Slow GPUs that went back.';
comment on column trade_history.undone_why is 'Why: left (a party or model is gone), speedups (it gains no more, or a declared speedup was measured), entitlement (a party is due less than it gives), demand (a party cannot use what it gets), policy (it is another, or has no answer); empty = it was not.';
comment on column trade_history.lasted is 'How long it was in force; null = it is.';

create or replace view allocation_history as
select
    number,
    policy,
    since,
    ended_at,
    coalesce(ended_at, (select max(at) from rounds)) - since as held,
    objective,
    bound,
    why_not,
    parties,
    pools,
    digest
from allocations
order by since desc, number desc;

comment on view allocation_history is 'Every allocation of heterogeneous GPU models that rounds used, newest first.';
comment on column allocation_history.number is 'Number.';
comment on column allocation_history.policy is 'The policy that was asked.';
comment on column allocation_history.since is 'First round that went by it.';
comment on column allocation_history.ended_at is 'First round that did not any more; null = it is in force.';
comment on column allocation_history.held is 'How long it was in force, so far.';
comment on column allocation_history.objective is 'The policy''s own figure of merit.';
comment on column allocation_history.bound is 'Upper bound of the largest objective, where it is not proven that the policy reached it; 0 = it did.';
comment on column allocation_history.why_not is 'Reason for weighted shares instead; empty = the policy had an answer.';
comment on column allocation_history.parties is 'Number of claimants: jobs, or tenants'' job types.';
comment on column allocation_history.pools is 'GPU models that were divided.';
comment on column allocation_history.digest is 'Digest of all inputs of the answer.';
