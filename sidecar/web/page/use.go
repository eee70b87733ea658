package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/store"
)

// window is a length of time to look back on.
type window struct {
	Key, Name string
	Here      bool

	long time.Duration
}

var windows = []window{{Key: "1h", Name: "1 hour", long: time.Hour}, {Key: "6h", Name: "6 hours", long: 6 * time.Hour}, {Key: "1d", Name: "1 day", long: 24 * time.Hour}, {Key: "7d", Name: "7 days", long: 7 * 24 * time.Hour},
	{Key: "30d", Name: "30 days", long: 30 * 24 * time.Hour}}

// window gives the windows, with the one that the request names, else the usual one, which is short where terms are.
func (v *visit) window(usual string) ([]window, time.Duration) {
	out := slices.Clone(windows)
	if v.Status.Term > 0 && v.Status.Term < 5*cluster.Minute {
		usual = "1h"
	}
	at := slices.IndexFunc(out, func(w window) bool { return w.Key == v.query("range") })
	if at < 0 {
		at = slices.IndexFunc(out, func(w window) bool { return w.Key == usual })
	}
	out[at].Here = true
	return out, out[at].long
}

// latest is the end of windows: now, or the newest round if the clock of its host is ahead.
func (v *visit) latest() time.Time { return maxTime(v.Now, v.At) }

// use is the content of the page of GPUs over time.
type use struct {
	Windows []window
	Pools   []string
	Pool    string // "" = all
	All     *chart.Chart
	Tenants []tenantUse
	Pager   Pager
	// Since is the begin of what the averages cover, if the journal has no earlier history in the window; nil = they cover it all.
	Since *time.Time
}

type tenantUse struct {
	Name     string
	Has, Due float64 // means
	Chart    *chart.Chart
}

// useSteps is the number of steps of a window.
const useSteps = 240

func usePage(v *visit) (string, any, error) {
	v.Title = "GPUs over time"
	u := &use{Pool: v.query("pool")}
	var long time.Duration
	u.Windows, long = v.window("1d")
	for i := range v.Tenants {
		u.Pools = append(u.Pools, v.Tenants[i].Pool)
	}
	slices.Sort(u.Pools)
	u.Pools = slices.Compact(u.Pools)
	if !slices.Contains(u.Pools, u.Pool) {
		u.Pool = ""
	}
	until := v.latest()
	step := max((long / useSteps).Round(time.Minute), time.Minute)
	since := until.Add(-long).Truncate(step)
	shares, err := v.past().Shares(v.req.Context(), since, until, step)
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	if u.Pool != "" {
		shares = slices.DeleteFunc(slices.Clone(shares), func(s store.Share) bool { return s.Pool != u.Pool })
	}
	lines := tenantLines(shares, since, until, step)
	if len(shares) > 0 {
		first := slices.MinFunc(shares, func(a, b store.Share) int { return a.At.Compare(b.At) }).At
		if first.Sub(since) > step {
			u.Since = &first
		}
	}
	u.All = v.stack(lines, since, step, u.Pool)
	if v.Focus != "" {
		lines = slices.DeleteFunc(lines, func(t tenantLine) bool { return t.name != v.Focus })
	}
	var from, to int
	u.Pager, from, to = v.pager(len(lines), 24)
	for i := range lines[from:to] {
		u.Tenants = append(u.Tenants, v.against(&lines[from+i], since, step))
	}
	return "use", u, nil
}

// tenantLine is what a tenant had and was due, by step.
type tenantLine struct {
	name             string
	has, due         []float64
	meanHas, meanDue float64
}

