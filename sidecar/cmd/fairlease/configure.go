package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func configurationCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "show, check, compare or accept the configuration",
		Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(configShowCommand(p), configCheckCommand(p), configDiff(p), configAcceptCommand(p), configReject(p))
	return c
}

func configShowCommand(p *program) *cobra.Command {
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

func configCheckCommand(p *program) *cobra.Command {
	var offline bool
	c := &cobra.Command{Use: "check [FILE]", Short: "check a file without using it, alone and against Slurm", Args: cobra.MaximumNArgs(1),
		Long: `Check a file without using it. Where Slurm answers, its partitions, accounts, users and QOS are compared with those that
the file names: a name that Slurm does not know is a warning.`,
		RunE: func(c *cobra.Command, args []string) error {
			file := p.file
			if len(args) > 0 {
				file = args[0]
			}
			if file == "" && p.configFile() == "" {
				return &failure.Error{Code: failure.Misuse, What: "there is no file to check: " + config.DefaultPath + " does not exist",
					Next: "name one (fairlease config check FILE), or copy the example etc/fairlease.yaml of the sources to that place"}
			}
			cfg, err := checked(p, file)
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
			if !offline {
				unknown, err := doctor.Unknown(c.Context(), cfg)
				if err != nil {
					fmt.Fprintf(p.err, "fairlease: names of partitions, accounts, users and QOS are not compared: %s; --offline does not ask Slurm\n", failure.Cause(err))
				}
				for _, x := range unknown {
					p.printf("%s %s: %s; %s\n", p.paint("warning:", "yellow"), x.Found, x.Means, x.Do)
				}
			}
			p.printf("the configuration is good: mode %s, partitions %v\n", cfg.Mode, cfg.Partitions)
			return nil
		}}
	c.Flags().BoolVar(&offline, "offline", false, "do not ask Slurm")
	return c
}

// checked reads a configuration, and prints its problems if there are any.
func checked(p *program, file string) (*config.Config, error) {
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

func configAcceptCommand(p *program) *cobra.Command {
	return &cobra.Command{Use: "accept [DIGEST]", Short: "confirm a configuration that a daemon does not take over unasked", Args: cobra.MaximumNArgs(1),
		Long: `Confirm a configuration that the daemon of this host does not take over unasked.

One that waits, since the next round would end leases or move entitlements beyond config.accept_above: without DIGEST the command
shows what it would do; with the digest shown there it accepts that text of the file, and no other. config reject drops it.

One that leaves out what was in force. An empty or cut file is nobody's wish, so a daemon refuses, at a
reload and at its start, a file that no longer sets what was in force before: mode, partitions, exclusions,
weights, budgets, the preset, virtual clusters; or that is the beginning of the one in force, as also
the file of cells may be. This command accepts that for the present text of the file,
on this host.

A running daemon takes the file over within seconds. Run it as root or as the daemon's user.`,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := checked(p, p.file)
			if err != nil {
				return err
			}
			path := cfg.AcceptedPath()
			was := config.ReadAccepted(path)
			if was == nil {
				p.printf("nothing needs to be accepted: no daemon of this host has taken over a configuration yet (%s)\n", path)
				return nil
			}
			digest := config.Digest(cfg)
			if len(args) > 0 && (len(args[0]) < 12 || !strings.HasPrefix(digest, args[0])) {
				return &failure.Error{Code: failure.No, What: fmt.Sprintf("the file's digest is %.12s, not %s: it has changed since it was looked at", digest, args[0]),
					Next: "look again: fairlease config diff, fairlease config accept"}
			}
			if w := was.Waiting; w != nil && w.Digest == digest {
				return acceptWaiting(p, path, was, len(args) > 0)
			}
			drops := was.Drops(cfg)
			if len(drops) == 0 {
				p.printf("nothing needs to be accepted: the file leaves out nothing that was in force, and no daemon waits with it\n")
				return nil
			}
			if err := answered(path, cfg.Accept()); err != nil {
				return err
			}
			for _, x := range drops {
				p.printf("accepted: %s\n", x)
			}
			p.printf("mode %s, partitions %v: a running daemon takes this over within seconds; else systemctl start fairlease\n", cfg.Mode, cfg.Partitions)
			return nil
		}}
}

// acceptWaiting accepts the configuration that waits, or shows it.
func acceptWaiting(p *program, path string, was *config.Accepted, accept bool) error {
	w := was.Waiting
	if !accept {
		t := &view.Table{Head: []string{"KEY", "IN_FORCE", "WAITS"}}
		for _, k := range w.Keys {
			t.Add(k.Key, view.ValueOf(k.Before), view.ValueOf(k.After))
		}
		page := p.page(view.Form{})
		page.Table(t)
		page.Printf("\nIt waits since %s: %s\nTo have it in force: fairlease config accept %.12s; to drop it: fairlease config reject\n",
			page.Time(cluster.InstantOf(w.Since)), w.Says, w.Digest)
		return failure.Quiet(failure.No)
	}
	now := *was
	now.Answer = &config.Answer{Digest: w.Digest, Accept: true, By: operate.Author(p.getenv("SUDO_USER"))}
	if err := answered(path, now); err != nil {
		return err
	}
	p.printf("accepted: %s; a running daemon takes it over within seconds\n", w.Says)
	return nil
}

func answered(path string, now config.Accepted) error {
	if err := daemon.WriteAccepted(path, now); err != nil {
		return &failure.Error{Code: failure.No, What: "the answer is not written down", Err: err, Next: "run this as root or as the daemon's user"}
	}
	return nil
}

func configReject(p *program) *cobra.Command {
	return &cobra.Command{Use: "reject", Short: "drop a configuration that waits to be accepted", Args: exactly(),
		Long: `Drop the configuration that waits to be accepted. The daemon goes on with the one in force. The file stays as it is: restore it, since the
next reload asks again, and a start takes it over. Run it as root or as the daemon's user.`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			path := cfg.AcceptedPath()
			was := config.ReadAccepted(path)
			if was == nil || was.Waiting == nil {
				p.printf("no configuration waits to be accepted\n")
				return nil
			}
			was.Answer = &config.Answer{Digest: was.Waiting.Digest, By: operate.Author(p.getenv("SUDO_USER"))}
			if err := answered(path, *was); err != nil {
				return err
			}
			p.printf("rejected: %s\n", was.Waiting.Says)
			return nil
		}}
}
