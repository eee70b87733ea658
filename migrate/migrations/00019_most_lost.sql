-- +goose Up

-- A job that declares how it saves may ignore its signal: a loss has an upper bound beside the number by the declaration.

alter table losses add column if not exists most_gpu_ms bigint not null default 0;
update losses set most_gpu_ms = gpu_ms where most_gpu_ms = 0 and certainty <> 'bounded';
comment on column losses.most_gpu_ms is 'Upper bound of the GPU time that was destroyed, whatever the job declares: since the newest save that the attempt reported, or all of the attempt. 0 where gpu_ms is above 0: noted by a fairlease that did not tell.';
comment on column losses.certainty is 'known = since a save that the job reported, or all of the attempt of a job whose type was seen to restart from the beginning; bounded = if the job saves as it declares or is known to, and at most most_gpu_ms if it does not; unknown = all of the attempt, since nothing is known of how the job saves.';
comment on table losses is 'Work that fairlease''s stops destroyed or may have destroyed, a row a stop: GPU time since the save from which the job goes on.';
