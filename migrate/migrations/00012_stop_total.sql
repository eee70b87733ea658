-- +goose Up

alter table pools add column stops_gpu_ms bigint not null default 0;
comment on column pools.stops_gpu_ms is 'Remaining cost of stops for all its jobs together (stop.total); below 0 = excess.';
