package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// recalls measures from the submission of a job of a whole node, which its tenant's virtual
// cluster has, until its script runs, with rounds every two seconds: ten times, at all phases of a
// round, on nodes that are full of opportunistic jobs of another tenant.
func (s *site) recalls(ctx context.Context) error {
	const n = 10
	was, rules := s.settings, s.rules
	defer func() { s.settings, s.rules = was, rules }()
	s.settings.Preset, s.settings.Chooser = "hived", "astraea"
	s.rules.Cells = wholeNodes("vision", 1)
	for range 8 {
		if _, err := s.Sbatch(ctx, "alice", "#!/bin/bash\nexec sleep 3600\n", "-A", "nlp", "--gres=gpu:2"); err != nil {
			return err
		}
	}
	var waits []float64
	for i := range n {
		s.recalled = 0
		if err := s.turnsUntil(ctx, "the nodes are full of opportunistic jobs", func() bool { return s.onLoan() == 16 }); err != nil {
			return err
		}
		time.Sleep(s.settings.Interval.Duration() * time.Duration(i) / n)
		begin := time.Now()
		id, err := s.Sbatch(ctx, "bob", "#!/bin/bash\ndate +%s%3N > began.new; mv began.new began.$SLURM_JOB_ID\n", "-A", "vision", "--gres=gpu:4")
		if err != nil {
			return err
		}
		time.Sleep(s.settings.Interval.Duration() * time.Duration(n-i) / n)
		var began int64
		if err := s.turnsUntil(ctx, "job "+id+" runs", func() bool {
			text, err := os.ReadFile(filepath.Join(s.Home("bob"), "began."+id))
			if err == nil {
				_, err = fmt.Sscan(string(text), &began)
			}
			return err == nil
		}); err != nil {
			return err
		}
		if s.recalled != 2 {
			return fmt.Errorf("%d jobs were recalled for job %s, want 2", s.recalled, id)
		}
		waits = append(waits, float64(began-begin.UnixMilli())/1e3)
	}
	slices.Sort(waits)
	fmt.Printf("recall: %d jobs of 4 GPUs, rounds every %s, on nodes lent to jobs of 2 GPUs, from submission to start: median %.1f s, worst %.1f s\n",
		n, s.settings.Interval, (waits[n/2-1]+waits[n/2])/2, waits[n-1])
	figure("recall_to_start_s", (waits[n/2-1]+waits[n/2])/2, "s")
	if _, err := s.Exec(ctx, "root", "scancel", "-A", "nlp"); err != nil {
		return err
	}
	return s.turnsUntil(ctx, "all jobs are gone", func() bool {
		out, err := s.Exec(ctx, "root", "squeue", "-h")
		return err == nil && out == ""
	})
}

// wholeNodes describes the site's nodes as cells, with so many of each model for a tenant.
func wholeNodes(tenant string, each int) *cluster.Cells {
	d := &cluster.Cells{VCs: []cluster.VC{{Name: tenant}}}
	for _, g := range []struct{ model, prefix string }{{"k80", "k"}, {"v100", "v"}} {
		node := g.model + "-node"
		d.Types = append(d.Types, cluster.CellType{Name: node, Child: g.model, Split: 4, Node: true}, cluster.CellType{Name: g.model, Model: g.model})
		for i := range 2 {
			name := fmt.Sprintf("%s%d", g.prefix, i+1)
			d.Tops = append(d.Tops, cluster.TopCell{Name: name, Type: node, Nodes: []string{name}})
		}
		d.VCs[0].Cells = append(d.VCs[0].Cells, cluster.CellQuota{Type: node, Cells: each})
	}
	return d
}

// onLoan counts the GPUs under opportunistic leases whose jobs run.
func (s *site) onLoan() int {
	n := 0
	for _, l := range s.last.State.Leases {
		if l.Class == cluster.Opportunistic && l.State == cluster.Active {
			n += l.Size.Devices
		}
	}
	return n
}

// turnsUntil makes turns until a condition holds after one.
func (s *site) turnsUntil(ctx context.Context, what string, ok func() bool) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(s.settings.Interval.Duration()) {
		r, err := s.loop.Turn(ctx)
		if err != nil {
			return err
		}
		if !r.Quiet {
			s.last = r.Plan
			for _, a := range r.Plan.Actions {
				if a.Reason.Code == cluster.ReasonRecalled {
					s.recalled++
				}
			}
		}
		if ok() {
			return nil
		}
		if time.Now().After(deadline) {
			out, err := s.Exec(ctx, "root", "squeue", "-a")
			return errors.Join(fmt.Errorf("not within a minute: %s\n%s", what, strings.TrimSpace(out)), err)
		}
	}
}
