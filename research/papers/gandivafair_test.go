package papers_test

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// quanta makes a world of Gandiva_fair in which a term is exactly a quantum.
func quanta(t *testing.T, nodes []cluster.Node, users ...string) *simtest.Scheduled {
	w := simtest.Compare(t, simtest.Baseline(t, "gandiva-fair", baseline.Options{}), nodes, users...)
	w.Settings.Notice = 0
	return w
}

// share gives the fraction of some terms in which a job ran.
func share(w *simtest.Scheduled, id cluster.JobID, terms int) float64 {
	return float64(w.Progress(id)) / float64(cluster.Span(terms)*w.Settings.Term)
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

// Table 2: on a server of four GPUs three users with equal tickets have two jobs each, of
// one, two and four GPUs. In six quanta the jobs run for 66.7, 33.3 and 16.7 %.
func TestGandivaFairTable2(t *testing.T) {
	w := quanta(t, simtest.V100s(1, 4), "A", "B", "C")
	ids := map[cluster.JobID]float64{}
	for i, user := range []string{"A", "B", "C"} {
		gpus := 1 << i
		for range 2 {
			ids[w.Queue(user, gpus, simtest.Forever, nil)] = 2.0 / 3 / float64(gpus)
		}
	}
	w.Run(60 * term)
	for id, want := range ids {
		near(t, "share of job "+id.String(), share(w, id, 60), want, 1.0/60)
	}
}

// Fig. 1: two servers of four GPUs; A and B have two jobs of two GPUs each, C has one. C gets
// its two GPUs, A and B three each.
func TestGandivaFairFig1(t *testing.T) {
	w := quanta(t, simtest.V100s(2, 4), "A", "B", "C")
	for _, user := range []string{"A", "B"} {
		w.Queue(user, 2, simtest.Forever, nil)
		w.Queue(user, 2, simtest.Forever, nil)
	}
	w.Queue("C", 2, simtest.Forever, nil)
	w.Run(40 * term)
	for user, gpus := range map[string]float64{"A": 3, "B": 3, "C": 2} {
		near(t, "GPUs of "+user, float64(w.Used(user))/float64(40*term), gpus, 0.1)
	}
}

// §3.1: small jobs with 200 tickets in all on each of two servers get two of three slots, a job
// over both servers with 100 tickets one of three.
func TestGandivaFairLargeJob(t *testing.T) {
	w := quanta(t, simtest.V100s(2, 4), "small", "large")
	w.SetShares("small", 2)
	for range 8 {
		w.Queue("small", 1, simtest.Forever, nil)
	}
	large := w.Queue("large", 8, simtest.Forever, simtest.Anywhere(8))
	w.Run(60 * term)
	near(t, "share of the large job", share(w, large, 60), 1.0/3, 1.0/60)
}

// A new job starts at the smallest pass: it neither waits for the others' past use, nor gets
// compensation for the time before it came.
func TestGandivaFairNewJob(t *testing.T) {
	w := quanta(t, simtest.V100s(1, 1), "A", "B")
	first := w.Queue("A", 1, simtest.Forever, nil)
	w.Run(20 * term)
	second := w.Queue("B", 1, simtest.Forever, nil)
	w.Run(20 * term)
	near(t, "share of the new one since it came", share(w, second, 20), 0.5, 1.0/20)
	near(t, "share of the old one", share(w, first, 40), 0.75, 1.0/40)
}

// Tickets that a user could not use go to others and are no credit (§3.2): with more jobs the
// user gets its share from then on.
func TestGandivaFairUnusedTicketsAreNoCredit(t *testing.T) {
	w := quanta(t, simtest.V100s(1, 8), "A", "B")
	w.Queue("A", 1, simtest.Forever, nil)
	for range 16 {
		w.Queue("B", 1, simtest.Forever, nil)
	}
	w.Run(40 * term)
	before := w.Used("A")
	for range 8 {
		w.Queue("A", 1, simtest.Forever, nil)
	}
	w.Run(10 * term)
	near(t, "GPUs of A since it has more jobs", float64(w.Used("A")-before)/float64(10*term), 4, 0.7)
}
