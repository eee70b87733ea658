package slurm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// untyped is the model of GPUs for which gres.conf names no type.
const untyped = "gpu"

// gres is one generic resource as Slurm writes it in gres, gres_detail and the
// tres_per_* fields: "gpu:v100:4(S:0-1)", "gres/gpu=2", "shard:1(1/2,0/2)".
type gres struct {
	name  string // gpu, shard, mps, …
	model string // "" if not specified
	count int
	notes string // the text in parentheses
}

// gresList reads a comma-separated list. It leaves out what it cannot read. The error is of the first such entry that is of GPUs or of parts
// of them; other resources are Slurm's matter.
func gresList(s string) (out []gres, unread error) {
	for _, part := range hostlist.Split(s, "()") {
		if part == "N/A" || part == "(null)" {
			continue
		}
		g, err := parseGres(part)
		switch {
		case err == nil:
			out = append(out, g)
		case concernsGPUs(part):
			unread = cmp.Or(unread, err)
		}
	}
	return out, unread
}

// concernsGPUs tells whether an entry of a list of generic resources is of GPUs or of parts of them.
func concernsGPUs(entry string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(entry, "gres/"), "gres:"), ":")
	name, _, _ = strings.Cut(name, "=")
	name, _, _ = strings.Cut(name, "(")
	return name == "gpu" || name == "shard" || name == "mps"
}

// others gives the generic resources of a list that are no GPUs or parts of them, by name, and by name and type, as features that nodes
// have and jobs require: "gres:nic", "gres:nic:mlx5". How much of them is free is Slurm's matter. prefix is what its entries begin with: in
// the requests of jobs there are other resources, too, "cpu=4,gres/nic:1".
func others(list, prefix string) (out []string) {
	if list == "" || !strings.Contains(list, ",") && concernsGPUs(list) {
		return nil
	}
	for _, entry := range hostlist.Split(list, "()") {
		entry, its := strings.CutPrefix(entry, prefix)
		entry, _, _ = strings.Cut(entry, "(")
		fields := strings.FieldsFunc(entry, func(c rune) bool { return c == ':' || c == '=' })
		if !its || len(fields) == 0 || entry == "N/A" || concernsGPUs(entry) {
			continue
		}
		if n, ok := gresCount(fields[len(fields)-1]); ok && len(fields) > 1 {
			if fields = fields[:len(fields)-1]; n == 0 {
				continue
			}
		}
		out = append(out, "gres:"+fields[0])
		if len(fields) > 1 {
			out = append(out, "gres:"+fields[0]+":"+fields[1])
		}
	}
	return out
}

// also gives a constraint that requires further features. Constraints with brackets only Slurm reads.
func also(constraint string, features []string) string {
	if len(features) == 0 || strings.ContainsAny(constraint, "[]()*,") {
		return constraint
	}
	more := strings.Join(features, "&")
	if constraint == "" {
		return more
	}
	choices := strings.Split(constraint, "|")
	for i := range choices {
		choices[i] += "&" + more
	}
	return strings.Join(choices, "|")
}

func parseGres(s string) (gres, error) {
	body, notes, _ := strings.Cut(s, "(")
	if strings.HasPrefix(notes, "null)") { // an untyped GPU: "gpu:(null):2(IDX:0-1)"
		rest, more, _ := strings.Cut(notes[len("null)"):], "(")
		body, notes = strings.TrimSuffix(body, ":")+rest, more
	}
	g := gres{notes: strings.TrimSuffix(notes, ")"), count: 1}
	fields := strings.FieldsFunc(strings.TrimPrefix(body, "gres/"), func(c rune) bool { return c == ':' || c == '=' })
	if len(fields) == 0 || len(fields) > 3 {
		return gres{}, fmt.Errorf("generic resource %.80q is not name[:type][:count]", s)
	}
	g.name = fields[0]
	if n, ok := gresCount(fields[len(fields)-1]); ok && len(fields) > 1 {
		g.count = n
		fields = fields[:len(fields)-1]
	}
	if len(fields) > 1 {
		g.model = fields[1]
	}
	if len(fields) > 2 || strings.HasPrefix(g.model, "-") {
		return gres{}, fmt.Errorf("generic resource %.80q: the count is no number", s)
	}
	return g, nil
}

// gresCount reads a count as Slurm does: digits, and perhaps one of kmgtp for powers of 1024.
// Larger counts are clamped. Other texts are the name of a type.
func gresCount(s string) (int, bool) {
	digits := strings.TrimRight(s, "kKmMgGtTpP")
	if digits == "" || len(s)-len(digits) > 1 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	unit := int64(1)
	if digits != s {
		unit <<= 10 * (1 + strings.IndexByte("kmgtp", s[len(s)-1]|0x20))
	}
	n, _ := strconv.ParseInt(digits, 10, 64) // too many digits give the maximum
	return int(product(n, unit, mostThings)), true
}

