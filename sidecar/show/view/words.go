package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// cases maps keys to the cases of a snapshot.
type cases map[cluster.JobKey]cluster.Case

func people(s *cluster.Snapshot) cases {
	out := make(cases, len(s.Cases)+len(s.Former))
	for i := range s.Cases {
		out[s.Cases[i].Record.Key] = s.Cases[i]
	}
	for i := range s.Former {
		out[s.Former[i].Key] = cluster.Case{Gone: true, Record: s.Former[i]}
	}
	return out
}

// name gives a job's id as users know it; "" if the snapshot lacks the job.
func (c cases) name(key cluster.JobKey) string {
	if k, ok := c[key]; ok {
		return k.Record.ID.String()
	}
	return ""
}

// nodeNames gives the nodes of holdings, each once, sorted.
func nodeNames(holdings []cluster.Holding) []string {
	var out []string
	for i := range holdings {
		out = append(out, holdings[i].Node)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Subject names the subject of an action.
func Subject(a *cluster.Action) string {
	if a.ID != (cluster.JobID{}) {
		return "job " + a.ID.String()
	}
	return "reservation " + a.Reservation
}

// clock gives a time of day, with the date if it is another day.
func clock(w explain.Words, t cluster.Instant) string {
	if t == 0 {
		return ""
	}
	at, _, _ := strings.Cut(w.Time(t), " (")
	return at
}

// Counts lists counts, the largest first.
func Counts[K ~string](counts map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Reasons lists counts of jobs by reason in words, the largest first.
func Reasons(counts map[cluster.Code]int) string {
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b cluster.Code) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, code := range codes {
		parts = append(parts, fmt.Sprintf("%s (%d)", explain.Short(code), counts[code]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// gpuCount converts millionths of a GPU to GPUs.
func gpuCount(g cluster.MicroGPU) string { return hundredths(float64(g) / float64(cluster.WholeGPU)) }

// hundredths writes a number with two digits after the point; what rounds to 0 has no sign.
func hundredths(x float64) string { return fmt.Sprintf("%.2f", math.Round(x*100)/100+0) }

// Rho gives the rho of a tenant that wants so many GPUs: "-" if it wants none and has received none, so that there is nothing to compare.
func Rho(r cluster.Rho, wants cluster.MicroGPU) string {
	if r == 0 && wants == 0 {
		return "-"
	}
	return r.String()
}

// JobRho gives the rho of a job: "-" before it was due or received anything.
func JobRho(received, due cluster.GPUTime) string {
	if received <= 0 && due <= 0 {
		return "-"
	}
	return cluster.RhoOf(received, due).String()
}

// Plural gives a number with a noun that takes an s.
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Some lists the first few of many names.
func Some(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// ShellWords quotes words for a shell.
func ShellWords(words ...string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%"
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.ContainsFunc(w, func(r rune) bool { return !strings.ContainsRune(plain, r) }) || w == "" {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// Wrapped wraps a text for a terminal.
func Wrapped(text string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		if width > 0 && width+1+len(word) > 98 {
			b.WriteString("\n")
			width = 0
		} else if width > 0 {
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}
