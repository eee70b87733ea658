package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func cellsCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "cells", Short: "virtual clusters: propose, check and show them",
		Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(cellsCheckCommand(p), cellsInitCommand(p), cellsShowCommand(p), cellsAdviseCommand(p))
	return c
}

// mended reads the configuration without the cells file, which may still be wrong or missing.
func mended(p *program) (*config.Config, error) {
	c, err := config.LoadAlone(p.file, p.env)
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

func cellsCheckCommand(p *program) *cobra.Command {
	var l view.Form
	var offline bool
	c := &cobra.Command{Use: "check [FILE]", Short: "check a file of cells, alone and against Slurm", Args: cobra.MaximumNArgs(1),
		Long: `Check a file of cells: whether every promise can be kept, level by level, and whether its nodes and
tenants match Slurm. Without FILE, check the file that the configuration names.

  NEEDED   cells of the level that are promised
  THERE    cells that are left for them after all larger and all pinned cells; cells that are
           not needed are split for the levels below`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := mended(p)
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
			found, err := operate.CheckCells(c.Context(), cfg, file, offline)
			if err != nil {
				return err
			}
			return found.Write(p.page(l))
		}}
	c.Flags().BoolVar(&offline, "offline", false, "do not ask Slurm")
	listFlags(c, &l)
	return c
}

func cellsInitCommand(p *program) *cobra.Command {
	var output string
	var force bool
	c := &cobra.Command{Use: "init", Short: "propose a file of cells from what Slurm reports", Args: exactly(),
		Long: `Propose a file of cells; edit it before use. It has the GPU nodes of the managed partitions by model
and shape, and whole nodes for each tenant by its weight. It has racks where Slurm's topology has
switches or blocks of equal size.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := mended(p)
			if err != nil {
				return err
			}
			text, err := operate.ProposeCells(c.Context(), cfg, p.err)
			if err != nil {
				return err
			}
			if output == "" {
				p.printf("%s", text)
				return nil
			}
			if err := operate.WriteNewFile(output, text, force); err != nil {
				return err
			}
			p.printf("%s is written; edit it, then: fairlease cells check %s\n", output, output)
			return nil
		}}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` instead of the standard output")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return c
}
