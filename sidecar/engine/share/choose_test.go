package share_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/share"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

const (
	now    = roundtest.Now
	minute = cluster.Minute
	second = cluster.Second
	// v100 is the row of bio's account there; nlp's is two further.
	v100 = 1
)

// play lets fair share choose, and returns what becomes of each case, and after how long time alone may change that.
func play(s *cluster.Snapshot) (out []string, f *field.Field) {
	in, leases := roundtest.Facts(s)
	found, due, stops := new(eligible.Nodes).Find(in, leases, nil), new(entitle.Due), new(budget.Account)
	learnt := speeds.Learn(in, found, new(profile.Memory))
	stops.Open(in, found)
	capacity := due.Open(in, found, learnt, cluster.Ledger{})
	m := market.Open(in, found, due, learnt)
	due.Divide(in, found, learnt, capacity, nil, nil)
	f = new(field.Field)
	f.Open(in, found, due, stops, m, nil)
	choice := field.Play(f, new(share.Chooser))
	at := func(t cluster.Instant) string {
		return fmt.Sprintf("%d:%02d", t.Sub(now)/minute, t.Sub(now)%minute/second)
	}
	on := func(nodes []cluster.Holding) string {
		var all []string
		for _, n := range nodes {
			all = append(all, fmt.Sprintf("%s%d", n.Node, n.Size.Devices))
		}
		return strings.Join(all, "+")
	}
	for i, l := range f.Hand.Leases {
		text := ""
		switch {
		case l != nil && l.Behind != 0:
			text = fmt.Sprintf("behind %d %s", l.Behind, at(l.End))
		case l != nil:
			text = fmt.Sprintf("%s %s %s", l.State, on(l.Nodes), at(l.End))
			if f.Hand.Marks[i].Began && l.State == cluster.Active {
				text = "renewed " + on(l.Nodes) + " " + at(l.End)
			}
			if l.Why != "" {
				text += fmt.Sprintf(" %s for %d", l.Why, f.Hand.Marks[i].Beneficiary)
			}
		case choice.Refused[i].Passed != nil:
			text = string(choice.Refused[i].Passed.Code)
			if other := choice.Refused[i].Passed.Other; other != "" {
				text += " " + other
			}
		}
		for _, cl := range f.Hand.Claims {
			if cl.Job == in.Records[i].Key {
				verb := "claims"
				if cl.Gathers {
					verb = "gathers"
				}
				text = strings.TrimSpace(fmt.Sprintf("%s, %s %s %s", text, verb, on(cl.Nodes), at(cl.At)))
			}
		}
		out = append(out, strings.TrimPrefix(text, ", "))
	}
	if choice.Next > now {
		out = append(out, fmt.Sprintf("again after %g s", float64(choice.Next.Sub(now))/1000))
	}
	return out, f
}

// waits returns a waiting job for v100.
func waits(id int64, tenant string, gpus int) cluster.Case {
	c := roundtest.Job(id, tenant, gpus, cluster.Waiting)
	c.Job.Request.Model = "v100"
	return c
}

// runs returns a job that has run on v100 for an hour.
func runs(id int64, tenant string, gpus int) cluster.Case {
	c := roundtest.On(roundtest.Job(id, tenant, gpus, cluster.Running), "a", "v100", gpus)
	c.Record.State, c.Record.Terms, c.Job.Request.Model = cluster.Running, 1, "v100"
	return c
}

// leased gives the running jobs of a snapshot leases that end after the given spans.
func leased(s *cluster.Snapshot, ends ...cluster.Span) {
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Job.State == cluster.Running && len(ends) > 0 {
			s.Leases = append(s.Leases, cluster.Lease{Job: c.Record.Key, Term: 1, Pool: "v100", Size: cluster.Whole(c.Job.GPUsHeld()), State: cluster.Active, Nodes: c.Job.Holds, Granted: now.Add(-cluster.Hour), Start: now.Add(-cluster.Hour), End: now.Add(ends[0])})
			ends = ends[1:]
		}
	}
}

