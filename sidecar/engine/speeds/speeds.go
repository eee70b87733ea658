// Package speeds estimates how fast jobs run on GPU models. Its sources are declarations by the administrator
// and by jobs, and progress reports of jobs.
package speeds

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/evidence"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Speeds holds the known speeds of jobs. Without a policy for heterogeneous GPUs it learns nothing, and Book
// is nil.
type Speeds struct {
	in     *round.Facts
	found  *eligible.Found
	Book   *profile.Book
	book   *profile.Book // Book, or that of gangs and jobs that share GPUs; nil = nothing is learnt
	Pairs  Pairs
	parts  profile.Scattering // nil = not asked yet
	Kinds  []cluster.Kind     // by case; "" = a job of no tenant
	Types  Types
	shown  evidence.Book
	Total  []float64 // by case: the total steps that its job declares; 0 = not declared
	news   News
	paces  []cluster.Pace
	paceAt []int32 // by case: its pace; -1 = none; nil = not asked yet
}

// News is what a round learns about speeds, besides profiles and evidence.
type News struct {
	Events   []cluster.Event
	RanOn    map[int][]cluster.ModelTime // by case: run times of ended attempts, where one has ended
	Measured map[int]cluster.Instant     // by case: the start of the attempt whose counters were taken
}

// runs identifies the conditions of a speed.
type runs struct {
	kind cluster.Kind
	gang int
}

// Learn updates the speeds of job types: declarations by the administrator and by jobs, and reports since the
// last round. memory is that of the last round.
func Learn(in *round.Facts, found *eligible.Found, memory *profile.Memory) *Speeds {
	x := &Speeds{in: in, found: found, shown: evidence.Book{Completions: in.Snapshot.Completions, Usages: in.Snapshot.Usages}}
	if !x.in.Settings.Divides() {
		x.read(x.in.Snapshot.Cases)
		x.Pairs.in = in
		if s := in.Snapshot; listens(&s.Settings) && len(s.Progress)+len(s.Profiles)+len(s.Paces) > 0 {
			x.book = listen(x)
		}
		if scatters(x) {
			watch(x)
		}
		return x
	}
	set := profile.Default()
	set.Estimate, set.Reference = !x.in.Settings.NoEstimates, x.in.Settings.Reference
	n := len(x.in.Snapshot.Cases)
	x.Book, x.Kinds, x.Total = profile.New(set, x.in.Snapshot.Profiles, x.in.Snapshot.Paces), make([]cluster.Kind, n), make([]float64, n)
	x.book, x.Pairs = x.Book, Pairs{in: x.in, book: x.Book, all: x.Kinds}
	x.Types = newTypes(x.Book, found, in.Pools, n)
	x.Book.Withdraw(profile.File)
	for _, p := range x.in.Snapshot.Declared {
		if p.Basis = profile.File; p.With.OfNodes() { // see Keeps
			continue
		}
		if err := x.Book.Declare(p); err != nil {
			x.report(cluster.Event{Kind: cluster.EventProfile, Text: err.Error()})
		}
	}
	byID := map[cluster.JobID]int{}
	said := declared{users: map[voice]int{}, at: map[subject]int{}}
	for i := range x.in.Snapshot.Cases {
		st, c := &x.in.Cases[i], &x.in.Snapshot.Cases[i]
		if !st.Live || st.Tenant < 0 {
			continue
		}
		hints := hintsOf(&c.Job)
		tenant := x.in.Tenants[st.Tenant]
		x.Kinds[i] = kindOf(x.in, &c.Job, tenant)
		x.Types.set(i, x.Kinds[i])
		x.Total[i] = hints.Steps
		left := x.declare(i, hints.Rates, &said)
		if x.in.Comes(i) {
			x.object(i, slices.Concat(hints.Wrong, x.why(left, c.Job.User)))
		}
		if st.Runs && len(x.in.Snapshot.Progress) > 0 {
			byID[c.Job.ID] = i
		}
	}
	x.Book.Hear(said.rates)
	for _, r := range x.in.Snapshot.Progress {
		if i, ok := byID[r.Job]; ok {
			x.hear(i, r)
		}
	}
	x.Book.Forget(func(key cluster.JobKey) bool {
		i := x.in.Find(key)
		return i < 0 || !x.in.Cases[i].Live
	})
	shown := x.learnt()
	x.Book.Consider(shown.Completions, shown.Usages)
	x.Book.Keep(memory, in.Pools)
	return x
}

