-- +goose Up

alter table losses
    add column certainty text not null default 'bounded',
    add column command text not null default '-',
    add column type_gpus integer not null default 0;
alter table losses
    alter column certainty drop default,
    alter column command drop default,
    alter column type_gpus drop default;
comment on table losses is 'Work that fairlease''s stops destroyed, a row a stop: GPU time since the save from which the job goes on.';
comment on column losses.certainty is 'known = since a save that the job reported, or all of the attempt of a job whose type was seen to restart from the beginning; bounded = at most, by how the job declares or is known to save; unknown = all of the attempt, since nothing is known of how the job saves.';
comment on column losses.command is 'The job''s type: its command line without numbers; - = it belongs to none, or the loss was noted by a fairlease that did not tell.';
comment on column losses.type_gpus is 'The job''s type: GPUs that it asks for; 0 = the loss was noted by a fairlease that did not tell.';
comment on column losses.gpu_ms is 'GPU time that was destroyed. It is overhead, not received by the tenant. Without a stop budget: what came after the notice, and received.';
comment on column jobs.lost_gpu_ms is 'GPU time that fairlease''s stops destroyed so far; not part of alloc_gpu_ms. Without a stop budget: what came after notices, and part of it.';
comment on column pools.overhead_gpu_ms is 'GPU time neither used nor free (completing, handing over), and work that stops destroyed.';
