package simtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Bursts is a history: four tenants with equal shares of 16 GPUs, which want GPUs in bursts. In every other history some jobs cannot be stopped. Jobs
// that are not over some hours after they could have been are withdrawn, so that what a tenant does not get in time is lost to it.
type Bursts struct{ wishes [4][]wish }

// wish is a job that a tenant really wants from a moment on.
type wish struct {
	at    cluster.Instant
	gpus  int
	runs  cluster.Span
	bound bool // it cannot be stopped
}

const (
	burstsLast = 2 * cluster.Day
	burstsStep = 5 * cluster.Minute // between two moves of a tenant
	withdrawn  = 6 * cluster.Hour   // jobs, after they could have been over
	burstShare = 4                  // GPUs of a tenant
)

// BurstsBound tells whether some jobs of a history cannot be stopped.
func BurstsBound(seed uint64) bool { return seed%2 == 1 }

// DrawBursts draws a history. Tenants want 0.6 to 1.6 of their shares on average, and nothing half of the time.
func DrawBursts(seed uint64) *Bursts {
	rng := rand.New(rand.NewPCG(seed, 23))
	b := &Bursts{}
	exp := func(mean cluster.Span) cluster.Span { return cluster.Span(rng.ExpFloat64() * float64(mean)) }
	for t := range b.wishes {
		load := 0.6 + rng.Float64()
		busy := rng.IntN(2) == 0
		for at := cluster.Span(0); at < burstsLast; busy = !busy {
			until := at + 30*cluster.Minute + exp(6*cluster.Hour)
			for busy && at < until {
				x := wish{at: Start.Add(at), gpus: []int{1, 1, 1, 2, 2, 4}[rng.IntN(6)], runs: 10*cluster.Minute + exp(90*cluster.Minute), bound: BurstsBound(seed) && rng.IntN(5) < 2}
				b.wishes[t] = append(b.wishes[t], x)
				at += exp(cluster.Span(float64(x.runs) * float64(x.gpus) / (2 * load * burstShare)))
			}
			at = until
		}
		b.wishes[t] = slices.DeleteFunc(b.wishes[t], func(x wish) bool { return x.at >= Start.Add(burstsLast) })
	}
	return b
}

// Ask is how the first tenant asks for GPUs, without knowing the future: honestly, or for GPUs that it does not need, or later than it could. Its
// useless jobs run until they are cancelled.
type Ask struct {
	Useless int  // GPUs of useless jobs that it keeps asking for
	Gang    int  // GPUs of each
	Yield   bool // cancels useless jobs as soon as a wanted job waits, and asks for none meanwhile
	Refuse  bool // cancels useless jobs once they run, and asks anew
	Fill    bool // runs wanted jobs inside useless jobs of one GPU that run, where enough of these are empty
	// Later is by how much it submits jobs too late, and Behind how far behind it waits to be, as a time at its share; each where not 0.
	Later, Behind cluster.Span
}

// String names the strategy.
func (a Ask) String() string {
	s := "honest"
	if a.Useless > 0 {
		s = fmt.Sprintf("%d useless GPUs in gangs of %d", a.Useless, a.Gang)
		if a.Yield {
			s += " while no wanted job waits"
		}
		if a.Refuse {
			s += ", cancelled when they run"
		}
		if a.Fill {
			s += ", in which wanted jobs run"
		}
	}
	if a.Later > 0 {
		s += fmt.Sprintf(", %s late", a.Later)
	}
	if a.Behind > 0 {
		s += fmt.Sprintf(", once %s behind", a.Behind)
	}
	return s
}

// Asks are the strategies: useless jobs, jobs held back, and both.
func Asks() []Ask {
	const half = cluster.Hour / 2
	return []Ask{
		{Later: half}, {Later: 4 * half}, {Behind: half},
		{Useless: 1, Gang: 1}, {Useless: 4, Gang: 1}, {Useless: 8, Gang: 8},
		{Useless: 1, Gang: 1, Yield: true}, {Useless: 4, Gang: 1, Yield: true}, {Useless: 16, Gang: 1, Yield: true}, {Useless: 8, Gang: 8, Yield: true},
		{Useless: 4, Gang: 1, Refuse: true}, {Useless: 16, Gang: 1, Yield: true, Refuse: true}, {Useless: 8, Gang: 8, Yield: true, Refuse: true},
		{Useless: 1, Gang: 1, Fill: true}, {Useless: 4, Gang: 1, Fill: true}, {Useless: 16, Gang: 1, Fill: true}, {Useless: 4, Gang: 1, Fill: true, Later: half},
		{Useless: 1, Gang: 1, Yield: true, Later: half}, {Useless: 8, Gang: 8, Yield: true, Behind: half},
	}
}

