package cluster

import (
	compare "cmp"
	"fmt"
)

// Untyped is the command line of a job that belongs to no type: nothing is learnt from it for others.
const Untyped = "-"

// Manner is when a job saves its work.
type Manner string

// The manners of saving. Unknown counts as Never.
const (
	UnknownManner Manner = ""
	SavesOnNotice Manner = "notice"   // when it hears the notice
	SavesOnTerm   Manner = "term"     // when it hears SIGTERM, within Slurm's KillWait: also when stopped without notice
	SavesEvery    Manner = "periodic" // every so often, whatever it hears
	SavesNever    Manner = "never"    // a requeue starts it from the beginning
)

// Saving is how a job saves its work, and how that is known.
type Saving struct {
	Manner Manner `json:"manner,omitempty"`
	Every  Span   `json:"every,omitempty"` // between two saves, of SavesEvery
	Takes  Span   `json:"takes,omitempty"` // how long a save takes; 0 = not known
	// Signal is the notice that it asked for, SignalTo which of its processes hear it (see Settings.SignalTo);
	// "" = the site's.
	Signal   string `json:"signal,omitempty"`
	SignalTo string `json:"signal_to,omitempty"`
	// Resumes tells whether an attempt after a requeue went on from a save.
	Resumes Resumption `json:"resumes,omitempty"`
	// Source is the rank of the evidence; Evidence says it in words; At is when it was last seen. Implied is
	// true where the user or the site only said that a requeue is acceptable: then anything that is seen counts more.
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

// SavingSource ranks what is known of how a job saves.
type SavingSource string

// The sources, best first: what jobs of the type did, what the user declared, what the site says of
// a QOS or partition, and nothing at all.
const (
	FromConduct     SavingSource = "conduct"
	FromDeclaration SavingSource = "declared"
	FromSite        SavingSource = "site"
	FromNowhere     SavingSource = ""
)

// The longest interval between saves, and the longest save, that a job may declare.
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

// Declare adds a word of a job's comment to what the job declares: saves=MANNER or save-time=SPAN.
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

// Certainty tells how well it is known what a stop destroyed.
type Certainty string

// The certainties. Only jobs that report their saves, or were seen to restart, leave no doubt.
const (
	// KnownLoss: the work since a save that the attempt reported, or all of an attempt of a type that was seen to restart from
	// the beginning.
	KnownLoss Certainty = "known"
	// BoundedLoss: the work since the latest moment at which the job must have saved, by what it declares or is known of it.
	// It may have saved since.
	BoundedLoss Certainty = "bounded"
	// UnknownLoss: all of the attempt, since nothing is known of how the job saves. It may be far too much.
	UnknownLoss Certainty = "unknown"
)

// PendingStop is a stop that was ordered. What it destroys is booked when the job is seen to have been requeued: until then
// the job may still end by itself, and has lost nothing.
type PendingStop struct {
	// Since is from when on the work of the attempt is destroyed; 0 = nothing is. Restarts is the job's count at the order.
	Since     Instant   `json:"since,omitempty"`
	Certainty Certainty `json:"certainty,omitempty"`
	Restarts  int       `json:"restarts,omitempty"`
	// GPUs is what the attempt held, once it has ended; Work how long of its run time was destroyed.
	GPUs []GPUs `json:"gpus,omitempty"`
	Work Span   `json:"work,omitempty"`
}

// Loss is what one stop destroyed.
type Loss struct {
	Job  JobKey `json:"job"`
	Term int    `json:"term"` // of the lease that ended
	Pool string `json:"pool"`
	// Type is the job's; its command is Untyped where nothing tells the job from its user's others.
	Type      JobType   `json:"type"`
	Time      GPUTime   `json:"time"`
	Certainty Certainty `json:"certainty"`
}

// JobType names jobs that are expected to behave alike when they are stopped: one user's submissions
// of one command line with as many GPUs.
type JobType struct {
	User    string `json:"user"`
	Command string `json:"command"`
	GPUs    int    `json:"gpus"`
}

// Compare orders by user, command, GPUs.
func (t JobType) Compare(o JobType) int {
	return compare.Or(compare.Compare(t.User, o.User), compare.Compare(t.Command, o.Command), compare.Compare(t.GPUs, o.GPUs))
}

// TypeOf gives a job's type; false where neither a command line nor a name tells it from its user's other jobs.
func TypeOf(j *Job) (JobType, bool) {
	t := JobType{User: j.User, Command: j.Command, GPUs: j.Request.GPUs}
	if t.Command == Untyped {
		return t, false
	}
	if t.Command == "" {
		if j.Name == "" || j.Name == "wrap" || j.Name == "interactive" { // Slurm's own names
			return t, false
		}
		t.Command = "--job-name " + Numberless(j.Name)
	}
	return t, t.User != "" && t.GPUs > 0
}

// Numberless writes every number in a text as #.
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

// Habit is what jobs of a type did so far when they were stopped and started. Habits are kept sorted
// by type.
type Habit struct {
	Type JobType `json:"type"`
	// Resumed and Restarted count jobs and attempts after a requeue that went on from a save, and that started from
	// the beginning; Last is which was seen last, LastAt when.
	Resumed   int        `json:"resumed,omitempty"`
	Restarted int        `json:"restarted,omitempty"`
	Last      Resumption `json:"last,omitempty"`
	LastAt    Instant    `json:"last_at,omitempty"`
	// Redone is the longest work that an attempt did again after a requeue and that is not explained by the report
	// before it; OnTerm and OnNotice count those that did nothing again, after a requeue without and with a notice.
	Redone   Span `json:"redone,omitempty"`
	OnTerm   int  `json:"on_term,omitempty"`
	OnNotice int  `json:"on_notice,omitempty"`
	// Completed counts jobs that completed without a requeue; Shortest and Longest are their run times.
	Completed int  `json:"completed,omitempty"`
	Shortest  Span `json:"shortest,omitempty"`
	Longest   Span `json:"longest,omitempty"`
	// Reports counts reported saves; Every is the longest time between two of the latest.
	Reports int     `json:"reports,omitempty"`
	Every   Span    `json:"every,omitempty"`
	SavedAt Instant `json:"saved_at,omitempty"`
	// Starts is what a start costs on each model, by model.
	Starts []StartCost `json:"starts,omitempty"`
	At     Instant     `json:"at"` // of the newest evidence
}

// Conduct is what one job did over its attempts, of jobs that report progress or were requeued. A change
// makes a new one: records of several rounds share it.
type Conduct struct {
	// Steps is what it reported last, At when, In the run time of that attempt by then; First and FirstIn are of the
	// first report in that attempt. Model is the GPU model of that attempt; "" = several, or not known.
	Steps   float64 `json:"steps,omitempty"`
	At      Instant `json:"at,omitempty"`
	In      Span    `json:"in,omitempty"`
	First   float64 `json:"first,omitempty"`
	FirstIn Span    `json:"first_in,omitempty"`
	Model   string  `json:"model,omitempty"`
	// Saved is its newest reported save, in any attempt; Reports and Every as in Habit.
	Saved   Instant `json:"saved,omitempty"`
	Reports int     `json:"reports,omitempty"`
	Every   Span    `json:"every,omitempty"`
	// Attempts counts those that a requeue ended; Ran is the run time of the last of them, Longest of the longest.
	Attempts int  `json:"attempts,omitempty"`
	Ran      Span `json:"ran,omitempty"`
	Longest  Span `json:"longest,omitempty"`
	// Ours is true where we ordered the last requeue, Noticed where a notice came before it. Booked is what it was
	// thought to cost, Spent the sum up to it.
	Ours    bool `json:"ours,omitempty"`
	Noticed bool `json:"noticed,omitempty"`
	Booked  Span `json:"booked,omitempty"`
	Spent   Span `json:"spent,omitempty"`
	// Last is how its attempt after the last requeue that could be judged began, LastAt when that was seen.
	Last   Resumption `json:"last,omitempty"`
	LastAt Instant    `json:"last_at,omitempty"`
}

// StartCost is the time from a start to the first progress of a job type on a GPU model.
type StartCost struct {
	Model   string `json:"model"`
	Mean    Span   `json:"mean"`
	Samples int    `json:"samples"`
}

// StopReport says when a running job may be stopped, and what its stops have cost it.
type StopReport struct {
	Saving Saving `json:"saving"`
	// Stops counts those that we ordered, and drains and failures of its nodes; Spent is what they cost, Budget what a stop may cost now, Cost what a
	// stop after a notice of Notice would cost, Begin what of that is another start.
	// Beyond counts the stops that were beyond its budget.
	Stops  int  `json:"stops"`
	Beyond int  `json:"beyond,omitempty"`
	Spent  Span `json:"spent"`
	Budget Span `json:"budget"`
	Cost   Span `json:"cost"`
	Begin  Span `json:"begin"`
	Notice Span `json:"notice"`
	// May tells whether the job may be stopped at the end of a notice that is sent now. Until is then the last moment at
	// which it may, 0 = none is foreseen; else From is the first, 0 = it will not be stopped before it ends.
	May   bool    `json:"may"`
	Until Instant `json:"until,omitempty"`
	From  Instant `json:"from,omitempty"`
	// Short is true where the job saves on a notice, and needs a longer one than it gets.
	Short bool `json:"short,omitempty"`
	// Dear is the job's GPU model where stops have cost all jobs on it together what they may: none is stopped now.
	Dear string `json:"dear,omitempty"`
	// Off is true where the site has no stop budget: any job may be stopped at any time.
	Off bool `json:"off,omitempty"`
	// Habit is what is known of jobs of its type, Conduct of its own attempts; nil = nothing.
	Habit   *Habit   `json:"habit,omitempty"`
	Conduct *Conduct `json:"conduct,omitempty"`
}
