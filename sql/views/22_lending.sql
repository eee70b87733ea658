create view fairlease.lending_now as
select
    pool,
    lender,
    borrower,
    gpus,
    at as since
from fairlease.lending
order by pool, gpus desc, lender, borrower;

comment on view fairlease.lending_now is 'Who lends how many GPUs to whom, as of the last round.';
comment on column fairlease.lending_now.pool is 'GPU model.';
comment on column fairlease.lending_now.lender is 'Tenant that is due the GPUs and does not hold them.';
comment on column fairlease.lending_now.borrower is 'Tenant that holds them above its entitlement.';
comment on column fairlease.lending_now.gpus is 'GPUs; what is borrowed is spread over the lenders in proportion, hence fractions.';
comment on column fairlease.lending_now.since is 'Since when it is so many.';

create view fairlease.lending_per_day as
select
    day,
    pool,
    lender,
    borrower,
    gpu_ms,
    fairlease.gpu_hours(gpu_ms) as gpu_hours
from fairlease.lending_days
order by day desc, pool, lender, borrower;

comment on view fairlease.lending_per_day is 'Who lent how much GPU time to whom, by day.';
comment on column fairlease.lending_per_day.day is 'Day, UTC.';
comment on column fairlease.lending_per_day.pool is 'GPU model.';
comment on column fairlease.lending_per_day.lender is 'Tenant that was due the GPUs.';
comment on column fairlease.lending_per_day.borrower is 'Tenant that held them.';
comment on column fairlease.lending_per_day.gpu_ms is 'GPU time lent.';
comment on column fairlease.lending_per_day.gpu_hours is 'The same in hours, rounded to millionths.';
