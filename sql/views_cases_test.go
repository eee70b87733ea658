package sql_test

import "strings"

// views lists, for every view, rows that are put into the tables and what the
// view must then say: the columns asked for, and its rows as PostgreSQL writes
// them, in the view's own order. Times are 2 March 2026, UTC.
var views = []struct {
	name    string
	given   string
	columns string
	want    []string
}{
	{
		"tenant_fairness",
		`insert into fairlease.ledger values
			('bio', 'v100', '2026-03-02 10:00', 3, 6, 5.333333, 8, 7, 0.5, 1.666667, 2, -5000, -1500, 7200000, 9000000, 36000000, 18000000, 0.8, 2, -43200000, -0.333333, 900, -100, 800000, 1000000),
			('astro', 'v100', '2026-03-02 09:00', 1, 2, 2, 0, 1, 0, 0, 0, 90061001, 90061001, 1, 0, 9007199254740993, 1, 'Infinity', 'Infinity', 43200000, 0.333333, 0, 0, 0, 0),
			('nlp', 'v100', '2026-03-02 10:00', 1, 8, 12, 40, 12, 0, 0, 5, 0, 0, 1, 1, 1, 1, 1, 1, 691200000, 4, 0, 0, 0, 0),
			('owes', 'v100', '2026-03-02 10:00', 1, 8, 4, 40, 6, 0, 2, 5, 0, 0, 1, 1, 1, 1, 1, 1, -691200000, -4, 0, 0, 0, 0)`,
		"tenant, pool, weight, entitlement_gpus, demand_gpus, holds_gpus, borrowed_gpus, lent_gpus, waiting_jobs, rho, rho_all, behind, deficit_gpu_ms, " +
			"owed_gpu_ms, owed_gpu_hours, repays_gpus, even_in, window_alloc_gpu_ms, window_due_gpu_ms, alloc_gpu_ms, due_gpu_ms, alloc_gpu_hours, due_gpu_hours, " +
			"window_work_gpu_ms, window_work_due_gpu_ms, work_gpu_ms, work_due_gpu_ms, as_of",
		[]string{
			"astro|v100|1|2|0|1|0|0|0|Infinity|Infinity|1 day 01:01:01.001|90061001|43200000|12.000000|0.333333||1|0|9007199254740993|1|2501999792.983609|0.000000|1|0|9007199254740993|1|2026-03-02 10:00:00+00",
			"bio|v100|3|5.333333|8|7|1.666667|0.5|2|0.8|2|-00:00:01.5|-5000|-43200000|-12.000000|-0.333333||7200000|9000000|36000000|18000000|10.000000|5.000000|8000000|10000000|36000900|17999900|2026-03-02 10:00:00+00",
			"nlp|v100|1|12|40|12|0|0|5|1|1|00:00:00|0|691200000|192.000000|4|2 days|1|1|1|1|0.000000|0.000000|1|1|1|1|2026-03-02 10:00:00+00",
			"owes|v100|1|4|40|6|2|0|5|1|1|00:00:00|0|-691200000|-192.000000|-4|4 days|1|1|1|1|0.000000|0.000000|1|1|1|1|2026-03-02 10:00:00+00",
		},
	},
	{
		"tenant_fairness_over_time",
		`insert into fairlease.window_buckets values
			('bio', 'v100', '2026-03-02 02:00', 9223372036854775807, 9223372036854775807),
			('bio', 'v100', '2026-03-02 00:00', 500, 1000), ('bio', 'v100', '2026-03-02 01:00', 2000, 1500),
			('idle', 'v100', '2026-03-02 00:00', 0, 0), ('idle', 'v100', '2026-03-02 01:00', 7, 0)`,
		"tenant, pool, from_at, until_at, alloc_gpu_ms, due_gpu_ms, rho, alloc_so_far_gpu_ms, due_so_far_gpu_ms, rho_so_far, work_gpu_ms, work_due_gpu_ms",
		[]string{
			"bio|v100|2026-03-02 00:00:00+00|2026-03-02 01:00:00+00|500|1000|0.500000|500|1000|0.500000|500|1000",
			"bio|v100|2026-03-02 01:00:00+00|2026-03-02 02:00:00+00|2000|1500|1.333333|2500|2500|1.000000|2000|1500",
			"bio|v100|2026-03-02 02:00:00+00||9223372036854775807|9223372036854775807|1.000000|9223372036854778307|9223372036854778307|1.000000|9223372036854775807|9223372036854775807",
			"idle|v100|2026-03-02 00:00:00+00|2026-03-02 01:00:00+00|0|0||0|0||0|0",
			"idle|v100|2026-03-02 01:00:00+00||7|0|Infinity|7|0|Infinity|7|0",
		},
	},
	{ // where a policy divides GPU models: a tenant that gave a100s for v100s has lost nothing
		"tenant_fairness_over_time",
		`insert into fairlease.entitlements (tenant, pool, at, base_gpus, usable_gpus, divided_gpus, entitlement_gpus, holds_gpus, speed) values
			('bio', 'a100', '2026-03-02 03:00', 1, 1, 1, 0, 0, 3);
		insert into fairlease.window_buckets values
			('bio', 'a100', '2026-03-02 00:00', 0, 1000, 0, 2000), ('bio', 'v100', '2026-03-02 00:00', 5000, 1000, -500, -500),
			('bio', 'a100', '2026-03-02 01:00', 500, 1000, 1000, 2000)`,
		"tenant, pool, from_at, until_at, alloc_gpu_ms, due_gpu_ms, rho, alloc_so_far_gpu_ms, due_so_far_gpu_ms, rho_so_far, work_gpu_ms, work_due_gpu_ms",
		[]string{
			"bio|a100|2026-03-02 00:00:00+00|2026-03-02 01:00:00+00|0|1000|1.285714|0|1000|1.285714|0|3000",
			"bio|a100|2026-03-02 01:00:00+00||500|1000|0.500000|500|2000|0.923076|1500|3000",
			"bio|v100|2026-03-02 00:00:00+00||5000|1000|1.285714|5000|1000|1.285714|4500|500",
		},
	},
	{
		"job_fairness",
		job(1, "11", "bio", "ann", "done", "done_at = '2026-03-02 03:00', alloc_gpu_ms = 950, due_gpu_ms = 1000, recorded_at = '2026-03-02 03:00:01'") +
			job(2, "12_3", "bio", "bob", "running", "terms = 2, lost_gpu_ms = 7") + status(2, "holding", "alloc_gpu_ms = 3000, due_gpu_ms = 1000, extra_gpu_ms = 1000, extra_due_gpu_ms = -200") +
			job(3, "13", "bio", "bob", "waiting", "eligible_at = null, recorded_at = '2026-03-02 04:00'"),
		"job_key, slurm_id, name, tenant, user_name, state, gpus, terms, alloc_gpu_ms, due_gpu_ms, rho, lost_gpu_ms, age, as_of, work_gpu_ms, work_due_gpu_ms",
		[]string{
			"3|13|train|bio|bob|waiting|4|0|0|0||0||2026-03-02 04:00:00+00|0|0",
			"2|12_3|train|bio|bob|running|4|2|3000|1000|5.000000|7|01:30:00|2026-03-02 02:30:00+00|4000|800",
			"1|11|train|bio|ann|done|4|0|950|1000|0.950000|0|02:00:00|2026-03-02 03:00:01+00|950|1000",
		},
	},
	{
		"debts",
		`insert into fairlease.ledger (tenant, pool, at, weight, base_gpus, entitlement_gpus, demand_gpus, holds_gpus, lent_gpus, borrowed_gpus,
			waiting_jobs, deficit_gpu_ms, behind_ms, window_alloc_gpu_ms, window_due_gpu_ms, alloc_gpu_ms, due_gpu_ms, rho, rho_all, owed_gpu_ms)
		select t.name, 'v100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t.owed
		from (values ('bio', -7200000), ('chem', -3600000), ('astro', 9000000), ('nlp', 1800000), ('even', 0)) as t(name, owed)`,
		"pool, creditor, debtor, gpu_ms, gpu_hours, as_of",
		[]string{
			"v100|astro|bio|6000000.000|1.666667|2026-03-02 10:00:00+00",
			"v100|astro|chem|3000000.000|0.833333|2026-03-02 10:00:00+00",
			"v100|nlp|bio|1200000.000|0.333333|2026-03-02 10:00:00+00",
			"v100|nlp|chem|600000.000|0.166667|2026-03-02 10:00:00+00",
		},
	},
	{
		"sharing_loss",
		`insert into fairlease.ledger values
			('bio', 'v100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 949, 1000, 0, 0, 0.949, 1),
			('chem', 'v100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 95, 100, 0, 0, 0.95, 1),
			('idle', 'v100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);` +
			job(1, "11", "bio", "ann", "done", "alloc_gpu_ms = 949, due_gpu_ms = 1000") +
			job(2, "12", "bio", "ann", "done", "alloc_gpu_ms = 950, due_gpu_ms = 1000") +
			job(3, "13", "bio", "bob", "waiting", "due_gpu_ms = 70") +
			job(4, "14", "bio", "bob", "waiting", ""),
		"scope, tenant, pool, slurm_id, user_name, state, rho, received_gpu_ms, due_gpu_ms, missing_gpu_ms",
		[]string{
			"tenant|bio|v100||||0.949|949|1000|51",
			"job|bio||13|bob|waiting|0|0|70|70",
			"job|bio||11|ann|done|0.949000|949|1000|51",
		},
	},
	{
		"sharing_loss",
		`insert into fairlease.entitlements (tenant, pool, at, base_gpus, usable_gpus, divided_gpus, entitlement_gpus, holds_gpus, speed) values
			('bio', 'a100', '2026-03-02 03:00', 1, 1, 1, 0, 0, 3);
		insert into fairlease.ledger values
			('bio', 'a100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 100, 300, 0, 0, 0.8, 1, 0, 0, 0, 0, 200, 600),
			('bio', 'v100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 580, 200, 0, 0, 0.8, 1, 0, 0, 0, 0, 0, 0),
			('chem', 'a100', '2026-03-02 10:00', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 300, 0, 0, 1.1, 1, 0, 0, 0, 0, 0, 600);` +
			job(1, "11", "bio", "ann", "done", "alloc_gpu_ms = 500, due_gpu_ms = 1000, extra_gpu_ms = 1000, extra_due_gpu_ms = 0") +
			job(2, "12", "bio", "ann", "done", "alloc_gpu_ms = 1000, due_gpu_ms = 1000, extra_due_gpu_ms = 1000"),
		"scope, tenant, pool, slurm_id, user_name, state, rho, received_gpu_ms, due_gpu_ms, missing_gpu_ms",
		[]string{
			"tenant|bio|||||0.8|880|1100|220",
			"job|bio||12|ann|done|0.500000|1000|2000|1000",
		},
	},
	{
		"sharing_loss_summary",
		job(1, "11", "bio", "ann", "done", "alloc_gpu_ms = 949, due_gpu_ms = 1000") +
			job(2, "12", "bio", "ann", "done", "alloc_gpu_ms = 950, due_gpu_ms = 1000") +
			job(3, "13", "bio", "bob", "done", "alloc_gpu_ms = 2000, due_gpu_ms = 1000") +
			job(4, "14", "bio", "bob", "waiting", "due_gpu_ms = 70") +
			job(5, "15", "chem", "cy", "done", "alloc_gpu_ms = 5") +
			`insert into fairlease.window_buckets values
			('bio', 'v100', '2026-03-02 00:00', 999, 1000), ('bio', 'v100', '2026-03-02 01:00', 1000, 1000),
			('chem', 'v100', '2026-03-02 00:00', 0, 10), ('chem', 'v100', '2026-03-02 01:00', 0, 0)`,
		"tenant, jobs_done, jobs_in_loss, jobs_in_loss_percent, slices, slices_in_loss, slices_in_loss_percent",
		[]string{"bio|3|1|33.3|2|1|50.0", "chem|0|0||1|1|100.0"},
	},
	{
		"lease_history",
		lease(1, 1, "over", "started_at = '2026-03-02 00:00:05', ended_at = '2026-03-02 00:15', why = 'renewed', alloc_from_gpu_ms = 0, alloc_to_gpu_ms = 3580000, ended_round = 90") +
			lease(1, 2, "noticed", "granted_at = '2026-03-02 00:15', started_at = '2026-03-02 00:15', noticed_at = '2026-03-02 00:29', alloc_from_gpu_ms = 3580000") +
			status(1, "notice", "alloc_gpu_ms = 4000000") +
			lease(2, 1, "over", "ended_at = '2026-03-02 00:02', why = 'taken back', alloc_from_gpu_ms = 0, alloc_to_gpu_ms = 0, ended_round = 12, behind = 7"),
		"job_key, slurm_id, term, tenant, user_name, class, state, pool, gpus, nodes, granted_at, started_at, ends_at, noticed_at, ended_at, held, why, adopted, gpu_ms, granted_round, ended_round, behind",
		[]string{
			"1|11|2|bio|ann|shared|noticed|v100|4|{n1,n2}|2026-03-02 00:15:00+00|2026-03-02 00:15:00+00|2026-03-02 00:30:00+00|2026-03-02 00:29:00+00||||f|420000|1||0",
			"2|12|1|bio|ann|shared|over|v100|4|{n1,n2}|2026-03-02 00:00:00+00||2026-03-02 00:30:00+00||2026-03-02 00:02:00+00||taken back|f|0|1|12|7",
			"1|11|1|bio|ann|shared|over|v100|4|{n1,n2}|2026-03-02 00:00:00+00|2026-03-02 00:00:05+00|2026-03-02 00:30:00+00||2026-03-02 00:15:00+00|00:14:55|renewed|f|3580000|1|90|0",
		},
	},
	{
		"gpu_hours",
		`insert into fairlease.charges values ('2026-03-01', 'bio', 'ann', 'v100', 5400000), ('2026-03-02', 'bio', 'ann', 'k80', 1),
			('2026-03-02', 'bio', '', 'v100', -7200000), ('2026-03-02', 'astro', 'eve', 'v100', 9007199254740993)`,
		"day, tenant, user_name, model, gpu_ms, gpu_hours",
		[]string{
			"2026-03-02|astro|eve|v100|9007199254740993|2501999792.983609",
			"2026-03-02|bio||v100|-7200000|-2.000000",
			"2026-03-02|bio|ann|k80|1|0.000000",
			"2026-03-01|bio|ann|v100|5400000|1.500000",
		},
	},
	{
		"lending_now",
		`insert into fairlease.lending values ('v100', 'astro', 'bio', 0.333333, '2026-03-02 01:00'), ('v100', 'chem', 'bio', 2.000000, '2026-03-02 02:00'),
			('k80', 'bio', 'chem', 1.500000, '2026-03-02 03:00')`,
		"pool, lender, borrower, gpus, since",
		[]string{
			"k80|bio|chem|1.500000|2026-03-02 03:00:00+00",
			"v100|chem|bio|2.000000|2026-03-02 02:00:00+00",
			"v100|astro|bio|0.333333|2026-03-02 01:00:00+00",
		},
	},
	{
		"lending_per_day",
		`insert into fairlease.lending_days values ('2026-03-01', 'v100', 'astro', 'bio', 5400000.000001), ('2026-03-02', 'v100', 'astro', 'bio', 1)`,
		"day, pool, lender, borrower, gpu_ms, gpu_hours",
		[]string{
			"2026-03-02|v100|astro|bio|1|0.000000",
			"2026-03-01|v100|astro|bio|5400000.000001|1.500000",
		},
	},
	{
		"work_lost",
		lease(1, 2, "over", "ended_at = '2026-03-02 00:15'") + losses,
		"at, slurm_id, job_key, tenant, user_name, pool, lease_term, gpu_ms, most_gpu_ms, certainty, command, gpus, run_time, round",
		[]string{
			"2026-03-02 00:30:00+00|12|2|bio|bob|v100|1|5|9|bounded|-|||31",
			"2026-03-02 00:15:00+00|11|1|bio|ann|v100|2|240000|240000|known|/home/ann/train.sh|4|00:01:00|30",
			"2026-03-01 23:00:00+00|11|1|bio|ann|v100|1|1000|1000|unknown|/home/ann/train.sh|||20",
		},
	},
	{
		"work_lost_per_day",
		losses,
		"day, tenant, user_name, certainty, stops, gpu_ms, gpu_hours, most_gpu_hours",
		[]string{
			"2026-03-02|bio|ann|known|1|240000|0.066667|0.066667",
			"2026-03-02|bio|bob|bounded|1|5|0.000001|0.000003",
			"2026-03-01|bio|ann|unknown|1|1000|0.000278|0.000278",
		},
	},
	{
		"work_lost_per_kind",
		losses,
		"tenant, user_name, command, gpus, stops, gpu_hours, known_gpu_hours, bounded_gpu_hours, unknown_gpu_hours, most_gpu_hours, last_at",
		[]string{
			"bio|ann|/home/ann/train.sh|4|2|0.066944|0.066667|0.000000|0.000278|0.066944|2026-03-02 00:15:00+00",
			"bio|bob|-|1|1|0.000001|0.000000|0.000001|0.000000|0.000003|2026-03-02 00:30:00+00",
		},
	},
	{
		"round_latency",
		rounds,
		"number, at, since_previous, deciding, settling, acting, jobs, actions, actions_suppressed, preset",
		[]string{
			"3|2026-03-02 00:01:00+00|00:00:40|00:00:00.25|||9|2|0|astraea",
			"2|2026-03-02 00:00:20+00|00:00:20|00:00:00.5|00:00:02|00:00:01.234|9|2|1|astraea",
			"1|2026-03-02 00:00:00+00||00:00:00.1|00:00:01|00:00:00|9|2|0|astraea",
		},
	},
	{
		"round_latency_per_hour",
		rounds,
		"hour, rounds, deciding_median, deciding_p95, deciding_max, settling_median, settling_p95, settling_max, actions",
		[]string{"2026-03-02 00:00:00+00|3|00:00:00.25|00:00:00.5|00:00:00.5|00:00:01|00:00:02|00:00:02|6"},
	},
	{
		"waiting_jobs",
		"insert into fairlease.tenants (name, weight) values ('astro', 1), ('bio', 1);" + job(1, "11", "bio", "ann", "waiting", "terms = 3") +
			status(1, "behind", "behind_ms = 61500, other = 'astro', other_behind_ms = 90061000, until_at = '2026-03-02 00:30', rank = 4, rho = 0.5, gate_until = '2026-03-02 01:00'") +
			job(2, "12", "bio", "ann", "running", "") + status(2, "holding", "") +
			job(3, "13", "bio", "ann", "waiting", "") + status(3, "claimed", "free_gpus = 2, for_job = 1") +
			job(4, "14", "bio", "ann", "waiting", "") +
			status(4, "cells", "cell = 'rack', chain = 'rack-v100', for_job = 1, for_right = 'guaranteed', until_at = '2026-03-02 00:30'") +
			job(5, "15", "bio", "ann", "waiting", "") +
			status(5, "behind", "behind_ms = -2000, other = 'astro', other_behind_ms = 61000, until_at = '2026-03-02 00:30'") +
			job(6, "16", "bio", "ann", "waiting", "") +
			status(6, "behind", "other = 'bio', other_behind_ms = 61000, queue = 'job', other_job = 1, until_at = '2026-03-02 00:30'") +
			job(7, "17", "bio", "ann", "waiting", "") + status(7, "behind", "other = 'astro', queue = 'job', other_job = 99, until_at = '2026-03-02 00:30'") +
			job(8, "18", "bio", "ann", "waiting", "") + status(8, "burst", "behind_ms = 61000") +
			job(9, "19", "bio", "ann", "waiting", "") + status(9, "threshold", "queue = 'job', behind_ms = 61000") + `
		insert into fairlease.forecasts (at, job_key, round, runs, horizon_ms, waits, why, start_p10, start_p50, start_p90, end_p10, end_p50, end_p90, raw_ms, kept) values
			('2026-03-01 23:00', 1, 1, 100, 604800000, true, '', '2026-03-01 23:30', null, null, null, null, null, '{0,0,0,0,0,0}', true),
			('2026-03-02 00:00', 1, 2, 100, 604800000, true, '', '2026-03-02 00:30', '2026-03-02 01:00', '2026-03-02 02:00', '2026-03-03 00:30', '2026-03-04 01:00', null, '{0,0,0,0,0,0}', false),
			('2026-03-02 00:00', 2, 2, 100, 604800000, false, '', null, null, null, '2026-03-03 00:30', null, null, '{0,0,0,0,0,0}', false),
			('2026-03-02 00:00', 3, 2, 100, 129600000, true, '', '2026-03-02 00:30', '2026-03-02 00:30', '2026-03-02 00:30', null, null, null, '{0,0,0,0,0,0}', false),
			('2026-03-02 00:00', 4, 2, 100, 604800000, true, '', '2026-03-02 00:30', null, null, null, null, null, '{0,0,0,0,0,0}', false),
			('2026-03-02 00:00', 5, 2, 100, 604800000, true, 'it is frozen', null, null, null, null, null, null, '{0,0,0,0,0,0}', false),
			('2026-03-02 00:00', 7, 2, 100, 604800000, false, '', null, null, null, '2026-03-03 00:30', null, null, '{0,0,0,0,0,0}', false)`,
		"job_key, slurm_id, name, tenant, user_name, gpus, model, partitions, eligible_at, age, terms, code, reason, until_at, need_gpus, free_gpus, behind, other, other_behind, rank, for_slurm_id, note, rho, gate_until, cell, chain, for_right, queue, other_slurm_id, as_of, forecast",
		[]string{
			"1|11|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|3|behind|tenant astro goes first, being 1 d 1 h behind its due; its own tenant is 1 min 1 s behind its due; " +
				"the next lease that could serve it ends at 2026-03-02 00:30:00 UTC|2026-03-02 00:30:00+00|4|0|00:01:01.5|astro|1 day 01:01:01|4|||0.5|2026-03-02 01:00:00+00||||||2026-03-02 02:30:00+00|starts about 2026-03-02 01:00 UTC, between 2026-03-02 00:30 UTC and 2026-03-02 02:00 UTC in 8 of 10 runs; ends about 2026-03-04 01:00 UTC, after 2026-03-03 00:30 UTC in 9 of 10 runs",
			"3|13|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|claimed|what is free (2 GPUs) is kept for job 11; the next lease that could serve it ends at a time not known yet||4|2|00:00:00||00:00:00|0|11||0|||||||2026-03-02 02:30:00+00|starts about 2026-03-02 00:30 UTC; ends in more than 1.5 days in 9 of 10 runs",
			"4|14|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|cells|its tenant has no free cell of type rack (chain rack-v100) for its 4 GPUs; job 11 has one, guaranteed, " +
				"until 2026-03-02 00:30:00 UTC|2026-03-02 00:30:00+00|4|0|00:00:00||00:00:00|0|11||0||rack|rack-v100|guaranteed|||2026-03-02 02:30:00+00|starts after 2026-03-02 00:30 UTC in 9 of 10 runs, in more than 7 days in half of them; ends in more than 7 days in 9 of 10 runs",
			"5|15|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|behind|tenant astro goes first, being 1 min 1 s behind its due; its own tenant is 2 s ahead of its due; " +
				"the next lease that could serve it ends at 2026-03-02 00:30:00 UTC|2026-03-02 00:30:00+00|4|0|-00:00:02|astro|00:01:01|0|||0|||||||2026-03-02 02:30:00+00|none: it is frozen",
			"6|16|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|behind|job 11 of bio goes first, being 1 min 1 s behind its due; it is even; " +
				"the next lease that could serve it ends at 2026-03-02 00:30:00 UTC|2026-03-02 00:30:00+00|4|0|00:00:00|bio|00:01:01|0|||0|||||job|11|2026-03-02 02:30:00+00|",
			"7|17|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|behind|a job of astro goes first, being even; it is even; " +
				"the next lease that could serve it ends at 2026-03-02 00:30:00 UTC|2026-03-02 00:30:00+00|4|0|00:00:00|astro|00:00:00|0|||0|||||job||2026-03-02 02:30:00+00|none: it has begun to wait again since the newest forecasts were made",
			"8|18|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|burst|its tenant holds the most that it may while others wait; it is 1 min 1 s behind its due||4|0|00:01:01||00:00:00|0|||0|||||||2026-03-02 02:30:00+00|",
			"9|19|train|bio|ann|4|v100|{batch}|2026-03-02 01:00:00+00|01:30:00|0|threshold|it is 1 min 1 s behind its due, not far enough behind the others to end a running lease||4|0|00:01:01||00:00:00|0|||0|||||job||2026-03-02 02:30:00+00|",
		},
	},
	{
		"pool_balance",
		`insert into fairlease.pools values ('k80', '2026-03-02 01:00', 4, 0, 0, 0, 0, 0, 0, 0, 0), ('v100', '2026-03-02 01:00', 8, 1, 3000, 1000, 500, 250, 1200, 50, -7),
			('x', '2026-03-02 01:00', 1, 0, 9223372036854775807, 0, 0, 0, 9223372036854775806, 0, 0)`,
		"pool, gpus, bad_gpus, capacity_gpu_ms, tenants_gpu_ms, untouchable_gpu_ms, overhead_gpu_ms, idle_gpu_ms, bad_gpu_ms, unaccounted_gpu_ms, tenants_percent, idle_percent, overhead_percent, as_of, stops_gpu_ms",
		[]string{
			"k80|4|0|0|0|0|0|0|0|0||||2026-03-02 01:00:00+00|0",
			"v100|8|1|3000|1000|500|250|1200|50|0|33.33|40.00|8.33|2026-03-02 01:00:00+00|-7",
			"x|1|0|9223372036854775807|0|0|0|9223372036854775806|0|1|0.00|100.00|0.00|2026-03-02 01:00:00+00|0",
		},
	},
	{
		"overrides_in_force",
		`insert into fairlease.overrides (kind, scope, name, until_at, reason, by, created_at, ended_at, job_key) values
			('exempt', 'job', '12_3', '2999-01-01', 'paper', 'root', '2026-03-02', null, 7),
			('freeze', 'user', 'eve', '2999-01-01', 'runaway', 'root', '2026-03-02', '2026-03-03', null),
			('boost', 'tenant', 'bio', '2026-03-03', 'deadline', 'root', '2026-03-02', null, null)`,
		"id, kind, scope, name, until_at, reason, by, created_at, job_key",
		[]string{"1|exempt|job|12_3|2999-01-01 00:00:00+00|paper|root|2026-03-02 00:00:00+00|7"},
	},
	{
		"tuned_terms",
		`insert into fairlease.tunings (at, kind, file_ms, before_ms, term_ms, by, why, round) values
			('2026-03-02', 'proposed', 900000, 900000, 1200000, 'fairlease', 'better', 0),
			('2026-03-03', 'taken', 900000, 900000, 1200000, 'ann', 'as agreed', 7)`,
		"id, at, kind, before, term, by, why, round",
		[]string{
			"2|2026-03-03 00:00:00+00|taken|00:15:00|00:20:00|ann|as agreed|7",
			"1|2026-03-02 00:00:00+00|proposed|00:15:00|00:20:00|fairlease|better|0",
		},
	},
	{
		"forecasts_now",
		job(1, "11", "bio", "ann", "waiting", "") + job(2, "12", "bio", "ann", "running", "") + job(3, "13", "bio", "ann", "waiting", "") + job(4, "14", "bio", "ann", "running", "") + `insert into fairlease.forecasts (at, job_key, round, runs, horizon_ms, waits, why, start_p10, start_p50, end_p10, raw_ms, kept) values
			('2026-03-02 00:00', 1, 1, 100, 86400000, true, '', '2026-03-02 00:30', null, null, '{0,0,0,0,0,0}', true),
			('2026-03-02 01:00', 1, 2, 100, 86400000, true, '', '2026-03-02 01:30', '2026-03-02 02:00', null, '{0,0,0,0,0,0}', false),
			('2026-03-02 01:00', 2, 2, 100, 86400000, false, '', null, null, '2026-03-02 03:00', '{0,0,0,0,0,0}', false),
			('2026-03-02 01:00', 3, 2, 100, 86400000, false, '', null, null, '2026-03-02 03:00', '{0,0,0,0,0,0}', false),
			('2026-03-02 01:00', 4, 2, 100, 86400000, true, '', '2026-03-02 01:30', '2026-03-02 02:00', '2026-03-02 03:00', '{0,0,0,0,0,0}', false)`,
		"job_key, slurm_id, name, tenant, user_name, gpus, waits, why, start_p10, start_p50, start_p90, end_p10, end_p50, end_p90, as_of, runs, horizon, state",
		[]string{
			"1|11|train|bio|ann|4|t||2026-03-02 01:30:00+00|2026-03-02 02:00:00+00|||||2026-03-02 01:00:00+00|100|1 day|waiting",
			"2|12|train|bio|ann|4|f|||||2026-03-02 03:00:00+00|||2026-03-02 01:00:00+00|100|1 day|running",
			"3|13|train|bio|ann|4|f|it has begun to wait again since the newest forecasts were made|||||||2026-03-02 01:00:00+00|100|1 day|waiting",
			"4|14|train|bio|ann|4|t|it has started since the newest forecasts were made|||||||2026-03-02 01:00:00+00|100|1 day|running",
		},
	},
	{
		"forecast_coverage",
		`insert into fairlease.forecast_classes (kind, divided_by, class, at, statements, forecasts, percent, low, high) values
			('running_end', '', '', '2026-03-02 01:00', 200, 20, 80.5, 71, 88),
			('waiting_start', '', '', '2026-03-02 01:00', 1200, 56, 78, 74.5, 81),
			('waiting_start', 'tenant', 'bio', '2026-03-02 01:00', 60, 12, 91, 60, 97)`,
		"kind, divided_by, class, at, statements, forecasts, percent, low, high",
		[]string{
			"waiting_start|||2026-03-02 01:00:00+00|1200|56|78|74.5|81",
			"running_end|||2026-03-02 01:00:00+00|200|20|80.5|71|88",
			"waiting_start|tenant|bio|2026-03-02 01:00:00+00|60|12|91|60|97",
		},
	},
	{
		"budgets", // bio had 140 GPU-hours in two days, and 10 more on the day before the last seven
		`insert into fairlease.budget_periods values
			('bio', '2026-03-01 00:00', '2026-04-01 00:00', true, 'month', 1000, '{"v100": 2}', 'idle-only', '{}', '{"v100": 360000000}', 800, '2026-03-10 00:00', '2026-03-09 12:00', null, 80),
			('bio', '2026-02-01 00:00', '2026-03-01 00:00', false, 'month', 1000, '{}', 'warn', '{}', '{}', 900, '2026-03-01 00:00', null, null, 0),
			('old', '2026-03-01 00:00', '2026-04-01 00:00', true, 'month', 10, '{}', 'warn', '{}', '{}', 0, '2026-03-10 00:00', null, null, 0),
			('phys', '2026-03-01 00:00', '2026-04-01 00:00', true, 'month', 10, '{}', 'idle-only', '{}', '{}', 12, '2026-03-10 00:00', '2026-03-01 01:00', '2026-03-01 02:00', 100);
		insert into fairlease.charges values
			('2026-03-02', 'bio', 'ann', 'v100', 36000000), ('2026-03-08', 'bio', 'ann', 'v100', 72000000), ('2026-03-09', 'bio', 'bob', 'k80', 360000000),
			('2026-03-09', 'phys', 'eve', 'k80', 3600000)`,
		"tenant, per, start_at, end_at, gpu_hours, used_gpu_hours, used_percent, at_end, prices, received_gpu_ms, gpu_hours_per_day, used_up_at, end_percent, warned_at, spent_at, idle_only, as_of",
		[]string{
			`bio|month|2026-03-01 00:00:00+00|2026-04-01 00:00:00+00|1000|800|80.00|idle-only|{"v100": 2}|{"v100": 360000000}|70|2026-03-12 20:34:17.142857+00|234.00|2026-03-09 12:00:00+00||f|2026-03-10 00:00:00+00`,
			`old|month|2026-03-01 00:00:00+00|2026-04-01 00:00:00+00|10|0|0.00|warn|{}|{}|0||0.00|||f|2026-03-10 00:00:00+00`,
			`phys|month|2026-03-01 00:00:00+00|2026-04-01 00:00:00+00|10|12|120.00|idle-only|{}|{}|1|2026-03-01 02:00:00+00|340.00|2026-03-01 01:00:00+00|2026-03-01 02:00:00+00|t|2026-03-10 00:00:00+00`,
		},
	},
	{
		"objectives_kept", // 28 days count, and the newest target; an objective without events is not listed
		`insert into fairlease.objective_days
			select (clock_timestamp() at time zone 'UTC')::date - d.ago, d.objective, d.tenant, d.target, d.within, d.total, d.bad
			from (values (0, 'first_lease', '', 90, 60000, 10, 1), (1, 'first_lease', '', 95, 70000, 10, 1), (27, 'first_lease', 'bio', 90, 60000, 20, 4), (28, 'first_lease', 'bio', 90, 60000, 7, 7),
				(0, 'rounds', '', 99, null, 1000, 5), (3, 'gpus', '', 95, null, 0, 0)) d (ago, objective, tenant, target, within, total, bad)`,
		"objective, tenant, target_percent, within_ms, total, bad, reached_percent, budget_left_percent, (clock_timestamp() at time zone 'UTC')::date - from_day, (clock_timestamp() at time zone 'UTC')::date - to_day",
		[]string{
			"first_lease||90|60000|20|2|90.000|0.000|1|0",
			"first_lease|bio|90|60000|20|4|80.000|-100.000|27|27",
			"rounds||99||1000|5|99.500|50.000|0|0",
		},
	},
	{
		"bound_gpus", // bio is due 5.333333 of v100: its third job is partly beyond that; the last job is of no tenant, and a job that has ended holds nothing
		job(1, "11", "bio", "ann", "running", "") + job(2, "12", "bio", "bob", "running", "") + job(3, "13", "bio", "ann", "suspended", "") + job(4, "14", "", "eve", "running", "") +
			job(5, "15", "bio", "ann", "done", "done_at = '2026-03-02 03:00'") + job(6, "16", "bio", "ann", "running", "") +
			`insert into fairlease.ledger (tenant, pool, at, weight, base_gpus, entitlement_gpus, demand_gpus, holds_gpus, lent_gpus, borrowed_gpus,
				waiting_jobs, deficit_gpu_ms, behind_ms, window_alloc_gpu_ms, window_due_gpu_ms, alloc_gpu_ms, due_gpu_ms, rho, rho_all, owed_gpu_ms) values
				('bio', 'v100', '2026-03-02 10:00', 1, 1, 5.333333, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
			insert into fairlease.bound_jobs values
				(1, 'age', 'v100', 2, '2026-03-02 01:00', null), (2, 'no_requeue', 'v100', 2, '2026-03-02 02:00', '2026-03-05'), (3, 'session', 'v100', 4, '2026-03-02 02:00', null),
				(4, 'no_tenant', 'v100', 1, '2026-03-02 01:00', null), (5, 'age', 'v100', 8, '2026-03-02 00:00', null), (6, 'exempt', 'a100', 1, '2026-03-02 00:00', '2026-03-03')`,
		"job_key, slurm_id, name, tenant, user_name, way, pool, gpus, since_at, until_at, beyond_gpus",
		[]string{
			"4|14|train||eve|no_tenant|v100|1|2026-03-02 01:00:00+00||1",
			"6|16|train|bio|ann|exempt|a100|1|2026-03-02 00:00:00+00|2026-03-03 00:00:00+00|1",
			"1|11|train|bio|ann|age|v100|2|2026-03-02 01:00:00+00||0",
			"2|12|train|bio|bob|no_requeue|v100|2|2026-03-02 02:00:00+00|2026-03-05 00:00:00+00|0",
			"3|13|train|bio|ann|session|v100|4|2026-03-02 02:00:00+00||2.666667",
		},
	},
	{
		"events_recent",
		rounds + job(1, "11", "bio", "ann", "running", "") + `insert into fairlease.events values
			(1, 0, '2026-03-02 00:00', 'drift', null, 'n1', 'n1 is down'), (1, 1, '2026-03-02 00:00', 'grant', 1, '', 'granted'), (2, 0, '2026-03-02 00:00:20', 'grant', 99, '', 'pruned job')`,
		"at, kind, slurm_id, node, text, round",
		[]string{
			"2026-03-02 00:00:20+00|grant|||pruned job|2",
			"2026-03-02 00:00:00+00|grant|11||granted|1",
			"2026-03-02 00:00:00+00|drift||n1|n1 is down|1",
		},
	},
	{
		"actions_recent",
		rounds + `insert into fairlease.actions (round, ordinal, verb, job_key, slurm_id, until_at, nodes, reservation, limit_ms, signal, suppressed, reason, ok, skipped, error, took_ms) values
			(1, 0, 'grant', 1, '11', null, '{n1}', '', 0, '', false, '{"code":"granted"}', true, false, '', 40),
			(1, 1, 'reclaim', 2, '12', '2026-03-02 01:00', '{}', '', 0, '', false, '{"code":"notice"}', false, false, 'no', 1500),
			(1, 2, 'gate', 3, '13', null, '{}', '', 0, '', false, '{"code":"gate"}', false, true, 'moved on', 0),
			(1, 3, 'gate', 4, '14', null, '{}', '', 0, '', true, '{"code":"gate"}', false, true, '', 0),
			(2, 0, 'grant', 5, '15', null, '{}', '', 0, '', false, '{"code":"granted"}', null, null, null, null),
			(3, 0, 'unreserve', null, '', null, '{}', 'fairlease_1', 0, '', false, '{"code":"tidy"}', null, null, null, null)`,
		"at, round, ordinal, verb, slurm_id, nodes, until_at, reason, status, error, took, job_key",
		[]string{
			"2026-03-02 00:01:00+00|3|0|unreserve||{}||tidy|under way|||",
			"2026-03-02 00:00:20+00|2|0|grant|15|{}||granted|unknown|||5",
			"2026-03-02 00:00:00+00|1|3|gate|14|{}||gate|suppressed||00:00:00|4",
			"2026-03-02 00:00:00+00|1|2|gate|13|{}||gate|skipped|moved on|00:00:00|3",
			"2026-03-02 00:00:00+00|1|1|reclaim|12|{}|2026-03-02 01:00:00+00|notice|failed|no|00:00:01.5|2",
			"2026-03-02 00:00:00+00|1|0|grant|11|{n1}||granted|done||00:00:00.04|1",
		},
	},
	{
		"leader_now",
		`insert into fairlease.leaders (holder, acquired_at, renewed_at, takeover_after, ended_at, why, schema_version) values
			('old', '2026-03-01', '2026-03-01', '15 s', '2026-03-02', 'taken over', 26), ('new', '2026-03-02', '2026-03-02', '15 s', null, null, 27)`,
		"term, holder, acquired_at, renewed_at, silent_for > interval '0', takeover_at",
		[]string{"2|new|2026-03-02 00:00:00+00|2026-03-02 00:00:00+00|t|2026-03-02 00:00:15+00"},
	},
	{
		"standbys_now", // neither the leader, nor what ended by itself; a process that its host replaced is not gone
		`insert into fairlease.leaders (holder, takeover_after, schema_version) values ('ctl1:7', '15 s', 27);
		insert into fairlease.daemons (holder, since, seen_at, silent_after) values
			('ctl1:7', '2026-03-02', now(), '1 min'), ('ctl1:5', '2026-03-01', now() - interval '1 hour', '1 min'),
			('ctl2:8', '2026-03-02', now() - interval '50 s', '1 min'), ('ctl2:9', '2026-03-02', now(), '1 min'),
			('ctl3:1', '2026-03-02', now() - interval '23 hours', '1 min'), ('ctl4:1', '2026-03-02', now() - interval '25 hours', '1 min')`,
		"holder, since, seen_at + silent_for > now(), silent_for > interval '1 hour', alive",
		[]string{"ctl2:8|2026-03-02 00:00:00+00|t|f|t", "ctl2:9|2026-03-02 00:00:00+00|t|f|t", "ctl3:1|2026-03-02 00:00:00+00|t|t|f"},
	},
	{
		"nodes_out_of_service",
		`insert into fairlease.nodes values
			('n1', '[{"model": "v100", "count": 4}]', 16, 64000, '{}', '{}', '', '', null, '2026-03-02'),
			('n2', '[]', 16, 64000, '{}', '{}', 'drained', '', null, '2026-03-02'),
			('n3', '[]', 16, 64000, '{}', '{}', '', 'completing', null, '2026-03-02'),
			('n4', '[]', 16, 64000, '{}', '{}', 'down', '', '2026-03-03', '2026-03-02')`,
		"name, gpus, why, no_capacity, since",
		[]string{
			"n2|[]|drained|t|2026-03-02 00:00:00+00",
			"n3|[]|completing|f|2026-03-02 00:00:00+00",
			"n4|[]|gone|t|2026-03-03 00:00:00+00",
		},
	},
	{
		"cell_holders",
		cells + job(1, "11", "bio", "ann", "running", "") + job(2, "12_3", "chem", "cy", "running", "") + job(3, "13", "bio", "ann", "running", "") +
			lease(1, 1, "over", "ended_at = '2026-03-02 00:15', why = 'renewed'") + lease(1, 2, "active", "gpus = 16") +
			lease(2, 1, "noticed", "class = 'opportunistic', gpus = 2") + lease(3, 1, "active", "ended_at = '2026-03-02 00:30'"),
		"vc, chain, type, nodes, node_gpus, gpus, used_gpus, bad_gpus, pinned, since, by_right, job_key, slurm_id, tenant, user_name, job_gpus, state, ends_at",
		[]string{
			"bio|rack-v100|rack|{n1,n2}|0-7|16|16|0|f|2026-03-02 00:00:00+00|guaranteed|1|11|bio|ann|16|active|2026-03-02 00:30:00+00",
			"bio|rack-v100|rack|{n1,n2}|0-7|16|16|0|f|2026-03-02 00:00:00+00|guaranteed|3|13|bio|ann|||",
			"bio|rack-v100|rack|{n1,n2}|0-7|16|16|0|f|2026-03-02 00:00:00+00|opportunistic|2|12_3|chem|cy|2|noticed|2026-03-02 00:30:00+00",
			"bio|rack-v100|node|{n3}|0-7|8|0|1|t|2026-03-02 01:00:00+00||||||||",
			"chem|rack-v100|quad|{n4}|4-7|4|2|0|f|2026-03-02 02:00:00+00|guaranteed|9||||||",
		},
	},
	{
		"vc_cells_now",
		`insert into fairlease.vc_cells values
			('bio', 'rack-v100', 'node', '2026-03-02 01:00', 8, 7, 1, 2, 1, 4, 3), ('bio', 'rack-v100', 'rack', '2026-03-02 00:00', 16, 1, 0, 0, 0, 1, 0),
			('astro', 'rack-v100', 'node', '2026-03-02 02:00', 8, 1, 0, 1, 0, 0, 0)`,
		"vc, chain, type, cell_gpus, reserved, pinned, bound, lost, free, lent, free_at_once_gpus, lent_gpus, since",
		[]string{
			"astro|rack-v100|node|8|1|0|1|0|0|0|0|0|2026-03-02 02:00:00+00",
			"bio|rack-v100|rack|16|1|0|0|0|1|0|16|0|2026-03-02 00:00:00+00",
			"bio|rack-v100|node|8|7|1|2|1|4|3|8|24|2026-03-02 01:00:00+00",
		},
	},
	{
		"vc_cells_over_time",
		`insert into fairlease.vc_cell_history values
			('bio', 'rack-v100', 'node', '2026-03-02 01:00', 8, 7, 1, 2, 1, 4, 3), ('bio', 'rack-v100', 'node', '2026-03-02 00:00', 8, 7, 1, 0, 0, 7, 0),
			('bio', 'rack-v100', 'rack', '2026-03-02 00:00', 16, 1, 0, 0, 0, 1, 0), ('bio', 'rack-v100', 'node', '2026-03-02 02:00', 0, 0, 0, 0, 0, 0, 0)`,
		"vc, chain, type, from_at, until_at, cell_gpus, reserved, pinned, bound, lost, free, lent",
		[]string{
			"bio|rack-v100|node|2026-03-02 00:00:00+00|2026-03-02 01:00:00+00|8|7|1|0|0|7|0",
			"bio|rack-v100|node|2026-03-02 01:00:00+00|2026-03-02 02:00:00+00|8|7|1|2|1|4|3",
			"bio|rack-v100|node|2026-03-02 02:00:00+00||0|0|0|0|0|0|0",
			"bio|rack-v100|rack|2026-03-02 00:00:00+00||16|1|0|0|0|1|0",
		},
	},
	{
		"fragmentation_over_time",
		`insert into fairlease.fragmentation_history values
			('rack-v100', 'gpu', '2026-03-02 00:00', 1, 17, 64), ('rack-v100', 'rack', '2026-03-02 00:00', 16, 1, 3), ('rack-v100', 'rack', '2026-03-02 01:00', 16, 2, 3),
			('rack-v100', 'rack', '2026-03-02 02:00', 0, 0, 0)`,
		"chain, type, cell_gpus, from_at, until_at, broken, cells, broken_percent",
		[]string{
			"rack-v100|rack|16|2026-03-02 00:00:00+00|2026-03-02 01:00:00+00|1|3|33.3",
			"rack-v100|rack|16|2026-03-02 01:00:00+00|2026-03-02 02:00:00+00|2|3|66.7",
			"rack-v100|gpu|1|2026-03-02 00:00:00+00||17|64|26.6",
			"rack-v100|rack|0|2026-03-02 02:00:00+00||0|0|",
		},
	},
	{
		"safety_violations",
		`insert into fairlease.violations (what, since, ended_at) values ('racks', '2026-03-02 00:00', '2026-03-02 00:01'), ('nodes', '2026-03-02 01:00', null)`,
		"id, what, since, ended_at, lasted",
		[]string{
			"2|nodes|2026-03-02 01:00:00+00||",
			"1|racks|2026-03-02 00:00:00+00|2026-03-02 00:01:00+00|00:01:00",
		},
	},
	{
		"recalls",
		recalls,
		"decided_at, slurm_id, job_key, term, tenant, user_name, class, pool, gpus, ended_at, freeing, for_job, for_slurm_id, for_tenant, for_class, for_gpus, for_started_at, latency",
		[]string{
			"2026-03-02 00:01:00+00|14|4|1|bio|ann|shared|v100|4|||8||||||",
			"2026-03-02 00:00:20+00|11|1|2|bio|ann|opportunistic|v100|4|2026-03-02 00:00:50+00|00:00:30|9|19|bio|guaranteed|4|2026-03-02 00:01:00+00|00:00:40",
			"2026-03-02 00:00:20+00|12|2|1|bio|ann|opportunistic|v100|2|2026-03-02 00:00:30+00|00:00:10|9|19|bio|guaranteed|4|2026-03-02 00:01:00+00|00:00:40",
		},
	},
	{
		"recalls_per_day",
		recalls,
		"day, for_class, jobs_served, recalls, gpus, latency_median, latency_p95, latency_max",
		[]string{
			"2026-03-02|guaranteed|1|2|6|00:00:40|00:00:40|00:00:40",
			"2026-03-02||1|1|4|||",
		},
	},
	{
		"job_profiles",
		`insert into fairlease.profiles values
			('ml/bert', '', 'v100', 1, 'observed', 30, 12, 0.05, '2026-03-02 01:00', ''), ('ml/bert', '', 'k80', 1, 'observed', 10, 4, 0.1, '2026-03-02 00:00', ''),
			('ml/bert', '', 'v100', 1, 'declared', 60, 0, 0, null, 'file'), ('ml/bert', '', 'p4', 1, 'observed', 0, 1, 0, null, ''),
			('ml/bert', 'ml/gan', 'v100', 1, 'observed', 20, 5, 0, null, ''), ('gan', '', 'k80', 8, 'declared', 0, 0, 0, null, 'file')`,
		"kind, beside, model, gang, source, rate, speedup, over_model, samples, spread, heard_at, basis",
		[]string{
			"gan||k80|8|declared|0|||0|0||file",
			"ml/bert||k80|1|observed|10|1|k80|4|0.1|2026-03-02 00:00:00+00|",
			"ml/bert||p4|1|observed|0|0|k80|1|0||",
			"ml/bert||v100|1|declared|60|1|v100|0|0||file",
			"ml/bert||v100|1|observed|30|3|k80|12|0.05|2026-03-02 01:00:00+00|",
			"ml/bert|ml/gan|v100|1|observed|20|1|v100|5|0||",
		},
	},
	{
		"entitlements_now",
		entitlements,
		"tenant, pool, base_gpus, divided_gpus, entitlement_gpus, traded_gpus, usable_gpus, holds_gpus, speed, since",
		[]string{
			"bio|k80|4|4|1|-3|1|2|1|2026-03-02 00:00:00+00",
			"bio|v100|4|4|5.5|1.5|4|6|2.5|2026-03-02 01:00:00+00",
			"idle|v100|4|0|0|0|0|0|1|2026-03-02 00:30:00+00",
		},
	},
	{
		"effective_throughput",
		entitlements,
		"tenant, throughput, due_throughput, share_throughput, ratio, since",
		[]string{
			"bio|17|14.75|11|1.5454545454545454|2026-03-02 01:00:00+00",
			"idle|0|0|0||2026-03-02 00:30:00+00",
		},
	},
	{
		"entitlements_over_time",
		entitlementHistory,
		"tenant, pool, from_at, until_at, base_gpus, divided_gpus, entitlement_gpus, traded_gpus, usable_gpus, holds_gpus, speed",
		[]string{
			"bio|k80|2026-03-02 22:00:00+00||4|4|2|-2|4|2|1",
			"bio|v100|2026-03-02 22:00:00+00|2026-03-02 23:00:00+00|4|4|5|1|4|2|2.5",
			"bio|v100|2026-03-02 23:00:00+00|2026-03-03 02:00:00+00|4|4|5|1|4|6|2.5",
			"bio|v100|2026-03-03 02:00:00+00||0|0|0|0|0|0|0",
		},
	},
	{
		"effective_throughput_over_time",
		entitlementHistory,
		"tenant, from_at, until_at, throughput, due_throughput, share_throughput",
		[]string{
			"bio|2026-03-02 22:00:00+00|2026-03-02 23:00:00+00|7.0|14.5|14.0",
			"bio|2026-03-02 23:00:00+00|2026-03-03 02:00:00+00|17.0|14.5|14.0",
			"bio|2026-03-03 02:00:00+00||2.0|2.0|4.0",
		},
	},
	{
		"effective_throughput_per_day",
		entitlementHistory + strings.ReplaceAll(rounds, "2026-03-02 00:01:00", "2026-03-03 03:00:00"),
		"day, tenant, throughput_hours, due_hours, share_hours, ratio",
		[]string{
			"2026-03-03|bio|36.000000|31.000000|32.000000|1.125000",
			"2026-03-02|bio|24.000000|29.000000|28.000000|0.857143",
		},
	},
	{
		"trade_history",
		`insert into fairlease.trades (id, made_at, fast, slow, fast_to, fast_to_kind, slow_to, slow_to_kind, fast_gpus, slow_gpus, price,
				fast_to_speedup, slow_to_speedup, fast_to_gain, slow_to_gain, left_fast_gpus, left_slow_gpus, undone_at, undone_why) values
			(1, '2026-03-02 00:00', 'v100', 'k80', 'nlp', 'nlp/bert', 'bio', 'bio/vae', 2, 3, 1.5, 4, 1.2, 1.25, 0.25, 0, 0, '2026-03-02 01:30', 'left'),
			(2, '2026-03-02 00:00', 'v100', 'k80', 'nlp', 'nlp/bert', 'bio', 'bio/vae', 2, 3, 1.5, 4, 1.2, 1.25, 0.25, 1, 1.5, '2026-03-02 02:00', 'demand'),
			(1, '2026-03-02 03:00', 'v100', 'k80', 'nlp', 'nlp/gan', 'bio', 'bio/vae', 1, 1, 1, 2, 0.5, 1, 0.5, 1, 1, null, '')`,
		"id, made_at, in_force, fast, slow, fast_to, fast_to_kind, slow_to, slow_to_kind, fast_gpus, slow_gpus, price, fast_to_speedup, slow_to_speedup, " +
			"fast_to_gain, slow_to_gain, undone_at, undone_fast_gpus, undone_slow_gpus, undone_why, lasted",
		[]string{
			"1|2026-03-02 03:00:00+00|t|v100|k80|nlp|nlp/gan|bio|bio/vae|1|1|1|2|0.5|1|0.5||0|0||",
			"2|2026-03-02 00:00:00+00|t|v100|k80|nlp|nlp/bert|bio|bio/vae|2|3|1.5|4|1.2|1.25|0.25|2026-03-02 02:00:00+00|1|1.5|demand|",
			"1|2026-03-02 00:00:00+00|f|v100|k80|nlp|nlp/bert|bio|bio/vae|2|3|1.5|4|1.2|1.25|0.25|2026-03-02 01:30:00+00|2|3|left|01:30:00",
		},
	},
	{
		"allocation_history",
		rounds + `insert into fairlease.allocations (policy, digest, objective, bound, why_not, pools, parties, since, ended_at) values
			('gavel:las', 'd1', 0.5, 0, '', '{k80,v100}', 7, '2026-03-02 00:00:00', '2026-03-02 00:00:20'),
			('oef:coop', 'd2', 40, 42.5, 'no answer', '{k80}', 2, '2026-03-02 00:00:20', null)`,
		"number, policy, since, ended_at, held, objective, bound, why_not, parties, pools, digest",
		[]string{
			"2|oef:coop|2026-03-02 00:00:20+00||00:00:40|40|42.5|no answer|2|{k80}|d2",
			"1|gavel:las|2026-03-02 00:00:00+00|2026-03-02 00:00:20+00|00:00:20|0.5|0||7|{k80,v100}|d1",
		},
	},
	{
		"audits_per_day",
		audits,
		"day, at, policy, pareto_slack, least_sharing_incentive, most_envy, most_gained_by_more, most_gained_by_less, misreports",
		[]string{
			"2026-03-03|2026-03-03 00:00:10+00|oef:coop||||||0",
			"2026-03-02|2026-03-02 00:00:10+00|gandiva-fair|0.25|0.9|1.5|0.02|-0.1|2",
		},
	},
	{
		"fairness_audit",
		audits,
		"day, tenant, sharing_incentive, most_envy, envies, gained_by_more, gained_by_less, policy, at",
		[]string{
			"2026-03-02|bio|0.9|1.5|nlp|0.02|-0.1|gandiva-fair|2026-03-02 00:00:10+00",
			"2026-03-02|idle|1|||||gandiva-fair|2026-03-02 00:00:10+00",
			"2026-03-02|nlp|1.5|0.5|bio|||gandiva-fair|2026-03-02 00:00:10+00",
		},
	},
	{
		"envy_matrix",
		audits,
		"day, tenant, of_tenant, ratio",
		[]string{"2026-03-02|bio|idle|0", "2026-03-02|bio|nlp|1.5", "2026-03-02|nlp|bio|0.5"},
	},
	{
		"suspected_misreports",
		audits,
		"day, kind, model, over_model, gang, by, said, seen, spread, samples",
		[]string{"2026-03-02|nlp/bert|v100||1|job 7|60|40|0.05|9", "2026-03-02|nlp/bert|v100|k80|1|job 7|6|4|0.07|9"},
	},
	{
		"gpus_now",
		gpuRows,
		"node, gpu_index, instance, model, state, why, slurm_id, job_name, user_name, tenant, util, tensor, power_w, memory_bytes, memory_size_bytes, idle, idle_since, read_at, remarks, job_key",
		[]string{
			"n1|0||NVIDIA H100|fresh||11|train|ann|bio|0|0.2|70|5|80|t|2026-03-02 01:00:00+00|2026-03-02 02:00:00+00|drift,straggler|1",
			"n1|1|7|NVIDIA H100|unknown|too little|||||||||80|f||2026-03-02 02:00:00+00||",
			"n2|0||NVIDIA H100|stale|no change|12|train|bob|bio|0.5|||||f||||2",
		},
	},
	{
		"gpu_remarks_now",
		gpuRows,
		"slurm_id, job_key, tenant, user_name, job_name, kind, node, gpu_index, since, text",
		[]string{
			"11|1|bio|ann|train|straggler|n1|0|2026-03-02 00:30:00+00|slow",
			"11|1|bio|ann|train|drift|||2026-03-02 01:00:00+00|half",
			"11|1|bio|ann|train|straggler|n3||2026-03-02 01:00:00+00|all slow",
		},
	},
	{
		"gpu_nodes_now",
		gpuRows,
		"node, state, why, since, read_at",
		[]string{"n1|unknown|GPU 1: too little|2026-03-02 01:00:00+00|2026-03-02 02:00:00+00", "n2|silent|no answer|2026-03-02 00:30:00+00|"},
	},
	{
		"gpu_use_hourly",
		gpuRows,
		"hour, slurm_id, job_key, tenant, user_name, job_name, model, held_gpu_hours, seen_gpu_hours, idle_gpu_hours, util, sm, tensor, dram, power_w, memory_bytes",
		[]string{
			"2026-03-02 02:00:00+00|11|1|bio|ann|train|h100|2.000000|1.000000|0.500000|0.25||0.5||300|7",
			"2026-03-02 01:00:00+00|11|1|bio|ann|train|h100|1.000000|1.000000|1.000000|0|||||",
			"2026-03-02 01:00:00+00|12|2|bio|bob|train|v100|1.000000|1.000000|0.000000|1||||250|",
		},
	},
	{
		"idle_held",
		gpuRows,
		"day, tenant, user_name, slurm_id, job_key, job_name, model, idle_gpu_ms, idle_gpu_hours, seen_gpu_hours, held_gpu_hours",
		[]string{"2026-03-02|bio|ann|11|1|train|h100|5400000|1.500000|2.000000|3.000000"},
	},
}
