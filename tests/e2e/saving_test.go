package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// worker is a job of a number of steps that take a second each. It logs every step in its user's home. A job that
// saves writes the number of its last step to a file when it hears the notice or SIGTERM, and resumes from there. One
// that does not would die of the notice's signal. A job that reports tells its progress in its user's home when it starts and after each step.
type worker struct {
	steps          int
	saves, reports bool
}

func (w worker) script() string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n#SBATCH --open-mode=append\ncat > work.$SLURM_JOB_ID <<'SH'\nexec >> log.$SLURM_JOB_ID\n")
	if w.saves {
		// The notice reaches all processes of a step, the sleeping one too.
		b.WriteString(`save() { echo $n > .saved.$SLURM_JOB_ID; mv .saved.$SLURM_JOB_ID saved.$SLURM_JOB_ID; echo saved $n; }
n=$(cat saved.$SLURM_JOB_ID 2>/dev/null || echo 0)
trap save USR1
trap 'save; exit 0' TERM
second() { (trap '' USR1; exec sleep 1); }
`)
	} else {
		b.WriteString("n=0\nsecond() { sleep 1; }\n")
	}
	report := ""
	if w.reports {
		report = `echo "{\"job\": \"$SLURM_JOB_ID\", \"steps\": $n}" > .report.$SLURM_JOB_ID; mv .report.$SLURM_JOB_ID $SLURM_JOB_ID.json` + "\n"
	}
	// The first report says from where the attempt goes on, before a second of work makes that less clear.
	fmt.Fprintf(&b, "echo start $n\n%swhile [ $n -lt %d ]; do\n  second\n  n=$((n+1)); echo step $n\n%s", report, w.steps, report)
	b.WriteString("done\necho end\nSH\nsrun bash work.$SLURM_JOB_ID\n")
	return b.String()
}

// worked is what a job says of itself.
type worked struct {
	id, user string
	worker
	attempts, done, ends int
}

// read reads a job's own log.
func (r *rig) read(id, user string, w worker) worked {
	out := worked{id: id, user: user, worker: w}
	for line := range strings.Lines(r.output(user, "log."+id)) {
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "start":
			out.attempts++
		case "step":
			out.done++
		case "end":
			out.ends++
		}
	}
	return out
}

// destroyed gives the seconds of work that a job that has ended did in vain.
func (w worked) destroyed() int { return w.done - w.steps }

// between is what may lie between the decision to stop a job and its last step: the budget holds for the decision.
const between = 2 * cluster.Second

// checkBudget fails if a job that has ended lost more than its stop budget.
func (w worked) checkBudget(t *testing.T, allowance, overheadPercent int) {
	t.Helper()
	stops := max(w.attempts-1, 0)
	if most := float64(allowance) + float64(w.done*overheadPercent)/100 + float64(stops)*between.Duration().Seconds(); float64(w.destroyed()) > most {
		t.Errorf("job %s lost %d s of work in %d stops; its stop budget is %.1f s", w.id, w.destroyed(), stops, most)
	}
}

// completed tells whether all of some jobs have completed.
func (r *rig) completed(ids []string) bool {
	out, err := r.Exec(r.ctx(), "root", "squeue", "-a", "-h", "-t", "COMPLETED", "-o", "%i")
	if err != nil {
		return false
	}
	have := strings.Fields(out)
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(have, id) })
}

