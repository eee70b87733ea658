package explain_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/explain"
)

func TestWhatAModelIsWorth(t *testing.T) {
	for _, x := range []struct {
		speedup float64
		source  cluster.Source
		want    string
	}{
		{1, "", "nobody knows how fast it runs there"},
		{0, cluster.Declared, "it does not run there (declared)"},
		{1, cluster.Observed, "slowest (observed)"},
		{3.14159, cluster.Estimated, "3.14 times as fast as on the slowest (estimated)"},
	} {
		if got := explain.Worth(x.speedup, x.source); got != x.want {
			t.Errorf("%v, %q: %q, want %q", x.speedup, x.source, got, x.want)
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
