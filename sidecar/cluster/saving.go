package cluster

import (
	compare "cmp"
	"fmt"
)

// Untyped is the command line of a job that belongs to no type: other jobs learn nothing from it.
const Untyped = "-"

// Manner is the event at which a job saves its work.
type Manner string

// The manners of saving. Unknown counts as Never.
const (
	UnknownManner Manner = ""
	SavesOnNotice Manner = "notice"   // at the notice
	SavesOnTerm   Manner = "term"     // at SIGTERM, within Slurm's KillWait: also when stopped without a notice
	SavesEvery    Manner = "periodic" // at a fixed interval, with or without signals
	SavesNever    Manner = "never"    // a requeue restarts it from the beginning
)

// Saving describes how a job saves its work, and the evidence for that.
type Saving struct {
	Manner Manner `json:"manner,omitempty"`
	Every  Span   `json:"every,omitempty"` // between two saves, of SavesEvery
	Takes  Span   `json:"takes,omitempty"` // how long a save takes; 0 = not known
	// Signal is the notice that it requested, or NoSignal. SignalTo selects the processes that receive
	// it (see Settings.SignalTo). "" = the site's default.
	Signal   string `json:"signal,omitempty"`
	SignalTo string `json:"signal_to,omitempty"`
	// Resumes tells whether an attempt after a requeue continued from a save.
	Resumes Resumption `json:"resumes,omitempty"`
	// Source ranks the evidence, Evidence words it, At is when it was last seen. Implied is true
	// if the user or the site only said that a requeue is acceptable: any observation then
	// overrides it.
	Source   SavingSource `json:"source,omitempty"`
	Evidence string       `json:"evidence,omitempty"`
	At       Instant      `json:"at,omitempty"`
	Implied  bool         `json:"implied,omitempty"`
}

// Resumption tells how an attempt after a requeue began.
type Resumption string

// How attempts after a requeue begin.
const (
	UnknownResumption Resumption = ""
	Resumed           Resumption = "resumed"   // from a save
	Restarted         Resumption = "restarted" // from the beginning
)

// SavingSource ranks the evidence of how a job saves.
type SavingSource string

// The sources, best first: observed behaviour of jobs of the type, the user's declaration, the
// site's rule for a QOS or partition, and none.
const (
	FromConduct     SavingSource = "conduct"
	FromDeclaration SavingSource = "declared"
	FromSite        SavingSource = "site"
	FromNowhere     SavingSource = ""
)

// The maxima that a job may declare: the interval between saves, and the duration of a save.
const (
	maxInterval = 365 * Day
	maxSaveTime = Day
)

// ParseSaving reads how a job saves: notice, term, never, or the interval between two saves, like 30m.
func ParseSaving(text string) (Saving, error) {
	switch m := Manner(text); m {
	case SavesOnNotice, SavesOnTerm, SavesNever:
		return Saving{Manner: m}, nil
	}
	every, err := ParseSpan(text)
	if err != nil || every < Second || every > maxInterval {
		return Saving{}, fmt.Errorf("%q is no manner of saving: write notice, term, never, or an interval like 30m", text)
	}
	return Saving{Manner: SavesEvery, Every: every}, nil
}

// Declare applies one word of a job's comment: saves=MANNER or save-time=SPAN.
func (s *Saving) Declare(key, value string) error {
	switch {
	case key == "saves" && s.Manner != UnknownManner:
		return fmt.Errorf("saves=%s: another saves= stands before it; keep one", value)
	case key == "saves":
		said, err := ParseSaving(value)
		if err != nil {
			return fmt.Errorf("saves=%s: %w", value, err)
		}
		s.Manner, s.Every = said.Manner, said.Every
	case key == "save-time" && s.Takes != 0:
		return fmt.Errorf("save-time=%s: another save-time= stands before it; keep one", value)
	case key == "save-time":
		takes, err := ParseSpan(value)
		if err != nil || takes <= 0 || takes > maxSaveTime {
			return fmt.Errorf("save-time=%s: write how long one save takes, like 90s, at most a day", value)
		}
		s.Takes = takes
	}
	return nil
}

// Certainty is how reliably the loss of a stop is known.
type Certainty string

// The certainties. Only jobs that report saves, or that were seen to restart, give certainty.
const (
	// KnownLoss: the work since a save that the attempt reported, or the whole attempt if jobs of
	// the type were seen to restart from the beginning.
	KnownLoss Certainty = "known"
	// BoundedLoss: the work since the latest moment at which the job must have saved, by its
	// declaration or its habit. It may have saved later, or not have saved at all: Loss.Most
	// bounds that.
	BoundedLoss Certainty = "bounded"
	// UnknownLoss: the whole attempt, since it is unknown how the job saves. It may be far too
	// much.
	UnknownLoss Certainty = "unknown"
)

