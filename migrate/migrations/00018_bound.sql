-- +goose Up

-- Where a policy stops at a proven bound, the journal has the bound.

alter table allocations add column if not exists bound double precision not null default 0;
comment on column allocations.bound is 'Upper bound of the largest objective, where it is not proven that the policy reached it; 0 = it did.';
