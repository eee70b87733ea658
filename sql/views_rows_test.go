package sql_test

import (
	"fmt"
	"strings"
)

// Rows that the cases of several views share.
const (
	entitlements = `insert into fairlease.entitlements values
		('bio', 'v100', '2026-03-02 01:00', 4, 4, 4, 5.5, 6, 2.5), ('bio', 'k80', '2026-03-02 00:00', 4, 1, 4, 1, 2, 1),
		('idle', 'v100', '2026-03-02 00:30', 4, 0, 0, 0, 0, 1);`
	entitlementHistory = `insert into fairlease.entitlement_history values
		('bio', 'v100', '2026-03-02 22:00', 4, 4, 4, 5, 2, 2.5), ('bio', 'k80', '2026-03-02 22:00', 4, 4, 4, 2, 2, 1),
		('bio', 'v100', '2026-03-02 23:00', 4, 4, 4, 5, 6, 2.5), ('bio', 'v100', '2026-03-03 02:00', 0, 0, 0, 0, 0, 0);`
	audits = `insert into fairlease.audits (day, at, policy, pareto_slack, tenants, envy, misreports) values
		('2026-03-02', '2026-03-02 00:00:10', 'gandiva-fair', 0.25,
			'[{"tenant":"bio","incentive":0.9,"more":0.02,"less":-0.1},{"tenant":"idle","incentive":1},{"tenant":"nlp","incentive":1.5}]',
			'[{"tenant":"bio","of":"idle","ratio":0},{"tenant":"bio","of":"nlp","ratio":1.5},{"tenant":"nlp","of":"bio","ratio":0.5}]',
			'[{"kind":"nlp/bert","model":"v100","gang":1,"by":"job 7","said":60,"seen":40,"spread":0.05,"samples":9},
			{"kind":"nlp/bert","model":"v100","than":"k80","gang":1,"by":"job 7","said":6,"seen":4,"spread":0.07,"samples":9}]'),
		('2026-03-03', '2026-03-03 00:00:10', 'oef:coop', null, '[]', '[]', '[]');`
	cells = `insert into fairlease.bound_cells values
		('rack-v100', 'quad', 'n4', 4, 'chem', '{n4}', '4-7', 4, false, 2, 0, '{9}', '{}', '2026-03-02 02:00'),
		('rack-v100', 'node', 'n3', 0, 'bio', '{n3}', '0-7', 8, true, 0, 1, '{}', '{}', '2026-03-02 01:00'),
		('rack-v100', 'rack', 'n1', 0, 'bio', '{n1,n2}', '0-7', 16, false, 16, 0, '{1,3}', '{2}', '2026-03-02 00:00');`
	losses = `insert into fairlease.losses values
		(30, 1, '2026-03-02 00:15', '11', 'bio', 'ann', 'v100', 2, 240000, 'known', '/home/ann/train.sh', 4, 240000),
		(31, 2, '2026-03-02 00:30', '12', 'bio', 'bob', 'v100', 1, 5, 'bounded', '-', 1, 9),
		(20, 1, '2026-03-01 23:00', '11', 'bio', 'ann', 'v100', 1, 1000, 'unknown', '/home/ann/train.sh', 4, 0);`
	rounds = `insert into fairlease.leaders (holder, takeover_after, schema_version) values ('me', '15 s', 27);
		insert into fairlease.rounds (number, at, leader_term, preset, nodes, nodes_bad, gpus, tenants, jobs, jobs_running, jobs_waiting, leases, leases_ended, claims,
			actions, actions_suppressed, events, recorded_at, settled_at, acting_ms) values
		(1, '2026-03-02 00:00:00', 1, 'astraea', 4, 0, 16, 2, 9, 5, 4, 5, 0, 0, 2, 0, 0, '2026-03-02 00:00:00.1', '2026-03-02 00:00:01.1', 0),
		(2, '2026-03-02 00:00:20', 1, 'astraea', 4, 0, 16, 2, 9, 5, 4, 5, 0, 0, 2, 1, 0, '2026-03-02 00:00:20.5', '2026-03-02 00:00:22.5', 1234),
		(3, '2026-03-02 00:01:00', 1, 'astraea', 4, 0, 16, 2, 9, 5, 4, 5, 0, 0, 2, 0, 0, '2026-03-02 00:01:00.25', null, null);`
)

