-- Each takes its rows as one JSON array of objects with the columns' names.

-- name: drop_members
delete from members
where (tenant, user_name) not in (select tenant, user_name from json_populate_recordset(null::members, $1));

-- name: put_members
insert into members (
    tenant,
    user_name
)
select
    tenant,
    user_name
from json_populate_recordset(null::members, $1)
on conflict do nothing;
