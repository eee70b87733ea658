package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

// after gives the moment so many hours after the beginning.
func after(hours float64) cluster.Instant {
	return begin.Add(cluster.Span(hours * float64(cluster.Hour)))
}

// Statements that are too sure, and too early by half: corrected, eight of ten new outcomes are between P10 and P90, and one of ten is before
// them. P50 stays.
func TestCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func() (Times, cluster.Instant) {
		mid := 1 + 9*rng.Float64()
		return Times{after(mid / 1.2), after(mid), after(mid * 1.2)}, after(1.5 * mid * math.Exp(0.7*rng.NormFloat64()))
	}
	var past []Outcome
	for range 2000 {
		raw, was := draw()
		past = append(past, Outcome{Kind: Ends, At: begin, Horizon: 7 * cluster.Day, Raw: raw, Said: raw, Was: was, Until: after(200)})
	}
	c := calibrate(past)
	if c[Starts].known || !c[Ends].known {
		t.Errorf("%+v", c)
	}
	in, early := 0, 0
	for range 2000 {
		raw, was := draw()
		x := c.correct(Ends, raw, begin, 7*cluster.Day)
		if was >= x.P10 && was <= x.P90 {
			in++
		}
		if x.P50 != raw.P50 {
			t.Fatalf("%+v becomes %+v", raw, x)
		}
		if was < x.P10 {
			early++
		}
	}
	if in < 1540 || in > 1660 || early < 160 || early > 240 {
		t.Errorf("%d of 2000 are in the interval, %d before it", in, early)
	}
}

// Events that have not happened yet count as later than now. Left out, outcomes would look as if they came early.
func TestOutcomesThatHaveNotCome(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	raw := Times{after(5), after(10), after(20)}
	var past []Outcome
	for range 2000 {
		o := Outcome{Kind: Ends, At: begin, Horizon: 7 * cluster.Day, Raw: raw, Said: raw, Was: after(10 * math.Exp(rng.NormFloat64())), Until: after(12)}
		if o.Was > o.Until {
			o.Was = 0
		}
		past = append(past, o)
	}
	c := calibrate(past)
	want := 10 * math.Exp(-1.2816)
	if x := c.correct(Ends, raw, begin, 7*cluster.Day); math.Abs(float64(x.P10.Sub(after(want)))) > 0.3*float64(cluster.Hour) || x.P50 != raw.P50 || x.P90 != 0 {
		t.Errorf("%+v: P10 is at %v, want %.2f h; a tenth was not seen to come later than any moment", x, x.P10.Sub(begin), want)
	}
}

// Few outcomes correct nothing. Where most come within the horizon, a statement beyond it is moved, too.
func TestWithoutCalibration(t *testing.T) {
	raw := Times{after(5), after(10), 0}
	var few []Outcome
	for range fewest - 1 {
		few = append(few, Outcome{Kind: Ends, At: begin, Horizon: cluster.Day, Raw: raw, Said: raw, Was: after(1), Until: after(30)})
	}
	c := calibrate(few)
	if got := c.correct(Ends, raw, begin, cluster.Day); got != raw {
		t.Errorf("%+v", got)
	}
	c = calibrate(append(few, few...))
	hour := after(1)
	if got := c.correct(Ends, raw, begin, cluster.Day); got != (Times{hour, hour, hour}) {
		t.Errorf("%+v", got)
	}
}

// course draws statements of three kinds, one forecast in six hours, and their outcomes. Their errors grow and shrink with the days. The
// quantiles of many statements are equal, and some moments are beyond the horizon.
func course(rng *rand.Rand, days int) (out []Outcome) {
	shift := 0.0
	for at := begin; at < begin.Add(cluster.Span(days)*cluster.Day); at = at.Add(6 * cluster.Hour) {
		shift = 0.8*shift + 0.15*rng.NormFloat64()
		for n := range 100 {
			kind := Kind(n % int(kinds))
			hours := math.Exp(math.Log(6) + 1.5*rng.NormFloat64())
			spread := float64(rng.IntN(3)) * 0.2
			width := [...]float64{0.4, 1, 0.7}[kind]
			was := at.Add(cluster.Span(hours * math.Exp([...]float64{-1, 0.3, 0}[kind]+shift+width*rng.NormFloat64()) * float64(cluster.Hour)))
			moment := func(z float64) cluster.Instant {
				if h := hours * math.Exp(z*spread); h < 72 {
					return at.Add(cluster.Span(h * float64(cluster.Hour)))
				}
				return 0
			}
			out = append(out, Outcome{Kind: kind, Job: cluster.JobKey(len(out)), Tenant: "a", GPUs: cluster.CountOf(n % 9), At: at, Horizon: 3 * cluster.Day,
				Raw: Times{moment(-1), moment(0), moment(1)}, Was: was})
		}
	}
	return out
}

// asOf gives what is known of outcomes at a moment.
func asOf(all []Outcome, now cluster.Instant) (out []Outcome) {
	for _, o := range all {
		if o.At >= now {
			break
		}
		if o.Until = now; o.Was > now {
			o.Was = 0
		}
		out = append(out, o)
	}
	return out
}

