package e2e

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/telemetry"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// inTurns are the options of a cluster of one node with GPUs whose jobs may take turns.
func inTurns(gpus int) testcluster.Options {
	return testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC, ExtraConf: "PreemptParameters=suspend_grace_time=0\n",
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: gpus, Shards: 4 * gpus}}}
}

// shares submits a job that may take turns for each tenant, with further options, and returns their users by job. They are held: see begin.
func (r *rig) shares(script string, args ...string) map[string]string {
	of := map[string]string{}
	for user, tenant := range map[string]string{"alice": "nlp", "bob": "vision"} {
		of[r.submit(user, script, append([]string{"-A", tenant, "--hold", "--requeue", "--comment=share=yes,mem.v100=14g,saves=term"}, args...)...)] = user
	}
	return of
}

// begin releases held jobs all at once. One that a round finds alone starts on a whole GPU, and shares it only after its next start.
func (r *rig) begin(jobs iter.Seq[string]) {
	r.t.Helper()
	if out, err := r.Exec(r.ctx(), "root", "scontrol", "release", strings.Join(slices.Sorted(jobs), ",")); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// counts is a job that counts tenths of seconds in which it goes on.
const counts = `#!/bin/bash
while sleep 0.1; do echo; done >count-$SLURM_JOB_ID
`

// Two tenants want twice as many GPUs as there are. All jobs that may take turns go on within every two turns, and each tenant has its share.
// The users' own requests are restored, and no job stays suspended once they are released.
func TestSlices(t *testing.T) {
	onBoth(t, inTurns(2), func(t *testing.T, r *rig) {
		const quantum = 8 * cluster.Second
		r.settings.Term = cluster.Minute
		r.settings.Slices = &cluster.Slices{Quantum: quantum, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		r.govern()
		r.heard()
		of, asked := map[string]string{}, map[string]string{} // by job: its user, and the user's words
		for _, gres := range []string{"gpu:1", "gpu:v100:1"} {
			for id, user := range r.shares(counts, "--gres="+gres) {
				of[id], asked[id] = user, gres
			}
		}
		r.begin(maps.Keys(of))
		within(t, "alice's part of what jobs did [%]", r.alicesPart(of, quantum, 2), 50, 10)

		// Jobs that want whole GPUs take their turn: those that leave ask for what their users wrote.
		for range 3 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", "--requeue")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1", "--requeue")
		}
		r.until("a job that took turns waits again, and asks for its GPU", 3*r.settings.Term.Duration(), func() bool {
			for id := range of {
				if j, err := r.Job(r.ctx(), id); err == nil && r.count(cluster.Reclaim, id) > 0 && j["JobState"] == "PENDING" && strings.Contains(j["TresPerNode"], asked[id]) {
					return true
				}
			}
			return false
		})
		r.halt()
		if out, err := r.fairlease(r.configure(""), "release"); err != nil {
			t.Fatalf("release: %v\n%s", err, out)
		}
		for id := range of {
			switch j, err := r.Job(r.ctx(), id); {
			case err != nil:
				t.Fatal(err)
			case j["JobState"] == "SUSPENDED":
				t.Errorf("job %s is suspended after the release", id)
			case j["JobState"] == "PENDING" && !strings.Contains(j["TresPerNode"], asked[id]):
				t.Errorf("job %s asks for %q after the release, its user for %q", id, j["TresPerNode"], asked[id])
			}
		}
	})
}

