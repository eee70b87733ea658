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

// String names a kind as metrics and the journal do.
func (k Kind) String() string { return [...]string{"waiting_start", "waiting_end", "running_end"}[k] }

// Outcome is an earlier statement, made At, and what became of it.
type Outcome struct {
	Kind    Kind
	Job     cluster.JobKey
	Tenant  string
	GPUs    cluster.GPUCount
	At      cluster.Instant
	Horizon cluster.Span
	Raw     Times // before calibration
	Said    Times
	Was     cluster.Instant // 0 = it has not happened
	Until   cluster.Instant // when that was looked up
}

// calibration corrects statements by what became of earlier ones. The zero value corrects nothing.
//
// P10 and P90 are moved by distances of their own: that by which, in as large a part of the earlier statements as they promise, the moment came
// after them, or less (conformalised quantile regression: Romano, Patterson and Candès, 2019, one class at a time). Distances are in the
// logarithm of the time ahead. So a statement whose quantiles are equal is widened, too. Classes are kinds of statements by how far ahead
// the quantile is. Of two outcomes, one that was stated halfLife earlier weighs half, and few outcomes of a class are joined by those of all.
//
// The load drifts, so statements thus corrected miss more than they promise, or less. Their own misses move the parts (adaptive conformal
// inference: Gibbs and Candès, 2021): see partsOf.
//
// P50 stays the median of the runs, within the interval. Moved likewise, half of the moments would come by it, but in the median it would be
// farther from them: many jobs end much later than the others of their class, and pull it away from where most are.
type calibration [kinds]struct {
	known bool
	move  [2][len(distances) + 2]float64 // of P10 and P90
}

const (
	// fewest is the number of outcomes of a kind from which it is corrected.
	fewest = 50
	// strange is the number of recent outcomes as which all of a kind weigh beside those of a class.
	strange  = 10
	halfLife = 3 * cluster.Day
	// memory is the half-life of misses in partsOf. A forecast with n statements counts as n/(n+thin) of one in it.
	memory = 12 * cluster.Hour
	thin   = 100
)

// parts are the parts of outcomes that come by P10 and P90.
var parts = [2]float64{0.1, 0.9}

// distances divide statements by how far ahead they are. There are two more classes: farther ahead, and beyond the horizon.
var distances = [...]cluster.Span{30 * cluster.Minute, 4 * cluster.Hour, 16 * cluster.Hour}

// ends gives P10 and P90.
func (t *Times) ends() [2]cluster.Instant { return [2]cluster.Instant{t.P10, t.P90} }

// lead is the logarithm of the time ahead and a minute.
func lead(ahead cluster.Span) float64 {
	return math.Log(float64(max(ahead, 0) + cluster.Minute))
}

// leadOf gives the lead of a quantile, at most the horizon's, and its class.
func leadOf(t, at cluster.Instant, horizon cluster.Span) (float64, int) {
	ahead := t.Sub(at)
	if t == 0 || ahead >= horizon {
		return lead(horizon), len(distances) + 1
	}
	class, _ := slices.BinarySearch(distances[:], ahead)
	return lead(ahead), class
}

// residual is by how much a moment came after a quantile, or more if it has not come yet.
type residual struct {
	by, weight float64
	class      int
	came       bool
}

// calibrate makes a calibration.
func calibrate(outcomes []Outcome) (out calibration) {
	for kind := range out {
		for q, part := range partsOf(outcomes, Kind(kind)) {
			var list []residual
			for i := range outcomes {
				o := &outcomes[i]
				if int(o.Kind) != kind {
					continue
				}
				end := min(o.Until, o.At.Add(o.Horizon))
				x := residual{weight: math.Exp2(-float64(o.Until.Sub(o.At)) / float64(halfLife)), came: o.Was > 0 && o.Was <= end}
				if x.came {
					end = o.Was
				}
				x.by, x.class = leadOf(o.Raw.ends()[q], o.At, o.Horizon)
				x.by = lead(end.Sub(o.At)) - x.by
				list = append(list, x)
			}
			if out[kind].known = len(list) >= fewest; !out[kind].known {
				break
			}
			slices.SortFunc(list, func(a, b residual) int { return cmp.Compare(a.by, b.by) })
			for class := range out[kind].move[q] {
				out[kind].move[q][class] = residualAt(list, class, part)
			}
		}
	}
	return out
}

