package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// Commands that need the journal alone answer beside a mistake in the file, which they tell on one line. Commands that compute with the file do not.
func TestCommandsBesideAMistakeInTheFile(t *testing.T) {
	s := tell(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	good := "mode: act\nslurm: {address: 'unix://" + dir + "/none', retries: 0}\nfiles: {heartbeats: " + dir + ", state: " + dir + "/state.json}\n"
	env := []string{s.env[0], "FAIRLEASE_CONFIG=" + path}
	const says = "fairlease: the configuration file has a mistake, so it is not in force as it is: "
	try := func(text string, code int, want string, args ...string) {
		t.Helper()
		write(t, path, text)
		r := run(t, s.end, env, args...)
		if r.code != code || !strings.Contains(r.out+r.err, want) || strings.Count(r.err, says) != 1 {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, r.code, code, want, r.out, r.err)
		}
	}
	bad := good + "lease: {notcie: 5m}\nreclaim: {max: many}\n"
	for _, x := range []struct {
		code int
		want string
		args []string
	}{
		{failure.OK, "login1.example.org:4711 leads", []string{"status"}}, {failure.OK, "unknown: the configuration file", []string{"status"}},
		{failure.OK, "nlp", []string{"budgets"}}, {failure.OK, "nlp", []string{"tenants"}}, {failure.OK, "vision_user", []string{"leases"}}, {failure.OK, "Received", []string{"explain", "1"}},
		{failure.OK, "login1.example.org:4711", []string{"top"}}, {failure.OK, "schema", []string{"audit"}}, {failure.OK, "override 1: freeze", []string{"freeze", "vision", "--until", "2h", "--reason", "r"}},
		{failure.OK, "freeze", []string{"override", "list"}}, {failure.OK, "round", []string{"replay", "2"}}, {failure.OK, "up to date", []string{"migrate"}},
		{failure.OK, "f.yaml:4: lease.notcie: unknown key; did you mean lease.notice? (and 1 more)\n", []string{"objectives"}},
		{failure.No, "has not tripped", []string{"resume", "--reason", "r"}}, {failure.Absent, "Slurm does not answer", []string{"release", "--force"}},
	} {
		try(bad, x.code, x.want, x.args...)
	}
	write(t, path, bad)
	for _, args := range [][]string{{"serve"}, {"round", "--dry-run"}, {"whatif", "--weights", "nlp=2"}} {
		if r := run(t, s.end, env, args...); r.code != failure.Misuse || !strings.Contains(r.err, "lease.notcie") || strings.Contains(r.err, says) {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
	}

	// A file that is no YAML says nothing of the database: what the daemon of this host has in force does.
	broken := "mode: [act\n"
	write(t, path, broken)
	if r := run(t, s.end, env, "tenants"); r.code != failure.Misuse || !strings.Contains(r.err, "the configuration cannot be used") {
		t.Errorf("a broken file: exit code %d\n%s", r.code, r.err)
	}
	write(t, path, good)
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.WriteAccepted(c.AcceptedPath(), c.Accept()); err != nil {
		t.Fatal(err)
	}
	try(good+"database: {schema: Public}\n", failure.OK, "mode      act", "status")
	if err := os.Remove(c.AcceptedPath()); err != nil {
		t.Fatal(err)
	}
	write(t, path, good+"database: {schema: Public}\n")
	if r := run(t, time.Time{}, env, "status"); r.code != failure.Misuse || !strings.Contains(r.err, "database.schema") {
		t.Errorf("a mistake in the section of the database: exit code %d\n%s", r.code, r.err)
	}
}

// A check of the file says if it could not be compared with Slurm, and is good all the same.
func TestCheckWithoutSlurm(t *testing.T) {
	path := empty(t)
	for flag, want := range map[string]bool{"": true, "--offline": false} {
		r := run(t, time.Time{}, nil, append([]string{"config", "check", path}, strings.Fields(flag)...)...)
		if r.code != failure.OK || strings.Contains(r.err, "are not compared: ") != want {
			t.Errorf("%q: exit code %d\n%s%s", flag, r.code, r.out, r.err)
		}
	}
}
