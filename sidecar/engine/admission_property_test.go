package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// drawCaps draws limits of these rules, each on one resource.
func drawCaps(rt *rapid.T, rules ...string) []cluster.Cap {
	var out []cluster.Cap
	for _, rule := range rules {
		if !rapid.SampledFrom([]bool{false, false, false, false, false, true}).Draw(rt, rule) {
			continue
		}
		c := cluster.Cap{Rule: rule}
		if strings.Contains(rule, "TRES") {
			c.TRES = rapid.SampledFrom([]string{"gres/gpu", "gres/gpu", "gres/gpu", "cpu", "node", "mem", "gres/gpu:v100"}).Draw(rt, "resource")
		}
		switch c.Max = rapid.SampledFrom([]int64{8, 6, 5, 4, 3, 2, 1, 0}).Draw(rt, "most"); rule {
		case cluster.MinTRESPerJob:
			c.Max = min(c.Max, 2)
		case cluster.MaxWall:
			c.Max *= 60
		}
		if c.TRES == "mem" {
			c.Max *= 1024
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b cluster.Cap) int { return a.Compare(b) })
	return out
}

// nested is an account tree with two tenants.
var nested = []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}, {Name: "a1", Parent: "a", Shares: 1}, {Name: "a11", Parent: "a1", Shares: 1},
	{Name: "a2", Parent: "a", Shares: 2}, {Name: "b", Parent: "root", Shares: 1}, {Name: "b1", Parent: "b", Shares: 1}}

// drawLimits draws limits of accounts at all levels of the tree, of users and of QOS.
func drawLimits(rt *rapid.T) cluster.Limits {
	var l cluster.Limits
	for _, a := range nested {
		if c := drawCaps(rt, cluster.GrpTRES, cluster.GrpJobs); len(c) > 0 {
			l.Associations = append(l.Associations, cluster.Association{Account: a.Name, Caps: c})
		}
		for _, user := range []string{"u", "v"} {
			if c := drawCaps(rt, cluster.GrpTRES, cluster.MaxJobs, cluster.MaxTRESPerJob, cluster.MaxTRESPerNode, cluster.MaxWall); len(c) > 0 && rapid.Bool().Draw(rt, user) {
				l.Associations = append(l.Associations, cluster.Association{Account: a.Name, User: user, Caps: c})
			}
		}
	}
	for _, name := range []string{"high", "part"} {
		q := cluster.QOS{Name: name, Caps: drawCaps(rt, cluster.GrpTRES, cluster.GrpJobs, cluster.MaxTRESPerUser, cluster.MaxJobsPerUser, cluster.MaxTRESPerAccount,
			cluster.MaxJobsPerAccount, cluster.MaxTRESPerJob, cluster.MinTRESPerJob, cluster.MaxWall)}
		if rapid.IntRange(0, 3).Draw(rt, "flags") == 0 {
			q.Flags = []string{rapid.SampledFrom([]string{cluster.OverPartQOS, cluster.PartitionMaxNodes, cluster.PartitionTimeLimit}).Draw(rt, "flag")}
		}
		if len(q.Caps)+len(q.Flags) > 0 {
			l.QOS = append(l.QOS, q)
		}
	}
	slices.SortFunc(l.Associations, func(a, b cluster.Association) int { return a.Compare(&b) })
	return l
}

// drawRules draws the access lists and limits of a partition.
func drawRules(rt *rapid.T) (r cluster.Rules, maxTime cluster.Span) {
	some := func() []string {
		return []string{rapid.SampledFrom([]string{"a", "a1", "a11", "a2", "b", "b1"}).Draw(rt, "account")}
	}
	switch rapid.SampledFrom([]int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}).Draw(rt, "list") {
	case 0:
		r.AllowAccounts = some()
	case 1:
		r.DenyAccounts = some()
	case 2:
		r.DenyQOS = []string{"high"}
	case 3:
		r.MaxNodes = 1
	case 4:
		maxTime = 2 * hour
	case 5, 6, 7:
		r.QOS = "part"
	}
	return r, maxTime
}

