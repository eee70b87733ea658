package explain

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestWhoRequeuedAJob(t *testing.T) {
	at := cluster.Instant(1_800_000_000_000)
	w := Words{Now: at}
	clock := w.Time(at)
	for _, c := range []struct {
		x        *cluster.Requeues
		restarts int
		want     string
	}{
		{nil, 3, ""},
		{&cluster.Requeues{Count: 1, At: at}, 1, "by its owner or an administrator at " + clock + ", not by fairlease"},
		{&cluster.Requeues{Count: 2, At: at}, 5, "by its owner or an administrator at " + clock + ", not by fairlease; of its 5 requeues, 2 were not by fairlease"},
		{&cluster.Requeues{Count: 1, At: at, Cause: cluster.ByNodeFailure, Node: "v1"}, 1, "as its node v1 failed or was drained at " + clock + ", not by fairlease"},
		{&cluster.Requeues{Count: 1, At: at, Cause: cluster.BySlurm}, 1, "by its owner, an administrator or Slurm itself at " + clock + ", not by fairlease"},
		{&cluster.Requeues{Count: 1}, 1, "by its owner or an administrator, not by fairlease"},
	} {
		if got := w.Requeued(c.x, c.restarts); got != c.want {
			t.Errorf("%+v: %q, want %q", c.x, got, c.want)
		}
	}
}
