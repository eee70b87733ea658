package config_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

// Keys that decide nothing beside others are named, with the reason; beside others they are not.
func TestKeysWithoutEffect(t *testing.T) {
	for _, x := range []struct{ text, key, why string }{
		{"models: {chooser: stride}", "models.chooser", "preset astraea divides no GPU models"},
		{"preset: gavel:fifo\nmodels: {chooser: stride}", "", ""},
		{"preset: gavel:fifo\nmodels: {most_kinds: 3}", "models.most_kinds", "or divides between jobs"},
		{"preset: drf\nmodels: {most_kinds: 3}", "models.most_kinds", "keeps all job types apart"},
		{"preset: oef:noncoop\nmodels: {most_kinds: 3}", "", ""},
		{"preset: gavel:fifo\njobs: {order: rho}", "jobs.order", "its division orders them"},
		{"preset: gavel:fifo\njobs: {patience: 0s}", "jobs.patience", "its division orders them"},
		{"preset: gavel:fifo\njobs: {urgent_qos: [high]}", "jobs.urgent_qos", "its division orders them"},
		{"preset: gavel:fifo\ncells: {file: cells.yaml}\njobs: {urgent_qos: [high]}", "", ""},
		{"preset: gavel:fifo\njobs: {weights: {high: 2}}", "jobs.weights", "weighs no jobs"},
		{"preset: gavel:las-jobs\njobs: {weights: {high: 2}}", "", ""},
		{"preset: gavel:fifo\nrepay: {floor: 20}", "repay.floor", "no tenant repays"},
		{"preset: gavel:fifo\nbind: {max: 20}", "bind.max", "without regard to tenants"},
		{"preset: hived\ncells: {file: cells.yaml}\nbind: {quiet: 1h}", "bind.quiet", "those in none are not limited"},
		{"jobs: {long_terms: 3}", "", ""},
		{"jobs: {long_terms: 3, patience: 0s}", "jobs.long_terms", "counts only for jobs.patience"},
		{"jobs: {order: rho, long_terms: 3}", "", ""},
		{"preset: gavel:fifo\nschedules: [{name: s, at: 0 1 * * *, for: 1h, set: {preset: gavel:las, jobs: {long_terms: 3, patience: 0s}}}]", "jobs.long_terms", "its division orders them"},
		{"preset: drf\nmodels: {prices: {v100: 3}}", "models.prices", "weighs no prices"},
		{"preset: gavel:cost-sum\nmodels: {prices: {v100: 3}}", "", ""},
		{"cells: {chooser: fifo}", "cells.chooser", "set cells.file"},
		{"cells: {levels: {high: 3}}", "cells.levels", "set cells.file"},
		{"preset: hived\ncells: {file: cells.yaml, chooser: fifo}", "", ""},
		{"preset: gavel:fifo\nusers: equal", "users", "without regard to tenants and users"},
		{"preset: drf\nusers: equal", "", ""},
		{"preset: gavel:fifo\ncells: {file: cells.yaml}\nusers: equal", "", ""},
		{"preset: gavel:fifo\ntenants: {weights: {a: 1, b: 2}}", "tenants.weights", "without regard"},
		{"jobs: {order: rho, patience: 3h}", "jobs.patience", "goes first anyway"},
		{"preset: astraea:paper\njobs: {patience: 3h}", "jobs.patience", "goes first anyway"},
		{"jobs: {order: attained, patience: 3h}", "", ""},
		{"jobs: {order: rho, new_first: false, new_share: 20}\nrecall: {first_lease: false}", "jobs.new_share", "which are off"},
		{"jobs: {patience: 0s, new_share: 20}\nrecall: {first_lease: false}", "jobs.new_share", "which are off"},
		{"jobs: {patience: 0s, new_share: 20}", "", ""}, // it limits recalls
		{"jobs: {new_first: false}", "jobs.new_first", "no place of their own"},
		{"recall: {first_lease: false, notice: 10s}", "recall.notice", "nothing is recalled"},
		{"recall: {notice: 10s}", "", ""},
		{"stop: {allowance: 0s, overhead: 0, total: 5}", "stop.total", "may be stopped at any time"},
		{"bind: {quiet: 0s, max: 7}", "bind.max", "without limit"},
		{"preset: drf\ncompact: {max_cost: 10}", "compact.max_cost", "not gathered by moves"},
		{"models: {chooser: nearest}", "", ""}, // the default
		{"models: {chooser: stride}\nschedules: [{name: s, at: 0 1 * * *, for: 1h, set: {preset: drf}}]", "", ""},
		{"schedules: [{name: s, at: 0 1 * * *, for: 1h, set: {models: {chooser: stride}}}]", "models.chooser", "preset astraea divides no"},
		{"schedules: [{name: s, at: 0 1 * * *, for: 1h, set: {preset: drf, models: {chooser: stride}}}]", "", ""},
	} {
		c, err := config.Parse("f.yaml", []byte(x.text+"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		found := c.NoEffect()
		switch {
		case x.key == "" && len(found) > 0:
			t.Errorf("%s: %v", x.text, found)
		case x.key != "" && (len(found) != 1 || found[0].Key != x.key || !strings.Contains(found[0].Text, x.why) || !strings.HasPrefix(found[0].Place, "f.yaml:")):
			t.Errorf("%s: %v, want %s: %s", x.text, found, x.key, x.why)
		}
		if warned := strings.Contains(strings.Join(c.Warnings(), ";"), "has no effect: "); warned != (x.key != "") {
			t.Errorf("%s: warned %v", x.text, warned)
		}
	}
}
