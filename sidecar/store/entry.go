package store

import (
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The functions below turn a snapshot and a plan into rows.

func roundOf(snap cluster.Snapshot, plan cluster.Plan) roundRow {
	r := roundRow{
		Number: plan.Round, At: stamp(plan.At), Preset: snap.Settings.Preset,
		Nodes: len(snap.Nodes), Tenants: len(snap.Tenants),
		Leases: len(plan.State.Leases), LeasesEnded: len(plan.Ended), Claims: len(plan.State.Claims),
		Actions: len(plan.Actions), Events: len(plan.Events),
	}
	gpus := cluster.MicroGPU(0)
	for _, n := range snap.Nodes {
		if n.Bad != "" {
			r.NodesBad++
			continue
		}
		for _, g := range n.GPUs {
			gpus += cluster.Micro(g.Count).At(snap.Settings.Worth(g.Model))
		}
	}
	r.GPUs = gpus.Devices()
	for _, rec := range plan.State.Records {
		if rec.Done != 0 {
			continue
		}
		r.Jobs++
		switch rec.State {
		case cluster.Running:
			r.JobsRunning++
		case cluster.Waiting:
			r.JobsWaiting++
		}
	}
	for i := range snap.Cases {
		if j := &snap.Cases[i].Job; j.Aside != "" && j.State != cluster.Done {
			r.JobsAside++
		}
	}
	for _, a := range plan.Actions {
		if a.Suppressed {
			r.ActionsSuppressed++
		}
		if isGate(a) {
			r.Gates++
		}
	}
	return r
}

func tenantRows(snap cluster.Snapshot) []tenantRow {
	rows := make([]tenantRow, 0, len(snap.Tenants))
	for _, t := range snap.Tenants {
		rows = append(rows, tenantRow{Name: t.Name, Weight: t.Weight})
	}
	return rows
}

func nodeRows(snap cluster.Snapshot) []nodeRow {
	rows := make([]nodeRow, 0, len(snap.Nodes))
	for _, n := range snap.Nodes {
		rows = append(rows, nodeRow{
			Name: n.Name, GPUs: documentOf(n.GPUs), CPUs: n.CPUs, MemoryMB: n.MemoryMB,
			Partitions: listOf(n.Partitions), Features: listOf(n.Features), Bad: n.Bad, Busy: n.Busy,
		})
	}
	return rows
}

// jobOf is what is known of a job: its status, its record, and its case; nil = there is none, or Slurm no longer lists it.
type jobOf struct {
	status *cluster.JobStatus
	record *cluster.Record
	seen   *cluster.Case
}

// jobRows gives the jobs with GPUs. For a job that Slurm no longer lists, the last report stays.
func (w *written) jobRows(snap *cluster.Snapshot, plan *cluster.Plan) source[cluster.JobKey, jobRow] {
	jobs := make([]jobOf, 0, len(plan.State.Records)+len(plan.State.Former))
	seen := casesByKey(snap)
	for r := range plan.State.All() {
		if c := seen(r.Key); c != nil {
			if j := &c.Job; j.Request.Size.Devices > 0 || len(r.Held) > 0 || j.GPUsHeld() > 0 || j.Aside != "" { // else it is irrelevant
				jobs = append(jobs, jobOf{record: r, seen: c})
			}
		} else if w.jobs.rows[r.Key] != nil || w.jobs.left[r.Key] != nil || r.Key >= w.nextKey { // else it was written before; a new one came and went unseen
			jobs = append(jobs, jobOf{record: r})
		}
	}
	return source[cluster.JobKey, jobRow]{len(jobs), func(i int) cluster.JobKey { return jobs[i].record.Key },
		func(i int, was *jobRow) bool {
			r, c := jobs[i].record, jobs[i].seen
			return c != nil && c.Was > 0 && w.jobs.left[r.Key] == nil && sameJob(*was, remembered(*was, r, plan.At))
		},
		func(i int) jobRow {
			r := jobs[i].record
			if c := jobs[i].seen; c != nil {
				return jobRowOf(c, r, plan.At)
			}
			was := w.jobs.rows[r.Key]
			if was == nil {
				was = w.jobs.left[r.Key]
			}
			if was == nil {
				was = &jobRow{}
			}
			return remembered(*was, r, plan.At)
		}, nil}
}

// casesByKey gives the case of a job that Slurm lists; nil = there is none. It is mostly asked in the order of keys.
func casesByKey(snap *cluster.Snapshot) func(cluster.JobKey) *cluster.Case {
	next, cases := 0, snap.Cases
	return func(key cluster.JobKey) *cluster.Case {
		if next < len(cases) && cases[next].Record.Key < key {
			next++
		}
		if next == len(cases) || cases[next].Record.Key != key {
			next = sort.Search(len(cases), func(i int) bool { return cases[i].Record.Key >= key })
		}
		if next == len(cases) || cases[next].Record.Key != key || cases[next].Gone {
			return nil
		}
		return &cases[next]
	}
}

// jobRowOf gives the row of a visible job at a moment.
func jobRowOf(c *cluster.Case, r *cluster.Record, at cluster.Instant) jobRow {
	j := &c.Job
	row := jobRow{
		QOS: j.QOS, Partitions: listOf(j.Partitions), Inactive: j.Inactive, Outcome: j.Outcome, Control: c.Control, ControlWhy: c.ControlWhy,
		GPUs: j.Count(), Model: j.Request.Model, Nodes: j.Request.Nodes, CPUs: j.Request.CPUs, MemoryMB: j.Request.MemoryMB,
		Limit: j.Limit,
	}
	return remembered(row, r, at)
}

// remembered adds the job's record to the row, with its accounts at a moment.
func remembered(row jobRow, r *cluster.Record, at cluster.Instant) jobRow {
	row.Key, row.SlurmID, row.SlurmJob = r.Key, r.ID.String(), r.ID.ID
	row.Name, row.User, row.Account, row.Tenant = r.Name, r.User, r.Account, r.Tenant
	row.State, row.Submitted, row.Eligible, row.Done = r.State, stamp(r.Submit), stamp(r.First), stamp(r.Done)
	row.UserBegin, row.Restarts, row.Terms = stamp(r.UserBegin), r.Restarts, r.Terms
	row.Failed, row.Avoid, row.Said = r.Failed, stamp(r.AvoidUntil), r.SlurmSaid
	row.Due, _ = cluster.DueBy(r, at)
	row.Alloc, row.Lost, row.extraColumns, row.othersColumns = r.Alloc, r.Lost, extraOf(r.Extra), othersOf(r.Others)
	return row
}

func (w *written) statusRows(snap *cluster.Snapshot, plan *cluster.Plan) source[cluster.JobKey, statusRow] {
	jobs, next := make([]jobOf, len(plan.Statuses)), 0
	seen, records := casesByKey(snap), plan.State.Records
	for i := range jobs {
		v := &plan.Statuses[i]
		for next < len(records) && records[next].Key < v.Job {
			next++
		}
		jobs[i] = jobOf{v, &noRecord, seen(v.Job)}
		if next < len(records) && records[next].Key == v.Job {
			jobs[i].record = &records[next]
		}
	}
	detail := newDetailer(*plan)
	return source[cluster.JobKey, statusRow]{len(jobs), func(i int) cluster.JobKey { return jobs[i].status.Job },
		func(i int, was *statusRow) bool {
			v, r := &jobs[i].status.Reason, jobs[i].record
			return was.Code == v.Code && was.Need == v.Need && was.Note == v.Note && was.Gate == stamp(r.Gate) && was.Cell == v.Cell && was.Chain == v.Chain &&
				was.Right == v.Right && was.Queue == v.Queue && refreshed(was.Job, was.At, w.statuses.refresh) == refreshed(was.Job, stamp(plan.At), w.statuses.refresh) &&
				brief(was.Details) && (jobs[i].seen == nil || !detail.has(r, v))
		},
		func(i int) statusRow {
			v, r, c := jobs[i].status, jobs[i].record, jobs[i].seen
			due, _ := cluster.DueBy(r, plan.At)
			row := statusRow{
				reasonColumns: reasonColumns{
					Code: v.Reason.Code, Pool: v.Reason.Pool, Need: v.Reason.Need, Free: v.Reason.Free, Behind: v.Reason.Behind,
					Other: v.Reason.Other, OtherBehind: v.Reason.OtherBehind, Rank: v.Reason.Rank, Note: v.Reason.Note,
					Cell: v.Reason.Cell, Chain: v.Reason.Chain, Right: v.Reason.Right, Queue: v.Reason.Queue,
				},
				Job: v.Job, Round: plan.Round, At: stamp(plan.At), Until: stamp(v.Reason.Until), For: optional(v.Reason.For),
				OtherJob: optional(v.Reason.OtherJob), Rho: rho(v.Rho), Alloc: r.Alloc, Due: due, Gate: stamp(r.Gate), extraColumns: extraOf(r.Extra),
			}
			if c != nil {
				row.SlurmSays, row.Details = c.Job.PendingReason, detail.of(c, r, &v.Reason)
			}
			return row
		},
		func(i int) bool { return !slices.Contains(leased, jobs[i].status.Reason.Code) }}
}

// noRecord is that of a job that has none.
var noRecord cluster.Record

func claimRows(plan cluster.Plan, settings *cluster.Settings) []claimRow {
	rows := make([]claimRow, 0, len(plan.State.Claims))
	for _, c := range plan.State.Claims {
		row := claimRow{claimKey: claimKey{c.Job, stamp(c.Made)}, Pool: c.Pool, Nodes: nodesOf(c.Nodes), At: stamp(c.At)}
		row.GPUs = settings.CountHeld(c.Nodes)
		rows = append(rows, row)
	}
	return rows
}

func ledgerRows(plan cluster.Plan) []ledgerRow {
	standings := make(map[accountKey]cluster.TenantStatus, len(plan.Tenants))
	for _, s := range plan.Tenants {
		standings[accountKey{s.Tenant, s.Pool}] = s
	}
	rows := make([]ledgerRow, 0, len(plan.State.Ledger.Tenants))
	for _, t := range plan.State.Ledger.Tenants {
		s := standings[accountKey{t.Tenant, t.Pool}]
		row := ledgerRow{
			sampleRow: sampleRow{
				accountKey: accountKey{t.Tenant, t.Pool}, At: stamp(plan.State.Ledger.At),
				Entitlement: millionths(t.Entitlement), Demand: millionths(t.Demand), Holds: s.Holds, Waiting: s.Waiting,
				Deficit: t.Deficit, Alloc: t.Alloc, Due: t.Due, Rho: rho(s.Rho), extraColumns: extraOf(t.Extra),
			},
			Weight: s.Weight, Base: millionths(t.Base), Lent: millionths(s.Lent), Borrowed: millionths(s.Borrowed),
			Behind: s.Behind, RhoAll: rho(s.RhoAll), Owed: t.Owed, Repays: millionths(t.Repays),
		}
		for _, b := range t.Buckets {
			row.WindowAlloc += b.Alloc
			row.WindowDue += b.Due
			row.WindowExtra += b.Extra
			row.WindowExtraDue += b.ExtraDue
		}
		rows = append(rows, row)
	}
	return rows
}

func bucketRows(plan cluster.Plan) []bucketRow {
	var rows []bucketRow
	for _, t := range plan.State.Ledger.Tenants {
		for _, b := range t.Buckets {
			key := bucketKey{accountKey{t.Tenant, t.Pool}, stamp(b.Start)}
			rows = append(rows, bucketRow{key, b.Alloc, b.Due, extraColumns{b.Extra, b.ExtraDue}})
		}
	}
	return rows
}

func poolRows(plan cluster.Plan) []poolRow {
	rows := make([]poolRow, 0, len(plan.State.Ledger.Pools))
	for _, p := range plan.State.Ledger.Pools {
		rows = append(rows, poolRow{
			Pool: p.Pool, At: stamp(plan.State.Ledger.At), GPUs: p.GPUs, BadGPUs: p.BadGPUs, Capacity: p.Capacity, Tenants: p.Tenants,
			Untouchable: p.Untouchable, Overhead: p.Overhead, Idle: p.Idle, Bad: p.Bad, Stops: p.Stops,
		})
	}
	return rows
}

// lentSince gives the GPU time lent from the last written round until at.
func (w *written) lentSince(at cluster.Instant) []lendingDayRow {
	if w.at == 0 || at <= w.at {
		return nil
	}
	var rows []lendingDayRow
	for _, l := range w.lending.rows {
		for from := w.at; from < at; {
			day := dateOf(from)
			to := min(at, cluster.Instant(day)+cluster.Instant(cluster.Day))
			rows = append(rows, lendingDayRow{day, l.lendingKey, l.GPUs * millionths(to-from)})
			from = to
		}
	}
	return rows
}

func lossRows(plan cluster.Plan) []lossRow {
	rows := make([]lossRow, 0, len(plan.Losses))
	for _, x := range plan.Losses {
		r, _ := recordOf(plan.State, x.Job)
		rows = append(rows, lossRow{
			Round: plan.Round, Job: x.Job, At: stamp(plan.At), SlurmID: r.ID.String(), Tenant: r.Tenant, User: r.User,
			Pool: x.Pool, Term: x.Term, Time: x.Time, Most: x.Most, Certainty: x.Certainty, Command: x.Type.Command, GPUs: x.Type.GPUs,
		})
	}
	return rows
}

// isGate tells whether an action shuts a gate. Such actions recur for every waiting job.
func isGate(a cluster.Action) bool {
	return (a.Verb == cluster.Gate || a.Verb == cluster.Lock) && a.Reason.Code == cluster.ReasonGate
}

// actionRows gives the actions except gates.
func actionRows(plan cluster.Plan) []actionRow {
	var rows []actionRow
	for i, a := range plan.Actions {
		if !isGate(a) {
			rows = append(rows, actionRowOf(plan, i))
		}
	}
	return rows
}

func actionRowOf(plan cluster.Plan, i int) actionRow {
	a := plan.Actions[i]
	row := actionRow{
		Round: plan.Round, Ordinal: i, At: stamp(plan.At), Verb: a.Verb, Job: optional(a.Job), Until: stamp(a.Until), Nodes: listOf(a.Nodes),
		Reservation: a.Reservation, Limit: a.Limit, Signal: a.Signal, Suppressed: a.Suppressed, Reason: documentOf(a.Reason),
	}
	if a.ID.ID != 0 {
		row.SlurmID = a.ID.String()
	}
	return row
}

func eventRows(plan cluster.Plan) []eventRow {
	rows := make([]eventRow, 0, len(plan.Events))
	for i, e := range plan.Events {
		rows = append(rows, eventRow{
			Round: plan.Round, Ordinal: i, At: stamp(plan.At), Kind: e.Kind, Job: optional(e.Job), Node: e.Node, Text: e.Text,
		})
	}
	return rows
}

// caseOf gives the case of a job; nil = it has none.
func caseOf(snap cluster.Snapshot, key cluster.JobKey) *cluster.Case {
	i := sort.Search(len(snap.Cases), func(i int) bool { return snap.Cases[i].Record.Key >= key })
	if i == len(snap.Cases) || snap.Cases[i].Record.Key != key {
		return nil
	}
	return &snap.Cases[i]
}

// recordOf gives the record of a job, and whether there is one.
func recordOf(m cluster.State, key cluster.JobKey) (cluster.Record, bool) {
	i := sort.Search(len(m.Records), func(i int) bool { return m.Records[i].Key >= key })
	if i == len(m.Records) || m.Records[i].Key != key {
		return cluster.Record{}, false
	}
	return m.Records[i], true
}
