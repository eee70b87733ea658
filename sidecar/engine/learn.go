package engine

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// learned is what is known of how fast jobs run.
type learned struct {
	book   *profile.Book
	kinds  []cluster.Kind // by case; "" = a job of no tenant
	speeds map[runs][]profile.Speedup
	total  []float64 // by case: the steps that its job says it is to do; 0 = it does not say
}

// runs is what a speed depends on.
type runs struct {
	kind cluster.Kind
	gang int
}

// learn brings what is known of kinds of jobs up to now: what the administrator and what jobs
// declare, and what jobs have reported since the last round.
func (h *hall) learn() {
	if h.set.Divide == "" {
		return
	}
	set := profile.Default()
	set.Estimate = !h.set.NoEstimates
	n := len(h.s.Cases)
	l := &learned{book: profile.New(set, h.s.Profiles, h.s.Paces), kinds: make([]cluster.Kind, n),
		speeds: map[runs][]profile.Speedup{}, total: make([]float64, n)}
	h.learned = l
	l.book.Withdraw(profile.File)
	for _, p := range h.s.Declared {
		p.Basis = profile.File
		if err := l.book.Declare(p); err != nil {
			h.events = append(h.events, cluster.Event{Kind: "profile", Text: err.Error()})
		}
	}
	byID := map[cluster.JobID]int{}
	for i := range h.s.Cases {
		st, c := &h.standing[i], &h.s.Cases[i]
		if !st.there || st.tenant < 0 {
			continue
		}
		words, _ := profile.ParseComment(c.Job.Comment) // what is wrong in it is told by the plugin's check
		tenant := h.tenants[st.tenant]
		l.kinds[i] = profile.KindOf(h.set.Kinds, tenant, c.Job.User, c.Job.Name, words.Kind)
		l.total[i] = words.Steps
		for _, r := range words.Rates {
			h.declare(i, r)
		}
		if len(h.s.Progress) > 0 {
			byID[c.Job.ID] = i
		}
	}
	for _, r := range h.s.Progress {
		if i, ok := byID[r.Job]; ok && h.standing[i].runs {
			h.hear(i, r)
		}
	}
	l.book.Forget(func(key cluster.JobKey) bool {
		i := h.find(key)
		return i < 0 || !h.standing[i].there
	})
}

// declare takes a job's word on its own kind.
func (h *hall) declare(i int, r profile.Declare) {
	c := &h.s.Cases[i]
	err := h.learned.book.Declare(cluster.Profile{Kind: h.learned.kinds[i], Model: r.Model, Gang: h.standing[i].gpus, Rate: r.Rate,
		At: c.Record.First, Basis: "job " + c.Job.ID.String()})
	if err != nil && c.Record.First == 0 { // said once, when it came
		h.events = append(h.events, cluster.Event{Kind: "profile", Job: c.Record.Key, Text: err.Error()})
	}
}

// hear takes a job's report.
func (h *hall) hear(i int, r cluster.Progress) {
	c := &h.s.Cases[i]
	holds := c.Job.Holds
	if len(holds) == 0 || slices.ContainsFunc(holds, func(o cluster.Holding) bool { return o.Model != holds[0].Model }) {
		return
	}
	change, err := h.learned.book.Report(profile.Run{Key: c.Record.Key, Kind: h.learned.kinds[i], Model: holds[0].Model,
		Gang: c.Job.GPUsHeld(), Since: c.Job.Start}, r)
	switch {
	case err != nil:
		h.events = append(h.events, cluster.Event{Kind: "profile", Job: c.Record.Key, Text: err.Error()})
	case change != nil:
		h.events = append(h.events, cluster.Event{Kind: "profile", Job: c.Record.Key, Text: fmt.Sprintf(
			"%s runs otherwise than it did: %.4g steps a second on %s, no longer %.4g", change.Kind, change.After, change.Model, change.Before)})
	}
}

// speedups gives, by pool, how much faster a job runs than on the slowest; 1 where nothing is known.
func (h *hall) speedups(i int) []profile.Speedup {
	of := runs{h.learned.kinds[i], h.standing[i].gpus}
	known, ok := h.learned.speeds[of]
	if !ok {
		known = h.learned.book.Speedups(of.kind, max(of.gang, 1), h.pools)
		h.learned.speeds[of] = known
	}
	return known
}

// profiles gives what is to be remembered of it.
func (h *hall) profiles() ([]cluster.Profile, []cluster.Pace) {
	if h.learned == nil {
		return h.s.Profiles, h.s.Paces
	}
	entries := slices.DeleteFunc(h.learned.book.Entries(), func(p cluster.Profile) bool { return p.Basis == profile.File })
	return entries, h.learned.book.Paces()
}
