-- name: put_bound_jobs
insert into bound_jobs {rows}
on conflict (job_key) do update set {new};

-- name: drop_bound_jobs
delete from bound_jobs
where job_key in (select job_key from json_populate_recordset(null::bound_jobs, $1));

-- name: bound_now
select {columns}
from bound_gpus;
