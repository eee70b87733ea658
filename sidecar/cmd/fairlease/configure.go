package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func (p *program) configuration() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "show, check, compare or accept the configuration",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.configShow(), p.configCheck(), configDiff(p), p.configAccept())
	return c
}

func (p *program) configShow() *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "show", Short: "show every value of the configuration and its origin; passwords are masked", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.configInForce()
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
			if file == "" && p.configFile() == "" {
				return &failure.Error{Code: failure.Misuse, What: "there is no file to check: " + config.DefaultPath + " does not exist",
					Next: "name one (fairlease config check FILE), or copy the example etc/fairlease.yaml of the sources to that place"}
			}
			cfg, err := p.checked(file)
			if err != nil {
				return err
			}
			if idle := append(cfg.NoEffect(), cfg.VCs().Untrusted()...); len(idle) > 0 {
				for _, x := range idle {
					p.printf("%s\n", x)
				}
				p.printf("%s\n", p.paint(view.Plural(len(idle), "problem")+"; a daemon warns of them and goes on", "red"))
				return failure.Quiet(failure.Misuse)
			}
			for _, w := range cfg.Warnings() {
				p.printf("%s %s\n", p.paint("warning:", "yellow"), w)
			}
			if was := config.ReadAccepted(cfg.AcceptedPath()); was != nil {
				for _, x := range was.Drops(cfg) {
					p.printf("%s %s (the daemon of this host refuses it without `fairlease config accept`)\n", p.paint("warning:", "yellow"), x)
				}
			}
			p.printf("the configuration is good: mode %s, partitions %v\n", cfg.Mode, cfg.Partitions)
			return nil
		}}
}

// checked reads a configuration, and prints its problems if there are any.
func (p *program) checked(file string) (*config.Config, error) {
	cfg, err := config.Load(file, p.env)
	var problems config.Problems
	if errors.As(err, &problems) {
		for _, x := range problems {
			p.printf("%s\n", x)
		}
		p.printf("%s\n", p.paint(view.Plural(len(problems), "problem")+"; a running daemon keeps its old configuration", "red"))
		return nil, failure.Quiet(failure.Misuse)
	}
	if err != nil {
		return nil, p.badConfig(err)
	}
	return cfg, nil
}

func (p *program) configAccept() *cobra.Command {
	return &cobra.Command{Use: "accept", Short: "confirm a configuration that leaves out what was in force", Args: exactly(),
		Long: `Confirm the configuration as it is now. An empty or cut file is nobody's wish, so a daemon refuses, at a
reload and at its start, a file that no longer sets what was in force before: mode, partitions, exclusions,
weights, budgets, the preset, virtual clusters; or that is the beginning of the one in force, as also
the file of cells may be. This command accepts that for the present text of the file,
on this host. A running daemon takes the file over within seconds. Run it as root or as the daemon's user.`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.checked(p.file)
			if err != nil {
				return err
			}
			path := cfg.AcceptedPath()
			was := config.ReadAccepted(path)
			if was == nil {
				p.printf("nothing needs to be accepted: no daemon of this host has taken over a configuration yet (%s)\n", path)
				return nil
			}
			drops := was.Drops(cfg)
			if len(drops) == 0 {
				p.printf("nothing needs to be accepted: the file leaves out nothing that was in force\n")
				return nil
			}
			if err := daemon.WriteAccepted(path, cfg.Accept()); err != nil {
				return &failure.Error{Code: failure.No, What: "the configuration is not accepted", Err: err, Next: "run this as root or as the daemon's user"}
			}
			for _, x := range drops {
				p.printf("accepted: %s\n", x)
			}
			p.printf("mode %s, partitions %v: a running daemon takes this over within seconds; else systemctl start fairlease\n", cfg.Mode, cfg.Partitions)
			return nil
		}}
}
