package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/store"
)

// ObjectiveTable lists how objectives were kept over the last 28 days.
func ObjectiveTable(f Form, list []store.Objective) *Table {
	t := &Table{Head: []string{"OBJECTIVE", "TENANT", ">TARGET", ">REACHED", ">BUDGET_LEFT", ">EVENTS", ">BAD"}, None: "Nothing is counted yet (docs/objectives.md)."}
	for i := range list {
		t.Add(ObjectiveCells(f, &list[i])...)
	}
	t.Tint = func(row, column int) string {
		if t.Head[column] != ">BUDGET_LEFT" {
			return ""
		}
		return map[string]string{"warn": "yellow", "bad": "red"}[ObjectiveLevel(&list[row])]
	}
	return t
}

// ObjectiveCells words an objective: its name with its bound, the tenant, the target, what was reached, what is left of the error budget,
// and the events, all and bad ones.
func ObjectiveCells(f Form, o *store.Objective) []string {
	name := o.Objective
	if o.Within != nil {
		name += " within " + Span(f, *o.Within)
	}
	percent := func(value float64, digits int) string { return fmt.Sprintf("%.*f%%", digits, value) }
	events := func(n float64) string {
		if o.Objective == string(objective.GPUs) {
			return Hours(n/3600) + " GPU-h"
		}
		return strings.TrimSuffix(Hours(n), ".00")
	}
	return []string{name, cmp.Or(o.Tenant, "(all)"), percent(o.Target, 1), percent(o.Reached, 2), percent(o.Left, 0), events(o.Total), events(o.Bad)}
}

// ObjectiveLevel says how an objective stands: bad = missed, warn = less than a quarter of the error budget is left, else good.
func ObjectiveLevel(o *store.Objective) string {
	switch {
	case o.Left < 0:
		return "bad"
	case o.Left < 25:
		return "warn"
	}
	return "good"
}
