package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// get asks slurmrestd.
func (r *rig) get(path string) string {
	r.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.RestSocket())
	}}}
	defer client.CloseIdleConnections()
	ask, err := http.NewRequestWithContext(r.ctx(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := client.Do(ask)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s, %v\n%s", path, answer.Status, err, text)
	}
	return string(text)
}

// documented gives the lines with which fairlease simulate --help gets the history, as a line of shell
// and as a path for slurmrestd.
func (r *rig) documented() (sacct, path string) {
	r.t.Helper()
	help, err := r.fairlease("", "simulate", "--help")
	if err != nil {
		r.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^  (TZ=UTC sacct .*) > history\.txt$[^$]*^  curl --unix-socket \S+ 'http://localhost(/\S+)' > history\.json$`).FindStringSubmatch(help)
	if found == nil {
		r.t.Fatalf("there are no such lines in\n%s", help)
	}
	return found[1], found[2]
}

// history is what jobs were, by both ways of asking for it.
func (r *rig) history() (sacct, slurmdb *trace.Trace, files [2]string) {
	r.t.Helper()
	line, path := r.documented()
	read := func(name, text string) *trace.Trace {
		file := filepath.Join(r.t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
		files[0], files[1] = files[1], file
		t, err := trace.Open(file, trace.Options{})
		if err != nil {
			r.t.Fatalf("%v\n%s", err, text)
		}
		if t.Counts.Bad > 0 {
			r.t.Errorf("%s: %+v\n%s", name, t.Bad, text)
		}
		return t
	}
	sacct, slurmdb = read("history.txt", r.asks("root", line)), read("history.json", r.get(path))
	return sacct, slurmdb, files
}

// The documented commands for sacct and slurmrestd give equal traces of real jobs, and the jobs'
// true values.
func TestHistoryReads(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		array := r.submit("alice", sleeps(2), "--gres=gpu:k80:1", "--array=0-3%2", "-J", "sweep")
		again := r.submit("alice", "#!/bin/bash\n[ \"$SLURM_RESTART_COUNT\" = 2 ] || exec sleep 600\nexec sleep 2\n", "--gres=gpu:v100:1", "-J", "again and again")
		cancelled := r.submit("bob", sleeps(600), "--gres=gpu:k80:2")
		failed := r.submit("bob", "#!/bin/bash\nsleep 1\nexit 3\n", "--gres=gpu:k80:1", "--mem=300M")
		cpus := r.submit("bob", sleeps(2))
		gang := r.submit("carol", sleeps(2), "-N2", "--gres=gpu:v100:3")
		parts := r.submit("carol", sleeps(2), "--gres=gpu:v100:1", ":", "--gres=gpu:k80:2")
		halted := r.submit("carol", "#!/bin/bash\nuntil [ -e go ]; do sleep 0.2; done\n", "--gres=gpu:k80:1")
		for _, id := range []string{again, cancelled, halted} {
			r.waitState(id, time.Minute, "RUNNING")
		}
		never := r.submit("bob", sleeps(600), "--gres=gpu:k80:4", "-N2")
		r.asks("root", "scontrol suspend "+halted)
		for attempt := range 2 {
			r.asks("root", "scontrol requeue "+again)
			r.until("the job runs again", time.Minute, func() bool {
				j, _ := r.Job(r.ctx(), again)
				// Slurm lets it wait for two minutes, counted from when it has cleaned up. A node refuses
				// what starts again in the very second in which it was ended.
				queued, err := time.ParseInLocation("2006-01-02T15:04:05", j["SubmitTime"], time.Local)
				if err == nil && j["JobState"] == "PENDING" && time.Since(queued) > 2*time.Second {
					_, _ = r.Exec(r.ctx(), "root", "scontrol", "update", "jobid="+again, "starttime=now")
				}
				return j["JobState"] == "RUNNING" && j["Restarts"] == strconv.Itoa(attempt+1)
			})
		}
		r.asks("root", "scontrol resume "+halted+" && scancel "+never+" && scancel "+cancelled)
		r.until("the halted job has run for a while", 30*time.Second, func() bool { return r.elapsed(halted) >= 2 })
		r.asks("carol", "touch go")
		r.until("all jobs are over", 2*time.Minute, func() bool {
			out, err := r.Exec(r.ctx(), "root", "squeue", "-h")
			return err == nil && out == ""
		})
		goesOn := r.submit("alice", sleeps(600), "--gres=gpu:v100:2")
		r.waitState(goesOn, time.Minute, "RUNNING")

		var sacct, slurmdb *trace.Trace
		r.until("slurmdbd knows what is over", 30*time.Second, func() bool {
			sacct, slurmdb, _ = r.history()
			return sacct.Counts.Unfinished == 1 && slurmdb.Counts.Unfinished == 1
		})
		want := map[string]trace.Job{
			again:        {Tenant: "nlp", User: "alice", Name: "again and again", GPUs: 1, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "v100", Outcome: trace.Completed},
			cancelled:    {Tenant: "vision", User: "bob", Name: "sbatch", GPUs: 2, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "k80", Outcome: trace.Cancelled},
			failed:       {Tenant: "vision", User: "bob", Name: "sbatch", GPUs: 1, Nodes: 1, CPUs: 1, MemoryMB: 300, Model: "k80", Outcome: trace.Failed},
			gang:         {Tenant: "nlp", User: "carol", Name: "sbatch", GPUs: 6, Nodes: 2, CPUs: 2, MemoryMB: 200, Model: "v100", Outcome: trace.Completed},
			parts + "+0": {Tenant: "nlp", User: "carol", Name: "sbatch", GPUs: 1, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "v100", Outcome: trace.Completed},
			parts + "+1": {Tenant: "nlp", User: "carol", Name: "sbatch", GPUs: 2, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "k80", Outcome: trace.Completed},
			halted:       {Tenant: "nlp", User: "carol", Name: "sbatch", GPUs: 1, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "k80", Outcome: trace.Completed},
			goesOn:       {Tenant: "nlp", User: "alice", Name: "sbatch", GPUs: 2, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "v100"},
		}
		for i := range 4 {
			want[fmt.Sprintf("%s_%d", array, i)] = trace.Job{Tenant: "nlp", User: "alice", Name: "sweep", GPUs: 1, Nodes: 1, CPUs: 1, MemoryMB: 100, Model: "k80", Outcome: trace.Completed}
		}
		for _, tr := range []*trace.Trace{sacct, slurmdb} {
			got := map[string]trace.Job{}
			for _, j := range tr.Jobs {
				if j.Runs <= 0 || j.Runs > 5*cluster.Minute {
					t.Errorf("%s: job %s ran for %s", tr.Format, j.ID, j.Runs)
				}
				id := j.ID
				j.ID, j.Submit, j.Runs, j.Limit = "", 0, 0, j.Limit-cluster.Hour
				got[id] = j
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -want +got\n%s", tr.Format, d)
			}
			if n := tr.Counts; n.CPUOnly != 1 || n.NoRun != 1 || n.Joined != 2 {
				t.Errorf("%s: %+v; want job %s without GPUs, job %s that never ran, and two attempts joined", tr.Format, n, cpus, never)
			}
		}

		// A query for a part of the history gives whole jobs.
		_, path := r.documented()
		r.until("the job has run for five seconds", 30*time.Second, func() bool { return r.elapsed(goesOn) >= 5 })
		before, _, _ := strings.Cut(path, "start_time=")
		least := r.elapsed(goesOn)
		part := filepath.Join(t.TempDir(), "late")
		if err := os.WriteFile(part, []byte(r.get(fmt.Sprintf("%sstart_time=%d", before, time.Now().Unix()-2))), 0o600); err != nil {
			t.Fatal(err)
		}
		late, err := trace.Open(part, trace.Options{})
		if err != nil || len(late.Jobs) != 1 || late.Jobs[0].Runs < cluster.Span(least)*cluster.Second {
			t.Errorf("the history of two seconds, in which job %s had run for %d s: %+v, %v", goesOn, least, late, err)
		}

		r.asks("root", "scancel "+goesOn)
		var files [2]string
		r.until("slurmdbd knows that the last job is over", 30*time.Second, func() bool {
			sacct, slurmdb, files = r.history()
			return sacct.Counts.Unfinished == 0 && slurmdb.Counts.Unfinished == 0
		})
		if d := cmp.Diff(sacct.Jobs, slurmdb.Jobs); d != "" || !sacct.Epoch.Equal(slurmdb.Epoch) {
			t.Errorf("sacct counts from %s, slurmrestd from %s\n%s", sacct.Epoch, slurmdb.Epoch, d)
		}
		if off := time.Since(sacct.Epoch); off < 0 || off > 10*time.Minute {
			t.Errorf("the first job was submitted %s ago", off)
		}
		var said [2]string
		for i, file := range files {
			if said[i], err = r.fairlease("", "simulate", file, "--nodes", "2x4:v100+2x4:k80"); err != nil {
				t.Errorf("%v\n%s", err, said[i])
			}
		}
		if said[0] != said[1] || !strings.Contains(said[0], "history: 12 jobs of 2 tenants") || !strings.Contains(said[0], "1 jobs without GPUs, 1 jobs that never ran") {
			t.Errorf("by sacct:\n%s\nby slurmrestd:\n%s", said[0], said[1])
		}
	})
}

// elapsed gives the seconds for which a job has run, as slurmdbd has it.
func (r *rig) elapsed(id string) (seconds int) {
	r.t.Helper()
	_, _ = fmt.Sscan(r.asks("root", "sacct -nXP -o ElapsedRaw -j "+id), &seconds)
	return seconds
}
