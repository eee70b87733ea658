-- +goose Up

-- Devices of a model may count as parts of a GPU (models.worth), so that the GPUs of a pool are a number with at most six decimals.
alter table pools alter column gpus type numeric,
    alter column bad_gpus type numeric;
comment on column pools.gpus is 'GPUs at the last look, bad ones too. A device counts as what it is worth.';

alter table pool_history alter column gpus type numeric;
comment on column pool_history.gpus is 'GPUs then, bad ones too. A device counts as what it is worth.';
