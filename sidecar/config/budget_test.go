package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
)

func TestBudgets(t *testing.T) {
	c := parse(t, `
budgets:
  vision: {gpu_hours: 1.5e3}
  web: {gpu_hours: 2, at_end: refuse}
  nlp: {gpu_hours: 100000, per: quarter, zone: UTC, model_prices: {h100: 4, k80: 0}, at_end: idle-only}
`)
	want := []spending.Budget{
		{Tenant: "nlp", Hours: 100000, Per: spending.Quarter, Zone: time.UTC, Prices: map[string]float64{"h100": 4, "k80": 0}, AtEnd: spending.IdleOnly},
		{Tenant: "vision", Hours: 1500, Per: spending.Month, Zone: time.Local, AtEnd: spending.Warn},
		{Tenant: "web", Hours: 2, Per: spending.Month, Zone: time.Local, AtEnd: spending.Refuse},
	}
	same := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	if d := cmp.Diff(want, c.Spending(), same); d != "" {
		t.Error(d)
	}
	if c.Origin("budgets.nlp.per").String() != "f.yaml:5" {
		t.Errorf("per is from %v", c.Origin("budgets.nlp.per"))
	}
	for _, v := range c.Values() {
		if v.Key == "budgets" && v.Value.(map[string]string)["nlp"] != "100000 GPU-hours per quarter (UTC), h100 costs 4, k80 costs 0, at its end idle-only" {
			t.Errorf("shown as %v", v.Value)
		}
	}
}

func TestProblemsOfBudgets(t *testing.T) {
	const hours = "a budget must be above 0 and at most 1e12 GPU-hours, got "
	for text, want := range map[string]string{
		"{}":                           "f.yaml:2: budgets.nlp: " + hours + "0",
		"{gpu_hours: 0}":               "f.yaml:2: budgets.nlp.gpu_hours: " + hours + "0",
		"{gpu_hours: -1}":              "f.yaml:2: budgets.nlp.gpu_hours: " + hours + "-1",
		"{gpu_hours: .nan}":            "f.yaml:2: budgets.nlp.gpu_hours: " + hours + "NaN",
		"{gpu_hours: .inf}":            "f.yaml:2: budgets.nlp.gpu_hours: " + hours + "+Inf",
		"{gpu_hours: many}":            `f.yaml:2: budgets.nlp.gpu_hours: "many" cannot be used here; write a number`,
		"7":                            "f.yaml:2: budgets.nlp: keys are expected here, as in `gpu_hours: value`",
		"{gpu_hours: 1, gpus: 3}":      "f.yaml:2: budgets.nlp.gpus: unknown key; the keys here are gpu_hours, per, zone, model_prices, at_end",
		"{gpu_hours: 1, per: day}":     `f.yaml:2: budgets.nlp.per: "day" is not known; write one of week, month, quarter, year`,
		"{gpu_hours: 1, at_end: kill}": `f.yaml:2: budgets.nlp.at_end: "kill" is not known; write one of warn, idle-only, refuse`,
		"{gpu_hours: 1, zone: Mars}":   `f.yaml:2: budgets.nlp.zone: "Mars" is no time zone; write one like Europe/Berlin, or UTC`,
		"{gpu_hours: 1, model_prices: {h100: -1}}":   "f.yaml:2: budgets.nlp.model_prices.h100: the price of a GPU hour must be 0 (free) to 1e6, got -1",
		"{gpu_hours: 1, model_prices: {h100: .nan}}": "f.yaml:2: budgets.nlp.model_prices.h100: the price of a GPU hour must be 0 (free) to 1e6, got NaN",
	} {
		_, err := config.Parse("f.yaml", []byte("budgets:\n  nlp: "+text+"\n"), nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", text, err, want)
		}
	}
}

// The submit plugin cannot read any name and any number of prices (struct gate_budget), and would refuse nothing.
func TestBudgetsThatThePluginReads(t *testing.T) {
	var many []string
	for i := range 38 {
		many = append(many, fmt.Sprintf("model%02d: 1.25", i)) // 13 bytes each in the list
	}
	prices := strings.Join(many, ", ")
	for _, c := range []struct{ tenant, keys, want string }{
		{strings.Repeat("n", 63), "at_end: refuse", ""},
		{strings.Repeat("n", 64), "at_end: refuse", "at_end: the submit plugin reads names of tenants without blanks and of at most 63 bytes; write at_end: idle-only for "},
		{strings.Repeat("n", 64), "at_end: idle-only", ""},
		{"nlp", "at_end: refuse", ""},
		{"n lp", "at_end: refuse", "at_end: the submit plugin reads names of tenants"},
		{"n lp", "at_end: warn", ""},
		{"nlp", "at_end: refuse, model_prices: {" + prices + ", vwxyz: 1.25}", ""},
		{"nlp", "at_end: refuse, model_prices: {" + prices + ", uvwxyz: 1.25}", "model_prices: the submit plugin reads at most 511 bytes of prices, and these are 512; remove"},
		{"nlp", "at_end: warn, model_prices: {" + prices + ", uvwxyz: 1.25}", ""},
	} {
		_, err := config.Parse("f.yaml", []byte(fmt.Sprintf("budgets:\n  %s: {gpu_hours: 1, %s}\n", c.tenant, c.keys)), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "f.yaml:2: budgets."+c.tenant+"."+c.want) {
			t.Errorf("%s: %s: got %v\nwant %s", c.tenant, c.keys, err, c.want)
		}
	}
}

// The cells of a virtual cluster are its tenant's own, so its budget can only warn.
func TestBudgetsWithVirtualClusters(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cells, err := os.ReadFile("../../etc/cells/small-lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write("cells.yaml", string(cells))
	f, err := config.LoadCells(filepath.Join(folder, "cells.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tenant := f.Cells.VCs[0].Name
	load := func(tenant, end string) error {
		_, err := config.Load(write("f.yaml", "preset: hived\ncells: {file: cells.yaml}\nbudgets:\n  "+tenant+": {gpu_hours: 5, at_end: "+end+"}\n"), nil)
		return err
	}
	for _, end := range []string{"idle-only", "refuse"} {
		err := load(tenant, end)
		if err == nil || !strings.Contains(err.Error(), "f.yaml:4: budgets."+tenant+": "+tenant+" has a virtual cluster in cells.file (cells.yaml, ") {
			t.Errorf("a virtual cluster's budget, %s: %v", end, err)
		}
	}
	for tenant, end := range map[string]string{tenant: "warn", "other": "idle-only"} {
		if err := load(tenant, end); err != nil {
			t.Error(err)
		}
	}
}
