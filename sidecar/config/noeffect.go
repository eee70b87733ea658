package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// needs lists keys that decide nothing beside others: a reason, if so. Keys are those of one schedule.
var needs = []struct {
	keys []string
	idle func(c *Config) string // "" = the keys have an effect
}{
	{[]string{"models.chooser", "models.estimate", "models.divide_every", "models.reference", "models.speedups.counters"}, func(c *Config) string {
		return unless(c.market(), "preset %s divides no GPU models; choose one that does", c.Preset)
	}},
	{[]string{"models.speedups.completions"}, func(c *Config) string {
		return unless(c.market() || c.Placing.Compact.MaxWait > 0, "preset %s divides no GPU models, and no gang waits for nodes together (compact.max_wait is 0s)", c.Preset)
	}},
	{[]string{"models.most_kinds"}, func(c *Config) string {
		row, _ := preset.Of(c.Preset)
		return unless(row.Merges, "preset %s keeps all job types apart, or divides between jobs; choose one of oef:…", c.Preset)
	}},
	{[]string{"models.prices"}, func(c *Config) string {
		row, _ := preset.Of(c.Preset)
		return unless(row.Prices, "preset %s weighs no prices; choose one of gavel:cost…", c.Preset)
	}},
	{[]string{"cells.chooser", "cells.affinity_wait", "cells.strict_qos", "cells.levels"}, func(c *Config) string {
		return unless(c.Cells.File != "", "there are no virtual clusters; set cells.file")
	}},
	{[]string{"users", "tenants.weights"}, func(c *Config) string {
		return unless(!c.jobsQueue(), "preset %s divides between jobs without regard to tenants and users; choose another one", c.Preset)
	}},
	{[]string{"repay.floor"}, func(c *Config) string {
		return unless(!c.jobsQueue(), "preset %s divides between jobs without regard to tenants, so no tenant repays; choose another one", c.Preset)
	}},
	{[]string{"jobs.order", "jobs.patience", "jobs.new_first", "jobs.new_share", "jobs.long_terms", "jobs.urgent_qos"}, func(c *Config) string {
		return unless(!c.jobsQueue(), "preset %s divides between jobs, so its division orders them; choose another one", c.Preset)
	}},
	{[]string{"jobs.weights"}, func(c *Config) string {
		row, _ := preset.Of(c.Preset)
		return unless(!c.jobsQueue() || row.WeighsJobs, "preset %s weighs no jobs; choose gavel:las-jobs, or one that divides between tenants", c.Preset)
	}},
	{[]string{"jobs.long_terms"}, func(c *Config) string {
		return unless(c.Jobs.Order == "rho" || c.Jobs.Patience > 0, "by jobs.order %s the number of leases counts only for jobs.patience, which is off", c.Jobs.Order)
	}},
	{[]string{"jobs.patience"}, func(c *Config) string {
		return unless(c.Jobs.Order != "rho", "by jobs.order rho the job that is owed most goes first anyway")
	}},
	{[]string{"jobs.new_share"}, func(c *Config) string {
		limited := "jobs.patience"
		on := c.Jobs.Patience > 0
		if c.Jobs.Order == "rho" {
			limited, on = "jobs.new_first", c.Jobs.NewFirst
		}
		return unless(on || c.Recall.FirstLease, "it limits %s and recall.first_lease, which are off", limited)
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
	{[]string{"sharing.pairs", "slow_nodes.below"}, func(c *Config) string {
		return unless(c.Models.Progress.Listen != "" || c.Models.Progress.Folder != "", "jobs cannot report their steps; set models.progress.listen or models.progress.folder")
	}},
	{[]string{"compact.max_cost"}, func(c *Config) string {
		return unless(!c.market(), "gangs are not gathered by moves where preset %s divides GPU models", c.Preset)
	}},
	{[]string{"bind.quiet", "bind.horizon", "bind.max"}, func(c *Config) string {
		return unless(!c.jobsQueue(), "preset %s divides between jobs without regard to tenants; choose another one", c.Preset)
	}},
	{[]string{"bind.quiet", "bind.horizon", "bind.max"}, func(c *Config) string {
		return unless(c.Cells.File == "", "with virtual clusters (cells.file), jobs bind the GPUs of their own; those in none are not limited")
	}},
	{[]string{"bind.horizon", "bind.max"}, func(c *Config) string {
		return unless(c.Bind.Quiet > 0, "GPUs may be bound without limit: bind.quiet is 0s")
	}},
}

// jobsQueue reports whether jobs queue for GPUs, and not tenants: the preset knows no tenants, and nobody has cells.
func (c *Config) jobsQueue() bool { return preset.TenantBlind(c.Preset) && c.Cells.File == "" }

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
	for _, key := range Keys() {
		why, acts, set := "", false, Origin{}
		for _, x := range whole {
			reason := x.idle(key)
			acts, why = acts || reason == "", cmp.Or(why, reason)
			if o := x.from.origins[key]; !set.InFile() && o.InFile() && !equal(fields(x)[key], usual[key]) {
				set = o
			}
		}
		if !acts && set.InFile() {
			out = append(out, Problem{Place: set.Place, Key: key, Text: "has no effect: " + why, line: set.line})
		}
	}
	return out.sorted()
}

// idle gives the reason why a key decides nothing; "" = it does.
func (c *Config) idle(key string) string {
	for i := range needs {
		if rule := &needs[i]; slices.Contains(rule.keys, key) {
			if why := rule.idle(c); why != "" {
				return why
			}
		}
	}
	return ""
}
