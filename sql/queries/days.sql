-- Tables that are partitioned by day.

-- name: make_days
select make_days($1, $2);

-- name: drop_days
select drop_days($1, $2);

-- name: prune_rest
select prune_rest($1, $2);
