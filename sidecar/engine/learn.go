package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	if h.Settings.Divide == "" {
		h.read()
		return
	}
	set := profile.Default()
	set.Estimate = !h.Settings.NoEstimates
	n := len(h.Snapshot.Cases)
	l := &learned{book: profile.New(set, h.Snapshot.Profiles, h.Snapshot.Paces), kinds: make([]cluster.Kind, n),
		speeds: map[runs][]profile.Speedup{}, total: make([]float64, n)}
	h.learned = l
	l.book.Withdraw(profile.File)
	for _, p := range h.Snapshot.Declared {
		p.Basis = profile.File
		if err := l.book.Declare(p); err != nil {
			h.Events = append(h.Events, cluster.Event{Kind: "profile", Text: err.Error()})
		}
	}
	byID := map[cluster.JobID]int{}
	said := declared{users: map[voice]int{}, at: map[subject]int{}}
	for i := range h.Snapshot.Cases {
		st, c := &h.Jobs[i], &h.Snapshot.Cases[i]
		if !st.Live || st.Tenant < 0 {
			continue
		}
		words, wrong := profile.ParseComment(c.Job.Comment)
		tenant := h.Tenants[st.Tenant]
		l.kinds[i] = profile.KindOf(h.Settings.Kinds, tenant, c.Job.User, c.Job.Name, words.Kind)
		l.total[i] = words.Steps
		left := h.declare(i, words.Rates, &said)
		if h.comes(i) {
			h.object(i, errors.Join(wrong, unread(&c.Job), h.why(left, c.Job.User)))
		}
		if len(h.Snapshot.Progress) > 0 {
			byID[c.Job.ID] = i
		}
	}
	l.book.Hear(said.rates)
	for _, r := range h.Snapshot.Progress {
		if i, ok := byID[r.Job]; ok && h.Jobs[i].Runs {
			h.hear(i, r)
		}
	}
	l.book.Forget(func(key cluster.JobKey) bool {
		i := h.Find(key)
		return i < 0 || !h.Jobs[i].Live
	})
}

// userRates is how many rates of a user's jobs are taken: as many as thirty kinds have on four models. Those of the
// jobs that came first are.
const userRates = 128

// declared is what jobs declare of their kinds.
type declared struct {
	rates []cluster.Profile
	users map[voice]int   // how many are whose
	at    map[subject]int // in rates: a later word on the same counts
}

// voice is a user in a tenant.
type voice struct{ tenant, user string }

// subject is what a rate is of.
type subject struct {
	kind  cluster.Kind
	model string
	gang  int
}

// comes tells whether a job has not been in a round before: what is to be said of it once is said now.
func (h *hall) comes(i int) bool { return h.Snapshot.Cases[i].Record.ChargedTo == 0 }

// read tells what is wrong in jobs' words where nothing is learned from the rest.
func (h *hall) read() {
	for i := range h.Snapshot.Cases {
		if h.comes(i) && h.Jobs[i].Live {
			j := &h.Snapshot.Cases[i].Job
			_, wrong := profile.ParseComment(j.Comment)
			h.object(i, errors.Join(wrong, unread(j)))
		}
	}
}

// unread tells of a job's words that were not read.
func unread(j *cluster.Job) error {
	if j.Unread == 0 {
		return nil
	}
	return fmt.Errorf("%d words that stand beyond the first %d bytes", j.Unread, cluster.MostComment)
}

// object tells what is not heard of a job's words; of much that is wrong the first.
func (h *hall) object(i int, wrong error) {
	const most = 400
	if wrong == nil {
		return
	}
	text := strings.ReplaceAll(wrong.Error(), "\n", "; ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "… and more"
	}
	h.Events = append(h.Events, cluster.Event{Kind: "profile", Job: h.Snapshot.Cases[i].Record.Key, Text: "of its --comment this is not heard: " + text})
}

// untaken is what a job declares in vain: models that the cluster lacks, and how many rates for which its user has no room.
type untaken struct {
	lacking []string
	many    int
}

// declare takes a job's word on its own kind, as far as it speaks of GPUs that there are and its user has room.
func (h *hall) declare(i int, rates []profile.Declare, said *declared) (left untaken) {
	c := &h.Snapshot.Cases[i]
	by := voice{h.Tenants[h.Jobs[i].Tenant], c.Job.User}
	for _, r := range rates {
		p := cluster.Profile{Kind: h.learned.kinds[i], Model: r.Model, Gang: h.Jobs[i].GPUs, Rate: r.Rate,
			At: c.Record.First, Basis: "job " + c.Job.ID.String()}
		of := subject{p.Kind, p.Model, p.Gang}
		at, known := said.at[of]
		switch {
		case known:
			said.rates[at] = p
		case h.Pool(r.Model) < 0:
			left.lacking = append(left.lacking, "steps/s."+r.Model)
		case profile.Check(p) != nil: // it asks for no GPUs
		case said.users[by] == userRates:
			left.many++
		default:
			said.users[by]++
			said.at[of], said.rates = len(said.rates), append(said.rates, p)
		}
	}
	return left
}

// why tells a user why rates are not taken.
func (h *hall) why(left untaken, user string) error {
	var wrong []error
	if len(left.lacking) > 0 {
		wrong = append(wrong, fmt.Errorf("%s: the cluster has no such GPUs; it has %s", few(left.lacking), strings.Join(h.Pools, ", ")))
	}
	if left.many > 0 {
		wrong = append(wrong, fmt.Errorf("%d rates: those of %s's earlier jobs are %d, as many as a user's may be", left.many, user, userRates))
	}
	return errors.Join(wrong...)
}

// few names the first of several, and tells how many more there are.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// hear takes a job's report.
func (h *hall) hear(i int, r cluster.Progress) {
	c := &h.Snapshot.Cases[i]
	holds := c.Job.Holds
	if c.Job.State == cluster.Suspended { // it said that before: how much of its suspension was over by then is not known
		return
	}
	if len(holds) == 0 || slices.ContainsFunc(holds, func(o cluster.Holding) bool { return o.Model != holds[0].Model }) {
		return
	}
	change, err := h.learned.book.Report(profile.Run{Key: c.Record.Key, Kind: h.learned.kinds[i], Model: holds[0].Model,
		Gang: c.Job.GPUsHeld(), Since: c.Job.Start, Suspended: c.Job.Suspend}, r)
	switch {
	case err != nil:
		h.Events = append(h.Events, cluster.Event{Kind: "profile", Job: c.Record.Key, Text: err.Error()})
	case change != nil:
		h.Events = append(h.Events, cluster.Event{Kind: "profile", Job: c.Record.Key, Text: fmt.Sprintf(
			"%s runs otherwise than it did: %.4g steps a second on %s, no longer %.4g", change.Kind, change.After, change.Model, change.Before)})
	}
}

// speedups gives, by pool, how much faster a job runs than on the slowest; 1 where nothing is known.
func (h *hall) speedups(i int) []profile.Speedup {
	of := runs{h.learned.kinds[i], h.Jobs[i].GPUs}
	known, ok := h.learned.speeds[of]
	if !ok {
		known = h.learned.book.Speedups(of.kind, max(of.gang, 1), h.Pools)
		h.learned.speeds[of] = known
	}
	return known
}

// profiles gives what is to be remembered of it.
func (h *hall) profiles() ([]cluster.Profile, []cluster.Pace) {
	if h.learned == nil {
		return h.Snapshot.Profiles, h.Snapshot.Paces
	}
	entries := slices.DeleteFunc(h.learned.book.Entries(), func(p cluster.Profile) bool { return p.Basis == profile.File })
	return entries, h.learned.book.Paces()
}
