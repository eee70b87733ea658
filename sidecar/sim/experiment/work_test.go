package experiment

import (
	"fmt"
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// The scores of tenants are of work, under any scheduler: a tenant that gets V100s for more K80s has received more
// work than it was due, although it held fewer GPUs than its share.
func TestScoresAreOfWorkWhereSpeedsAreKnown(t *testing.T) {
	var jobs []trace.Job
	for _, of := range [][2]string{{"a", "lstm"}, {"b", "vae"}} {
		for k := range 8 {
			j := job(fmt.Sprint(of[0], k), of[0], 0, 1, 1000*cluster.Hour)
			j.Kind = of[1]
			jobs = append(jobs, j)
		}
	}
	speeds := sim.Speeds{}
	for kind, fast := range map[string]sim.Speed{"lstm": 6 * sim.Reference, "vae": sim.Reference * 6 / 5} {
		speeds[sim.Task{Kind: kind, GPUs: 1}] = map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: fast}}
	}
	for _, c := range []struct {
		by     string
		rho    [2]float64 // of a and b, at least
		shares bool       // exactly, since each has its share of every model
	}{
		{"fairlease:gandiva-fair", [2]float64{1.1, 1.2}, false},
		{"fairlease:oef:coop", [2]float64{1.4, 1.2}, false},
		{"oef:coop", [2]float64{1.5, 1.25}, false},
		{"astraea", [2]float64{1, 1}, true},
	} {
		s := ideal(t, "2x4:k80+1x4:v100", 10*cluster.Minute, jobs...)
		s.Scheduler, s.Until, s.Speeds = c.by, cluster.Day, speeds
		for k, x := range run1(t, s).Tenants {
			if day := x.Periods[1].Rho.Min; x.Rho < c.rho[k]-1e-4 || c.shares && x.Rho > c.rho[k]+1e-4 || math.Abs(day-x.Rho) > 1e-5 {
				t.Errorf("%s: rho of %s is %.4f, of the day %.4f, want %.2f", c.by, x.Tenant, x.Rho, day, c.rho[k])
			}
			if k == 0 && math.Abs(x.Due-24*(4+2*6)) > 0.01 {
				t.Errorf("%s: a is due %.2f reference GPU-hours, want 24 h of 4 K80s and of 2 V100s", c.by, x.Due)
			}
		}
	}
}
