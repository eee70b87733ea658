-- The term of leases as it was chosen by the journal.

-- name: tuning_add
insert into tunings (
    kind,
    file_ms,
    before_ms,
    term_ms,
    by,
    why,
    study
)
values ($1, $2, $3, $4, $5, $6, $7)
returning id;

-- name: tuning_newest
-- The change that determines the term in force, without its study: every round reads it.
select
    {columns},
    null::jsonb as study
from tunings
where kind in ('taken', 'undone', 'ended')
order by id desc
limit 1;

-- name: tuning_told
update tunings set
    round = $2
where id = $1
and round = 0;

-- name: tuning_list
-- Those from a time on, and the one that determines the term in force, newest first.
select
    {columns},
    study
from tunings
where at >= $1
or id = (
    select max(id)
    from tunings
    where kind in ('taken', 'undone', 'ended')
)
order by id desc
limit $2;
