package papers_test

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// models gives one node of each model.
func models(gpus int, names ...string) []cluster.Node {
	var out []cluster.Node
	for _, m := range names {
		out = append(out, simtest.Nodes(m, m, 1, gpus)...)
	}
	return out
}

// together is the fraction of its speed that a kind keeps beside another.
type together map[[2]string]float64

// heterogeneous gives a world in which the kinds set the speeds of jobs, alone and together on one GPU,
// with a look every second.
func heterogeneous(t *testing.T, name string, nodes []cluster.Node, speeds map[string]map[string]float64, pairs ...together) *simtest.Scheduled {
	of, beside := sim.Speeds{}, sim.Beside{}
	for _, parts := range pairs {
		for kinds, part := range parts {
			own, other := sim.Task{Kind: kinds[0], GPUs: 1}, sim.Task{Kind: kinds[1], GPUs: 1}
			if beside[other] == nil {
				beside[other] = sim.Speeds{}
			}
			beside[other][own] = map[string]sim.Rate{}
			for model, v := range speeds[kinds[0]] {
				beside[other][own][model] = sim.Rate{Speed: sim.Speed(v * part * float64(sim.Reference))}
			}
		}
	}
	for kind, on := range speeds {
		of[sim.Task{Kind: kind}] = map[string]sim.Rate{}
		for model, v := range on {
			of[sim.Task{Kind: kind}][model] = sim.Rate{Speed: max(sim.Halt, sim.Speed(v*float64(sim.Reference)))}
		}
	}
	var w *simtest.Scheduled
	w = simtest.Compare(t, simtest.Baseline(t, name, baseline.Options{
		Speed: func(j *cluster.Job, model string) float64 { return speeds[j.Name][model] },
		Left:  func(j *cluster.Job) cluster.Span { return w.Left(j.ID) },
		Share: func(host, guest cluster.JobID) { w.Share(host, guest) },
		Beside: func(j, other *cluster.Job, model string, _ bool) (float64, float64) {
			own, its := w.Together(beside, j.ID, other.ID, model)
			return float64(own) / float64(sim.Reference), float64(its) / float64(sim.Reference)
		},
		Within: func(*cluster.Job) cluster.Span { return cluster.Day },
		Prices: map[string]float64{"k80": 0.45, "v100": 2.48},
	}), nodes, "a")
	w.Speeds, w.Beside = of, beside
	w.Settings.Term, w.Settings.Interval, w.Settings.Notice = 6*minute, second, 0
	return w
}

// kind names a job's kind, for the cluster and for the scheduler.
func kind(name string) func(*sim.Work) {
	return func(w *sim.Work) { w.Name, w.Kind, w.Saves = name, name, sim.Always }
}

// model gives the model on which a job runs; "" = none.
func model(w *simtest.Scheduled, id cluster.JobID) string {
	if holds := w.Job(id).Holds; len(holds) > 0 {
		return holds[0].Model
	}
	return ""
}

// Each job goes where it gains most, though both are fastest on the same model. A job that names
// a model gets that, and one that must not be requeued stays.
func TestGavelPutsJobsWhereTheyGainMost(t *testing.T) {
	speeds := map[string]map[string]float64{"picky": {"k80": 0.1, "v100": 1}, "easy": {"k80": 0.9, "v100": 1}}
	w := heterogeneous(t, "gavel:throughput", models(1, "k80", "v100"), speeds)
	easy, picky := w.Queue("a", 1, 10*hour, kind("easy")), w.Queue("a", 1, 10*hour, kind("picky"))
	w.Run(hour)
	if model(w, easy) != "k80" || model(w, picky) != "v100" {
		t.Errorf("easy runs on %s, picky on %s", model(w, easy), model(w, picky))
	}
	w = heterogeneous(t, "gavel:throughput", models(1, "k80", "v100"), speeds)
	named := w.Queue("a", 1, 10*hour, func(x *sim.Work) { kind("picky")(x); x.Request.Model = "k80" })
	w.Run(hour)
	if model(w, named) != "k80" {
		t.Errorf("who names k80 runs on %s", model(w, named))
	}
	w = heterogeneous(t, "gavel:throughput", models(1, "k80", "v100"), speeds)
	fixed := w.Queue("a", 1, 10*hour, func(x *sim.Work) { kind("easy")(x); x.NoRequeue = true })
	w.Run(minute)
	on := model(w, fixed)
	picky = w.Queue("a", 1, 10*hour, kind("picky"))
	w.Run(hour)
	if model(w, fixed) != on || w.Job(fixed).Start.Sub(simtest.Start) > minute || w.Job(picky).State != cluster.Running {
		t.Errorf("who may not be requeued ran on %s and is on %s now; the other is %s", on, model(w, fixed), w.Job(picky).State)
	}
}