// alicesPart measures turns on so many GPUs: it gives alice's part of what jobs did, in percent, and fails if a job stands still for four quanta.
func (r *rig) alicesPart(of map[string]string, quantum cluster.Span, gpus int) float64 {
	t := r.t
	t.Helper()
	r.until("all take turns", 3*time.Minute, func() bool {
		for id := range of {
			if r.count(cluster.Suspend, id) == 0 {
				return false
			}
		}
		return true
	})
	// Each job is measured from the beginning of one of its turns to that of another: a part of a cycle would count for one side.
	type turn struct {
		at          time.Time
		ran, counts int // by Slurm [s], and by the job [tenths of s]
	}
	first, last, now := map[string]turn{}, map[string]turn{}, map[string]turn{}
	suspended, went, longest := map[string]bool{}, map[string]time.Time{}, map[string]int{}
	r.poll("five turns of each job pass", 4*time.Minute, 200*time.Millisecond, func() bool {
		enough := true
		for id, user := range of {
			was := now[id]
			j, err := r.Job(r.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			var hours, minutes, seconds int
			if _, err := fmt.Sscanf(j["RunTime"], "%d:%d:%d", &hours, &minutes, &seconds); err != nil {
				t.Fatalf("job %s has run for %q: %v", id, j["RunTime"], err)
			}
			now[id] = turn{time.Now(), hours*3600 + minutes*60 + seconds, strings.Count(r.output(user, "count-"+id), "\n")}
			if now[id].counts > was.counts {
				went[id] = now[id].at
			}
			longest[id] = max(longest[id], int(now[id].at.Sub(went[id]).Seconds()))
			paused := j["JobState"] == "SUSPENDED"
			if suspended[id] && !paused {
				if last[id] = now[id]; first[id].at.IsZero() {
					first[id] = now[id]
				}
			}
			suspended[id] = paused
			enough = enough && !first[id].at.IsZero() && last[id].at.Sub(first[id].at) >= 9*quantum.Duration()
		}
		return enough
	})
	share, all := map[string]float64{}, 0.0
	for id, user := range of {
		ran, took := float64(last[id].ran-first[id].ran), last[id].at.Sub(first[id].at).Seconds()
		counts := float64(last[id].counts-first[id].counts) / 10
		t.Logf("job %s of %s: ran for %.0f of %.0f s, counted %.0f s, stood still at most %d s", id, user, ran, took, counts, longest[id])
		share[user] += ran / took
		all += counts / took
		if limit := 4 * int(quantum/cluster.Second); longest[id] > limit {
			t.Errorf("job %s stood still for %d s, want at most %d", id, longest[id], limit)
		}
	}
	if all > 1.3*float64(gpus) {
		t.Errorf("jobs went on as on %.1f GPUs, there are %d", all, gpus)
	}
	return 100 * share["alice"] / (share["alice"] + share["bob"])
}

// Of two tenants with weights 2 and 1 and a job each, one has twice the time of the other on their GPU, and is charged twice as much.
func TestSlicesByWeight(t *testing.T) {
	o := inTurns(1)
	o.Accounts = tenants(2, 1)
	onBoth(t, o, func(t *testing.T, r *rig) {
		const quantum = 8 * cluster.Second
		r.settings.Term = 10 * cluster.Minute
		r.settings.Slices = &cluster.Slices{Quantum: quantum, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		r.govern()
		r.heard()
		of := r.shares(counts, "--gres=gpu:1")
		r.begin(maps.Keys(of))
		within(t, "alice's part of what jobs did [%]", r.alicesPart(of, quantum, 1), 100*2./3, 7)
		received := map[string]cluster.GPUTime{}
		r.poll("four quanta pass", time.Minute, time.Second, func() bool {
			now := map[string]cluster.GPUTime{}
			for rec := range r.plan().State.All() {
				now[of[rec.ID.String()]] = rec.Alloc
			}
			if len(received) == 0 {
				received = now
			}
			if now["alice"]+now["bob"]-received["alice"]-received["bob"] < cluster.Times(1, 4*quantum) {
				return false
			}
			within(t, "alice's part of what is charged [%]", 100*float64(now["alice"]-received["alice"])/float64(now["alice"]+now["bob"]-received["alice"]-received["bob"]), 100*2./3, 1)
			return true
		})
	})
}

// Three jobs take turns on a GPU in a ring: each goes on within every three turns, one at a time, and one that is alone runs on.
func TestSlicesOfThree(t *testing.T) {
	o := inTurns(1)
	o.Nodes[0].Shards = 3
	onBoth(t, o, func(t *testing.T, r *rig) {
		const quantum = 8 * cluster.Second
		r.settings.Term = 10 * cluster.Minute
		r.settings.Slices = &cluster.Slices{Quantum: quantum, Jobs: 3, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		r.govern()
		r.heard()
		var ids []string
		for range 3 {
			ids = append(ids, r.submit("alice", counts, "-A", "nlp", "--hold", "--requeue", "--comment=share=yes,mem.v100=9g,saves=term", "--gres=gpu:1"))
		}
		r.begin(slices.Values(ids))
		count := func(id string) int { return strings.Count(r.output("alice", "count-"+id), "\n") }
		r.until("all take turns", 3*time.Minute, func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return r.count(cluster.Suspend, id) == 0 || r.count(cluster.Resume, id) == 0 })
		})
		begin, from, last, went := time.Now(), map[string]int{}, map[string]int{}, map[string]time.Time{}
		for _, id := range ids {
			from[id], last[id], went[id] = count(id), count(id), begin
		}
		const cycles = 3
		r.poll("three turns of each job pass", 3*time.Minute, 200*time.Millisecond, func() bool {
			for _, id := range ids {
				if n := count(id); n > last[id] {
					last[id], went[id] = n, time.Now()
				} else if stood := time.Since(went[id]); stood > 5*quantum.Duration() {
					t.Fatalf("job %s has stood still for %s", id, stood)
				}
			}
			return time.Since(begin) >= cycles*3*quantum.Duration()
		})
		sum, took := 0.0, time.Since(begin).Seconds()
		for _, id := range ids {
			did := float64(last[id]-from[id]) / 10
			sum += did
			t.Logf("job %s counted %.0f s of %.0f", id, did, took)
		}
		if sum > 1.2*took {
			t.Errorf("jobs counted %.0f s in %.0f s on one GPU", sum, took)
		}
		for _, id := range ids[1:] {
			if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Fatal(err)
			}
		}
		r.until("the last one runs on", time.Minute, func() bool { return r.state(ids[0]) == "RUNNING" })
		n := count(ids[0])
		r.poll("for more than a turn", time.Minute, time.Second, func() bool { return count(ids[0]) > n+12*int(quantum/cluster.Second) })
	})
}

