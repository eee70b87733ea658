-- name: settle_actions
update fairlease.actions a set
    ok = o.ok,
    skipped = o.skipped,
    error = o.error,
    done_at = o.done_at,
    took_ms = o.took_ms
from json_populate_recordset(null::fairlease.actions, $1) o
where a.round = o.round
and a.ordinal = o.ordinal;

-- name: settle_round
update fairlease.rounds set
    settled_at = clock_timestamp(),
    acting_ms = $2
where number = $1
and actions = $3;
