package papers_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// visits follows hosts and guests, and checks that no GPU has a third job.
type visits struct {
	testing.TB
	*simtest.Scheduled
	host  map[cluster.JobID]cluster.JobID // by guest
	guest map[cluster.JobID]cluster.JobID // by host
	met   map[[2]cluster.JobID]int        // times that two jobs shared GPUs
}

func visiting(t testing.TB, w *simtest.Scheduled) *visits {
	v := &visits{t, w, map[cluster.JobID]cluster.JobID{}, map[cluster.JobID]cluster.JobID{}, map[[2]cluster.JobID]int{}}
	w.Watch = v.watch
	return v
}

func (v *visits) watch(e sim.Event) {
	v.Helper()
	switch e.What {
	case sim.Joined:
		if v.guest[e.Host] != (cluster.JobID{}) || v.host[e.Host] != (cluster.JobID{}) || v.guest[e.Job] != (cluster.JobID{}) {
			v.Fatalf("job %s joins %s, which has guest %v already", e.Job, e.Host, v.guest[e.Host])
		}
		if len(v.Job(e.Job).Holds) > 0 {
			v.Fatalf("job %s joins %s, and has GPUs of its own", e.Job, e.Host)
		}
		v.host[e.Job], v.guest[e.Host] = e.Host, e.Job
		a, b := e.Job, e.Host
		if a.Compare(b) > 0 {
			a, b = b, a
		}
		v.met[[2]cluster.JobID{a, b}]++
	case sim.Parted:
		delete(v.host, e.Job)
		delete(v.guest, e.Host)
	case sim.Started:
		if v.host[e.Job] != (cluster.JobID{}) {
			v.Fatalf("job %s starts while it is the guest of %s", e.Job, v.host[e.Job])
		}
	}
}

// all gives all pairs of kinds the same fraction of their speed.
func all(part float64, kinds ...string) together {
	out := together{}
	for _, a := range kinds {
		for _, b := range kinds {
			out[[2]string{a, b}] = part
		}
	}
	return out
}

// Jobs progress at the rates of their pairs in the program, and a GPU's time is counted once. A
// job in several pairs runs in one of them at a time.
func TestPairsFollowShares(t *testing.T) {
	for _, c := range []struct {
		name       string
		gpus, jobs int
		part       float64
		want       float64 // throughput of each, relative to alone
	}{
		{"two on one GPU, better together", 1, 2, 0.9, 0.9},
		{"two on one GPU, worse together", 1, 2, 0.4, 0.5},
		{"three on two: a pair and one alone, in turn", 2, 3, 0.75, 2.5 / 3},
		{"five on two: two pairs, in turn", 2, 5, 0.75, 3. / 5},
		{"one on one GPU", 1, 1, 0.9, 1},
	} {
		w := heterogeneous(t, "gavel:las+ss", models(c.gpus, "v100"), map[string]map[string]float64{"x": {"v100": 1}}, all(c.part, "x"))
		visiting(t, w)
		var ids []cluster.JobID
		for range c.jobs {
			ids = append(ids, w.Queue("a", 1, 1000*hour, kind("x")))
		}
		w.Run(60 * hour)
		held := cluster.GPUTime(0)
		for _, id := range ids {
			held += w.Received(id)
			if got := float64(w.Progress(id)) / float64(60*hour); math.Abs(got-c.want) > 0.02 {
				t.Errorf("%s: job %s did %.3f of the time's work, want %.3f", c.name, id, got, c.want)
			}
		}
		if most := cluster.Times(c.gpus, 60*hour); held > most || held < most*99/100 {
			t.Errorf("%s: GPU time of %v, there is %v", c.name, held, most)
		}
	}
}

// Pairs are chosen by their combined throughput.
func TestPairsAreChosenByWhatTheyDoTogether(t *testing.T) {
	parts := all(0.55, "a", "b")
	parts[[2]string{"a", "b"}], parts[[2]string{"b", "a"}] = 0.95, 0.9
	w := heterogeneous(t, "gavel:throughput+ss", models(2, "v100"), map[string]map[string]float64{"a": {"v100": 1}, "b": {"v100": 1}}, parts)
	v := visiting(t, w)
	var ids []cluster.JobID
	for _, k := range []string{"a", "a", "b", "b"} {
		ids = append(ids, w.Queue("a", 1, 1000*hour, kind(k)))
	}
	w.Run(10 * hour)
	for i, id := range ids {
		want := []float64{0.95, 0.95, 0.9, 0.9}[i]
		if got := float64(w.Progress(id)) / float64(10*hour); math.Abs(got-want) > 0.01 {
			t.Errorf("job %s did %.3f of the time's work, want %.3f", id, got, want)
		}
	}
	for pair := range v.met {
		if w.Job(pair[0]).Name == w.Job(pair[1]).Name {
			t.Errorf("%v met, both of kind %s", pair, w.Job(pair[0]).Name)
		}
	}
}

// Gandiva's packing pairs jobs at random if there are more jobs than GPUs. Pairs with less
// throughput than one job alone are separated and redrawn. If all jobs fit alone none share.
func TestPackingTriesPairs(t *testing.T) {
	parts := all(0.3, "a", "b")
	parts[[2]string{"a", "b"}], parts[[2]string{"b", "a"}] = 0.9, 0.9
	w := heterogeneous(t, "gandiva:packing", models(3, "v100"), map[string]map[string]float64{"a": {"v100": 1}, "b": {"v100": 1}}, parts)
	v := visiting(t, w)
	var ids []cluster.JobID
	for _, k := range []string{"a", "a", "a", "b", "b", "b"} {
		ids = append(ids, w.Queue("a", 1, 1000*hour, kind(k)))
	}
	w.Run(20 * hour)
	if len(v.host) != 3 {
		t.Errorf("%d jobs share the GPU of another after 20 hours, want 3", len(v.host))
	}
	bad := 0
	for pair := range v.met {
		if w.Job(pair[0]).Name == w.Job(pair[1]).Name {
			bad++
		}
	}
	if bad == 0 {
		t.Error("no pair that does no good was tried: then nothing is at random")
	}
	before := w.Progress(ids[0])
	w.Run(10 * hour)
	if got := float64(w.Progress(ids[0])-before) / float64(10*hour); math.Abs(got-0.9) > 0.01 {
		t.Errorf("in a good pair a job did %.3f of the time's work", got)
	}
	for _, id := range ids[3:] {
		w.Cancel(id)
	}
	w.Run(hour)
	if len(v.host) != 0 {
		t.Errorf("three jobs on three GPUs, and guests: %v", v.host)
	}
	w.WantRunning("three on three", map[cluster.JobID]bool{ids[0]: true, ids[1]: true, ids[2]: true})
}

// Two decisions on the same round are equal.
func TestPairsOfARoundThatIsLookedAtTwice(t *testing.T) {
	for _, name := range []string{"gavel:las+ss", "gandiva:packing"} {
		w := heterogeneous(t, name, models(2, "k80", "v100"), map[string]map[string]float64{"x": {"k80": 0.3, "v100": 1}}, all(0.7, "x"))
		decide := w.Loop.Decide
		w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			first, second := decide(s), decide(s)
			if d := cmp.Diff(first.State.Leases, second.State.Leases); d != "" {
				t.Fatalf("%s: the leases of one moment (-first +second):\n%s", name, d)
			}
			return second
		}
		v := visiting(t, w)
		for range 9 {
			w.Queue("a", 1, 5*hour, kind("x"))
		}
		if w.Run(2 * hour); len(v.host) == 0 {
			t.Errorf("%s: nobody shares GPUs", name)
		}
	}
}
