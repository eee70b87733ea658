-- +goose Up

alter table ledger
    add column owed_gpu_ms bigint not null default 0,
    add column repays_gpus numeric not null default 0;
comment on column ledger.owed_gpu_ms is 'GPU time that others had of its due while it wanted that; negative = GPU time that it had of others'' dues. Each pool sums to 0. Kept for fairness.window, and repaid.';
comment on column ledger.repays_gpus is 'GPUs that it is given of others'' dues until it has that back; negative = that it gives. Part of entitlement_gpus.';
comment on column ledger.deficit_gpu_ms is 'How far it is behind its entitlement; negative = ahead. This selects the tenant that goes next, and is bounded by credit.cap and by one term of its largest gang.';