// Whatever nested account tree, limits, lists and jobs there are, with virtual clusters and without: no job starts beyond a limit,
// and the simulated Slurm, which shares no code with the engine, starts whatever is granted.
func TestNothingIsGrantedThatSlurmRefuses(t *testing.T) {
	granted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, name) }
		nodes := simtest.Nodes("n", "v100", draw("nodes", 1, 4), 4)
		set := simtest.Product()
		set.RecallFirst = rapid.Bool().Draw(rt, "recall")
		w := newWorldOn(t, set, nodes, "a", "b")
		w.Virtual = sim.NewVirtual(simtest.Start, nodes, nested)
		w.Gate = set.GateTTL
		if rapid.Bool().Draw(rt, "virtual clusters") {
			d := &cluster.Cells{Types: []cluster.CellType{{Name: "gpu", Model: "v100"}, {Name: "node", Child: "gpu", Split: 4, Node: true}}}
			for _, n := range nodes {
				d.Tops = append(d.Tops, cluster.TopCell{Name: n.Name, Type: "node", Nodes: []string{n.Name}})
			}
			for i, n := 0, draw("cells of a", 0, len(nodes)); i < 2; i, n = i+1, len(nodes)-n {
				if n > 0 {
					d.VCs = append(d.VCs, cluster.VC{Name: string(rune('a' + i)), Cells: []cluster.CellQuota{{Type: "node", Cells: n}}})
				}
			}
			if _, err := cells.New(*d); err != nil {
				rt.Fatal(err)
			}
			w.Settings.Preset, w.Settings.Chooser, w.Rules.Cells = "hived", "astraea", d
		}
		limits := drawLimits(rt)
		w.SetLimits(limits)
		r, maxTime := drawRules(rt)
		w.SetRules("gpu", r, maxTime)
		changed := w.Now()
		var ids []cluster.JobID
		w.Watch = func(e sim.Event) {
			if e.What == sim.Started {
				if over := beyond(w, &limits, ids, e.Job); over != "" {
					rt.Fatalf("job %s started at %s beyond a limit: %s", e.Job, e.At, over)
				}
			}
		}
		old := w.Check
		w.Check = func(rep loop.Report) {
			old(rep)
			for i := range rep.Plan.Actions {
				switch a := &rep.Plan.Actions[i]; a.Verb {
				case cluster.Grant:
					granted++
				case cluster.RevokeGrant:
					why := w.Job(a.ID).PendingReason
					for _, l := range rep.Plan.Ended {
						if l.Job == a.Job && l.Granted >= changed && (strings.HasPrefix(why, "Assoc") || strings.HasPrefix(why, "QOS") || strings.HasPrefix(why, "Partition") || strings.HasPrefix(why, "Account")) {
							rt.Fatalf("at %s: job %s was granted a lease at %s and refused: %s; the limits are %+v, the partition is %+v", rep.Plan.At, a.ID, l.Granted, why, limits, r)
						}
					}
				}
			}
			for i := range rep.Plan.Statuses {
				if rep.Plan.Statuses[i].Reason.Code == cluster.ReasonRule {
					refused++
				}
			}
		}
		for range draw("submissions", 5, 25) {
			n := draw("gang", 1, 4)
			account := rapid.SampledFrom([]string{"a", "a1", "a11", "a2", "b", "b1"}).Draw(rt, "account")
			ids = append(ids, w.submit(account, n, cluster.Span(draw("runs", 1, 200))*minute, func(j *sim.Work) {
				j.User, j.QOS = rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user"), rapid.SampledFrom([]string{"normal", "high"}).Draw(rt, "QOS")
				if j.Limit = 4 * hour; rapid.Bool().Draw(rt, "short") {
					j.Limit = hour
				}
				if n > 1 && len(nodes) > 1 && rapid.IntRange(0, 3).Draw(rt, "two nodes") == 0 {
					j.Request.Nodes, j.Request.PerNode, j.Request.Size = 2, n/2, cluster.Whole(n/2*2)
				}
			}))
			w.Run(cluster.Span(draw("wait", 0, 30)) * minute)
			if rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(rt, "another limit") == 7 {
				limits = drawLimits(rt)
				w.SetLimits(limits)
				changed = w.Now()
			}
		}
		w.Run(4 * hour)
	})
	if least := seeds.Some(4, 100); granted < least || refused < least {
		t.Errorf("%d grants and %d jobs kept from starting by a rule: the property shows nothing", granted, refused)
	}
}

// beyond gives the limit of an account, for all its jobs together, that the running jobs exceed now that one has started; "" = none.
// QOS may decide in the place of accounts, so that only resources count on which no QOS has such a limit.
func beyond(w *world, l *cluster.Limits, ids []cluster.JobID, started cluster.JobID) string {
	parent := map[string]string{}
	for _, a := range nested {
		parent[a.Name] = a.Parent
	}
	jobs, gpus := map[string]int64{}, map[string]int64{}
	for _, id := range ids { // the started one is not among them if it starts as it is submitted
		if j := w.Job(id); j.State == cluster.Running {
			for at := j.Account; at != ""; at = parent[at] {
				jobs[at]++
				gpus[at] += int64(j.GPUsHeld())
			}
		}
	}
	under := map[string]bool{}
	for at := w.Job(started).Account; at != ""; at = parent[at] {
		under[at] = true
	}
	for _, a := range l.Associations {
		for _, c := range a.Caps {
			n := gpus[a.Account]
			if c.TRES == "" {
				n = jobs[a.Account]
			}
			byQOS := slices.ContainsFunc(l.QOS, func(q cluster.QOS) bool {
				return slices.ContainsFunc(q.Caps, func(o cluster.Cap) bool { return o.Rule == c.Rule && o.TRES == c.TRES })
			})
			if a.User == "" && under[a.Account] && !byQOS && (c.TRES == "" || c.TRES == "gres/gpu") && n > c.Max {
				return fmt.Sprintf("account %s has %s, and uses %d", a.Account, c, n)
			}
		}
	}
	return ""
}
