package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/store"
)

// clock gives a moment: the time, with the day unless it is today's.
func (p *Page) clock(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	zone := p.Zone
	if zone == nil {
		zone = time.UTC
	}
	at, now := t.In(zone), p.Now.Time().In(zone)
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("Mon 2 Jan 15:04")
}

// quantiles says when something happens, by three quantiles. Of moments that have passed it says "now".
func (p *Page) quantiles(verb string, p10, p50, p90 *time.Time, horizon time.Duration) string {
	days := strings.TrimSuffix(fmt.Sprintf("%.1f", horizon.Hours()/24), ".0")
	switch {
	case p10 == nil:
		return fmt.Sprintf("%s in more than %s days in 9 of 10 runs", verb, days)
	case p50 == nil && p.past(p10):
		return fmt.Sprintf("%s in more than %s days in half of the runs", verb, days)
	case p50 == nil:
		return fmt.Sprintf("%s after %s in 9 of 10 runs, in more than %s days in half of them", verb, p.clock(p10), days)
	case p.past(p90):
		return fmt.Sprintf("%s now: nearly all runs expected it by %s", verb, p.clock(p90))
	case p90 == nil && p.past(p10), p90 != nil && p.clock(p10) == p.clock(p90):
		return fmt.Sprintf("%s about %s", verb, p.soon(p50))
	case p90 == nil:
		return fmt.Sprintf("%s about %s, after %s in 9 of 10 runs", verb, p.soon(p50), p.clock(p10))
	case p.past(p10):
		return fmt.Sprintf("%s about %s, by %s in 9 of 10 runs", verb, p.soon(p50), p.clock(p90))
	}
	return fmt.Sprintf("%s about %s, between %s and %s in 8 of 10 runs", verb, p.clock(p50), p.clock(p10), p.clock(p90))
}

// past tells whether a moment is known and before now.
func (p *Page) past(t *time.Time) bool { return t != nil && p.Now > 0 && cluster.InstantOf(*t) < p.Now }

// soon gives a moment to come: now, if it has passed.
func (p *Page) soon(t *time.Time) string {
	if p.past(t) {
		return "now"
	}
	return p.clock(t)
}

// Ahead words the forecast of a job; id is its name in Slurm, "" = it has none.
func (p *Page) Ahead(f *store.Forecast, id string) string {
	switch {
	case f.Outdated():
		return "none: " + f.Why + "; " + p.again(f.AsOf, id)
	case f.Why == "" && f.Waits:
		return p.starts(f) + "; " + p.ends(f)
	}
	return p.ends(f)
}

// again says when the next forecasts come after those of a moment, and how to make one at once.
func (p *Page) again(last time.Time, id string) string {
	next := "the next ones come within minutes (forecast.every)"
	if at := cluster.InstantOf(last).Add(p.Every); p.Every > 0 && !last.IsZero() {
		next = fmt.Sprintf("the next ones come%s (forecast.every)", p.words(nil).At(at))
	}
	if id == "" {
		return next
	}
	return fmt.Sprintf("%s; to make one now: fairlease forecast %s --now", next, id)
}

// NoForecast says that there is no forecast of a waiting job yet; "" if the daemon makes none.
func (p *Page) NoForecast(id string) string {
	if p.Every <= 0 {
		return ""
	}
	return "none yet: forecasts are made every " + p.Every.Exact() + " (forecast.every); to make one now: fairlease forecast " + id + " --now"
}

// starts and ends word the parts of a forecast.
func (p *Page) starts(f *store.Forecast) string {
	return p.quantiles("starts", f.StartP10, f.StartP50, f.StartP90, f.Horizon)
}

func (p *Page) ends(f *store.Forecast) string {
	switch {
	case f.Forbidden():
		return f.Why
	case f.Why != "":
		return "none: " + f.Why
	}
	return p.quantiles("ends", f.EndP10, f.EndP50, f.EndP90, f.Horizon)
}

// statements names the kinds of statements of forecasts for people.
var statements = map[string]string{"waiting_start": "starts of waiting jobs", "waiting_end": "ends of waiting jobs", "running_end": "ends of running jobs"}

// Statements names a class of statements of forecasts.
func Statements(c *forecast.Coverage) string {
	kind := cmp.Or(statements[c.Kind], c.Kind)
	switch c.By {
	case "":
		return kind
	case "gpus":
		return kind + " with " + c.Class + " GPUs"
	case "ahead":
		return kind + ", " + c.Class
	}
	return kind + " of " + c.By + " " + c.Class
}

// KeptWord says how many statements of a class kept their word.
func KeptWord(c *forecast.Coverage) string {
	return fmt.Sprintf("%.0f %% (%.0f to %.0f)", c.Percent, c.Low, c.High)
}

// BreaksWord tells whether the statements of a class surely do not keep their word: all of the interval of confidence is out of bounds.
func BreaksWord(c *forecast.Coverage) bool {
	return c.High < forecast.Lowest || c.Low > forecast.Highest
}

// mostSoon is the maximum length of Soonest.
const mostSoon = 3

// Soonest gives the waiting jobs that start first by their forecasts.
func Soonest(all []store.JobForecast) []store.JobForecast {
	var out []store.JobForecast
	for i := range all {
		f := &all[i]
		if f.State != string(cluster.Waiting) || f.StartP50 == nil {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, f, func(a store.JobForecast, b *store.JobForecast) int {
			return cmp.Or(a.StartP50.Compare(*b.StartP50), cmp.Compare(a.Key, b.Key))
		})
		if at < mostSoon {
			out = slices.Insert(out, at, *f)
			out = out[:min(len(out), mostSoon)]
		}
	}
	return out
}

// ForecastTable lists forecasts.
func (p *Page) ForecastTable(list []store.JobForecast) *Table {
	t := &Table{Head: []string{"JOB", "TENANT", "USER", ">GPUS", "START_P10", "START", "START_P90", "END_P10", "END", "END_P90", "NOTE"},
		None: "There are no forecasts: none were made yet, or no job waits or runs (forecast.every, docs/forecast.md)."}
	for i := range list {
		f := &list[i]
		at := func(t *time.Time, waits bool) string {
			switch {
			case f.Why != "":
				return "-"
			case !waits:
				return "runs"
			case t == nil:
				return "later"
			case !p.ForPeople():
				return t.UTC().Format(time.RFC3339)
			}
			return p.soon(t)
		}
		t.Add(f.SlurmID, f.Tenant, f.User, fmt.Sprint(f.GPUs), at(f.StartP10, f.Waits), at(f.StartP50, f.Waits), at(f.StartP90, f.Waits),
			at(f.EndP10, true), at(f.EndP50, true), at(f.EndP90, true), f.Why)
	}
	return t
}