// recalls are of two leases for one job, of one for a job that has not started, and what is none: the lease
// before, one that ended at its time, and one that was only to be recalled.
var recalls = rounds +
	lease(1, 1, "over", "ended_at = '2026-03-02 00:00:10', why = 'renewed', ended_round = 1") +
	lease(1, 2, "over", "class = 'opportunistic', ended_at = '2026-03-02 00:00:50', why = 'recalled', granted_round = 2, ended_round = 3") +
	lease(2, 1, "over", "class = 'opportunistic', gpus = 2, ended_at = '2026-03-02 00:00:30', why = 'recalled', ended_round = 3") +
	lease(3, 1, "over", "ended_at = '2026-03-02 00:00:30', why = 'reclaimed', ended_round = 3") +
	lease(4, 1, "noticed", "why = 'recalled'") +
	lease(5, 1, "noticed", "class = 'opportunistic', why = 'recalled'") +
	lease(9, 1, "over", "started_at = '2026-03-02 00:00', ended_at = '2026-03-02 00:00:10', why = 'reclaimed'") +
	lease(9, 2, "active", "class = 'guaranteed', started_at = '2026-03-02 00:01'") +
	`insert into fairlease.actions (round, ordinal, verb, job_key, slurm_id, nodes, reservation, limit_ms, signal, suppressed, reason) values
		(1, 0, 'notice', 1, '11', '{}', '', 0, '', false, '{"code":"notice","for":7}'),
		(2, 0, 'grant', 1, '11', '{}', '', 0, '', false, '{"code":"granted","for":7}'),
		(2, 1, 'notice', 1, '11', '{}', '', 0, '', false, '{"code":"notice","for":9}'),
		(2, 2, 'notice', 2, '12', '{}', '', 0, '', false, '{"code":"notice","for":9}'),
		(3, 0, 'reclaim', 1, '11', '{}', '', 0, '', false, '{"code":"recalled","for":9}'),
		(3, 1, 'reclaim', 2, '12', '{}', '', 0, '', false, '{"code":"recalled","for":9}'),
		(3, 2, 'reclaim', 3, '13', '{}', '', 0, '', false, '{"code":"notice","for":9}'),
		(3, 3, 'notice', 4, '14', '{}', '', 0, '', false, '{"code":"notice","for":8}'),
		(3, 4, 'notice', 5, '15', '{}', '', 0, '', true, '{"code":"notice","for":8}');`

// job puts in a job that could start at one o'clock; set changes columns.
func job(key int, id, tenant, user, state, set string) string {
	base, _, _ := strings.Cut(id, "_")
	return fmt.Sprintf(`insert into fairlease.jobs values (%d, '%s', %s, 'train', '%s', '%s', '%s', 'normal', '{batch}', '%s', '', '', 'act', '', 4, 'v100', 1, 8, 32000, 0,
		'2026-03-02 01:00', '2026-03-02 01:00', null, null, 0, 0, 0, null, '', 0, 0, 0);`, key, id, base, user, tenant, tenant, state) + change("jobs", fmt.Sprintf("key = %d", key), set)
}

// status puts in a job's status, of half past two.
func status(key int, code, set string) string {
	return fmt.Sprintf(`insert into fairlease.job_statuses values (%d, 1, '2026-03-02 02:30', '%s', '', 4, 0, 0, '', 0, 0, null, null, '', 0, 0, 0, null);`, key, code) +
		change("job_statuses", fmt.Sprintf("job_key = %d", key), set)
}

// lease puts in a lease of ann's job, granted at midnight for half an hour.
func lease(key, term int, state, set string) string {
	return fmt.Sprintf(`insert into fairlease.leases (job_key, term, slurm_id, tenant, user_name, state, class, pool, gpus, nodes, holdings, granted_at, ends_at, adopted, why, granted_round)
		values (%d, %d, '%d', 'bio', 'ann', '%s', 'shared', 'v100', 4, '{n1,n2}', '[]', '2026-03-02 00:00', '2026-03-02 00:30', false, '', 1);`, key, term, key+10, state) +
		change("leases", fmt.Sprintf("job_key = %d and term = %d", key, term), set)
}

func change(table, which, set string) string {
	if set == "" {
		return ""
	}
	return fmt.Sprintf("update fairlease.%s set %s where %s;", table, set, which)
}

// gpuRows are the GPUs of two nodes, two jobs on them, and some hours of theirs.
var gpuRows = job(1, "11", "bio", "ann", "running", "") + job(2, "12", "bio", "bob", "running", "") +
	`insert into fairlease.gpus values
		('n2', 0, '', 'NVIDIA H100', 'stale', 'no change', 2, 0.5, null, null, null, null, false, null),
		('n1', 1, '7', 'NVIDIA H100', 'unknown', 'too little', null, null, null, null, null, 80, false, null),
		('n1', 0, '', 'NVIDIA H100', 'fresh', '', 1, 0, 0.2, 70, 5, 80, true, '2026-03-02 01:00');
	insert into fairlease.gpu_nodes values
		('n2', 'silent', 'no answer', '2026-03-02 00:30', null), ('n1', 'unknown', 'GPU 1: too little', '2026-03-02 01:00', '2026-03-02 02:00');
	insert into fairlease.gpu_remarks values
		(1, 'drift', '', -1, '2026-03-02 01:00', 'half'), (1, 'straggler', 'n1', 0, '2026-03-02 00:30', 'slow'), (1, 'straggler', 'n3', -1, '2026-03-02 01:00', 'all slow');
	insert into fairlease.gpu_use values
		('2026-03-02 01:00', 1, 'h100', 3600000, 3600000, 3600000, 0, 3600000, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		('2026-03-02 01:00', 2, 'v100', 3600000, 3600000, 0, 3600000, 3600000, 0, 0, 0, 0, 0, 0, 900000000, 3600000, 0),
		('2026-03-02 02:00', 1, 'h100', 7200000, 3600000, 1800000, 900000, 3600000, 0, 0, 900000, 1800000, 0, 0, 1080000000, 3600000, 7);`
