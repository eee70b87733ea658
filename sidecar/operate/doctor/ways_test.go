package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Each setting that lets jobs hold GPUs without a lease is a finding.
func TestWaysOut(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*config.Config)
		conf map[string]string
		want []string
	}{
		{name: "none", want: []string{"ways out ok: none is left open in fairlease.yaml and slurm.conf"}},
		{name: "two words", set: func(c *config.Config) { c.OptOut.Session, c.OptOut.Het = loop.LeaveAlone, loop.LeaveAlone },
			want: []string{"ways out warn: opt_out.session, opt_out.het: leave"}},
		{name: "jobs without GPUs", set: func(c *config.Config) { c.OptOut.NoGPUs = loop.LeaveAlone }, want: []string{"ways out warn: opt_out.no_gpus: leave"}},
		{name: "jobs without GPUs are refused", set: func(c *config.Config) { c.OptOut.NoGPUs = loop.Refuse },
			want: []string{"ways out ok: none is left open in fairlease.yaml and slurm.conf"}},
		{name: "no limit on bound GPUs", set: func(c *config.Config) { c.Bind.Quiet = 0 }, want: []string{"ways out warn: bind.quiet: 0s"}},
		{name: "a limit that is none", set: func(c *config.Config) { c.Bind.Max = 50 }, want: []string{"ways out warn: bind.max: 50"}},
		{name: "a limit that is one", set: func(c *config.Config) { c.Bind.Max = 49 }, want: []string{"ways out ok: none is left open in fairlease.yaml and slurm.conf"}},
		{name: "a long horizon", set: func(c *config.Config) { c.Bind.Horizon = 97 }, want: []string{"ways out warn: bind.horizon: 97 terms of 15m"}},
		{name: "a horizon of a day", set: func(c *config.Config) { c.Bind.Horizon = 96 }, want: []string{"ways out ok: none is left open in fairlease.yaml and slurm.conf"}},
		{name: "a long horizon by long terms", set: func(c *config.Config) { c.Lease.Term = config.Duration(7 * cluster.Hour) }, want: []string{"ways out warn: bind.horizon: 4 terms of 7h"}},
		{name: "both limits", set: func(c *config.Config) { c.Bind.Max, c.Bind.Horizon = 100, 1000 },
			want: []string{"ways out warn: bind.max: 100", "ways out warn: bind.horizon: 1000 terms of 15m"}},
		{name: "shards", conf: map[string]string{"GresTypes": "gpu,shard"}, want: []string{"ways out warn: GresTypes=gpu,shard"}},
		{name: "shards and virtual clusters", set: func(c *config.Config) { c.Cells.File = "cells.yaml" }, conf: map[string]string{"GresTypes": "gpu,shard"}, want: []string{"ways out warn: GresTypes=gpu,shard"}},
		{name: "scrontab and MPS", conf: map[string]string{"ScronParameters": "enable,explicit_scancel", "GresTypes": "gpu,mps"},
			want: []string{"ways out warn: ScronParameters=enable,explicit_scancel", "ways out warn: GresTypes=gpu,mps"}},
	} {
		cfg := config.Default()
		if c.set != nil {
			c.set(cfg)
		}
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: c.conf}}}
		if got := told(t, named(doctor.Check(cfg, seen), "ways out")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The limit on jobs that cannot be stopped is looked at in schedules, too.
func TestWaysOutOfSchedules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fairlease.yaml")
	write(t, file, `partitions: [gpu]
bind: {max: 60}
schedules:
  - {name: night, at: "0 20 * * *", for: 10h, set: {bind: {quiet: 0s}}}
  - {name: weekend, at: "0 20 * * 5", for: 60h, set: {lease: {term: 1h}}}
`)
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ways out warn: bind.max: 60", "ways out warn: bind.quiet: 0s (while schedule night is in force)"}
	if got := told(t, named(doctor.Check(cfg, &doctor.Seen{}), "ways out")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Users may open the gates of sessions unless the submit plugin keeps them from it, or sessions have no gates.
func TestGatesOfSessions(t *testing.T) {
	for _, c := range []struct {
		text  string
		word  loop.OptOut
		warns bool
	}{
		{"protect_gate=no\n", loop.Charge, true},
		{"", loop.Charge, false},
		{"protect_gate=yes\n", loop.Charge, false},
		{"protect_gate=no\n", loop.Refuse, false},
		{"protect_gate=no\n", loop.LeaveAlone, false},
	} {
		cfg := config.Default()
		cfg.OptOut.Session = c.word
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: map[string]string{"JobSubmitPlugins": "fairlease"}},
			Sighting: &cluster.Observation{Now: 1}, Plugin: doctor.PluginFile{Path: "fairlease-plugin.conf", Text: c.text}}}
		if found := told(t, named(doctor.Check(cfg, seen), "gates of sessions")); (found != nil) != c.warns {
			t.Errorf("%q, sessions %q: %q, want a warning: %v", c.text, c.word, found, c.warns)
		}
	}
}

// Users may not open gates, so the plugin must know fairlease's own user: as root, SlurmUser, owner of the heartbeats, or operator.
func TestOperatorOpensGates(t *testing.T) {
	beats := t.TempDir()
	if err := os.Chown(beats, 1, -1); err != nil { // 1 is daemon
		t.Skip("needs root: ", err)
	}
	for _, c := range []struct {
		name, operator, beats, text string
		fails                       bool
	}{
		{"root", "root", beats, "", false},
		{"SlurmUser", "slurm", beats, "", false},
		{"the daemon's user", "daemon", beats, "", false},
		{"an operator", "bin", beats, "operator_uids=7,2\n", false},
		{"another user", "bin", beats, "", true},
		{"another user, whom nothing keeps from it", "bin", beats, "protect_gate=no\n", false},
		{"the heartbeats are elsewhere", "bin", filepath.Join(beats, "none"), "", false},
		{"nobody known", "", beats, "", false},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "fairlease-plugin.conf"), "partitions=gpu\n"+c.text)
		cfg := config.Default()
		cfg.Files.Heartbeats = c.beats
		conf := map[string]string{slurm.ConfJobSubmit: "fairlease", slurm.ConfFile: filepath.Join(dir, "slurm.conf"), slurm.ConfUser: "slurm(64030)"}
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: conf, Operator: c.operator}, Plugin: doctor.ReadPlugin(cfg, conf), Sighting: &cluster.Observation{}}}
		want := ""
		if c.fails {
			want = "plugin operator_uids fail"
		}
		if got := levels(t, named(doctor.Check(cfg, seen), "plugin operator_uids")); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}
