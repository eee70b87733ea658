-- name: settle_actions
update actions a set
    ok = o.ok,
    skipped = o.skipped,
    error = o.error,
    done_at = o.done_at,
    took_ms = o.took_ms
from json_populate_recordset(null::actions, $1) o
where a.round = o.round
and a.ordinal = o.ordinal
and a.at = $2;

-- name: put_failed_gates
-- Gates are rows only if they failed.
insert into actions
select *
from json_populate_recordset(null::actions, $1)
on conflict (round, ordinal, at) do update set
    ok = excluded.ok,
    skipped = excluded.skipped,
    error = excluded.error,
    done_at = excluded.done_at,
    took_ms = excluded.took_ms;

-- name: settle_round
update rounds set
    settled_at = clock_timestamp(),
    acting_ms = $2
where number = $1
and actions = $3
and at = $4;
