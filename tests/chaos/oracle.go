package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Facts is what was recorded of a campaign, by others than fairlease where they can know it.
type Facts struct {
	Jobs     []Job
	Attempts []Attempt // as slurmdbd has them
	Deeds    []Deed
	Faults   []Fault
	Rounds   []time.Time        // when rounds were committed, by PostgreSQL's clock
	Capacity map[string]float64 // GPUs by node
	Books    []Book
	Ledger   float64  // GPU-seconds that all tenants held, by the journal's ledger
	Left     []string // remains of fairlease in Slurm after a release
	Logged   []string // log lines of the sidecars that must never occur
	// Amnesia are the moments at which slurmctld was killed. It had not saved the changes of the
	// seconds before: Slurm itself then forgets submissions and ends of jobs.
	Amnesia  []time.Time
	Gaps     []Span      // in which slurmdbd had no database: ends are not in its record, or late
	Unsent   []Span      // slurmdbd has no record of these; see unsent
	Cold     []Span      // from slurmctld's stop to its start without its jobs
	Over     []Deed      // when jobs completed by slurmctld's log
	Restores []time.Time // when PostgreSQL got a dump back that lacks rounds
	Told     []time.Time // when a daemon told that the journal has lost some
	Failing  Span        // from the first fault to the end of the last one
	// Hostile counts the hostile deeds that Slurm accepted, by kind.
	Hostile  map[string]int
	Promised float64 // GPUs that the honest tenant may have
	Sharers  int     // jobs that take turns on a GPU; 0 = none do
	Turns    turns
}

// Span is a stretch of time.
type Span struct{ From, To time.Time }

// Job is a job, or a task of an array, that Slurm accepted.
type Job struct {
	ID          string // 12, or 12_3 of a task; the first part stands for a heterogeneous job
	Account     string
	Plain       bool // it waits for nothing other than GPUs
	Submitted   time.Time
	NoRequeue   bool
	Unreachable bool   // its account was deleted: the administrator cancelled it
	Waits       string // why it still waits at the end; "" = it does not
}

// Attempt is one stretch for which a job ran, or waited until it was cancelled.
type Attempt struct {
	Job, Account, State string
	Start, End          time.Time // the zero value: never started, not over
	GPUs                float64
	Nodes               []string
}

// Deed is what a user or an administrator did to a job.
type Deed struct {
	At   time.Time
	Job  string // the id that users know, of an array all of it
	What string
}

// Fault is something that failed for a while.
type Fault struct {
	What          string
	Began, Healed time.Time
	GoesOn        bool // rounds must go on while it lasts
}

// Book is the GPU time that a job held, in GPU-seconds: received, and destroyed by stops.
type Book struct {
	Job, Tenant   string
	Ours, Slurmdb float64
	Cut           float64     // GPU-seconds by which the whole seconds of Slurm's times may be off: half a second of each attempt
	Moments       []time.Time // its starts and ends, by whoever recorded one
	Leases        []time.Time // when leases of it began, by the journal
}

const (
	// patience is how long after a fault is healed a round may take to be committed: the lead is free after 15 seconds of silence, a
	// hung request ends after 10, and two cores are shared by all.
	patience = 90 * time.Second
	// goingOn is how many rounds show that rounds go on: the first one may have begun before.
	goingOn = 2
	// unsaved is for how long slurmctld may not have written down what it was told: SAVE_MAX_WAIT of its state_save.c is 5 seconds.
	unsaved = 8 * time.Second
	// resent is how long after slurmdbd is back slurmctld may not have told it all that it kept for it meanwhile.
	resent = 15 * time.Second
	// apart is how far slurmdbd's whole seconds may put an end after the next start on the same GPUs.
	apart = time.Second
)

// judge tells what does not hold of the facts; nothing is what must come out.
func judge(f *Facts) []string {
	var broken []string
	for _, rule := range []struct {
		name string
		of   func(*Facts) []string
	}{
		{"lost", lost}, {"run again", runAgain}, {"leased twice", leasedTwice}, {"books", booksApart}, {"stuck", stuck}, {"untold", untoldRestores}, {"deprived", deprived}, {"untested", untested}, {"stopped", stopped},
		{"left after release", func(f *Facts) []string { return f.Left }}, {"logged", func(f *Facts) []string { return f.Logged }},
	} {
		for _, line := range rule.of(f) {
			broken = append(broken, rule.name+": "+line)
		}
	}
	return broken
}

