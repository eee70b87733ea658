package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
)

// numbered is a cluster that tells which GPUs a job holds, as Slurm does: those of a node in the order of the jobs.
type numbered struct{ *live }

func (n numbered) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := n.live.Observe(ctx, since)
	next := map[string]int{}
	for i := range seen.Jobs {
		holds := append([]cluster.Holding(nil), seen.Jobs[i].Holds...)
		for k := range holds {
			for range holds[k].Size.Devices {
				holds[k].Index = append(holds[k].Index, next[holds[k].Node])
				next[holds[k].Node]++
			}
		}
		seen.Jobs[i].Holds = holds
	}
	return seen, err
}

// counters are GPUs that are busy, but for those of node v01. It hangs while stuck is set. GPU 3 of each node is throttled
// while throttled is set.
type counters struct {
	throttled bool
	mu        sync.Mutex
	looks     int
	stuck     chan struct{}
	fail      error
}

func (c *counters) Read(ctx context.Context, nodes []gpu.Node) ([]gpu.Reading, error) {
	c.mu.Lock()
	c.looks++
	looks, stuck, fail := c.looks, c.stuck, c.fail
	c.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
		}
	}
	out := make([]gpu.Reading, len(nodes))
	for i := range nodes {
		if out[i].Err = fail; fail != nil {
			continue
		}
		for k := range 4 {
			r := gpu.Row{Index: k, Model: "V100"}
			for m := range r.Values {
				r.Values[m] = math.NaN()
			}
			r.Values[gpu.Util], r.Values[gpu.Power], r.Values[gpu.Energy] = 0.9, 250, float64(looks)
			if r.Values[gpu.Clock] = 1.98e9; c.throttled && k == 3 {
				r.Values[gpu.Clock] = 1.1e9
			}
			if nodes[i].Name == "v01" {
				r.Values[gpu.Util], r.Values[gpu.Power] = 0, 40
			}
			out[i].Rows = append(out[i].Rows, r)
		}
	}
	return out, nil
}

// GPUs are looked at beside the rounds: idle ones are told of and written down, a source that hangs delays no round, and
// one that fails is logged once.
func TestGPUsAreLookedAtBesideRounds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, l, source := newShared(), newLive(), &counters{}
		l.submit("nlp", 2, 4)
		open := func(*config.GPUCounters) (gpu.Source, error) { return source, nil }
		r := startWith(t, on, numbered{l}, dir, short+"telemetry: {gpu: {exporters: 'http://{node}/', every: 10s, max_age: 1m}}\nidle: {tell_after: 2m}\n", open)
		pass(6 * time.Minute)
		told := r.log.with("has held 4 idle GPUs for 2 min")
		if len(told) != 1 || told[0]["event"] != gpu.HoldsIdle {
			t.Errorf("told %v", told)
		}
		on.mu.Lock()
		last := on.gauged[len(on.gauged)-1]
		written, remarks, idle, held := len(on.gauged), 0, cluster.GPUTime(0), cluster.GPUTime(0)
		for _, x := range on.gauged {
			remarks += len(x.Remarks)
			for _, h := range x.Hours {
				idle, held = idle+h.Idle, held+h.Held
			}
		}
		on.mu.Unlock()
		if written < 3 || written > 7 || remarks != 1 || len(last.Report.GPUs) != 8 || len(last.Report.Nodes) != 2 {
			t.Errorf("%d looks are written with %d remarks, the last with %d GPUs", written, remarks, len(last.Report.GPUs))
		}
		if part := float64(idle) / float64(held); part < 0.4 || part > 0.5 {
			t.Errorf("%.2f of the time is idle, want about a half", part)
		}
		if key, ok := last.Owners(&last.Report.GPUs[0]); !ok || key == 0 {
			t.Error("no job holds the first GPU")
		}
		r.service.gate.enter()
		uses := r.service.rounds.last.Uses
		r.service.gate.leave()
		if len(uses) != 2 || uses[0].Idle+uses[1].Idle != 4 {
			t.Errorf("a round has %+v", uses)
		}

		source.mu.Lock()
		source.stuck = make(chan struct{})
		source.mu.Unlock()
		before := l.rounds()
		pass(30 * time.Second)
		if n := l.rounds() - before; n < 25 {
			t.Errorf("%d rounds in 30 s beside a source that hangs", n)
		}
		pass(5*time.Minute + 10*time.Second)
		seen := cluster.Observation{Now: cluster.InstantOf(time.Now())}
		r.service.gate.enter()
		r.service.rounds.gauges.measure(&seen, r.inForce.Load().Idle.ReclaimAfter.Span())
		r.service.gate.leave()
		if seen.Uses != nil {
			t.Error("rounds get what was seen long ago")
		}
		source.mu.Lock()
		close(source.stuck)
		source.stuck, source.fail = nil, errors.New("connection refused")
		source.mu.Unlock()
		pass(2 * time.Minute)
		if told := r.log.with("telemetry"); len(told) != 1 {
			t.Errorf("a failing source is logged %d times: %v", len(told), told)
		}
		r.stop()
		<-r.ended
	})
}