// tenantLines sums shares over pools and fills the steps between rows, those first that lack most of their due.
func tenantLines(shares []store.Share, since, until time.Time, step time.Duration) []tenantLine {
	steps := int(until.Sub(since)/step) + 1
	begin := steps // the first step with any history in the journal: means cover the steps since then
	for i := range shares {
		begin = min(begin, max(int(shares[i].At.Sub(since)/step), 0))
	}
	covered := float64(max(steps-begin, 1))
	at := map[string]int{}
	var out []tenantLine
	for first := 0; first < len(shares); {
		last := first
		for last < len(shares) && shares[last].Tenant == shares[first].Tenant && shares[last].Pool == shares[first].Pool {
			last++
		}
		k, ok := at[shares[first].Tenant]
		if !ok {
			k = len(out)
			at[shares[first].Tenant] = k
			out = append(out, tenantLine{name: shares[first].Tenant, has: make([]float64, steps), due: make([]float64, steps)})
		}
		next := first
		var has, due float64
		for i := range steps {
			end := since.Add(time.Duration(i+1) * step)
			for next < last && shares[next].At.Before(end) {
				has, due = shares[next].Holds, shares[next].Due
				next++
			}
			out[k].has[i] += has
			out[k].due[i] += due
		}
		first = last
	}
	for k := range out {
		t := &out[k]
		for i := range t.has {
			t.meanHas, t.meanDue = t.meanHas+t.has[i]/covered, t.meanDue+t.due[i]/covered
		}
	}
	slices.SortFunc(out, func(a, b tenantLine) int {
		return cmp.Or(cmp.Compare(b.meanDue-b.meanHas, a.meanDue-a.meanHas), strings.Compare(a.name, b.name))
	})
	return out
}

// stack draws the GPUs of the tenants that have a colour upon each other, those of the rest on top, and the healthy GPUs of now.
func (v *visit) stack(lines []tenantLine, since time.Time, step time.Duration, pool string) *chart.Chart {
	c := &chart.Chart{Title: "GPUs held by each tenant over time", Kind: chart.Areas, Wide: true, X: clock(v.zone()), Y: chart.Axis{Label: "GPUs"}}
	sorted := slices.Clone(lines)
	slices.SortFunc(sorted, func(a, b tenantLine) int {
		return v.byHue(a.name, b.name)
	})
	var xs chart.Values
	rest, others := chart.Series{Steps: true, Colour: grey}, 0
	for i := range sorted {
		t := &sorted[i]
		if xs == nil {
			for k := range t.has {
				xs = append(xs, float64(since.Add(time.Duration(k)*step).Unix()))
			}
			rest.X, rest.Y = xs, make(chart.Values, len(xs))
		}
		if k := v.hue(t.name); k != grey {
			c.Series = append(c.Series, chart.Series{Name: t.name, Colour: k, Steps: true, X: xs, Y: t.has})
			continue
		}
		others++
		rest.Name = t.name
		for k := range rest.Y {
			rest.Y[k] += t.has[k]
		}
	}
	if others > 1 {
		rest.Name = fmt.Sprintf("%d other tenants", others)
	}
	if others > 0 {
		c.Series = append(c.Series, rest)
	}
	healthy := cluster.GPUCount(0)
	for i := range v.Status.Pools {
		if p := &v.Status.Pools[i]; pool == "" || p.Pool == pool {
			healthy += p.GPUs - p.Bad
		}
	}
	if len(xs) > 0 {
		c.Series = append(c.Series, chart.Series{Name: "healthy GPUs, now", Over: true, Plain: true, X: xs, Y: slices.Repeat(chart.Values{cluster.MicroGPU(healthy).Float()}, len(xs))})
	}
	for i := range c.Series {
		if i > 0 {
			c.Series[i].X = nil // they share the first one's
		}
	}
	return c
}

// against draws what a tenant had against what it was due.
func (v *visit) against(t *tenantLine, since time.Time, step time.Duration) tenantUse {
	var xs chart.Values
	for k := range t.has {
		xs = append(xs, float64(since.Add(time.Duration(k)*step).Unix()))
	}
	c := &chart.Chart{Title: "GPUs of " + t.name + " against its due", Kind: chart.Lines, X: clock(v.zone()), Y: chart.Axis{Label: "GPUs"},
		Series: []chart.Series{{Name: "held", Colour: v.hue(t.name), Steps: true, X: xs, Y: t.has}, {Name: "due", Plain: true, Steps: true, Y: t.due}}}
	return tenantUse{Name: t.name, Has: t.meanHas, Due: t.meanDue, Chart: c}
}
