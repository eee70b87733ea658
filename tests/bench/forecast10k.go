package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// backlog is jobs of 20 tenants with 180 users. Most are small, and run for 40 minutes in the median; a few run for days.
type backlog struct{ rng *rand.Rand }

// next draws a job.
func (b *backlog) next() sim.Work {
	tenant := fmt.Sprintf("t%02d", min(b.rng.IntN(20), b.rng.IntN(20)))
	gpus := []int{1, 1, 1, 1, 2, 2, 4, 8, 8, 16}[b.rng.IntN(10)]
	nodes := (gpus + 7) / 8
	runs := cluster.Span(math.Exp(math.Log(40*60)+1.5*b.rng.NormFloat64())) * cluster.Second
	return sim.Work{Name: "train", User: fmt.Sprintf("%s_u%d", tenant, b.rng.IntN(9)), Account: tenant, Partition: "gpu",
		Request: cluster.Request{Size: cluster.Whole(gpus), Nodes: nodes, MaxNodes: nodes}, Runs: min(max(runs, cluster.Minute), 4*cluster.Day), Saves: sim.AtEnd}
}

// questionOf10k gives a question with 10,000 waiting jobs on 2,000 GPUs that are all in use, and a week with 3,000 jobs a day.
func questionOf10k(tb testing.TB) (*forecast.Question, int) {
	const waiting, aDay = 10_000, 3000
	var names []string
	for t := range 20 {
		names = append(names, fmt.Sprintf("t%02d", t))
	}
	set := simtest.Product()
	set.Interval = cluster.Minute
	world := simtest.New(tb, set, simtest.Nodes("n", "v100", 250, 8), names...)
	jobs := backlog{rand.New(rand.NewPCG(1, 2))}
	there := 0
	world.Watch = func(e sim.Event) {
		switch e.What {
		case sim.Submitted, sim.Requeued:
			there++
		case sim.Started:
			there--
		}
	}
	for there < waiting {
		for range waiting + waiting/10 - there { // more than those that start meanwhile
			world.Virtual.Submit(jobs.next())
		}
		world.Run(10 * cluster.Minute)
	}
	snap, plan, err := world.Loop.Preview(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	q := &forecast.Question{Snapshot: &snap, Plan: &plan, Seed: 1, Past: forecast.Past{From: snap.Now.Add(-7 * cluster.Day)}}
	for range 7 * aDay {
		w := jobs.next()
		q.Past.Jobs = append(q.Past.Jobs, forecast.PastJob{Tenant: w.Account, Ran: w.Runs, Ended: true,
			Job:    cluster.Job{User: w.User, Name: w.Name, Request: w.Request, Partitions: []string{"gpu"}},
			Submit: snap.Now.Add(-cluster.Span(jobs.rng.Float64() * 7 * float64(cluster.Day)))})
	}
	return q, there
}

// forecastOf10k measures a forecast of the default number of runs and horizon for 10,000 waiting jobs, on two cores.
func forecastOf10k() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var took timing
	testing.Benchmark(func(b *testing.B) {
		q, waiting := questionOf10k(b)
		for range b.N {
			begin := meter()
			f, err := forecast.Make(context.Background(), q)
			if err != nil {
				b.Fatal(err)
			}
			took = meter().over(begin, 1)
			fmt.Printf("%d jobs wait on 2,000 GPUs: a forecast of %d runs, %v ahead\n", waiting, f.Runs, f.Horizon)
		}
	})
	timed("forecast_10k_s", took)
}
