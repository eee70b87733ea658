package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A coordinator can make sub-accounts, give them fairshare=parent and other names: the other tenant keeps its half.
func TestSubAccountsTakeNothingFromOthers(t *testing.T) {
	for _, gang := range []int{1, 8} {
		for _, c := range []struct {
			name  string
			subs  int
			names cluster.Span // how long a sub-account has its name; 0 = for ever
		}{{"six sub-accounts with parent", 6, 0}, {"another name every two hours", 1, 2 * hour}, {"six, with other names every two hours", 6, 2 * hour}} {
			t.Run(fmt.Sprintf("%s, gangs of %d", c.name, gang), func(t *testing.T) {
				names := []string{"b"}
				for i := range c.subs {
					names = append(names, fmt.Sprintf("x%d", i))
				}
				w := newWorld(t, simtest.Product(), []int{8, 8}, names...)
				w.Rules.TenantLevel = 2
				start := w.Now()
				now := func(account string) string { // its present name
					if c.names > 0 && account != "b" {
						return fmt.Sprintf("%s-%d", account, w.Now().Sub(start)/c.names)
					}
					return account
				}
				w.alter = func(s *cluster.Observation) {
					s.Accounts = []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}, {Name: "vision", Parent: "root", Shares: 1}, {Name: "b", Parent: "vision", Shares: 1}}
					for _, name := range names[1:] {
						s.Accounts = append(s.Accounts, cluster.Account{Name: now(name), Parent: "nlp", ViaParent: true})
					}
					s.Jobs = slices.Clone(s.Jobs)
					for i := range s.Jobs {
						s.Jobs[i].Account = now(s.Jobs[i].Account)
					}
				}
				for _, name := range names[1:] {
					w.Submit(name, 24/gang, gang, forever)
				}
				w.Submit("b", 24/gang, gang, forever)
				w.Run(12 * hour)
				all := cluster.GPUTime(0)
				for _, p := range w.Last.State.Ledger.Pools {
					all += p.Capacity
				}
				percent := 100 * float64(w.Used("b")) / float64(all)
				t.Logf("the other tenant has %.1f %%", percent)
				if percent < 47 {
					t.Errorf("the other tenant has %.1f %% of all GPU time, want its half", percent)
				}
			})
		}
	}
}
