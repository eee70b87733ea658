package actions

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Two jobs that take turns on a GPU can run at the same time instead, if together they do more (Gavel §3.1, space sharing). Whether they do, they
// show themselves. While they take turns, each reports its steps with the GPU to itself. Then both run for a while. They go on so if each does
// at least the part of its steps a second that it has in turns, half where these are equal: so nobody loses, and a job that reports wrong steps can only forgo what
// it could gain. Now and then they take turns again, since jobs change.
const (
	pairTrial = 4  // turns: rates are known by then, or the jobs do not report
	pairLasts = 30 // turns until they are compared again
)

// beside reports whether the jobs on a GPU run at the same time by what they have reported.
func (t *turns) beside(w *writer, on []int) bool {
	s := t.in.In.Settings.Slices
	if s == nil || !s.Pairs || len(on) != 2 || slices.ContainsFunc(on, func(i int) bool { return !t.takes(i) }) {
		for _, i := range on {
			t.keep(i, nil)
		}
		return false
	}
	var pair [2]cluster.Pair
	for k, i := range on {
		pair[k] = t.measured(i, on[1-k])
	}
	now := t.in.In.Now
	a, b := &pair[0], &pair[1]
	known, lasts := a.Both > 0 && b.Both > 0, now.Sub(a.Since)
	hurts := func(k int) bool {
		return pair[k].Both > 0 && pair[k].Both < pair[k].Alone*t.in.In.Records[on[k]].Slice.Turn.Time(2).Float()
	}
	switch {
	case !a.Beside && a.Alone > 0 && b.Alone > 0 && now >= a.Next:
		t.enter(&pair, true, 0)
	case !a.Beside:
	case hurts(0) || hurts(1):
		t.tell(w, on, &pair, -1)
		t.enter(&pair, false, pairLasts)
	case !known && lasts > pairTrial*s.Quantum:
		t.enter(&pair, false, pairLasts)
	case lasts > pairLasts*s.Quantum:
		t.enter(&pair, false, 0)
	case known:
		t.tell(w, on, &pair, 1)
	}
	for k, i := range on {
		if was := t.in.In.Records[i].Slice.Pair; was != nil && was.Beside && !a.Beside {
			t.turn(i, false)
		}
		t.keep(i, &pair[k])
	}
	return a.Beside
}

// enter begins a time in which both run, or take turns, for a number of turns at least.
func (t *turns) enter(pair *[2]cluster.Pair, beside bool, least int) {
	for k := range pair {
		p := &pair[k]
		p.Beside, p.Since, p.At, p.Both = beside, t.in.In.Now, 0, 0
		if !beside {
			p.Alone, p.Next = 0, t.in.In.Now.Add(cluster.Span(least)*t.in.In.Settings.Slices.Quantum)
		}
	}
}

// measured gives the rates of a job beside its partner, with its reports of this round.
func (t *turns) measured(i, partner int) cluster.Pair {
	now, quantum := t.in.In.Now, t.in.In.Settings.Slices.Quantum
	p := cluster.Pair{With: t.in.In.Records[partner].Key, Since: now}
	if was := t.in.In.Records[i].Slice.Pair; was != nil && was.With == p.With {
		p = *was
	}
	j, other := &t.in.In.Snapshot.Cases[i].Job, &t.in.In.Snapshot.Cases[partner].Job
	took := t.in.In.Records[partner].Slice.Took > 0 // its owner resumed it meanwhile
	if !p.Beside && (!j.Paused && !other.Paused || took) || p.Beside && other.Paused {
		p.At = 0 // it is neither alone nor together for sure
		return p
	}
	begin := max(p.Since, t.in.In.Records[i].Slice.At, t.in.In.Records[partner].Slice.At).Add(BetweenSwitches)
	reports := t.in.In.Snapshot.Progress
	k, _ := slices.BinarySearchFunc(reports, j.ID, func(r cluster.Progress, id cluster.JobID) int { return r.Job.Compare(id) })
	for ; k < len(reports) && reports[k].Job == j.ID && !j.Paused; k++ {
		if reports[k].At >= begin {
			p = reported(p, &reports[k], j.Suspend, quantum/2)
		}
	}
	return p
}

// reported adds a report to the rates of a job that was suspended for so long. Rates are over least at least.
func reported(p cluster.Pair, r *cluster.Progress, suspended, least cluster.Span) cluster.Pair {
	if span := r.At.Sub(p.At) - max(suspended-p.Suspended, 0); p.At > 0 && r.Steps >= p.Steps {
		if span < least {
			return p // the rest counts in the next rate
		}
		if rate := (r.Steps - p.Steps) / span.Duration().Seconds(); p.Beside {
			p.Both = rate
		} else {
			p.Alone = rate
		}
	}
	p.Steps, p.At, p.Suspended = r.Steps, r.At, suspended
	return p
}

// keep notes a job's pair, if it changed.
func (t *turns) keep(i int, p *cluster.Pair) {
	was := t.gate.of(i)
	if was.Slice.Pair == nil && p == nil || p != nil && was.Slice.Pair != nil && *p == *was.Slice.Pair {
		return
	}
	now := *was.Slice
	now.Pair, was.Slice = p, &now
	t.gate.set(was)
}

// tell reports that two jobs run at the same time from now on, or no longer, once.
func (t *turns) tell(w *writer, on []int, pair *[2]cluster.Pair, good int) {
	a, b := &pair[0], &pair[1]
	if a.Good == good {
		return
	}
	a.Good, b.Good = good, good
	text := "run at the same time on their GPU"
	if good < 0 {
		text = "take turns on their GPU"
	}
	r, o := &t.in.In.Records[on[0]], &t.in.In.Records[on[1]]
	w.report(cluster.Event{Kind: cluster.EventPair, Job: r.Key, Text: fmt.Sprintf("job %s of %s and job %s of %s %s: at the same time they do %s and %s of their steps a second",
		r.ID, r.Tenant, o.ID, o.Tenant, text, part(a), part(b))})
}

// part gives the part of its steps a second that a job does beside its partner, in words.
func part(p *cluster.Pair) string {
	if p.Both == 0 {
		return "an unknown part"
	}
	return fmt.Sprintf("%.0f %%", 100*p.Both/p.Alone)
}
