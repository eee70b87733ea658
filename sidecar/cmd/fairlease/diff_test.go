package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/operate/outlook"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// config diff says which keys differ and what the newest round would have decided, and ends as diff does.
func TestConfigDiff(t *testing.T) {
	s := tell(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const base = "mode: act\ninterval: 10s\nlease: {term: 5m, min: 1m, notice: 30s}\njobs: {order: rho}\n"
	s.env[1] = "FAIRLEASE_CONFIG=" + file("base.yaml", base)
	for _, c := range []struct {
		name, text string
		code       int
		words      []string
	}{
		{"same", "# other words\n" + base, failure.OK, []string{"no key has another value", "would decide as it does now"}},
		{"weights", base + "tenants: {weights: {nlp: 3, vision: 1}}\n", failure.No, []string{"tenants.weights.nlp", "vision", "move the entitlement", "DUE"}},
		{"restart", base + "slurm: {timeout: 5s}\n", failure.No, []string{"slurm.timeout", "20s", "5s", "yes", "would decide as it does now"}},
		{"partition", base + "partitions: [other]\n", failure.No, []string{"partitions", "is left alone: partition gpu is not managed", "lease ends: no longer leased"}},
		{"observe", strings.Replace(base, "mode: act", "mode: observe", 1), failure.No, []string{"mode", "Mode observe: from the next round on nothing is changed in Slurm"}},
		{"bad", "mode: act\nlease: {term: soon}\n", failure.Misuse, []string{"bad.yaml", "lease.term"}},
	} {
		r := s.run(t, "config", "diff", file(c.name+".yaml", c.text))
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.name, r.code, c.code, r.out, r.err)
		}
		for _, w := range c.words {
			if !strings.Contains(r.out+r.err, w) {
				t.Errorf("%s: does not say %q\n%s%s", c.name, w, r.out, r.err)
			}
		}
	}
	if r := s.run(t, "config", "diff", filepath.Join(dir, "same.yaml")); strings.Contains(r.out, "0.0%") || strings.Contains(r.out, "Mode ") {
		t.Errorf("of no difference it says\n%s", r.out)
	}
	var o outlook.Otherwise
	r := s.run(t, "config", "diff", filepath.Join(dir, "weights.yaml"), "--json", "--for", "2h")
	if err := json.Unmarshal([]byte(r.out), &o); err != nil || r.code != failure.No || len(o.Keys) != 2 || o.Keys[0].Before != nil || *o.Keys[0].After != "3" || o.Round == nil || len(o.Round.Tenants) == 0 || len(o.Ahead) == 0 {
		t.Errorf("%v, exit code %d: %s%s", err, r.code, r.out, r.err)
	}
	if r := s.run(t, "config", "diff", filepath.Join(dir, "none.yaml")); r.code != failure.Misuse {
		t.Errorf("no file: exit code %d", r.code)
	}
	if r := s.run(t, "config", "diff", filepath.Join(dir, "same.yaml"), "--for", "-1h"); r.code != failure.Misuse {
		t.Errorf("a time that is past: exit code %d", r.code)
	}
	s.env[0] = "FAIRLEASE_DATABASE_URL=host=/nowhere dbname=none user=x"
	if r := s.run(t, "config", "diff", filepath.Join(dir, "weights.yaml")); r.code != failure.No || !strings.Contains(r.out, "tenants.weights.nlp") || !strings.Contains(r.out, "The effect is not known") {
		t.Errorf("without a journal: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
