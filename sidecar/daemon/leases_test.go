package daemon

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// leasedWorld is a round's snapshot with one job in each state of a lease, and its leases.
func leasedWorld() (cluster.Snapshot, []cluster.Lease) {
	s := cluster.Snapshot{Settings: cluster.Settings{Notice: cluster.Minute}}
	var leases []cluster.Lease
	for k, x := range []struct {
		state   cluster.LeaseState
		control cluster.Control
	}{
		{cluster.Active, cluster.FullControl}, {cluster.Noticed, cluster.FullControl}, {cluster.Ending, cluster.FullControl},
		{cluster.Active, cluster.NoReclaim}, {cluster.Granted, cluster.FullControl}, {cluster.Active, cluster.ObserveOnly}, {cluster.Active, cluster.Unmanaged},
	} {
		key := cluster.JobKey(k + 1)
		s.Cases = append(s.Cases, cluster.Case{Job: cluster.Job{ID: cluster.JobID{ID: int64(100 + k)}}, Record: cluster.Record{Key: key}, Control: x.control})
		leases = append(leases, cluster.Lease{Job: key, State: x.state, Pool: "v100", Size: cluster.Whole(2), End: cluster.Instant(1000 * key)})
	}
	leases[1].Notice = 3 * cluster.Minute
	return s, append(leases, cluster.Lease{Job: 99, State: cluster.Active})
}

// A job learns the state of its lease; one that waits, that is observed or that is not managed has none.
func TestLeasesAsJobsLearnThem(t *testing.T) {
	s, leases := leasedWorld()
	term := func(end cluster.Instant, notice cluster.Span, renewed telemetry.Renewal) telemetry.Term {
		return telemetry.Term{End: end, Notice: notice, GPUs: cluster.CountOf(2), Model: "v100", Renewed: renewed}
	}
	want := map[cluster.JobID]telemetry.Term{
		{ID: 100}: term(1000, cluster.Minute, telemetry.Undecided), {ID: 101}: term(2000, 3*cluster.Minute, telemetry.RenewedNo),
		{ID: 102}: term(3000, cluster.Minute, telemetry.RenewedNo), {ID: 103}: term(4000, cluster.Minute, telemetry.RenewedYes),
	}
	if got := leased(&s, leases); !maps.Equal(got, want) {
		t.Errorf("jobs learn %+v, want %+v", got, want)
	}
}

// The leases of the last round are known until the next one, also over quiet rounds, and not after the lead is lost.
func TestLeasesArePublished(t *testing.T) {
	cfg, err := config.Parse("f.yaml", []byte("models: {progress: {leases: "+t.TempDir()+"}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rounds := (&Daemon{Config: cfg, Log: zerolog.Nop()}).open().rounds
	d := &rounds.progress
	closing, err := d.listen(t.Context(), &cfg.Models.Progress)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	written := func() string {
		for d.writing.Load() {
			runtime.Gosched()
		}
		text, _ := os.ReadFile(filepath.Join(cfg.Models.Progress.Leases, "100.json"))
		return string(text)
	}
	_, known := d.lease(cluster.JobID{ID: 100})
	d.publish(&cluster.Snapshot{}, &loop.Report{Quiet: true})
	if known || written() != "" {
		t.Error("a lease is known before any round")
	}
	s, leases := leasedWorld()
	d.publish(&s, &loop.Report{Plan: cluster.Plan{State: cluster.State{Leases: leases}}})
	d.publish(&s, &loop.Report{Quiet: true})
	if got, ok := d.lease(cluster.JobID{ID: 100}); !ok || got.End != 1000 || !strings.Contains(written(), `"ends":1,`) {
		t.Errorf("job 100 learns %+v, %v; its file says %s", got, ok, written())
	}
	rounds.leave()
	if _, ok := d.lease(cluster.JobID{ID: 100}); ok {
		t.Error("a daemon that does not lead tells jobs their leases")
	}
}
