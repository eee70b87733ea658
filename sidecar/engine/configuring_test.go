package engine_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// booting is a virtual cluster on which the nodes of each job boot for so long after each of its starts, as Slurm shows it.
type booting struct {
	*sim.Virtual
	span cluster.Span
}

func (b *booting) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	s, err := b.Virtual.Observe(ctx, since)
	boot(&s, b.span)
	return s, err
}

func boot(s *cluster.Observation, span cluster.Span) {
	s.Unchanged = false
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.State == cluster.Running && s.Now < j.Start.Add(span) {
			j.State, j.End = cluster.Configuring, 0
		}
	}
}

// TestPropertiesWhileNodesBoot: the invariants hold, the books balance, and no job is stopped before it has begun.
func TestPropertiesWhileNodesBoot(t *testing.T) {
	for _, cells := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			c := newChaos(rt, t)
			span := cluster.Span(rapid.SampledFrom([]int{5, 60, 1500}).Draw(rt, "boot")) * cluster.Second
			c.world.Loop.Cluster = &booting{c.world.Virtual, span}
			if cells {
				c.assign(c.drawCells())
			} else {
				c.share()
			}
			c.submit()
			c.world.Check = func(r loop.Report) {
				c.safe(&r.Plan)
				for _, a := range r.Plan.Actions {
					if j := c.world.Job(a.ID); a.Verb == cluster.Notify && j.State == cluster.Running && r.Plan.At < j.Start.Add(span) {
						rt.Fatalf("job %s, whose nodes boot, got a notice", a.ID)
					}
				}
			}
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				c.stir()
				c.world.Run(cluster.Span(rapid.IntRange(1, 900).Draw(rt, "seconds")) * cluster.Second)
				for _, p := range c.world.Last.State.Ledger.Pools {
					if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity || p.Idle < 0 || p.Bad < 0 || p.Overhead < 0 || p.Tenants < 0 {
						rt.Fatalf("%d of %d GPU-ms are on the books: %+v", sum, p.Capacity, p)
					}
				}
			}
		})
	}
}

// TestATermBeginsWhenTheNodesAreReady: a job that is CONFIGURING for longer than a term and than lease.grant_timeout keeps its grant, gets no notice, and
// has its first term, to the next boundary that is far enough, when it has begun. Its tenant is not ahead for that time, nor behind.
func TestATermBeginsWhenTheNodesAreReady(t *testing.T) {
	for _, span := range []cluster.Span{0, 30 * cluster.Second, 20 * minute, 47 * minute} {
		set := simtest.Product()
		set.RecallFirst = false
		w := newWorld(t, set, []int{2}, "a", "b")
		w.alter = func(s *cluster.Observation) { boot(s, span) }
		a := w.submit("a", 2, forever, func(j *sim.Work) { j.Saves, j.Command = sim.AtNotice, "/home/a/train.sh" })
		w.Run(minute)
		w.submit("b", 2, forever, func(j *sim.Work) { j.Saves, j.Command = sim.AtNotice, "/home/b/train.sh" })
		start := w.Job(a).Start
		w.Run(max(span-2*minute, 0))
		if span > 2*minute {
			r := w.Reason(a)
			if r.Code != cluster.ReasonStarting || r.Until != 0 || w.Record(a).Alloc != 0 || w.Record(a).Configured == 0 || w.Last.Next != w.Last.At+1 {
				t.Errorf("boot of %s: %+v, the record %+v", span, r, w.Record(a))
			}
			if s := w.Standing("a", "v100"); s.Holds == 0 || w.Used("a") != 0 {
				t.Errorf("boot of %s: its tenant holds %s GPUs and received %d GPU-ms", span, s.Holds, w.Used("a"))
			}
		}
		w.Run(2 * term)
		end := lease.From(start.Add(span+set.MinLease), term)
		for _, d := range w.done(cluster.Notify, a) {
			if d.at < end.Add(-set.Notice) {
				t.Errorf("boot of %s: notice %s after its start", span, d.at.Sub(start))
			}
		}
		if ends := w.done(cluster.Reclaim, a); len(ends) == 0 || ends[0].at != end {
			t.Errorf("boot of %s: requeued at %v, want %s after its start", span, ends, end.Sub(start))
		}
		if got := w.Record(a).Restarts; got != 1 {
			t.Errorf("boot of %s: it was restarted %d times", span, got)
		}
	}
}