// userRates is the maximum number of rates taken from a user's jobs, enough for 32 types on four models.
// Earlier jobs go first.
const userRates = 128

// declared holds the rates that jobs declare for their types.
type declared struct {
	rates []cluster.Profile
	users map[voice]int   // rates taken, by user
	at    map[subject]int // index into rates: a later rate of the same subject replaces it
}

// voice is a user in a tenant.
type voice struct{ tenant, user string }

// subject identifies a rate.
type subject struct {
	kind  cluster.Kind
	model string
	gang  int
}

// read reports mistakes in jobs' hints if the other hints are not used.
func (x *Speeds) read(cases []cluster.Case) {
	for i := range cases {
		if x.in.Comes(i) && x.in.Cases[i].Live {
			x.object(i, hintsOf(&cases[i].Job).Wrong)
		}
	}
}

// hintsOf returns the hints of a job, or empty hints.
func hintsOf(j *cluster.Job) *cluster.Hints {
	if j.Hints == nil {
		return &cluster.Hints{}
	}
	return j.Hints
}

// object reports ignored hints of a job as an event. A long list is cut.
func (x *Speeds) object(i int, wrong []string) {
	if len(wrong) == 0 {
		return
	}
	x.report(cluster.Event{Kind: cluster.EventProfile, Job: x.in.Snapshot.Cases[i].Record.Key,
		Text: "ignored hints: " + cluster.CutWrong(strings.Join(wrong, "; "))})
}

// untaken holds ignored declarations of a job: models that the cluster lacks, and the number of rates beyond
// the user's limit.
type untaken struct {
	lacking []string
	many    int
}

