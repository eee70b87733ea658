package config_test

import (
	"encoding/json"
	"fmt"
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
		{"one setting less", strings.Replace(whole, "lease: {term: 20m}\n", "", 1), cells, nil},
		{"the last setting is cut off", strings.Replace(whole, "start: {cost: 1m}\n", "", 1), cells, []string{""}},
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

// A text that was cut anywhere is told from one that was edited, whatever key the cut falls into.
func TestCut(t *testing.T) {
	const parts = "mode: act\npartitions:\n- gpu\n- a100\ninterval: 5s\n"
	const lists = "tenants: {level: 1}\npartitions:\n- gpu\n- a100\nexclude:\n  users: # of the site\n  - root\n\n  # the robot\n  - bot\n"
	const weights = "mode: act\ntenants:\n  weights:\n    nlp: 3\n    vision: 12 # of 15\n"
	const url = "interval: 5s\ndatabase:\n  url: postgres://f:geheim@db/f?sslmode=verify-full\n  keep: 30d\nlease: {term: 20m}\n"
	for _, c := range []struct{ name, was, now, lost string }{
		{"as it was", lists, lists, ""},
		{"a list", parts, "mode: act\npartitions:\n- gpu\n", "- a100"},
		{"the last entry of the last list", lists, strings.TrimSuffix(lists, "  - bot\n"), "- bot"},
		{"within a line", lists, strings.TrimSuffix(lists, "ot\n"), "- bot"},
		{"within a line of many", parts, "mode: act\npartitions:\n- gpu\n- a1", "- a100"},
		{"within a remark", "interval: 5s # each\nlease: {term: 20m}\n", "interval: 5s # ea", "lease: {term: 20m}"},
		{"within a line that is a remark", lists, strings.TrimSuffix(lists, " robot\n  - bot\n"), "- bot"},
		{"the last newline", lists, strings.TrimSuffix(lists, "\n"), ""},
		{"weights", weights, "mode: act\ntenants:\n  weights:\n    nlp: 3\n", "vision: 12"},
		{"within a weight", weights, "mode: act\ntenants:\n  weights:\n    nlp: 3\n    vision: 1", "vision: 12"},
		{"the remark at the end", weights, strings.TrimSuffix(weights, " # of 15\n"), ""},
		{"remarks and blank lines at the end", "interval: 5s\n\n# that was all\n  # really\n\n", "interval: 5s\n", ""},
		{"one of two settings", "interval: 5s\nlease: {term: 20m}\n", "interval: 5s\n", "lease: {term: 20m}"},
		{"within an address", url, "interval: 5s\ndatabase:\n  url: postgres://f:gehe", "keep: 30d"},

		{"an entry less in the middle", lists, strings.Replace(lists, "- gpu\n", "", 1), ""},
		{"a line more", lists, lists + "interval: 5s\n", ""},
		{"another last weight", weights, "mode: act\ntenants:\n  weights:\n    nlp: 3\n    vision: 1\n", ""},
		{"another end", parts, "mode: act\npartitions:\n- gpu\n- v100", ""},
		{"a setting becomes a remark", weights, "mode: act\ntenants:\n  weights:\n    nlp: 3\n#   vision: 12\n", ""},
		{"less, with a remark", weights, "# vision is gone\nmode: act\ntenants:\n  weights:\n    nlp: 3\n", ""},
	} {
		accepted := parse(t, c.was).Accept()
		now := parse(t, c.now)
		checkCut(t, c.name, accepted.Drops(now), c.lost)
		if text, err := json.Marshal(accepted); err != nil || strings.Contains(string(text), "geheim") || strings.Contains(string(text), "robot") {
			t.Errorf("%s: all users can read %s (%v)", c.name, text, err)
		}
		accepted.Text = nil // as of a version before
		checkCut(t, c.name+", where the text is not known", accepted.Drops(now), "")
	}
	for _, whole := range []string{parts, lists, weights, url} {
		is := parse(t, whole)
		accepted := is.Accept()
		for n := range whole {
			now, err := config.Parse("f.yaml", []byte(whole[:n]), nil)
			if err == nil && !cmp.Equal(accepted.Keys, now.Accept().Keys) && accepted.Drops(now) == nil {
				t.Errorf("taken over: %q", whole[:n])
			}
		}
	}
}

// checkCut checks that a text is refused as cut, before a line; "" = it is not.
func checkCut(t *testing.T, name string, drops config.Problems, lost string) {
	t.Helper()
	if n := map[bool]int{false: 1}[lost == ""]; len(drops) != n || n > 0 && !strings.Contains(drops[0].String(), fmt.Sprintf("from %q on: was it cut?", lost)) {
		t.Errorf("%s: %v, want lost: %q", name, drops, lost)
	}
}

// A promise to a virtual cluster does not go with the end of cells.file.
func TestCutCells(t *testing.T) {
	const last = "  - vc: bio\n    cells:\n      - {type: node, number: 1}\n      - {type: socket, number: 1}\n"
	whole := types + racks + vcs + last
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
	accepted := load(whole).Accept()
	for cells, lost := range map[string]string{
		whole: "",
		strings.TrimSuffix(whole, "      - {type: socket, number: 1}\n"): "- {type: socket, number: 1}",
		whole + "# remark\n": "",
		strings.TrimSuffix(whole, "- {type: socket, number: 1}\n"):                                                            "- {type: socket, number: 1}",
		strings.Replace(whole, "{type: socket, number: 1}", "{type: socket, number: 2}", 1):                                   "",
		strings.Replace(strings.TrimSuffix(whole, "      - {type: socket, number: 1}\n"), "node, number", "node,  number", 1): "",
	} {
		checkCut(t, cells, accepted.Drops(load(cells)), lost)
	}
}
