package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
)

// A configuration in force reaches another process as it is, even if the files are other ones by now.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const rest = "preset: hived\ncells: {file: cells.yaml}\nmodels: {profiles: profiles.yaml}\n"
	path := file("f.yaml", rest+"lease: {term: 20m}\nslurm: {retries: 1}\n")
	file("cells.yaml", types+racks+vcs)
	file("profiles.yaml", "profiles: [{kind: a, tenant: nlp, rates: {v100: 2}}]\n")
	load := func() *config.Config {
		t.Helper()
		c, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	start := load()
	file("f.yaml", rest+"lease: {term: 25m}\nslurm: {retries: 2}\n")
	taken := start.Keep(load())
	for _, name := range []string{"f.yaml", "cells.yaml", "profiles.yaml"} {
		file(name, "broken: [")
	}
	for range 2 { // a second reload keeps the values of the start, too
		text, err := json.Marshal(taken.Texts())
		if err != nil {
			t.Fatal(err)
		}
		var texts config.Texts
		if err := json.Unmarshal(text, &texts); err != nil {
			t.Fatal(err)
		}
		got, err := texts.Load(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Slurm.Retries != 1 {
			t.Errorf("slurm.retries, which needs a restart: %d", got.Slurm.Retries)
		}
		for what, d := range map[string]string{
			"values": cmp.Diff(taken.Values(), got.Values()), "cells": cmp.Diff(taken.VCs().Cells, got.VCs().Cells),
			"profiles": cmp.Diff(taken.ProfileFile().Profiles, got.ProfileFile().Profiles),
		} {
			if d != "" {
				t.Errorf("%s: %s", what, d)
			}
		}
		taken = taken.Keep(taken)
	}
}

// A file that the daemon has not taken over is told by its keys, and the mode in force is the daemon's.
func TestDiffers(t *testing.T) {
	state := "files: {state: " + filepath.Join(t.TempDir(), "state.json") + "}\n"
	was := parse(t, state+"mode: act\npartitions: [a]\nlease: {term: 20m}\n")
	stance := func(c *config.Config) []string {
		mode, acting, _ := c.Stance()
		return append([]string{mode}, acting...)
	}
	if keys := was.Differs(); keys != nil {
		t.Errorf("where no daemon has taken over any: %v", keys)
	}
	if err := daemon.WriteAccepted(was.AcceptedPath(), was.Accept()); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"mode: act\npartitions: [a]\nlease: {term: 20m}\n":                   nil,
		"# remark\nmode: act\npartitions: [a]\nlease: {term: 20m}\n":         nil,
		"mode: act\npartitions: [a]\nlease: {term: 25m}\n":                   {"lease.term"},
		"partitions: [a]\nlease: {term: 20m}\npreset: gavel:las\n":           {"mode", "preset"},
		"mode: observe\npartitions: [b]\nlease: {term: 20m}\nusers: equal\n": {"mode", "partitions", "users"},
	} {
		c := parse(t, state+text)
		if d := cmp.Diff(want, c.Differs()); d != "" {
			t.Errorf("%s: %s", text, d)
		}
		if d := cmp.Diff([]string{"act", "a"}, stance(c)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	accepted := was.Accept()
	accepted.Waiting = &config.Waiting{Says: "2 leases would end"}
	if err := daemon.WriteAccepted(was.AcceptedPath(), accepted); err != nil {
		t.Fatal(err)
	}
	if _, _, waits := was.Stance(); waits != "2 leases would end" {
		t.Errorf("of a change that waits it says %q", waits)
	}
	if d := cmp.Diff([]string{"canary", "x"}, stance(parse(t, "mode: canary\ncanary: [x]\npartitions: [x]\nfiles: {state: /nowhere/state.json}\n"))); d != "" {
		t.Error(d)
	}
}