// Two jobs take turns on a GPU, and another one becomes idle. One of the two moves there at the end of its term, and both run from then on.
func TestJobsPart(t *testing.T) {
	onBoth(t, inTurns(2), func(t *testing.T, r *rig) {
		r.settings.Term, r.settings.CompactPercent = 30*cluster.Second, 25
		r.settings.Slices = &cluster.Slices{Quantum: 8 * cluster.Second, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		r.govern()
		r.heard()
		of := r.shares(counts, "--gres=gpu:1")
		maps.Copy(of, r.shares(counts, "--gres=gpu:1"))
		r.begin(maps.Keys(of))
		r.until("all take turns", 3*time.Minute, func() bool {
			for id := range of {
				if r.count(cluster.Suspend, id) == 0 {
					return false
				}
			}
			return true
		})
		var stay, leave []string
		for id := range of {
			if r.lastCase(id).Job.Holds[0].Index[0] == 0 {
				stay = append(stay, id)
			} else {
				leave = append(leave, id)
			}
		}
		if _, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, leave...)...); err != nil {
			t.Fatal(err)
		}
		requeues := func() (n int64) {
			for _, id := range stay {
				n += int64(r.lastCase(id).Job.Restarts)
			}
			return n
		}
		before := requeues()
		r.until("one of the two has moved to the idle GPU", 5*r.settings.Term.Duration(), func() bool {
			moved := 0
			for _, id := range stay {
				if j := r.lastCase(id).Job; j.State == cluster.Running && !j.Paused && len(j.Holds) == 1 && j.Holds[0].Size.IsWhole() {
					moved++
				}
			}
			return len(stay) == 2 && moved == 1
		})
		if n := requeues() - before; n != 1 {
			t.Errorf("%d requeues, want that of the one that moved", n)
		}
		suspended := r.count(cluster.Suspend, "")
		r.terms(1)
		if n, again := r.count(cluster.Suspend, "")-suspended, requeues()-before-1; n > 0 || again > 0 {
			t.Errorf("%d suspensions and %d requeues, though each job has a GPU to itself", n, again)
		}
	})
}

// pairsUp is a job that reports its steps, ten a second. With a word after its name it does a quarter of them while another job on its GPU goes on.
const pairsUp = `#!/bin/bash
slow= n=0
echo >/tmp/beat-$SLURM_JOB_ID
while sleep 0.1$slow; do
  n=$((n+1))
  [ $((n%5)) = 0 ] || continue
  slow=
  echo $EPOCHSECONDS >/tmp/beat-$SLURM_JOB_ID
  for other in /tmp/beat-*; do
    [ "$other" = /tmp/beat-$SLURM_JOB_ID ] || ! read at <"$other" || [ $((EPOCHSECONDS-at)) -gt 3 ] || [ "$SLURM_JOB_NAME" = gentle ] || slow=" 0.3"
  done
  echo '{"job":"'$SLURM_JOB_ID'","steps":'$n'}' >report-$SLURM_JOB_ID && mv report-$SLURM_JOB_ID $SLURM_JOB_ID.json
done
`

