package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) cells() *cobra.Command {
	c := &cobra.Command{Use: "cells", Short: "virtual clusters: propose or check them, and who holds their cells",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.cellsCheck(), p.cellsInit(), p.cellsShow(), p.cellsAdvise())
	return c
}

// mended reads the configuration without the file of cells, which may be wrong or missing yet.
func (p *program) mended() (*config.Config, error) {
	c, err := config.LoadAlone(p.file, p.env)
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

// cellsFound is what `cells check` found out.
type cellsFound struct {
	File     string         `json:"file"`
	Levels   []cells.Supply `json:"levels"`
	Problems []string       `json:"problems"`
	Remarks  []string       `json:"remarks"`
}

func (p *program) cellsCheck() *cobra.Command {
	var l view.Form
	var offline bool
	c := &cobra.Command{Use: "check [FILE]", Short: "check a file of cells, and whether Slurm bears it out", Args: cobra.MaximumNArgs(1),
		Long: `Check a file of cells, the one that the configuration names if none is given: is every promise
possible, level by level? And are its nodes and tenants those that Slurm knows?

NEEDED are the cells of a level that are promised, THERE those that can be had for them once all
larger and all pinned ones are taken; what is over is split for the levels below.`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.mended()
			if err != nil {
				return err
			}
			file := cfg.CellFile()
			if len(args) > 0 {
				file = args[0]
			}
			if file == "" {
				return &failure.Error{Code: failure.Misuse, What: "no file of cells is configured", Next: "name one: fairlease cells check FILE; or set cells.file"}
			}
			found := cellsFound{File: file, Levels: []cells.Supply{}, Problems: []string{}, Remarks: []string{}}
			f, err := config.LoadCells(file)
			var problems config.Problems
			if err != nil && !errors.As(err, &problems) {
				return &failure.Error{Code: failure.Misuse, What: "the file of cells cannot be read", Err: err, Next: "`fairlease cells init` writes one"}
			}
			if f != nil {
				found.Levels = f.Supply
				if !offline {
					problems, found.Remarks = p.against(c.Context(), cfg, f)
				}
			}
			for _, x := range problems {
				found.Problems = append(found.Problems, x.String())
			}
			return p.tellCells(l, &found, problems)
		}}
	c.Flags().BoolVar(&offline, "offline", false, "do not ask Slurm")
	listFlags(c, &l)
	return c
}

// against holds a file of cells against Slurm, as far as that can be asked.
func (p *program) against(ctx context.Context, cfg *config.Config, f *config.CellFile) (config.Problems, []string) {
	away := func(err error) (config.Problems, []string) {
		return nil, []string{fmt.Sprintf("Slurm could not be asked (%s), so nodes and tenants were not checked", failure.Cause(err))}
	}
	client, err := connect.Slurm(cfg)
	if err != nil {
		return away(err)
	}
	defer client.Close()
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		return away(err)
	}
	rules := cfg.Rules()
	wrong, remarks := f.Against(&seen, &rules)
	return wrong, append([]string{}, remarks...)
}

// tellCells writes what was found. Problems are an error.
func (p *program) tellCells(l view.Form, found *cellsFound, problems config.Problems) error {
	if l.JSON {
		if err := p.page(l).Encode(found); err != nil {
			return err
		}
		if problems != nil {
			return failure.Quiet(failure.No)
		}
		return nil
	}
	t := &view.Table{Head: []string{"CHAIN", "TYPE", ">GPUS", ">CELLS", ">PINNED", ">NEEDED", ">THERE", ">SPARE"}}
	for _, s := range found.Levels {
		t.Add(s.Chain, s.Type, fmt.Sprint(s.GPUs), fmt.Sprint(s.Cells), fmt.Sprint(s.Pinned), fmt.Sprint(s.Needed), fmt.Sprint(s.There), fmt.Sprint(s.There-s.Needed))
	}
	if len(found.Levels) > 0 || l.Parsable {
		p.page(l).Table(t)
	}
	if !l.Parsable {
		for _, r := range found.Remarks {
			p.printf("%s %s\n", p.paint("remark:", "yellow"), r)
		}
	}
	if problems != nil {
		return &failure.Error{Code: failure.No, What: found.File + " cannot be used", Err: problems,
			Next: "correct the file; a running daemon would keep its old one"}
	}
	return nil
}

func (p *program) cellsInit() *cobra.Command {
	var output string
	var force bool
	c := &cobra.Command{Use: "init", Short: "propose a file of cells from what Slurm reports", Args: exactly(),
		Long: `Write a file of cells to be edited: the nodes with GPUs of the managed partitions by model and shape,
racks where Slurm has a topology whose switches or blocks have equally many nodes, and whole nodes for
each tenant by its weight.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.mended()
			if err != nil {
				return err
			}
			text, err := p.propose(c.Context(), cfg)
			if err != nil {
				return err
			}
			if output == "" {
				p.printf("%s", text)
				return nil
			}
			return p.writeNew(output, text, force)
		}}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, not to the standard output")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return c
}

// propose makes a file of cells that can be used as it is.
func (p *program) propose(ctx context.Context, cfg *config.Config) (string, error) {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		return "", connect.SlurmAway(cfg, err)
	}
	layout, err := client.Layout(ctx)
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: without topology: %s\n", failure.Cause(err))
	}
	rules := cfg.Rules()
	text, err := config.ProposeCells(&seen, &rules, layout.Sockets, racks(layout.Groups))
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "there is nothing to make cells of", Err: err, Next: "correct partitions, tenants.level or tenants.weights in the configuration; `fairlease doctor` looks closer"}
	}
	f, err := config.ParseCells("proposal", []byte(text))
	if err == nil {
		if wrong, _ := f.Against(&seen, &rules); len(wrong) > 0 {
			err = wrong
		}
	}
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "what Slurm reports could not be put into a file of cells", Err: err, Next: "write it by hand; etc/cells has examples"}
	}
	return text, nil
}

func racks(groups []slurm.Group) []config.Rack {
	out := make([]config.Rack, len(groups))
	for i, g := range groups {
		out[i] = config.Rack(g)
	}
	return out
}

// writeNew writes a file that must not be there yet, unless that is forced.
func (p *program) writeNew(path, text string, force bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, os.ErrExist) {
		return &failure.Error{Code: failure.No, What: path + " is there already", Next: "name another file, or overwrite it with --force"}
	}
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the file could not be written", Err: err}
	}
	p.printf("%s is written; edit it, then: fairlease cells check %s\n", path, path)
	return nil
}
