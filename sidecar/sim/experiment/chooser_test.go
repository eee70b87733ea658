package experiment

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// A preset that divides GPU models has the mechanism that the configuration names, or with paper the one of its own paper.
func TestTheMechanismOfAPreset(t *testing.T) {
	for _, x := range []struct{ by, chooser, want string }{
		{"oef:coop", preset.Paper, cluster.ByOEF}, {"gavel:las", preset.Paper, cluster.ByGavel}, {"gandiva-fair", preset.Paper, cluster.ByStride},
		{"oef:coop", cluster.ByDebt, cluster.ByDebt}, {"oef:coop", "", ""},
	} {
		s := ideal(t, "1x1:v100+1x1:k80", cluster.Hour, job("1", "a", 0, 1, cluster.Hour))
		s.Scheduler, s.Chooser = "fairlease:"+x.by, x.chooser
		r, err := newRun(&s)
		if err != nil {
			t.Fatal(err)
		}
		if _, settings := r.loop.Configure(); settings.Divide != x.by || settings.Mechanism != x.want {
			t.Errorf("%s, chooser %q: %s chooses jobs for %s, want %s", x.by, x.chooser, settings.Mechanism, settings.Divide, x.want)
		}
	}
}
