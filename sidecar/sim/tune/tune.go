package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// MostChanges is how many changes are read at most: many times those of the longest rest.
const MostChanges = 10_000

// Daemon is the author of the changes that no person made.
const Daemon = "fairlease"

// Rule limits the choice of a term.
type Rule struct {
	Terms   []cluster.Span // the candidates, ascending, at least one; the first and the last are the bounds
	Off     bool           // no night chooses, and no takeover holds
	Apply   bool           // the daemon's takeovers hold
	WorseBy float64        // growth of Measure.Cost that undoes a takeover, as a fraction
	Watch   cluster.Span   // how long a takeover is watched
	Rest    cluster.Span   // how long a term that was left or undone is not taken again
}

// Measure is the fairness and the cost of leases in a window of time.
type Measure struct {
	From       cluster.Instant `json:"from_ms,omitzero"`
	To         cluster.Instant `json:"to_ms,omitzero"`
	Jobs       int             `json:"finished_jobs"`
	Losses     int             `json:"sharing_loss_jobs"`
	Unfair     float64         `json:"unfair"`      // share of tenant hours with rho below 0.99 (score.Standard)
	Wait       float64         `json:"mean_wait_s"` // all the time without GPUs
	Completion float64         `json:"mean_jct_s"`  // of the finished jobs
	Overhead   float64         `json:"of_run"`      // cost of leases, as a share of run time
	CutShort   bool            `json:"cut_short"`   // the replay did not come to its end
}

// Cost is what a term trades: the share of unfair tenant hours plus the overhead of leases.
func (m *Measure) Cost() float64 { return m.Unfair + m.Overhead }

// Trial is a replay of the window with one term.
type Trial struct {
	Term cluster.Span `json:"term_ms"`
	Measure
}

// Study is what a night is decided by.
type Study struct {
	Was    Measure  `json:"was"`             // the real course of the window
	Since  *Measure `json:"since,omitempty"` // the real course since the watched takeover; nil = none, or too short a time
	Trials []Trial  `json:"trials"`          // by term, ascending
}