// hearing adds to a look what jobs left in their users' folders.
type hearing struct {
	loop.Cluster
	spool telemetry.Spool
	wrong func(error)
}

func (h *hearing) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := h.Cluster.Observe(ctx, since)
	var running []telemetry.Holder
	for i := range seen.Jobs {
		if j := &seen.Jobs[i]; j.State == cluster.Running {
			running = append(running, telemetry.Holder{Job: j.ID, User: j.User, UID: j.UID})
		}
	}
	reports, wrong := h.spool.Read(running, seen.Now)
	for _, err := range wrong {
		h.wrong(err)
	}
	seen.Progress = append(seen.Progress, reports...)
	return seen, err
}

// Two jobs on a GPU run at the same time if both do at least half of their steps by that, and take turns if one does not.
func TestPairs(t *testing.T) {
	onBoth(t, inTurns(1), func(t *testing.T, r *rig) {
		r.settings.Term = cluster.Hour
		r.settings.Slices = &cluster.Slices{Quantum: 8 * cluster.Second, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}, Pairs: true}
		r.over = &hearing{r.client, telemetry.Spool{Folder: filepath.Dir(r.Home("alice"))}, func(err error) { t.Error(err) }}
		both := func(name string) (ids []string) {
			r.shut()
			ids = slices.Sorted(maps.Keys(r.shares(pairsUp, "-J", name, "--gres=gpu:1")))
			r.begin(slices.Values(ids))
			r.govern()
			return ids
		}
		told := func() int { return r.events(cluster.EventPair) }
		ids := both("gentle")
		r.until("jobs that do not hinder each other run at the same time", 3*time.Minute, func() bool {
			return told() == 1 && !slices.ContainsFunc(r.plan().Statuses, func(j cluster.JobStatus) bool { return j.Reason.Code != cluster.ReasonBeside })
		})
		for _, id := range ids {
			if s := r.state(id); s != "RUNNING" {
				t.Errorf("job %s is %s", id, s)
			}
		}
		r.halt()
		if _, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, ids...)...); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			r.waitState(id, 20*time.Second, "CANCELLED")
		}
		ids = both("rough")
		r.until("jobs that hinder each other have been compared, and take turns", 4*time.Minute, func() bool { return told() == 2 })
		var suspended [2]int
		for k, id := range ids {
			suspended[k] = r.count(cluster.Suspend, id)
		}
		r.until("they go on taking turns", time.Minute, func() bool {
			return r.count(cluster.Suspend, ids[0]) > suspended[0]+1 && r.count(cluster.Suspend, ids[1]) > suspended[1]+1
		})
	})
}

// A division with pairs (gavel:las) gives a GPU to two jobs of a type as soon as it is known that they do not hinder each other. The next two of that type
// share the GPU by it, and two that hinder each other do not. Speeds alone are learnt in turns of more than 10 s.
func TestDivisionOfPairs(t *testing.T) {
	onBoth(t, inTurns(1), func(t *testing.T, r *rig) {
		r.settings.Term = cluster.Minute
		r.settings.Preset, r.settings.Divide, r.settings.DivideJobs, r.settings.DivideEvery = "gavel:las", "gavel:las", preset.OfJobs("gavel:las"), 10
		r.settings.Slices = &cluster.Slices{Quantum: 15 * cluster.Second, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}, Pairs: true}
		r.divide = engine.Divide
		r.over = &hearing{r.client, telemetry.Spool{Folder: filepath.Dir(r.Home("alice"))}, func(err error) { t.Error(err) }}
		two := func(kind string) (ids []string) {
			r.shut()
			for range 2 {
				ids = append(ids, r.submit("alice", pairsUp, "-A", "nlp", "-J", kind, "--requeue", "--gres=gpu:1", "--comment=share=yes,mem.v100=14g,saves=term,kind="+kind))
			}
			r.govern()
			return ids
		}
		gone := func(ids []string) {
			r.halt()
			if _, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, ids...)...); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				r.waitState(id, 20*time.Second, "CANCELLED")
			}
		}
		given := func(kind string) float64 {
			if a := r.plan().State.Allocation; a != nil && a.Why == "" {
				for _, x := range a.Pairs {
					if strings.Contains(x.A, kind) && x.A == x.B {
						return float64(x.GPUs[0]) / float64(cluster.WholeGPU)
					}
				}
			}
			return 0
		}
		beside := func(ids []string) bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return r.state(id) != "RUNNING" || r.lastCase(id).Record.Slice == nil })
		}
		for _, when := range []string{"have met", "are known"} {
			ids := two("gentle")
			r.until("the division gives the GPU to two jobs that "+when+", and both run", 4*time.Minute, func() bool {
				return given("gentle") > 0.9 && beside(ids)
			})
			gone(ids)
		}
		ids := two("rough")
		r.until("jobs that hinder each other have been compared", 4*time.Minute, func() bool { return r.events(cluster.EventPair) == 2 })
		if got := given("rough"); got > 0 {
			t.Errorf("the division gives %.2f GPUs to jobs that hinder each other", got)
		}
		gone(ids)
	})
}

