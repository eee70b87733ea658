package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) configuration() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "show or check the configuration",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.configShow(), p.configCheck())
	return c
}

func (p *program) configShow() *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "show", Short: "show every value in force and its origin; passwords are masked", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			values := cfg.Values()
			return p.page(l).List(view.ConfigTable(values), values)
		}}
	listFlags(c, &l)
	return c
}

func (p *program) configCheck() *cobra.Command {
	return &cobra.Command{Use: "check [FILE]", Short: "check a file without using it", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := p.file
			if len(args) > 0 {
				file = args[0]
			}
			cfg, err := config.Load(file, p.env)
			var problems config.Problems
			if errors.As(err, &problems) {
				for _, x := range problems {
					p.printf("%s\n", x)
				}
				p.printf("%s\n", p.paint(view.Plural(len(problems), "problem")+"; a running daemon keeps its old configuration", "red"))
				return failure.Quiet(failure.Misuse)
			}
			if err != nil {
				return p.badConfig(err)
			}
			for _, w := range cfg.Warnings() {
				p.printf("%s %s\n", p.paint("warning:", "yellow"), w)
			}
			p.printf("the configuration is good: mode %s, partitions %v\n", cfg.Mode, cfg.Partitions)
			return nil
		}}
}
