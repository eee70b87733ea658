package policy

import (
	"slices"
	"strings"
)

// The presets whose division looks at GPU models. What stands after the colon is the objective.
const (
	GandivaFair = "gandiva-fair"
	gavel       = "gavel:"
	oef         = "oef:"
)

// Presets lists them: what a site can be told to divide by.
func Presets() []string {
	out := []string{GandivaFair, GandivaFair + ":no-trade"}
	for _, name := range Names() {
		out = append(out, gavel+name)
	}
	return append(out, oef+"coop", oef+"noncoop")
}

// OfJobs tells whether a preset divides GPUs between single jobs; else it does between tenants.
func OfJobs(preset string) bool { return strings.HasPrefix(preset, gavel) }

// TenantBlind tells whether a preset knows jobs only: tenants' weights count for nothing in what it divides (SEMANTICS §4).
func TenantBlind(preset string) bool {
	objective, ok := strings.CutPrefix(preset, gavel)
	return ok && !strings.HasPrefix(objective, "las") && !strings.HasPrefix(objective, "hierarchical")
}

// byCLP lists the presets whose programs need COIN-OR CLP (package lp), gavel:sjf only where two
// ways are equally good for the shortest job. All others are solved by prices.
var byCLP = []string{
	gavel + "cost-least-slo", gavel + "cost-ratio", gavel + "cost-ratio-slo", gavel + "cost-slo", gavel + "sjf", gavel + "throughput-slo",
	oef + "coop",
}

// NeedsSolver tells whether a preset cannot divide in a build without COIN-OR CLP (lp.Available).
func NeedsSolver(preset string) bool { return slices.Contains(byCLP, preset) }
