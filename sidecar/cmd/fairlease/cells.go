package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cellfile"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) cells() *cobra.Command {
	c := &cobra.Command{Use: "cells", Short: "virtual clusters: propose or check them, and who holds their cells",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.cellsCheck(), p.cellsInit(), p.cellsShow(), p.cellsAdvise())
	return c
}

// mended reads the configuration without the cells file, which may still be wrong or missing.
func (p *program) mended() (*config.Config, error) {
	c, err := config.LoadAlone(p.file, p.env)
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
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
			found, err := cellfile.Check(c.Context(), cfg, file, offline)
			if err != nil {
				return err
			}
			return found.Write(p.page(l))
		}}
	c.Flags().BoolVar(&offline, "offline", false, "do not ask Slurm")
	listFlags(c, &l)
	return c
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
			text, err := cellfile.Propose(c.Context(), cfg, p.err)
			if err != nil {
				return err
			}
			if output == "" {
				p.printf("%s", text)
				return nil
			}
			if err := cellfile.WriteNew(output, text, force); err != nil {
				return err
			}
			p.printf("%s is written; edit it, then: fairlease cells check %s\n", output, output)
			return nil
		}}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, not to the standard output")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return c
}
