-- +goose Up

-- When jobs will start and end, by runs of the queue in simulated time (forecast).

create table if not exists forecasts (
    at timestamptz not null,
    job_key bigint not null,
    round bigint not null,
    runs integer not null,
    horizon_ms bigint not null,
    waits boolean not null,
    why text not null,
    start_p10 timestamptz,
    start_p50 timestamptz,
    start_p90 timestamptz,
    end_p10 timestamptz,
    end_p50 timestamptz,
    end_p90 timestamptz,
    raw_ms bigint[] not null,
    kept boolean not null,
    primary key (job_key, at)
);
create index if not exists forecasts_at on forecasts (at);
comment on table forecasts is 'When each job will start and end. There are the rows of the newest forecast, and of one in six hours, by which later ones are calibrated.';
comment on index forecasts_at is 'For replacing a forecast, and for pruning.';
comment on column forecasts.at is 'The moment from which it looks ahead: that of its round.';
comment on column forecasts.job_key is 'The job.';
comment on column forecasts.round is 'Round whose queue it continues.';
comment on column forecasts.runs is 'Number of runs.';
comment on column forecasts.horizon_ms is 'How far ahead it looks.';
comment on column forecasts.waits is 'True if the job waited for GPUs, for the first time or again.';
comment on column forecasts.why is 'Why there is no forecast; empty = there is one.';
comment on column forecasts.start_p10 is 'Start of a waiting job: in one of ten runs it was then or earlier. Null = beyond the horizon, or the job runs.';
comment on column forecasts.start_p50 is 'In half of the runs it was then or earlier.';
comment on column forecasts.start_p90 is 'In nine of ten runs it was then or earlier.';
comment on column forecasts.end_p10 is 'End of the job: in one of ten runs it was then or earlier. Null = beyond the horizon.';
comment on column forecasts.end_p50 is 'In half of the runs it was then or earlier.';
comment on column forecasts.end_p90 is 'In nine of ten runs it was then or earlier.';
comment on column forecasts.raw_ms is 'The six moments before calibration, ms since 1970; 0 = beyond the horizon.';
comment on column forecasts.kept is 'True if it stays when there is a newer one.';
