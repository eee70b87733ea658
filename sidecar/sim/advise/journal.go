package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Line is one line of advice.
type Line struct {
	Tenant string  `json:"tenant"`
	Chain  string  `json:"chain"`
	Type   string  `json:"type"`
	Cells  int     `json:"cells"`
	Now    int     `json:"now"`
	Jobs   int     `json:"jobs"` // the tenant's jobs in the chain
	Waited float64 `json:"waited_h"`
}

// Proposal is advice beside a description's reservations.
type Proposal struct {
	Lines   []Line       `json:"cells"`
	LeftOut int          `json:"left_out"`
	Short   cells.Faults `json:"short"`
}

// OfJournal gives advice for the tenants whose jobs ended in a window of the journal; nil = no
// job did.
func OfJournal(d *cluster.Cells, past *store.Past) (*Proposal, error) {
	jobs := ended(past, nodeGPUs(d))
	if len(jobs) == 0 {
		return nil, nil
	}
	advice, err := Advise(*d, jobs)
	if err != nil {
		return nil, err
	}
	out := &Proposal{Lines: []Line{}, LeftOut: advice.LeftOut, Short: advice.Short}
	for _, v := range advice.VCs {
		for _, q := range v.Cells {
			out.Lines = append(out.Lines, Line{v.Tenant, q.Chain, q.Type, q.Cells, promised(d, v.Tenant, &q), v.Jobs, v.Waited.Duration().Hours()})
		}
	}
	return out, nil
}

// Write writes the proposal as a table, and as text for a cells file.
func (x *Proposal) Write(p *view.Page) error {
	if p.JSON {
		return p.Encode(x)
	}
	t := &view.Table{Head: []string{"TENANT", "CHAIN", "TYPE", ">CELLS", ">NOW", ">JOBS", ">WAITED"}}
	for _, l := range x.Lines {
		t.Add(l.Tenant, l.Chain, l.Type, fmt.Sprint(l.Cells), fmt.Sprint(l.Now), fmt.Sprint(l.Jobs), fmt.Sprintf("%.1f h", l.Waited))
	}
	p.Table(t)
	if p.Parsable {
		return nil
	}
	if x.LeftOut > 0 {
		p.Printf("%s %d jobs are left out: no node is large enough, or none has their GPUs\n", p.Paint("remark:", "yellow"), x.LeftOut)
	}
	for _, fault := range x.Short {
		p.Printf("%s not all of this can be promised: %s\n", p.Paint("remark:", "yellow"), fault.Error())
	}
	p.Printf("\nvcAssignment:\n")
	last := ""
	for _, l := range x.Lines {
		if l.Tenant != last {
			p.Printf("  - vc: %s\n    cells:\n", l.Tenant)
			last = l.Tenant
		}
		p.Printf("      - {chain: %s, type: %s, number: %d}\n", l.Chain, l.Type, l.Cells)
	}
	return nil
}

// nodeGPUs gives the GPUs of the largest node in a description.
func nodeGPUs(d *cluster.Cells) int {
	types := map[string]cluster.CellType{}
	for _, t := range d.Types {
		types[t.Name] = t
	}
	most := 1
	for _, t := range d.Types {
		if !t.Node {
			continue
		}
		n := 1
		for ; t.Child != ""; t = types[t.Child] {
			n *= t.Split
		}
		most = max(most, n)
	}
	return most
}

// promised gives a tenant's reserved cells of a type.
func promised(d *cluster.Cells, tenant string, of *cluster.CellQuota) int {
	n := 0
	for _, v := range d.VCs {
		for _, q := range v.Cells {
			if v.Name == tenant && q.Type == of.Type && (q.Chain == "" || q.Chain == of.Chain) {
				n += q.Cells
			}
		}
	}
	return n
}

// ended gives the jobs that ended, as gangs on nodes of so many GPUs.
func ended(past *store.Past, node int) []Job {
	s := backtest.Of(past, "")
	load := map[string]trace.Job{}
	for j := range s.Setup.Load.Jobs {
		load[j.ID] = j
	}
	var out []Job
	for _, j := range s.Was.Jobs {
		if j.End == 0 || j.Tenant == "" || j.Held == 0 {
			continue
		}
		g := cellworld.Gangs([]trace.Job{load[j.ID]}, node)[0]
		g.Tenant, g.Model, g.Runs = j.Tenant, load[j.ID].Model, j.Held
		out = append(out, Job{Job: g, Waited: j.Wait(j.End)})
	}
	slices.SortStableFunc(out, func(a, b Job) int { return strings.Compare(a.Tenant, b.Tenant) })
	return out
}
