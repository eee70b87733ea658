package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Errors say what happened, why, and what to do next; the exit code gives their kind.
func TestComplaints(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	write(t, bad, "lease:\n  notcie: 5m\n")
	nowhere := []string{"FAIRLEASE_DATABASE_URL=postgresql://u:secret@/f?host=" + dir}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		err  string // pattern
	}{
		{"unknown command", nil, []string{"nonsense"}, failure.Misuse, `^fairlease: unknown command "nonsense" for "fairlease"\nnext: see fairlease --help\n$`},
		{"misspelt command", nil, []string{"shadw"}, failure.Misuse, `^fairlease: unknown command "shadw" for "fairlease"\nnext: did you mean fairlease shadow or thaw\?\n$`},
		{"misspelt command with its flags", nil, []string{"budget", "--json"}, failure.Misuse, `^fairlease: unknown command "budget" for "fairlease"\nnext: did you mean fairlease budgets\?\n$`},
		{"misspelt subcommand with its flags", nil, []string{"config", "chek", "--offline"}, failure.Misuse, `^fairlease: unknown command "chek" for "fairlease config"\nnext: did you mean fairlease config check\?\n$`},
		{"unknown flag", nil, []string{"leases", "--foo"}, failure.Misuse, `^fairlease: unknown flag: --foo\nnext: see fairlease leases --help\n$`},
		{"argument too few", nil, []string{"explain"}, failure.Misuse, `^fairlease: fairlease explain needs a job id, as in 123 or 123_4\n`},
		{"argument too many", nil, []string{"status", "x"}, failure.Misuse, `^fairlease: fairlease status takes no argument, but was given \["x"\]\n`},
		{"no job id", nil, []string{"explain", "abc"}, failure.Misuse, `^fairlease: "abc" is no job id: write 123 or, for an array task, 123_4\n$`},
		{"no round", nil, []string{"replay", "x"}, failure.Misuse, `^fairlease: "x" is not the number of a round\n`},
		{"no end", nil, []string{"freeze", "1", "--reason", "r"}, failure.Misuse, `^fairlease: --until is missing: `},
		{"past end", nil, []string{"freeze", "1", "--until", "2001-01-01", "--reason", "r"}, failure.Misuse, `^fairlease: --until 2001-01-01 is past`},
		{"no reason", nil, []string{"freeze", "1", "--until", "1h"}, failure.Misuse, `^fairlease: an override needs a reason\nnext: add --reason`},
		{"bad configuration, and no database", nil, []string{"-c", bad, "status"}, failure.Misuse, `^fairlease: the configuration file has a mistake, so it is not in force as it is: \S+bad.yaml:2: lease.notcie: unknown key; did you mean lease.notice\?\nfairlease: no database is configured\n`},
		{"bad configuration", nil, []string{"-c", bad, "round", "--dry-run"}, failure.Misuse, `^fairlease: the configuration cannot be used\n  \S+bad.yaml:2: lease.notcie: unknown key; did you mean lease.notice\?\nnext: correct the file`},
		{"no file", nil, []string{"-c", bad + "x", "status"}, failure.Misuse, `^fairlease: the configuration cannot be used\n  read the configuration: open \S+: no such file or directory\n`},
		{"no database", nil, []string{"tenants"}, failure.Misuse, `^fairlease: no database is configured\nnext: set database.url`},
		{"database away", nowhere, []string{"tenants"}, failure.Absent, `^fairlease: the journal cannot be reached at postgresql://u:xxxxx@/f\?host=\S+\n  dial unix \S+: connect: no such file or directory\nnext: start PostgreSQL at `},
		{"slurm away", nil, []string{"round", "--dry-run"}, failure.Absent, `^fairlease: Slurm does not answer at unix://\S+/none\n  .*no such file.*\nnext: check that slurmrestd`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, time.Time{}, append(c.env, "FAIRLEASE_CONFIG="+empty(t)), c.args...)
			if r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) || strings.Contains(r.err, "secret") {
				t.Errorf("exit code %d, want %d\n%s", r.code, c.code, r.err)
			}
			if r.out != "" {
				t.Errorf("wrote %q", r.out)
			}
		})
	}
}

