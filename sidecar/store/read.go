package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// ErrNone means that the journal does not, or no longer, have that round or job.
var ErrNone = errors.New("not in the journal")

var (
	roundLink    = sql.Query("round_link")
	roundFrames  = sql.Query("round_frames")
	readRounds   = query[Round]("rounds")
	readPools    = query[Pool]("pools")
	readTenants  = query[Tenant]("tenants")
	readDebts    = query[Debt]("debts")
	readLeases   = query[Lease]("leases")
	readWaiting  = query[Waiting]("waiting")
	jobsByID     = query[Job]("jobs_by_id")
	readActions  = query[Action]("actions")
	readEvents   = query[Event]("events")
	jobOverrides = query[Override]("job_overrides")
	leaderNow    = query[Leader]("leader_now")
	readTrades   = query[Trade]("trades")
	effective    = query[Effective]("effective")
	newestRound  = sql.Query("newest_round")
	mayRead      = sql.Query("may_read_rounds")
	ownActions   = query[Action]("own_actions")
	ownJobs      = sql.Query("own_jobs")
	ownWaiting   = query[Waiting]("own_waiting")
)

// collect runs a query and reads its rows into structs by the columns' names.
func collect[T any](ctx context.Context, b *base, doing, query string, args ...any) ([]T, error) {
	rows, err := b.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, denied(err))
	}
	return all, nil
}

