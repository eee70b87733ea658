package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// reporter is a cluster on which some jobs report a multiple of the steps that they do while another job runs on their GPU, and of those that they do alone.
type reporter struct {
	loop.Cluster
	jobs          []cluster.JobID
	beside, alone float64
	did, told     map[cluster.JobID]float64
}

func (o *reporter) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := o.Cluster.Observe(ctx, since)
	running, on := map[cluster.Device]int{}, map[cluster.JobID]cluster.Device{}
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		for k := range j.Holds {
			for d := range j.Holds[k].Devices() {
				if on[j.ID] = d; j.State == cluster.Running && !j.Paused {
					running[d]++
				}
			}
		}
	}
	for k := range seen.Progress {
		p := &seen.Progress[k]
		if !slices.Contains(o.jobs, p.Job) {
			continue
		}
		times := o.alone
		if running[on[p.Job]] > 1 {
			times = o.beside
		}
		o.told[p.Job] += times * (p.Steps - o.did[p.Job])
		o.did[p.Job], p.Steps = p.Steps, o.told[p.Job]
	}
	return seen, err
}

// On four GPUs, ten jobs of two tenants do 70 % of their steps beside any other one, and those of one tenant report otherwise. Where tenants queue, that
// gains nothing. A division between jobs gives more GPUs to jobs that report less beside others, as it does to jobs that report false speeds of GPU models:
// what they really do grows by 12 %, and the others do 13 % less. These still do more than without pairs, since no job is in a pair that does less for it.
// Other false reports, beside others or alone, gain nothing.
func TestGainByReportsOfPairs(t *testing.T) {
	seeds.Slow(t)
	const jobs, alone, long = 5, 4.0 / 10, 6 * cluster.Hour
	for _, c := range []struct {
		by   string
		most float64 // percent that reports of less beside others gain
	}{{"", 2}, {"gavel:las", 2}, {"gavel:las-jobs", 15}} {
		honest := 0.0
		for _, x := range []struct {
			name          string
			beside, alone float64
		}{{"honest", 1, 1}, {"a fifth less beside others", 0.8, 1}, {"a quarter less beside others", 0.75, 1}, {"half beside others", 0.5, 1}, {"three times as many beside others", 3, 1}, {"a third alone", 1, 1. / 3}, {"twice as many alone", 1, 2}} {
			w := sliced(t, 2)
			if c.by != "" {
				divides(w, c.by)
			}
			w.Settings.Slices.Pairs, w.Settings.Across, w.Reports, w.Beside = true, cluster.AnyUser, 10*cluster.Second, sim.Beside{}
			for _, a := range []string{"x", "y"} {
				w.Beside[sim.Task{Kind: a, GPUs: 1}] = sim.Speeds{}
				for _, b := range []string{"x", "y"} {
					w.Beside[sim.Task{Kind: a, GPUs: 1}][sim.Task{Kind: b, GPUs: 1}] = map[string]sim.Rate{"v100": {Speed: sim.Reference * 7 / 10}}
				}
			}
			ids := map[string][]cluster.JobID{}
			for range jobs {
				for _, tenant := range []string{"x", "y"} {
					ids[tenant] = append(ids[tenant], pairs(w, tenant))
				}
			}
			w.Loop.Cluster = &reporter{w.Virtual, ids["x"], x.beside, x.alone, map[cluster.JobID]float64{}, map[cluster.JobID]float64{}}
			w.Run(2 * cluster.Hour)
			before := did(w, ids)
			w.Run(long)
			after := did(w, ids)
			own, others := (after["x"]-before["x"])/float64(jobs*long), (after["y"]-before["y"])/float64(jobs*long)
			if x.name == "honest" {
				honest = own
			}
			gain := 100 * (own/honest - 1)
			t.Logf("%s, %s: the strategist's jobs do %.3f of their pace alone, %+.1f %%; the others' %.3f", c.by, x.name, own, gain, others)
			most := 2.0
			if x.beside < 1 {
				most = c.most
			}
			if gain > most || others < 0.97*alone {
				t.Errorf("%s, %s: the strategist's jobs do %.3f of their pace alone, %+.1f %%; the others' %.3f", c.by, x.name, own, gain, others)
			}
		}
	}
}

// did sums up what the jobs of each tenant have done.
func did(w *simtest.World, ids map[string][]cluster.JobID) map[string]float64 {
	out := map[string]float64{}
	for tenant, of := range ids {
		for _, id := range of {
			out[tenant] += float64(w.Progress(id))
		}
	}
	return out
}
