package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// GPUTable lists GPUs, who has them, and what they do.
func (p *Page) GPUTable(list []store.GPU) *Table {
	t := &Table{Head: []string{"NODE", ">GPU", "MODEL", "JOB", "USER", "TENANT", "STATE", ">UTIL", ">TENSOR", ">POWER", ">MEMORY", "IDLE_SINCE", "REMARKS", "WHY"},
		None: cmp.Or(p.Counters, "No GPU is watched: telemetry.gpu is not set, or nothing was read yet (docs/telemetry.md).")}
	for i := range list {
		g := &list[i]
		idle := "-"
		if g.IdleSince != nil && !g.IdleSince.IsZero() {
			idle = p.Time(cluster.InstantOf(*g.IdleSince))
		}
		t.Add(g.Node, gpuName(g), g.Model, text(g.Job), text(g.User), text(g.Tenant), g.State, percent(g.Util), percent(g.Tensor), watts(g.Power), memory(g), idle, text(g.Remarks), cmp.Or(g.Why, "-"))
	}
	return t
}

// gpuName gives the index of a GPU and, for a MIG instance, its number.
func gpuName(g *store.GPU) string {
	if g.Instance == "" {
		return fmt.Sprint(g.Index)
	}
	return fmt.Sprintf("%d.%s", g.Index, g.Instance)
}

func text(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}

func percent(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**x)
}

func watts(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.0fW", *x)
}

// memory gives the memory in use and all memory, in GiB.
func memory(g *store.GPU) string {
	const gib = 1 << 30
	switch {
	case g.Memory == nil:
		return "-"
	case g.Size == nil:
		return fmt.Sprintf("%.1fG", float64(*g.Memory)/gib)
	}
	return fmt.Sprintf("%.1f/%.0fG", float64(*g.Memory)/gib, float64(*g.Size)/gib)
}

// Remarks counts remarks on jobs by kind, and tells the oldest; "" = there is none.
func Remarks(list []store.Remark) string {
	if len(list) == 0 {
		return ""
	}
	kinds := map[string]int{}
	for i := range list {
		kinds[list[i].Kind]++
	}
	first := &list[0]
	return fmt.Sprintf("%s; the oldest, %s: job %s of %s, %s", Counts(kinds), first.Kind, first.Job, first.User, first.Text)
}

// gpuNotes says in words what a job's GPUs do, in lines; none if nothing is known of them.
func gpuNotes(list []store.GPU, now time.Time) []string {
	var out []string
	var idle []time.Duration
	var util, power []float64
	unseen := map[string]int{}
	most, size := int64(0), int64(0)
	for i := range list {
		g := &list[i]
		if g.Idle && g.IdleSince != nil && !g.IdleSince.IsZero() {
			idle = append(idle, now.Sub(*g.IdleSince))
		}
		if g.State != "fresh" {
			unseen[g.State+": "+g.Why]++
			continue
		}
		if g.Util != nil {
			util = append(util, *g.Util)
		}
		if g.Power != nil {
			power = append(power, *g.Power)
		}
		if g.Memory != nil && *g.Memory >= most {
			most = *g.Memory
			if g.Size != nil {
				size = *g.Size
			}
		}
	}
	if len(idle) > 0 {
		out = append(out, fmt.Sprintf("has held %s for %s", Plural(len(idle), "idle GPU"), cluster.SpanOf(slices.Min(idle))))
	}
	if len(util) > 0 {
		words := fmt.Sprintf("a kernel runs %.0f%% of the time", 100*mean(util))
		if len(power) > 0 {
			words += fmt.Sprintf(", %.0f W a GPU", mean(power))
		}
		if size > 0 {
			words += fmt.Sprintf(", at most %.1f of %.0f GiB of memory", float64(most)/(1<<30), float64(size)/(1<<30))
		}
		out = append(out, words)
	}
	var hidden []string
	for why, n := range unseen {
		hidden = append(hidden, fmt.Sprintf("%s not seen well, %s", Plural(n, "GPU"), why))
	}
	slices.Sort(hidden)
	return append(out, hidden...)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// gpuLooks says how well the GPUs of all nodes are seen, and names the first nodes that are not.
func gpuLooks(states []store.GPULook, nodes []store.GPUNode, now time.Time) string {
	const named = 3
	if len(states) == 0 {
		return ""
	}
	var newest *time.Time
	var parts []string
	for i := range states {
		s := &states[i]
		parts = append(parts, fmt.Sprintf("%s %s", Plural(s.Nodes, "node"), s.State))
		if s.Read != nil && !s.Read.IsZero() && (newest == nil || s.Read.After(*newest)) {
			newest = s.Read
		}
	}
	out := strings.Join(parts, ", ")
	if newest != nil {
		if age := now.Sub(*newest); age > 5*time.Minute {
			out += fmt.Sprintf("; nothing was read for %s", cluster.SpanOf(age.Truncate(time.Second)))
		}
	}
	for i := range nodes[:min(len(nodes), named)] {
		out += fmt.Sprintf("; %s is %s: %s", nodes[i].Node, nodes[i].State, nodes[i].Why)
	}
	if more := len(nodes) - named; more > 0 {
		out += fmt.Sprintf("; and %d more (fairlease gpus)", more)
	}
	return out
}