// Twenty-six jobs of 25 s that save nothing, 113 s of work for the whole cluster, under terms of 20 s: all end, none
// loses more than its stop budget, and both tenants get what they are due.
func TestJobsThatSaveNothing(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
		const allowance, overhead = 15, 2
		r.settings.StopAllowance, r.settings.StopOverheadMilli, r.settings.StartCost = allowance*cluster.Second, 10*overhead, cluster.Second
		r.settings.RepayFloorPercent = 50
		r.govern()
		r.heard()
		work := worker{steps: 25}
		users, ids := map[string]string{}, []string{}
		begin := time.Now()
		for i := range 13 {
			gpus := 2
			if i%13 >= 8 {
				gpus = 4
			}
			for user, account := range map[string]string{"alice": "nlp", "bob": "vision"} {
				id := r.submit(user, work.script(), "-A", account, fmt.Sprintf("--gres=gpu:%d", gpus), "-J", "quiet")
				users[id] = user
				ids = append(ids, id)
			}
		}
		r.until("all jobs have ended", 5*time.Minute, func() bool { return r.completed(ids) })
		took := time.Since(begin)
		r.until("the ends are booked", 20*time.Second, func() bool { return r.holds("nlp")+r.holds("vision") == 0 })
		r.halt()

		lost, most, restarted := 0, 0, 0
		for _, id := range ids {
			w := r.read(id, users[id], work)
			r.endedOnce(id, w.ends)
			w.checkBudget(t, allowance, overhead)
			lost, most = lost+w.destroyed(), max(most, w.destroyed())
			if w.attempts > 1 {
				restarted++
			}
		}
		t.Logf("%d jobs ended in %s; %d of them were stopped; %d s of %d s of work were destroyed, at most %d s of a job",
			len(ids), took.Round(time.Second), restarted, lost, 25*len(ids), most)
		// Hand-overs are nobody's time; so the shares of what was used count.
		a, aDue := r.used("nlp")
		b, bDue := r.used("vision")
		t.Logf("received / due [GPU-s]: nlp %d / %d, vision %d / %d", a/1000, aDue/1000, b/1000, bDue/1000)
		within(t, "nlp's share of what was used / was due [%]", 100*float64(a)/float64(a+b), 100*float64(aDue)/float64(aDue+bDue), 10)
		for rec := range r.plan().State.All() {
			if most := allowance*cluster.Second + rec.Ran*overhead/100 + cluster.Span(rec.Stops)*between; rec.Spent > most {
				t.Errorf("job %s: %s is booked for its stops, its budget is %s", rec.ID, rec.Spent, most)
			}
		}
	})
}

// known is what fairlease habits says of a type of jobs.
type known struct {
	cluster.Habit
	Saving cluster.Saving
}

// habit gives what was learnt of jobs of a name.
func (r *rig) habit(config, name string) known {
	r.t.Helper()
	out, err := r.fairlease(config, "habits", "--json")
	var all []known
	if err != nil || json.Unmarshal([]byte(out), &all) != nil {
		return known{}
	}
	for _, k := range all {
		if strings.HasSuffix(k.Type.Command, "--job-name "+name) {
			return k
		}
	}
	return known{}
}

// stopReport gives what fairlease explain says of when a job may be stopped, and that in words; nil while it does not run.
func (r *rig) stopReport(config, id string) (*cluster.StopReport, string) {
	r.t.Helper()
	var x struct {
		Stop      *cluster.StopReport `json:"stop"`
		StopWords []string            `json:"stop_words"`
	}
	out, err := r.fairlease(config, "explain", id, "--json")
	if err != nil || json.Unmarshal([]byte(out), &x) != nil {
		return nil, ""
	}
	return x.Stop, strings.Join(x.StopWords, "\n")
}