// Remarks of the judge are written down while they stand, and are told once.
func TestRemarksAreWrittenDown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, l, source := newShared(), newLive(), &counters{throttled: true}
		l.submit("nlp", 2, 4)
		open := func(*config.GPUCounters) (gpu.Source, error) { return source, nil }
		r := startWith(t, on, numbered{l}, dir, short+"telemetry: {gpu: {exporters: 'http://{node}/'}}\nidle: {tell_after: 0s}\n", open)
		pass(40 * time.Minute)
		if told := r.log.with("GPU 3 of v02 is far from the job's other 3 GPUs"); len(told) != 1 || told[0]["event"] != remark.Straggler {
			t.Errorf("told %v", told)
		}
		on.mu.Lock()
		last, news := on.gauged[len(on.gauged)-1], 0
		for _, x := range on.gauged {
			news += len(x.Remarks)
		}
		on.mu.Unlock()
		if len(last.Stand) != 1 || last.Stand[0].Kind != remark.Straggler || last.Stand[0].Node != "v02" || last.Stand[0].GPU != 3 || news != 1 {
			t.Errorf("remarks are %+v, and %d were news", last.Stand, news)
		}
		r.stop()
		<-r.ended
	})
}

// A claim that the kind's counters contradict is told for the jobs of the kind.
func TestContradictedClaims(t *testing.T) {
	level := func(x float64) cluster.Level { return cluster.Level{Jobs: 4, Mean: math.Log(x)} }
	snap := &cluster.Snapshot{Settings: cluster.Settings{Divide: "gavel:las"}}
	rate := func(kind cluster.Kind, model string, rate float64) {
		snap.Profiles = append(snap.Profiles, cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Source: cluster.Observed, Samples: 9})
	}
	for i := range 6 {
		kind := cluster.KindOf(fmt.Sprintf("t%d", i), "k")
		rate(kind, "k80", 1)
		rate(kind, "v100", 3)
		snap.Usages = append(snap.Usages, cluster.Usage{Kind: kind, Model: "k80", Gang: 1, PCIeRX: level(1e7)}, cluster.Usage{Kind: kind, Model: "v100", Gang: 1, PCIeRX: level(3e7)})
	}
	snap.Declared = []cluster.Profile{{Kind: "x/ann.train-#", Model: "k80", Gang: 1, Rate: 1}, {Kind: "x/ann.train-#", Model: "v100", Gang: 1, Rate: 4}}
	snap.Usages = append(snap.Usages, cluster.Usage{Kind: "x/ann.train-#", Model: "k80", Gang: 1, PCIeRX: level(2e7)}, cluster.Usage{Kind: "x/ann.train-#", Model: "v100", Gang: 1, PCIeRX: level(1e7)})
	snap.Cases = []cluster.Case{{Record: cluster.Record{Key: 5, Tenant: "x"}, Job: cluster.Job{User: "ann", Name: "train-17", Holds: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(1)}}}}}
	c := claimsOf(snap)
	const want = "kind x/ann.train-# claims to run 4 times as fast on v100 as on k80 (gang of 1), but by the PCIe reads of its jobs it does 0.5 times as much work there (4 jobs)"
	if got := c.contradicted()[c.kinds[5]]; got != want {
		t.Errorf("got %q (kinds %v), want %q", got, c.kinds, want)
	}
	snap.Settings.Divide = ""
	if c := claimsOf(snap); len(c.kinds) > 0 || len(c.contradicted()) > 0 {
		t.Error("claims are looked at though no policy divides GPU models")
	}
}

// Without a source, nothing is looked at.
func TestNoGPUsWithoutASource(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, l, source := newShared(), newLive(), &counters{}
		r := startWith(t, on, numbered{l}, dir, short, func(*config.GPUCounters) (gpu.Source, error) { return source, nil })
		pass(2 * time.Minute)
		if source.looks > 0 || len(on.gauged) > 0 {
			t.Errorf("%d looks, %d written", source.looks, len(on.gauged))
		}
		r.stop()
		<-r.ended
	})
}
