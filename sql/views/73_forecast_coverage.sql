create or replace view forecast_coverage as
select
    kind,
    divided_by,
    class,
    at,
    statements,
    forecasts,
    percent,
    low,
    high
from forecast_classes
order by divided_by, kind desc, class;

comment on view forecast_coverage is 'How many statements of earlier forecasts kept their word, by class.';
comment on column forecast_coverage.kind is 'What the statement is about: waiting_start, waiting_end or running_end.';
comment on column forecast_coverage.divided_by is 'What divides the kind: tenant, gpus (of the job) or ahead (how far ahead the median is); empty = the whole kind.';
comment on column forecast_coverage.class is 'The part of the kind; empty = the whole kind.';
comment on column forecast_coverage.at is 'The moment of the forecast that counted them.';
comment on column forecast_coverage.statements is 'Statements whose word can be judged.';
comment on column forecast_coverage.forecasts is 'Forecasts that made them.';
comment on column forecast_coverage.percent is 'The part that kept its word, on the scale of intervals for 8 of 10: 80 is as promised.';
comment on column forecast_coverage.low is 'Lower end of its 95 percent interval of confidence.';
comment on column forecast_coverage.high is 'Upper end of its 95 percent interval of confidence.';
