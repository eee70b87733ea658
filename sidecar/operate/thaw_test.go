package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Without a journal, the state file and the heartbeats on this host tell which jobs nobody resumes: Slurm is asked for those.
func TestThawWithoutAJournal(t *testing.T) {
	const quantum, interval = cluster.Minute, 10 * cluster.Second
	wait := quantum + 3*interval + late
	now := time.UnixMilli(int64(simtest.Start))
	for _, c := range []struct {
		name         string
		jobs         int          // on a GPU; 0 = two
		beat, ago    cluster.Span // since the last heartbeat; 0 = there was none. Since the job's turn ended.
		written      cluster.Span // since the state file was written
		away         cluster.Span // the turns of the others, where turns are not equal
		whole, all   bool         // the job takes no turns; all are resumed
		asks, cannot bool         // Slurm is asked; the state file cannot be read
	}{
		{name: "nobody leads", ago: cluster.Second, asks: true},
		{name: "nobody leads any more", beat: 3*interval + silent + cluster.Second, ago: cluster.Second, asks: true},
		{name: "a daemon leads", beat: 3 * interval, ago: wait},
		{name: "a daemon leads, and has forgotten a job", beat: 3 * interval, ago: wait + 1, asks: true},
		{name: "two others have their turns", jobs: 3, beat: 3 * interval, ago: wait + quantum},
		{name: "two others have had their turns", jobs: 3, beat: 3 * interval, ago: wait + quantum + 1, asks: true},
		{name: "another one has its longer turn", away: 2 * quantum, beat: 3 * interval, ago: wait + quantum},
		{name: "another one has had its longer turn", away: 2 * quantum, beat: 3 * interval, ago: wait + quantum + 1, asks: true},
		{name: "a daemon leads, and all are resumed", beat: 1, ago: 1, all: true, asks: true},
		{name: "another host's daemon leads", beat: 1, ago: cluster.Day, written: cluster.Hour + cluster.Second},
		{name: "it takes no turns", ago: cluster.Day, whole: true},
		{name: "the state file cannot be read", ago: cluster.Day, cannot: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := config.Default()
			cfg.Partitions, cfg.Interval, cfg.Placing.Sharing.Quantum = []string{"gpu"}, config.Duration(interval), config.Duration(quantum)
			if c.jobs > 0 {
				cfg.Placing.Sharing.Jobs = c.jobs
			}
			cfg.Files.State, cfg.Files.Heartbeats = filepath.Join(dir, "state"), dir
			cfg.Slurm.Address, cfg.Slurm.Retries = "unix://"+dir+"/none", 0
			at := cluster.InstantOf(now)
			job := daemon.Touched{ID: cluster.JobID{ID: 7}, User: "alice", Slice: &cluster.Slice{Shards: 2, At: at.Add(-c.ago), Turn: cluster.Turn{Away: c.away}}}
			if c.whole {
				job.Slice = nil
			}
			text, err := json.Marshal(daemon.State{Written: at.Add(-c.written), Jobs: []daemon.Touched{job}})
			if err != nil {
				t.Fatal(err)
			}
			text = append([]byte("fairlease state 1\n"), text...)
			if c.cannot {
				text = []byte("something else")
			}
			if err := os.WriteFile(cfg.Files.State, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.beat > 0 {
				beat := filepath.Join(dir, "gpu")
				if err := errors.Join(os.WriteFile(beat, nil, 0o600), os.Chtimes(beat, now, now.Add(-c.beat.Duration()))); err != nil {
					t.Fatal(err)
				}
			}
			var out, errs bytes.Buffer
			err = (&Thaw{Config: cfg, All: c.all, Errors: &errs, Now: now}).Do(t.Context(), &view.Page{Out: &out})
			var f *failure.Error
			switch asked := errors.As(err, &f) && strings.HasPrefix(f.What, "Slurm does not answer"); {
			case asked != c.asks, err != nil && !asked:
				t.Errorf("Slurm is asked: %v, want %v (%v)", asked, c.asks, err)
			case !asked && !strings.HasPrefix(out.String(), "resumed: 0 jobs"):
				t.Errorf("it says %q", &out)
			case !strings.Contains(errs.String(), "going on with "+cfg.Files.State), strings.Contains(errs.String(), "going on without it") != c.cannot:
				t.Errorf("it warns %q", &errs)
			}
		})
	}
}

// Only jobs are resumed that are suspended, that fairlease may have suspended, that are still the same job, and that have a part of a GPU.
func TestThaw(t *testing.T) {
	nodes := simtest.Nodes("n", "v100", 3, 1)
	for i := range nodes {
		nodes[i].Shards = 2
	}
	w := simtest.New(t, simtest.Product(), nodes, "nlp")
	submit := func(user string, request cluster.Request) cluster.JobID {
		return w.Virtual.Submit(sim.Work{User: user, Account: "nlp", Partition: "gpu", Runs: cluster.Hour, Request: request})
	}
	half := simtest.Shard(1, 2)
	paused, other, unknown, runs, whole := submit("alice", half), submit("bob", half), submit("alice", half), submit("alice", half), submit("alice", simtest.Gang(1))
	w.Advance(w.Now().Add(cluster.Second))
	suspended := []cluster.JobID{paused, other, unknown, whole}
	for _, id := range suspended {
		if out := w.Apply(t.Context(), []cluster.Action{{Verb: cluster.Suspend, ID: id}}); !out[0].OK {
			t.Fatalf("suspend job %s: %s", id, out[0].Error)
		}
	}
	var known []daemon.Touched
	for _, id := range []cluster.JobID{paused, other, runs, whole} {
		known = append(known, daemon.Touched{ID: id, User: "alice", Slice: &cluster.Slice{Shards: 1}})
	}
	done, err := thaw(t.Context(), w, known)
	if err != nil || !slices.Equal(done.Resumed, []cluster.JobID{paused}) || len(done.Failed) > 0 {
		t.Errorf("%+v, %v; want only job %s", done, err, paused)
	}
	for _, id := range suspended {
		if is := w.Job(id).State; (is == cluster.Running) != (id == paused) {
			t.Errorf("job %s is %s", id, is)
		}
	}
}
