-- +goose Up

alter table pools add column stops_gpu_ms bigint not null default 0;
comment on column pools.stops_gpu_ms is 'What stops may still cost all its jobs together (stop.total); below 0 = what they have cost beyond it.';
