package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/config"
)

// Settings in words have an entry of its own for each name of a mapping, their defaults, and no secret.
func TestWords(t *testing.T) {
	c := parse(t, "mode: act\npartitions: [gpu, a100]\nlease: {term: 30m}\ntenants: {weights: {nlp: 3, bio: 1}}\n"+
		"slurm: {scontrol: [ssh, password=geheim, scontrol]}\ndatabase: {url: 'postgres://f:geheim@db/f?sslmode=verify-full'}\n"+
		"telemetry: {gpu: {prometheus: 'https://u:geheim@prometheus.example:9090'}}\n")
	all := map[string]config.Word{}
	for _, w := range config.Words(c) {
		if _, twice := all[w.Key]; twice {
			t.Errorf("%s is there twice", w.Key)
		}
		if strings.Contains(w.Value, "geheim") {
			t.Errorf("%s tells a password: %s", w.Key, w.Value)
		}
		all[w.Key] = w
	}
	for key, want := range map[string]string{"mode": "act", "partitions": "[gpu, a100]", "lease.term": "30m", "tenants.weights.nlp": "3", "tenants.weights.bio": "1", "interval": "10s",
		"telemetry.gpu.prometheus": "https://u:xxxxx@prometheus.example:9090", "database.url": "postgres://f:xxxxx@db/f?sslmode=verify-full"} {
		if got := all[key].Value; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if d := all["lease.term"].Default; d == nil || *d != "15m" {
		t.Errorf("the default of lease.term: %v", d)
	}
	if d := all["tenants.weights.nlp"].Default; d != nil {
		t.Errorf("a weight has a default: %s", *d)
	}
	for _, v := range c.Values() {
		if text, ok := v.Value.(string); ok && strings.Contains(text, "geheim") {
			t.Errorf("config show tells a password: %s: %s", v.Key, text)
		}
	}
}

// The files beside a configuration are among its words and in its digest.
func TestWordsOfFiles(t *testing.T) {
	dir := t.TempDir()
	load := func(cells string) *config.Config {
		for name, text := range map[string]string{"f.yaml": "preset: hived\ncells: {file: cells.yaml}\n", "cells.yaml": cells} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := config.Load(filepath.Join(dir, "f.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was := load(types + racks + vcs)
	now := load(strings.Replace(types+racks+vcs, "vc: nlp", "vc: other", 1))
	values := func(c *config.Config) map[string]string {
		out := map[string]string{}
		for _, w := range config.Words(c) {
			if strings.HasPrefix(w.Key, "cells.file:") && w.Key != "cells.file: text" {
				out[strings.TrimPrefix(w.Key, "cells.file: ")] = w.Value[:strings.Index(w.Value, "cells")]
			}
		}
		return out
	}
	a, b := values(was), values(now)
	if a["nlp"] == "" || b["nlp"] != "" || b["other"] == "" || len(a) != len(b) {
		t.Error(cmp.Diff(a, b))
	}
	if config.Digest(was) == config.Digest(now) || config.Digest(was) != config.Digest(load(types+racks+vcs)) {
		t.Error("the digest does not follow the texts")
	}
	if author := config.Author(was); !strings.HasSuffix(author, ", owner of "+filepath.Join(dir, "f.yaml")) || strings.HasPrefix(author, "an unknown") {
		t.Errorf("author %q", author)
	}
}
