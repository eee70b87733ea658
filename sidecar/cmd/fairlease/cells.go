package main

import "github.com/spf13/cobra"

func (p *program) cells() *cobra.Command {
	c := &cobra.Command{Use: "cells", Short: "the cells of virtual clusters, and who holds them",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.cellsShow())
	return c
}
