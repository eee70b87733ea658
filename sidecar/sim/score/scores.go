package score

import "github.com/fairlease/fairlease/sidecar/cluster"

// Scores are the results by which runs are compared. Times are in seconds, shares and rho are
// ratios; a Stats without values has Count 0.
type Scores struct {
	Setting
	To          cluster.Instant `json:"to_ms,omitzero"`
	CutShort    bool            `json:"cut_short,omitempty"` // the run was interrupted at To: not comparable with complete ones
	Jobs        Counts          `json:"jobs"`
	Completion  Stats           `json:"completion_s"` // submission to end
	Wait        Stats           `json:"wait_s"`       // all the time without GPUs, Job.Wait
	FirstWait   Stats           `json:"first_wait_s"` // submission to first start
	Slowdown    Stats           `json:"slowdown"`
	JobRho      Stats           `json:"job_rho"`
	Loss        Loss            `json:"sharing_loss"`
	Periods     []Period        `json:"periods"` // of all tenants, one for each length
	Tenants     []Tenant        `json:"tenants"` // by name
	Users       UserDays        `json:"users"`
	Utilisation float64         `json:"utilisation"`   // GPU time held / healthy GPU time, start to end of run
	Fragmented  float64         `json:"fragmentation"` // GPU time idle in unusable pieces / healthy GPU time; negative = unknown
	// BindIdle is GPU time that idled only because jobs which cannot be stopped may not hold what absent tenants are due
	// (bind.max) / healthy GPU time.
	BindIdle    float64  `json:"bind_idle"`
	Preemptions int      `json:"preemptions"`
	Preempted   int      `json:"preempted_jobs"` // at least once
	Overhead    Overhead `json:"overhead"`
	Makespan    float64  `json:"makespan_s"` // first submission to last end

	SlowdownCDF []float64 `json:"slowdown_cdf"` // the values that 0/200, 1/200 … 200/200 of all do not exceed
	JobRhoCDF   []float64 `json:"job_rho_cdf"`
	Use         Use       `json:"use"`
	Arrivals    Arrivals  `json:"arrivals"`

	// Levels is the mean fragmentation of the cells, if there are any.
	Levels []Level `json:"levels,omitempty"`
	// Kinds is the results of jobs by kind, if requested; most GPU time first.
	Kinds []Kind `json:"kinds,omitempty"`
	// Audit compares with private clusters, if requested.
	Audit []Audited `json:"audit,omitempty"`
}

// Level is a level of cells, with the mean number of them over the run that could not give their
// full affinity to a guaranteed lease (HiveD §5.2).
type Level struct {
	Chain  string  `json:"chain"`
	Type   string  `json:"type"`
	Cells  int     `json:"cells"`
	Broken float64 `json:"broken"`
}

// Kind is jobs of one user with equal GPUs and one command, or a name that is equal except for
// numbers: they are assumed to save alike.
type Kind struct {
	User     string  `json:"user"`
	Name     string  `json:"name"`
	GPUs     int     `json:"gpus"`
	Jobs     int     `json:"jobs"`
	Held     float64 `json:"held_gpu_h"`
	Requeued int     `json:"requeued_jobs"` // at least once
	Losers   int     `json:"losing_jobs"`   // with lost work
	Lost     float64 `json:"lost_gpu_h"`
	Saves    string  `json:"saves"`
	Why      string  `json:"why"` // the evidence: shown, declared, site rule, file, or assumed
}

// Counts counts the jobs by how they count.
type Counts struct {
	All        int `json:"all"`
	Finished   int `json:"finished"`
	Withdrawn  int `json:"withdrawn"`  // ended without a start
	Unfinished int `json:"unfinished"` // no end when the run ended
	Unstarted  int `json:"unstarted"`  // of the unfinished: not even a start
	NoRun      int `json:"no_run"`     // of the finished: run time 0, so without a slowdown
	NoDue      int `json:"no_due"`     // finished or withdrawn, due nothing, so without a rho
}