// leftOut tells of how much no rule can judge, for what Slurm itself forgot.
func (f *Facts) leftOut() string {
	jobs, attempts, ran, all := 0, 0, f.ran(), f.byJob()
	for _, j := range f.Jobs {
		if f.forgot(j.Submitted) || f.untold(j) || f.dropped(j, all[j.ID]) {
			jobs++
		}
	}
	for _, a := range ran {
		if f.forgot(a.End) || f.revived(a) {
			attempts++
		}
	}
	return fmt.Sprintf("left out, since Slurm itself forgot: %d of %d jobs, %d of %d attempts, %d of %d books", jobs, len(f.Jobs), attempts, len(ran),
		len(f.Books)-len(f.books()[everybody]), len(f.Books))
}

// base is the id that all tasks of an array, or all parts of a heterogeneous job, share.
func base(id string) string {
	if at := strings.IndexAny(id, "_+"); at >= 0 {
		return id[:at]
	}
	return id
}

// forgot tells whether slurmctld was killed just after a moment, or before it could tell slurmdbd of it.
func (f *Facts) forgot(at time.Time) bool {
	return slices.ContainsFunc(f.Amnesia, func(kill time.Time) bool { return !at.After(kill) && kill.Sub(at) <= unsaved }) ||
		slices.ContainsFunc(f.Unsent, func(s Span) bool { return s.has(at) })
}

func (s Span) has(at time.Time) bool { return !at.Before(s.From) && !at.After(s.To) }

// unsent gives the spans that are missing in slurmdbd's record. While slurmdbd is away slurmctld keeps its messages in memory. A
// slurmctld that is killed then, or just after slurmdbd is back, loses them: "_load_dbd_state: recovered 0 pending RPCs", says its log.
func unsent(faults []Fault, kills []time.Time) []Span {
	var out []Span
	for _, x := range faults {
		if !strings.HasPrefix(x.What, "slurmdbd") && !strings.HasPrefix(x.What, "MariaDB") {
			continue
		}
		for _, kill := range kills {
			if s := (Span{x.Began.Add(-time.Second), kill}); (Span{x.Began, x.Healed.Add(resent)}).has(kill) {
				out = append(out, s)
			}
		}
	}
	return out
}

// untold tells whether slurmdbd may not know that a job completed, as slurmctld's log says it did: once it has missed a start or a
// requeue it misses all that follows, for that changes a record that it does not have.
func (f *Facts) untold(j Job) bool {
	return slices.ContainsFunc(f.Over, func(o Deed) bool {
		return o.Job == j.ID && slices.ContainsFunc(f.Unsent, func(s Span) bool { return !j.Submitted.After(s.To) && !o.At.Before(s.From) })
	})
}

// missed tells whether slurmdbd lacks an attempt of a job, since it has missed an earlier change of it, as untold says; or that the job
// is a task that slurmdbd does not know as one of its array any more: it has an id that nobody was told.
func (f *Facts) missed(b Book) bool {
	lacks := func(at time.Time) bool {
		return !slices.ContainsFunc(f.Attempts, func(a Attempt) bool {
			return a.Job == b.Job && !a.Start.IsZero() && !at.Before(a.Start.Add(-apart)) && !at.After(a.End.Add(apart))
		})
	}
	i := slices.IndexFunc(f.Jobs, func(j Job) bool { return j.ID == b.Job || base(j.ID) == base(b.Job) })
	return slices.ContainsFunc(f.Unsent, func(s Span) bool {
		since := func(at time.Time) bool { return !at.Before(s.From) }
		if i < 0 {
			return slices.ContainsFunc(b.Moments, since)
		}
		return !f.Jobs[i].Submitted.After(s.To) && slices.ContainsFunc(b.Leases, func(at time.Time) bool { return since(at) && lacks(at) })
	})
}

// unrecorded tells whether slurmdbd may not have written down what it was told at a moment.
func (f *Facts) unrecorded(at time.Time) bool {
	return slices.ContainsFunc(f.Gaps, func(s Span) bool { return s.has(at) })
}