// empty gives the path of a configuration with nothing but a Slurm that is away.
func empty(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "fairlease.yaml")
	write(t, path, fmt.Sprintf("slurm: {address: 'unix://%s/none', retries: 0}\nfiles: {heartbeats: %s, state: %s/state.json}\n", dir, dir, dir))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate(t *testing.T) {
	env := []string{"FAIRLEASE_DATABASE_URL=" + storetest.Empty(t), "FAIRLEASE_CONFIG=" + empty(t)}
	r := run(t, time.Time{}, env, "tenants")
	if r.code != failure.Misuse || !strings.Contains(r.err, "run `fairlease migrate`") {
		t.Errorf("without a schema: exit code %d\n%s", r.code, r.err)
	}
	if r := run(t, time.Time{}, env, "migrate"); r.code != 0 || !strings.Contains(r.out, "it was 0") {
		t.Errorf("migrate: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, env, "migrate"); r.code != 0 || !strings.Contains(r.out, "was up to date") {
		t.Errorf("migrate again: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, env, "tenants"); r.code != 0 {
		t.Errorf("afterwards: exit code %d\n%s", r.code, r.err)
	}
	if r := run(t, time.Time{}, env, "status"); r.code != failure.No || !strings.Contains(r.out, "no daemon leads") {
		t.Errorf("status without a daemon: exit code %d\n%s", r.code, r.out)
	}
}

// The life of an order.
func TestOrders(t *testing.T) {
	s := tell(t)
	live := func(args ...string) result { return run(t, time.Time{}, s.env, args...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"freeze", "vision", "--until", "2h", "--reason", "too greedy"}, "override 1: freeze tenant vision until"},
		{[]string{"boost", "alice", "--until", "1-00:00:00", "--reason", "deadline"}, "override 2: boost user alice until"},
		{[]string{"exempt", "2", "--until", "now+30", "--reason", "demo"}, "override 3: exempt job 2 until"},
		{[]string{"freeze", "user:stranger", "--until", "2h", "--reason", "r"}, "override 4: freeze user stranger until"},
		{[]string{"boost", "job:2", "--until", "2h", "--reason", "both"}, "override 5: boost job 2 until"},
	} {
		if r := live(c.args...); r.code != 0 || !strings.HasPrefix(r.out, c.want) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
	}
	if r := live("freeze", "stranger", "--until", "2h", "--reason", "r"); r.code != failure.Misuse || !strings.Contains(r.err, "user:stranger") {
		t.Errorf("an unknown name: exit code %d\n%s", r.code, r.err)
	}
	if r := live("freeze", "gang:x", "--until", "2h", "--reason", "r"); r.code != failure.Misuse {
		t.Errorf("an unknown scope: exit code %d\n%s", r.code, r.err)
	}
	if r := live("exempt", "3", "--until", "2h", "--reason", "r"); !strings.Contains(r.out, "job 3 runs: it is not requeued while the override is in force") {
		t.Errorf("an order for a running job: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := live("exempt", "2", "--until", "2h", "--reason", "r"); !strings.Contains(r.out, "job 2 waits: an exemption does not start it sooner; `fairlease boost 2` does") {
		t.Errorf("an order for a waiting job: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := live("override", "end", "id:7"); r.code != 0 {
		t.Errorf("end: exit code %d\n%s", r.code, r.err)
	}
	if r := live("explain", "2"); !strings.Contains(r.out, "exempt job 2 until") || !strings.Contains(r.out, "demo") || !strings.Contains(r.out, "boost job 2 until") {
		t.Errorf("explain does not show the order:\n%s", r.out)
	}
	if r := live("override", "end", "1"); r.code != 0 {
		t.Errorf("end: exit code %d\n%s", r.code, r.err)
	}
	if r := live("override", "end", "1"); r.code != failure.No || !strings.Contains(r.err, "no override in force has the number 1") {
		t.Errorf("end twice: exit code %d\n%s", r.code, r.err)
	}
	if r := live("override", "list", "-P", "-n"); strings.Count(r.out, "\n") != 5 || strings.Contains(r.out, "vision") {
		t.Errorf("the list of orders in force:\n%s", r.out)
	}
	if r := live("override", "end", "2"); r.code != failure.Misuse || !strings.Contains(r.err, "2 may be any of override 2 (boost user alice), override 3 (exempt job 2), override 5 (boost job 2)") {
		t.Errorf("end of one of three: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := live("override", "end", "job:3"); r.code != 0 || !strings.HasPrefix(r.out, "override 6 (exempt job 3) has ended") {
		t.Errorf("end by the job's id: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := live("override", "list", "-a", "-P", "-n"); strings.Count(r.out, "\n") != 7 {
		t.Errorf("the list of all orders:\n%s", r.out)
	}
	for _, c := range []struct{ job, what, next string }{
		{"4711", "there is no job 4711 to exempt\n  the journal has no job with GPUs of that id", "squeue -j 4711"},
		{"6_2", "job 6_2 of alice has ended", "fairlease exempt user:alice"},
		{"6", "job 6 of alice has ended", "fairlease exempt user:alice"},
		{"6_99", "there is no job 6_99 to exempt", "fairlease exempt 6"},
	} {
		if r := live("exempt", c.job, "--until", "2h", "--reason", "r"); r.code != failure.No || !strings.Contains(r.err, c.what) || !strings.Contains(r.err, c.next) {
			t.Errorf("an unknown job: exit code %d\n%s", r.code, r.err)
		}
	}
}

// An order names its user and, beside it, the value of SUDO_USER, which anyone can set.
func TestWhoGivesAnOrder(t *testing.T) {
	s := tell(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ sudo, want string }{{"", me.Username}, {"SUDO_USER=mallory", me.Username + ` (SUDO_USER "mallory")`}, {"SUDO_USER=a\nb", me.Username + ` (SUDO_USER "a\nb")`}} {
		if r := run(t, time.Time{}, append(s.env, c.sudo), "boost", "alice", "--until", "2h", "--reason", "r"); r.code != 0 {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		r := run(t, time.Time{}, s.env, "override", "list", "--json")
		var orders []store.Override
		if err := json.Unmarshal([]byte(r.out), &orders); err != nil || len(orders) == 0 || orders[0].By != c.want {
			t.Errorf("with %q it is by %+v (%v), want %s", c.sudo, orders, err, c.want)
		}
	}
}

// An unknown job: explain says where it looked.
func TestExplainUnknown(t *testing.T) {
	s := tell(t)
	r := s.run(t, "explain", "999")
	if r.code != failure.No || !strings.Contains(r.err, "job 999 is not in the journal") || !strings.Contains(r.err, "searched up to round") ||
		!strings.Contains(r.err, "Slurm could not be asked") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

func TestReplay(t *testing.T) {
	s := tell(t)
	dir := filepath.Join(t.TempDir(), "saved")
	if r := s.run(t, "replay", "3", "--save", dir); r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	was, err1 := os.ReadFile(filepath.Join(dir, "round-3-plan.json"))
	again, err2 := os.ReadFile(filepath.Join(dir, "round-3-replayed.json"))
	if err1 != nil || err2 != nil || string(was) != string(again) {
		t.Error("the saved plans differ:", err1, err2)
	}
	if r := s.run(t, "replay", "99999"); r.code != failure.No || !strings.Contains(r.err, "round 99999 is not in the journal") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// A snapshot that the daemon kept can be replayed.
func TestReplayOfAKeptSnapshot(t *testing.T) {
	dir := t.TempDir()
	s := simtest.Crowd(60, 4)
	path, err := daemon.KeepSnapshot(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, time.Time{}, nil, "replay", path); r.code != 0 || !strings.Contains(r.out, "the engine decides") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	s.Settings.Term, s.Round = 0, 8 // a division by zero
	if path, err = daemon.KeepSnapshot(dir, s); err != nil {
		t.Fatal(err)
	}
	if r := run(t, time.Time{}, nil, "replay", path); r.code != failure.No || !strings.Contains(r.out, "fails: runtime error: integer divide by zero") || !strings.Contains(r.out, "engine") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, nil, "replay", filepath.Join(dir, "none.gz")); r.code != failure.No || !strings.Contains(r.err, "no such file") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// Without a file there is nothing to check, and the answer is not that it is good.
func TestConfigCheckWithoutFile(t *testing.T) {
	was := config.DefaultPath
	defer func() { config.DefaultPath = was }()
	config.DefaultPath = filepath.Join(t.TempDir(), "fairlease.yaml")
	if r := run(t, time.Time{}, nil, "config", "check"); r.code != failure.Misuse || r.out != "" || !strings.Contains(r.err, "there is no file to check: "+config.DefaultPath) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, nil, "-c", empty(t), "config", "accept"); r.code != failure.OK || !strings.Contains(r.out, "nothing needs to be accepted") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
