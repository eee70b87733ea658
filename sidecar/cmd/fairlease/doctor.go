package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

// How bad a finding is.
const (
	fine = "ok"
	warn = "warn"
	bad  = "fail"
)

// finding is the result of one check.
type finding struct {
	Area  string `json:"area"`
	Check string `json:"check"`
	Level string `json:"level"` // ok, warn or fail
	Found string `json:"found"`
	Means string `json:"means,omitempty"`
	Do    string `json:"do,omitempty"`
}

// findings collects them.
type findings struct {
	area string
	list []finding
	now  func() time.Time
	seen *cluster.Sighting // nil = Slurm could not be asked
	past *store.Past       // the last days of the journal; nil = there is none
}

func (f *findings) ok(check, format string, args ...any) {
	f.list = append(f.list, finding{Area: f.area, Check: check, Level: fine, Found: fmt.Sprintf(format, args...)})
}

func (f *findings) add(level, check, found, means, do string) {
	f.list = append(f.list, finding{Area: f.area, Check: check, Level: level, Found: found, Means: means, Do: do})
}

// must is ok where holds, else a finding.
func (f *findings) must(holds bool, level, check, found, means, do string) {
	if holds {
		f.ok(check, "%s", found)
		return
	}
	f.add(level, check, found, means, do)
}

func (p *program) doctor() *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "doctor", Short: "check Slurm, PostgreSQL, configuration and clock; say what to do", Args: exactly(),
		Long: `Check everything that fairlease stands on and say what each finding means and what to do about it.
It changes nothing. The exit code is 1 if something must be repaired (fail); warnings do not count.`,
		RunE: func(c *cobra.Command, _ []string) error {
			found := p.examine(c.Context())
			if err := p.report(l, found); err != nil {
				return err
			}
			for i := range found {
				if found[i].Level == bad {
					return failure.Quiet(failure.No)
				}
			}
			return nil
		}}
	listFlags(c, &l)
	return c
}

func (p *program) examine(ctx context.Context) []finding {
	f := &findings{area: "configuration", now: p.clock}
	cfg, err := config.Load(p.file, p.env)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		for _, x := range problems {
			f.add(bad, "file", x.String(), "the daemon does not start with it", "correct it; etc/fairlease.yaml explains every key")
		}
		return f.list
	case err != nil:
		f.add(bad, "file", failure.Cause(err), "the daemon does not start without it", "check the path and its rights")
		return f.list
	}
	f.ok("file", "good: mode %s, partitions %s", cfg.Mode, strings.Join(cfg.Partitions, ", "))
	for _, w := range cfg.Warnings() {
		found, do, _ := strings.Cut(w, "; ")
		f.add(warn, "file", found, "", do)
	}
	f.files(cfg)
	f.modes(cfg)
	f.progress(ctx, cfg)
	f.area = "slurm"
	f.slurm(ctx, cfg)
	f.area = "postgresql"
	f.database(ctx, cfg)
	f.area = "jobs"
	f.saves(cfg)
	return f.list
}

// files checks the daemon's own files, as the user that runs the doctor.
func (f *findings) files(cfg *config.Config) {
	acting := cfg.Rules()
	level := warn
	if len(acting.Acting()) > 0 {
		level = bad
	}
	for _, x := range []struct{ check, dir, means string }{
		{"heartbeats", cfg.Files.Heartbeats, "the submit plugin does not gate where it finds no heartbeat, so jobs start before they are granted a lease"},
		{"state", filepath.Dir(cfg.Files.State), "the daemon does not act if it cannot write down first what jobs had"},
	} {
		err := writable(x.dir)
		found := x.dir + " can be written to"
		if err != nil {
			found = failure.Cause(err)
		}
		f.must(err == nil, level, x.check, found, x.means, "make "+x.dir+" for the daemon's user (the packaged tmpfiles.d does), and run the doctor as that user")
	}
}

// modes looks at who else can read or write the daemon's files.
func (f *findings) modes(cfg *config.Config) {
	loose := cfg.LooseFiles()
	for _, x := range loose {
		f.add(map[bool]string{true: bad, false: warn}[x.Bad], "mode of "+x.What, x.Found, x.Means, x.Do)
	}
	if len(loose) == 0 {
		f.ok("modes", "no file of fairlease can be read or written by users who should not")
	}
}

func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// clockSkew is how far our clock may be from others before it matters.
const clockSkew = 2 * time.Second

