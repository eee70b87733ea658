-- name: seat_queue
select pg_advisory_xact_lock(hashtext(current_schema() || '.seats'));

-- name: seat_retire
-- Waits for whoever holds the seat (seat_hold): "for update", as a change of these
-- columns alone would not.
with lapsed as (
    select term
    from seats
    where ended_at is null
    and renewed_at + takeover_after < clock_timestamp()
    for update
)
update seats set
    ended_at = clock_timestamp(),
    why = 'taken over'
from lapsed
where seats.term = lapsed.term;

-- name: seat_last
-- Who was seated last, still or not.
select
    term,
    holder,
    renewed_at,
    renewed_at + takeover_after as takeover_at,
    clock_timestamp() - renewed_at as silent_for,
    ended_at is not null as ended
from seats
order by term desc
limit 1;

-- name: seat_crashed
update seats set
    ended_at = clock_timestamp(),
    why = 'crashed'
where term = $1
and ended_at is null;

-- name: seat_take
-- With a term above 0: only if that term was the last one.
insert into seats (
    holder,
    takeover_after
)
select
    $1,
    $2
where not exists (select from seats where ended_at is null)
and ($3 = 0 or $3 = (select max(term) from seats))
returning term;

-- name: seat_hold
-- Nobody ends the term before this transaction does, however long it takes; signs of
-- life (seat_renew) do not wait for it.
select term
from seats
where term = $1
and ended_at is null
for key share;

-- name: seat_renew
update seats set
    renewed_at = clock_timestamp()
where term = $1
and ended_at is null;

-- name: seat_resign
with mine as (
    select term
    from seats
    where term = $1
    and ended_at is null
    for update
)
update seats set
    ended_at = clock_timestamp(),
    why = 'resigned'
from mine
where seats.term = mine.term;

-- name: seat_now
select {columns}
from seat_now;
