package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// Explaining one of 50,000 jobs takes only the rows of that job: the whole newest round is tens
// of megabytes. Data without a column is in job_statuses.details, for the few jobs that need it.

var (
	settingsNow = sql.Query("settings_now")
	statusOf    = query[statusNow]("status_of")
	standingsOf = query[standingNow]("standings_of")
	jobNames    = sql.Query("job_names")
)

// details is the journal's data of a job beside its columns, without the numbers that change
// every round.
type details struct {
	Job     *cluster.Job    `json:"job,omitempty"`
	Record  *cluster.Record `json:"record,omitempty"`
	Control cluster.Control `json:"control,omitempty"`
	Lease   *cluster.Lease  `json:"lease,omitempty"`
	Claim   *cluster.Claim  `json:"claim,omitempty"`
	Habit   *cluster.Habit  `json:"habit,omitempty"`
	Reason  *cluster.Reason `json:"reason,omitempty"`
}

// detailer finds the data of jobs.
type detailer struct {
	leases map[cluster.JobKey]*cluster.Lease
	claims map[cluster.JobKey]*cluster.Claim
	habits []cluster.Habit
}

func newDetailer(plan cluster.Plan) *detailer {
	d := &detailer{habits: plan.State.Habits, leases: make(map[cluster.JobKey]*cluster.Lease, len(plan.State.Leases)), claims: make(map[cluster.JobKey]*cluster.Claim, len(plan.State.Claims))}
	for i := range plan.State.Leases {
		d.leases[plan.State.Leases[i].Job] = &plan.State.Leases[i]
	}
	for i := range plan.State.Claims {
		d.claims[plan.State.Claims[i].Job] = &plan.State.Claims[i]
	}
	return d
}

// has tells whether a job has details beyond the jobs of its own tenant that go first.
func (d *detailer) has(r *cluster.Record, reason *cluster.Reason) bool {
	return reason.To != "" || reason.Spent != 0 || reason.Fits != 0 || r.Stops != 0 || r.Lost != 0 || d.leases[r.Key] != nil || d.claims[r.Key] != nil
}

// of gives a job's details; "" = its columns are sufficient.
func (d *detailer) of(c *cluster.Case, r *cluster.Record, reason *cluster.Reason) document {
	if !d.has(r, reason) {
		if reason.Inside != nil || reason.Budget != nil {
			return documentOf(details{Reason: &cluster.Reason{Inside: reason.Inside, Budget: reason.Budget}})
		}
		return ""
	}
	out := details{Lease: d.leases[r.Key], Claim: d.claims[r.Key]}
	extra := reason.To != "" || reason.Spent != 0 || reason.Fits != 0
	j := c.Job
	record := *r
	record.Alloc, record.Due, record.DueCarry, record.DueRate, record.DueSince, record.ChargedTo, record.Gate = 0, 0, 0, 0, 0, 0, 0
	record.Extra = cluster.Extra{}
	j.PendingReason = "" // has a column
	out.Job, out.Record, out.Control = &j, &record, c.Control
	if extra || reason.Inside != nil || reason.Budget != nil {
		other := *reason
		other.Free, other.Behind, other.OtherBehind, other.Rank, other.Rho, other.OtherJob = 0, 0, 0, 0, 0, 0
		out.Reason = &other
	}
	if t, ok := cluster.TypeOf(&j); ok {
		if at, ok := slices.BinarySearchFunc(d.habits, t, func(h cluster.Habit, t cluster.JobType) int { return h.Type.Compare(t) }); ok {
			out.Habit = &d.habits[at]
		}
	}
	return documentOf(out)
}

// statusNow is a row of job_statuses.
type statusNow struct {
	reasonColumns
	Round     int64           `db:"round"`
	At        time.Time       `db:"at"`
	Until     *time.Time      `db:"until_at"`
	For       *int64          `db:"for_job"`
	Rho       cluster.Rho     `db:"rho"`
	Alloc     cluster.GPUTime `db:"alloc_gpu_ms"`
	Due       cluster.GPUTime `db:"due_gpu_ms"`
	Gate      *time.Time      `db:"gate_until"`
	OtherJob  *int64          `db:"other_job"`
	SlurmSays string          `db:"slurm_says"`
	Details   []byte          `db:"details"`
	extraColumns
}

