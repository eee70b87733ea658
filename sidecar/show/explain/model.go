package explain

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Worth gives the speed of a GPU model for a kind of jobs, relative to the reference model.
func Worth(speedup float64, source cluster.Source) string {
	switch {
	case source == "":
		return "its throughput there is unknown"
	case speedup == 0:
		return "it does not run there (" + string(source) + ")"
	case speedup == 1:
		return "as fast as on the reference model (" + string(source) + ")"
	}
	return fmt.Sprintf("%.2f times as fast as on the reference model (%s)", speedup, source)
}

// target says where a job moves: to another model, or from a GPU that it shares to one of the same model.
func target(r *cluster.Reason) string {
	if r.To == r.Pool {
		return "another GPU"
	}
	return r.To
}

// purpose says why a job moves there.
func purpose(r *cluster.Reason) string {
	switch {
	case r.To == r.Pool:
		return ", which is idle, and which it then has to itself"
	case r.Trial:
		return ", for a trial: its type has not been measured there"
	case r.Speed > 1000:
		return fmt.Sprintf(", where it is %.2f times as fast", float64(r.Speed)/1000)
	}
	return ", where " + queuer(r) + " is due GPUs"
}

// Trade says what a trade gives and takes.
func Trade(t *cluster.Trade) string {
	return fmt.Sprintf("%s gets %s %s of %s for %s %s (%.2f each): one is worth %.2f to the first, %.2f to the other",
		party(t.FastTo), share(t.FastGPUs), t.Fast, party(t.SlowTo), share(t.SlowGPUs), t.Slow, t.Price, t.FastToSpeedup, t.SlowToSpeedup)
}

// Bound says how far an allocation may be from the policy's best; "" = it is the best, or there is none.
func Bound(d *cluster.Allocation) string {
	if d == nil || d.Bound == 0 || d.Why != "" {
		return ""
	}
	return fmt.Sprintf("The allocation has at least %.1f %% of the largest total throughput that %s allows; a better one may exist, since demands limit it.",
		100*d.Objective/d.Bound, d.Policy)
}

// CellTrade says which cells change hands.
func CellTrade(t *cluster.CellTrade) string {
	return fmt.Sprintf("%s gets %s of %s for %s (%.2f GPUs each): one is worth %.2f to the first, %.2f to the other", party(t.FastTo),
		cells(t.Cells.FastCells, t.Cells.FastType, t.Fast), party(t.SlowTo), cells(t.Cells.SlowCells, t.Cells.SlowType, t.Slow), t.Price, t.FastToSpeedup, t.SlowToSpeedup)
}

// cells words cells of a type, with their model.
func cells(n int, typ, model string) string { return fmt.Sprintf("%d × %s (%s)", n, typ, model) }

// Undone says why a trade was reverted.
func Undone(why string) string {
	if words, ok := undone[why]; ok {
		return words
	}
	return why
}

var undone = map[string]string{
	"left":        "a side or a model has left",
	"speedups":    "by the speedups that are known now it gains no more, or needs another price",
	"entitlement": "a side is due less than it gives",
	"demand":      "a side cannot use what it gets",
	"policy":      "the policy has changed, or has no answer",
}

func party(n cluster.PartyName) string { return or(n.Kind, n.Tenant) }

// share writes millionths of a GPU as GPUs.
func share(g cluster.MicroGPU) string {
	return fmt.Sprintf("%.2f", float64(g)/float64(cluster.WholeGPU))
}