// Leases go to the tenant furthest behind. Leases that end go on unless another tenant is further behind by the threshold.
func TestChoices(t *testing.T) {
	type cases = []cluster.Case
	// behind makes bio and nlp behind in v100 by so many minutes of a GPU.
	behind := func(bio, nlp int64) func(s *cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Ledger.Tenants[v100].Deficit, s.Ledger.Tenants[v100+2].Deficit = cluster.GPUTime(bio)*cluster.GPUTime(minute), cluster.GPUTime(nlp)*cluster.GPUTime(minute)
		}
	}
	recall := func(s *cluster.Snapshot) { s.Settings.RecallFirst, s.Settings.RecallNotice = true, minute }
	for _, c := range []struct {
		name   string
		cases  cases
		ends   []cluster.Span // of leases of running jobs
		change func(s *cluster.Snapshot)
		want   []string
	}{
		{"GPUs are idle", cases{waits(7, "bio", 2), waits(8, "nlp", 2)}, nil, nil, []string{"granted a2 15:00", "granted a2 15:00"}},
		{"there are no nodes", cases{waits(7, "bio", 2)}, nil, func(s *cluster.Snapshot) { s.Nodes = nil }, []string{""}},
		{"nobody waits", nil, nil, nil, nil},
		{"a job is larger than everything", cases{waits(7, "bio", 5), waits(8, "nlp", 1)}, nil, nil, []string{"", "granted a1 15:00"}},
		{"the tenant behind goes first", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, behind(0, 1), []string{"behind nlp", "granted a4 15:00"}},
		{"equal tenants go by name", cases{waits(7, "nlp", 4), waits(8, "bio", 4)}, nil, nil, []string{"behind bio", "granted a4 15:00"}},
		{"both get a half, however many jobs one has", cases{waits(7, "bio", 1), waits(8, "bio", 1), waits(9, "bio", 1), waits(10, "nlp", 1), waits(11, "nlp", 1)}, nil, nil,
			[]string{"granted a1 15:00", "granted a1 15:00", "behind nlp", "granted a1 15:00", "granted a1 15:00"}},
		{"a tenant without weight gets idle GPUs", cases{waits(7, "bio", 2), waits(8, "nlp", 2)}, nil, func(s *cluster.Snapshot) { s.Tenants[0].Weight = 0; behind(99, 0)(s) }, []string{"granted a2 15:00", "granted a2 15:00"}},
		{"a tenant without weight gets none that another can use", cases{waits(7, "bio", 2), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) { s.Tenants[0].Weight = 0; behind(99, 0)(s) }, []string{"behind nlp", "granted a4 15:00"}},
		{"all tenants have no weight", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) { s.Tenants[0].Weight, s.Tenants[1].Weight = 0, 0 }, []string{"granted a4 15:00", "behind bio"}},
		{"a boosted tenant goes first", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) {
			behind(99, 0)(s)
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Boost, Scope: "tenant", Name: "nlp", Until: now + 1}}
		}, []string{"behind nlp, claims a4 15:00", "granted a4 15:00"}},
		{"a lease ends, and nobody waits", cases{runs(7, "bio", 4)}, []cluster.Span{minute}, nil, []string{"renewed a4 15:00"}},
		{"a lease ends, and another tenant waits", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, nil, []string{"noticed a4 1:00", "claims a4 1:00"}},
		{"it goes on up to the threshold", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			s.Settings.Threshold = 10 * minute
			behind(0, 15)(s)
		}, []string{"renewed a4 15:00", "threshold bio"}},
		{"a job that has no lease keeps its GPUs", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, nil, behind(-99, 99), []string{"", "behind"}},
		{"a frozen job gets notice, though nobody waits", cases{runs(7, "bio", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "user", Name: "ann", Until: now + 1}}
		}, []string{"noticed a4 1:00"}},
		{"a job that is never reclaimed goes on", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim; behind(-99, 99)(s) }, []string{"active a4 15:00", "behind"}},
		{"a job is only observed, and its lease too", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			s.Cases[0].Control, s.Cases[1].Control = cluster.ObserveOnly, cluster.ObserveOnly
		}, []string{"noticed a4 1:00", "claims a4 1:00"}},
		{"no more leases end for others than may", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 2), waits(10, "nlp", 2)}, []cluster.Span{minute, minute}, func(s *cluster.Snapshot) { s.Settings.MaxReclaims = 1; behind(-99, 99)(s) }, []string{"renewed a2 15:00", "noticed a2 1:00", "claims a2 1:00", "limit, claims a2 15:00"}},
		{"a claim goes on, though its tenant is ahead now", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			behind(99, 0)(s)
			s.Claims = []cluster.Claim{{Job: 2, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, At: now.Add(minute), Made: now.Add(-minute)}}
		}, []string{"noticed a4 1:00", "claims a4 1:00"}},
		{"a claim is a term late", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) {
			behind(99, 0)(s)
			s.Claims = []cluster.Claim{{Job: 2, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, At: now.Add(-15 * minute), Made: now.Add(-cluster.Hour)}}
		}, []string{"behind nlp, claims a4 15:00", "granted a4 15:00"}},
		{"it is a millisecond later", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) {
			behind(99, 0)(s)
			s.Claims = []cluster.Claim{{Job: 2, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, At: now.Add(-15*minute) - 1, Made: now.Add(-cluster.Hour)}}
		}, []string{"granted a4 15:00", "behind bio"}},
		{"a claim is of a pool that vanished", cases{waits(7, "bio", 4)}, nil, func(s *cluster.Snapshot) {
			s.Claims = []cluster.Claim{{Job: 1, Pool: "p100", Nodes: []cluster.Holding{{Node: "x", Model: "p100", Size: cluster.Whole(4)}}, At: now}}
		}, []string{"granted a4 15:00"}},
		{"a claim is of a node that failed", cases{waits(7, "bio", 2)}, nil, func(s *cluster.Snapshot) {
			s.Nodes = append(s.Nodes, cluster.Node{Name: "c", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, CPUs: 64, MemoryMB: 1 << 20, Partitions: []string{"gpu"}, Bad: "down"})
			s.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Nodes: []cluster.Holding{{Node: "c", Model: "v100", Size: cluster.Whole(2)}}, At: now}}
		}, []string{"granted a2 15:00"}},
		{"a claim is of a job that is gone", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) {
			s.Cases[1].Gone = true
			s.Claims = []cluster.Claim{{Job: 2, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, At: now}}
		}, []string{"granted a4 15:00", ""}},
		{"a gang is due, and fits nowhere: GPUs are claimed for it", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4)}, []cluster.Span{15 * minute, 15 * minute}, behind(0, 99), []string{"active a2 15:00", "active a2 15:00", "behind, claims a4 15:00"}},
		{"a new job goes first in the middle of terms", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-99, 99)(s) }, []string{"noticed a4 1:00 recalled for 2", "claims a2 1:00"}},
		{"but not one that had a lease", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-99, 99)(s); s.Cases[1].Record.Terms = 1 }, []string{"active a4 15:00", "behind, claims a2 15:00"}},
		{"nor within the minimum lease", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-99, 99)(s); s.Settings.MinLease = cluster.Hour + 1 }, []string{"active a4 15:00", "behind, claims a2 15:00", "again after 0.001 s"}},
		{"and when that is over", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-99, 99)(s); s.Settings.MinLease = cluster.Hour }, []string{"noticed a4 1:00 recalled for 2", "claims a2 1:00"}},
		{"nor from a tenant that is not ahead", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(99, 0)(s) }, []string{"active a4 15:00", "behind"}},
		{"nor from a job that is exempt", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) {
			recall(s)
			behind(-99, 99)(s)
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "tenant", Name: "bio", Until: now + 1}}
		}, []string{"active a4 15:00", "behind"}},
		{"nor where no lease may end any more", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 2), waits(10, "nlp", 2)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) {
			recall(s)
			behind(-99, 99)(s)
			s.Settings.MaxReclaims = 1
		}, []string{"active a2 15:00", "noticed a2 1:00 recalled for 3", "claims a2 1:00", "behind"}},
		{"its own tenant's leases, within the share of new jobs", cases{runs(7, "bio", 4), waits(8, "bio", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) {
			recall(s)
			s.Leases[0].Term, s.Settings.NewSharePercent = 2, 50
			s.Tenants = s.Tenants[:1]
		}, []string{"noticed a4 1:00 recalled for 2", "claims a2 1:00"}},
		{"its own tenant's leases, beyond it", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "bio", 2)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) {
			recall(s)
			s.Leases[0].Term, s.Settings.NewSharePercent = 2, 75
			s.Tenants = s.Tenants[:1]
		}, []string{"active a2 15:00", "active a2 15:00", "behind"}},
		{"its own tenant's leases, just within it", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "bio", 2)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) {
			recall(s)
			s.Leases[0].Term, s.Settings.NewSharePercent = 2, 100
			s.Tenants = s.Tenants[:1]
		}, []string{"active a2 15:00", "noticed a2 1:00 recalled for 3", "claims a2 1:00"}},
		{"idle jobs give way", cases{runs(7, "bio", 4), waits(8, "bio", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			s.Settings.IdleReclaim = 30 * minute
			s.Uses = []cluster.GPUUse{{Job: s.Cases[0].Job.ID, Start: s.Cases[0].Job.Start, At: now, Idle: 4, IdleSince: now.Add(-30 * minute)}}
		}, []string{"noticed a4 1:00", "claims a4 1:00"}},
		{"an idle job gives way before another of its tenant", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 2)}, []cluster.Span{minute, minute}, func(s *cluster.Snapshot) {
			behind(0, 99)(s)
			s.Settings.IdleReclaim, s.Cases[1].Record.Alloc, s.Cases[1].Record.Due = 30*minute, 9, 1
			s.Uses = []cluster.GPUUse{{Job: s.Cases[0].Job.ID, Start: s.Cases[0].Job.Start, At: now, Idle: 2, IdleSince: now.Add(-30 * minute)}}
		}, []string{"noticed a2 1:00", "renewed a2 15:00", "claims a2 1:00"}},
		{"the GPUs of a frozen job go to a tenant that is far ahead", cases{runs(7, "bio", 4), waits(8, "nlp", 4)}, []cluster.Span{minute}, func(s *cluster.Snapshot) {
			behind(99, -99)(s)
			s.Settings.Threshold = cluster.Hour
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "user", Name: "ann", Until: now + 1}}
			s.Cases[1].Record.User, s.Cases[1].Job.User = "bob", "bob"
		}, []string{"noticed a4 1:00", "claims a4 1:00"}},
		{"the older of two claims counts", cases{waits(7, "bio", 4), waits(8, "nlp", 4)}, nil, func(s *cluster.Snapshot) {
			nodes := []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}
			s.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Nodes: nodes, At: now, Made: now - 10}, {Job: 2, Pool: "v100", Nodes: nodes, At: now, Made: now - 20}}
		}, []string{"behind nlp, claims a4 0:00", "granted a4 15:00"}},
		{"a lease that was renewed in this moment is not recalled", cases{runs(7, "bio", 4), waits(8, "nlp", 2)}, []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-99, 99)(s); s.Leases[0].Granted = now }, []string{"active a4 15:00", "behind, claims a2 15:00", "again after 10 s"}},
		{"one tenant gives up a lease and stays ahead", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 2)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(0, 15)(s) }, []string{"active a2 15:00", "noticed a2 1:00 recalled for 3", "claims a2 1:00"}},
		{"with two it would not", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(0, 15)(s) }, []string{"active a2 15:00", "active a2 15:00", "behind", "again after 150.001 s"}},
		{"with two it does, from an account further ahead", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) { recall(s); behind(-30, 45)(s) }, []string{"noticed a2 1:00 recalled for 3", "noticed a2 1:00 recalled for 3", "claims a4 1:00"}},
		{"a gang waits for jobs that cannot be stopped: GPUs are gathered", cases{runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4)}, []cluster.Span{15 * minute, 15 * minute}, func(s *cluster.Snapshot) {
			behind(0, 99)(s)
			s.Settings.StopAllowance, s.Settings.StartCost = 10*minute, 2*minute
			s.Tenants[0].Weight = 0
		}, []string{"active a2 15:00", "active a2 15:00", "behind, gathers a4 0:00"}},
	} {
		s := roundtest.Snapshot(c.cases...)
		if leased(s, c.ends...); c.change != nil {
			c.change(s)
		}
		if got, _ := play(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// node adds a node of v100 to a site.
func node(s *cluster.Snapshot, name string, gpus int) {
	s.Nodes = append(s.Nodes, cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: "v100", Count: gpus}}, CPUs: 64, MemoryMB: 1 << 20, Partitions: []string{"gpu"}})
	s.Ledger.Pools[v100].GPUs += cluster.CountOf(gpus)
}