// sure gives until when an attempt is known to have run: one that was running when slurmdbd had no database may have ended
// just then, and of one that was requeued when it was over slurmdbd has the time of that, slurmctld's log its end.
func (f *Facts) sure(a Attempt) time.Time {
	end := a.End
	for _, o := range f.Over {
		if o.Job == a.Job && o.At.After(a.Start) && o.At.Before(end) {
			end = o.At
		}
	}
	for _, gap := range f.Gaps {
		if a.Start.Before(gap.To) && end.After(gap.From) {
			end = gap.From
		}
	}
	return end
}

// did tells whether somebody did one of these things to a job, from a moment on.
func (f *Facts) did(job string, from time.Time, whats ...string) bool {
	return slices.ContainsFunc(f.Deeds, func(d Deed) bool {
		return (d.Job == job || d.Job == base(job)) && slices.Contains(whats, d.What) && !d.At.Before(from)
	})
}

// byJob gives the attempts of every job in the order in which they ran.
func (f *Facts) byJob() map[string][]Attempt {
	all := map[string][]Attempt{}
	for _, a := range f.Attempts {
		all[a.Job] = append(all[a.Job], a)
	}
	for job, of := range all {
		slices.SortStableFunc(of, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
		// After a crash slurmctld may have slurmdbd note an attempt a second time, with another time of submission.
		all[job] = slices.CompactFunc(of, func(a, b Attempt) bool {
			return a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.State == b.State && a.GPUs == b.GPUs
		})
	}
	return all
}

// ran gives the attempts that held GPUs for a while.
func (f *Facts) ran() []Attempt {
	var out []Attempt
	attempts := f.byJob()
	for _, job := range slices.Sorted(maps.Keys(attempts)) {
		for _, a := range attempts[job] {
			if a.GPUs > 0 && len(a.Nodes) > 0 && !a.Start.IsZero() && a.End.After(a.Start) {
				out = append(out, a)
			}
		}
	}
	return out
}

// lost gives the jobs that did not come to the end that their users wanted: completed, or cancelled by them.
func lost(f *Facts) []string {
	var out []string
	attempts := f.byJob()
	for _, j := range f.Jobs {
		if j.Waits != "" {
			out = append(out, fmt.Sprintf("job %s still waits: %s", j.ID, j.Waits))
			continue
		}
		of := attempts[j.ID]
		if f.untold(j) || f.dropped(j, of) {
			continue
		}
		if len(of) == 0 {
			if !f.forgot(j.Submitted) && !f.did(j.ID, time.Time{}, "cancel") {
				out = append(out, fmt.Sprintf("job %s is not in slurmdbd", j.ID))
			}
			continue
		}
		states := make([]string, 0, len(of))
		for _, a := range of {
			states = append(states, a.State)
		}
		forgotten := f.forgot(j.Submitted) && !slices.ContainsFunc(of, func(a Attempt) bool { return a.State != "PENDING" })
		if !forgotten && !slices.ContainsFunc(of, func(a Attempt) bool { return f.fine(j, a) }) {
			out = append(out, fmt.Sprintf("job %s ended as %s", j.ID, strings.Join(states, ", ")))
		}
	}
	return out
}

// dropped tells whether slurmctld lost a job when it was started without its jobs: slurmdbd has no end of it, or ends it as cancelled, or, if it was
// suspended before, with the state that it had.
func (f *Facts) dropped(j Job, of []Attempt) bool {
	return slices.ContainsFunc(f.Cold, func(s Span) bool {
		during := func(at time.Time) bool { return (Span{s.From.Add(-apart), s.To.Add(apart)}).has(at) }
		return !j.Submitted.After(s.To) && !slices.ContainsFunc(of, func(a Attempt) bool { return a.Start.After(s.To) }) &&
			(len(of) == 0 || slices.ContainsFunc(of, func(a Attempt) bool {
				return a.End.IsZero() || (strings.HasPrefix(a.State, "CANCELLED") || a.State == "SUSPENDED" || a.State == "RUNNING") && during(a.End)
			}))
	})
}

// fine tells whether an attempt is an end that the job's user wanted, or that Slurm and its nodes alone have brought about.
func (f *Facts) fine(j Job, a Attempt) bool {
	switch {
	case a.State == "COMPLETED":
		return true
	case strings.HasPrefix(a.State, "CANCELLED"):
		return j.Unreachable || f.did(j.ID, time.Time{}, "cancel")
	case a.State == "NODE_FAIL":
		return j.NoRequeue || f.did(j.ID, time.Time{}, "no requeue")
	case a.State == "TIMEOUT":
		return f.did(j.ID, time.Time{}, "shorten")
	case a.State == "FAILED":
		return f.twice(j, a)
	}
	return false
}

// twice tells whether an attempt failed because slurmctld forgot, when it was killed, that it had started the job already: it starts it
// again, and has it fail when the node tells of the first attempt.
func (f *Facts) twice(j Job, a Attempt) bool {
	const known, atOnce = 30 * time.Second, 2 * time.Second // until all nodes have told what runs; between such a start and its end
	return a.End.Sub(a.Start) <= atOnce && slices.ContainsFunc(f.Amnesia, func(kill time.Time) bool {
		return j.Submitted.Before(kill) && a.Start.After(kill) && a.Start.Sub(kill) <= known
	})
}

// runAgain gives the jobs that ran after slurmdbd had them as finished, without their users' having asked for it.
func runAgain(f *Facts) []string {
	var out []string
	for id, of := range f.byJob() {
		for i, a := range of {
			over := a.State == "COMPLETED" || a.State == "FAILED" || a.State == "TIMEOUT"
			if !over || a.End.IsZero() || f.forgot(a.End) {
				continue
			}
			for _, later := range of[i+1:] {
				if later.Start.After(a.End) && !f.did(id, a.Start, "requeue") {
					out = append(out, fmt.Sprintf("job %s was %s at %s and ran again at %s", id, a.State, clock(a.End), clock(later.Start)))
					break
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// revived tells whether a job's user requeued it when this attempt was over: Slurm then puts the time of that in the place of its end.
func (f *Facts) revived(a Attempt) bool {
	over := a.State == "COMPLETED" || a.State == "FAILED" || a.State == "TIMEOUT" || strings.HasPrefix(a.State, "CANCELLED")
	return over && slices.ContainsFunc(f.Deeds, func(d Deed) bool {
		return (d.Job == a.Job || d.Job == base(a.Job)) && d.What == "requeue" && d.At.Sub(a.End).Abs() <= 2*time.Second
	})
}

// hold is that a job holds GPUs of a node.
type hold struct {
	job, node  string
	gpus       float64
	start, end time.Time
}

// leasedTwice gives the moments at which jobs held more GPUs of a node than it has, by slurmdbd's record of who ran where.
func leasedTwice(f *Facts) []string {
	var ran []hold
	for _, a := range f.ran() {
		if f.forgot(a.End) || f.revived(a) { // that it ended then is a guess that slurmctld made after its restart, or not so
			continue
		}
		for _, n := range a.Nodes {
			ran = append(ran, hold{a.Job, n, a.GPUs / float64(len(a.Nodes)), a.Start, f.sure(a)})
		}
	}
	return overfull(ran, f.Capacity)
}

// overfull gives the first moment at which each node is held more than once, for longer than clocks may err.
func overfull(holds []hold, capacity map[string]float64) []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(capacity)) {
		type step struct {
			at   time.Time
			gpus float64
		}
		var steps []step
		for _, h := range holds {
			if h.node == node && h.end.Sub(h.start) > apart {
				steps = append(steps, step{h.start, h.gpus}, step{h.end.Add(-apart), -h.gpus})
			}
		}
		slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.gpus, b.gpus)) })
		used := 0.0
		for _, s := range steps {
			if used += s.gpus; used > capacity[node]+1e-6 { // thirds of GPUs are rounded
				out = append(out, fmt.Sprintf("%s has %g GPUs and %g of them were held at %s: %s", node, capacity[node], used, clock(s.at), holders(holds, node, s.at)))
				break
			}
		}
	}
	return out
}

