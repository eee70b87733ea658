package doctor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
)

// faults gives the findings of an area that are not ok.
func faults(t *testing.T, cfg *config.Config, seen *doctor.Seen, area string) string {
	t.Helper()
	var out []string
	for _, line := range told(t, ofArea(doctor.Check(cfg, seen), area)) {
		if !strings.Contains(line, " ok: ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Every part that is installed has the version of the program, and is ready for the next start.
func TestParts(t *testing.T) {
	const release = "25.11.2"
	running := func(u doctor.Unit) doctor.Unit {
		u.Load, u.Active, u.Sub, u.File = "loaded", "active", "running", "enabled"
		return u
	}
	daemon := running(doctor.Unit{Name: "fairlease.service", Program: "/usr/bin/fairlease"})
	with := func(change func(*doctor.Unit)) func(*doctor.Seen) {
		return func(s *doctor.Seen) {
			u := daemon
			change(&u)
			s.Parts.Units = []doctor.Unit{u}
		}
	}
	library := func(x doctor.Library) func(*doctor.Seen) {
		return func(s *doctor.Seen) { s.Slurm.Plugin.Library = &x }
	}
	session := func(command, version string) func(*doctor.Seen) {
		return func(s *doctor.Seen) {
			s.Database.Sessions = []connect.Session{{Command: command, Version: version, Host: "login2"}}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*doctor.Seen)
		want   string
	}{
		{"all of one version", func(*doctor.Seen) {}, ""},
		{"no systemd, no library, no plugin", func(s *doctor.Seen) { s.Parts.Units, s.Parts.Library, s.Slurm.Plugin.Library = nil, nil, nil }, ""},
		{"an old library", func(s *doctor.Seen) { s.Parts.Library.Version = "0.1.0" }, "Python library warn: /lib/fairlease.py, of fairlease 0.1.0; this program is 0.2.0~20270131.1a"},
		{"a library from before a build", func(s *doctor.Seen) { s.Parts.Library.Version = "0.2.0~20270101.77" }, "Python library warn: "},
		{"a library by pip, of the release to come", func(s *doctor.Seen) { s.Parts.Library.Version = "0.2.0" }, ""},
		{"a broken library", func(s *doctor.Seen) {
			s.Parts.Library = &doctor.Library{File: "/usr/bin/python3", Err: errors.New("SyntaxError")}
		}, "Python library warn: /usr/bin/python3 cannot import fairlease: SyntaxError"},
		{"an old standby", session(connect.Serve, "0.1.0"), "daemon warn: 0.1.0 on login2"},
		{"a web server that was not restarted", session(connect.Web, "0.1.0"), "web server warn: 0.1.0 on login2"},
		{"a build by hand", session(connect.Serve, "unreleased"), ""},
		{"an old plugin", library(doctor.Library{File: "/p.so", Slurm: release, Version: "0.1.0"}), "submit plugin's file warn: /p.so, built for Slurm 25.11.2, of fairlease 0.1.0; "},
		{"a plugin for another Slurm", library(doctor.Library{File: "/p.so", Slurm: "24.11.5", Version: "0.2.0"}), "submit plugin's file fail: /p.so was built for Slurm 24.11.5, this is 25.11.2"},
		{"no plugin", library(doctor.Library{File: "/p.so", Err: os.ErrNotExist}), "submit plugin's file fail: "},
		{"no Lua script", library(doctor.Library{File: "/job_submit.lua", Err: os.ErrNotExist}), "submit plugin's file warn: "},
		{"no schema", func(s *doctor.Seen) { s.Database.OpenErr, s.Database.Schema = store.ErrSchema, 0 }, "database schema fail: "},
		{"a newer schema", func(s *doctor.Seen) { s.Database.OpenErr, s.Database.Schema = store.ErrSchema, 9999 }, "database schema fail: "},
		{"another user's schema", func(s *doctor.Seen) {
			s.Database.OpenErr, s.Database.Owner, s.Database.User = store.ErrSchema, "postgres", "fairlease"
		}, "database schema fail: it belongs to user postgres, and user fairlease may not use it"},
		{"a masked unit", with(func(u *doctor.Unit) { u.Load = "masked" }), "fairlease.service fail: systemd cannot load it: masked"},
		{"a unit that fails", with(func(u *doctor.Unit) { u.Active = "failed" }), "fairlease.service fail: it ended with an error"},
		{"a unit that starts again and again", with(func(u *doctor.Unit) { u.Active, u.Sub = "activating", "auto-restart" }), "fairlease.service fail: it ended with an error"},
		{"a unit that has changed", with(func(u *doctor.Unit) { u.Stale = true }), "fairlease.service warn: its files have changed since systemd read them"},
		{"not enabled", with(func(u *doctor.Unit) { u.File = "disabled" }), "fairlease.service warn: runs, but is not enabled"},
		{"not running", with(func(u *doctor.Unit) { u.Active = "inactive" }), "fairlease.service warn: is enabled, but does not run"},
		{"not in use", with(func(u *doctor.Unit) { u.Active, u.File = "inactive", "disabled" }), ""},
		{"not installed", with(func(u *doctor.Unit) { u.Load, u.Active, u.File = "not-found", "inactive", "" }), ""},
		{"another program in the unit", with(func(u *doctor.Unit) { u.Program, u.Version = "/usr/local/bin/fairlease", "0.1.0" }), "fairlease.service warn: runs /usr/local/bin/fairlease, which is version 0.1.0"},
		{"a REST daemon that is not in use", func(s *doctor.Seen) {
			s.Parts.Units = []doctor.Unit{{Name: "fairlease-slurmrestd.service", Load: "loaded", Active: "failed"}}
		}, ""},
	} {
		seen := &doctor.Seen{
			Parts:    doctor.Parts{Program: build.Info{Version: "0.2.0~20270131.1a"}, Path: "/usr/bin/fairlease", Units: []doctor.Unit{daemon}, Library: &doctor.Library{File: "/lib/fairlease.py", Version: "0.2.0~20270131.1a"}},
			Database: doctor.Database{Version: 160002, Schema: migrate.Latest(), Sessions: []connect.Session{{Command: connect.Serve, Version: "0.2.0~20270131.1a"}}},
			Slurm:    doctor.Slurm{Facts: slurm.Facts{Release: release}, Plugin: doctor.PluginFile{Library: &doctor.Library{File: "/p.so", Slurm: release, Version: "0.2.0"}}},
		}
		c.change(seen)
		cfg := config.Default()
		cfg.Database.URL = "postgres:///fairlease"
		if got := faults(t, cfg, seen, "parts"); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The units are read as systemctl writes them.
func TestUnits(t *testing.T) {
	got := doctor.ParseUnits(`Id=fairlease.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
NeedDaemonReload=yes
ExecStart={ path=/usr/bin/fairlease ; argv[]=/usr/bin/fairlease serve ; ignore_errors=no ; pid=7 ; status=0/0 }

Id=fairlease-web.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
NeedDaemonReload=no
`)
	want := []doctor.Unit{{Name: "fairlease.service", Load: "loaded", Active: "active", Sub: "running", File: "enabled", Stale: true, Program: "/usr/bin/fairlease"},
		{Name: "fairlease-web.service", Load: "not-found", Active: "inactive", Sub: "dead"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The submit plugin's file tells its release of Slurm and its version, in C and in Lua.
func TestSubmitPluginsFile(t *testing.T) {
	dir := t.TempDir()
	conf := map[string]string{slurm.ConfFile: filepath.Join(dir, "slurm.conf"), slurm.ConfPluginDir: dir}
	read := func(plugins string) *doctor.Library {
		conf[slurm.ConfJobSubmit] = plugins
		return doctor.ReadPlugin(config.Default(), conf).Library
	}
	if x := read("fairlease"); x != nil {
		t.Errorf("without slurm.conf: %+v", x)
	}
	write(t, conf[slurm.ConfFile], "")
	if x := read("fairlease"); x == nil || !errors.Is(x.Err, os.ErrNotExist) {
		t.Errorf("without a plugin: %+v", x)
	}
	so := filepath.Join(dir, "job_submit_fairlease.so")
	compile(t, so, `const unsigned int plugin_version = 0x190b02; const char fairlease_version[] = "0.1.0";`)
	if d := cmp.Diff(&doctor.Library{File: so, Slurm: "25.11.2", Version: "0.1.0"}, read("lua,fairlease")); d != "" {
		t.Error(d)
	}
	lua := filepath.Join(dir, "job_submit.lua")
	write(t, lua, "function slurm_job_submit() end\n")
	if x := read("lua"); x.Err == nil {
		t.Error("another script passes for ours")
	}
	ours, err := os.ReadFile("../../../contrib/job_submit.lua")
	if err != nil {
		t.Fatal(err)
	}
	write(t, lua, string(ours))
	if x := read("lua"); x.Err != nil || x.Version == "" {
		t.Errorf("our script: %+v", x)
	}
}

// A connection that fails, and a token that has expired, are told together with the next step.
func TestSlurmDoesNotAnswer(t *testing.T) {
	refused := &slurm.Error{Doing: "GET /x", HTTP: 401, Err: errors.New("refused")}
	for _, c := range []struct {
		err   error
		token string
		do    string
	}{
		{fmt.Errorf("x: %w", os.ErrNotExist), "", "start slurmrestd (systemctl enable --now fairlease-slurmrestd)"},
		{fmt.Errorf("x: %w", os.ErrNotExist), "/absent/token", "write a token to /absent/token"},
		{fmt.Errorf("x: %w", os.ErrPermission), "", "run this as the daemon's user"},
		{refused, "", "the slurmrestd at unix:///s is another user's"},
		{refused, "/etc/token", "check slurm.user"},
		{errors.New("x"), "", "check that slurmctld"},
	} {
		cfg := config.Default()
		cfg.Slurm.Address, cfg.Slurm.TokenFile = "unix:///s", c.token
		seen := &doctor.Seen{Slurm: doctor.Slurm{Err: c.err, Facts: slurm.Facts{Token: "it expired"}}}
		found := ofArea(doctor.Check(cfg, seen), "slurm")
		if got := strings.Join(told(t, found), "\n"); len(found) != 2 || !strings.HasPrefix(found[0].Do, c.do) || !strings.HasSuffix(got, "token warn: it expired") {
			t.Errorf("%v: %+v", c.err, found)
		}
	}
}

// A weight of an account that does not exist is warned of, and so is a tenant that gets weight 0 only because it is not named.
func TestWeightsOfNobody(t *testing.T) {
	cfg := config.Default()
	cfg.Tenants.Weights = map[string]int64{"nlp": 2, "visoin": 1}
	seen := &doctor.Seen{Slurm: doctor.Slurm{Sighting: &cluster.Observation{Now: 1, Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}}, Accounts: []cluster.Account{{Name: "nlp", Parent: "root", Shares: 1}, {Name: "root"}}}}}
	if got := told(t, named(doctor.Check(cfg, seen), "tenants.weights", "look")); len(got) != 1 || got[0] != "tenants.weights warn: Slurm has no account visoin at level 1 of its tree" {
		t.Error(got)
	}
	seen.Slurm.Sighting.Accounts = append([]cluster.Account{{Name: "bio", Parent: "root", Shares: 1}}, seen.Slurm.Sighting.Accounts...)
	for _, c := range []struct {
		weights map[string]int64
		want    []string
	}{
		{map[string]int64{"nlp": 3}, []string{"tenants.weights warn: does not name bio"}},
		{map[string]int64{"nlp": 3, "bio": 0}, nil},
		{map[string]int64{"nlp": 2, "visoin": 1}, []string{"tenants.weights warn: Slurm has no account visoin at level 1 of its tree", "tenants.weights warn: does not name bio"}},
		{nil, nil},
	} {
		cfg.Tenants.Weights = c.weights
		if got := told(t, named(doctor.Check(cfg, seen), "tenants.weights", "look")); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.weights, got, c.want)
		}
	}
	const night = "while schedule night is in force: "
	for set, want := range map[string][]string{
		"{nlp: 3}":         {"tenants.weights warn: " + night + "does not name bio"},
		"{nlp: 3, bio: 1}": nil,
		"{}":               nil,
		"{nlp: 3, boi: 1}": {"tenants.weights warn: " + night + "Slurm has no account boi at level 1 of its tree", "tenants.weights warn: " + night + "does not name bio"},
		"{nlp: 0, bio: 0}": {"tenants fail: " + night + "2, none with a weight above 0"},
	} {
		cfg, err := config.Parse("f.yaml", []byte("schedules: [{name: night, at: 0 20 * * *, for: 10h, set: {tenants: {weights: "+set+"}}}]\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(told(t, named(doctor.Check(cfg, seen), "tenants", "tenants.weights", "look")), func(s string) bool { return strings.HasPrefix(s, "tenants ok") })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", set, got, want)
		}
	}
}