// Short jobs follow each other on the same GPUs within a round's interval of ten seconds, which five of them fill.
func TestShortJobsFollow(t *testing.T) {
	one := func(n int) (out []cluster.Case) {
		for i := range n {
			out = append(out, waits(int64(7+i), "bio", 1))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		cases  []cluster.Case
		ends   []cluster.Span
		change func(s *cluster.Snapshot)
		want   []string
	}{
		{"they are short", one(3), nil, nil, []string{"granted a1 15:00", "behind 1 15:00", "behind 1 15:00"}},
		{"five fill the interval", one(7), nil, nil, []string{"granted a1 15:00", "behind 1 15:00", "behind 1 15:00", "behind 1 15:00", "behind 1 15:00", "behind 1 15:00", "behind"}},
		{"they take three seconds each, and the start of one more", one(6), nil, func(s *cluster.Snapshot) { s.Habits[0].Brief.Ran = 3 * second }, []string{"granted a1 15:00", "behind 1 15:00", "behind 1 15:00", "behind 1 15:00", "behind", "behind"}},
		{"they are not known to be short", one(3), nil, func(s *cluster.Snapshot) { s.Habits[0].Brief.Short = 1000 }, []string{"granted a1 15:00", "behind", "behind"}},
		{"their tenant is far behind", one(3), nil, func(s *cluster.Snapshot) { s.Ledger.Tenants[v100].Deficit = cluster.GPUTime(cluster.Day) }, []string{"granted a1 15:00", "behind 1 15:00", "behind 1 15:00"}},
		{"two lead, and one of them is of another shape", one(4), nil, func(s *cluster.Snapshot) { s.Nodes[0].GPUs[0].Count, s.Cases[0].Job.Request.CPUs = 2, 8 }, []string{"granted a1 15:00", "granted a1 15:00", "behind 2 15:00", "behind 2 15:00"}},
		{"one asks for more CPUs", one(3), nil, func(s *cluster.Snapshot) { s.Cases[1].Job.Request.CPUs = 8 }, []string{"granted a1 15:00", "behind", "behind"}},
		{"another GPU of the node is idle", one(3), nil, func(s *cluster.Snapshot) { s.Nodes[0].GPUs[0].Count = 2 }, []string{"granted a1 15:00", "granted a1 15:00", "behind 1 15:00"}},
		{"the first of them has just begun", append([]cluster.Case{runs(6, "bio", 1)}, one(2)...), []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { s.Cases[0].Job.Start = now.Add(-10*second) + 1 }, []string{"active a1 15:00", "behind 1 15:00", "behind 1 15:00"}},
		{"it has run for an interval", append([]cluster.Case{runs(6, "bio", 1)}, one(2)...), []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { s.Cases[0].Job.Start = now.Add(-10 * second) }, []string{"active a1 15:00", "behind", "behind"}},
		{"it has just begun, and another tenant waits", append([]cluster.Case{runs(6, "bio", 1), waits(20, "nlp", 1)}, one(1)...), []cluster.Span{15 * minute}, func(s *cluster.Snapshot) { s.Cases[0].Job.Start = now.Add(-second) }, []string{"active a1 15:00", "behind", "behind"}},
		{"GPUs of the node are reserved", one(3), nil, func(s *cluster.Snapshot) {
			s.Reservations = []cluster.Reservation{{Name: "fairlease_9_1", Ours: true, Nodes: []string{"a"}, End: now + 1}}
		}, []string{"granted a1 15:00", "behind", "behind"}},
	} {
		s := roundtest.Snapshot(c.cases...)
		s.Nodes[0].GPUs[0].Count = 1
		s.Habits = []cluster.Habit{{Type: cluster.JobType{User: "ann", GPUs: 1}, Brief: &cluster.Brief{Jobs: 10000, Short: 10000, Ran: second}}}
		if leased(s, c.ends...); c.change != nil {
			c.change(s)
		}
		if got, _ := play(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Jobs whose leases are renewed move, if a gang then fits and the moves cost little.
func TestJobsMoveForGangs(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		want   []string
	}{
		{"a move of two GPUs makes room for four", func(*cluster.Snapshot) {}, []string{"noticed a2 1:00, claims c2 1:00", "renewed c2 15:00", "claims a4 1:00"}},
		{"jobs do not move", func(s *cluster.Snapshot) { s.Settings.CompactPercent = 0 }, []string{"renewed a2 15:00", "renewed c2 15:00", "shape bio"}},
		{"a move costs more than it may", func(s *cluster.Snapshot) {
			s.Settings.CompactPercent, s.Settings.StartCost, s.Settings.StopAllowance = 10, 4*minute, cluster.Day
		}, []string{"renewed a2 15:00", "renewed c2 15:00", "shape bio"}},
		{"no lease may end for others", func(s *cluster.Snapshot) {
			s.Settings.MaxReclaims = 0
			s.Cases[0].Control, s.Cases[1].Control = cluster.NoReclaim, cluster.NoReclaim
		}, []string{"active a2 15:00", "active c2 15:00", "shape"}},
		{"the gang takes several nodes", func(s *cluster.Snapshot) { s.Cases[2].Job.Request.MaxNodes = 0 }, []string{"renewed a2 15:00", "renewed c2 15:00", "granted a2+c2 15:00"}},
	} {
		s := roundtest.Snapshot(runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4))
		node(s, "c", 4)
		s.Cases[0].Job.Declares.Manner, s.Cases[1].Job.Declares.Manner = cluster.SavesOnTerm, cluster.SavesOnTerm
		s.Cases[1].Job.Holds = []cluster.Holding{{Node: "c", Model: "v100", Size: cluster.Whole(2), CPUs: 2}}
		s.Cases[2].Job.Request.MaxNodes, s.Settings.CompactPercent, s.Settings.Threshold = 1, 50, cluster.Hour
		leased(s, minute, minute)
		c.change(s)
		if got, _ := play(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// GPUs that are gathered for a gang are claimed for it as soon as all jobs on its nodes can be stopped.
func TestGathering(t *testing.T) {
	never := func(s *cluster.Snapshot, cases ...int) {
		for _, i := range cases {
			s.Cases[i].Job.Declares.Manner = cluster.SavesNever
		}
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		want   []string
	}{
		{"both jobs cannot be stopped", func(s *cluster.Snapshot) { never(s, 0, 1) }, []string{"active a2 15:00", "active a2 15:00", "behind, gathers a4 -60:00"}},
		{"one cannot", func(s *cluster.Snapshot) { never(s, 0) }, []string{"active a2 15:00", "renewed a2 15:00", "behind, gathers a4 -60:00"}},
		{"both can", func(*cluster.Snapshot) {}, []string{"noticed a2 1:00", "noticed a2 1:00", "claims a4 1:00"}},
		{"the gang has left", func(s *cluster.Snapshot) { s.Cases[2].Gone = true }, []string{"renewed a2 15:00", "renewed a2 15:00", ""}},
		{"the gang takes idle GPUs only now", func(s *cluster.Snapshot) { never(s, 0, 1); s.Cases[2].Job.Hints = &cluster.Hints{Idle: true} }, []string{"active a2 15:00", "active a2 15:00", "failed"}},
		{"its pool vanished", func(s *cluster.Snapshot) { never(s, 0, 1); s.Claims[0].Pool = "p100" }, []string{"active a2 15:00", "active a2 15:00", "behind, gathers a4 0:00"}},
		{"it is beyond its share, and its tenant is owed nothing", func(s *cluster.Snapshot) {
			never(s, 0, 1)
			s.Tenants[0].Weight, s.Cases[2].Job.Submit, s.Ledger.Tenants[v100].Owed, s.Ledger.Tenants[v100+2].Owed = 1, now.Add(-30*cluster.Hour), 0, 0
		}, []string{"active a2 15:00", "active a2 15:00", "behind"}},
		{"it is beyond its share, and its tenant is owed", func(s *cluster.Snapshot) {
			never(s, 0, 1)
			s.Tenants[0].Weight, s.Cases[2].Job.Submit = 1, now.Add(-30*cluster.Hour)
		}, []string{"active a2 15:00", "active a2 15:00", "behind, gathers a4 -60:00"}},
		{"it is beyond its share, and has not waited for long", func(s *cluster.Snapshot) {
			never(s, 0, 1)
			s.Tenants[0].Weight, s.Cases[2].Job.Submit = 1, now.Add(-20*cluster.Hour)
		}, []string{"active a2 15:00", "active a2 15:00", "behind"}},
		{"a job on its nodes ends its term", func(s *cluster.Snapshot) { never(s, 0); s.Leases[1].End = now.Add(minute) }, []string{"active a2 15:00", "renewed a2 15:00", "behind, gathers a4 -60:00"}},
		{"nothing runs any more", func(s *cluster.Snapshot) {
			for i := range 2 {
				s.Cases[i].Job.State, s.Cases[i].Job.Holds = cluster.Done, nil
			}
			s.Leases = nil
		}, []string{"", "", "granted a4 9:50"}},
	} {
		s := roundtest.Snapshot(runs(7, "bio", 2), runs(8, "bio", 2), waits(9, "nlp", 4))
		s.Cases[0].Job.Declares.Manner, s.Cases[1].Job.Declares.Manner = cluster.SavesOnTerm, cluster.SavesOnTerm
		s.Settings.StopAllowance, s.Settings.StartCost = 10*minute, 2*minute
		s.Tenants[0].Weight = 0
		s.Ledger.Tenants[v100].Deficit, s.Ledger.Tenants[v100+2].Deficit = 0, cluster.GPUTime(99*minute)
		s.Ledger.Tenants[v100].Owed, s.Ledger.Tenants[v100+2].Owed = -cluster.GPUTime(99*minute), cluster.GPUTime(99*minute)
		s.Claims = []cluster.Claim{{Job: 3, Pool: "v100", Gathers: true, Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, At: now.Add(-cluster.Hour), Made: now.Add(-cluster.Hour)}}
		leased(s, 15*minute, 15*minute)
		c.change(s)
		if got, _ := play(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Every mechanism runs the job whose party is owed most of the GPUs that both could use, and of equal ones the first.
func TestMechanisms(t *testing.T) {
	for _, by := range []string{cluster.Nearest, cluster.ByStride, cluster.ByGavel, cluster.ByOEF, cluster.ByDebt} {
		for _, c := range []struct {
			name   string
			gangs  [2]int
			owed   [2]int64 // to the parties, in minutes of a GPU
			change func(s *cluster.Snapshot)
			runs   [2]bool
			idle   bool
		}{
			{"the first is owed", [2]int{4, 4}, [2]int64{90, 0}, nil, [2]bool{true, false}, false},
			{"the second is", [2]int{4, 4}, [2]int64{0, 90}, nil, [2]bool{false, true}, false},
			{"both have room", [2]int{2, 2}, [2]int64{0, 90}, nil, [2]bool{true, true}, false},
			{"the second is owed, and the first is urgent", [2]int{4, 4}, [2]int64{0, 90}, func(s *cluster.Snapshot) {
				s.Settings.UrgentQOS, s.Cases[0].Job.QOS = []string{"high"}, "high"
			}, [2]bool{true, false}, false},
			{"the second is owed, and takes idle GPUs only", [2]int{4, 4}, [2]int64{0, 90}, func(s *cluster.Snapshot) { s.Cases[1].Job.Hints = &cluster.Hints{Idle: true} }, [2]bool{true, false}, true},
		} {
			s := roundtest.Snapshot(waits(7, "bio", c.gangs[0]), waits(8, "bio", c.gangs[1]))
			s.Settings.Divide, s.Settings.DivideJobs, s.Settings.Mechanism = "oef:coop", true, by
			for k, owed := range c.owed {
				s.Parties = append(s.Parties, cluster.PartyPool{Party: fmt.Sprintf("bio/%010d", k+1), Pool: "v100", Entitlement: 2 * cluster.WholeGPU, Deficit: cluster.GPUTime(owed) * cluster.GPUTime(minute)})
			}
			if c.change != nil {
				c.change(s)
			}
			if c.idle && by == cluster.ByDebt { // it chooses by the order of turns, as idle GPUs are given
				continue
			}
			_, f := play(s)
			if got := [2]bool{f.Hand.Leases[0] != nil, f.Hand.Leases[1] != nil}; got != c.runs {
				t.Errorf("by %q, %s: runs %v, want %v", by, c.name, got, c.runs)
			}
		}
	}
}
