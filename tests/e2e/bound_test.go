package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// ways are the ways in which the first comer to a quiet hour asks for GPUs that it does not give back; GPUs of each job.
var ways = []struct {
	name string
	gpus int
	args []string // of sbatch; nil = salloc
}{
	{"jobs that never save", 1, []string{"--gres=gpu:1"}},
	{"no-requeue", 1, []string{"--no-requeue", "--gres=gpu:1"}},
	{"contiguous", 2, []string{"--contiguous", "-N2", "--gres=gpu:1"}},
	{"heterogeneous", 4, []string{"--gres=gpu:2", ":", "-A", "nlp", "-t", "60", "--gres=gpu:2"}},
	{"heterogeneous behind CPUs", 4, []string{"-n1", ":", "-A", "nlp", "-t", "60", "--gres=gpu:4"}},
	{"a session", 4, nil},
}

// Both tenants have wanted GPUs today. Then nobody does, and one of them comes first, with jobs that keep what they get. It gets its half, and the
// other one, which comes back later, the other half at once.
func TestFirstComerKeepsItsHalfOnly(t *testing.T) {
	o := eightGPUs
	o.Plugin = testcluster.PluginC
	onOne(t, "forky", o, func(t *testing.T, r *rig) {
		s := &r.settings
		s.Term, s.StopAllowance, s.StopOverheadMilli, s.StartCost = 12*cluster.Second, 12*cluster.Second, 20, cluster.Second
		s.BindQuiet, s.BindHorizon, s.BindMaxPercent, s.MinLease = 12*cluster.Hour, 4, 5, s.Term
		r.govern()
		r.heard()
		end := func() {
			for _, user := range []string{"alice", "bob"} {
				if _, err := r.Exec(r.ctx(), "root", "scancel", "-u", user); err != nil {
					t.Fatal(err)
				}
			}
			r.until("all GPUs are free", time.Minute, func() bool { return r.holds("nlp")+r.holds("vision") == 0 })
		}
		for range 8 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1")
		}
		r.halves(4, time.Minute, r.holds)
		for _, way := range ways {
			end()
			began := time.Now()
			ctx, leave := context.WithCancel(r.ctx())
			for range 12 / way.gpus {
				if way.args != nil {
					r.submit("alice", sleeps(3600), append([]string{"-A", "nlp", "-t", "60"}, way.args...)...)
					continue
				}
				go r.Exec(ctx, "alice", "salloc", "--no-shell", "-A", "nlp", "-t", "60", fmt.Sprintf("--gres=gpu:%d", way.gpus)) // its job decides
			}
			most := 0
			r.until(way.name+": the first comer has its half, for two terms", time.Minute+4*s.Term.Duration(), func() bool {
				most = max(most, r.holds("nlp"))
				return r.holds("nlp") >= 4 && time.Since(began) > 3*s.Term.Duration()
			})
			if most > 4 && way.name != ways[0].name { // which may be stopped while they are young
				t.Errorf("%s: the first comer held %d GPUs", way.name, most)
			}
			for range 8 {
				r.submit("bob", sleeps(3600), "-A", "vision", "-t", "60", "--gres=gpu:1")
			}
			began = time.Now()
			r.until(way.name+": the other tenant has its half", 2*s.Term.Duration()+30*time.Second, func() bool { return r.holds("vision") >= 4 })
			t.Logf("%s: the other tenant has its half after %s", way.name, time.Since(began).Round(time.Second))
			leave()
		}
	})
}