// PendingStop is an ordered stop. Its loss is booked when the job is seen to have been requeued:
// until then the job may still end by itself, without a loss.
type PendingStop struct {
	// Since is the moment from which the attempt's work is destroyed; 0 = none is. Restarts is
	// the job's count at the order.
	Since     Instant   `json:"since,omitempty"`
	Certainty Certainty `json:"certainty,omitempty"`
	Restarts  int       `json:"restarts,omitempty"`
	// GPUs is the allocation of the attempt, once it has ended. Work is the destroyed part of its
	// run time.
	GPUs []ModelSize `json:"gpus,omitempty"`
	Work Span        `json:"work,omitempty"`
	// Saved is the newest save that the attempt reported; 0 = none. Most is the part of its run
	// time after that.
	Saved Instant `json:"saved,omitempty"`
	Most  Span    `json:"most,omitempty"`
}

// Loss is the work that one stop destroyed.
type Loss struct {
	Job  JobKey `json:"job"`
	Term int    `json:"term"` // of the lease that ended
	Pool string `json:"pool"`
	// Type is the job's type. Its command is Untyped if nothing distinguishes the job from its
	// user's others.
	Type      JobType   `json:"type"`
	Time      GPUTime   `json:"time"`
	Certainty Certainty `json:"certainty"`
	// Most is the GPU time since the newest save that the attempt reported, or all of the attempt:
	// an upper bound, also for a job that ignores its signal.
	Most GPUTime `json:"most,omitempty"`
}

// JobType groups jobs that should behave alike when they are stopped: same user, command line and
// number of GPUs.
type JobType struct {
	User    string `json:"user"`
	Command string `json:"command"`
	GPUs    int    `json:"gpus"`
}

// Compare orders by user, command, GPUs.
func (t JobType) Compare(o JobType) int {
	return compare.Or(compare.Compare(t.User, o.User), compare.Compare(t.Command, o.Command), compare.Compare(t.GPUs, o.GPUs))
}

// TypeOf gives a job's type; false if neither its command line nor its name distinguishes it from
// its user's other jobs.
func TypeOf(j *Job) (JobType, bool) {
	t := JobType{User: j.User, Command: j.Command, GPUs: j.Request.Size.Devices}
	if t.Command == Untyped {
		return t, false
	}
	if t.Command == "" {
		if j.Name == "" || j.Name == "wrap" || j.Name == "interactive" { // Slurm's default names
			return t, false
		}
		t.Command = "--job-name " + Numberless(j.Name)
	}
	return t, t.User != "" && t.GPUs > 0
}

