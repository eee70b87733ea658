package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A coordinator can make sub-accounts, give them fairshare=parent and other names: the other tenant keeps its half.
func TestSubAccountsTakeNothingFromOthers(t *testing.T) {
	for _, gang := range seeds.Few(1, 8, 1) {
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

// It does not matter to others which of the accounts below an account want GPUs: what one of them leaves goes to the others
// below the account first. So a coordinator gains nothing by spreading jobs over all of them, and nobody loses who does not.
func TestIdleSubAccountsLeaveTheirPartToTheirSiblings(t *testing.T) {
	seeds.Slow(t)
	for _, c := range []struct {
		name         string
		few          int // GPUs that the other account below vision wants
		divide       string
		gang         int
		returns      bool // it wants them from the middle on
		least, keeps float64
	}{
		{"an idle one", 0, "", 1, false, 47, 0},
		{"an idle one, gangs", 0, "", 4, false, 47, 0},
		{"one that wants little", 2, "", 1, false, 47, 0},
		{"one that comes back", 24, "", 1, true, 47, 23},
		{"an idle one, with an allocation by model", 0, "gavel:las", 1, false, 47, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := []string{"b", "rest"}
			for i := range 7 {
				names = append(names, fmt.Sprintf("x%d", i))
			}
			set := simtest.Product()
			set.Interval, set.Divide = minute, c.divide
			w := newWorld(t, set, []int{8, 8}, names...)
			w.Rules.TenantLevel = 2
			w.alter = func(s *cluster.Observation) {
				s.Accounts = []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}, {Name: "vision", Parent: "root", Shares: 1},
					{Name: "b", Parent: "vision", Shares: 1}, {Name: "rest", Parent: "vision", Shares: 1}}
				for _, name := range names[2:] {
					s.Accounts = append(s.Accounts, cluster.Account{Name: name, Parent: "nlp", Shares: 1})
				}
			}
			for _, name := range names[2:] {
				w.Submit(name, 24/c.gang, c.gang, forever)
			}
			w.Submit("b", 24/c.gang, c.gang, forever)
			if !c.returns && c.few > 0 {
				w.Submit("rest", c.few, 1, forever)
			}
			w.Run(6 * hour)
			half := w.Used("b")
			if c.returns {
				w.Submit("rest", c.few, 1, forever)
			}
			w.Run(6 * hour)
			all := cluster.GPUTime(0)
			for _, p := range w.Last.State.Ledger.Pools {
				all += p.Capacity
			}
			percent := func(time, of cluster.GPUTime) float64 { return 100 * float64(time) / float64(of) }
			if got := percent(w.Used("b")+w.Used("rest"), all); got < c.least {
				t.Errorf("the accounts below vision have %.1f %% of all GPU time, want their half", got)
			}
			if got := percent(w.Used("b")-half, all/2); c.returns && (got < c.keeps || got > 27) {
				t.Errorf("from the return of its sibling on b has %.1f %%, want a quarter", got)
			}
			if got := percent(w.Used("rest"), all/2); c.returns && got < c.keeps-2 {
				t.Errorf("the sibling that came back has %.1f %%, want a quarter", got)
			}
		})
	}
}
