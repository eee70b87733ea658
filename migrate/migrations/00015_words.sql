-- +goose Up

-- Tables and columns have the words that the documentation has.

alter table seats rename to leaders;
alter index seats_pkey rename to leaders_pkey;
alter index seats_one_seated rename to leaders_one_leads;
alter sequence seats_term_seq rename to leaders_term_seq;
alter table rounds rename column seat_term to leader_term;
alter table rounds rename constraint rounds_seat_term_fkey to rounds_leader_term_fkey;
alter view if exists seat_now rename to leader_now;
comment on index leaders_one_leads is 'No two holders lead at once.';
comment on column leaders.term is 'Number of this time in the lead, given by the database; grows, never repeats.';
comment on column leaders.acquired_at is 'When the holder began to lead, by the database''s clock.';
comment on column leaders.takeover_after is 'How long after the last sign of life another daemon may lead.';
comment on column leaders.ended_at is 'When the holder resigned or was replaced, by the database''s clock; null while it leads.';
comment on column rounds.leader_term is 'Term of the leader that decided it.';

alter table verdicts rename to job_statuses;
alter index verdicts_pkey rename to job_statuses_pkey;
comment on table job_statuses is 'The engine''s latest reason for every live job. Written when the reason changes; the numbers alone are refreshed every few minutes, in rotation.';
comment on column jobs.alloc_gpu_ms is 'GPU time received (ASTRAEA eq. 2), as of recorded_at. While the job lives, job_statuses has a fresher number.';
comment on column jobs.due_gpu_ms is 'GPU time due (ASTRAEA eq. 14), as of recorded_at. While the job lives, job_statuses has a fresher number.';

alter table divisions rename to allocations;
alter index divisions_pkey rename to allocations_pkey;
alter sequence divisions_number_seq rename to allocations_number_seq;
alter index divisions_in_force rename to allocations_in_force;
alter index divisions_since rename to allocations_since;
alter view if exists division_history rename to allocation_history;
comment on table allocations is 'Allocations of heterogeneous GPU models by a policy: a row for each allocation that was in force. At most one has no end.';

-- +goose StatementBegin
do $$
begin
    execute format('comment on schema %I is %L', current_schema(),
        replace(obj_description(current_schema()::regnamespace, 'pg_namespace'), 'Only the daemon in the seat writes it', 'Only the leading daemon writes it'));
end
$$;
-- +goose StatementEnd