// In every round some jobs run and others wait, in proportion to their shares: half of the time
// on each model for two equal jobs on heterogeneous GPUs, two thirds for three on two. A change
// of model costs one look, a second.
func TestRoundsFollowShares(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs []int // gangs
		want []float64
	}{
		{"two on two", []int{1, 1}, []float64{1, 1}},
		{"three on two", []int{1, 1, 1}, []float64{2. / 3, 2. / 3, 2. / 3}},
		{"one of two GPUs among three", []int{2, 1, 1}, []float64{0, 1, 1}}, // no model has two
	} {
		for _, scheduler := range []string{"gavel:las-blind", "gavel:las"} {
			w := heterogeneous(t, scheduler, models(1, "k80", "v100"), map[string]map[string]float64{"x": {"k80": 1, "v100": 1}})
			var ids []cluster.JobID
			for _, gpus := range c.jobs {
				ids = append(ids, w.Queue("a", gpus, 1000*hour, kind("x")))
			}
			w.Run(30 * hour)
			for i, id := range ids {
				got := float64(w.Progress(id)) / float64(30*hour)
				if want := c.want[i]; math.Abs(got-want) > 0.02 {
					t.Errorf("%s, %s: job %d did %.3f of the time's work, want %.3f", scheduler, c.name, i, got, want)
				}
			}
		}
	}
}

// Small jobs do not starve a gang: it has its rounds.
func TestAGangHasItsRounds(t *testing.T) {
	w := heterogeneous(t, "gavel:las-blind", models(4, "v100"), map[string]map[string]float64{"x": {"v100": 1}})
	gang := w.Queue("a", 4, 1000*hour, kind("x"))
	var small []cluster.JobID
	for range 4 {
		small = append(small, w.Queue("a", 1, 1000*hour, kind("x")))
	}
	w.Run(30 * hour)
	// Of four GPUs five jobs are due 0.8 each: the gang gets a fifth of the time, the others four
	// fifths.
	if got := float64(w.Progress(gang)) / float64(30*hour); math.Abs(got-0.2) > 0.03 {
		t.Errorf("the gang ran %.3f of the time", got)
	}
	for _, id := range small {
		if got := float64(w.Progress(id)) / float64(30*hour); math.Abs(got-0.8) > 0.03 {
			t.Errorf("a small job ran %.3f of the time", got)
		}
	}
}

// First come, first served: the first job has the fastest model, and later ones move up when it
// is free.
func TestFIFOFastest(t *testing.T) {
	speeds := map[string]map[string]float64{"x": {"k80": 0.25, "v100": 1}, "stuck": {"k80": 0, "v100": 1}}
	w := heterogeneous(t, "fifo:fastest", models(1, "k80", "v100"), speeds)
	one, two, three := w.Queue("a", 1, hour, kind("x")), w.Queue("a", 1, 2*hour, kind("x")), w.Queue("a", 1, hour, kind("x"))
	w.Run(minute)
	w.WantRunning("two GPUs", map[cluster.JobID]bool{one: true, two: true, three: false})
	if model(w, one) != "v100" || model(w, two) != "k80" {
		t.Errorf("the first runs on %s, the second on %s", model(w, one), model(w, two))
	}
	w.Run(hour + 6*minute)
	if w.Job(one).State != cluster.Done || model(w, two) != "v100" || model(w, three) != "k80" {
		t.Errorf("the first is %s, the second on %s, the third on %s", w.Job(one).State, model(w, two), model(w, three))
	}
	w = heterogeneous(t, "fifo:fastest", models(1, "k80", "v100"), speeds)
	one, two, three = w.Queue("a", 1, hour, kind("x")), w.Queue("a", 1, hour, kind("stuck")), w.Queue("a", 1, hour, kind("x"))
	w.Run(minute)
	w.WantRunning("nobody overtakes", map[cluster.JobID]bool{one: true, two: false, three: false})
}

