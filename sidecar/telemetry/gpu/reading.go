package gpu

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Node is a node to read, under all its names: in Slurm, its host's name and its address. Host and Address may be empty.
type Node struct {
	Name    string
	Host    string
	Address string
}

// Row is one GPU, or one MIG instance of a GPU, at one look.
type Row struct {
	Index    int
	Instance string // MIG GPU instance; "" = the whole GPU
	Model    string // as the driver calls it
	Job      string // Slurm's job id, where the exporter adds it; "" = it does not
	Shared   bool   // the exporter adds several jobs
	Values   Values
}

// Reading is what one node's GPUs reported at one look.
type Reading struct {
	At   cluster.Instant // of the newest value; 0 = of the look
	Rows []Row           // by index, then instance
	// Err says why the node could not be read: nothing is known of its GPUs then.
	Err error
}

// Source reads the GPUs of nodes. It gives one reading for each node, in their order, and ends with its context. An error
// says that the look as a whole was incomplete, and why; readings then hold what is certain.
type Source interface {
	Read(ctx context.Context, nodes []Node) ([]Reading, error)
}

// names finds nodes by what exporters call them.
type names map[string]int

// namesOf lists all names of nodes, and for names with a domain the part before it. Names that two nodes share are left
// out: they prove nothing.
func namesOf(nodes []Node) names {
	of := names{}
	add := func(name string, i int) {
		if was, ok := of[name]; ok && was != i {
			of[name] = -1
		} else if name != "" {
			of[name] = i
		}
	}
	for i := range nodes {
		for _, name := range []string{nodes[i].Name, nodes[i].Host, nodes[i].Address} {
			add(name, i)
			if short, _, ok := strings.Cut(name, "."); ok && strings.Trim(name, "0123456789.") != "" {
				add(short, i)
			}
		}
	}
	for name, i := range of {
		if i < 0 {
			delete(of, name)
		}
	}
	return of
}

// find gives the node that an exporter means by a name, with or without a domain; -1 = none.
func (n names) find(name string) int {
	if i, ok := n[name]; ok {
		return i
	}
	short, _, ok := strings.Cut(name, ".")
	if i, known := n[short]; ok && known {
		return i
	}
	return -1
}

// mostRows is the maximum number of GPUs and MIG instances of a node.
const mostRows = 1024

// gather collects one node's samples into rows.
type gather struct {
	rows  []Row
	ranks [][meanings]uint8 // of each row's values: place in the table + 1; 0 = none
	// Evidence for the scale of a counter that has had two: the text of HELP, the names of other counters, and the values
	// themselves, which wait in raw by row until all evidence is there.
	raw                []float64
	rawRank            uint8
	told               string // "" = HELP says nothing, else "percent" or "ratio"
	newer, older       bool   // names of 4.9, and from before
	percents, fraction bool   // a value above 1, and one that is no whole number
}

func (g *gather) reset() {
	*g = gather{rows: g.rows[:0], ranks: g.ranks[:0], raw: g.raw[:0]}
}

// sample is one counter of one GPU.
type sample struct {
	entry    *entry
	index    int
	instance []byte
	model    []byte
	job      []byte
	value    float64
}

// add takes a sample. It fails if the node has too many GPUs.
func (g *gather) add(s *sample) error {
	at := -1
	for i := len(g.rows) - 1; i >= 0; i-- { // samples come in the order of GPUs, for each counter anew
		if g.rows[i].Index == s.index && g.rows[i].Instance == string(s.instance) {
			at = i
			break
		}
	}
	if at < 0 {
		if len(g.rows) == mostRows {
			return fmt.Errorf("more than %d GPUs and MIG instances on one node", mostRows)
		}
		at = len(g.rows)
		g.rows = append(g.rows, Row{Index: s.index, Instance: string(s.instance), Model: string(s.model), Job: string(s.job), Values: missing})
		g.ranks, g.raw = append(g.ranks, [meanings]uint8{}), append(g.raw, math.NaN())
	}
	row := &g.rows[at]
	if len(s.job) > 0 && string(s.job) != row.Job {
		if row.Job != "" {
			row.Shared = true
		}
		row.Job = string(s.job)
	}
	e := s.entry
	g.newer, g.older = g.newer || e.newer, g.older || e.older
	if e.unit == percentOrRatio {
		value := s.value
		if !(value >= 0 && value <= 100) || !math.IsNaN(g.raw[at]) && g.raw[at] != value {
			value = math.Inf(1) // out of bounds, or two values: nothing is believed
		}
		g.percents = g.percents || value > 1 && value <= 100
		g.fraction = g.fraction || value != math.Trunc(value)
		g.raw[at], g.rawRank = value, e.rank
		return nil
	}
	value := e.credible(s.value)
	switch rank := &g.ranks[at][e.meaning]; {
	case *rank == 0 || e.rank < *rank:
		*rank, row.Values[e.meaning] = e.rank, value
	case *rank == e.rank && row.Values[e.meaning] != value:
		row.Values[e.meaning] = math.NaN() // two values: neither is believed
	}
	return nil
}

// scale gives the factor of a counter that has had two scales; NaN = unknown. Whole percents and ratios overlap in 0 and 1
// only, so the evidence is, best first: its HELP, a value above 1 on any GPU of the node, a value between whole numbers,
// and whether the node's other counters have the names of 4.9.
func (g *gather) scale() float64 {
	switch {
	case g.told == "percent", g.told == "" && g.percents:
		return 0.01
	case g.told == "ratio", g.fraction, g.newer && !g.older:
		return 1
	case g.older && !g.newer:
		return 0.01
	}
	return math.NaN()
}

// within gives a value from 0 to most; NaN for others. Ratios may exceed 1 a little, by the clocks that they are measured
// with.
func within(value, most float64) float64 {
	switch {
	case value >= 0 && value <= most:
		return value
	case most == 1 && value > 1 && value <= 1.05:
		return 1
	}
	return math.NaN()
}

// finish gives the rows by index and instance.
func (g *gather) finish() []Row {
	if g.rawRank > 0 {
		scale := g.scale()
		for i := range g.rows {
			rank := g.ranks[i][Util]
			if math.IsNaN(g.raw[i]) || rank > 0 && rank < g.rawRank {
				continue
			}
			value := g.raw[i] * scale
			switch {
			case g.raw[i] == 0:
				value = 0 // on both scales
			case g.raw[i] < 1 && g.told == "" && g.percents:
				value = math.NaN() // beside whole percents: a ratio, of a GPU of another model?
			}
			g.rows[i].Values[Util] = within(value, mosts[Util])
		}
	}
	out := make([]Row, len(g.rows))
	copy(out, g.rows)
	sortRows(out)
	return out
}
