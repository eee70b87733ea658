package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

// A mistake in a section that is not needed is told, and does not matter. One that may concern a needed section makes the file useless, unless this
// host's daemon has another one in force.
func TestReach(t *testing.T) {
	dir := t.TempDir()
	state := "files: {state: " + dir + "/state.json}\n"
	const url = "database: {url: 'postgresql://db.example.org/f', schema: s}\n"
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("cells.yaml", "vcs: nonsense\n")
	good, err := config.Load(put("good.yaml", "mode: act\ndatabase:\n  url: postgresql://old.example.org/f # a remark\n"+state), nil)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := config.Load(put("secret.yaml", "database:\n  url: postgresql://u:secret@old.example.org/f\n"+state), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, text string
		inForce    *config.Config
		want       string // database.url; "" = nothing helps
		wrong      string // "" = nothing is
	}{
		{"good", url, nil, "db", ""},
		{"another section", url + "lease: {notcie: 5m}\n", nil, "db", "lease.notcie: unknown key; did you mean lease.notice?"},
		{"an impossible value", url + "lease: {term: 1s}\nstop: {overhead: -1}\n", nil, "db", "(and 2 more)"},
		{"another file", url + "preset: hived\ncells: {file: cells.yaml}\n", nil, "db", "cells.yaml: cellHierarchy: "},
		{"no other file", url + "preset: hived\ncells: {file: none.yaml}\n", nil, "db", "cells.file: "},
		{"the needed section", "database: {url: 'postgresql://db.example.org/f', schema: Public}\n", nil, "", "database.schema: "},
		{"the needed section, by a mistake", "databse: {url: 'postgresql://db.example.org/f'}\n", nil, "", "did you mean database?"},
		{"a key without its section", "database_url: 'postgresql://db.example.org/f'\n", nil, "", "did you mean database?"},
		{"no YAML", url + "lease: [\n", nil, "", "bad.yaml:"},
		{"nothing", "# mode: act\n", nil, "", "sets nothing"},
		{"another section, beside one in force", url + "lease: {notcie: 5m}\n", good, "db", "lease.notcie"},
		{"the needed section, beside one in force", "databse: {url: 'postgresql://db.example.org/f'}\n", good, "old", "databse"},
		{"the needed section, beside one in force with a password", "databse: {url: 'postgresql://db.example.org/f'}\n", secret, "", "databse"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_ = os.Remove(filepath.Join(dir, "state.accepted.json"))
			if x.inForce != nil {
				text, err := json.Marshal(x.inForce.Accept())
				if err != nil {
					t.Fatal(err)
				}
				put("state.accepted.json", string(text))
			}
			text := x.text + state
			if x.name == "no YAML" || x.name == "nothing" {
				text = x.text
			}
			path := put("bad.yaml", text)
			c, wrong := config.Reach(path, nil, "database", "web")
			got := ""
			if c != nil {
				got = strings.TrimSuffix(strings.TrimPrefix(c.Database.URL, "postgresql://"), ".example.org/f")
			}
			if got != x.want || (wrong == nil) != (x.wrong == "") || wrong != nil && !strings.Contains(config.Fault(wrong), x.wrong) {
				t.Errorf("%s: %v", got, wrong)
			}
			if wrong != nil && strings.Contains(config.Fault(wrong), "\n") {
				t.Errorf("several lines: %q", config.Fault(wrong))
			}
			if c == nil {
				return
			}
			mode := "observe"
			switch {
			case x.inForce != nil:
				mode = "act"
			case wrong != nil:
				mode = ""
			}
			if is, _, _ := c.Stance(); is != mode {
				t.Errorf("the mode is %q, want %q", is, mode)
			}
			if _, err := config.Load(path, nil); (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
				t.Errorf("Load says %v, Reach %v", err, wrong)
			}
		})
	}
	if c, err := config.Reach(filepath.Join(dir, "none"), nil, "database"); c != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
