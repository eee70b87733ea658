-- Notices to users.

-- name: notice_lock
-- Rounds, forecasts and looks at GPUs add notices at the same time: the numbers of a user must not change in between. The daemon alone may
-- take this lock; on the table notices, it would wait for autovacuum.
lock table identity in share update exclusive mode;

-- name: notice_readers
-- Choices of some users ($1), and how many notices each had within the last hour.
select
    u.user_name,
    c.kinds,
    c.quiet,
    (
        select count(distinct (n.kind, n.job_key, n.event))
        from notices n
        where n.user_name = u.user_name
        and n.created_at > clock_timestamp() - interval '1 hour'
        and n.kind <> 'digest'
    ) as recent,
    clock_timestamp() as now
from unnest($1::text[]) as u (user_name)
left join notice_choices c on c.user_name = u.user_name;

-- name: notice_put
-- A cause that is known makes no other notice; a digest that waits gets the counts of another.
insert into notices as n (user_name, kind, job_key, event, channel, facts, due_at)
select
    r.user_name,
    r.kind,
    r.job_key,
    r.event,
    r.channel,
    r.facts,
    r.due_at
from jsonb_to_recordset($1::jsonb) as r (
    user_name text,
    kind text,
    job_key bigint,
    event text,
    channel text,
    facts jsonb,
    due_at timestamptz
)
on conflict (user_name, kind, job_key, event, channel) do update set
    facts = jsonb_set(n.facts, '{counts}', (
        select jsonb_object_agg(s.kind, s.causes)
        from (
            select
                kind,
                sum(causes::bigint) as causes
            from (
                select * from jsonb_each_text(n.facts -> 'counts')
                union all
                select * from jsonb_each_text(excluded.facts -> 'counts')
            ) as each_of (kind, causes)
            group by kind
        ) s
    ))
where n.kind = 'digest'
and n.sent_at is null;

-- name: notice_known
-- Which of some causes made notices before.
select
    n.user_name,
    n.kind,
    n.job_key,
    n.event
from jsonb_to_recordset($1::jsonb) as r (
    "user" text,
    kind text,
    job bigint,
    event text
)
join notices n on (n.user_name, n.kind, n.job_key, n.event) = (r."user", r.kind, r.job, r.event);

-- name: notice_due
select {columns}
from notices
where sent_at is null
and dead_at is null
and due_at <= clock_timestamp()
and channel = any ($1)
order by due_at, id
limit $2;

-- name: notice_sent
update notices set
    sent_at = clock_timestamp(),
    tries = tries + 1,
    error = ''
where id = $1;

-- name: notice_failed
-- It is tried again after some time ($3), at most $4 times.
update notices set
    tries = tries + 1,
    error = $2,
    due_at = clock_timestamp() + $3,
    dead_at = case
        when tries + 1 >= $4 then clock_timestamp()
    end
where id = $1;

-- name: notice_counts
-- Those that wait although they were tried or overdue, those that were given up within a week, and the newest error.
select
    count(*) filter (where dead_at is null) as waiting,
    count(*) filter (where dead_at is not null) as dead,
    coalesce((array_agg(error order by id desc) filter (where error <> ''))[1], '') as error
from notices
where sent_at is null
and case
    when dead_at is null then tries > 0 or due_at < clock_timestamp() - interval '15 minutes'
    else dead_at > clock_timestamp() - interval '7 days'
end;

-- name: notice_list
select {columns}
from notices
where user_name = $1
order by id desc
limit $2;

-- name: notice_choice
select {columns}
from notice_choices
where user_name = $1;

-- name: notice_choose
select choose_notices($1, $2, $3);

-- name: notice_slips
-- Waiting jobs whose new forecast ($1) is an hour later than an earlier one said at the latest: the oldest kept one since their
-- last start, and since they were told that last.
select
    f.job_key,
    j.slurm_id,
    j.name,
    j.user_name,
    j.tenant,
    j.gpus,
    f.start_p50,
    b.at,
    b.start_p90
from forecasts f
join jobs j on j.key = f.job_key
join lateral (
    select
        k.at,
        k.start_p90
    from forecasts k
    where k.job_key = f.job_key
    and k.kept
    and k.waits
    and k.why = ''
    and k.at < f.at
    and k.at > coalesce((select max(l.granted_at) from leases l where l.job_key = f.job_key), '-infinity')
    and k.at > coalesce((
        select max(greatest(n.created_at, n.due_at))
        from notices n
        where n.user_name = j.user_name
        and (n.kind = 'slip' and n.job_key = f.job_key or n.kind = 'digest' and n.facts -> 'counts' ? 'slip')
    ), '-infinity')
    order by k.at
    limit 1
) b on true
where f.at = to_timestamp($1::bigint / 1000.0)
and f.waits
and f.why = ''
and b.start_p90 is not null
and (f.start_p50 is null or f.start_p50 > b.start_p90 + interval '1 hour');
