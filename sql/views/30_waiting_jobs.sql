create or replace view waiting_jobs as
with waiting as (
    select
        j.*,
        v.*,
        -- Tenants see only their own: the name and standing of another that goes first, and what is wrong with promises to others, are
        -- for those who may read that anyway.
        coalesce(t.name, '') as first,
        case when t.name is not null then v.other_behind_ms else 0 end as first_behind_ms,
        case when v.code <> 'unsafe' or exists (select from violations) then v.note else '' end as words,
        f.slurm_id as for_slurm_id,
        o.slurm_id as other_slurm_id,
        case v.queue when 'job' then 'it' else 'its tenant' end as queuer,
        coalesce(nullif(v.pool, ''), 'any model') as pool_words,
        case when not passed(v.until_at) then v.until_at end as ahead_at,
        coalesce(to_char(case when not passed(v.until_at) then v.until_at end at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), 'a time not known yet') as until_words,
        case
            when a.why <> '' then 'none: ' || a.why
            when not a.waits and j.state = 'waiting' then 'none: it has begun to wait again since the newest forecasts were made'
            when a.waits then concat_ws('; ', foretold('starts', a.start_p10, a.start_p50, a.start_p90, a.horizon_ms), foretold('ends', a.end_p10, a.end_p50, a.end_p90, a.horizon_ms))
            else ''
        end as ahead
    from jobs j
    join job_statuses v on v.job_key = j.key
    left join tenants t on t.name = v.other
    left join jobs f on f.key = v.for_job
    left join jobs o on o.key = v.other_job
    left join forecasts a on a.job_key = j.key and a.at = (select max(at) from forecasts)
    where j.state in ('waiting', 'completing')
)
select
    job_key,
    slurm_id,
    name,
    tenant,
    user_name,
    gpus,
    model,
    partitions,
    eligible_at,
    at - eligible_at as age,
    terms,
    code,
    case code
        when 'behind' then format('%s; %s is %s; the next lease that could serve it ends at %s',
            case
                when first = '' then 'its turn has not come'
                when queue = 'job' then format('%s of %s goes first, being %s', coalesce('job ' || other_slurm_id, 'a job'), first, stands(first_behind_ms))
                else format('tenant %s goes first, being %s', first, stands(first_behind_ms))
            end,
            case queue when 'job' then 'it' else 'its own tenant' end, stands(behind_ms), until_words)
        when 'cells' then format('%s for its %s GPUs; %s',
            case when cell = '' then 'its tenant has no free cell, and nothing that fits could be lent,' else format('its tenant has no free cell of type %s (chain %s)', cell, chain) end,
            need_gpus,
            case
                when for_job is null then 'what there is others have'
                else format('job %s has one, %s, until %s', coalesce(for_slurm_id, 'of another tenant'), coalesce(nullif(for_right, ''), 'by no lease'), until_words)
            end)
        when 'budget' then format('stops have cost it its stop budget: it is lent no GPUs that are likely to be recalled before it ends, and no cell of its tenant%s is free for its %s GPUs',
            case when cell = '' then '' else format(' of type %s (chain %s)', cell, chain) end, need_gpus)
        when 'lost' then format('its tenant lost cells%s to bad hardware%s, and has no other free for its %s GPUs',
            case when cell = '' then '' else format(' of type %s (chain %s)', cell, chain) end, coalesce(' (' || nullif(note, '') || ')', ''), need_gpus)
        when 'unsafe' then concat_ws(': ', 'promises to virtual clusters do not add up, nothing is granted until they do', nullif(words, ''))
        when 'shape' then format('wants %s GPUs (%s) where they fit together; %s are free, but not so', need_gpus, pool_words, free_gpus)
        when 'claim' then format('%s GPUs (%s) are kept for it at %s', need_gpus, pool_words, until_words)
        when 'claimed' then format('what is free (%s GPUs) is kept for job %s; the next lease that could serve it ends at %s', free_gpus, coalesce(for_slurm_id, 'of another tenant'), until_words)
        when 'burst' then format('%s holds the most that it may while others wait; it is %s', queuer, stands(behind_ms))
        when 'lane' then 'could not be stopped once it runs, and such jobs hold what its tenant is due; the rest is for young jobs and other tenants'
        when 'bound' then format('could not be stopped once it runs, and such jobs hold what they may beyond their tenants'' due (bind.max); GPUs (%s) are kept for absent tenants, at the latest until %s', pool_words, until_words)
        when 'limit' then 'its turn, but the limit of reclaims a round is reached: next round'
        when 'stops' then format('its turn, but as many GPUs were taken from running jobs within the hour as may be (stop.per_hour); more may be at %s', until_words)
        when 'threshold' then format('%s is %s, not far enough behind the others to end a running lease', queuer, stands(behind_ms))
        when 'inactive' then format('could not start even on an empty cluster: %s', coalesce(nullif(inactive, ''), note))
        when 'failed' then
            case
                when coalesce(nullif(note, ''), said) = 'RequeuedAtStart' then format('was requeued right after its start, not by fairlease; it is tried again at %s', until_words)
                else format('was granted GPUs, but Slurm did not start it (%s); tried again at %s', coalesce(nullif(note, ''), nullif(said, ''), 'no word from Slurm'), until_words)
            end
        when 'refused' then concat_ws('; ', case when note = 'RequeuedAtStart' then 'jobs of its kind were requeued right after their start, not by fairlease'
                else format('Slurm does not start jobs of its kind (%s)', coalesce(nullif(note, ''), 'no word from Slurm')) end,
            case
                when coalesce(note, '') in ('', 'RequeuedAtStart') then null
                when note like 'Licenses%' then 'an administrator can change their number (Licenses in slurm.conf)'
                when note like 'PartitionNodeLimit%' then 'an administrator can change it (scontrol update partition), and its owner can ask for fewer nodes (scontrol update job)'
                when note like 'PartitionTimeLimit%' then 'an administrator can change it (scontrol update partition), and its owner can shorten the time limit (scontrol update job)'
                when note like 'AccountNotAllowed%' then 'an administrator can change it (scontrol update partition)'
                when note like any (array['QOS%', 'Max%', 'Assoc%', 'AccountingPolicy%']) then 'an administrator can change it (sacctmgr)'
                else 'its owner can change its request (scontrol update job)'
            end,
            format('the last one tried was job %s; one is tried again %s', coalesce(for_slurm_id, 'of another user'), case when until_at is null then 'when GPUs for it are idle' when ahead_at is null then 'soon' else 'at ' || until_words end))
        when 'reserved' then concat_ws('; ', concat_ws(': ', 'its time limit overlaps a reservation on all nodes where it could run', nullif(note, '')),
            'an administrator can change it (scontrol update reservation), and its owner can shorten the time limit (scontrol update job)')
        when 'unstarted' then 'grants of its user or tenant have not started yet, and hold as many GPUs as they may'
        when 'frozen' then format('frozen by an administrator: %s', note)
        when 'idle_only' then format('waits for %s idle GPUs (%s): it asked for no others', need_gpus, pool_words)
        when 'spent' then format('waits for %s idle GPUs (%s): its tenant''s budget is used up, and the next period begins at %s', need_gpus, pool_words, until_words)
        when 'too_big' then case when note <> '' then format('cannot start: its list of required nodes has %s, and Slurm has no node with GPUs of that name', note)
            else format('wants %s GPUs (%s); no healthy nodes could ever hold it', need_gpus, pool_words) end
        when 'rule' then format('Slurm''s rules do not let it start: %s', coalesce(nullif(note, ''), 'no word which'))
        when 'untouched' then format('not ours to lease: %s', coalesce(nullif(control_why, ''), note))
        when 'completing' then 'its last attempt still cleans up'
        when 'starting' then format('granted; Slurm is starting it, at the latest by %s', until_words)
        when 'follows' then format('granted behind job %s on %s: it starts when that ends', coalesce(for_slurm_id, 'of its tenant'), note)
        when 'granted' then 'granted in the last round'
        else concat_ws(': ', code, nullif(note, ''))
    end as reason,
    ahead_at as until_at,
    need_gpus,
    free_gpus,
    span(behind_ms) as behind,
    first as other,
    span(first_behind_ms) as other_behind,
    rank,
    for_slurm_id,
    words as note,
    rho,
    case when not passed(gate_until) then gate_until end as gate_until,
    cell,
    chain,
    for_right,
    queue,
    other_slurm_id,
    at as as_of,
    coalesce(ahead, '') as forecast
