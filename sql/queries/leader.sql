-- name: leader_queue
select pg_advisory_xact_lock(hashtext(current_schema() || '.leaders'));

-- name: leader_retire
-- Waits for the transaction of the leader (leader_hold): "for update", as a change of these
-- columns alone would not.
with lapsed as (
    select term
    from leaders
    where ended_at is null
    and renewed_at + takeover_after < clock_timestamp()
    for update
)
update leaders set
    ended_at = clock_timestamp(),
    why = 'taken over'
from lapsed
where leaders.term = lapsed.term;

-- name: leader_last
-- The last leader, whether it still leads or not.
select
    term,
    holder,
    renewed_at,
    renewed_at + takeover_after as takeover_at,
    clock_timestamp() - renewed_at as silent_for,
    ended_at is not null as ended
from leaders
order by term desc
limit 1;

-- name: leader_crashed
update leaders set
    ended_at = clock_timestamp(),
    why = 'crashed'
where term = $1
and ended_at is null;

-- name: leader_take
-- With a term above 0: only if that term was the last one.
insert into leaders (
    holder,
    takeover_after
)
select
    $1,
    $2
where not exists (select from leaders where ended_at is null)
and ($3 = 0 or $3 = (select max(term) from leaders))
returning term;

-- name: leader_hold
-- Nobody ends the term before this transaction does, however long it takes; signs of
-- life (leader_renew) do not wait for it.
select term
from leaders
where term = $1
and ended_at is null
for key share;

-- name: leader_renew
update leaders set
    renewed_at = clock_timestamp()
where term = $1
and ended_at is null;

-- name: leader_resign
with mine as (
    select term
    from leaders
    where term = $1
    and ended_at is null
    for update
)
update leaders set
    ended_at = clock_timestamp(),
    why = 'resigned'
from mine
where leaders.term = mine.term;

-- name: leader_now
select {columns}
from leader_now;
