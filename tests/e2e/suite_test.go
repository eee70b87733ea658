package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/clustertest"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// stage is a real Slurm as the suite of loop.Cluster wants it.
type stage struct {
	*slurm.Client
	r *rig
}

var userOf = map[string]string{"nlp": "alice", "vision": "bob", "third": "dan"}

// Observe looks, and holds slurmctld's clock against this host's, which it shares. Slurm tells whole seconds.
func (s stage) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	s.r.t.Helper()
	seen, err := s.Client.Observe(ctx, since)
	if apart := seen.Clock.Sub(seen.Now); err == nil && max(apart, -apart) > 2*cluster.Second {
		s.r.t.Errorf("slurmctld's clock is read as %v away from the host's", apart)
	}
	return seen, err
}

func (s stage) Submit(t *testing.T, w clustertest.Work) cluster.JobID {
	t.Helper()
	gres := fmt.Sprintf("--gres=gpu:%d", w.GPUs)
	if w.Model != "" {
		gres = fmt.Sprintf("--gres=gpu:%s:%d", w.Model, w.GPUs)
	}
	if w.Shards > 0 {
		gres = fmt.Sprintf("--gres=shard:%d", w.Shards)
	}
	args := []string{"-A", w.Account, gres, "-t", "60"}
	if w.Limit > 0 {
		args = append(args, "-t", strconv.Itoa(int(w.Limit.Minutes())))
	}
	if w.Gated {
		args = append(args, "--begin=now+1hour")
	}
	if w.Locked {
		args = append(args, "-L", license+":1")
	}
	if w.Array > 0 {
		args = append(args, fmt.Sprintf("--array=0-%d", w.Array-1))
	}
	if w.NoRequeue {
		args = append(args, "--no-requeue")
	}
	if w.Shares {
		args = append(args, "--comment=share=yes")
	}
	id, err := s.r.Sbatch(s.r.ctx(), userOf[w.Account], sleeps(w.Seconds), args...)
	if err != nil {
		t.Fatal(err)
	}
	job, err := cluster.ParseJobID(strings.TrimSpace(id))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (s stage) Cancel(t *testing.T, id cluster.JobID) {
	t.Helper()
	if _, err := s.r.Exec(s.r.ctx(), "root", "scancel", id.String()); err != nil {
		t.Fatal(err)
	}
}

func (s stage) Pass() { time.Sleep(300 * time.Millisecond) }

func TestSlurmPassesTheClusterSuite(t *testing.T) {
	o := testcluster.Options{Accounts: []testcluster.Account{
		{Name: "nlp", Users: []string{"alice"}}, {Name: "vision", Users: []string{"bob"}}, {Name: "third", Users: []string{"dan"}}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		clustertest.Run(t, func(t *testing.T) clustertest.World {
			if out, _ := r.Exec(r.ctx(), "root", "squeue", "-h", "-o", "%i"); out != "" {
				if _, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, strings.Fields(out)...)...); err != nil {
					t.Fatal(err)
				}
			}
			r.until("the cluster is empty", 30*time.Second, func() bool { out, _ := r.Exec(r.ctx(), "root", "squeue", "-h"); return out == "" })
			// Where there is none it says so.
			_, _ = r.Exec(r.ctx(), "root", "scontrol", "delete", "reservation="+cluster.GateReservation)
			r.license = license
			return stage{r.newClient(), r}
		})
	})
}