// Loss counts the jobs that were worse off than alone with their fair share.
type Loss struct {
	Below      float64 `json:"below"`      // the bound on rho
	Jobs       int     `json:"jobs"`       // finished or withdrawn
	Share      float64 `json:"share"`      // of the jobs that have a rho
	Unfinished int     `json:"unfinished"` // unfinished jobs with a rho that low so far, in no share
}

// Period summarises rho over disjoint periods of one length; the last period of a run may be
// shorter.
type Period struct {
	Hours     float64 `json:"hours"`
	Rho       Stats   `json:"rho"`       // one value per tenant and period
	Tolerance float64 `json:"tolerance"` // Unfair means rho < 1 - Tolerance
	Unfair    int     `json:"unfair"`
	Repaying  int     `json:"unfair_repaying"` // unfair ones that would be fair without the tenant's repayments
	Below     int     `json:"below_one"`       // rho < 1 without tolerance
	NoDue     int     `json:"no_due"`          // periods with nothing due: omitted
	Lacking   float64 `json:"lacking_gpu_h"`   // shortfalls of tenants in these periods: due less received, where above 0
}

// UserDays counts days of users. A user is due an equal part of what its tenant's users receive, at most what its jobs
// can use.
type UserDays struct {
	Days   int `json:"days"`        // on which the user was due something; 0 = unknown, or there is none
	Unfair int `json:"unfair_days"` // on which it received less than that, by more than the tolerance
	// Lacking is what users received less than they were due on these days, as a share of all that users were due.
	Lacking float64 `json:"lacking"`
}

// Ratio gives the share of tenant periods that were unfair; 0 without periods.
func (p Period) Ratio() float64 { return ratio(p.Unfair, int(p.Rho.Count)) }

// Tenant is a tenant's part of the scores.
type Tenant struct {
	Tenant     string    `json:"tenant"`
	Jobs       Counts    `json:"jobs"`
	Rho        float64   `json:"rho"` // over the whole run; 0 where Due is 0
	Alloc      float64   `json:"alloc_gpu_h"`
	Due        float64   `json:"due_gpu_h"`
	On         []OnModel `json:"on,omitempty"` // as Setting.Models
	Periods    []Period  `json:"periods"`
	Completion Stats     `json:"completion_s"`
	Wait       Stats     `json:"wait_s"`
	Loss       Loss      `json:"sharing_loss"`
}

// OnModel is the time that a tenant held GPUs of a model.
type OnModel struct {
	Model string  `json:"model"`
	Held  float64 `json:"held_gpu_h"`
}

// Overhead is the cost of leases to the finished jobs: saves, loads, cold starts and lost work.
type Overhead struct {
	OfRun        float64 `json:"of_run"`        // share of their run time alone
	OfCompletion float64 `json:"of_completion"` // share of their completion time (ASTRAEA §6.4)
	GPUHours     float64 `json:"gpu_h"`
	Lost         Lost    `json:"lost"`
}

// Lost is the part of the overhead that is work repeated after a stop.
type Lost struct {
	OfRun    float64 `json:"of_run"` // share of the finished jobs' run time alone
	GPUHours float64 `json:"gpu_h"`
	Jobs     int     `json:"jobs"` // finished jobs that lost work
}

// Use is the tenants' held GPUs, as means over steps of time from the run's start.
type Use struct {
	Step       float64    `json:"step_s"`
	Capacity   []float64  `json:"capacity"`
	Used       []float64  `json:"used"`
	Fragmented []float64  `json:"fragmented"`
	Tenants    []Line     `json:"tenants"`          // by name
	Models     []ModelUse `json:"models,omitempty"` // as Setting.Models
}

// ModelUse is the tenants' held GPUs of one model.
type ModelUse struct {
	Model   string    `json:"model"`
	Used    []float64 `json:"used"`
	Tenants []Line    `json:"tenants"` // by name
}

// Line is one tenant's GPUs, step by step.
type Line struct {
	Tenant string    `json:"tenant"`
	GPUs   []float64 `json:"gpus"`
}

// Arrivals counts the finished and withdrawn jobs by the time step of their submission.
type Arrivals struct {
	Step float64   `json:"step_s"`
	Jobs []int64   `json:"jobs"`
	Wait []float64 `json:"wait_s"` // sum over these jobs
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
