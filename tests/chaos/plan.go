package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan draws what happens. Each kind of event has a stream of its own, so that how many are drawn of one does not depend on how fast the
// machine works through another.
type plan struct {
	faults, users, grants *rand.Rand
	kinds                 []*kind
	deck                  []*kind // those that have not had their turn
}

// newPlan draws from a seed, of the kinds of faults whose name has only in it. Those that have one of first in their name have their turn before others.
func newPlan(seed uint64, only string, first ...string) (*plan, error) {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	p := &plan{faults: stream(1), users: stream(2), grants: stream(3)}
	for i := range kinds {
		if strings.Contains(kinds[i].name, only) {
			p.kinds = append(p.kinds, &kinds[i])
		}
	}
	if len(p.kinds) == 0 {
		return nil, fmt.Errorf("no kind of fault has %q in its name", only)
	}
	p.shuffle()
	slices.SortStableFunc(p.deck, func(a, b *kind) int { return rank(a.name, first) - rank(b.name, first) })
	return p, nil
}

// rank gives the first of some texts that a name has in it; their count where it has none.
func rank(name string, texts []string) int {
	if i := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(name, text) }); i >= 0 {
		return i
	}
	return len(texts)
}

// shuffle puts all kinds into the deck.
func (p *plan) shuffle() {
	for _, i := range p.faults.Perm(len(p.kinds)) {
		p.deck = append(p.deck, p.kinds[i])
	}
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// between gives a time from least to most, in tenths of a second.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return least + time.Duration(r.Int64N(int64((most-least)/step)+1))*step
}

// strike is one fault as it is drawn: its kind, whom it hits, and for how long it lasts.
type strike struct {
	*kind
	who  int // any number; the kind takes it modulo its candidates
	hold time.Duration
}

// episode draws one fault, in every third case together with another one.
func (p *plan) episode() []strike {
	first := p.draw(nil)
	if p.faults.IntN(3) > 0 {
		return []strike{first}
	}
	if !slices.ContainsFunc(p.kinds, func(k *kind) bool { return together(first.kind, k) }) {
		return []strike{first}
	}
	second := p.draw(first.kind)
	second.hold = min(second.hold, first.hold+10*time.Second)
	return []strike{first, second}
}

// draw takes the next kind from a shuffled deck, so that all kinds have their turn before one comes again. A kind that cannot strike
// together with beside is left in the deck.
func (p *plan) draw(beside *kind) strike {
	for i, k := range p.deck {
		if beside == nil || together(beside, k) {
			p.deck = slices.Delete(p.deck, i, i+1)
			return strike{k, p.faults.IntN(1 << 16), between(p.faults, k.least, k.most)}
		}
	}
	p.shuffle()
	return p.draw(beside)
}

// together tells whether two faults may strike at the same time. A slurmctld that is killed loses what it has not told slurmdbd yet:
// then no record is left of who ran where, and nothing can be judged.
func together(a, b *kind) bool {
	loses := func(x, y *kind) bool { return x.of == "slurmctld" && y.of == "slurmdbd" }
	return a.of != b.of && !loses(a, b) && !loses(b, a)
}

// deed is something that a user does: a submission, or a change of the job that is back places before the newest.
type deed struct {
	what string
	kind int // of a submission, among manners
	user int
	back int
	wait time.Duration // before it
}

// changes are what users do to jobs of theirs.
var changes = []string{"cancel", "hold", "release", "requeue", "resubmit", "shorten", "comment", "licences", "begin", "nice"}

// hostile are what users do who want more than their share; vision's user, whose share the oracle checks, is above that.
var hostile = []string{"no requeue", "licence 0", "node", "hint"}

func (p *plan) deed() deed {
	d := deed{what: "submit", kind: p.users.IntN(len(manners)), user: p.users.IntN(1 << 16), back: p.users.IntN(10), wait: between(p.users, 500*time.Millisecond, 2500*time.Millisecond)}
	if p.users.IntN(5) < 2 {
		d.what = pick(p.users, slices.Concat(changes, hostile))
	}
	return d
}

// meddle is what a user does to a job at the moment at which it is granted its nodes.
type meddle struct {
	what   string // "" = nothing
	before bool   // the grant reaches Slurm
}

func (p *plan) meddle() meddle {
	m := meddle{before: p.grants.IntN(2) == 0}
	if what := pick(p.grants, slices.Concat(changes, hostile)); p.grants.IntN(6) == 0 {
		m.what = what
	}
	return m
}
