package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Coverage is how many statements of a class kept their word.
type Coverage struct {
	Kind string `json:"kind"`
	// By divides the kind: tenant, gpus or ahead; "" = the whole kind. Class is the part.
	By    string `json:"by,omitempty" db:"divided_by"`
	Class string `json:"class,omitempty"`
	// Statements are those whose word can be judged, of so many Forecasts.
	Statements int `json:"statements"`
	Forecasts  int `json:"forecasts"`
	// Percent is the part that kept its word, on the scale of intervals for 8 of 10: 80 is as promised. Low and High are its 95 % interval of
	// confidence.
	Percent float64 `json:"percent"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// The percentage that intervals promise, and the bounds within which a class keeps its word.
const (
	Promised = 80
	Lowest   = 75
	Highest  = 85
)

// promise gives the part of such statements that come true, and the moment from which it is known whether one did: by its quantiles alone, since
// statements that fail early would count double otherwise. One with an interval says 8 of 10; one whose interval is open, or that is wholly
// beyond the horizon, says 9 of 10.
func (o *Outcome) promise() (part float64, from cluster.Instant) {
	switch {
	case o.Said.P10 == 0:
		return 0.9, o.At.Add(o.Horizon)
	case o.Said.P90 == 0:
		return 0.9, o.Said.P10
	}
	return 0.8, o.Said.P90
}

// kept tells whether the moment was where the statement said.
func (o *Outcome) kept() bool {
	early := o.Said.P10
	if early == 0 {
		early = o.At.Add(o.Horizon)
	}
	return (o.Was == 0 || o.Was >= early) && (o.Said.P90 == 0 || o.Was > 0 && o.Was <= o.Said.P90)
}

// sum sums up the statements of a class.
type sum struct {
	n, kept         int
	promised        float64
	forecasts, jobs blocks
}

// blocks sums up squares over the statements of each forecast, or of each job: those of one follow each other.
type blocks struct {
	count      int
	nn, nk, kk int
	of         int64
	n, kept    int // of the present one
}

func (b *blocks) add(of int64, kept int) {
	if b.count == 0 || of != b.of {
		b.close()
		b.of, b.count = of, b.count+1
	}
	b.n, b.kept = b.n+1, b.kept+kept
}

// close ends the present one.
func (b *blocks) close() {
	b.nn, b.nk, b.kk = b.nn+b.n*b.n, b.nk+b.n*b.kept, b.kk+b.kept*b.kept
	b.n, b.kept = 0, 0
}

// spread gives the sum of squares of how many more of each kept their word than a part of them.
func (b *blocks) spread(part float64) float64 {
	b.close()
	return float64(b.kk) - 2*part*float64(b.nk) + part*part*float64(b.nn)
}

// fewestShown is the number of statements from which a part of a kind is shown.
const fewestShown = 50

// Cover sums up the outcomes by class: the kinds first, then their parts.
func Cover(outcomes []Outcome) []Coverage {
	type key struct {
		kind      Kind
		by, class string
	}
	sums := map[key]*sum{}
	each := func(less func(a, b *Outcome) int, add func(s *sum, o *Outcome, promised float64, kept int)) {
		var order []*Outcome
		for i := range outcomes {
			order = append(order, &outcomes[i])
		}
		slices.SortStableFunc(order, less)
		for _, o := range order {
			promised, from := o.promise()
			if from > o.Until {
				continue
			}
			kept := 0
			if o.kept() {
				kept = 1
			}
			for _, k := range []key{{o.Kind, "", ""}, {o.Kind, "tenant", o.Tenant}, {o.Kind, "gpus", sizeOf(o.GPUs)}, {o.Kind, "ahead", aheadOf(o)}} {
				s := sums[k]
				if s == nil {
					s = &sum{}
					sums[k] = s
				}
				add(s, o, promised, kept)
			}
		}
	}
	each(func(a, b *Outcome) int { return cmp.Compare(a.At, b.At) }, func(s *sum, o *Outcome, promised float64, kept int) {
		s.n, s.kept, s.promised = s.n+1, s.kept+kept, s.promised+promised
		s.forecasts.add(int64(o.At), kept)
	})
	each(func(a, b *Outcome) int { return cmp.Compare(a.Job, b.Job) }, func(s *sum, o *Outcome, _ float64, kept int) { s.jobs.add(int64(o.Job), kept) })
	var out []Coverage
	for k, s := range sums {
		if k.by != "" && s.n < fewestShown {
			continue
		}
		c := Coverage{Kind: k.kind.String(), By: k.by, Class: k.class, Statements: s.n, Forecasts: s.forecasts.count}
		shift := Promised - 100*s.promised/float64(s.n)
		low, high := s.interval()
		c.Percent, c.Low, c.High = 100*float64(s.kept)/float64(s.n)+shift, 100*low+shift, 100*high+shift
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Coverage) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// interval gives the 95 % interval of confidence of the part that kept its word (Wilson, 1927). Statements of one forecast fail together, and so
// do those of one job. They count as so many independent ones as have the variance that is seen between forecasts, or between jobs where that is
// larger.
func (s *sum) interval() (low, high float64) {
	n, p := float64(s.n), float64(s.kept)/float64(s.n)
	if variance := max(s.forecasts.spread(p), s.jobs.spread(p)); variance > n*p*(1-p) {
		n = n * n * p * (1 - p) / variance
	}
	const z = 1.96
	mid, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (mid - half) / (1 + z*z/n), (mid + half) / (1 + z*z/n)
}

// sizeOf names the class of a number of GPUs.
func sizeOf(gpus cluster.GPUCount) string {
	switch {
	case 0 < gpus && gpus < cluster.CountOf(1):
		return "less than 1"
	case gpus <= cluster.CountOf(1):
		return "1"
	case gpus <= cluster.CountOf(8):
		return "2-8"
	}
	return "more than 8"
}

// aheadOf names the class of how far ahead the median of a statement is.
func aheadOf(o *Outcome) string {
	_, class := leadOf(o.Said.P50, o.At, o.Horizon)
	return [...]string{"at most 30m", "30m to 4h", "4h to 16h", "more than 16h", "beyond the horizon"}[class]
}
