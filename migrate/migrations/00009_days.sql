-- +goose Up
-- Tables of history are partitioned by day, UTC, and rounds are stored as differences from the round before. The
-- existing rows become the first partition of their table; no row is moved.

-- +goose StatementBegin
do $$
declare
    made constant timestamptz := clock_timestamp();
    t record;
    i record;
    cut timestamptz := made;
    latest timestamptz;
    filled boolean;
    said text;
begin
    alter table round_blobs drop constraint round_blobs_round_fkey;
    alter table actions drop constraint actions_round_fkey;
    alter table events drop constraint events_round_fkey;
    -- Rows that have no time of their own get the time of this migration.
    execute format('alter table round_blobs add column at timestamptz not null default %L, add column link integer', made);
    execute format('alter table actions add column at timestamptz not null default %L', made);
    alter table round_blobs alter column at set default now();
    alter table actions alter column at set default now();
    comment on column round_blobs.at is 'Time of the round.';
    comment on column round_blobs.link is 'Number of rounds since the keyframe; each of them is stored as the difference from the one before. Null = a fairlease before schema 9 wrote the round, as JSON or as the difference from its keyframe''s JSON.';
    comment on column actions.at is 'Time of the round.';

    for t in
        select * from (values
            ('rounds', 'number, at', true),
            ('round_blobs', 'round, at', true),
            ('actions', 'round, ordinal, at', true),
            ('events', 'round, ordinal, at', true),
            ('losses', 'round, job_key, at', true),
            ('tenant_history', 'tenant, pool, at', false),
            ('pool_history', 'pool, at', false),
            ('vc_cell_history', 'vc, chain, type, at', false),
            ('fragmentation_history', 'chain, type, at', false),
            ('entitlement_history', 'tenant, pool, at', false)
        ) as v (name, key, another)
    loop
        execute format('select max(at) from %I where at < %L', t.name, made + interval '1 day') into latest;
        cut := greatest(cut, latest);
    end loop;
    cut := date_trunc('day', cut at time zone 'UTC') at time zone 'UTC' + interval '1 day';

    for t in
        select * from (values
            ('rounds', 'number, at', true),
            ('round_blobs', 'round, at', true),
            ('actions', 'round, ordinal, at', true),
            ('events', 'round, ordinal, at', true),
            ('losses', 'round, job_key, at', true),
            ('tenant_history', 'tenant, pool, at', false),
            ('pool_history', 'pool, at', false),
            ('vc_cell_history', 'vc, chain, type, at', false),
            ('fragmentation_history', 'chain, type, at', false),
            ('entitlement_history', 'tenant, pool, at', false)
        ) as v (name, key, another)
    loop
        execute format('alter table %I rename to %I', t.name, t.name || '_before');
        execute format('create table %I (like %I including defaults including comments including storage) partition by range (at)', t.name, t.name || '_before');
        said := obj_description((t.name || '_before')::regclass, 'pg_class');
        execute format('comment on table %I is %L', t.name, said);
        execute format('alter table %I add constraint %I primary key (%s)', t.name, t.name || '_by', t.key);
        if t.another then
            execute format('alter table %I drop constraint %I', t.name || '_before', t.name || '_pkey');
        end if;
        for i in
            select c.relname as name, pg_get_indexdef(c.oid) as text, obj_description(c.oid, 'pg_class') as said
            from pg_index x
            join pg_class c on c.oid = x.indexrelid
            where x.indrelid = (t.name || '_before')::regclass
            and not x.indisprimary
        loop
            execute format('alter index %I rename to %I', i.name, i.name || '_before');
            execute regexp_replace(i.text, ' ON \S+ USING', format(' ON %I USING', t.name));
            execute format('comment on index %I is %L', i.name, i.said);
        end loop;
        execute format('create table %I partition of %I default', t.name || '_other', t.name);
        execute format('select exists (select from %I)', t.name || '_before') into filled;
        if not filled then
            execute format('drop table %I', t.name || '_before');
            continue;
        end if;
        -- Rows that a wrong clock has dated beyond the cut belong to the default partition.
        execute format('with gone as (delete from %1$I where at >= %3$L returning *) insert into %2$I select * from gone', t.name || '_before', t.name || '_other', cut);
        execute format('alter table %1$I attach partition %2$I for values from (minvalue) to (%3$L)', t.name, t.name || '_before', cut);
    end loop;
    alter table rounds add constraint rounds_seat_term_fkey foreign key (seat_term) references seats (term);
end
$$;
-- +goose StatementEnd