// Jobs that save on the notice, jobs of a type that saves and does not say so, and jobs that save nothing, with a daemon
// that is killed in between: how each type saves is learnt from the first of its jobs that are stopped, what was
// learnt and spent outlives the daemon, all jobs end, and none loses more than its budget.
func TestSaversAndOthers(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		const allowance, overhead = 15, 2
		config := r.configure(fmt.Sprintf("stop: {allowance: %ds, overhead: %d, total: 0, per_hour: 0}\nmodels: {progress: {folder: %s}}\n", allowance, overhead, filepath.Dir(r.Home("alice"))))
		edit(t, config, "min: 6s", "min: 10s") // a busy machine starts a step in seconds, and a saver must trap the notice by then
		end := r.serve(config)
		r.heard()
		saver, fresh, plain := worker{steps: 40, saves: true}, worker{steps: 40, saves: true, reports: true}, worker{steps: 25, reports: true}
		type job struct {
			user string
			worker
		}
		jobs, ids := map[string]job{}, map[string][]string{}
		begin := time.Now()
		submit := func(user, account, name string, w worker, args ...string) {
			id := r.submit(user, w.script(), append([]string{"-A", account, "--gres=gpu:2", "-J", name}, args...)...)
			jobs[id] = job{user, w}
			ids[name] = append(ids[name], id)
		}
		contend := func() { // both tenants want more than their half of eight GPUs
			for range 3 {
				submit("alice", "nlp", "fresh", fresh)
				submit("bob", "vision", "plain", plain)
			}
			for range 2 {
				submit("alice", "nlp", "saver", saver, "--comment=saves=notice")
				submit("bob", "vision", "plain", plain)
			}
		}
		contend()

		// Its first requeue shows how a type of job saves. Reports are heard in rounds in which something else happens.
		// Where that was too late to tell how any attempt began, the run times of the type's jobs tell it when they have
		// completed, of the next one. It is stopped only while others want its GPUs, and Slurm lets it wait for two minutes then.
		learns := func(what, name string, known func() bool) {
			r.until(what, 8*time.Minute, func() bool {
				if known() {
					return true
				}
				if r.completed(ids[name]) {
					contend()
				}
				return false
			})
		}
		learns("fairlease knows that fresh jobs resume", "fresh", func() bool { return r.habit(config, "fresh").Resumed > 0 })
		knew := r.habit(config, "fresh")
		t.Logf("after %s: %+v", time.Since(begin).Round(time.Second), knew)
		if n := knew.Resumed + knew.Restarted; n > 3 || knew.Saving.Manner != cluster.SavesOnTerm && knew.Saving.Manner != cluster.SavesOnNotice {
			t.Errorf("after %d jobs of the type it is taken to save %s, want on the notice or on SIGTERM after at most three", n, knew.Saving.Manner)
		}
		var bound string
		var before *cluster.StopReport
		learns("a job that restarted is not stopped again", "plain", func() bool {
			for _, id := range ids["plain"] {
				x, words := r.stopReport(config, id)
				if x != nil && strings.Contains(words, " restarted from the beginning after ") &&
					strings.Contains(words, "it will not be stopped again before it ends") {
					bound, before = id, x
					t.Logf("fairlease explain %s:\n%s", id, words)
					return true
				}
			}
			return false
		})

		end(syscall.SIGKILL)
		was := r.remembered()
		end = r.serve(config)
		r.until("the next daemon makes rounds", 40*time.Second, func() bool { return r.remembered().Round > was.Round })
		is := r.remembered()
		compared, known := 0, slices.Collect(is.State.All())
		for old := range was.State.All() {
			at := slices.IndexFunc(known, func(rec *cluster.Record) bool { return rec.Key == old.Key })
			if at < 0 || old.Stops == 0 {
				continue
			}
			compared++
			if rec := known[at]; rec.Stops < old.Stops || rec.Spent < old.Spent {
				t.Errorf("job %s: %d stops that cost %s before the daemon was killed, %d that cost %s after it", rec.ID, old.Stops, old.Spent, rec.Stops, rec.Spent)
			}
		}
		if compared == 0 && before.Stops > 0 {
			t.Error("no job that was stopped before the daemon was killed is remembered after it")
		}
		for _, old := range was.State.Habits {
			if !slices.ContainsFunc(is.State.Habits, func(h cluster.Habit) bool {
				return h.Type == old.Type && h.Resumed >= old.Resumed && h.Restarted >= old.Restarted && h.Completed >= old.Completed
			}) {
				t.Errorf("this was known of a type of jobs before the daemon was killed, and less after it: %+v", old)
			}
		}
		if h := r.habit(config, "plain"); h.Restarted == 0 || h.Saving.Manner != cluster.SavesNever {
			t.Errorf("after the daemon was killed plain jobs are taken to save %q: %+v", h.Saving.Manner, h)
		}

		all := slices.Concat(ids["fresh"], ids["plain"], ids["saver"])
		r.until("all jobs have ended", 4*time.Minute, func() bool { return r.completed(all) })
		t.Logf("all jobs ended after %s", time.Since(begin).Round(time.Second))
		if n := r.read(bound, "bob", plain).attempts; n != before.Stops+1 {
			t.Errorf("job %s was not to be stopped again after %d stops, and had %d attempts", bound, before.Stops, n)
		}
		for name, of := range ids {
			stops, lost, most := 0, 0, 0
			for _, id := range of {
				w := r.read(id, jobs[id].user, jobs[id].worker)
				r.endedOnce(id, w.ends)
				w.checkBudget(t, allowance, overhead)
				stops, lost, most = stops+w.attempts-1, lost+w.destroyed(), max(most, w.destroyed())
				if stops := w.attempts - 1; w.saves && w.destroyed() > 5*stops { // the notice, a second to save, and a step
					t.Errorf("job %s resumes from its saves, and lost %d s of work in %d stops", id, w.destroyed(), stops)
				}
			}
			t.Logf("%s: %d jobs, %d stops, %d s of work destroyed, at most %d s of a job", name, len(of), stops, lost, most)
		}
		end(syscall.SIGTERM)
	})
}

// remembered gives the newest round that the journal has.
func (r *rig) remembered() cluster.Plan {
	r.t.Helper()
	s, err := store.Open(r.ctx(), store.Config{DSN: r.dsn})
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	_, plan, err := s.Rounds.Last(r.ctx())
	if err != nil {
		r.t.Fatal(err)
	}
	return plan
}