func (f *findings) database(ctx context.Context, cfg *config.Config) {
	if cfg.Database.URL == "" {
		f.add(bad, "address", "none is configured", "the daemon has nowhere to write rounds down, and does not start", "set database.url, or FAIRLEASE_DATABASE_URL")
		return
	}
	facts, err := lookAtDatabase(ctx, cfg.Database.URL, cfg.Database.Schema)
	if err != nil {
		f.add(bad, "connection", failure.Cause(err), "rounds pause while PostgreSQL is away", "check that it runs at "+config.Mask(cfg.Database.URL)+" and lets this user in")
		return
	}
	f.must(facts.version >= 140000, bad, "version", fmt.Sprintf("PostgreSQL %d", facts.version/10000), "fairlease needs 14 or newer", "upgrade it")
	s, err := openStore(ctx, cfg)
	switch {
	case errors.Is(err, store.ErrSchema):
		f.add(bad, "schema", failure.Cause(err), "the daemon does not start", "run fairlease migrate with the newest fairlease")
		return
	case err != nil:
		f.add(bad, "schema", failure.Cause(err), "the daemon cannot work", "see the message")
		return
	}
	defer s.Close()
	f.ok("schema", "version %d", facts.schema)
	f.must(facts.rights, bad, "rights", fmt.Sprintf("user %s %s", facts.user, map[bool]string{true: "may write the journal", false: "may not write the journal"}[facts.rights]),
		"no round can be written down, so none is made", "run fairlease migrate as that user, or grant it all on the tables of schema fairlease")
	skew := facts.skew.Round(10 * time.Millisecond)
	f.must(skew.Abs() <= clockSkew, warn, "clock", fmt.Sprintf("this host's clock is within %v of PostgreSQL's", max(skew.Abs(), 10*time.Millisecond)),
		"overrides, terms and the seat are told by different clocks", "synchronise the clocks (chrony, systemd-timesyncd)")
	f.identity(ctx, s)
	seat, err := s.Seated(ctx)
	switch {
	case err != nil:
		f.add(bad, "seat", failure.Cause(err), "", "")
	case seat == nil:
		f.ok("seat", "no daemon is seated")
	default:
		f.ok("seat", "%s is seated, seen %v ago", seat.Holder, seat.Silent.Round(time.Millisecond))
	}
	if past, err := recent(ctx, s, f.now()); err == nil {
		f.past = &past
	}
}

// identity holds the journal's cluster against the one that was seen.
func (f *findings) identity(ctx context.Context, s *store.Store) {
	of, known, err := s.Identity(ctx)
	switch {
	case err != nil:
		f.add(bad, "cluster", failure.Cause(err), "", "")
	case !known:
		f.ok("cluster", "the journal is of no cluster yet; the first round makes it this one's")
	case f.seen != nil && !of.Is(f.seen.Identity()):
		f.add(bad, "cluster", fmt.Sprintf("the journal is of cluster %v, but Slurm is cluster %v", of, f.seen.Identity()), "the daemon does not start",
			"set database.schema to a schema of its own and run fairlease migrate, or correct slurm.address; if it is the same cluster under a new name or made anew: fairlease repair cluster")
	default:
		f.ok("cluster", "the journal is of cluster %v", of)
	}
}

// report writes the findings.
func (p *program) report(l view.Form, found []finding) error {
	if l.JSON {
		return p.page(l).Encode(found)
	}
	tints := map[string]string{fine: "green", warn: "yellow", bad: "red"}
	if l.Parsable {
		t := &view.Table{Head: []string{"AREA", "CHECK", "LEVEL", "FOUND", "MEANS", "DO"}}
		for _, x := range found {
			t.Add(x.Area, x.Check, x.Level, x.Found, x.Means, x.Do)
		}
		p.page(l).Table(t)
		return nil
	}
	area := ""
	counts := map[string]int{}
	for _, x := range found {
		if x.Area != area {
			area = x.Area
			p.printf("%s\n", p.paint(area, "bold"))
		}
		counts[x.Level]++
		p.printf("  %s %-21s %s\n", p.paint(fmt.Sprintf("%-4s", x.Level), tints[x.Level]), x.Check, x.Found)
		if x.Means != "" {
			p.printf("       %-21s means: %s\n", "", x.Means)
		}
		if x.Do != "" {
			p.printf("       %-21s do:    %s\n", "", x.Do)
		}
	}
	p.printf("\n%d ok, %d warnings, %d to repair\n", counts[fine], counts[warn], counts[bad])
	return nil
}
