-- +goose Up

-- Rows of history come in the order of their time, so the least and the greatest time of some pages find them too, in
-- a hundredth of the room.
-- +goose StatementBegin
do $$
declare
    t text;
    said text;
begin
    foreach t in array array['tenant_history', 'pool_history', 'vc_cell_history', 'fragmentation_history', 'entitlement_history'] loop
        said := obj_description((t || '_at')::regclass, 'pg_class');
        execute format('drop index %I', t || '_at');
        execute format('create index %I on %I using brin (at) with (pages_per_range = 16, autosummarize = on)', t || '_at', t);
        execute format('comment on index %I is %L', t || '_at', said);
    end loop;
end
$$;
-- +goose StatementEnd

comment on column ledger.deficit_gpu_ms is 'How far it is behind its entitlement; negative = ahead. This selects the tenant that goes next, and is bounded by credit.cap, and by one term of its largest gang and reclaim.threshold of its share.';