// declare takes a job's rates for its own type, if the cluster has the model and the user's limit allows it.
func (x *Speeds) declare(i int, rates []cluster.Rate, said *declared) (left untaken) {
	c := &x.in.Snapshot.Cases[i]
	by := voice{x.in.Tenants[x.in.Cases[i].Tenant], c.Job.User}
	for _, r := range rates {
		p := cluster.Profile{Kind: x.Kinds[i], Model: r.Model, Gang: x.in.Cases[i].Asks.Devices(), Rate: r.Rate,
			At: c.Record.First, Basis: "job " + c.Job.ID.String()}
		of := subject{p.Kind, p.Model, p.Gang}
		at, known := said.at[of]
		switch {
		case known:
			said.rates[at] = p
		case x.in.Pool(r.Model) < 0:
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

// why returns the reasons why rates were ignored; empty = none was.
func (x *Speeds) why(left untaken, user string) (wrong []string) {
	if len(left.lacking) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s: the cluster has no such GPUs; it has %s", few(left.lacking), strings.Join(x.in.Pools, ", ")))
	}
	if left.many > 0 {
		wrong = append(wrong, fmt.Sprintf("%d rates: those of %s's earlier jobs are %d, as many as a user's may be", left.many, user, userRates))
	}
	return wrong
}

// few names the first few of several names, and counts the rest.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// hear takes a progress report of a job.
func (x *Speeds) hear(i int, r cluster.Progress) {
	c := &x.in.Snapshot.Cases[i]
	holds := c.Job.Holds
	if c.Job.State == cluster.Suspended || c.Job.Paused { // the report is older than the suspension, by an unknown time
		return
	}
	if len(holds) == 0 || slices.ContainsFunc(holds, func(o cluster.Holding) bool { return o.Model != holds[0].Model }) {
		return
	}
	change, err := x.book.Report(profile.Run{Key: c.Record.Key, Kind: x.Pairs.kind(i), With: company(x, i), Model: holds[0].Model,
		Gang: c.Job.GPUsHeld(), Since: c.Job.Start, Suspended: c.Job.Suspend}, r)
	switch {
	case err != nil:
		x.report(cluster.Event{Kind: cluster.EventProfile, Job: c.Record.Key, Text: err.Error()})
	case change != nil && x.Book != nil:
		x.report(cluster.Event{Kind: cluster.EventProfile, Job: c.Record.Key, Text: fmt.Sprintf(
			"%s runs otherwise than it did: %.4g steps a second on %s, no longer %.4g", change.Kind, change.After, change.Model, change.Before)})
	}
}

// Faster returns a function that gives, by pool, a job's speedup less 1, in millionths: -1_000_000 = its job cannot use
// the pool. It is nil if no policy divides GPU models.
func (x *Speeds) Faster() func(i int) []int64 {
	if x.Book == nil {
		return nil
	}
	out := make([]int64, len(x.in.Pools))
	return func(i int) []int64 {
		known := x.Speedups(i)
		for p := range out {
			out[p] = -int64(cluster.WholeGPU)
			if slices.Contains(x.found.Can[i].May, p) || slices.Contains(x.found.Can[i].Pools, p) {
				out[p] += int64(math.Round(known[p].Value * float64(cluster.WholeGPU)))
			}
		}
		return out
	}
}

// Put writes what the round has learnt into records, by case: run times by model, whose counters were taken, how the nodes of running jobs are spread, and at what speedup
// the work of jobs with new leases counts, on the GPUs that they are granted. leases are those after the choice.
func (x *Speeds) Put(records []cluster.Record, leases []*cluster.Lease) {
	for i, ran := range x.news.RanOn {
		records[i].RanOn = ran
	}
	for i, at := range x.news.Measured {
		records[i].Measured = at
	}
	for i := range records {
		if !x.in.Cases[i].Runs || !scatters(x) {
			continue
		}
		if holds := x.in.Snapshot.Cases[i].Job.Holds; len(holds) > 1 || records[i].Scattered || records[i].Across {
			c, r := &x.in.Snapshot.Cases[i], &records[i]
			r.Scattered = scattered(x, holds)
			if c.Record.HeldSince != c.Job.Start || !slices.Equal(c.Record.Held, r.Held) { // else it is on the nodes that were seen
				r.Across = Spread(x, holds) == cluster.AcrossSwitches
			}
		}
	}
	faster := x.Faster()
	if faster == nil {
		return
	}
	for i, l := range leases {
		if l == nil || l.State != cluster.Granted {
			continue
		}
		if p := x.in.Pool(l.Pool); p >= 0 {
			records[i].Extra.Faster = faster(i)[p]
		}
	}
}

// News returns what the round has learnt, besides profiles and evidence.
func (x *Speeds) News() News { return x.news }

// report adds an event.
func (x *Speeds) report(e cluster.Event) { x.news.Events = append(x.news.Events, e) }

// ranOn returns the run times of a case's ended attempts, by model.
func ranOn(x *Speeds, i int) []cluster.ModelTime {
	if ran, ok := x.news.RanOn[i]; ok {
		return ran
	}
	return x.in.Records[i].RanOn
}

// Profiles returns the profiles and paces to remember.
func (x *Speeds) Profiles() ([]cluster.Profile, []cluster.Pace) {
	if x.book == nil {
		return x.in.Snapshot.Profiles, x.in.Snapshot.Paces
	}
	entries := slices.DeleteFunc(x.book.Entries(), func(p cluster.Profile) bool { return p.Basis == profile.File })
	return entries, x.book.Paces()
}
