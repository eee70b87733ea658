-- name: leader_queue
select pg_advisory_xact_lock(hashtext(current_schema() || '.leaders'));

-- name: leader_retire
-- Ends the term if it has given no sign of life since the one named. Waits for the transaction of the leader
-- (leader_hold): "for update", as a change of these columns alone would not.
with lapsed as (
    select term
    from leaders
    where term = $1
    and ended_at is null
    and xmin::text || ' ' || renewed_at = $2
    for update
)
update leaders set
    ended_at = clock_timestamp(),
    why = 'taken over'
from lapsed
where leaders.term = lapsed.term;

-- name: leader_last
-- The last leader, or only one that has not ended its term, whether it lives or not. Every sign of life makes a new
-- version of its row, and the clock of this server has no part in that.
select
    term,
    holder,
    xmin::text || ' ' || renewed_at as sign,
    takeover_after as takeover,
    ended_at is not null as ended
from leaders
where not $1::boolean
or ended_at is null
order by term desc
limit 1;

-- name: leader_crashed
update leaders set
    ended_at = clock_timestamp(),
    why = 'crashed'
where term = $1
and ended_at is null;

-- name: leader_skip
-- Numbers of terms that a journal gave before it got younger are not given again.
insert into leaders (
    holder,
    takeover_after,
    ended_at,
    why,
    schema_version
)
select
    '',
    interval '0',
    clock_timestamp(),
    'skipped',
    $2
from generate_series(1, least($1 - (select coalesce(max(term), 0) from leaders), 1000));

-- name: leader_take
-- With a term above 0: only if that term was the last one. Only in the schema that the program was made for.
insert into leaders (
    holder,
    takeover_after,
    schema_version
)
select
    $1,
    $2,
    $4
where not exists (select from leaders where ended_at is null)
and $4 = (select max(version_id) from schema_version)
and ($3 = 0 or $3 = (select max(term) from leaders))
returning term;

-- name: leader_hold
-- Nobody ends the term before this transaction does, however long it takes; signs of
-- life (leader_renew) do not wait for it. Only in the schema that the program was made for.
select term
from leaders
where term = $1
and holder = $3
and ended_at is null
and $2 = (select max(version_id) from schema_version)
for key share;

-- name: leader_renew
update leaders set
    renewed_at = clock_timestamp(),
    turns = $2
where term = $1
and holder = $3
and ended_at is null;

-- name: leader_turns
-- The leader's turns that succeeded, and the newest round.
select
    term,
    turns,
    (select coalesce(max(number), 0) from rounds)
from leaders
where ended_at is null;

-- name: leader_resign
with mine as (
    select term
    from leaders
    where term = $1
    and holder = $2
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

-- name: daemon_attend
with old as (
    delete from daemons
    where seen_at < clock_timestamp() - interval '1 day'
    and holder <> $1
)
insert into daemons (
    holder,
    silent_after
)
values ($1, $2)
on conflict (holder) do update set
    seen_at = clock_timestamp(),
    silent_after = excluded.silent_after;

-- name: daemon_leave
delete from daemons
where holder = $1;

-- name: standbys
select {columns}
from standbys_now;