func holders(holds []hold, node string, at time.Time) string {
	var who []string
	for _, h := range holds {
		if h.node == node && !h.start.After(at) && h.end.After(at) {
			who = append(who, fmt.Sprintf("job %s %g GPUs %s-%s", h.job, h.gpus, clock(h.start), clock(h.end)))
		}
	}
	return strings.Join(who, ", ")
}

// everybody is the line of the books that sums all tenants up.
const everybody = "all tenants"

// books gives the books of each tenant, and of all, that can be compared.
func (f *Facts) books() map[string][]Book {
	of := map[string][]Book{}
	for _, b := range f.Books {
		revived := func(a Attempt) bool { return a.Job == b.Job && f.revived(a) }
		if !slices.ContainsFunc(b.Moments, f.forgot) && !slices.ContainsFunc(b.Moments, f.unrecorded) && !f.missed(b) && !f.did(b.Job, time.Time{}, "revive") && !slices.ContainsFunc(f.Attempts, revived) {
			of[b.Tenant] = append(of[b.Tenant], b)
			of[everybody] = append(of[everybody], b)
		}
	}
	return of
}

// held sums books up.
func held(books []Book) (sum Book) {
	for _, b := range books {
		sum.Ours, sum.Slurmdb, sum.Cut = sum.Ours+b.Ours, sum.Slurmdb+b.Slurmdb, sum.Cut+b.Cut
	}
	return sum
}

