package slownodes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// on starts jobs of users on GPUs of n1 at a rate of steps per second. Their types are known from other nodes.
func (w *site) on(users string, rate float64, gpus ...int) {
	for user := range strings.FieldsSeq(users) {
		c := w.start(user, "n1", rate)
		c.Job.Name = fmt.Sprintf("train%c", 'a'+len(gpus))
		c.Job.Holds[0].Size, c.Job.Holds[0].Index = cluster.Whole(len(gpus)), gpus
	}
}

// like starts jobs of the types of on, at their usual speed on other nodes.
func (w *site) like(users string) {
	for user := range strings.FieldsSeq(users) {
		for _, node := range []string{"n2", "n3", "n4"} {
			for n := 1; n <= 3; n++ {
				c := w.start(user, node, 1)
				c.Job.Name, c.Job.Holds[0].Size = fmt.Sprintf("train%c", 'a'+n), cluster.Whole(n)
			}
		}
	}
}

func TestSlowGPUs(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(w *site)
		want  string
	}{
		{"all are alike", func(w *site) {
			w.on("alice bob alice bob", 1, 0)
			w.on("alice bob alice bob", 1, 1, 2)
		}, ""},
		{"jobs of two users with GPU 3 are slow", func(w *site) {
			w.on("alice bob alice", 0.6, 3)
			w.on("alice bob alice bob alice bob", 1, 1, 2)
		}, "n1.3 60 %, 3 jobs of 2 users"},
		{"whatever other GPUs they have", func(w *site) {
			w.on("alice bob", 0.6, 0, 3)
			w.on("alice bob", 0.6, 1, 2, 3)
			w.on("alice bob", 1, 0)
			w.on("alice bob alice bob", 1, 1, 2)
		}, "n1.3 60 %, 4 jobs of 2 users"},
		{"two jobs are too few", func(w *site) {
			w.on("alice bob", 0.6, 3)
			w.on("alice bob alice bob", 1, 1, 2)
		}, ""},
		{"one user alone", func(w *site) {
			w.on("alice alice alice alice", 0.1, 3)
			w.on("alice bob alice bob", 1, 1, 2)
		}, ""},
		{"one user against another one", func(w *site) {
			w.on("alice alice alice alice", 0.1, 3)
			w.on("bob", 1, 3)
			w.on("alice bob alice bob", 1, 1, 2)
		}, ""},
		{"one user moves the blame to no other GPU", func(w *site) {
			w.on("alice bob alice bob", 0.6, 3)
			w.on("alice alice alice alice", 0.1, 4)
			w.on("alice bob alice bob alice bob", 1, 1, 2)
		}, "n1.3 60 %, 4 jobs of 2 users"},
		{"only slow jobs are known: it is the node", func(w *site) {
			w.on("alice bob alice bob", 0.6, 3)
		}, "n1 60 %, 4 jobs of 2 users"},
		{"the node has several slow GPUs", func(w *site) {
			w.on("alice bob alice", 0.6, 3)
			w.on("alice bob bob", 0.7, 5)
			w.on("alice bob alice bob alice bob", 1, 1, 2)
		}, "n1.3 60 %, 3 jobs of 2 users; n1.5 70 %, 3 jobs of 2 users"},
		{"most of them are slow, and others are known to be well", func(w *site) {
			w.on("alice bob alice", 0.6, 3)
			w.on("alice bob bob", 0.6, 5)
			w.on("alice bob alice", 1, 1, 2)
		}, "n1.3 60 %, 3 jobs of 2 users; n1.5 60 %, 3 jobs of 2 users"},
		{"all of them are slow: it is the node", func(w *site) {
			w.on("alice bob alice", 0.6, 3)
			w.on("alice bob bob", 0.6, 5)
		}, "n1 60 %, 6 jobs of 2 users"},
		{"jobs do not tell two GPUs apart", func(w *site) {
			w.on("alice bob alice", 0.6, 2, 3)
			w.on("alice bob alice bob", 1, 0)
		}, "n1.2 60 %, 3 jobs of 2 users; n1.3 60 %, 3 jobs of 2 users"},
		{"one user does not tell them apart", func(w *site) {
			w.on("alice bob alice", 0.6, 2, 3)
			w.on("alice", 0.6, 3)
			w.on("alice bob alice bob", 1, 0)
		}, "n1.2 60 %, 3 jobs of 2 users; n1.3 60 %, 4 jobs of 2 users"},
		{"two users do, by slow jobs", func(w *site) {
			w.on("alice bob alice", 0.6, 2, 3)
			w.on("alice bob", 0.6, 3)
			w.on("alice bob alice bob", 1, 0)
		}, "n1.3 60 %, 5 jobs of 2 users"},
		{"two users do, by jobs that are not slow", func(w *site) {
			w.on("alice bob alice", 0.6, 2, 3)
			w.on("alice bob", 1, 2)
			w.on("alice bob alice bob", 1, 0)
		}, "n1.3 60 %, 3 jobs of 2 users"},
		{"Slurm does not tell all GPUs of a job", func(w *site) {
			w.on("alice bob alice", 0.6, 3)
			for i := range w.snap.Cases {
				w.snap.Cases[i].Job.Holds[0].Index = nil
			}
			w.on("alice bob alice bob alice bob", 1, 1, 2)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSite(t)
			w.like("alice bob")
			c.begin(w)
			w.run(cluster.Hour)
			if got := w.slow(); got != c.want {
				t.Errorf("slow: %q, want %q", got, c.want)
			}
			if want := len(w.snap.NodeSpeeds.Slow) + len(w.snap.NodeSpeeds.GPUs); len(w.events) != want {
				t.Errorf("events: %q", w.events)
			}
		})
	}
}