// foretold states all outcomes of a course, each forecast corrected by what is known then. Without feedback, misses of statements are kept from it.
func foretold(t *testing.T, all []Outcome, feedback bool) {
	t.Helper()
	var c calibration
	for i := range all {
		o := &all[i]
		if i == 0 || o.At != all[i-1].At {
			known := asOf(all[:i], o.At)
			for k := range known {
				if !feedback {
					known[k].Said = known[k].Raw
				}
			}
			c = calibrate(known)
		}
		o.Said = c.correct(o.Kind, o.Raw, o.At, o.Horizon)
		if !o.Said.ascend() {
			t.Fatalf("%+v of %+v are no quantiles", o.Said, o.Raw)
		}
	}
}

// Each forecast is corrected by what is known then. After ten days, the statements of every kind keep their word within the bounds that docs
// promise, and those before calibration do not.
func TestStatementsKeepTheirWord(t *testing.T) {
	for seed := range seeds.Of(t, 3) {
		all := course(rand.New(rand.NewPCG(seed, 1)), 30)
		foretold(t, all, true)
		middle := begin.Add(10 * cluster.Day)
		var late, raw []Outcome
		for _, o := range asOf(all, begin.Add(40*cluster.Day)) {
			if o.At >= middle {
				late = append(late, o)
				o.Said = o.Raw
				raw = append(raw, o)
			}
		}
		before := Cover(raw)
		for i, x := range Cover(late) {
			if x.By != "" {
				break
			}
			if x.Statements < 1000 || x.Percent < Lowest || x.Percent > Highest || x.Low > x.Percent || x.High < x.Percent {
				t.Errorf("seed %d: %+v", seed, x)
			}
			if before[i].Percent > 70 {
				t.Errorf("seed %d: without calibration it is %+v", seed, before[i])
			}
		}
	}
}

// From a day on everything comes three times as soon, or as late. In the days after that, kinds are nearer to what they promise, in the mean of the
// seeds, if misses are heard.
func TestStatementsFollowTheLoad(t *testing.T) {
	with, without, n := 0.0, 0.0, 0.0
	for seed := range seeds.Of(t, 3) {
		for _, factor := range []float64{1. / 3, 3} {
			change := begin.Add(12 * cluster.Day)
			off := func(feedback bool) (sum float64) {
				all := course(rand.New(rand.NewPCG(seed, 1)), 16)
				for i := range all {
					if o := &all[i]; o.At >= change {
						o.Was = o.At.Add(cluster.Span(factor * float64(o.Was.Sub(o.At))))
					}
				}
				foretold(t, all, feedback)
				for _, x := range Cover(slices.DeleteFunc(asOf(all, begin.Add(40*cluster.Day)), func(o Outcome) bool { return o.At < change })) {
					if x.By == "" {
						sum += math.Abs(x.Percent-Promised) / float64(kinds)
					}
				}
				return sum
			}
			with, without, n = with+off(true), without+off(false), n+1
		}
	}
	if with > without/2 {
		t.Errorf("kinds are off by %.1f points, %.1f without feedback", with/n, without/n)
	}
}

// A statement counts from the moment at which its quantiles alone tell that its word can be judged, and an open one promises more.
func TestCover(t *testing.T) {
	now := after(24)
	said := func(p10, p50, p90, was float64) Outcome {
		moment := func(h float64) cluster.Instant {
			if h == 0 {
				return 0
			}
			return after(h)
		}
		return Outcome{Kind: Ends, At: begin, Horizon: 2 * cluster.Day, Said: Times{moment(p10), moment(p50), moment(p90)}, Was: moment(was), Until: now}
	}
	for _, x := range []struct {
		what           string
		o              Outcome
		judged, closed bool
		kept           bool
	}{
		{"in the interval", said(1, 2, 3, 2), true, true, true},
		{"before it", said(1, 2, 3, 0.5), true, true, false},
		{"after it", said(1, 2, 3, 4), true, true, false},
		{"not yet, after it", said(1, 2, 3, 0), true, true, false},
		{"before an interval that still goes on", said(3, 10, 30, 2), false, true, false},
		{"after the begin of an open interval", said(3, 10, 0, 0), true, false, true},
		{"before an open interval", said(3, 10, 0, 2), true, false, false},
		{"beyond the horizon, which has not passed", said(0, 0, 0, 0), false, false, true},
	} {
		part, from := x.o.promise()
		if judged := from <= now; judged != x.judged || (part == 0.8) != x.closed || x.o.kept() != x.kept {
			t.Errorf("%s: promises %v from %v on, kept %v", x.what, part, from.Sub(begin), x.o.kept())
		}
	}
	var all []Outcome
	for n := range 1000 {
		o := said(1, 2, 0, 5)
		if o.Job, o.At = cluster.JobKey(n), begin.Add(cluster.Span(n%10)); n%10 == 0 { // all of one forecast
			o.Was = after(0.5)
		}
		all = append(all, o)
	}
	one := Cover(all)[0]
	if math.Abs(one.Percent-Promised) > 1e-9 || one.Forecasts != 10 || one.High-one.Low < 30 {
		t.Errorf("one of ten forecasts fails as a whole: %+v", one)
	}
	for n := range all {
		if all[n].Was = after(5); n%100/10 == n%10 {
			all[n].Was = after(0.5)
		}
	}
	if one := Cover(all)[0]; math.Abs(one.Percent-Promised) > 1e-9 || one.High-one.Low > 4 {
		t.Errorf("a tenth of each forecast fails: %+v", one)
	}
}
