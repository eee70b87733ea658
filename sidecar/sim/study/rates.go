package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// User is somebody with many jobs that are alike and never end.
type User struct {
	Name, Kind string
	Jobs       int
	GPUs       int // of each job
}

// Users makes a load of users whose jobs are there from the start.
func Users(name string, users []User) Load {
	return Load{Name: name, Jobs: func(yield func(trace.Job) bool) {
		for _, u := range users {
			for n := range u.Jobs {
				j := trace.Job{ID: fmt.Sprintf("%s-%d", u.Name, n+1), Tenant: u.Name, GPUs: u.GPUs, Kind: u.Kind, Runs: forever}
				if !yield(j) {
					return
				}
			}
		}
	}}
}

// GandivaFleet is the heterogeneous cluster of Gandiva_fair §5.4, in servers of four GPUs.
const GandivaFleet = "3x4:v100+6x4:p100+16x4:k80"

// GandivaUsers gives the four users of §5.4, each of whom has 150 jobs, with the speeds of Table 1.
func GandivaUsers() ([]User, sim.Speeds) {
	of := func(p100, v100 float64) map[string]sim.Rate {
		at := func(x float64) sim.Rate { return sim.Rate{Speed: sim.Speed(x * float64(sim.Reference))} }
		return map[string]sim.Rate{"k80": at(1), "p100": at(p100), "v100": at(v100)}
	}
	return []User{
			{Name: "user1", Kind: "resnet50", Jobs: 150, GPUs: 1}, {Name: "user2", Kind: "resnet50", Jobs: 150, GPUs: 2},
			{Name: "user3", Kind: "resnet50", Jobs: 150, GPUs: 4}, {Name: "user4", Kind: "superresolution", Jobs: 150, GPUs: 1}},
		sim.Speeds{{Kind: "resnet50"}: of(3.34, 5.14), {Kind: "superresolution"}: of(1.73, 1.87)}
}

// Rates runs a setup and gives the work that each tenant's jobs did between two moments, each in GPUs of the model on
// which its work is slowest: 1 is one such GPU all the time.
func Rates(ctx context.Context, s Setup, from, to cluster.Span) (map[string]float64, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r, err := newRun(&s)
	if err != nil {
		return nil, err
	}
	defer r.world.Feed(s.arrivals(&r.result.Refused))()
	done := func(until cluster.Span) (map[string]float64, error) {
		if err := sim.Run(ctx, r.world.Virtual, r.loop, s.Settings.Interval, Start.Add(until), nil); err != nil {
			return nil, err
		}
		sum := map[string]float64{}
		for id, j := range r.witness.jobs {
			sum[j.Tenant] += float64(r.world.Progress(id)) * float64(j.GPUs) / s.slowest(r.world.Virtual, id)
		}
		return sum, nil
	}
	before, err := done(from)
	if err != nil {
		return nil, err
	}
	after, err := done(to)
	if err != nil {
		return nil, err
	}
	for tenant := range after {
		after[tenant] = (after[tenant] - before[tenant]) / float64(to-from)
	}
	return after, nil
}

// slowest gives how fast a job is on the model on which it is slowest, of those that there are.
func (s *Setup) slowest(v *sim.Virtual, id cluster.JobID) float64 {
	var speeds []sim.Speed
	for _, m := range s.Fleet.models() {
		if speed := v.Speed(id, m.Model); speed > sim.Halt {
			speeds = append(speeds, speed)
		}
	}
	if len(speeds) == 0 {
		return 1
	}
	return float64(slices.Min(speeds)) / float64(sim.Reference)
}