// booksApart gives the tenants whose GPU time in the journal differs from slurmdbd's by more than
// one per cent and the rounding to whole seconds of attempts of ten seconds. The roundings do not
// cancel: Slurm starts many jobs at the start of a second, and by slurmctld's log, which has
// milliseconds, slurmdbd was 0.13 s short of each attempt. It omits jobs with a start or end that
// slurmctld forgot, or that slurmdbd could not write without a database: slurmdbd does not know
// of these, nor of some that follow (missed). It also omits jobs that their users requeued after their end: Slurm then overwrites
// the time of the end.
func booksApart(f *Facts) []string {
	var out []string
	total := 0.0
	for _, b := range f.Books {
		total += b.Ours
	}
	of := f.books()
	if math.Abs(total-f.Ledger) > f.Ledger/1000 {
		out = append(out, fmt.Sprintf("all tenants held %.0f GPU-s by the ledger and %.0f by its jobs", f.Ledger, total))
	}
	for _, tenant := range slices.Sorted(maps.Keys(of)) {
		jobs := of[tenant]
		sum := held(jobs)
		if math.Abs(sum.Ours-sum.Slurmdb) <= sum.Slurmdb/100+sum.Cut {
			continue
		}
		line := fmt.Sprintf("%s held %.0f GPU-s by the journal and %.0f by slurmdbd", tenant, sum.Ours, sum.Slurmdb)
		slices.SortStableFunc(jobs, func(a, b Book) int { return cmp.Compare(math.Abs(b.Ours-b.Slurmdb), math.Abs(a.Ours-a.Slurmdb)) })
		for _, b := range jobs[:min(len(jobs), 5)] {
			line += fmt.Sprintf("; job %s %.1f and %.0f", b.Job, b.Ours, b.Slurmdb)
		}
		out = append(out, line)
	}
	return out
}

// stuck gives the faults after which, or during which, no round was committed in time.
func stuck(f *Facts) []string {
	var out []string
	rounds := func(from, to time.Time) (n int) {
		for _, at := range f.Rounds {
			if at.After(from) && !at.After(to) {
				n++
			}
		}
		return n
	}
	for _, x := range f.Faults {
		if rounds(x.Healed, x.Healed.Add(patience)) < goingOn {
			out = append(out, fmt.Sprintf("no rounds within %s after %s was healed at %s", patience, x.What, clock(x.Healed)))
		}
		if x.GoesOn && rounds(x.Began, x.Healed) < goingOn {
			out = append(out, fmt.Sprintf("no rounds while %s, from %s to %s", x.What, clock(x.Began), clock(x.Healed)))
		}
	}
	return out
}

