package store

import (
	"context"
	"math"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

var (
	membersNow    = query[memberNow]("members_now")
	leasesBetween = query[Lease]("leases_between")
	roundsBefore  = query[Round]("rounds_before")
	eventsBefore  = sql.Query("events_before")
	sharesBetween = sql.Query("shares_between")
	gpuUseOfJob   = sql.Query("gpu_use_of_job")
)

// Follower reads the newest round again and again. It keeps the rounds' common text, and continues from the round that it
// read last. It is for one goroutine.
type Follower struct{ view *viewer }

// Follow gives a Follower.
func (s Rounds) Follow() *Follower { return &Follower{s.viewer()} }

// Last gives the newest round, as Store.Last does.
func (f *Follower) Last(ctx context.Context) (snap cluster.Snapshot, plan cluster.Plan, err error) {
	number, _, err := Rounds{f.view.store}.Newest(ctx)
	if err != nil || number == 0 {
		return snap, plan, err
	}
	return f.view.round(ctx, number)
}

// Decided gives what a round knew and decided; ErrNone if it is not kept.
func (s Rounds) Decided(ctx context.Context, number int64) (Edge, error) {
	return s.viewer().edge(ctx, number)
}

// memberNow is a row of members.
type memberNow struct {
	Tenant string
	User   string `db:"user_name"`
}

// Members lists the Slurm users of every tenant, as the daemon wrote them last.
func (s Tenants) Members(ctx context.Context) ([]cluster.Member, error) {
	rows, err := collect[memberNow](ctx, s.base, "reading the users of tenants", membersNow)
	var out []cluster.Member
	for _, r := range rows {
		out = append(out, cluster.Member(r))
	}
	return out, err
}

// LeaseWindow selects leases. Its zero value selects none of them, since it has no limit.
type LeaseWindow struct {
	Tenants      []string // nil = of all tenants
	Since, Until time.Time
	Nodes        []string       // nil = of all nodes
	Job          cluster.JobKey // 0 = of all jobs
	// Before is a lease: only those that come after it in the list are wanted; nil = from the first on.
	Before *LeaseName
	Limit  int
}

// LeaseName names a lease, with the time by which lists are ordered.
type LeaseName struct {
	Granted time.Time
	Job     cluster.JobKey
	Term    int
}

// LeasesBetween lists leases that were in force between two moments, newest first.
func (s Jobs) LeasesBetween(ctx context.Context, w *LeaseWindow) ([]Lease, error) {
	before := LeaseName{Granted: endless, Job: math.MaxInt64, Term: math.MaxInt32}
	if w.Before != nil {
		before = *w.Before
	}
	until := w.Until
	if until.IsZero() {
		until = endless
	}
	return collect[Lease](ctx, s.base, "reading the leases", leasesBetween, w.Tenants, w.Since, until, w.Nodes, w.Job, before.Granted, before.Job, before.Term, w.Limit)
}

// Before lists the rounds before a number, newest first; 0 = the newest ones.
func (s Rounds) Before(ctx context.Context, number int64, limit int) ([]Round, error) {
	if number <= 0 {
		number = math.MaxInt64
	}
	return collect[Round](ctx, s.base, "reading the rounds", roundsBefore, number, limit)
}

// Noted is an event with its place in its round, and the tenant of its job ("" = none).
type Noted struct {
	Event
	Ordinal int            `json:"ordinal"`
	Job     cluster.JobKey `json:"job_key,omitempty" db:"job_key"` // 0 = it is about none
	Tenant  string         `json:"tenant,omitempty"`
}

// EventsBefore lists the events before one, newest first; round 0 = the newest ones. Tenants selects those of their jobs, and those
// of nodes; nil = all events.
func (s Rounds) EventsBefore(ctx context.Context, tenants []string, round int64, ordinal, limit int) ([]Noted, error) {
	if round <= 0 {
		round = math.MaxInt64
	}
	return collect[Noted](ctx, s.base, "reading the events", eventsBefore, tenants, round, ordinal, limit)
}

// Share is the mean of what a tenant had and was due in a pool, in a step of time from At on, in GPUs.
type Share struct {
	Tenant string    `json:"tenant"`
	Pool   string    `json:"pool"`
	At     time.Time `json:"at,omitzero"`
	Holds  float64   `json:"holds_gpus" db:"holds_gpus"`
	Due    float64   `json:"due_gpus" db:"due_gpus"` // its entitlement or its demand, if that is less
	// Entitlement is what it was due if it wanted that.
	Entitlement float64 `json:"entitlement_gpus" db:"entitlement_gpus"`
}

// Shares gives the means of steps between two moments, by tenant, pool and time, at most limit. A step without a row is like the one
// before.
func (s Tenants) Shares(ctx context.Context, since, until time.Time, step time.Duration, limit int) ([]Share, error) {
	return collect[Share](ctx, s.base, "reading how tenants stood", sharesBetween, since, until, step, limit)
}

// GPUHour is what the GPUs of a job did in an hour, from Hour on, on one model. Means of counters are nil where none was seen.
type GPUHour struct {
	Hour   time.Time       `json:"hour,omitzero"`
	Model  string          `json:"model"`
	Held   cluster.GPUTime `json:"held_gpu_ms" db:"held_ms"`
	Seen   cluster.GPUTime `json:"seen_gpu_ms" db:"seen_ms"`
	Idle   cluster.GPUTime `json:"idle_gpu_ms" db:"idle_ms"`
	Util   *float64        `json:"util,omitempty"`
	Tensor *float64        `json:"tensor,omitempty"`
	Power  *float64        `json:"power_w,omitempty" db:"power_w"`
	Memory int64           `json:"memory_bytes" db:"memory_bytes"` // the most
}

// Hours gives what the GPUs of a job did, the newest hour first.
func (s GPUs) Hours(ctx context.Context, key cluster.JobKey, limit int) ([]GPUHour, error) {
	return collect[GPUHour](ctx, s.base, "reading what a job's GPUs did", gpuUseOfJob, key, limit)
}

// Actions lists the newest actions on a job.
func (s Jobs) Actions(ctx context.Context, key cluster.JobKey, limit int) ([]Action, error) {
	return collect[Action](ctx, s.base, "reading the actions", readActions, key, limit)
}
