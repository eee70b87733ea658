package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs that a rule of their partition forbids are due nothing, hold nothing and recall nobody: the other tenant has all GPUs.
func TestForbiddenJobsCostOthersNothing(t *testing.T) {
	for _, c := range []struct {
		rule   string
		change func(*cluster.Partition)
		job    func(*sim.Work)
	}{
		{"AllowAccounts=b", func(p *cluster.Partition) { p.Rules.AllowAccounts = []string{"b"} }, nil},
		{"DenyAccounts=a", func(p *cluster.Partition) { p.Rules.DenyAccounts = []string{"a"} }, nil},
		{"MaxTime=04:00:00", func(p *cluster.Partition) { p.MaxTime = 4 * hour }, func(j *sim.Work) { j.Limit = 5 * hour }},
		{"MaxTime=01:00:00", func(p *cluster.Partition) { p.MaxTime = hour }, func(j *sim.Work) { j.MinLimit = 61 * minute }},
		{"MaxNodes=1", func(p *cluster.Partition) { p.Rules.MaxNodes = 1 }, func(j *sim.Work) { j.Request.Nodes, j.Request.Size = 2, cluster.Whole(2) }},
	} {
		w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
		w.alter = func(s *cluster.Observation) {
			s.Partitions = slices.Clone(s.Partitions)
			c.change(&s.Partitions[0])
		}
		four := func(j *sim.Work) { j.Limit = 4 * hour }
		honest, other := w.submit("b", 4, 3*hour, four), w.submit("b", 4, 3*hour, four)
		w.Run(minute)
		var flood []cluster.JobID
		for range 12 {
			flood = append(flood, w.submit("a", 1, hour, func(j *sim.Work) {
				if j.Limit = 2 * hour; c.job != nil {
					c.job(j)
				}
			}))
		}
		w.Run(2 * hour)
		w.state(honest, cluster.Running)
		w.state(other, cluster.Running)
		if r := w.why(flood[0], cluster.ReasonRule); !strings.Contains(r.Note, c.rule) {
			t.Errorf("%s: the reason is %+v", c.rule, r)
		}
		if n := len(w.done(cluster.Grant, flood...)) + len(w.done(cluster.Reclaim, honest, other)); n > 0 {
			t.Errorf("%s: %d grants and requeues", c.rule, n)
		}
		if due := w.Standing("a", "v100").Demand; due != 0 {
			t.Errorf("%s: jobs that cannot start count as a demand of %d", c.rule, due)
		}
		w.alter = func(s *cluster.Observation) { s.Unchanged = false } // the administrator has changed the rule
		w.Run(10 * minute)
		if n := len(w.done(cluster.Grant, flood...)); n == 0 {
			t.Errorf("%s: no job is granted GPUs when the rule is gone", c.rule)
		}
		w.books()
	}
}
