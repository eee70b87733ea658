package objective_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
)

const hour = cluster.Hour

// of gives the total and the bad events of an objective.
func of(c objective.Counts, name objective.Name, tenant string) (total, bad float64) {
	for _, x := range c {
		if x.Objective == name && x.Tenant == tenant {
			return x.Total, x.Bad
		}
	}
	return 0, 0
}

// A round within the interval is good; each beat that it missed is bad, and so is a round that failed.
func TestBeats(t *testing.T) {
	for _, c := range []struct {
		took       cluster.Span
		failed     bool
		total, bad float64
	}{{9, false, 1, 0}, {10, false, 2, 1}, {35, false, 4, 3}, {9, true, 1, 1}, {35, true, 4, 4}} {
		var counts objective.Counts
		counts.Beats(c.took, 10, c.failed)
		if total, bad := of(counts, objective.Rounds, ""); total != c.total || bad != c.bad {
			t.Errorf("%+v: %v beats, %v bad", c, total, bad)
		}
	}
}

// waiting is a job that could first start at a moment.
func waiting(key cluster.JobKey, first cluster.Instant, change func(*cluster.Case)) cluster.Case {
	x := cluster.Case{Control: cluster.FullControl, Record: cluster.Record{Key: key, Tenant: "nlp", First: first},
		Job: cluster.Job{State: cluster.Waiting, Request: cluster.Request{Size: cluster.Whole(2)}}}
	if change != nil {
		change(&x)
	}
	return x
}

// Each job counts once: when its first lease begins in time, or when it has waited for too long. Rounds are at each half hour, within is two hours.
func TestFirstLeases(t *testing.T) {
	const start cluster.Instant = 1_000_000_000
	for _, c := range []struct {
		name        string
		began, seen cluster.Span // of the first lease, since start; 0 = never
		change      func(*cluster.Case)
		total, bad  float64
	}{
		{"in time", hour, hour, nil, 1, 0},
		{"at the last moment", 2 * hour, 2 * hour, nil, 1, 0},
		{"late", 3 * hour, 3 * hour, nil, 1, 1},
		{"late within one round", 2*hour + cluster.Minute, 2*hour + 30*cluster.Minute, nil, 1, 1},
		{"never", 0, 0, nil, 1, 1},
		{"held", 0, 0, func(x *cluster.Case) { x.Job.Inactive = "held" }, 0, 0},
		{"postponed by its user", 0, 0, func(x *cluster.Case) { x.Record.UserBegin = start.Add(30 * 24 * hour) }, 0, 0},
		{"its begin time is over", 0, 0, func(x *cluster.Case) { x.Record.UserBegin = start }, 1, 1},
		{"left alone", 0, 0, func(x *cluster.Case) { x.Control = cluster.Unmanaged }, 0, 0},
		{"it could not start yet", 0, 0, func(x *cluster.Case) { x.Record.First = 0 }, 0, 0},
		{"it has run before", 0, 0, func(x *cluster.Case) { x.Record.Ran = hour }, 0, 0},
		{"of no tenant", 0, 0, func(x *cluster.Case) { x.Record.Tenant = "" }, 0, 0},
	} {
		var counts objective.Counts
		var leases []cluster.Lease
		for at := cluster.Span(0); at < 6*hour; at += 30 * cluster.Minute {
			s := cluster.Snapshot{Now: start.Add(at + 30*cluster.Minute), Ledger: cluster.Ledger{At: start.Add(at)}, Leases: slices.Clone(leases)}
			x := waiting(1, start, c.change)
			if len(leases) > 0 {
				x.Job.State, x.Record.Alloc = cluster.Running, 1
			}
			if seen := at + 30*cluster.Minute; c.seen > 0 && seen >= c.seen && leases == nil {
				leases = []cluster.Lease{{Job: 1, Start: start.Add(c.began)}}
				x.Job.State = cluster.Running
			}
			s.Cases = []cluster.Case{x}
			counts.Decided(&s, &cluster.Plan{At: s.Now, State: cluster.State{Leases: leases}}, 2*hour)
		}
		for _, tenant := range []string{"nlp", ""} {
			if total, bad := of(counts, objective.FirstLease, tenant); total != c.total || bad != c.bad {
				t.Errorf("%s: %v jobs of %q, %v bad; want %v, %v", c.name, total, tenant, bad, c.total, c.bad)
			}
		}
	}
}

