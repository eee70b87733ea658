// Package speeds estimates how fast jobs run on GPU models. Its sources are declarations by the administrator
// and by jobs, and progress reports of jobs.
package speeds

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/evidence"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Speeds holds the known speeds of jobs. Without a policy for heterogeneous GPUs it learns nothing, and Book
// is nil.
type Speeds struct {
	Books *round.Books
	Book  *profile.Book
	Kinds []cluster.Kind // by case; "" = a job of no tenant
	types types
	shown evidence.Book
	Total []float64 // by case: the total steps that its job declares; 0 = not declared
}

// runs identifies the conditions of a speed.
type runs struct {
	kind cluster.Kind
	gang int
}

// Learn updates the speeds of job types: declarations by the administrator and by jobs, and reports since the
// last round.
func Learn(b *round.Books) *Speeds {
	x := &Speeds{Books: b}
	if x.Books.In.Settings.Divide == "" {
		x.read(x.Books.In.Snapshot.Cases)
		return x
	}
	set := profile.Default()
	set.Estimate, set.Reference = !x.Books.In.Settings.NoEstimates, x.Books.In.Settings.Reference
	n := len(x.Books.In.Snapshot.Cases)
	x.Book, x.Kinds, x.Total = profile.New(set, x.Books.In.Snapshot.Profiles, x.Books.In.Snapshot.Paces), make([]cluster.Kind, n), make([]float64, n)
	x.types = types{of: make([]int32, n), at: map[runs]int32{}}
	x.Book.Withdraw(profile.File)
	for _, p := range x.Books.In.Snapshot.Declared {
		p.Basis = profile.File
		if err := x.Book.Declare(p); err != nil {
			x.Books.Report(cluster.Event{Kind: cluster.EventProfile, Text: err.Error()})
		}
	}
	byID := map[cluster.JobID]int{}
	said := declared{users: map[voice]int{}, at: map[subject]int{}}
	for i := range x.Books.In.Snapshot.Cases {
		st, c := &x.Books.Jobs[i], &x.Books.In.Snapshot.Cases[i]
		if !st.Is.Live || st.Is.Tenant < 0 {
			continue
		}
		hints := hintsOf(&c.Job)
		tenant := x.Books.In.Tenants[st.Is.Tenant]
		x.Kinds[i] = x.kindOf(&c.Job, tenant)
		x.Total[i] = hints.Steps
		left := x.declare(i, hints.Rates, &said)
		if x.Books.Comes(i) {
			x.object(i, slices.Concat(hints.Wrong, x.why(left, c.Job.User)))
		}
		if len(x.Books.In.Snapshot.Progress) > 0 {
			byID[c.Job.ID] = i
		}
	}
	x.Book.Hear(said.rates)
	for _, r := range x.Books.In.Snapshot.Progress {
		if i, ok := byID[r.Job]; ok && x.Books.Jobs[i].Is.Runs {
			x.hear(i, r)
		}
	}
	x.Book.Forget(func(key cluster.JobKey) bool {
		i := x.Books.In.Find(key)
		return i < 0 || !x.Books.Jobs[i].Is.Live
	})
	shown := x.learnt()
	x.Book.Consider(shown.Completions, shown.Usages)
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
		if x.Books.Comes(i) && x.Books.Jobs[i].Is.Live {
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
	x.Books.Report(cluster.Event{Kind: cluster.EventProfile, Job: x.Books.In.Snapshot.Cases[i].Record.Key,
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
	c := &x.Books.In.Snapshot.Cases[i]
	by := voice{x.Books.In.Tenants[x.Books.Jobs[i].Is.Tenant], c.Job.User}
	for _, r := range rates {
		p := cluster.Profile{Kind: x.Kinds[i], Model: r.Model, Gang: x.Books.Jobs[i].Is.GPUs, Rate: r.Rate,
			At: c.Record.First, Basis: "job " + c.Job.ID.String()}
		of := subject{p.Kind, p.Model, p.Gang}
		at, known := said.at[of]
		switch {
		case known:
			said.rates[at] = p
		case x.Books.In.Pool(r.Model) < 0:
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
		wrong = append(wrong, fmt.Sprintf("%s: the cluster has no such GPUs; it has %s", few(left.lacking), strings.Join(x.Books.In.Pools, ", ")))
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
	c := &x.Books.In.Snapshot.Cases[i]
	holds := c.Job.Holds
	if c.Job.State == cluster.Suspended { // the report is older than the suspension, by an unknown time
		return
	}
	if len(holds) == 0 || slices.ContainsFunc(holds, func(o cluster.Holding) bool { return o.Model != holds[0].Model }) {
		return
	}
	change, err := x.Book.Report(profile.Run{Key: c.Record.Key, Kind: x.Kinds[i], Model: holds[0].Model,
		Gang: c.Job.GPUsHeld(), Since: c.Job.Start, Suspended: c.Job.Suspend}, r)
	switch {
	case err != nil:
		x.Books.Report(cluster.Event{Kind: cluster.EventProfile, Job: c.Record.Key, Text: err.Error()})
	case change != nil:
		x.Books.Report(cluster.Event{Kind: cluster.EventProfile, Job: c.Record.Key, Text: fmt.Sprintf(
			"%s runs otherwise than it did: %.4g steps a second on %s, no longer %.4g", change.Kind, change.After, change.Model, change.Before)})
	}
}

// Faster returns a function that gives, by pool, a job's speedup less 1, in millionths: -1_000_000 = its job cannot use
// the pool. It is nil if no policy divides GPU models.
func (x *Speeds) Faster() func(i int) []int64 {
	if x.Book == nil {
		return nil
	}
	out := make([]int64, len(x.Books.In.Pools))
	return func(i int) []int64 {
		known := x.Speedups(i)
		for p := range out {
			out[p] = -int64(cluster.WholeGPU)
			if slices.Contains(x.Books.Jobs[i].Can.May, p) || slices.Contains(x.Books.Jobs[i].Can.Pools, p) {
				out[p] += int64(math.Round(known[p].Value * float64(cluster.WholeGPU)))
			}
		}
		return out
	}
}

// Price sets the speedups at which the work of jobs with new leases counts in records: of the GPUs that they are granted.
func (x *Speeds) Price(records []cluster.Record) {
	faster := x.Faster()
	if faster == nil {
		return
	}
	for i, l := range x.Books.Leases {
		if l == nil || l.State != cluster.Granted {
			continue
		}
		if p := x.Books.In.Pool(l.Pool); p >= 0 {
			records[i].Extra.Faster = faster(i)[p]
		}
	}
}

// Profiles returns the profiles and paces to remember.
func (x *Speeds) Profiles() ([]cluster.Profile, []cluster.Pace) {
	if x.Book == nil {
		return x.Books.In.Snapshot.Profiles, x.Books.In.Snapshot.Paces
	}
	entries := slices.DeleteFunc(x.Book.Entries(), func(p cluster.Profile) bool { return p.Basis == profile.File })
	return entries, x.Book.Paces()
}
