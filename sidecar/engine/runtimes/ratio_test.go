package runtimes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// watched draws the jobs of a kind that are seen while so many GPUs of each of two models run them one after the other for a time, from the first
// on: those that ended, and those that still run. The work has the spread of e. With moves, jobs of the first model move to the second now and then.
func watched(rng *rand.Rand, gpus int, speeds []float64, span cluster.Span, moves float64) (ended, running []cluster.JobRun) {
	for m := range speeds {
		for range gpus {
			for at := cluster.Span(0); at < span; {
				j, left, on := cluster.JobRun{Ran: make([]cluster.Span, len(speeds)), Done: true}, math.Exp(rng.NormFloat64())*float64(cluster.Hour), m
				for left > 0 {
					stay := cluster.Span(left/speeds[on]) + 1
					if on == 0 && rng.Float64() < moves {
						stay = min(stay, cluster.Hour/4)
					}
					if at+stay > span {
						stay, j.Done, left = span-at, false, 0
					}
					left -= float64(stay) * speeds[on]
					at += stay
					if j.Ran[on] += stay; left > 0 {
						on, j.Began = 1, "m0"
					}
				}
				if j.Began = began(&j); j.Ran[0]+j.Ran[1] < Shortest {
					continue
				}
				if j.Done {
					ended = append(ended, j)
				} else {
					running = append(running, j)
				}
			}
		}
	}
	return ended, running
}

// began leaves the model on which a job began only if it moved.
func began(j *cluster.JobRun) string {
	if j.Ran[0] > 0 && j.Ran[1] > 0 {
		return "m0"
	}
	return ""
}

// Property: the bounds of ratios hold for run times with a spread of e, from the first jobs of a kind on, whether jobs move or not. Standard errors
// without the jobs that still run do not: they call the slow model fast.
func TestBoundsHoldFromTheFirstJobsOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	naive, all := 0, 0
	for _, x := range []struct {
		speed, moves float64
		span         cluster.Span
	}{{1.25, 0, 2 * cluster.Hour}, {6, 0, 2 * cluster.Hour}, {6, 0, 4 * cluster.Hour}, {3, 0, cluster.Day}, {6, 0.5, 4 * cluster.Hour}, {3, 0.3, cluster.Day}} {
		known, low, high, width := 0, 0, 0, 0.0
		for range 60 {
			ended, running := watched(rng, 16, []float64{1, x.speed}, x.span, x.moves)
			got := Fit(models(2), ended, running)
			if got[0].Rate == 0 || got[1].Rate == 0 {
				continue
			}
			c := cluster.Completion{Models: models(2), Rates: got}
			from, to, ok := c.Ratio(1, 0)
			if back, forth, _ := c.Ratio(0, 1); !ok || !(from <= to) || math.Abs(from*forth-1) > 1e-9 || math.Abs(to*back-1) > 1e-9 {
				t.Fatalf("bounds %v to %v, %v to %v the other way", from, to, back, forth)
			}
			known++
			width += math.Log(to/from) / 4
			if to < x.speed {
				low++
			}
			if from > x.speed {
				high++
			}
			if x.moves == 0 {
				all++
				if math.Log(got[1].Rate/got[0].Rate)+2*math.Hypot(got[0].Spread, got[1].Spread) < math.Log(x.speed) {
					naive++
				}
			}
		}
		t.Logf("%+v: of %d ratios %d bounds too low, %d too high, standard error %.2f", x, known, low, high, width/float64(known))
		if known < 30 || low > known*7/100+1 || high > known*7/100+1 || width/float64(known) > 0.6 {
			t.Errorf("%+v: of %d ratios %d bounds are too low, %d too high, their standard error is %.2f", x, known, low, high, width/float64(known))
		}
	}
	if naive < all/10 {
		t.Errorf("without the running jobs only %d of %d are too low: the test shows nothing", naive, all)
	}
}

// Jobs whose users chose the model count in no bounds: they may have more work there.
func TestChosenJobsCountInNoBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	ended, running := watched(rng, 16, []float64{1, 3}, cluster.Day, 0)
	want := Fit(models(2), ended, running)
	for i := range ended {
		if ended[i].Ran[1] > 0 {
			j := ended[i]
			j.Ran, j.Chosen = []cluster.Span{0, 9 * j.Ran[1]}, true
			ended = append(ended, j)
		}
	}
	got := Fit(models(2), ended, running)
	if math.Abs(math.Log(got[1].Least[0]/want[1].Least[0])) > 0.01 || math.Abs(math.Log(got[0].Least[1]/want[0].Least[1])) > 0.01 {
		t.Errorf("bounds %v and %v, without them %v and %v", got[1].Least, got[0].Least, want[1].Least, want[0].Least)
	}
	for i := range ended {
		ended[i].Chosen = true
	}
	if got := Fit(models(2), ended, nil); got[1].Rate > 0 && got[1].Least[0] > got[1].Rate/got[0].Rate/50 {
		t.Errorf("chosen jobs alone give the bound %v", got[1].Least[0])
	}
}

// Of very many running jobs some stand for all.
func TestManyRunningJobs(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	ended, running := watched(rng, most, []float64{1, 3}, 2*cluster.Hour, 0)
	got := Fit(models(2), ended, running)
	if len(running) <= most || got[1].Least == nil || got[1].Least[0] > 3 || 1/got[0].Least[1] < 3 || 1/got[0].Least[1]/got[1].Least[0] > 2 {
		t.Errorf("with %d running jobs %+v", len(running), got)
	}
}
