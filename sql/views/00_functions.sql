create or replace function rho(received numeric, due numeric)
    returns numeric
    language sql
    immutable
    return case
        when received <= 0 and due <= 0 then null
        when received <= 0 then 0
        when due <= 0 then 'Infinity'
        else trunc(received / due, 6)
    end;
comment on function rho(numeric, numeric) is
    'Fairness degree: received over due, cut to millionths; Infinity = received without being due; null = neither.';

create or replace function span(ms bigint)
    returns interval
    language sql
    immutable
    return case when ms > -4611686018427387904 then justify_hours(make_interval(secs => ms / 1000.0)) end;
comment on function span(bigint) is 'Milliseconds as an interval; null for the span of a claimant that is due nothing, the smallest there is.';

create or replace function passed(moment timestamptz)
    returns boolean
    language sql
    stable
    return coalesce(moment < now(), false);
comment on function passed(timestamptz) is 'Whether a moment is known and lies before now.';

create or replace function gpu_hours(gpu_ms numeric)
    returns numeric
    language sql
    immutable
    return round(gpu_ms / 3600000, 6);
comment on function gpu_hours(numeric) is 'GPU-milliseconds as GPU-hours, rounded to millionths, for reading; add up the milliseconds, not these.';

create or replace function even_in(owed_gpu_ms bigint, repays_gpus numeric, beyond_gpus numeric)
    returns interval
    language sql
    immutable
    return case
        when owed_gpu_ms > 0 and least(repays_gpus, beyond_gpus) > 0
            then span(round(least(owed_gpu_ms / least(repays_gpus, beyond_gpus), 1e15))::bigint)
        when owed_gpu_ms < 0 and greatest(repays_gpus, beyond_gpus) < 0
            then span(round(least(owed_gpu_ms / greatest(repays_gpus, beyond_gpus), 1e15))::bigint)
    end;
comment on function even_in(bigint, numeric, numeric) is
    'How long until a tenant is even, from GPU-milliseconds that it is owed (negative = owes), GPUs that it gets for that (negative = gives), and GPUs that it holds beyond its own due; null = never at this pace.';

create or replace function millionths(x numeric)
    returns bigint
    language sql
    immutable
    return case
        when x = 'Infinity' then 9223372036854775807
        else (x * 1000000)::bigint
    end;
comment on function millionths(numeric) is 'A number in millionths, as programs read it; Infinity is the largest there is.';

create or replace function foretold(verb text, p10 timestamptz, p50 timestamptz, p90 timestamptz, horizon_ms bigint)
    returns text
    language sql
    stable
    return (
        select case
            when p10 is null then format('%s in more than %s days in 9 of 10 runs', verb, days)
            when p50 is null and passed(p10) then format('%s in more than %s days in half of the runs', verb, days)
            when p50 is null then format('%s after %s in 9 of 10 runs, in more than %s days in half of them', verb, early, days)
            when passed(p90) then format('%s now: nearly all runs expected it by %s', verb, late)
            when p90 is null and passed(p10) or early = late then format('%s about %s', verb, soon)
            when p90 is null then format('%s about %s, after %s in 9 of 10 runs', verb, soon, early)
            when passed(p10) then format('%s about %s, by %s in 9 of 10 runs', verb, soon, late)
            else format('%s about %s, between %s and %s in 8 of 10 runs', verb, soon, early, late)
        end
        from (
            select
                to_char(p10 at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as early,
                case when passed(p50) then 'now' else to_char(p50 at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') end as soon,
                to_char(p90 at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as late,
                round(horizon_ms / 86400000.0, 1)::double precision as days
        ) w
    );
comment on function foretold(text, timestamptz, timestamptz, timestamptz, bigint) is 'When something happens by a forecast, in words; a moment that is null is beyond the horizon, and one that has passed is now.';

create or replace function in_words(ms bigint)
    returns text
    language sql
    immutable
    return case
        when ms >= 86400000 then ms / 86400000 || ' d' || coalesce(' ' || nullif(ms % 86400000 / 3600000, 0) || ' h', '')
        when ms >= 3600000 then ms / 3600000 || ' h' || coalesce(' ' || nullif(ms % 3600000 / 60000, 0) || ' min', '')
        when ms >= 300000 then ms / 60000 || ' min'
        when ms >= 60000 then ms / 60000 || ' min' || coalesce(' ' || nullif(ms % 60000 / 1000, 0) || ' s', '')
        else ms / 1000 || ' s'
    end;
comment on function in_words(bigint) is 'A length of time in words, from milliseconds from 0 on, as all texts for people have it: 1 h 20 min.';

create or replace function stands(behind_ms bigint)
    returns text
    language sql
    immutable
    return case
        when behind_ms <= -4611686018427387904 then 'due nothing there'
        when behind_ms >= 1000 then in_words(behind_ms) || ' behind its due'
        when behind_ms <= -1000 then in_words(-behind_ms) || ' ahead of its due'
        else 'even'
    end;
comment on function stands(bigint) is 'How far behind or ahead of its due a tenant is, in words, from milliseconds at its entitlement.';
