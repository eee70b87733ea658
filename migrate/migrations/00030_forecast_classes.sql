-- +goose Up

-- How many statements of forecasts kept their word, by class.

create table if not exists forecast_classes (
    kind text not null,
    divided_by text not null,
    class text not null,
    at timestamptz not null,
    statements integer not null,
    forecasts integer not null,
    percent double precision not null,
    low double precision not null,
    high double precision not null,
    primary key (kind, divided_by, class)
);
comment on table forecast_classes is 'How many statements of the forecasts of the last days (forecast.last) kept their word. Each forecast replaces all rows.';
comment on column forecast_classes.kind is 'waiting_start, waiting_end or running_end: what the statement is about.';
comment on column forecast_classes.divided_by is 'What divides the kind: tenant, gpus or ahead; empty = the whole kind.';
comment on column forecast_classes.class is 'The part of the kind; empty = the whole kind.';
comment on column forecast_classes.at is 'The moment of the forecast that counted them.';
comment on column forecast_classes.statements is 'Statements whose word can be judged.';
comment on column forecast_classes.forecasts is 'Forecasts that made them.';
comment on column forecast_classes.percent is 'The part that kept its word, on the scale of intervals for 8 of 10: 80 is as promised.';
comment on column forecast_classes.low is 'Lower end of its 95 percent interval of confidence.';
comment on column forecast_classes.high is 'Upper end of its 95 percent interval of confidence.';
