package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Kind is a kind of statement, each with errors of its own.
type Kind int

// The kinds.
const (
	Starts  Kind = iota // the next start of a waiting job
	Returns             // the end of a waiting job
	Ends                // the end of a running job
	kinds
)

// Outcome is an earlier statement, made At, and what became of it.
type Outcome struct {
	Kind    Kind
	At      cluster.Instant
	Horizon cluster.Span
	Said    Times
	Was     cluster.Instant // 0 = it has not happened
	Until   cluster.Instant // when that was looked up
}

// Calibration corrects statements by the errors of earlier ones. The zero value corrects nothing.
type Calibration [kinds]Stretch

// Stretch moves the quantiles of a statement. Distances are in the logarithm of the time ahead, in units of the distance
// from P50 to P10 or P90.
type Stretch struct {
	Known          bool
	P10, P50, P90  float64
	Statements, In int // compared statements, and those of them whose moment was between P10 and P90
}

// fewest is the number of outcomes from which a calibration is made.
const fewest = 50

// Calibrate makes a calibration such that 10, 50 and 90 percent of the outcomes would have come by the quantiles. Outcomes that
// have not come yet count as later than their time so far (Kaplan and Meier, 1958).
func Calibrate(outcomes []Outcome) Calibration {
	type seen struct {
		z    float64
		came bool
	}
	var all [kinds][]seen
	var out Calibration
	for i := range outcomes {
		o := &outcomes[i]
		if o.Said.P10 == 0 {
			continue // it said nothing
		}
		x := scaleOf(o.Said, o.At, o.Horizon)
		end := min(o.Until, o.At.Add(o.Horizon))
		came := o.Was > 0 && o.Was <= end
		at := end
		if came {
			at = o.Was
		}
		z := x.of(x.lead(at))
		all[o.Kind] = append(all[o.Kind], seen{z, came})
		if came {
			out[o.Kind].Statements++
			if z >= -1 && z <= 1 {
				out[o.Kind].In++
			}
		}
	}
	for k := range all {
		list, s := all[k], &out[k]
		if len(list) < fewest {
			continue
		}
		slices.SortFunc(list, func(a, b seen) int { return cmp.Compare(a.z, b.z) })
		alive := 1.0
		to := []*float64{&s.P10, &s.P50, &s.P90}
		at := []float64{0.9, 0.5, 0.1}
		*to[0], *to[1], *to[2] = -1, 0, 1
		done := 0
		for i, x := range list {
			if x.came {
				alive *= 1 - 1/float64(len(list)-i)
			}
			for done < 3 && alive <= at[done] {
				*to[done] = x.z
				done++
			}
		}
		if s.Known = done > 0; done < 3 { // later than any outcome so far
			*to[2] = max(*to[2], list[len(list)-1].z)
		}
	}
	return out
}

// scale measures times ahead of a statement by its quantiles.
type scale struct {
	at             cluster.Instant
	low, mid, high float64
	horizon        float64
}

// narrow is the smallest distance between two quantiles, in the logarithm of the time ahead.
const narrow = 0.05

func scaleOf(t Times, at cluster.Instant, horizon cluster.Span) scale {
	x := scale{at: at}
	x.horizon = x.lead(at.Add(horizon))
	lead := func(t cluster.Instant) float64 {
		if t == 0 {
			return x.horizon
		}
		return x.lead(t)
	}
	x.mid = lead(t.P50)
	x.low, x.high = max(x.mid-lead(t.P10), narrow), max(lead(t.P90)-x.mid, narrow)
	return x
}

// lead is the logarithm of the time ahead and a minute.
func (x *scale) lead(t cluster.Instant) float64 {
	return math.Log(float64(max(t.Sub(x.at), 0) + cluster.Minute))
}

func (x *scale) of(lead float64) float64 {
	if lead < x.mid {
		return (lead - x.mid) / x.low
	}
	return (lead - x.mid) / x.high
}

// correct moves the quantiles of a statement.
func (s *Stretch) correct(t Times, at cluster.Instant, horizon cluster.Span) Times {
	if !s.Known || t.P10 == 0 {
		return t
	}
	x := scaleOf(t, at, horizon)
	moment := func(z float64) cluster.Instant {
		lead := x.mid + z*x.high
		if z < 0 {
			lead = x.mid + z*x.low
		}
		if lead >= x.horizon {
			return 0
		}
		return at.Add(cluster.Span(max(math.Exp(lead)-float64(cluster.Minute), 0)) / cluster.Second * cluster.Second)
	}
	out := Times{moment(s.P10), moment(s.P50), moment(s.P90)}
	if t.P90 == 0 {
		out.P90 = 0
	}
	return out
}
