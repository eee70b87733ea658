package explain_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

func TestWhatAModelIsWorth(t *testing.T) {
	for _, x := range []struct {
		speedup float64
		source  cluster.Source
		want    string
	}{
		{1, "", "its throughput there is unknown"},
		{0, cluster.Declared, "it does not run there (declared)"},
		{1, cluster.Observed, "as fast as on the reference model (observed)"},
		{3.14159, cluster.Estimated, "3.14 times as fast as on the reference model (estimated)"},
	} {
		if got := explain.Worth(x.speedup, x.source); got != x.want {
			t.Errorf("%v, %q: %q, want %q", x.speedup, x.source, got, x.want)
		}
	}
}

// A job that moves to another model says to which one, when and why.
func TestAMoveInWords(t *testing.T) {
	w := explain.Words{Now: 1_800_000_000_000, Job: func(k cluster.JobKey) string { return map[cluster.JobKey]string{7: "4711_3"}[k] }}
	for _, x := range []struct {
		reason cluster.Reason
		want   string
	}{
		{cluster.Reason{Code: cluster.ReasonNotice, Pool: "k80", To: "v100", Speed: 2400, Until: w.Now.Add(cluster.Minute)},
			"has notice: it moves to v100 when its lease ends, at 08:01:00 (in 1 min), where it is 2.40 times as fast; it should save before; it is then requeued, and its GPUs are kept for it there"},
		{cluster.Reason{Code: cluster.ReasonNotice, Pool: "v100", To: "k80", Speed: 400, Until: w.Now.Add(cluster.Minute), For: 7},
			"has notice: it moves to k80 when its lease ends, at 08:01:00 (in 1 min), where its tenant is due GPUs; it should save before; it is then requeued, and its GPUs are kept for it there; the GPUs that it leaves go to job 4711_3"},
		{cluster.Reason{Code: cluster.ReasonEnding, Pool: "k80", To: "v100", Queue: cluster.JobQueues, For: 7},
			"was requeued to move to v100, where it is due GPUs; its GPUs are kept for it there; the GPUs that it leaves go to job 4711_3"},
		{cluster.Reason{Code: cluster.ReasonEnding, Pool: "v100", To: "k80", Speed: 1500, Trial: true},
			"was requeued to move to k80, for a trial: its type has not been measured there; its GPUs are kept for it there"},
		{cluster.Reason{Code: cluster.ReasonNotice, Pool: "v100", To: "v100", Until: w.Now.Add(cluster.Minute)},
			"has notice: it moves to another GPU when its lease ends, at 08:01:00 (in 1 min), which is idle, and which it then has to itself; it should save before; it is then requeued, and its GPUs are kept for it there"},
		{cluster.Reason{Code: cluster.ReasonEnding, Pool: "v100", To: "v100"},
			"was requeued to move to another GPU, which is idle, and which it then has to itself; its GPUs are kept for it there"},
	} {
		if got := w.Reason(x.reason); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// An allocation that may be below the best says by how much; others say nothing.
func TestABoundInWords(t *testing.T) {
	for _, x := range []struct {
		d    *cluster.Allocation
		want string
	}{
		{nil, ""},
		{&cluster.Allocation{Policy: "oef:coop", Objective: 9}, ""},
		{&cluster.Allocation{Policy: "oef:coop", Objective: 9, Bound: 10, Why: "no division without envy was found"}, ""},
		{&cluster.Allocation{Policy: "oef:coop", Objective: 9, Bound: 10},
			"The allocation has at least 90.0 % of the largest total throughput that oef:coop allows; a better one may exist, since demands limit it."},
	} {
		if got := explain.Bound(x.d); got != x.want {
			t.Errorf("%+v: %q, want %q", x.d, got, x.want)
		}
	}
}

func TestATradeInWords(t *testing.T) {
	trade := cluster.Trade{Fast: "v100", Slow: "k80", FastTo: cluster.PartyName{Tenant: "nlp", Kind: "nlp/bert"}, SlowTo: cluster.PartyName{Tenant: "bio"},
		FastGPUs: 1_250_000, SlowGPUs: 2_500_000, Price: 2, FastToSpeedup: 5, SlowToSpeedup: 1.2}
	const want = "nlp/bert gets 1.25 v100 of bio for 2.50 k80 (2.00 each): one is worth 5.00 to the first, 1.20 to the other"
	if got := explain.Trade(&trade); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, why := range []string{"left", "speedups", "entitlement", "demand", "policy"} {
		if explain.Undone(why) == why {
			t.Errorf("there are no words for %q", why)
		}
	}
	if got := explain.Undone("eclipse"); got != "eclipse" {
		t.Errorf("an unknown reason is %q", got)
	}
}
