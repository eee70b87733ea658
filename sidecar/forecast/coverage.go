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
	By    string `json:"by,omitempty"`
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
	n         int
	kept      int
	promised  float64
	forecasts map[cluster.Instant]*part
	jobs      map[cluster.JobKey]*part
}

// part is the statements of a class in one forecast, or of one job.
type part struct{ n, kept int }

// fewestShown is the number of statements from which a part of a kind is shown.
const fewestShown = 50

// Cover sums up the outcomes by class: the kinds first, then their parts.
func Cover(outcomes []Outcome) []Coverage {
	type key struct {
		kind      Kind
		by, class string
	}
	sums := map[key]*sum{}
	for i := range outcomes {
		o := &outcomes[i]
		promised, from := o.promise()
		if from > o.Until {
			continue
		}
		for _, k := range []key{{o.Kind, "", ""}, {o.Kind, "tenant", o.Tenant}, {o.Kind, "gpus", sizeOf(o.GPUs)}, {o.Kind, "ahead", aheadOf(o)}} {
			s := sums[k]
			if s == nil {
				s = &sum{forecasts: map[cluster.Instant]*part{}, jobs: map[cluster.JobKey]*part{}}
				sums[k] = s
			}
			s.add(o, promised)
		}
	}
	var out []Coverage
	for k, s := range sums {
		if k.by != "" && s.n < fewestShown {
			continue
		}
		c := Coverage{Kind: k.kind.String(), By: k.by, Class: k.class, Statements: s.n, Forecasts: len(s.forecasts)}
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

func (s *sum) add(o *Outcome, promised float64) {
	s.n, s.promised = s.n+1, s.promised+promised
	if s.forecasts[o.At] == nil {
		s.forecasts[o.At] = &part{}
	}
	if s.jobs[o.Job] == nil {
		s.jobs[o.Job] = &part{}
	}
	for _, p := range []*part{s.forecasts[o.At], s.jobs[o.Job]} {
		if p.n++; o.kept() {
			p.kept++
		}
	}
	if o.kept() {
		s.kept++
	}
}

// interval gives the 95 % interval of confidence of the part that kept its word (Wilson, 1927). Statements of one forecast fail together, and so
// do those of one job. They count as so many independent ones as have the variance that is seen between forecasts, or between jobs where that is
// larger.
func (s *sum) interval() (low, high float64) {
	n, p := float64(s.n), float64(s.kept)/float64(s.n)
	ofForecasts, ofJobs := spread(s.forecasts, p), spread(s.jobs, p)
	if variance := max(ofForecasts, ofJobs); variance > n*p*(1-p) {
		n = n * n * p * (1 - p) / variance
	}
	const z = 1.96
	mid, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (mid - half) / (1 + z*z/n), (mid + half) / (1 + z*z/n)
}

// spread gives the sum of squares of how many more of each part kept their word than p of them. It adds integers: their order does not matter.
func spread[K comparable](parts map[K]*part, p float64) float64 {
	nn, nk, kk := 0, 0, 0
	for _, x := range parts {
		nn, nk, kk = nn+x.n*x.n, nk+x.n*x.kept, kk+x.kept*x.kept
	}
	return float64(kk) - 2*p*float64(nk) + p*p*float64(nn)
}

// sizeOf names the class of a number of GPUs.
func sizeOf(gpus int) string {
	switch {
	case gpus <= 1:
		return "1"
	case gpus <= 8:
		return "2-8"
	}
	return "more than 8"
}

// aheadOf names the class of how far ahead the median of a statement is.
func aheadOf(o *Outcome) string {
	_, class := leadOf(o.Said.P50, o.At, o.Horizon)
	return [...]string{"at most 30m", "30m to 4h", "4h to 16h", "more than 16h", "beyond the horizon"}[class]
}