func (v *statusNow) reason() cluster.Reason {
	return cluster.Reason{Code: v.Code, Pool: v.Pool, Need: v.Need, Free: v.Free, Behind: v.Behind, Other: v.Other, OtherBehind: v.OtherBehind,
		Queue: v.Queue, OtherJob: keyOf(v.OtherJob), Rank: v.Rank, Until: instantOf(v.Until), For: keyOf(v.For), Cell: v.Cell, Chain: v.Chain,
		Right: v.Right, Note: v.Note, Rho: v.Rho}
}

func keyOf(key *int64) cluster.JobKey {
	if key == nil {
		return 0
	}
	return cluster.JobKey(*key)
}

func instantOf(t *time.Time) cluster.Instant {
	if t == nil {
		return 0
	}
	return cluster.InstantOf(*t)
}

// standingNow is a row of the ledger.
type standingNow struct {
	Pool        string           `db:"pool"`
	Weight      int64            `db:"weight"`
	Base        cluster.MicroGPU `db:"base_gpus"`
	Entitlement cluster.MicroGPU `db:"entitlement_gpus"`
	Demand      cluster.MicroGPU `db:"demand_gpus"`
	Holds       cluster.GPUCount `db:"holds_gpus"`
	Lent        cluster.MicroGPU `db:"lent_gpus"`
	Borrowed    cluster.MicroGPU `db:"borrowed_gpus"`
	Waiting     int              `db:"waiting_jobs"`
	Deficit     cluster.GPUTime  `db:"deficit_gpu_ms"`
	Behind      cluster.Span     `db:"behind_ms"`
	Owed        cluster.GPUTime  `db:"owed_gpu_ms"`
	Repays      cluster.MicroGPU `db:"repays_gpus"`
	Rho         cluster.Rho      `db:"rho"`
	RhoAll      cluster.Rho      `db:"rho_all"`
}

// newestOf gives the part of the newest round that concerns one job: its case, record, status,
// lease, claim and habit, its tenant's standing, and the names of jobs in the status, as cases
// that are gone. It reads the whole round only if needed: if a policy divides GPU models, for
// hardware that virtual clusters lost, and for rounds of older versions, which wrote less.
func (s Jobs) newestOf(ctx context.Context, job *Job) (Edge, cluster.Instant, error) {
	var e Edge
	var at time.Time
	var settings []byte
	err := s.pool.QueryRow(ctx, settingsNow).Scan(&e.Plan.Round, &at, &settings)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, 0, nil
	}
	if err != nil {
		return e, 0, err
	}
	statuses, err := collect[statusNow](ctx, s.base, "reading the status", statusOf, job.Key)
	if err != nil {
		return e, 0, err
	}
	if settings != nil {
		if err := json.Unmarshal(settings, &e.Snapshot.Settings); err != nil {
			return e, 0, fmt.Errorf("reading the settings: %w", err)
		}
	}
	if settings == nil || e.Snapshot.Settings.Divides() || len(statuses) > 0 && statuses[0].Code == cluster.ReasonLost {
		e.Snapshot, e.Plan, err = Rounds(s).Last(ctx)
		return e, e.Plan.At, err
	}
	e.Plan.At = cluster.InstantOf(at)
	e.Snapshot.Round, e.Snapshot.Now = e.Plan.Round, e.Plan.At
	numbers := e.Plan.At
	rows, err := collect[standingNow](ctx, s.base, "reading how the tenant stands", standingsOf, job.Tenant)
	if err != nil {
		return e, 0, err
	}
	for _, r := range rows {
		e.Plan.Tenants = append(e.Plan.Tenants, cluster.TenantStatus{Tenant: job.Tenant, Pool: r.Pool, Weight: r.Weight, Base: r.Base,
			Entitlement: r.Entitlement, Demand: r.Demand, Holds: r.Holds, Lent: r.Lent, Borrowed: r.Borrowed, Waiting: r.Waiting,
			Deficit: r.Deficit, Behind: r.Behind, Owed: r.Owed, Repays: r.Repays, Rho: r.Rho, RhoAll: r.RhoAll})
	}
	if len(statuses) == 0 {
		return e, numbers, nil
	}
	v := &statuses[0]
	if err := e.add(job, v); err != nil {
		return e, 0, err
	}
	if err := (Rounds(s)).name(ctx, &e); err != nil {
		return e, 0, err
	}
	return e, cluster.InstantOf(v.At), nil
}

