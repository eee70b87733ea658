package store

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

type vcCellKey struct {
	VC    string `json:"vc"`
	Chain string `json:"chain"`
	Type  string `json:"type"`
}

type vcCellRow struct {
	vcCellKey
	At       stamp `json:"at"`
	CellGPUs int   `json:"cell_gpus"`
	Reserved int   `json:"reserved"`
	Pinned   int   `json:"pinned"`
	Bound    int   `json:"bound"`
	Lost     int   `json:"lost"`
	Free     int   `json:"free"`
	Lent     int   `json:"lent"`
}

// boundCellKey names a cell by its first GPU. The VC is part of it, so that a cell that two VCs
// hold in error can be written.
type boundCellKey struct {
	Chain string `json:"chain"`
	Type  string `json:"type"`
	Node  string `json:"node"`
	GPU   int    `json:"gpu"`
	VC    string `json:"vc"`
}

type boundCellRow struct {
	boundCellKey
	Nodes    list   `json:"nodes"`
	NodeGPUs string `json:"node_gpus"`
	GPUs     int    `json:"gpus"`
	Pinned   bool   `json:"pinned"`
	Used     int    `json:"used_gpus"`
	Bad      int    `json:"bad_gpus"`
	Holders  keys   `json:"holders"`
	Guests   keys   `json:"guests"`
	Since    stamp  `json:"since"`
}

type levelKey struct {
	Chain string `json:"chain"`
	Type  string `json:"type"`
}

type fragmentRow struct {
	levelKey
	At       stamp `json:"at"`
	CellGPUs int   `json:"cell_gpus"`
	Broken   int   `json:"broken"`
	Cells    int   `json:"cells"`
}

type violationRow struct {
	What  string `json:"what"`
	Since stamp  `json:"since"`
	Ended stamp  `json:"ended_at"`
}

// keys is a bigint[] of jobs' keys, comma-separated.
type keys string

func keysOf(jobs []cluster.JobKey) keys {
	var b []byte
	for i, job := range jobs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(job), 10)
	}
	return keys(b)
}

func (k keys) MarshalJSON() ([]byte, error) { return []byte("[" + k + "]"), nil }

// The functions below turn the state of the cells into rows, each key once.

func vcCellRows(snap cluster.Snapshot, plan cluster.Plan) []vcCellRow {
	if plan.Cells == nil {
		return nil
	}
	sizes := cellSizes(snap.Cells)
	rows := make([]vcCellRow, 0, len(plan.Cells.Views))
	for _, v := range plan.Cells.Views {
		rows = append(rows, vcCellRow{
			vcCellKey: vcCellKey{v.VC, v.Chain, v.Type}, At: stamp(plan.At), CellGPUs: sizes[v.Type],
			Reserved: v.Reserved, Pinned: v.Pinned, Bound: v.Bound, Lost: v.Lost, Free: v.Free, Lent: v.Lent,
		})
	}
	return once(rows, func(r vcCellRow) vcCellKey { return r.vcCellKey })
}

func boundCellRows(plan cluster.Plan) []boundCellRow {
	if plan.Cells == nil {
		return nil
	}
	rows := make([]boundCellRow, 0, len(plan.Cells.Bound))
	for i := range plan.Cells.Bound {
		b := &plan.Cells.Bound[i]
		if len(b.Parts) == 0 {
			continue // it is in no cell
		}
		first := &b.Parts[0]
		row := boundCellRow{
			boundCellKey: boundCellKey{b.Chain, b.Type, first.Node, bits.TrailingZeros64(first.GPUs), b.VC},
			NodeGPUs:     ranges(first.GPUs), Pinned: b.Pinned, Used: b.Used, Bad: b.Bad,
			Holders: keysOf(b.Holders), Guests: keysOf(b.Guests), Since: stamp(plan.At),
		}
		nodes := make([]string, len(b.Parts))
		for k := range b.Parts {
			nodes[k] = b.Parts[k].Node
			row.GPUs += bits.OnesCount64(b.Parts[k].GPUs)
		}
		row.Nodes = listOf(nodes)
		rows = append(rows, row)
	}
	return once(rows, func(r boundCellRow) boundCellKey { return r.boundCellKey })
}

func fragmentRows(snap cluster.Snapshot, plan cluster.Plan) []fragmentRow {
	if plan.Cells == nil {
		return nil
	}
	sizes := cellSizes(snap.Cells)
	var rows []fragmentRow
	for _, f := range plan.Cells.Fragmentation {
		rows = append(rows, fragmentRow{levelKey{f.Chain, f.Type}, stamp(plan.At), sizes[f.Type], f.Broken, f.Cells})
	}
	return once(rows, func(r fragmentRow) levelKey { return r.levelKey })
}

func violationRows(plan cluster.Plan) []violationRow {
	if plan.Cells == nil {
		return nil
	}
	var rows []violationRow
	for _, what := range plan.Cells.Unsafe {
		rows = append(rows, violationRow{What: what, Since: stamp(plan.At)})
	}
	return once(rows, func(r violationRow) string { return r.What })
}

// once drops rows with a key that occurred before: a statement must not write a row twice.
func once[R any, K comparable](rows []R, key func(R) K) []R {
	seen := make(map[K]bool, len(rows))
	kept := rows[:0]
	for _, row := range rows {
		if k := key(row); !seen[k] {
			seen[k] = true
			kept = append(kept, row)
		}
	}
	return kept
}

// cellSizes gives the GPUs of a cell of each type.
func cellSizes(d *cluster.Cells) map[string]int {
	sizes := map[string]int{}
	if d == nil {
		return sizes
	}
	types := make(map[string]*cluster.CellType, len(d.Types))
	for i := range d.Types {
		types[d.Types[i].Name] = &d.Types[i]
	}
	for name, t := range types {
		size := 1
		for range types { // bounded, in case a type contains itself
			if t != nil && t.Child != "" {
				size *= t.Split
				t = types[t.Child]
			}
		}
		sizes[name] = size
	}
	return sizes
}

// ranges writes the GPUs of a mask: 0-3,6.
func ranges(gpus uint64) string {
	var parts []string
	for from := 0; gpus>>from != 0; {
		from += bits.TrailingZeros64(gpus >> from)
		n := bits.TrailingZeros64(^(gpus >> from))
		text := strconv.Itoa(from)
		if n > 1 {
			text = fmt.Sprintf("%d-%d", from, from+n-1)
		}
		parts = append(parts, text)
		if from += n; from >= 64 {
			break
		}
	}
	return strings.Join(parts, ",")
}