// denied marks an error with ErrDenied if it is one.
func denied(err error) error {
	const noRight = "42501"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == noRight {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}

// Round gives the JSON of a round's snapshot and plan; ErrNone if it was pruned or never was.
func (s Rounds) Round(ctx context.Context, number int64) (snapshot, plan []byte, err error) {
	snap, did, err := s.viewer().round(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	if snapshot, err = json.Marshal(snap); err != nil {
		return nil, nil, fmt.Errorf("writing round %d as JSON: %w", number, err)
	}
	if plan, err = json.Marshal(did); err != nil {
		return nil, nil, fmt.Errorf("writing round %d as JSON: %w", number, err)
	}
	return snapshot, plan, nil
}

// viewer reads rounds. Reading the rounds of one keyframe in order is fastest: it continues from
// the last one.
type viewer struct {
	store    *base
	frames   decoder
	keyframe int64
	link     int // of its current frame
}

func (s Rounds) viewer() *viewer { return &viewer{store: s.base} }

// round reads a round; ErrNone if it is not kept.
func (v *viewer) round(ctx context.Context, number int64) (snap cluster.Snapshot, plan cluster.Plan, err error) {
	if snap, plan, err = v.read(ctx, number); err != nil {
		err = fmt.Errorf("reading round %d: %w", number, err)
	}
	return snap, plan, err
}

func (v *viewer) read(ctx context.Context, number int64) (snap cluster.Snapshot, plan cluster.Plan, err error) {
	var keyframe int64
	var link int
	err = v.store.pool.QueryRow(ctx, roundLink, number).Scan(&keyframe, &link)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return snap, plan, ErrNone
	case err != nil:
		return snap, plan, denied(err)
	}
	if v.keyframe != keyframe || v.link > link {
		v.frames, v.keyframe, v.link = decoder{}, keyframe, -1
	}
	rows, err := v.store.pool.Query(ctx, roundFrames, keyframe, v.link, link)
	if err != nil {
		return snap, plan, denied(err)
	}
	var snapshot, told blob
	var at int
	_, err = pgx.ForEachRow(rows, []any{&at, &snapshot.packed, &snapshot.bytes, &told.packed, &told.bytes}, func() error {
		if at != v.link+1 {
			return fmt.Errorf("frame %d after its keyframe, round %d, is missing", v.link+1, keyframe)
		}
		v.link = at
		return v.frames.next(snapshot, told)
	})
	if err == nil && v.link != link {
		err = fmt.Errorf("frame %d after its keyframe, round %d, is missing", v.link+1, keyframe)
	}
	if err != nil {
		v.keyframe = 0
		return snap, plan, err
	}
	return v.frames.show()
}

// Last gives the newest round's snapshot and plan; both empty if there is none.
func (s Rounds) Last(ctx context.Context) (snap cluster.Snapshot, plan cluster.Plan, err error) {
	var number int64
	if err := s.pool.QueryRow(ctx, lastRound).Scan(&number); err != nil {
		return snap, plan, fmt.Errorf("looking for the newest round: %w", err)
	}
	if number == 0 {
		return snap, plan, nil
	}
	return s.viewer().round(ctx, number)
}

// Newest gives the number and time of the newest round; 0 if there is none.
func (s Rounds) Newest(ctx context.Context) (number int64, at time.Time, err error) {
	err = s.pool.QueryRow(ctx, newestRound).Scan(&number, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, at, nil
	}
	if err != nil {
		err = fmt.Errorf("looking for the newest round: %w", err)
	}
	return number, at, err
}

// ErrDenied is in errors about missing rights of this database user.
var ErrDenied = errors.New("this database user may not do that")

// ReadsAll tells whether this database user may read whole rounds. A user that may only see its
// own tenants' rows may not: Last fails then.
func (s Tenants) ReadsAll(ctx context.Context) (yes bool, err error) {
	if err := s.pool.QueryRow(ctx, mayRead).Scan(&yes); err != nil {
		return false, fmt.Errorf("asking what this user may read: %w", err)
	}
	return yes, nil
}

// Count is the number of jobs in a state, or waiting for a reason.
type Count struct {
	State string
	Code  string // "" = all of the state
	Jobs  int
}

// Own counts the live jobs that are visible to this database user.
func (s Jobs) Own(ctx context.Context) ([]Count, error) {
	return collect[Count](ctx, s.base, "counting the jobs", ownJobs)
}

// Leader describes the holder of the lead.
type Leader struct {
	Term     int64         `json:"term"`
	Holder   string        `json:"holder"`
	Acquired time.Time     `json:"acquired,omitzero" db:"acquired_at"`
	Renewed  time.Time     `json:"renewed,omitzero" db:"renewed_at"`
	Takeover time.Time     `json:"takeover,omitzero" db:"takeover_at"` // when another may take over
	Silent   time.Duration `json:"silent" db:"silent_for"`
}

// Leader gives the holder of the lead; nil = none.
func (s *Store) Leader(ctx context.Context) (*Leader, error) {
	all, err := collect[Leader](ctx, s.base, "reading the leader", leaderNow)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// Round is a row in the list of rounds.
type Round struct {
	Number      int64      `json:"number"`
	At          time.Time  `json:"at,omitzero"`
	Recorded    time.Time  `json:"recorded,omitzero" db:"recorded_at"`
	Settled     *time.Time `json:"settled,omitempty" db:"settled_at"`
	Nodes       int        `json:"nodes"`
	NodesBad    int        `json:"nodes_bad"`
	GPUs        int        `json:"gpus" db:"gpus"`
	Tenants     int        `json:"tenants"`
	Jobs        int        `json:"jobs"`
	Running     int        `json:"running" db:"jobs_running"`
	Waiting     int        `json:"waiting" db:"jobs_waiting"`
	Aside       int        `json:"aside" db:"jobs_aside"`
	Leases      int        `json:"leases"`
	LeasesEnded int        `json:"leases_ended"`
	Claims      int        `json:"claims"`
	Actions     int        `json:"actions"`
	Suppressed  int        `json:"suppressed" db:"actions_suppressed"`
	Replayable  bool       `json:"replayable"`
}

// List lists the newest rounds.
func (s Rounds) List(ctx context.Context, limit int) ([]Round, error) {
	return collect[Round](ctx, s.base, "reading the rounds", readRounds, limit)
}

// Pool shows how the GPU time of a pool was used.
type Pool struct {
	Pool        string           `json:"pool"`
	GPUs        cluster.GPUCount `json:"gpus" db:"gpus"`
	BadGPUs     cluster.GPUCount `json:"bad_gpus" db:"bad_gpus"`
	Capacity    cluster.GPUTime  `json:"capacity_gpu_ms" db:"capacity_gpu_ms"`
	Tenants     cluster.GPUTime  `json:"tenants_gpu_ms" db:"tenants_gpu_ms"`
	Untouchable cluster.GPUTime  `json:"untouchable_gpu_ms" db:"untouchable_gpu_ms"`
	Overhead    cluster.GPUTime  `json:"overhead_gpu_ms" db:"overhead_gpu_ms"`
	Idle        cluster.GPUTime  `json:"idle_gpu_ms" db:"idle_gpu_ms"`
	Bad         cluster.GPUTime  `json:"bad_gpu_ms" db:"bad_gpu_ms"`
	AsOf        time.Time        `json:"as_of,omitzero"`
}

// Pools gives the use of GPU time of every pool.
func (s Tenants) Pools(ctx context.Context) ([]Pool, error) {
	return collect[Pool](ctx, s.base, "reading the pools", readPools)
}

// Tenant is the state of a tenant in one pool.
type Tenant struct {
	Tenant      string           `json:"tenant"`
	Pool        string           `json:"pool"`
	Weight      int64            `json:"weight"`
	Entitlement cluster.MicroGPU `json:"entitlement_micro_gpus" db:"entitlement_gpus"`
	Demand      cluster.MicroGPU `json:"demand_micro_gpus" db:"demand_gpus"`
	Holds       cluster.GPUCount `json:"holds_gpus" db:"holds_gpus"`
	Borrowed    cluster.MicroGPU `json:"borrowed_micro_gpus" db:"borrowed_gpus"`
	Lent        cluster.MicroGPU `json:"lent_micro_gpus" db:"lent_gpus"`
	Waiting     int              `json:"waiting_jobs" db:"waiting_jobs"`
	Rho         cluster.Rho      `json:"rho_millionths" db:"rho"`
	RhoAll      cluster.Rho      `json:"rho_all_millionths" db:"rho_all"`
	Behind      *time.Duration   `json:"behind_ns" db:"behind"` // nil = it is due nothing
	Deficit     cluster.GPUTime  `json:"deficit_gpu_ms" db:"deficit_gpu_ms"`
	// Owed is the entitled GPU time that others used, negative if the tenant used others'. Repays
	// is the number of GPUs given to it in return, negative if it gives. EvenIn is the time until
	// the debt is settled at the current rate; nil = never, or nothing is owed.
	Owed   cluster.GPUTime  `json:"owed_gpu_ms" db:"owed_gpu_ms"`
	Repays cluster.MicroGPU `json:"repays_micro_gpus" db:"repays_gpus"`
	EvenIn *time.Duration   `json:"even_in_ns" db:"even_in"`
	Alloc  cluster.GPUTime  `json:"alloc_gpu_ms" db:"alloc_gpu_ms"`
	Due    cluster.GPUTime  `json:"due_gpu_ms" db:"due_gpu_ms"`
	// Work and WorkDue are in GPU time of the reference model: GPU time times speedup where a policy divides GPU models.
	Work    cluster.GPUTime `json:"work_gpu_ms" db:"work_gpu_ms"`
	WorkDue cluster.GPUTime `json:"work_due_gpu_ms" db:"work_due_gpu_ms"`
	AsOf    time.Time       `json:"as_of,omitzero"`
}

// BehindOf is the inverse of Late.
func BehindOf(late cluster.Span) *time.Duration {
	if late <= cluster.DueNothing {
		return nil
	}
	d := late.Duration()
	return &d
}

// Late gives how far the tenant is behind, as a round does: without a due, as far ahead as possible.
func (t *Tenant) Late() cluster.Span {
	if t.Behind == nil {
		return cluster.DueNothing
	}
	return cluster.SpanOf(*t.Behind)
}

// List gives the state of every tenant in every pool.
func (s Tenants) List(ctx context.Context) ([]Tenant, error) {
	return collect[Tenant](ctx, s.base, "reading how tenants stand", readTenants)
}

// Debt is GPU time that one tenant owes another, in thousandths of a GPU-millisecond. A pool has
// one account for each tenant, and each claim is spread over the debtors.
type Debt struct {
	Pool     string    `json:"pool"`
	Creditor string    `json:"creditor"`
	Debtor   string    `json:"debtor"`
	Time     float64   `json:"gpu_ms" db:"gpu_ms"`
	AsOf     time.Time `json:"as_of,omitzero"`
}

// Debts gives the debts between tenants, in each pool the largest first.
func (s Tenants) Debts(ctx context.Context) ([]Debt, error) {
	return collect[Debt](ctx, s.base, "reading the debts", readDebts)
}

// Lease is a current or past lease.
type Lease struct {
	Job     cluster.JobKey   `json:"job" db:"job_key"`
	SlurmID string           `json:"slurm_id" db:"slurm_id"`
	Term    int              `json:"term"`
	Tenant  string           `json:"tenant"`
	User    string           `json:"user" db:"user_name"`
	Class   string           `json:"class"`
	State   string           `json:"state"`
	Pool    string           `json:"pool"`
	GPUs    cluster.GPUCount `json:"gpus" db:"gpus"`
	Nodes   []string         `json:"nodes"`
	Granted time.Time        `json:"granted,omitzero" db:"granted_at"`
	Started *time.Time       `json:"started,omitempty" db:"started_at"`
	Ends    time.Time        `json:"ends,omitzero" db:"ends_at"`
	Noticed *time.Time       `json:"noticed,omitempty" db:"noticed_at"`
	Ended   *time.Time       `json:"ended,omitempty" db:"ended_at"`
	Why     string           `json:"why,omitempty"`
	Adopted bool             `json:"adopted,omitempty"`
	Behind  cluster.JobKey   `json:"behind,omitempty"`
	Time    *cluster.GPUTime `json:"gpu_ms,omitempty" db:"gpu_ms"`
	// Ahead is the forecast of its job, if the lease is in force and there is one; the caller sets it.
	Ahead *Forecast `json:"forecast,omitempty" db:"-"`
}

// Leases lists leases, newest first: those in force, or all.
func (s Jobs) Leases(ctx context.Context, all bool, limit int) ([]Lease, error) {
	return collect[Lease](ctx, s.base, "reading the leases", readLeases, all, int64(0), limit)
}

// Trade is a current or past swap of entitlements between two tenants' kinds of jobs.
type Trade struct {
	ID             int64            `json:"id"`
	Made           time.Time        `json:"made,omitzero" db:"made_at"`
	InForce        bool             `json:"in_force" db:"in_force"`
	Fast           string           `json:"fast"`
	Slow           string           `json:"slow"`
	FastTo         string           `json:"fast_to" db:"fast_to"`
	FastToKind     string           `json:"fast_to_kind" db:"fast_to_kind"`
	SlowTo         string           `json:"slow_to" db:"slow_to"`
	SlowToKind     string           `json:"slow_to_kind" db:"slow_to_kind"`
	FastGPUs       cluster.MicroGPU `json:"fast_micro_gpus" db:"fast_gpus"`
	SlowGPUs       cluster.MicroGPU `json:"slow_micro_gpus" db:"slow_gpus"`
	Price          float64          `json:"price"`
	FastToSpeedup  float64          `json:"fast_to_speedup" db:"fast_to_speedup"`
	SlowToSpeedup  float64          `json:"slow_to_speedup" db:"slow_to_speedup"`
	FastToGain     float64          `json:"fast_to_gain" db:"fast_to_gain"`
	SlowToGain     float64          `json:"slow_to_gain" db:"slow_to_gain"`
	Undone         *time.Time       `json:"undone,omitempty" db:"undone_at"`
	UndoneFastGPUs cluster.MicroGPU `json:"undone_fast_micro_gpus" db:"undone_fast_gpus"`
	UndoneSlowGPUs cluster.MicroGPU `json:"undone_slow_micro_gpus" db:"undone_slow_gpus"`
	Why            string           `json:"undone_why,omitempty" db:"undone_why"`
}

// Trades lists trades: those in force, or all, with past ones last, newest first.
func (s Jobs) Trades(ctx context.Context, all bool, limit int) ([]Trade, error) {
	return collect[Trade](ctx, s.base, "reading the trades", readTrades, all, limit)
}

// Effective is the throughput of a tenant where a policy divides heterogeneous GPUs, by the
// speeds of its jobs, in units of a GPU of the reference model.
type Effective struct {
	Tenant     string  `json:"tenant"`
	Throughput float64 `json:"throughput"`                             // of the GPUs that its jobs hold
	Due        float64 `json:"due_throughput" db:"due_throughput"`     // of its entitlement, after policy and trades
	Share      float64 `json:"share_throughput" db:"share_throughput"` // of its weighted share, where its jobs can use that
	// Rho is Throughput over Share: 1 = same as without any policy or trade; nil = no usable
	// share.
	Rho *float64 `json:"measured_rho" db:"ratio"`
}

// Effective gives the throughput of a tenant, or of all with "", in the newest round; none if
// there is no division.
func (s Tenants) Effective(ctx context.Context, tenant string) ([]Effective, error) {
	return collect[Effective](ctx, s.base, "reading what tenants' GPUs do for them", effective, tenant)
}

// Waiting is a waiting job with its reason.
type Waiting struct {
	Job      cluster.JobKey   `json:"job" db:"job_key"`
	SlurmID  string           `json:"slurm_id" db:"slurm_id"`
	Name     string           `json:"name"`
	Tenant   string           `json:"tenant"`
	User     string           `json:"user" db:"user_name"`
	GPUs     cluster.GPUCount `json:"gpus" db:"gpus"`
	Model    string           `json:"model,omitempty"`
	Eligible *time.Time       `json:"eligible,omitempty" db:"eligible_at"`
	Terms    int              `json:"terms"`
	Code     string           `json:"code"`
	Reason   string           `json:"reason"` // in words
	Until    *time.Time       `json:"until,omitempty" db:"until_at"`
	AsOf     time.Time        `json:"as_of,omitzero"`
}

// Waiting lists the waiting jobs, longest first.
func (s Jobs) Waiting(ctx context.Context, limit int) ([]Waiting, error) {
	return collect[Waiting](ctx, s.base, "reading the waiting jobs", readWaiting, limit)
}

// Action is a requested change of Slurm, with its outcome.
type Action struct {
	Round       int64           `json:"round"`
	At          time.Time       `json:"at,omitzero"`
	Verb        string          `json:"verb"`
	Job         *cluster.JobKey `json:"job,omitempty" db:"job_key"`
	SlurmID     string          `json:"slurm_id" db:"slurm_id"`
	Nodes       []string        `json:"nodes,omitempty"`
	Until       *time.Time      `json:"until,omitempty" db:"until_at"`
	Reservation string          `json:"reservation,omitempty"`
	Signal      string          `json:"signal,omitempty"`
	Suppressed  bool            `json:"suppressed,omitempty"`
	Reason      string          `json:"reason"`
	OK          *bool           `json:"ok,omitempty" db:"ok"` // nil: unknown
	Skipped     *bool           `json:"skipped,omitempty"`
	Error       *string         `json:"error,omitempty"`
	Took        *cluster.Span   `json:"took_ms,omitempty" db:"took_ms"`
}

// Actions lists the newest actions.
func (s Rounds) Actions(ctx context.Context, limit int) ([]Action, error) {
	return collect[Action](ctx, s.base, "reading the actions", readActions, int64(0), limit)
}

// Event is a row for a line of the log.
type Event struct {
	At      time.Time `json:"at,omitzero"`
	Kind    string    `json:"kind"`
	SlurmID *string   `json:"slurm_id,omitempty" db:"slurm_id"`
	Node    string    `json:"node,omitempty"`
	Text    string    `json:"text"`
	Round   int64     `json:"round"`
}

// Events lists the newest events, 1000 at most.
func (s Rounds) Events(ctx context.Context, limit int) ([]Event, error) {
	return collect[Event](ctx, s.base, "reading the events", readEvents, limit)
}

// Job is the journal's data of a job.
type Job struct {
	Key        cluster.JobKey   `json:"key"`
	SlurmID    string           `json:"slurm_id" db:"slurm_id"`
	Name       string           `json:"name"`
	User       string           `json:"user" db:"user_name"`
	Account    string           `json:"account"`
	Tenant     string           `json:"tenant"`
	QOS        string           `json:"qos" db:"qos"`
	Partitions []string         `json:"partitions"`
	State      string           `json:"state"`
	Inactive   string           `json:"inactive,omitempty"`
	Outcome    string           `json:"outcome,omitempty"`
	Control    string           `json:"control"`
	ControlWhy string           `json:"control_why,omitempty"`
	GPUs       cluster.GPUCount `json:"gpus" db:"gpus"`
	Model      string           `json:"model,omitempty"`
	Limit      cluster.Span     `json:"limit_ms,omitempty" db:"limit_ms"`
	Submitted  *time.Time       `json:"submitted,omitempty" db:"submitted_at"` // or, before TellRequeue, when it was requeued last
	LastQueued *time.Time       `json:"requeued,omitempty" db:"-"`             // its last requeue; set by TellRequeue
	Eligible   *time.Time       `json:"eligible,omitempty" db:"eligible_at"`
	Done       *time.Time       `json:"done,omitempty" db:"done_at"`
	Restarts   int              `json:"restarts"`
	// Others counts the restarts that fairlease did not order; OthersAt, OthersCause and OthersNode are of the newest.
	Others      *int                  `json:"others_requeues,omitempty" db:"others_requeues"`
	OthersAt    *time.Time            `json:"others_requeued,omitempty" db:"others_requeued_at"`
	OthersCause *cluster.RequeueCause `json:"others_requeue_cause,omitempty" db:"others_requeue_cause"`
	OthersNode  *string               `json:"others_requeue_node,omitempty" db:"others_requeue_node"`
	Terms       int                   `json:"terms"`
	Failed      int                   `json:"failed,omitempty"`
	Avoid       *time.Time            `json:"avoid,omitempty" db:"avoid_until"`
	Said        string                `json:"said,omitempty"`
	Alloc       cluster.GPUTime       `json:"alloc_gpu_ms" db:"alloc_gpu_ms"`
	Due         cluster.GPUTime       `json:"due_gpu_ms" db:"due_gpu_ms"`
	Lost        cluster.GPUTime       `json:"lost_gpu_ms" db:"lost_gpu_ms"`
	// Work and WorkDue are in GPU time of the reference model: GPU time times speedup where a policy divides GPU models.
	Work    cluster.GPUTime `json:"work_gpu_ms" db:"work_gpu_ms"`
	WorkDue cluster.GPUTime `json:"work_due_gpu_ms" db:"work_due_gpu_ms"`
}

// Requeues gives the job's requeues that fairlease did not order; nil = none.
func (j *Job) Requeues() *cluster.Requeues {
	if j.Others == nil {
		return nil
	}
	return &cluster.Requeues{Count: *j.Others, At: instantOf(j.OthersAt), Cause: orZero(j.OthersCause), Node: orZero(j.OthersNode)}
}

// orZero gives what a column holds; null = the zero value.
func orZero[T any](value *T) (v T) {
	if value != nil {
		v = *value
	}
	return v
}

// TellRequeue moves the time of submission to LastQueued if it is that of the last requeue: Slurm gives a requeued job a new one, and
// the first is not kept.
func (j *Job) TellRequeue() {
	if at := j.Submitted; at != nil && (j.Restarts > 0 || j.Eligible != nil && at.After(*j.Eligible)) {
		j.Submitted, j.LastQueued = nil, at
	}
}

// Explanation is everything that explains why a job runs or waits.
type Explanation struct {
	Job Job `json:"job"`
	// Round and At are the newest round. Record, Lease, Claim, Status and Standing are from it;
	// nil if the job is no longer known, holds none, or is done.
	Round  int64              `json:"round"`
	At     cluster.Instant    `json:"at,omitzero"`
	Record *cluster.Record    `json:"record,omitempty"`
	Lease  *cluster.Lease     `json:"lease,omitempty"`
	Claim  *cluster.Claim     `json:"claim,omitempty"`
	Status *cluster.JobStatus `json:"status,omitempty"`
	// For is Slurm's id of the job in the status; "" = none.
	For string `json:"for,omitempty"`
	// Waiting says why the job waits, if this database user may not read whole rounds. Then there
	// is no Record, Lease, Claim or Status, and Newest is empty.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Standing is the tenant's in every pool. Effective is its throughput; nil without a
	// division.
	Standing  []cluster.TenantStatus `json:"standing,omitempty"`
	Effective *Effective             `json:"effective,omitempty"`
	Leases    []Lease                `json:"leases"`  // newest first
	Actions   []Action               `json:"actions"` // newest first
	Overrides []Override             `json:"overrides"`
	// NumbersAt is when the journal last wrote the numbers of Record and Status that change
	// every round; it refreshes jobs in turn. It equals At if they are the newest round's.
	NumbersAt cluster.Instant `json:"numbers_at,omitzero"`
	// GPUs are those that it holds, as they were seen last.
	GPUs []GPU `json:"gpus_now,omitempty"`
	// Remarks say what is unusual about it now.
	Remarks []Remark `json:"remarks,omitempty"`
	// Forecast is when it will start and end; nil = there is none.
	Forecast *JobForecast `json:"forecast,omitempty"`
	// SlurmSays is Slurm's own reason why the job waits.
	SlurmSays string `json:"slurm_says,omitempty"`
	// Newest is the newest round's data of the job, and of the jobs in its status; see newestOf.
	Newest Edge `json:"-"`
}

// Explain explains the newest job with that Slurm id; ErrNone if there is none.
func (s Jobs) Explain(ctx context.Context, id cluster.JobID) (Explanation, error) {
	return s.explain(ctx, "job "+id.String(), id.ID, id.String(), 0)
}

// Of gives the newest job with that Slurm id; ErrNone if there is none.
func (s Jobs) Of(ctx context.Context, id cluster.JobID) (Job, error) {
	return s.job(ctx, "job "+id.String(), id.ID, id.String(), 0)
}

// AllOf lists the jobs that have or had that Slurm id, which Slurm reuses, newest first, at most limit.
func (s Jobs) AllOf(ctx context.Context, id cluster.JobID, limit int) ([]Job, error) {
	return collect[Job](ctx, s.base, "looking for job "+id.String(), jobsByID, id.ID, id.String(), 0, limit)
}

func (s Jobs) job(ctx context.Context, what string, id int64, slurmID string, key cluster.JobKey) (Job, error) {
	jobs, err := collect[Job](ctx, s.base, "looking for "+what, jobsByID, id, slurmID, key, 1)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("%s: %w", what, ErrNone)
	}
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

// ExplainKey explains a job by fairlease's own key.
func (s Jobs) ExplainKey(ctx context.Context, key cluster.JobKey) (Explanation, error) {
	return s.explain(ctx, fmt.Sprintf("job with key %d", key), 0, "", key)
}

// told is the maximum number of leases and actions of a job in an explanation.
const told = 20

func (s Jobs) explain(ctx context.Context, what string, id int64, slurmID string, key cluster.JobKey) (Explanation, error) {
	doing := "looking for " + what
	job, err := s.job(ctx, what, id, slurmID, key)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Job: job}
	if x.Leases, err = collect[Lease](ctx, s.base, doing, readLeases, true, x.Job.Key, told); err != nil {
		return Explanation{}, err
	}
	all, err := Tenants(s).ReadsAll(ctx)
	if err != nil {
		return Explanation{}, err
	}
	if all {
		x.Actions, err = collect[Action](ctx, s.base, doing, readActions, x.Job.Key, told)
	} else {
		x.Actions, err = collect[Action](ctx, s.base, doing, ownActions, x.Job.Key, told)
	}
	if err != nil {
		return Explanation{}, err
	}
	if x.Overrides, err = collect[Override](ctx, s.base, doing, jobOverrides, x.Job.SlurmID, x.Job.User, x.Job.Tenant, x.Job.Key, x.Job.Submitted); err != nil {
		return Explanation{}, err
	}
	if x.GPUs, err = collect[GPU](ctx, s.base, doing, readJobGPUs, x.Job.Key); err != nil {
		return Explanation{}, err
	}
	if x.Remarks, err = (GPUs(s)).Remarks(ctx, x.Job.Key, math.MaxInt32); err != nil {
		return Explanation{}, err
	}
	if x.Forecast, err = (Forecasts(s)).Of(ctx, x.Job.Key); err != nil {
		return Explanation{}, err
	}
	worth, err := Tenants(s).Effective(ctx, x.Job.Tenant)
	if err != nil {
		return Explanation{}, err
	}
	if len(worth) == 1 && x.Job.Tenant != "" {
		x.Effective = &worth[0]
	}
	if !all {
		return x, s.explainOwn(ctx, doing, &x)
	}
	if x.Newest, x.NumbersAt, err = s.newestOf(ctx, &x.Job); err != nil {
		return Explanation{}, fmt.Errorf("%s: %w", doing, err)
	}
	plan := x.Newest.Plan
	x.add(plan)
	if c := caseOf(x.Newest.Snapshot, x.Job.Key); c != nil && !c.Gone && c.Job.PendingReason != "None" {
		x.SlurmSays = c.Job.PendingReason
	}
	if x.Status == nil || x.Status.Reason.For == 0 {
		return x, nil
	}
	if c := caseOf(x.Newest.Snapshot, x.Status.Reason.For); c != nil {
		x.For = c.Record.ID.String()
	}
	return x, nil
}

// explainOwn adds the views' data of the job, for users who may not read whole rounds.
func (s Jobs) explainOwn(ctx context.Context, doing string, x *Explanation) error {
	number, at, err := Rounds(s).Newest(ctx)
	if err != nil {
		return err
	}
	x.Round, x.At = number, cluster.InstantOf(at)
	x.NumbersAt = x.At
	waits, err := collect[Waiting](ctx, s.base, doing, ownWaiting, x.Job.Key)
	if err != nil {
		return err
	}
	if len(waits) > 0 {
		x.Waiting = &waits[0]
	}
	tenants, err := Tenants(s).List(ctx)
	for _, t := range tenants {
		if t.Tenant == x.Job.Tenant {
			x.Standing = append(x.Standing, cluster.TenantStatus{Tenant: t.Tenant, Pool: t.Pool, Weight: t.Weight, Entitlement: t.Entitlement, Demand: t.Demand,
				Holds: t.Holds, Behind: t.Late(), Rho: t.Rho, Owed: t.Owed, Repays: t.Repays})
		}
	}
	return err
}

// add adds the newest round's data of the job.
func (x *Explanation) add(plan cluster.Plan) {
	x.Round, x.At = plan.Round, plan.At
	if r, ok := recordOf(plan.State, x.Job.Key); ok {
		x.Record = cluster.AsOf(&r, plan.At)
	}
	for _, l := range plan.State.Leases {
		if l.Job == x.Job.Key {
			x.Lease = &l
		}
	}
	for _, c := range plan.State.Claims {
		if c.Job == x.Job.Key {
			x.Claim = &c
		}
	}
	for _, v := range plan.Statuses {
		if v.Job == x.Job.Key {
			x.Status = &v
		}
	}
	for _, t := range plan.Tenants {
		if t.Tenant == x.Job.Tenant {
			x.Standing = append(x.Standing, t)
		}
	}
}
