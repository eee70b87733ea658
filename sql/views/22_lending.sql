create or replace view lending_now as
select
    pool,
    lender,
    borrower,
    gpus,
    at as since
from lending
order by pool, gpus desc, lender, borrower;

comment on view lending_now is 'GPUs that tenants lend to each other, as of the last round.';
comment on column lending_now.pool is 'GPU model.';
comment on column lending_now.lender is 'Tenant that is due the GPUs and does not hold them.';
comment on column lending_now.borrower is 'Tenant that holds them above its entitlement.';
comment on column lending_now.gpus is 'GPUs; borrowed GPUs are spread over the lenders in proportion, hence fractions.';
comment on column lending_now.since is 'Start of this number.';

create or replace view lending_per_day as
select
    day,
    pool,
    lender,
    borrower,
    gpu_ms,
    gpu_hours(gpu_ms) as gpu_hours
from lending_days
order by day desc, pool, lender, borrower;

comment on view lending_per_day is 'GPU time that tenants lent to each other, by day.';
comment on column lending_per_day.day is 'Day, UTC.';
comment on column lending_per_day.pool is 'GPU model.';
comment on column lending_per_day.lender is 'Tenant that was due the GPUs.';
comment on column lending_per_day.borrower is 'Tenant that held them.';
comment on column lending_per_day.gpu_ms is 'GPU time lent.';
comment on column lending_per_day.gpu_hours is 'The same in hours, rounded to millionths.';