// No job stays suspended when the daemon is killed, whether its unit ends properly or not, and it goes on after its own restart and Slurm's.
func TestSlicesAfterAKill(t *testing.T) {
	onBoth(t, inTurns(2), func(t *testing.T, r *rig) {
		config := r.configure("sharing: {slices: on, quantum: 30s, memory: {v100: 32g}}\n")
		text, err := os.ReadFile(config)
		if err == nil {
			err = os.WriteFile(config, []byte(strings.Replace(string(text), "term: 20s", "term: 1m", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		end := r.serve(config)
		r.heard()
		var ids []string
		for range 3 {
			ids = slices.AppendSeq(ids, maps.Keys(r.shares(counts, "--gres=gpu:1")))
		}
		r.begin(slices.Values(ids))
		suspended := func() (n int) {
			for _, id := range ids {
				if r.state(id) == "SUSPENDED" {
					n++
				}
			}
			return n
		}
		thaws := func(args ...string) {
			t.Helper()
			if out, err := r.fairlease(config, append([]string{"thaw"}, args...)...); err != nil {
				t.Fatalf("thaw %v: %v\n%s", args, err, out)
			}
			if n := suspended(); n > 0 {
				t.Fatalf("%d jobs are suspended after thaw %v", n, args)
			}
		}
		r.poll("jobs take turns", 3*time.Minute, time.Second, func() bool { return suspended() > 0 })
		end(syscall.SIGKILL)
		thaws("--all") // as ExecStopPost does
		end = r.serve(config)
		r.poll("jobs take turns after a restart of the daemon", 2*time.Minute, time.Second, func() bool { return suspended() > 0 })
		// Slurm holds a job that is requeued while it is suspended. It comes back.
		paused := ids[slices.IndexFunc(ids, func(id string) bool { return r.state(id) == "SUSPENDED" })]
		if _, err := r.Exec(r.ctx(), "root", "scontrol", "requeue", paused); err != nil {
			t.Fatal(err)
		}
		r.poll("the requeued job is no longer held", time.Minute, time.Second, func() bool {
			j, err := r.Job(r.ctx(), paused)
			return err == nil && j["Restarts"] == "1" && j["Priority"] != "0" && (j["JobState"] != "PENDING" || strings.Contains(j["TresPerNode"], "gpu:1"))
		})
		if err := r.Restart(r.ctx(), testcluster.Slurmctld); err != nil {
			t.Fatal(err)
		}
		r.poll("jobs take turns after a restart of slurmctld", 2*time.Minute, time.Second, func() bool { return suspended() > 0 })
		if out, err := r.fairlease(config, "thaw"); err != nil || !strings.Contains(out, "resumed: 0 jobs") {
			t.Errorf("thaw resumes jobs whose partners have their turn: %v\n%s", err, out)
		}
		r.poll("a job is suspended", time.Minute, 200*time.Millisecond, func() bool { return suspended() > 0 })
		end(syscall.SIGKILL)
		killed := time.Now()
		r.poll("the timer resumes all", time.Minute, 5*time.Second, func() bool {
			if out, err := r.fairlease(config, "thaw"); err != nil {
				t.Fatalf("thaw: %v\n%s", err, out)
			}
			return suspended() == 0
		})
		t.Logf("no job was suspended %s after the kill, by the timer alone", time.Since(killed).Round(time.Second))
		for _, id := range ids {
			if s := r.state(id); s != "RUNNING" && s != "PENDING" {
				t.Errorf("job %s is %s", id, s)
			}
		}
	})
}
