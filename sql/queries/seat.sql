-- name: seat_queue
select pg_advisory_xact_lock(hashtext('fairlease.seats'));

-- name: seat_retire
update fairlease.seats set
    ended_at = clock_timestamp(),
    why = 'taken over'
where ended_at is null
and renewed_at + takeover_after < clock_timestamp();

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

-- name: seat_renew
update fairlease.seats set
    renewed_at = clock_timestamp()
where term = $1
and ended_at is null;

-- name: seat_resign
update fairlease.seats set
    ended_at = clock_timestamp(),
    why = 'resigned'
where term = $1
and ended_at is null;

-- name: seat_now
select
    term,
    holder,
    acquired_at,
    renewed_at,
    takeover_at,
    silent_for
from fairlease.seat_now;