// ParseStudy reads the study of a report, the JSON of fairlease tune journal. It refuses numbers that are none and
// terms that are not ascending.
func ParseStudy(text []byte) (Study, error) {
	var report struct {
		Study *Study `json:"study"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return Study{}, fmt.Errorf("reading a study: %w", err)
	}
	s := report.Study
	if s == nil {
		return Study{}, fmt.Errorf("reading a study: there is none")
	}
	measures := []Measure{s.Was}
	if s.Since != nil {
		measures = append(measures, *s.Since)
	}
	last := cluster.Span(0)
	for i := range s.Trials {
		if s.Trials[i].Term <= last {
			return Study{}, fmt.Errorf("reading a study: term %v after %v", s.Trials[i].Term, last)
		}
		last = s.Trials[i].Term
		measures = append(measures, s.Trials[i].Measure)
	}
	for _, m := range measures {
		for _, x := range []float64{m.Unfair, m.Wait, m.Completion, m.Overhead, float64(m.Jobs), float64(m.Losses)} {
			if x < 0 || math.IsInf(x, 0) {
				return Study{}, fmt.Errorf("reading a study: %v is no measure", x)
			}
		}
	}
	return *s, nil
}

// Kind is a kind of change.
type Kind string

// The kinds. The term in force changes by Taken, Undone and Ended alone.
const (
	Kept     Kind = "kept"     // the term stays
	Proposed Kind = "proposed" // another term is better, and is not taken over
	Taken    Kind = "taken"    // another term is in force from now on
	Undone   Kind = "undone"   // a takeover was worse, or a person ended it: the term before is in force again
	Ended    Kind = "ended"    // the file's term is in force again, since the file says so
)

// Change is an entry of the record.
type Change struct {
	ID     int64           `json:"id"` // of the journal; 0 = not recorded
	At     cluster.Instant `json:"at_ms,omitzero"`
	Kind   Kind            `json:"kind"`
	File   cluster.Span    `json:"file_ms"`   // lease.term of the file at that time
	Before cluster.Span    `json:"before_ms"` // the term in force before
	Term   cluster.Span    `json:"term_ms"`   // the term in force after; of a proposal, the proposed one
	By     string          `json:"by"`
	Why    string          `json:"why"`
	Round  int64           `json:"round"` // the first round that named it; 0 = none has yet
	Study  *Study          `json:"study,omitempty"`
}

// Decisive tells whether the change determines the term in force.
func (c *Change) Decisive() bool { return c.Kind == Taken || c.Kind == Undone || c.Kind == Ended }

// Words says what the change does.
func (c *Change) Words() string {
	term, before := c.Term.Exact(), c.Before.Exact()
	switch c.Kind {
	case Kept:
		return fmt.Sprintf("the term stays %v: %s", term, c.Why)
	case Proposed:
		return fmt.Sprintf("a term of %v is proposed in place of %v: %s", term, before, c.Why)
	case Taken:
		return fmt.Sprintf("a term of %v is taken over in place of %v by %s: %s", term, before, c.By, c.Why)
	case Undone:
		return fmt.Sprintf("the term goes back from %v to %v by %s: %s", before, term, c.By, c.Why)
	}
	return fmt.Sprintf("the file's term of %v holds again in place of %v: %s", term, before, c.Why)
}

// Holds tells whether a term other than the file's is in force after the newest decisive change. If the configuration
// no longer allows that term, why says so, and Ended is due; why is empty otherwise.
func (r *Rule) Holds(file cluster.Span, newest *Change) (holds bool, why string) {
	switch c := newest; {
	case c == nil || c.Kind == Ended || c.Term == c.File:
		return false, ""
	case c.File != file:
		return false, fmt.Sprintf("lease.term has changed from %v to %v in the file", c.File.Exact(), file.Exact())
	case r.Off:
		return false, "tune is switched off in the file"
	case c.Term < r.Terms[0] || c.Term > r.Terms[len(r.Terms)-1]:
		return false, fmt.Sprintf("%v is outside tune.terms, %v to %v", c.Term.Exact(), r.Terms[0].Exact(), r.Terms[len(r.Terms)-1].Exact())
	case c.By == Daemon && !r.Apply:
		return false, "tune.apply is off in the file"
	}
	return true, ""
}

// Newest gives the newest decisive change of a record, newest first; nil = none.
func Newest(record []Change) *Change {
	if i := slices.IndexFunc(record, func(c Change) bool { return c.Decisive() }); i >= 0 {
		return &record[i]
	}
	return nil
}

// Night is all that one night is decided by.
type Night struct {
	Now    cluster.Instant
	File   cluster.Span // lease.term of the file
	Rule   Rule
	Take   bool // a better term is taken over, not only proposed
	By     string
	Study  Study
	Record []Change // newest first; at least the last Rest, and the newest decisive change
}

// InForce gives the term in force.
func (n *Night) InForce() cluster.Span {
	if c := Newest(n.Record); c != nil {
		if holds, _ := n.Rule.Holds(n.File, c); holds {
			return c.Term
		}
	}
	return n.File
}

// Watched gives the takeover that is being watched; nil = none.
func (n *Night) Watched() *Change {
	c := Newest(n.Record)
	if c == nil || c.Kind != Taken || n.Now.Sub(c.At) > n.Rule.Watch {
		return nil
	}
	if holds, _ := n.Rule.Holds(n.File, c); !holds {
		return nil
	}
	return c
}

// Decide gives what the night does.
func (n *Night) Decide() Change {
	now := n.InForce()
	out := Change{At: n.Now, Kind: Kept, File: n.File, Before: now, Term: now, By: n.By, Study: &n.Study}
	if t := n.Watched(); t != nil {
		out.Why = fmt.Sprintf("it was taken over %v ago and is watched for %v", n.Now.Sub(t.At).Beside(n.Rule.Watch), n.Rule.Watch.Exact())
		since := n.Study.Since
		if since == nil || since.Jobs == 0 || since.From < t.At || t.Study == nil || t.Study.Was.Jobs == 0 {
			return out
		}
		compared := fmt.Sprintf("unfair tenant hours and overhead together are %s of %s, after %s in the days before; %s was predicted",
			percent(since.Cost()), since.days(), percent(t.Study.Was.Cost()), predicted(t))
		out.Why += "; " + compared
		if since.Cost()-t.Study.Was.Cost() > n.Rule.WorseBy {
			out.Kind, out.Term, out.Why = Undone, n.back(t), compared
		}
		return out
	}
	step, why := n.step(now)
	out.Why = why
	switch {
	case step == now:
	case n.Take:
		out.Kind, out.Term = Taken, step
	default:
		out.Kind, out.Term = Proposed, step
	}
	return out
}

// back gives the term that was in force before a takeover, if it is the file's or within the bounds; else the file's.
func (n *Night) back(t *Change) cluster.Span {
	if t.Before >= n.Rule.Terms[0] && t.Before <= n.Rule.Terms[len(n.Rule.Terms)-1] {
		return t.Before
	}
	return n.File
}

// step gives the term in force, or the candidate next to it that is better.
func (n *Night) step(now cluster.Span) (term cluster.Span, why string) {
	if w := &n.Study.Was; w.To.Sub(w.From) < cluster.Day {
		return now, fmt.Sprintf("the journal covers %s, and a day at least is needed", w.days())
	}
	at := slices.IndexFunc(n.Study.Trials, func(t Trial) bool { return t.Term == now })
	if at < 0 {
		return now, "it was not replayed"
	}
	near := []score.Trial{n.Study.Trials[at].scored()}
	resting := ""
	for _, next := range []cluster.Span{n.next(now, -1), n.next(now, 1)} {
		i := slices.IndexFunc(n.Study.Trials, func(t Trial) bool { return t.Term == next })
		if until := n.restsUntil(next); until > n.Now {
			resting += fmt.Sprintf("; %v was left or undone and is not tried again before %s", next.Exact(), until)
		} else if i >= 0 {
			near = append(near, n.Study.Trials[i].scored())
		}
	}
	best, verdicts := score.StandardRule().Choose(near)
	switch {
	case best < 0:
		return now, "nothing can be said: no job finished in the replay" + resting
	case best == 0:
		for i := range near[1:] {
			why += fmt.Sprintf("; %v: %s", near[1+i].Scores.Term.Exact(), verdicts[1+i])
		}
		return now, "it is the best of the terms next to it" + why + resting
	}
	return near[best].Scores.Term, fmt.Sprintf("the replay of the last days chooses it (%s, while %v: %s)%s", n.difference(at, near[best].Scores.Term), now.Exact(), verdicts[0], resting)
}

// difference says what a term changes in the replay of the trial at.
func (n *Night) difference(at int, term cluster.Span) string {
	a := &n.Study.Trials[at]
	b := &n.Study.Trials[slices.IndexFunc(n.Study.Trials, func(t Trial) bool { return t.Term == term })]
	return fmt.Sprintf("sharing-loss jobs %d → %d, unfair tenant hours %s → %s, mean JCT %.2f h → %.2f h, overhead %s → %s",
		a.Losses, b.Losses, percent(a.Unfair), percent(b.Unfair), a.Completion/3600, b.Completion/3600, percent(a.Overhead), percent(b.Overhead))
}

// next gives the next candidate below (way -1) or above (way 1) a term; 0 = none.
func (n *Night) next(term cluster.Span, way int) cluster.Span {
	i, found := slices.BinarySearch(n.Rule.Terms, term)
	if way > 0 && !found {
		i--
	}
	if i += way; i >= 0 && i < len(n.Rule.Terms) {
		return n.Rule.Terms[i]
	}
	return 0
}

// restsUntil gives the end of the rest of a term; 0 = it was neither left nor undone.
func (n *Night) restsUntil(term cluster.Span) cluster.Instant {
	for i := range n.Record {
		if c := &n.Record[i]; c.Before == term && (c.Kind == Taken || c.Kind == Undone) {
			return c.At.Add(n.Rule.Rest)
		}
	}
	return 0
}

// scored gives a trial's measures as scores, for the rule that fairlease tune chooses by.
func (t *Trial) scored() score.Trial {
	s := score.Scores{CutShort: t.CutShort}
	s.Term, s.Jobs.Finished, s.Completion.Mean = t.Term, t.Jobs, t.Completion
	s.Loss.Jobs, s.Overhead.OfRun = t.Losses, t.Overhead
	return score.Trial{Scores: s}
}

// predicted words the cost that the replay promised for a takeover: that of the days before, changed as in the replay.
func predicted(t *Change) string {
	cost := func(term cluster.Span) (float64, bool) {
		i := slices.IndexFunc(t.Study.Trials, func(x Trial) bool { return x.Term == term })
		if i < 0 {
			return 0, false
		}
		return t.Study.Trials[i].Cost(), true
	}
	before, known := cost(t.Before)
	after, both := cost(t.Term)
	if !known || !both {
		return "nothing"
	}
	return percent(max(t.Study.Was.Cost()+after-before, 0))
}

// Verdicts gives the trial that the rule of fairlease tune chooses among all, -1 = none, and why it chooses each or not.
func Verdicts(trials []Trial) (best int, why []string) {
	all := make([]score.Trial, len(trials))
	for i := range trials {
		all[i] = trials[i].scored()
	}
	return score.StandardRule().Choose(all)
}

func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// days words the length of a measure's window.
func (m *Measure) days() string {
	return fmt.Sprintf("%.1f days", float64(m.To-m.From)/float64(cluster.Day))
}
