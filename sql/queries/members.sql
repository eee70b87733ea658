-- name: drop_members
delete from members
where (tenant, user_name) not in (select tenant, user_name from json_populate_recordset(null::members, $1));

-- name: put_members
insert into members {rows}
on conflict do nothing;
