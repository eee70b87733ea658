// Package steady measures how fast the work of users goes whose jobs never end, under a scheduler: the
// experiments of Gandiva_fair (§5.4, §5.5) and of OEF (§6).
package steady

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// User is somebody with many jobs that are alike and never end.
type User struct {
	Name, Kind string
	Jobs       int
	GPUs       int          // of each job
	From       cluster.Span // when they all come
}

// Load makes a load of users.
func Load(name string, users []User) experiment.Load {
	users = slices.Clone(users)
	slices.SortStableFunc(users, func(a, b User) int { return cmp.Compare(a.From, b.From) })
	return experiment.Load{Name: name, Jobs: func(yield func(trace.Job) bool) {
		for _, u := range users {
			for n := range u.Jobs {
				j := trace.Job{ID: fmt.Sprintf("%s-%s-%d", u.Name, u.Kind, n+1), Tenant: u.Name, GPUs: u.GPUs, Kind: u.Kind, Submit: u.From, Runs: experiment.Forever}
				if !yield(j) {
					return
				}
			}
		}
	}}
}

// GandivaFleet is the heterogeneous cluster of Gandiva_fair §5.4, in servers of four GPUs.
const GandivaFleet = "3x4:v100+6x4:p100+16x4:k80"

// Gandiva gives the four users of §5.4, each of whom has 150 jobs, with the speeds of Table 1.
func Gandiva() ([]User, sim.Speeds) {
	of := func(p100, v100 float64) map[string]sim.Rate {
		at := func(x float64) sim.Rate { return sim.Rate{Speed: sim.Speed(x * float64(sim.Reference))} }
		return map[string]sim.Rate{"k80": at(1), "p100": at(p100), "v100": at(v100)}
	}
	return []User{
			{Name: "user1", Kind: "resnet50", Jobs: 150, GPUs: 1}, {Name: "user2", Kind: "resnet50", Jobs: 150, GPUs: 2},
			{Name: "user3", Kind: "resnet50", Jobs: 150, GPUs: 4}, {Name: "user4", Kind: "superresolution", Jobs: 150, GPUs: 1}},
		sim.Speeds{{Kind: "resnet50"}: of(3.34, 5.14), {Kind: "superresolution"}: of(1.73, 1.87)}
}

// Stretch is what happened from one moment to the next.
type Stretch struct {
	Until cluster.Span // since the start
	// Rates is the work done, by tenant and kind, in GPUs of the model on which the work is
	// slowest: 1 is one such GPU all the time.
	Rates map[Work]float64
	GPUs  map[string]map[string]float64 // held on average, by model and tenant
}

// Work is a tenant's jobs of one kind.
type Work struct{ Tenant, Kind string }

// Of gives the work of a tenant, of all kinds.
func (s *Stretch) Of(tenant string) float64 {
	sum := 0.0
	for w, rate := range s.Rates { // few, and mostly one
		if w.Tenant == tenant {
			sum += rate
		}
	}
	return sum
}

// job is a job that is there.
type job struct {
	work Work
	gpus int
	done cluster.Span // work, when it was looked at last
}

// Over runs a setup up to the last of the moments, which ascend, and gives the results before
// each of them. It ignores a job's progress in the interval in which it ends. A tenant in leaves
// goes, with all its jobs, at the first moment that is not before the given one.
func Over(ctx context.Context, s experiment.Setup, moments []cluster.Span, leaves map[string]cluster.Span) ([]Stretch, error) {
	jobs, since := map[cluster.JobID]*job{}, experiment.Start
	type on struct{ tenant, model string }
	held, had := map[on]int{}, map[on]float64{} // GPUs now, and GPUs × milliseconds
	pass := func(to cluster.Instant) {
		for k, n := range held {
			had[k] += float64(n) * float64(to.Sub(since))
		}
		since = to
	}
	run, err := experiment.Open(&s, func(e sim.Event) {
		pass(e.At)
		sign := -1
		switch e.What {
		case sim.Submitted:
			jobs[e.Job] = &job{work: Work{e.Work.Account, e.Work.Kind}, gpus: e.Work.Request.Size.Devices}
		case sim.Started:
			sign = 1
		case sim.Ended:
			delete(jobs, e.Job)
		}
		for _, h := range e.Holds {
			held[on{e.Work.Account, h.Model}] += sign * h.Size.Devices
		}
	})
	if err != nil {
		return nil, err
	}
	defer run.Close()
	var out []Stretch
	from := cluster.Span(0)
	for _, until := range moments {
		if err := run.To(ctx, until); err != nil {
			return nil, err
		}
		pass(experiment.Start.Add(until))
		span := float64(until - from)
		now := Stretch{Until: until, Rates: map[Work]float64{}, GPUs: map[string]map[string]float64{}}
		for _, id := range slices.SortedFunc(maps.Keys(jobs), cluster.JobID.Compare) {
			j := jobs[id]
			progress := run.World.Progress(id)
			now.Rates[j.work] += float64(progress-j.done) * float64(j.gpus) / slowest(&s, run.World, id) / span
			j.done = progress
			if at, ok := leaves[j.work.Tenant]; ok && until >= at {
				run.World.Cancel(id)
			}
		}
		for k, n := range had {
			if now.GPUs[k.model] == nil {
				now.GPUs[k.model] = map[string]float64{}
			}
			now.GPUs[k.model][k.tenant] = n / span
		}
		clear(had)
		out, from = append(out, now), until
	}
	return out, nil
}

// Rates runs a setup and gives the work that each tenant's jobs did between two moments, each in GPUs of the model on
// which its work is slowest: 1 is one such GPU all the time.
func Rates(ctx context.Context, s experiment.Setup, from, to cluster.Span) (map[string]float64, error) {
	over, err := Over(ctx, s, []cluster.Span{from, to}, nil)
	if err != nil {
		return nil, err
	}
	rates := map[string]float64{}
	for w := range over[1].Rates {
		rates[w.Tenant] = over[1].Of(w.Tenant)
	}
	return rates, nil
}

// slowest gives how fast a job is on the model on which it is slowest, of those that there are.
func slowest(s *experiment.Setup, v *sim.Virtual, id cluster.JobID) float64 {
	var speeds []sim.Speed
	for _, m := range s.Fleet.Models() {
		if speed := v.Speed(id, m.Model); speed > sim.Halt {
			speeds = append(speeds, speed)
		}
	}
	if len(speeds) == 0 {
		return 1
	}
	return float64(slices.Min(speeds)) / float64(sim.Reference)
}