func TestAGPUIsSlowUntilJobsShowOtherwise(t *testing.T) {
	w := newSite(t)
	w.like("alice bob")
	w.on("alice bob alice bob", 0.5, 3)
	w.on("alice bob alice bob", 1, 1, 2)
	w.run(cluster.Hour)
	w.end()
	const told = "GPU 3 of n1 is slow: 4 jobs of 2 users ran with GPU 3 of n1 (v100) at 50 % of their usual speed on other nodes. Gangs avoid the node while no job holds that GPU, " +
		`where others are free. If it is at fault, drain the node: scontrol update nodename=n1 state=drain reason="slow: GPU 3 has 50 % of the usual speed"`
	if len(w.events) != 1 || w.events[0] != told {
		t.Fatalf("events: %q, want once %q", w.events, told)
	}
	since := w.snap.NodeSpeeds.GPUs[0].Since
	again := func(rate float64, gpus ...int) {
		for range 3 { // the newest attempts count
			w.on("alice bob", rate, gpus...)
			w.run(cluster.Hour)
			w.end()
		}
	}
	last := func() string { return w.events[len(w.events)-1] }
	if again(0.9, 3); w.slow() != "n1.3 90 %, 8 jobs of 2 users" || w.snap.NodeSpeeds.GPUs[0].Since != since || len(w.events) != 1 {
		t.Errorf("at 90 %% of the usual speed: %q since %s, events: %q", w.slow(), w.snap.NodeSpeeds.GPUs[0].Since, w.events)
	}
	again(0.5, 1, 2)
	again(0.5, 3)
	if w.slow() != "n1 50 %, 16 jobs of 2 users" || last() != "GPU 3 of n1 is no longer slow: the whole node is" {
		t.Errorf("slow: %q, events: %q", w.slow(), w.events)
	}
	again(1, 1, 2)
	if w.slow() != "n1.3 50 %, 8 jobs of 2 users" || last() != "n1 is no longer slow: jobs without its slow GPUs run there as fast as on other nodes" {
		t.Errorf("slow: %q, events: %q", w.slow(), w.events)
	}
	again(1, 3)
	if w.slow() != "" || last() != "GPU 3 of n1 is no longer slow: 8 jobs of 2 users run there as fast as on other nodes" {
		t.Errorf("slow: %q, events: %q", w.slow(), w.events)
	}
	again(0.5, 3)
	again(0.5, 3)
	w.snap.Now = w.snap.Now.Add(oldest + cluster.Hour)
	if w.next(); last() != "GPU 3 of n1 is no longer slow: too few jobs that ran there can be compared now" {
		t.Errorf("slow: %q, events: %q", w.slow(), w.events)
	}
}

// Two attempts of a type with each first GPU of a node are remembered, and four with the same.
func TestAttemptsWithEachGPUAreLimited(t *testing.T) {
	w := newSite(t)
	for range 10 {
		for gpu := range 8 {
			w.on("alice", 1, gpu)
		}
		w.run(40 * cluster.Minute)
		w.end()
	}
	by := map[int]int{}
	for i := range w.snap.NodeSpeeds.Runs {
		by[w.snap.NodeSpeeds.Runs[i].Index[0]]++
	}
	for gpu := range 8 {
		if by[gpu] < mostOnGPU || by[gpu] > mostAlike {
			t.Errorf("%d attempts with GPU %d are kept", by[gpu], gpu)
		}
	}
	if n := len(w.snap.NodeSpeeds.Runs); n > 8*mostOnGPU+mostAlike {
		t.Errorf("%d attempts are kept", n)
	}
}

// Chance makes hardly any GPU slow, however much the speeds of a type vary, also of a node with a slow one; that one is found where they vary little.
func TestChanceMakesNoGPUSlow(t *testing.T) {
	const nodes, gpus, each, users, sites = 40, 8, 5, 20, 100 // each = attempts with a GPU
	for spread, least := range map[float64]float64{0.05: 0.8, 0.2: 0, 0.4: 0} {
		r := rand.New(rand.NewPCG(1, 2)) // the same whichever spread comes first
		wrong, found, whole := 0, 0, 0
		for range sites {
			var runs []cluster.NodeRun
			for had := 0; had < nodes*gpus*each; {
				n, gang := r.IntN(nodes), []int{1, 1, 2, 4}[r.IntN(4)]
				index := r.Perm(gpus)[:gang]
				slices.Sort(index)
				rate := math.Exp(spread * r.NormFloat64())
				if n == 0 && slices.Contains(index, 3) {
					rate *= 0.6
				}
				user := fmt.Sprintf("u%d", r.IntN(users))
				runs = append(runs, cluster.NodeRun{Job: cluster.JobKey(len(runs) + 1), Node: fmt.Sprint(n), Model: "v100", User: user, Kind: cluster.Kind(fmt.Sprintf("bio/%s.%d", user, gang)),
					Gang: gang, Index: index, Did: rate * 3600, Ran: cluster.Hour})
				had += gang
			}
			slow, list, _ := judge(compare(runs), &cluster.NodeSpeeds{}, 0.85, roundtest.Now)
			whole += len(slow)
			for _, g := range list {
				if g.Node == "0" && g.Index == 3 {
					found++
				} else {
					wrong++
				}
			}
		}
		if wrong+whole > sites*nodes*gpus/1000 || float64(found) < least*sites {
			t.Errorf("spread %v: %d of %d sound GPUs are slow, %d nodes, and the slow GPU of %d sites in %d", spread, wrong, sites*(nodes*gpus-1), whole, sites, found)
		}
	}
}
