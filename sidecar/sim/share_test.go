package sim_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// small and large share a GPU of n1 at 0.75 and 0.6 of their speed alone.
var beside = sim.Beside{
	{Kind: "large", GPUs: 1}: {{Kind: "small", GPUs: 1}: {"v100": {Speed: 750_000}}},
	{Kind: "small", GPUs: 1}: {{Kind: "large", GPUs: 1}: {"v100": {Speed: 600_000}}},
}

// pair gives a cluster of one GPU with two jobs of so much work. The second cannot start.
func pair(t *testing.T, saves sim.Saves, host, guest cluster.Span) (v *sim.Virtual, h, g cluster.JobID, events *[]sim.Event) {
	t.Helper()
	v = sim.NewVirtual(start, simtest.Nodes("n", "v100", 1, 1), []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}})
	v.Beside, v.Completing = beside, 0
	events = &[]sim.Event{}
	v.Watch = func(e sim.Event) { *events = append(*events, e) }
	job := func(kind string, runs cluster.Span) cluster.JobID {
		return v.Submit(sim.Work{User: "u", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Kind: kind, Runs: runs, Saves: saves})
	}
	h, g = job("large", host), job("small", guest)
	v.Advance(start)
	return v, h, g, events
}

// check compares the progress of both.
func check(t *testing.T, v *sim.Virtual, what string, h, g cluster.JobID, host, guest cluster.Span) {
	t.Helper()
	if a, b := v.Progress(h), v.Progress(g); a != host || b != guest {
		t.Errorf("%s: the host did %v, the guest %v; want %v and %v", what, a, b, host, guest)
	}
}

// Two jobs on one GPU have the throughputs of the pair, and their own when alone; the GPU belongs
// to the host all the time.
func TestTwoJobsShareAGPU(t *testing.T) {
	v, h, g, events := pair(t, sim.Always, 10*hour, 3*hour)
	v.Advance(start.Add(hour))
	check(t, v, "apart", h, g, hour, 0)
	v.Share(h, g)
	v.Advance(start.Add(3 * hour))
	check(t, v, "two hours together", h, g, hour+2*36*minute, 2*45*minute)
	if v.Job(g).State != cluster.Waiting || v.Received(h) != cluster.Times(1, 3*hour) || v.Received(g) != 0 {
		t.Errorf("the guest is %s; GPU time of the host %v, of the guest %v", v.Job(g).State, v.Received(h), v.Received(g))
	}
	v.Share(h, cluster.JobID{})
	v.Advance(start.Add(4 * hour))
	check(t, v, "apart again", h, g, hour+2*36*minute+hour, 2*45*minute)
	v.Share(h, g)
	v.Advance(start.Add(6 * hour)) // the guest's last 1.5 hours take two
	if v.Job(g).State != cluster.Done || v.Job(g).Outcome != "COMPLETED" {
		t.Errorf("the guest is %s, %s", v.Job(g).State, v.Job(g).Outcome)
	}
	// 10 h of work: 1 alone, 1.2 with the guest, 1 alone, 1.2 with the guest, 5.6 alone.
	v.Advance(start.Add(11*hour + 36*minute - second))
	if v.Job(h).State != cluster.Running {
		t.Errorf("the host is %s too early", v.Job(h).State)
	}
	v.Advance(start.Add(11*hour + 36*minute))
	if v.Job(h).State != cluster.Done || v.Received(h) != cluster.Times(1, 11*hour+36*minute) {
		t.Errorf("the host is %s after GPU time of %v", v.Job(h).State, v.Received(h))
	}
	worked := map[cluster.JobID]cluster.Span{}
	for _, e := range *events {
		worked[e.Job] += e.Worked
	}
	if worked[h] != 10*hour || worked[g] != 3*hour {
		t.Errorf("the events tell of work of %v and %v", worked[h], worked[g])
	}
}

// When the host stops the guest waits, and continues when the host is back; its unsaved work is
// lost, as at a requeue.
func TestAGuestNeedsItsHost(t *testing.T) {
	for saves, kept := range map[sim.Saves]cluster.Span{sim.Always: 45 * minute, sim.Never: 0} {
		v, h, g, _ := pair(t, saves, 100*hour, 100*hour)
		v.Hold(g, true)
		v.Share(h, g)
		v.Advance(start.Add(hour))
		check(t, v, "the guest is held", h, g, hour, 0)
		v.Hold(g, false)
		v.Share(h, cluster.JobID{})
		v.Share(h, g)
		v.Advance(start.Add(2 * hour))
		check(t, v, "together", h, g, hour+36*minute, 45*minute)
		v.SetBegin(g, start.Add(1000*hour)) // else it takes the GPU itself
		v.Requeue(h)
		v.Advance(start.Add(2*hour + minute))
		if got := v.Progress(g); got != kept {
			t.Errorf("without its host the guest has %v left, want %v", got, kept)
		}
		v.Advance(start.Add(3*hour + 2*minute)) // the host is delayed by two minutes
		if got := v.Progress(g); v.Job(h).State != cluster.Running || got != kept+45*minute {
			t.Errorf("the host is %s again, the guest did %v", v.Job(h).State, got)
		}
		v.Cancel(h)
		if v.Advance(start.Add(4 * hour)); v.Job(g).State != cluster.Waiting {
			t.Errorf("without a host the guest is %s", v.Job(g).State)
		}
	}
}

// A guest that gets its own GPUs leaves those of its host; a third job cannot join the two.
func TestOneGuestAHost(t *testing.T) {
	v, h, g, events := pair(t, sim.Always, 100*hour, 100*hour)
	third := v.Submit(sim.Work{User: "u", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Kind: "small", Runs: hour})
	other := v.Submit(sim.Work{User: "u", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Kind: "other", Runs: hour})
	v.Share(h, g)
	v.Share(h, third) // now third is the guest
	v.Advance(start.Add(hour))
	check(t, v, "sent away", h, g, 36*minute, 0)
	if got := v.Progress(third); got != 45*minute {
		t.Errorf("the new guest did %v", got)
	}
	v.Share(h, other) // their joint speed is unknown: they do not share
	v.Advance(start.Add(2 * hour))
	check(t, v, "beside a stranger", h, other, hour+36*minute, 0)
	v.Share(h, g)
	v.Advance(start.Add(3 * hour))
	v.SetBegin(h, start.Add(1000*hour))
	v.Cancel(third)
	v.Cancel(other)
	v.Cancel(h)
	v.Advance(start.Add(4 * hour))
	if got := v.Progress(g); v.Job(g).State != cluster.Running || got != 45*minute+hour {
		t.Errorf("on GPUs of its own the guest is %s and did %v", v.Job(g).State, got)
	}
	on := 0
	for _, e := range *events {
		switch e.What {
		case sim.Joined:
			on++
		case sim.Parted:
			on--
		}
		if on > 1 {
			t.Fatal("three jobs on a GPU")
		}
	}
}