// Idle GPUs are bad where jobs waited for as many of the model, or of any; GPUs that are not well do not count.
func TestIdleGPUs(t *testing.T) {
	const start cluster.Instant = 1_000_000_000
	model := func(name string, gpus int) func(*cluster.Case) {
		return func(x *cluster.Case) { x.Job.Request = cluster.Request{Size: cluster.Whole(gpus), Model: name} }
	}
	part := func(name string) func(*cluster.Case) {
		return func(x *cluster.Case) {
			x.Job.Request = cluster.Request{Size: cluster.SizeOf(cluster.GPUCount(cluster.WholeGPU / 2)), Model: name}
		}
	}
	for _, c := range []struct {
		name  string
		cases []cluster.Case
		bad   float64 // GPU-hours
	}{
		{"no job waits", nil, 0},
		{"two GPUs of any model", []cluster.Case{waiting(1, start, nil)}, 2},
		{"more than idle", []cluster.Case{waiting(1, start, model("", 99))}, 7},
		{"of the model that idles", []cluster.Case{waiting(1, start, model("k80", 99))}, 3},
		{"of the other one, and of any", []cluster.Case{waiting(1, start, model("v100", 99)), waiting(2, start, nil)}, 6},
		{"of a model that is not there", []cluster.Case{waiting(1, start, model("h100", 9))}, 0},
		{"it came later", []cluster.Case{waiting(1, start+1, model("", 99))}, 0},
		{"postponed by its user", []cluster.Case{waiting(1, start, func(x *cluster.Case) { x.Record.UserBegin = start + 1 })}, 0},
		{"its begin time is over", []cluster.Case{waiting(1, start, func(x *cluster.Case) { x.Record.UserBegin = start })}, 2},
		{"half of one, of a model and of any", []cluster.Case{waiting(1, start, part("k80")), waiting(2, start, part(""))}, 1},
		{"held", []cluster.Case{waiting(1, start, func(x *cluster.Case) { x.Job.Inactive = "held" })}, 0},
	} {
		s := cluster.Snapshot{Cases: c.cases, Ledger: cluster.Ledger{At: start, Pools: []cluster.PoolAccount{{Pool: "k80", Capacity: 5, Idle: 5}, {Pool: "v100"}}}}
		p := cluster.Plan{At: start.Add(hour)}
		p.State.Ledger.Pools = []cluster.PoolAccount{{Pool: "k80", Capacity: 5 + cluster.Times(8, hour), Idle: 5 + cluster.Times(3, hour), Bad: cluster.Times(1, hour)},
			{Pool: "new", Capacity: cluster.Times(9, hour), Idle: cluster.Times(9, hour)}, {Pool: "v100", Capacity: cluster.Times(8, hour), Idle: cluster.Times(4, hour)}}
		var counts objective.Counts
		counts.Decided(&s, &p, hour)
		if total, bad := of(counts, objective.GPUs, ""); total != 15*3600 || bad != c.bad*3600 {
			t.Errorf("%s: %v GPU-hours, %v bad; want 15, %v", c.name, total/3600, bad/3600, c.bad)
		}
	}
	s := cluster.Snapshot{Cases: []cluster.Case{waiting(1, start, nil)}, Ledger: cluster.Ledger{At: start, Pools: []cluster.PoolAccount{{Pool: "k80", Idle: cluster.Times(3, hour)}}}}
	p := cluster.Plan{At: start.Add(hour)}
	p.State.Ledger.Pools = []cluster.PoolAccount{{Pool: "k80", Capacity: cluster.Times(8, hour), Idle: cluster.Times(1, hour)}} // runs were seen late
	var counts objective.Counts
	counts.Decided(&s, &p, hour)
	if total, bad := of(counts, objective.GPUs, ""); total != 8*3600 || bad != 0 {
		t.Errorf("idle time that shrinks counts %v GPU-hours, %v bad; want 8, 0", total/3600, bad/3600)
	}
	counts = nil
	counts.Decided(&cluster.Snapshot{}, &cluster.Plan{At: start}, hour)
	if len(counts) > 0 {
		t.Errorf("the first round of all counts %+v", counts)
	}
}
