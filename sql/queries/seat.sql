-- name: seat_queue
select pg_advisory_xact_lock(hashtext('fairlease.seats'));

-- name: seat_retire
-- Waits for whoever holds the seat (seat_hold): "for update", as a change of these
-- columns alone would not.
with lapsed as (
    select term
    from fairlease.seats
    where ended_at is null
    and renewed_at + takeover_after < clock_timestamp()
    for update
)
update fairlease.seats set
    ended_at = clock_timestamp(),
    why = 'taken over'
from lapsed
where seats.term = lapsed.term;

-- name: seat_take
insert into fairlease.seats (
    holder,
    takeover_after
)
select
    $1,
    $2
where not exists (select from fairlease.seats where ended_at is null)
returning term;

-- name: seat_hold
-- Nobody ends the term before this transaction does, however long it takes; signs of
-- life (seat_renew) do not wait for it.
select term
from fairlease.seats
where term = $1
and ended_at is null
for key share;

-- name: seat_renew
update fairlease.seats set
    renewed_at = clock_timestamp()
where term = $1
and ended_at is null;

-- name: seat_resign
with mine as (
    select term
    from fairlease.seats
    where term = $1
    and ended_at is null
    for update
)
update fairlease.seats set
    ended_at = clock_timestamp(),
    why = 'resigned'
from mine
where seats.term = mine.term;

-- name: seat_now
select
    term,
    holder,
    acquired_at,
    renewed_at,
    takeover_at,
    silent_for
from fairlease.seat_now;