// partsOf gives the parts of outcomes by whose residuals P10 and P90 of a kind are moved. Each earlier forecast moves them by the part of its
// corrected statements that missed, less the part that may. So P10 gets earlier while too many moments come before it. Parts may leave 0 to 1:
// P10 is then the present, or P90 is open. A statement as the runs had it was not corrected, unless it is beyond the horizon.
func partsOf(outcomes []Outcome, kind Kind) [2]float64 {
	made := map[cluster.Instant]int{}
	for i := range outcomes {
		if o := &outcomes[i]; o.Kind == kind {
			made[o.At]++
		}
	}
	out := parts
	for i := range outcomes {
		if o := &outcomes[i]; o.Kind == kind && (o.Said != o.Raw || o.Said.P10 == 0) {
			weight := math.Exp2(-float64(o.Until.Sub(o.At))/float64(memory)) / float64(made[o.At]+thin)
			for q, by := range o.missed() {
				out[q] += weight * by
			}
		}
	}
	return out
}

// missed gives by how much a statement moves the parts of P10 and P90. A moment before P10 counts as soon as it comes, one that is later than P90
// as soon as P90 has passed, and what is promised once the quantile has passed.
func (o *Outcome) missed() (by [2]float64) {
	early := o.Said.P10
	if early == 0 {
		early = o.At.Add(o.Horizon)
	}
	if o.Was > 0 && o.Was < early {
		by[0]--
	}
	if early <= o.Until {
		by[0] += parts[0]
	}
	if late := o.Said.P90; late > 0 && late <= o.Until {
		if by[1] += parts[1] - 1; o.Was == 0 || o.Was > late {
			by[1]++
		}
	}
	return by
}

// residualAt gives the residual by which a part of a class has come, of a sorted list. Moments that have not come yet count as later than that
// (Kaplan and Meier, 1958). It is infinite if fewer have come, and before all of them if the part is not above 0.
func residualAt(list []residual, class int, part float64) float64 {
	if part <= 0 {
		return math.Inf(-1)
	}
	total := 0.0
	for i := range list {
		total += list[i].weight
	}
	others := min(strange/total, 1)
	weigh := func(x *residual) float64 {
		if x.class == class {
			return x.weight * (1 + others)
		}
		return x.weight * others
	}
	left := 0.0
	for i := range list {
		left += weigh(&list[i])
	}
	waits := 1.0
	for i := range list {
		x := &list[i]
		w := weigh(x)
		if x.came {
			if waits *= 1 - w/left; 1-waits >= part {
				return x.by
			}
		}
		if left -= w; left < 1e-12 {
			break
		}
	}
	return math.Inf(1)
}

// correct moves the quantiles of a statement.
func (c *calibration) correct(kind Kind, t Times, at cluster.Instant, horizon cluster.Span) Times {
	of := &c[kind]
	if !of.known {
		return t
	}
	var to [2]cluster.Instant
	for q, x := range t.ends() {
		from, class := leadOf(x, at, horizon)
		if ahead := from + of.move[q][class]; ahead < lead(horizon)-1e-9 {
			to[q] = at.Add(cluster.Span(max(math.Exp(ahead)-float64(cluster.Minute), 0)/float64(cluster.Second)+0.5) * cluster.Second)
		}
	}
	later := func(a, b cluster.Instant) cluster.Instant {
		if a == 0 || b == 0 {
			return 0 // after all others
		}
		return max(a, b)
	}
	early := to[0]
	late := later(early, to[1])
	mid := later(early, t.P50)
	if late != 0 && (mid == 0 || mid > late) {
		mid = late
	}
	return Times{early, mid, late}
}