// Useful gives the GPU time that the first tenant's wanted jobs have had by the end of the history, without what was lost by stops; decide is the
// scheduler's.
func (b *Bursts) Useful(a Ask, decide func(cluster.Snapshot) cluster.Plan) (cluster.GPUTime, error) {
	set := Product()
	set.Interval = cluster.Minute
	names := []string{"a", "b", "c", "d"}
	w := New(nil, set, Nodes("n", "v100", 2, 8), names...)
	w.Loop.Decide = decide
	w.Costs, w.Gate, w.License = sim.DefaultCosts(), set.GateTTL, 1_000_000
	p := &asker{w: w, ask: a, wishes: b.wishes[0], got: map[cluster.JobID]int{}}
	next := [4]int{}
	for end := Start.Add(burstsLast); w.Now() < end; {
		for t := 1; t < len(names); t++ {
			for ; next[t] < len(b.wishes[t]) && b.wishes[t][next[t]].at <= w.Now(); next[t]++ {
				submit(w, names[t], &b.wishes[t][next[t]])
			}
		}
		p.move()
		if err := sim.Run(context.Background(), w.Virtual, w.Loop, set.Interval, w.Now().Add(burstsStep), func(r loop.Report) { w.Last = r.Plan }); err != nil {
			return 0, err
		}
	}
	p.fill()
	for id, gpus := range p.got {
		p.inside += cluster.Times(gpus, w.Progress(id))
	}
	return p.inside, nil
}

// submit queues a wanted job.
func submit(w *World, tenant string, x *wish) cluster.JobID {
	return w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: Gang(x.gpus), Runs: x.runs,
		Cancel: max(x.at.Add(x.runs+withdrawn), w.Now()+1), Saves: sim.AtEnd, Limit: 2 * x.runs, NoRequeue: x.bound})
}

// asker plays the first tenant.
type asker struct {
	w       *World
	ask     Ask
	wishes  []wish // not submitted yet
	got     map[cluster.JobID]int
	useless []filled
	inside  cluster.GPUTime // work of wanted jobs inside useless ones
}

// filled is a useless job, and what a wanted one inside it has left.
type filled struct {
	id         cluster.JobID
	seen, left cluster.Span
	until      cluster.Instant // then the wanted job is withdrawn
}

// move submits and cancels jobs.
func (p *asker) move() {
	p.fill()
	for len(p.wishes) > 0 && p.due(&p.wishes[0]) {
		if x := &p.wishes[0]; !p.fits(x) {
			p.got[submit(p.w, "a", x)] = x.gpus
		}
		p.wishes = p.wishes[1:]
	}
	yields := p.ask.Yield && p.waits()
	p.useless = slices.DeleteFunc(p.useless, func(f filled) bool {
		state := p.w.Job(f.id).State
		if state != cluster.Done && (yields || p.ask.Refuse && state == cluster.Running) {
			p.w.Cancel(f.id)
			return true
		}
		return state == cluster.Done
	})
	for !yields && len(p.useless)*p.ask.Gang < p.ask.Useless {
		p.useless = append(p.useless, filled{id: submit(p.w, "a", &wish{at: p.w.Now(), gpus: p.ask.Gang, runs: burstsLast})})
	}
}

// fill counts what useless jobs have done for wanted ones since the last move.
func (p *asker) fill() {
	for i := range p.useless {
		f := &p.useless[i]
		done := p.w.Progress(f.id)
		worked := min(done-f.seen, f.left)
		p.inside += cluster.Times(p.ask.Gang, worked)
		f.seen, f.left = done, f.left-worked
		if p.w.Now() >= f.until {
			f.left = 0
		}
	}
}

// fits runs a wanted job inside useless ones, if enough that run are empty. Its parts need not run at the same time.
func (p *asker) fits(x *wish) bool {
	var empty []*filled
	for i := range p.useless {
		if f := &p.useless[i]; p.ask.Fill && f.left == 0 && p.w.Job(f.id).State == cluster.Running {
			empty = append(empty, f)
		}
	}
	if len(empty)*p.ask.Gang < x.gpus {
		return false
	}
	for _, f := range empty[:x.gpus/p.ask.Gang] {
		f.left, f.until = x.runs, x.at.Add(x.runs+withdrawn)
	}
	return true
}

// due tells whether a job that is wanted is submitted now.
func (p *asker) due(x *wish) bool {
	now := p.w.Now()
	if x.at.Add(p.ask.Later) > now {
		return false
	}
	if p.ask.Behind == 0 || now >= x.at.Add(withdrawn) {
		return true
	}
	for i := range p.w.Last.State.Ledger.Tenants {
		if t := &p.w.Last.State.Ledger.Tenants[i]; t.Tenant == "a" {
			return t.Deficit >= cluster.Times(burstShare, p.ask.Behind)
		}
	}
	return true
}

// waits tells whether a wanted job waits.
func (p *asker) waits() bool {
	for id := range p.got {
		if p.w.Job(id).State == cluster.Waiting {
			return true
		}
	}
	return false
}

// MeanGain gives the mean of paired gains in percent, and its standard error.
func MeanGain(honest, other []cluster.GPUTime) (mean, sem float64) {
	n := float64(len(honest))
	var sum, squares float64
	for i := range honest {
		gain := 100 * (float64(other[i])/float64(honest[i]) - 1)
		sum, squares = sum+gain, squares+gain*gain
	}
	mean = sum / n
	return mean, math.Sqrt(max(squares/n-mean*mean, 0) / (n - 1))
}