// A job that starts on a slow model stays there, even if a faster one is idle later. Of jobs that
// arrive together more get the model with the last name than it has GPUs: another counts as full
// then, and they alternate.
func TestFIFOSettled(t *testing.T) {
	speeds := map[string]map[string]float64{"x": {"k80": 0.25, "v100": 1}}
	w := heterogeneous(t, "fifo:settled", models(1, "k80", "v100"), speeds)
	one, two, three := w.Queue("a", 1, hour, kind("x")), w.Queue("a", 1, 2*hour, kind("x")), w.Queue("a", 1, hour, kind("x"))
	w.Run(hour + minute)
	if w.Job(one).State != cluster.Done || model(w, two) != "k80" || model(w, three) != "v100" || w.Job(two).Restarts > 0 {
		t.Errorf("the first is %s, the second on %s, the third on %s", w.Job(one).State, model(w, two), model(w, three))
	}
	speeds["x"]["p100"] = 0.5
	w = heterogeneous(t, "fifo:settled", models(4, "k80", "p100", "v100"), speeds)
	var ids []cluster.JobID
	for range 8 {
		ids = append(ids, w.Queue("a", 1, 100*hour, kind("x")))
	}
	w.Run(20 * hour)
	for _, id := range ids {
		if got := float64(w.Progress(id)) / float64(20*hour); model(w, id) != "" && model(w, id) != "v100" || got < 0.45 || got > 0.55 {
			t.Errorf("job %s of eight on four GPUs did %.2f of the time's work, and is on %q", id, got, model(w, id))
		}
	}
}

// If models do not matter, a job that starts on a slow one stays there; and never on one where it
// does not run.
func TestFIFORandom(t *testing.T) {
	w := heterogeneous(t, "fifo:random", models(8, "k80", "v100"), map[string]map[string]float64{"x": {"k80": 0.25, "v100": 1}, "stuck": {"k80": 0, "v100": 1}})
	on := map[string]int{}
	var ids []cluster.JobID
	for range 8 {
		ids = append(ids, w.Queue("a", 1, hour, kind("x")))
	}
	stuck := w.Queue("a", 1, hour, kind("stuck"))
	w.Run(minute)
	for _, id := range ids {
		on[model(w, id)]++
	}
	if on["k80"] == 0 || on["v100"] == 0 || on["k80"]+on["v100"] != 8 || model(w, stuck) != "v100" {
		t.Errorf("jobs by model: %v; who runs on v100 only is on %q", on, model(w, stuck))
	}
	w.Run(2 * hour)
	for _, id := range ids {
		if j := w.Job(id); j.State == cluster.Running && model(w, id) != "k80" || j.Restarts > 0 {
			t.Errorf("job %s is %s on %s after %d restarts", id, j.State, model(w, id), j.Restarts)
		}
	}
}

// Every policy of Gavel's gets its inputs: all jobs end.
func TestEveryPolicyServes(t *testing.T) {
	for _, name := range baseline.Heterogeneous() {
		w := heterogeneous(t, name, models(2, "k80", "v100"), map[string]map[string]float64{"x": {"k80": 0.5, "v100": 1}, "y": {"k80": 0.9, "v100": 1}})
		for i := range 6 {
			w.Queue("a", 1+i%2, hour, kind([]string{"x", "y"}[i%2]))
		}
		w.Run(2 * cluster.Day)
		for _, v := range w.Last.Statuses {
			if v.Reason.Code != cluster.ReasonDone {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}