func (g gres) pool() string {
	if g.model == "" {
		return untyped
	}
	return g.model
}

// mostNumbers is the most GPUs of a node whose numbers are read.
const mostNumbers = 4096

// indices gives the GPU numbers in "IDX:0-1,3"; nil if Slurm does not report them.
func (g gres) indices() []int {
	_, list, ok := strings.Cut(g.notes, "IDX:")
	if !ok {
		return nil
	}
	out, _, err := numberRanges(list, mostNumbers)
	if err != nil {
		return nil
	}
	return out
}

// usedPart is how much an entry of shards or of mps uses of one GPU.
type usedPart struct{ index, used, of int }

// shared gives the GPUs that a shard or mps entry uses in part: "1/2,0/2" is half of the first of two.
func (g gres) shared() []usedPart {
	var out []usedPart
	for i, part := range strings.Split(g.notes, ",") {
		used, of, ok := strings.Cut(part, "/")
		if n, err := strconv.Atoi(used); ok && err == nil && n > 0 {
			out = append(out, usedPart{i, n, atoi(of)})
		}
	}
	return out
}

// numberRanges expands "0-4,11-19:2", in order and at most limit numbers; total is the full
// count.
func numberRanges(s string, limit int) (list []int, total int, err error) {
	for _, part := range strings.Split(s, ",") {
		span, step, stepped := strings.Cut(part, ":")
		by := 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		a, b, many := strings.Cut(span, "-")
		if !many {
			b = a
		}
		first, err1 := strconv.Atoi(a)
		last, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || by < 1 || first < 0 || last < first || last >= 1<<31-1 {
			return nil, 0, fmt.Errorf("%.80q is no list of numbers", s)
		}
		total += (last-first)/by + 1
		for n := first; n <= last && len(list) < limit; n += by {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), total, nil
}

// tres sums the tres_req_str or tres_alloc_str of a job.
type tres struct {
	cpus, nodes int
	memoryMB    int64
	gpus        int            // gres/gpu
	shards      int            // gres/shard
	mps         int            // gres/mps
	models      map[string]int // gres/gpu:model
}

// parseTres reads "cpu=4,mem=100M,node=1,gres/gpu=4,gres/gpu:v100=4" and skips other entries.
func parseTres(s string) tres {
	var t tres
	for _, part := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "cpu":
			t.cpus = atoi(value)
		case "node":
			t.nodes = atoi(value)
		case "mem":
			t.memoryMB = megabytes(value)
		case "gres/gpu":
			t.gpus = atoi(value)
		case "gres/shard":
			t.shards = atoi(value)
		case "gres/mps":
			t.mps = atoi(value)
		default:
			if model, ok := strings.CutPrefix(name, "gres/gpu:"); ok && model != "" {
				if t.models == nil {
					t.models = map[string]int{}
				}
				t.models[model] = atoi(value)
			}
		}
	}
	return t
}

// atoi reads a count, bounded; 0 if it is invalid.
func atoi(s string) int {
	n, _ := strconv.ParseInt(s, 10, 64) // too many digits give the maximum
	return int(bounded(n, mostThings))
}

// megabytes reads "100M", "4G", "1.50T", "512K" and plain megabytes, rounded up.
func megabytes(s string) int64 {
	unit := 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'K':
			unit = 1.0 / 1024
		case 'M':
		case 'G':
			unit = 1024
		case 'T':
			unit = 1024 * 1024
		case 'P':
			unit = 1024 * 1024 * 1024
		}
		s = strings.TrimRight(s, "KMGTPcn")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 1) || !(f >= 0) {
		return 0
	}
	if f*unit >= mostMemory {
		return mostMemory
	}
	mb := int64(f * unit)
	if float64(mb) < f*unit {
		mb++
	}
	return mb
}

// gpuCounts gives the GPUs in a list of generic resources, by model.
func gpuCounts(list []gres) []cluster.GPUs {
	counts := map[string]int{}
	for _, g := range list {
		if g.name == "gpu" {
			counts[g.pool()] = min(counts[g.pool()]+g.count, mostThings)
		}
	}
	out := make([]cluster.GPUs, 0, len(counts))
	for model, n := range counts {
		if n > 0 {
			out = append(out, cluster.GPUs{Model: model, Count: n})
		}
	}
	slices.SortFunc(out, func(a, b cluster.GPUs) int { return strings.Compare(a.Model, b.Model) })
	return out
}