// add applies the job's rows.
func (e *Edge) add(job *Job, v *statusNow) error {
	id, err := cluster.ParseJobID(job.SlurmID)
	if err != nil {
		return err
	}
	d := details{
		Job: &cluster.Job{ID: id, Name: job.Name, User: job.User, Account: job.Account, QOS: job.QOS, Partitions: job.Partitions,
			State: cluster.JobState(job.State), Inactive: job.Inactive, Limit: job.Limit, Submit: instantOf(job.Submitted), Restarts: job.Restarts,
			Request: cluster.Request{Size: cluster.SizeOf(job.GPUs), Model: job.Model}},
		Record: &cluster.Record{Key: job.Key, ID: id, Tenant: job.Tenant, User: job.User, Account: job.Account, Name: job.Name,
			Submit: instantOf(job.Submitted), Restarts: job.Restarts, State: cluster.JobState(job.State), First: instantOf(job.Eligible),
			Done: instantOf(job.Done), Terms: job.Terms, Failed: job.Failed, AvoidUntil: instantOf(job.Avoid), SlurmSaid: job.Said, Lost: job.Lost},
		Control: cluster.Control(job.Control),
	}
	reason := v.reason()
	if v.Details != nil {
		var more details
		if err := json.Unmarshal(v.Details, &more); err != nil {
			return fmt.Errorf("reading the details of job %s: %w", job.SlurmID, err)
		}
		if more.Job == nil { // the columns have the rest
			more.Job, more.Record, more.Control = d.Job, d.Record, d.Control
		}
		d = more
	}
	if more := d.Reason; more != nil {
		reason.To, reason.Speed, reason.Trial, reason.Spent, reason.Fits = more.To, more.Speed, more.Trial, more.Spent, more.Fits
		reason.Inside, reason.Budget = more.Inside, more.Budget
	}
	d.Job.PendingReason = v.SlurmSays
	d.Record.Alloc, d.Record.Due, d.Record.Gate = v.Alloc, v.Due, instantOf(v.Gate)
	d.Record.Extra = cluster.Extra{Alloc: v.Extra, Due: v.ExtraDue}
	e.Snapshot.Cases = []cluster.Case{{Job: *d.Job, Record: *d.Record, Control: d.Control, ControlWhy: job.ControlWhy}}
	m := &e.Plan.State
	m.Records = []cluster.Record{*d.Record}
	if d.Lease != nil {
		m.Leases = []cluster.Lease{*d.Lease}
	}
	if d.Claim != nil {
		m.Claims = []cluster.Claim{*d.Claim}
	}
	if d.Habit != nil {
		m.Habits = []cluster.Habit{*d.Habit}
	}
	e.Plan.Statuses = []cluster.JobStatus{{Job: job.Key, Rho: v.Rho, Reason: reason}}
	return nil
}

// name adds cases of the jobs in the status.
func (s Rounds) name(ctx context.Context, e *Edge) error {
	reason, own := &e.Plan.Statuses[0].Reason, e.Plan.Statuses[0].Job
	keys := []int64{int64(reason.For), int64(reason.OtherJob)}
	rows, err := s.pool.Query(ctx, jobNames, keys)
	if err != nil {
		return fmt.Errorf("reading the names of jobs: %w", err)
	}
	var key cluster.JobKey
	var name string
	_, err = pgx.ForEachRow(rows, []any{(*int64)(&key), &name}, func() error {
		id, err := cluster.ParseJobID(name)
		if err == nil && key != own {
			e.Snapshot.Cases = append(e.Snapshot.Cases, cluster.Case{Gone: true, Record: cluster.Record{Key: key, ID: id}})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the names of jobs: %w", err)
	}
	slices.SortFunc(e.Snapshot.Cases, func(a, b cluster.Case) int { return cmp.Compare(a.Record.Key, b.Record.Key) })
	return nil
}