from waiting
order by eligible_at, job_key;

comment on view waiting_jobs is 'Every job that waits and why, in words and in numbers, longest wait first.';
comment on column waiting_jobs.job_key is 'Our own number of the job.';
comment on column waiting_jobs.slurm_id is 'Slurm''s id.';
comment on column waiting_jobs.name is 'Job name.';
comment on column waiting_jobs.tenant is 'The tenant.';
comment on column waiting_jobs.user_name is 'The user.';
comment on column waiting_jobs.gpus is 'GPUs asked for.';
comment on column waiting_jobs.model is 'GPU model asked for; empty = any.';
comment on column waiting_jobs.partitions is 'Partitions asked for.';
comment on column waiting_jobs.eligible_at is 'When it first could have started; null = not yet.';
comment on column waiting_jobs.age is 'Time since then.';
comment on column waiting_jobs.terms is 'Leases so far.';
comment on column waiting_jobs.code is 'The reason by name.';
comment on column waiting_jobs.reason is 'The reason in words.';
comment on column waiting_jobs.until_at is 'When it may change; null = not known, or that time has passed.';
comment on column waiting_jobs.need_gpus is 'GPUs wanted.';
comment on column waiting_jobs.free_gpus is 'GPUs that it could have had.';
comment on column waiting_jobs.behind is 'How far its tenant, or where jobs queue the job, is behind, as time at the entitlement; null = it is due nothing.';
comment on column waiting_jobs.other is 'The tenant that went before it, or whose job did.';
comment on column waiting_jobs.other_behind is 'How far that tenant or job is behind; null = it is due nothing.';
comment on column waiting_jobs.rank is 'Place in the order of choice; 0 = not said.';
comment on column waiting_jobs.for_slurm_id is 'Job that gets the GPUs, or that holds them.';
comment on column waiting_jobs.note is 'Words of Slurm or of an administrator.';
comment on column waiting_jobs.rho is 'The job''s fairness degree, received over due.';
comment on column waiting_jobs.gate_until is 'When its gate opens by itself; null = it has none, or that time has passed.';
comment on column waiting_jobs.cell is 'Type of the cell that is missing; empty = none.';
comment on column waiting_jobs.chain is 'Largest type of that cell''s chain.';
comment on column waiting_jobs.for_right is 'Right by which for_slurm_id has such a cell.';
comment on column waiting_jobs.queue is 'Claimant in line, where a policy divides heterogeneous GPU models: job, where the policy knows jobs only; empty = the tenant.';
comment on column waiting_jobs.other_slurm_id is 'Job that went before it, where jobs queue; null = none.';
comment on column waiting_jobs.as_of is 'As of when the numbers are: refreshed every few minutes, and whenever the reason changes.';
comment on column waiting_jobs.forecast is 'When it starts and ends by the newest forecast, or why there is none; empty = there is none yet.';