// Numberless replaces every number in a text by #.
func Numberless(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if c >= '0' && c <= '9' {
			if c = '#'; len(out) > 0 && out[len(out)-1] == '#' {
				continue
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// Habit summarises how jobs of a type behaved when they were stopped and started. Habits are
// sorted by type.
type Habit struct {
	Type JobType `json:"type"`
	// Resumed and Restarted count jobs and attempts after a requeue that continued from a save,
	// and that started from the beginning. Last is which was seen last, LastAt when.
	Resumed   int        `json:"resumed,omitempty"`
	Restarted int        `json:"restarted,omitempty"`
	Last      Resumption `json:"last,omitempty"`
	LastAt    Instant    `json:"last_at,omitempty"`
	// Redone is the most work that an attempt repeated after a requeue, beyond what the report
	// before it explains. OnTerm and OnNotice count attempts that repeated nothing, after a
	// requeue of ours without and with a notice.
	Redone   Span `json:"redone,omitempty"`
	OnTerm   int  `json:"on_term,omitempty"`
	OnNotice int  `json:"on_notice,omitempty"`
	// Completed counts jobs that completed without a requeue. Shortest and Longest are their run
	// times.
	Completed int  `json:"completed,omitempty"`
	Shortest  Span `json:"shortest,omitempty"`
	Longest   Span `json:"longest,omitempty"`
	// Reports counts reported saves. Every is the longest of the latest intervals between two
	// saves.
	Reports int     `json:"reports,omitempty"`
	Every   Span    `json:"every,omitempty"`
	SavedAt Instant `json:"saved_at,omitempty"`
	// Takes is the longest of the latest reported durations of a save; 0 = none was reported.
	Takes Span `json:"takes,omitempty"`
	// Starts is the cost of a start, by model.
	Starts []StartCost `json:"starts,omitempty"`
	// Needed counts jobs that ended, in thousandths, by the class of GPU time that they had received (package
	// expect). It is kept with jobs.order expected only, also for all jobs of a user (no Command) and of everybody (no
	// User) with that number of GPUs. Replace it, never modify it.
	Needed []int32 `json:"needed,omitempty"`
	// Brief counts jobs that ended within a round's interval, and the others since the first of these; nil = none did. It
	// is kept also for all jobs of a user with that number of GPUs. Replace it, never modify it.
	Brief *Brief  `json:"brief,omitempty"`
	At    Instant `json:"at,omitzero"` // of the newest evidence
}

// Brief counts jobs of a type by whether they ended within a round's interval.
type Brief struct {
	Jobs  int32 `json:"jobs"`  // in thousandths; older jobs count less
	Short int32 `json:"short"` // of these, jobs that ended within the interval
	Ran   Span  `json:"ran"`   // mean run time of short ones
}

// Conduct is the behaviour of one job over its attempts. Jobs that report progress or were
// requeued have one. Replace it, never modify it: records of several rounds share it.
type Conduct struct {
	// Steps is its last report, At the time, In the attempt's run time by then. First and FirstIn
	// are of the attempt's first report. Model is the attempt's GPU model; "" = several, or
	// unknown.
	Steps   float64 `json:"steps,omitempty"`
	At      Instant `json:"at,omitempty"`
	In      Span    `json:"in,omitempty"`
	First   float64 `json:"first,omitempty"`
	FirstIn Span    `json:"first_in,omitempty"`
	Model   string  `json:"model,omitempty"`
	// Saved is its newest reported save, in any attempt; Reports, Every and Takes as in Habit.
	Saved   Instant `json:"saved,omitempty"`
	Reports int     `json:"reports,omitempty"`
	Every   Span    `json:"every,omitempty"`
	Takes   Span    `json:"takes,omitempty"`
	// Attempts counts those that a requeue ended. Ran is the run time of the last of them,
	// Longest of the longest.
	Attempts int  `json:"attempts,omitempty"`
	Ran      Span `json:"ran,omitempty"`
	Longest  Span `json:"longest,omitempty"`
	// Ours is true if we ordered the last requeue, or the job requeued itself at our notice; Noticed if a notice preceded it. Booked is its
	// estimated cost, Spent the sum before it.
	Ours    bool `json:"ours,omitempty"`
	Noticed bool `json:"noticed,omitempty"`
	Booked  Span `json:"booked,omitempty"`
	Spent   Span `json:"spent,omitempty"`
	// Last is how the attempt began after the last requeue that could be judged. LastAt is when
	// that was seen.
	Last   Resumption `json:"last,omitempty"`
	LastAt Instant    `json:"last_at,omitempty"`
}

// StartCost is the time from a start to the first progress of a job type on a GPU model.
type StartCost struct {
	Model   string `json:"model"`
	Mean    Span   `json:"mean"`
	Samples int    `json:"samples"`
}

// StopReport says when a running job may be stopped, and the cost of its stops so far.
type StopReport struct {
	Saving Saving `json:"saving"`
	// Stops counts our stops. Spent is what they cost.
	// Budget is what a stop may cost now, Cost what a stop after a notice of Notice would cost,
	// and Begin the part of it that is another start. Beyond counts the stops in excess of its
	// budget.
	Stops  int  `json:"stops"`
	Beyond int  `json:"beyond,omitempty"`
	Spent  Span `json:"spent"`
	Budget Span `json:"budget"`
	Cost   Span `json:"cost"`
	Begin  Span `json:"begin"`
	Notice Span `json:"notice"`
	// May tells whether the job may be stopped at the end of a notice that is sent now. Then
	// Until is the last moment at which it may, 0 = no end is foreseen. Otherwise From is the
	// first, 0 = it will not be stopped before it ends.
	May   bool    `json:"may"`
	Until Instant `json:"until,omitempty"`
	From  Instant `json:"from,omitempty"`
	// Short is true if the job saves on a notice, but needs a longer one than it gets.
	Short bool `json:"short,omitempty"`
	// Dear is the job's GPU model if stops there have used up the pool's total allowance: no job
	// on it is stopped now.
	Dear string `json:"dear,omitempty"`
	// Off is true if the site has no stop budget: any job may be stopped at any time.
	Off bool `json:"off,omitempty"`
	// Habit is that of the job's type, Conduct that of its own attempts; nil = unknown.
	Habit   *Habit   `json:"habit,omitempty"`
	Conduct *Conduct `json:"conduct,omitempty"`
}
