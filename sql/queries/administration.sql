-- name: record_settings
-- The settings in force from a round on that differ from those recorded last: as a JSON array, with their defaults. A recorded setting
-- that is not listed has no value any more. So a repetition adds nothing.
insert into administration (
    round,
    kind,
    key,
    before,
    after,
    by,
    why
)
select
    $2,
    coalesce(n.kind, was.kind),
    key,
    coalesce(was.after, n.otherwise),
    n.value,
    coalesce(n.by, $3),
    coalesce(n.why, $4)
from json_to_recordset($1) as n (ordinal integer, kind text, key text, value text, otherwise text, by text, why text)
full join (
    select distinct on (key)
        key,
        kind,
        after
    from administration
    where kind in ('setting', 'configuration')
    order by key, id desc
) as was using (key)
where coalesce(was.after, n.otherwise) is distinct from n.value
order by n.ordinal, key;

-- name: record_act
insert into administration (
    kind,
    key,
    before,
    after,
    by,
    why
)
values ($1, $2, nullif($3, ''), nullif($4, ''), $5, $6);

-- name: breaker_resumed
-- The operator's word after a trip of the breaker, which is named by $1.
select
    by,
    why
from administration
where kind = 'breaker'
and before = $1
order by id desc
limit 1;

-- name: administration_list
-- The newest of a window ($1, $2) before a row ($3), of a key or a section ($4), and of an author ($5).
select {columns}
from administration
where at >= $1
and at < $2
and id < $3
and ($4 = '' or key = $4 or starts_with(key, $4 || '.') or kind = $4)
and ($5 = '' or database_user = $5 or by = $5 or starts_with(by, $5 || ' ') or starts_with(by, $5 || ','))
order by id desc
limit $6;

-- name: syslog_place
-- The value of audit.syslog in force; null = the default.
select (
    select after
    from administration
    where key = 'audit.syslog'
    and kind = 'setting'
    order by id desc
    limit 1
);

-- name: syslog_waiting
-- Rows that did not go to syslog yet, oldest first.
select {columns}
from administration
cross join syslog_sent
where id > upto
and id <> all(sent)
order by id
limit $1;

-- name: syslog_sent
-- Notes rows that need not go to syslog any more, and why others wait. A transaction may commit a row with a lower number than those before it:
-- so upto follows an hour behind, and never beyond a row that waits.
with done as (
    select
        upto,
        sent || $1::bigint[] as ids
    from syslog_sent
),
settled as (
    select coalesce(max(a.id), max(upto)) as upto
    from done
    left join administration a on a.id > upto
    and a.at < clock_timestamp() - interval '1 hour'
    and a.id < coalesce((select min(w.id) from administration w where w.id > upto and w.id <> all(ids)), a.id + 1)
)
update syslog_sent set
    upto = settled.upto,
    sent = array(select id from unnest(ids) as id where id > settled.upto order by id),
    error = $2
from done
cross join settled;

-- name: syslog_state
-- How many rows wait, since when, and why.
select
    count(a.id),
    min(a.at),
    s.error
from syslog_sent s
left join administration a on a.id > s.upto
and a.id <> all(s.sent)
group by s.error;
