package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
)

func (p *program) configuration() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "show or check the configuration",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.configShow(), p.configCheck())
	return c
}

func (p *program) configShow() *cobra.Command {
	var l listing
	c := &cobra.Command{Use: "show", Short: "show every value in force and where it comes from; passwords are masked", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			values := cfg.Values()
			t := &table{head: []string{"KEY", "VALUE", "ORIGIN"}}
			for _, v := range values {
				t.add(v.Key, valueText(v.Value), v.Origin)
			}
			t.tint = func(row, _ int) string {
				if values[row].Origin == "default" {
					return "dim"
				}
				return ""
			}
			return p.list(l, t, values)
		}}
	l.flags(c)
	return c
}

// valueText writes a value as the file would have it.
func valueText(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
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
				p.printf("%s\n", p.paint(counted(len(problems), "problem")+"; a running daemon would keep its old configuration", "red"))
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
