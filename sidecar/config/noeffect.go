package config

import (
	"fmt"
	"reflect"

	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// needs lists keys that decide nothing beside others: a reason, if so. Keys are those of one schedule.
var needs = []struct {
	keys []string
	idle func(c *Config) string // "" = the keys have an effect
}{
	{[]string{"models.chooser", "models.estimate", "models.divide_every", "models.most_kinds", "models.reference", "models.speedups.completions", "models.speedups.counters"}, func(c *Config) string {
		return unless(c.market(), "preset %s divides no GPU models; choose one that does", c.Preset)
	}},
	{[]string{"models.most_kinds"}, func(c *Config) string {
		return unless(!c.market() || !preset.OfJobs(c.Preset), "preset %s divides between jobs, not job types", c.Preset)
	}},
	{[]string{"models.prices"}, func(c *Config) string {
		row, _ := preset.Of(c.Preset)
		return unless(row.Prices, "preset %s weighs no prices; choose one of gavel:cost…", c.Preset)
	}},
	{[]string{"cells.chooser", "cells.affinity_wait", "cells.strict_qos", "cells.levels"}, func(c *Config) string {
		return unless(c.Cells.File != "", "there are no virtual clusters; set cells.file")
	}},
	{[]string{"users", "tenants.weights"}, func(c *Config) string {
		return unless(!preset.TenantBlind(c.Preset) || c.Cells.File != "", "preset %s divides between jobs without regard to tenants and users; choose another one", c.Preset)
	}},
	{[]string{"jobs.patience"}, func(c *Config) string {
		return unless(c.Jobs.Order != "rho", "by jobs.order rho the job that is owed most goes first anyway")
	}},
	{[]string{"jobs.new_share"}, func(c *Config) string {
		if c.Jobs.Order == "rho" {
			return unless(c.Jobs.NewFirst, "it limits jobs.new_first, which is off")
		}
		return unless(c.Jobs.Patience > 0, "it limits jobs.patience, which is off")
	}},
	{[]string{"jobs.new_first"}, func(c *Config) string {
		return unless(c.Jobs.Order == "rho", "by jobs.order %s new jobs have no place of their own", c.Jobs.Order)
	}},
	{[]string{"recall.notice"}, func(c *Config) string {
		return unless(c.Recall.FirstLease || c.Cells.File != "", "nothing is recalled: recall.first_lease is false, and there are no virtual clusters")
	}},
	{[]string{"stop.total"}, func(c *Config) string {
		return unless(c.Stop.Allowance > 0 || c.Stop.Overhead > 0, "any job may be stopped at any time: stop.allowance and stop.overhead are 0")
	}},
	{[]string{"compact.max_cost"}, func(c *Config) string {
		return unless(!c.market(), "gangs are not gathered by moves where preset %s divides GPU models", c.Preset)
	}},
	{[]string{"bind.horizon", "bind.max"}, func(c *Config) string {
		return unless(c.Bind.Quiet > 0, "GPUs may be bound without limit: bind.quiet is 0s")
	}},
}

// equal reports whether two values are the same; lists and maps without entries are.
func equal(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Map || k == reflect.Slice) && a.Len()+b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// NoEffect lists the keys that the file sets to other values than the defaults and that decide nothing beside the others, with the reason. A key has an
// effect if it has one at some time: by itself, or while a schedule is in force.
func (c *Config) NoEffect() Problems {
	var out Problems
	whole := []*Config{c}
	for _, with := range c.Scheduled() {
		whole = append(whole, with)
	}
	usual := fields(Default())
	for _, rule := range needs {
		why, acts := "", false
		for _, x := range whole {
			if reason := rule.idle(x); reason == "" {
				acts = true
			} else if why == "" {
				why = reason
			}
		}
		if acts {
			continue
		}
		for _, key := range rule.keys {
			for _, x := range whole {
				if o := x.origins[key]; o.InFile() && !equal(fields(x)[key], usual[key]) {
					out = append(out, Problem{Place: o.Place, Key: key, Text: "has no effect: " + why, line: o.line})
					break
				}
			}
		}
	}
	return out.sorted()
}
