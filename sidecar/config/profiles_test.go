package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// The example in etc means what its comments say.
func TestProfiles(t *testing.T) {
	f, err := config.LoadProfiles("../../etc/profiles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := []profile.Rule{{Name: "resnet50*", Kind: "resnet50"}, {Tenant: "nlp", User: "*", Name: "*bert*", Kind: "bert"}}
	if d := cmp.Diff(rules, f.Rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
	entry := func(kind, with cluster.Kind, model string, gang int, rate float64) cluster.Profile {
		return cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Rate: rate, Source: cluster.Declared, Basis: profile.File}
	}
	want := []cluster.Profile{entry("nlp/bert", "", "k80", 8, 0), entry("nlp/bert", "", "v100", 8, 31),
		{Kind: "nlp/bert", With: cluster.AcrossSwitches, Model: "v100", Gang: 8, Rate: 0.8, Relative: true, Source: cluster.Declared, Basis: profile.File},
		{Kind: "nlp/bert", With: cluster.Scattered, Model: "v100", Gang: 8, Rate: 0.4, Relative: true, Source: cluster.Declared, Basis: profile.File},
		entry("resnet50", "", "k80", 1, 2.1), entry("resnet50", "", "v100", 1, 12.5), entry("resnet50", "lstm", "v100", 1, 9.8)}
	if d := cmp.Diff(want, f.Profiles); d != "" {
		t.Errorf("profiles (-want +got):\n%s", d)
	}
	if f, err := config.ParseProfiles("p.yaml", nil); err != nil || len(f.Profiles) > 0 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
	if _, err := config.LoadProfiles("none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// All problems are reported at once, by line.
func TestProfilesThatCannotBe(t *testing.T) {
	for _, x := range []struct {
		text string
		want []string
	}{
		{`kinds:
  - {kind: a b, name: "x*"}
  - {kind: c}
  - {name: "x*"}
  - {kind: d, nam: x}
profiles:
  - kind: r
    gang: -1
    rates: {v100: 1}
  - kind: r
    rates:
      k80: .nan
      p100: -2
      v100: fast
  - kind: r
    rates:
      k80: .nan
      p100: -2
      v100: 1e10
  - kind: r
    gang: 1.5
    rates: {v100: 1}
  - kind: r
  - rates: {v100: 1}
  - {kind: r, rates: {v100: 1}}
  - {kind: r, gang: 1, rates: {v100: 2}}
  - {kind: r, beside: "x y", rates: {v100: 2}}
  - {kind: g, scattered: {v100: 0.5}}
  - {kind: g, gang: 2, scattered: {v100: 1.5, k80: 0}}
  - {kind: g, gang: 2, beside: r, scattered: {v100: 0.5}}
  - {kind: g, gang: 2, scattered: {v100: 0.5}}
  - {kind: g, gang: 2, rates: {v100: 8}, scattered: {v100: 0.5}}
  - {kind: g, across: {v100: 0.5}}
  - {kind: g, gang: 2, across: {v100: 0.5, k80: -1}}
  - {kind: g, gang: 2, across: {v100: 0.4}}
  - {kind: g, gang: 4, beside: r, across: {v100: 0.5}}
`, []string{
			`p.yaml:2: kinds[0].kind: "a b" is no kind`,
			`p.yaml:3: kinds[1]: fits every job`,
			`p.yaml:4: kinds[2].kind: "" is no kind`,
			`p.yaml:5: kinds[3].nam: unknown key; did you mean kinds[3].name?`,
			`p.yaml:9: profiles[0].rates.v100: kind r on v100: a gang of -1 GPUs cannot be`,
			`p.yaml:14: profiles[1].rates.v100: "fast" cannot be used here; write a number`,
			`p.yaml:17: profiles[2].rates.k80: NaN steps a second cannot be`,
			`p.yaml:18: profiles[2].rates.p100: -2 steps a second cannot be`,
			`p.yaml:19: profiles[2].rates.v100: 1e+10 steps a second cannot be`,
			`p.yaml:21: profiles[3].gang: "1.5" cannot be used here; write a whole number`,
			`p.yaml:23: profiles[4].rates: names no GPU model`,
			`p.yaml:24: profiles[5].kind: "" is no kind`,
			`p.yaml:26: profiles[7].rates.v100: stands here for the second time, first in line 25; keep one`,
			`p.yaml:27: profiles[8].beside: "x y" is no kind`,
			`p.yaml:28: profiles[9].scattered.v100: is for a job of one GPU, which is on one node; write gang: 8`,
			`p.yaml:29: profiles[10].scattered.k80: must be above 0 and at most 1`,
			`p.yaml:29: profiles[10].scattered.v100: must be above 0 and at most 1`,
			`p.yaml:30: profiles[11].scattered.v100: stands in an entry with beside`,
			`p.yaml:32: profiles[13].scattered.v100: stands here for the second time, first in line 31; keep one`,
			`p.yaml:33: profiles[14].across.v100: is for a job of one GPU, which is on one node; write gang: 8`,
			`p.yaml:34: profiles[15].across.k80: must be above 0 and at most 1, the part of its rate that a gang keeps under more switches than its nodes need, got -1`,
			`p.yaml:35: profiles[16].across.v100: stands here for the second time, first in line 34; keep one`,
			`p.yaml:36: profiles[17].across.v100: stands in an entry with beside`,
		}},
		{"profiles:\n  - {kind: nlp/bert, rates: {v100: 1}}", []string{`p.yaml:2: profiles[0].kind: "nlp/bert" is no kind: write up to 64 letters, digits and ._-+#@: for one, and tenant: nlp beside it`}},
		{"- a", []string{"p.yaml:1: keys are expected here"}},
		{"kinds: {a: 1}", []string{"p.yaml:1: kinds: a list is expected here"}},
		{"\tx", []string{"p.yaml:1: "}},
	} {
		_, err := config.ParseProfiles("p.yaml", []byte(x.text))
		var problems config.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%q: %v, want problems", x.text, err)
			continue
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if !slices.EqualFunc(got, x.want, strings.HasPrefix) {
			t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(x.want, "\n"))
		}
	}
}

// The file counts with every preset: gangs wait for nodes together by it, and its rules name the types of jobs that share GPUs.
func TestProfilesCountWithEveryPreset(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "profiles.yaml"), []byte("profiles: [{kind: lm, gang: 8, scattered: {v100: 0.4}}]\nkinds: [{name: train, kind: lm}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, preset := range []string{"astraea", "drf", "gavel:las"} {
		path := filepath.Join(dir, "fairlease.yaml")
		if err := os.WriteFile(path, []byte("preset: "+preset+"\nmodels: {profiles: profiles.yaml, speedups: {completions: false}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, s := c.Rules(), c.Settings(); len(r.Profiles) != 1 || len(s.Kinds) != 1 || !s.NoCompletions {
			t.Errorf("%s: profiles %+v, rules %+v, run times count: %v", preset, r.Profiles, s.Kinds, !s.NoCompletions)
		}
	}
}

// Any file is refused, or accepted in full.
func FuzzParseProfiles(f *testing.F) {
	text, err := os.ReadFile("../../etc/profiles.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("profiles: [{kind: a, rates: {v: 1e-5}}, {kind: a, rates: {v: .inf}}]")
	f.Add("profiles: &x [{kind: a, tenant: a/b, beside: c, rates: {'': 1}}]\nkinds: *x")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.ParseProfiles("p.yaml", []byte(text))
		if err != nil {
			return
		}
		b := profile.New(profile.Default(), nil, nil)
		for _, p := range file.Profiles {
			if err := b.Declare(p); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if n := len(b.Entries()); n > len(file.Profiles) {
			t.Errorf("%d entries of %d profiles", n, len(file.Profiles))
		}
	})
}
