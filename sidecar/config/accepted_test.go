package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/config"
)

// A file that sets nothing is nobody's wish.
func TestEmptyFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	for _, text := range []string{"", "\n\n", "# mode: act\n", "---\n", "{}\n", "null\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(path, nil)
		if want := path + ": sets nothing: restore the file, or write `mode: observe` to have the defaults"; err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A file that leaves out where fairlease acts, or what it promises, is not taken over without a word; an explicit value is one.
func TestDrops(t *testing.T) {
	const whole = "mode: act\npartitions: [gpu, a100]\nexclude: {users: [root]}\nlease: {term: 20m}\npreset: drf\ncells: {file: cells.yaml}\ntenants: {weights: {a: 1, b: 2}}\nstart: {cost: 1m}\n"
	cells := types + racks + vcs
	for _, c := range []struct {
		name, text, cells string
		want              []string // keys; "" = the file as a whole
	}{
		{"as it was", whole, cells, nil},
		{"other order and remarks", "# remark\nstart: {cost: 2m}\n" + strings.Replace(whole, "start: {cost: 1m}\n", "", 1), cells, nil},
		{"a word for each", "mode: observe\npartitions: [gpu]\nexclude: {users: []}\npreset: astraea\ncells: {file: ''}\ntenants: {weights: {}}\nlease: {term: 20m}\n", cells, nil},
		{"no mode", strings.Replace(whole, "mode: act\n", "", 1), cells, []string{"mode"}},
		{"no exclusions", strings.Replace(whole, "exclude: {users: [root]}\n", "", 1), cells, []string{"exclude.users"}},
		{"no preset", strings.Replace(strings.Replace(whole, "preset: drf\n", "", 1), "cells: {file: cells.yaml}\n", "", 1), cells, []string{"preset", "cells.file"}},
		{"cut after its second line", "mode: act\npartitions: [gpu, a100]\n", cells, []string{"exclude.users", "preset", "cells.file", "tenants.weights"}},
		{"one setting less", strings.Replace(whole, "start: {cost: 1m}\n", "", 1), cells, nil},
		{"a virtual cluster less", whole, strings.Replace(cells, "vc: nlp", "vc: other", 1), []string{"vcAssignment"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			load := func(text, cells string) *config.Config {
				for name, content := range map[string]string{"f.yaml": text, "cells.yaml": cells} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cfg, err := config.Load(filepath.Join(dir, "f.yaml"), nil)
				if err != nil {
					t.Fatal(err)
				}
				return cfg
			}
			kept, err := json.Marshal(load(whole, cells).Accept())
			var was config.Accepted
			if err == nil {
				err = json.Unmarshal(kept, &was)
			}
			if err != nil {
				t.Fatal(err)
			}
			now := load(c.text, c.cells)
			var got []string
			for _, p := range was.Drops(now) {
				got = append(got, p.Key)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n%v", d, was.Drops(now))
			}
			if accepted := now.Accept(); len(accepted.Drops(now)) > 0 {
				t.Errorf("refused after it was accepted: %v", accepted.Drops(now))
			}
		})
	}
}

// A file that was cut in mid-way is told from one that was edited, also where no single setting weighs.
func TestCut(t *testing.T) {
	const whole = "interval: 5s\nlease: {min: 6m, term: 20m}\nreclaim: {max: 5}\nburst: {max: 3}\nstart: {cost: 1m}\n"
	accepted := parse(t, whole).Accept()
	for n := range strings.Count(whole, "\n") {
		text := strings.Join(strings.SplitAfter(whole, "\n")[:n+1], "")
		drops := accepted.Drops(parse(t, text))
		if cut := n < 3; cut != (len(drops) == 1) || cut && !strings.Contains(drops[0].String(), "was it cut?") {
			t.Errorf("the first %d lines: %v", n+1, drops)
		}
	}
	if drops := accepted.Drops(parse(t, "interval: 6s\nlease: {min: 6m}\n")); len(drops) > 0 {
		t.Errorf("a file with another interval counts as cut: %v", drops)
	}
}