comment on table rounds is 'One row for each recorded decision. Rounds in which nothing changed leave no row.';
comment on table round_blobs is 'Input and outcome of each round, for replay; a new daemon goes on from the state in the newest plan. Stored as columns of numbers, as differences from what the round before predicts, compressed with zstd; read with `fairlease replay`. Pruned by age.';
comment on column round_blobs.keyframe is 'First of the rounds that must be read, in order, to restore this one; the round''s own number where it is stored complete.';
comment on column round_blobs.snapshot_bytes is 'Length of the uncompressed snapshot; where link is null, of its JSON.';
comment on column round_blobs.plan_bytes is 'Length of the uncompressed plan; where link is null, of its JSON.';
comment on table actions is 'Every change that fairlease wanted in Slurm, recorded before it was tried, and its outcome. Routine gates have no rows unless they failed: rounds.gates counts them.';

alter table rounds
    add column gates bigint not null default 0;
comment on column rounds.gates is 'Number of actions that shut or renewed gates of waiting jobs as usual. They have no rows in actions unless they failed.';

create index round_blobs_keyframe_link on round_blobs (keyframe, link);
comment on index round_blobs_keyframe_link is 'Finds the rounds that belong to a keyframe, in order.';
drop index round_blobs_keyframe;

-- +goose StatementBegin
create function history_tables() returns table (name name) language sql stable as $$
    select c.relname
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace
    and c.relkind = 'p'
    order by 1
$$;
-- +goose StatementEnd
comment on function history_tables is 'The tables that are partitioned by day.';

-- +goose StatementBegin
create function make_days(first date, last date) returns integer language plpgsql as $$
declare
    t name;
    day date;
    part text;
    begins timestamptz;
    ends timestamptz;
    made integer := 0;
begin
    for t in select name from history_tables() loop
        for day in select generate_series(first, last, interval '1 day') loop
            part := t || '_' || to_char(day, 'YYYYMMDD');
            begins := day::timestamp at time zone 'UTC';
            ends := begins + interval '1 day';
            continue when to_regclass(quote_ident(part)) is not null
                or exists (select from history_parts() p where p.parent = t and not p.rest and p.ends > begins);
            execute format('create table %I (like %I including defaults including storage)', part, t);
            execute format('with moved as (delete from %I where at >= %L and at < %L returning *) insert into %I select * from moved', t || '_other', begins, ends, part);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)', t, part, begins, ends);
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;
-- +goose StatementEnd
comment on function make_days is 'Makes the missing partitions of the days from first to last, moves rows of these days from the default partitions into them, and returns the number of partitions made.';

-- +goose StatementBegin
create function history_parts() returns table (parent name, part name, rest boolean, ends timestamptz) language sql stable as $$
    select
        p.relname,
        c.relname,
        pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT',
        substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class p on p.oid = i.inhparent
    where p.relnamespace = current_schema()::regnamespace
    and p.relkind = 'p'
    and c.relkind = 'r'
$$;
-- +goose StatementEnd
comment on function history_parts is 'The partitions of the tables that are partitioned by day. rest: the default partition, for rows of any other day; ends: the upper bound of its times.';

-- +goose StatementBegin
create function drop_days(blobs interval, history interval) returns integer language plpgsql as $$
declare
    p record;
    newest timestamptz;
    dropped integer := 0;
begin
    select max(at) from rounds into newest;
    for p in
        select part
        from history_parts()
        where not rest
        and ends <= now() - case when parent = 'round_blobs' then blobs else history end
        and (parent not in ('rounds', 'round_blobs') or ends <= newest)
    loop
        execute format('drop table %I', p.part);
        dropped := dropped + 1;
    end loop;
    return dropped;
end
$$;
-- +goose StatementEnd
comment on function drop_days is 'Drops the partitions whose rows are all older than blobs (of round_blobs) or history (of all other tables), but keeps the newest round. Returns the number of partitions dropped.';

-- +goose StatementBegin
create function prune_rest(blobs interval, history interval) returns bigint language plpgsql as $$
declare
    p record;
    gone bigint;
    total bigint := 0;
    newest timestamptz;
begin
    select max(at) from rounds into newest;
    for p in select parent, part from history_parts() where rest loop
        execute format('delete from %I where at < least(date_trunc(''day'', $1, ''UTC''), date_trunc(''day'', $2, ''UTC''))', p.part)
        using now() - case when p.parent = 'round_blobs' then blobs else history end,
            case when p.parent in ('rounds', 'round_blobs') then newest else 'infinity' end;
        get diagnostics gone = row_count;
        total := total + gone;
    end loop;
    return total;
end
$$;
-- +goose StatementEnd
comment on function prune_rest is 'Deletes the rows of the default partitions that are older than blobs (of round_blobs) or history (of all other tables). Returns the number of rows deleted.';