// untoldRestores gives the restored dumps that are no event. A daemon that was started or hung beside could not know.
func untoldRestores(f *Facts) []string {
	var out []string
	for _, at := range f.Restores {
		away := slices.ContainsFunc(f.Faults, func(x Fault) bool {
			return (strings.Contains(x.What, "sidecar") || strings.Contains(x.What, "standby")) && x.Began.Before(at.Add(patience)) && x.Healed.After(at.Add(-patience))
		})
		told := slices.ContainsFunc(f.Told, func(t time.Time) bool { return t.After(at.Add(-apart)) && t.Before(at.Add(patience)) })
		if !told && !away {
			out = append(out, fmt.Sprintf("the journal lost rounds at %s, and no event says so", clock(at)))
		}
	}
	return out
}

const (
	promised      = "vision" // the honest tenant
	promisedCells = 8        // GPUs of its virtual cluster
	// leastShare is how much of that the honest tenant must get, as part of the GPU time that it wanted there, while everything fails: a
	// tenant whose GPUs others keep gets next to nothing.
	leastShare = 0.2
	// judgedAfter is the length from which on a run must test that share. Users do some three hostile deeds a minute, and the honest
	// tenant has two jobs that run throughout: chance leaves out neither for so long.
	judgedAfter = 5 * time.Minute
	// leastWanting is the part of such a run in which the honest tenant must want GPUs of its cells.
	leastWanting = 0.25
)

// wants gives how many GPUs an account's plain jobs wanted in each second (Unix time), and how many they held. A job wants its GPUs
// from its submission to the end of its last attempt. Jobs that their users changed do not count.
func (f *Facts) wants(account string) (wants, has map[int64]float64) {
	wants, has = map[int64]float64{}, map[int64]float64{}
	attempts := f.byJob()
	for _, j := range f.Jobs {
		of := attempts[j.ID]
		if j.Account != account || !j.Plain || len(of) == 0 || slices.ContainsFunc(f.Deeds, func(d Deed) bool { return d.Job == j.ID }) {
			continue
		}
		last := of[len(of)-1]
		if last.Start.IsZero() || last.End.IsZero() {
			continue
		}
		for at := j.Submitted.Unix(); at < last.End.Unix(); at++ {
			wants[at] += last.GPUs
		}
		for _, a := range of {
			for at := a.Start.Unix(); !a.Start.IsZero() && at < a.End.Unix(); at++ {
				has[at] += a.GPUs
			}
		}
	}
	return wants, has
}

// wanted gives the GPU-seconds that an account's plain jobs wanted of so many GPUs, and those that they held of them, second by second.
func (f *Facts) wanted(account string, gpus float64) (wanted, held float64) {
	wants, has := f.wants(account)
	for at, n := range wants {
		wanted += min(n, gpus)
		held += min(n, gpus, has[at])
	}
	return wanted, held
}

// deprived tells whether the honest tenant had to leave its promised GPUs to others.
func deprived(f *Facts) []string {
	wanted, held := f.wanted(promised, f.Promised)
	if held >= leastShare*wanted {
		return nil
	}
	return []string{fmt.Sprintf("%s wanted %.0f GPU-s of its %g GPUs and held %.0f", promised, wanted, f.Promised, held)}
}

// untested tells why a long run says nothing of the honest tenant's share: no hostile deed was carried out, or the tenant wanted
// GPUs for too small a part of the time.
func untested(f *Facts) []string {
	length := f.Failing.To.Sub(f.Failing.From)
	if length < judgedAfter {
		return nil
	}
	var out []string
	deeds := 0
	for _, n := range f.Hostile {
		deeds += n
	}
	if deeds == 0 {
		out = append(out, fmt.Sprintf("no hostile deed was carried out in %s, so the share of %s tells nothing", length.Round(time.Second), promised))
	}
	if wanting := f.wanting(promised); wanting < time.Duration(leastWanting*float64(length)) {
		out = append(out, fmt.Sprintf("%s wanted GPUs for %s of %s, less than %.0f %%, which is too short to judge its share",
			promised, wanting, length.Round(time.Second), 100*leastWanting))
	}
	return out
}

// wanting gives for how long an account's plain jobs wanted GPUs while things failed, in whole seconds.
func (f *Facts) wanting(account string) time.Duration {
	wants, _ := f.wants(account)
	n := time.Duration(0)
	for at, gpus := range wants {
		if gpus > 0 && f.Failing.has(time.Unix(at, 0)) {
			n += time.Second
		}
	}
	return n
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
