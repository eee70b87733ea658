package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/advise"
	"github.com/fairlease/fairlease/sidecar/sim/replay"
	"github.com/fairlease/fairlease/sidecar/sim/shadow"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

const aboutAdvise = `Propose the smallest virtual clusters in which each tenant's jobs would have waited no longer than
they did, by the journal. The jobs of each tenant are replayed alone on candidate cells, first come first
served; small cells are preferred to large ones where they serve as well, since they cost others less.

The types of cells are those of FILE, else of the configuration's file of cells; what it promises to
whom is not read. NOW is what it promises. Below the table stands what can be put into the file.

A gang is taken to be on as few nodes as it fits on. Jobs that were not over count for nothing: take a
window (--since) much longer than the jobs.`

func (p *program) cellsAdvise() *cobra.Command {
	var l view.Form
	var since, until string
	c := &cobra.Command{Use: "advise [FILE]", Short: "the smallest virtual clusters that would have served as well", Args: cobra.MaximumNArgs(1), Long: aboutAdvise,
		Example: "  fairlease cells advise --since 14d\n  fairlease cells advise proposal.yaml --since 2030-01-01 --until 2030-02-01",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.mended()
			if err != nil {
				return err
			}
			f, err := p.cellTypes(cfg, args)
			if err != nil {
				return err
			}
			from, err := p.ago("--since", since)
			if err != nil {
				return err
			}
			to, err := p.ago("--until", until)
			if err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Past(c.Context(), from, to)
				if err != nil {
					return p.noPast(err)
				}
				return p.advise(l, f, &past)
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31 (default: as far back as can be told)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	listFlags(c, &l)
	return c
}

// cellTypes reads the file of cells that is named, or configured.
func (p *program) cellTypes(cfg *config.Config, args []string) (*config.CellFile, error) {
	file := cfg.CellFile()
	if len(args) > 0 {
		file = args[0]
	}
	if file == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "no file of cells is configured", Next: "make one: fairlease cells init -o FILE; then: fairlease cells advise FILE"}
	}
	f, err := config.LoadCells(file)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: file + " cannot be used", Err: err, Next: "see fairlease cells check " + file}
	}
	return f, nil
}

// advised is one line of advice.
type advised struct {
	Tenant string  `json:"tenant"`
	Chain  string  `json:"chain"`
	Type   string  `json:"type"`
	Cells  int     `json:"cells"`
	Now    int     `json:"now"`
	Jobs   int     `json:"jobs"` // of the tenant in the chain
	Waited float64 `json:"waited_h"`
}

func (p *program) advise(l view.Form, f *config.CellFile, past *store.Past) error {
	jobs := ended(past, nodeGPUs(f.Cells))
	if len(jobs) == 0 {
		return &failure.Error{Code: failure.No, What: "no job with GPUs ended in that window", Next: "name a longer one: --since"}
	}
	advice, err := advise.Advise(*f.Cells, jobs)
	if err != nil {
		return err
	}
	lines := []advised{}
	for _, v := range advice.VCs {
		for _, q := range v.Cells {
			lines = append(lines, advised{v.Tenant, q.Chain, q.Type, q.Cells, promised(f.Cells, v.Tenant, &q), v.Jobs, v.Waited.Duration().Hours()})
		}
	}
	if l.JSON {
		return p.page(l).Encode(map[string]any{"cells": lines, "left_out": advice.LeftOut, "short": advice.Short})
	}
	t := &view.Table{Head: []string{"TENANT", "CHAIN", "TYPE", ">CELLS", ">NOW", ">JOBS", ">WAITED"}}
	for _, x := range lines {
		t.Add(x.Tenant, x.Chain, x.Type, fmt.Sprint(x.Cells), fmt.Sprint(x.Now), fmt.Sprint(x.Jobs), fmt.Sprintf("%.1f h", x.Waited))
	}
	p.page(l).Table(t)
	if l.Parsable {
		return nil
	}
	if advice.LeftOut > 0 {
		p.printf("%s %d jobs are left out: no node is large enough, or none has their GPUs\n", p.paint("remark:", "yellow"), advice.LeftOut)
	}
	for _, x := range advice.Short {
		p.printf("%s not all of this can be promised: %s\n", p.paint("remark:", "yellow"), x.Error())
	}
	p.printf("\nvcAssignment:\n")
	last := ""
	for _, x := range lines {
		if x.Tenant != last {
			p.printf("  - vc: %s\n    cells:\n", x.Tenant)
			last = x.Tenant
		}
		p.printf("      - {chain: %s, type: %s, number: %d}\n", x.Chain, x.Type, x.Cells)
	}
	return nil
}

// nodeGPUs gives the GPUs of the largest node that a description has.
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

// promised gives how many cells of a type a tenant has.
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

// ended gives the jobs that were over, as gangs on nodes of so many GPUs.
func ended(past *store.Past, node int) []advise.Job {
	s := shadow.Of(past, "")
	load := map[string]trace.Job{}
	for j := range s.Setup.Load.Jobs {
		load[j.ID] = j
	}
	var out []advise.Job
	for _, j := range s.Was.Jobs {
		if j.End == 0 || j.Tenant == "" || j.Held == 0 {
			continue
		}
		g := replay.Gangs([]trace.Job{load[j.ID]}, node)[0]
		g.Tenant, g.Model, g.Runs = j.Tenant, load[j.ID].Model, j.Held
		out = append(out, advise.Job{Job: g, Waited: j.Wait(j.End)})
	}
	slices.SortStableFunc(out, func(a, b advise.Job) int { return strings.Compare(a.Tenant, b.Tenant) })
	return out
}
