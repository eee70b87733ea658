package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
)

// A network connection causes a warning unless the server must prove its name.
func TestWarningOfAnUnsafeDatabase(t *testing.T) {
	for url, unsafe := range map[string]string{
		"": "",
		"postgresql:///fairlease?host=/run/postgresql":                                          "",
		"host=/run/postgresql dbname=f":                                                         "",
		"postgresql://localhost/f":                                                              "",
		"postgresql://127.0.0.1/f?sslmode=disable":                                              "",
		"postgresql://[::1]/f":                                                                  "",
		"postgresql://db.example.org/f":                                                         "db.example.org",
		"postgresql://u:p@db.example.org/f?sslmode=disable":                                     "db.example.org",
		"postgresql://db.example.org/f?sslmode=require":                                         "db.example.org",
		"postgresql://db.example.org/f?sslmode=verify-ca":                                       "db.example.org",
		"postgresql://db.example.org/f?sslmode=verify-full":                                     "",
		"host=10.0.0.1 sslmode=verify-full":                                                     "",
		"host=10.0.0.1":                                                                         "10.0.0.1",
		"postgresql://localhost,db2.example.org/f":                                              "db2.example.org",
		"postgresql://db1.example.org,db2.example.org/f?sslmode=verify-full":                    "",
		"postgresql://localhost.example.org/f?sslmode=prefer&host=/run/postgresql,10.1.1.1":     "10.1.1.1",
		"host=/run/postgresql,/var/run/postgresql sslmode=disable target_session_attrs=primary": "",
	} {
		c, err := config.Parse("f.yaml", fmt.Appendf(nil, "database: {url: %q}\n", url), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(c.Warnings(), "\n")
		if (got != "") != (unsafe != "") || !strings.Contains(got, unsafe) || strings.Contains(got, "u:p") {
			t.Errorf("%s: %q, want a warning of %q", url, got, unsafe)
		}
	}
	c, err := config.Parse("f.yaml", nil, []string{"PGHOST=db.example.org", "PGSSLMODE=require"})
	if err != nil || len(c.Warnings()) != 1 {
		t.Errorf("PGHOST: %v (%v)", c.Warnings(), err)
	}
}

// A list of weights that names one tenant gives all others nothing, and is warned of with what to write; so are other warnings of a
// schedule that the file alone does not earn.
func TestWarningOfOneWeight(t *testing.T) {
	const alone = "names nlp alone: all other tenants have weight 0, and get idle GPUs only; name all tenants, or write weights: {} and give nlp more " +
		"beside the others by Slurm's shares (sacctmgr modify account nlp set fairshare=N; to try it: fairlease whatif --weights nlp=x3)"
	schedule := func(set string) string {
		return "\nschedules: [{name: night, at: 0 20 * * *, for: 10h, set: " + set + "}]"
	}
	for text, want := range map[string]string{"{}": "", "{nlp: 3, vision: 0}": "", "{nlp: 3}": "tenants.weights " + alone,
		"{}}" + schedule("{tenants: {weights: {nlp: 3}}}") + "\nusers: job\njobs: {": "while schedule night is in force: tenants.weights " + alone,
		"{}}" + schedule("{tenants: {weights: {nlp: 3, vision: 1}}}") + "\njobs: {":  "",
		"{nlp: 3}}" + schedule("{users: equal}") + "\njobs: {":                       "tenants.weights " + alone,
		"{}}" + schedule("{lease: {term: 15m5s}}") + "\njobs: {":                     "while schedule night is in force: lease.term (15m5s) is not a multiple",
	} {
		c, err := config.Parse("f.yaml", []byte("tenants: {weights: "+text+"}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Warnings(), "\n"); (got != "") != (want != "") || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Each file with too many permissions is found, and its finding says what that means and how to
// repair it.
func TestLooseFiles(t *testing.T) {
	for _, c := range []struct {
		file string
		mode os.FileMode
		url  string
		want string // the loose files; "!" = bad
	}{
		{"", 0, "", ""},
		{"token", 0o600, "", ""}, {"token", 0o640, "", ""}, {"token", 0o644, "", "token!"}, {"token", 0o660, "", "token!"}, {"token", 0o602, "", "token!"},
		{"key", 0o640, "", ""}, {"key", 0o604, "", "TLS key!"},
		{"state.json", 0o640, "", ""}, {"state.json", 0o660, "", "state!"}, {"state.json", 0o644, "", "state"}, {"state.json", 0o646, "", "state! state"},
		{"beats", 0o755, "", ""}, {"beats", 0o775, "", ""}, {"beats", 0o777, "", "heartbeats!"},
		{"", 0o777, "", "state's folder!"},
		{"f.yaml", 0o644, "", ""}, {"f.yaml", 0o644, "postgresql://u@db/f", ""}, {"f.yaml", 0o644, "postgresql://u:secret@db/f", "password!"},
		{"f.yaml", 0o640, "postgresql://u:secret@db/f", ""}, {"f.yaml", 0o664, "", "configuration!"},
	} {
		dir := t.TempDir()
		path := func(name string) string { return filepath.Join(dir, name) }
		text := fmt.Sprintf("slurm: {address: 'https://s', user: u, token_file: %s, tls: {key_file: %s, cert_file: %s}}\nfiles: {heartbeats: %s, state: %s}\ndatabase: {url: %q}\n",
			path("token"), path("key"), path("key"), path("beats"), path("state.json"), c.url)
		for _, name := range []string{"token", "key", "state.json", "f.yaml"} {
			if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(path("beats"), 0o700); err != nil {
			t.Fatal(err)
		}
		if c.mode != 0 {
			if err := os.Chmod(path(c.file), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := config.Load(path("f.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range cfg.LooseFiles() {
			name := l.What
			if l.Bad {
				name += "!"
			}
			got = append(got, name)
			if l.Means == "" || !strings.Contains(l.Do, "chmod 0") || !strings.Contains(l.Found, dir) || strings.Contains(l.Found, "secret") {
				t.Errorf("%s %o: %+v", c.file, c.mode, l)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %o %s: %q, want %q", c.file, c.mode, c.url, got, c.want)
		}
	}
}
