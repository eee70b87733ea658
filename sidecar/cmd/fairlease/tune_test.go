package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// sweepArgs is a small sweep with different terms.
var sweepArgs = []string{"tune", "--generate", "gavel", "--length", "2d", "--nodes", "2x8", "--load", "2", "--terms", "5m, 15m,1h", "--intervals", "10s,5m"}

func TestTune(t *testing.T) {
	dir, env := folder(t)
	r := run(t, time.Time{}, env, append(sweepArgs, "--html", "tune.html")...)
	if r.code != failure.OK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	golden(t, "tune", r.out+r.err)
	page, err := os.ReadFile(filepath.Join(dir, "tune.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"</html>", "Chosen: <strong>term ", "sharing loss against mean JCT", "interval 300 s, window 14 d"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	r = run(t, time.Time{}, env, append(sweepArgs, "--json")...)
	var all struct {
		Rule   string
		Chosen int
		Trials []json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || len(all.Trials) != 6 || all.Chosen < 0 || all.Rule == "" {
		t.Errorf("%v: %+v", err, all)
	}
}

// A sweep as a job array: the script submits itself and the job that collects. Each task leaves
// its result, and the collected output equals that of the sweep in one run.
func TestTuneAsJobArray(t *testing.T) {
	dir, env := folder(t)
	into := filepath.Join(dir, "it's here")
	// The script contains no paths of the machine that wrote it.
	r := run(t, time.Time{}, env, append(sweepArgs, "--weights", "equal", "--saves", "./habits.csv,never:1", "--slurm-array", "sweep.sh", "--into", "it's here")...)
	if r.code != failure.OK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	script, err := os.ReadFile("sweep.sh")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := strings.TrimPrefix(env[0], "FAIRLEASE_CONFIG=")
	golden(t, "tune-array", r.out+strings.NewReplacer(self, "/usr/bin/fairlease", config, "/etc/fairlease/fairlease.yaml", filepath.Base(dir), "DIR", filepath.Dir(dir), "/shared").Replace(string(script)))

	// A fake sbatch that records its arguments, one per line.
	write(t, "sbatch", "#!/bin/sh\nfor w; do echo \"$w\"; done >> "+dir+"/told\necho '17;cluster'\n")
	if err := os.Chmod("sbatch", 0o700); err != nil {
		t.Fatal(err)
	}
	// Results of an earlier sweep in the folder are not used.
	if err := os.Mkdir(into, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(into, "trial-00003.json"), "{}")
	bash := exec.Command("bash", "sweep.sh", "-A", "my group")
	bash.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_ARRAY_TASK_ID=")
	if out, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	told, err := os.ReadFile("told")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(told), "\n")
	if len(lines) < 12 || strings.Join(lines[:7], "|") != "-A|my group|--parsable|sweep.sh|-A|my group|--dependency=afterany:17" || lines[9] != "--output="+into+"/tune.txt" {
		t.Fatalf("sbatch was told %q", lines)
	}
	// The wrapped command is one word for sbatch, and several for the shell that runs it.
	wrap, _ := strings.CutPrefix(lines[10], "--wrap=")
	words, err := exec.Command("bash", "-c", "for w in "+wrap+"; do echo \"$w\"; done").Output()
	if err != nil || string(words) != fmt.Sprintf("%s\ntune\n--collect=%s\n--html=%s/tune.html\n", self, into, into) {
		t.Errorf("%v: the job that collects runs %q", err, words)
	}

	if r := run(t, time.Time{}, env, "tune", "--collect", into); r.code != failure.No || !strings.Contains(r.err, "has no result of a task") {
		t.Errorf("nothing collected: exit code %d\n%s", r.code, r.err)
	}
	for _, task := range []int{4, 0, 5, 1, 3} {
		if r := run(t, time.Time{}, env, append(sweepArgs, "--task", fmt.Sprint(task), "--into", into)...); r.code != failure.OK {
			t.Fatalf("task %d: exit code %d\n%s", task, r.code, r.err)
		}
	}
	if r := run(t, time.Time{}, env, "tune", "--collect", into); r.code != failure.No || !strings.Contains(r.err, "1 of 6 tasks have left no result: 2\n") || !strings.Contains(r.out, "chosen") {
		t.Errorf("five collected: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, env, append(sweepArgs, "--task", "2", "--into", into)...); r.code != failure.OK {
		t.Fatal(r.err)
	}
	one, parts := run(t, time.Time{}, env, append(sweepArgs, "-P")...), run(t, time.Time{}, env, "tune", "--collect", into, "-P")
	if parts.code != failure.OK || one.out != parts.out {
		t.Errorf("exit code %d: collected\n%s%sin one go\n%s", parts.code, parts.out, parts.err, one.out)
	}
	write(t, filepath.Join(into, "trial-00003.json"), "{}")
	if r := run(t, time.Time{}, env, "tune", "--collect", into); r.code != failure.No || !strings.Contains(r.err, "trial-00003.json cannot be used") {
		t.Errorf("a result of another sweep: exit code %d\n%s", r.code, r.err)
	}
}

func TestTuneComplaints(t *testing.T) {
	_, env := folder(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		err  string // pattern
	}{
		{"no trace", []string{"--nodes", "1x8"}, failure.Misuse, `what is to be simulated\?`},
		{"terms", []string{"history.csv", "--nodes", "1x8", "--terms", "5m,soon"}, failure.Misuse, `^fairlease: --terms: "soon" is no length of time`},
		{"intervals", []string{"history.csv", "--nodes", "1x8", "--intervals", "x"}, failure.Misuse, `^fairlease: --intervals: `},
		{"windows", []string{"history.csv", "--nodes", "1x8", "--windows", "x"}, failure.Misuse, `^fairlease: --windows: `},
		{"scheduler", []string{"history.csv", "--nodes", "1x8", "--scheduler", "x"}, failure.Misuse, `there is no scheduler "x"`},
		{"task", []string{"history.csv", "--nodes", "1x8", "--task", "6", "--into", "x"}, failure.Misuse, `--task 6: there are 6 settings, counted from 0`},
		{"task without a folder", []string{"history.csv", "--nodes", "1x8", "--task", "1"}, failure.Misuse, `--task needs --into`},
		{"array without a folder", []string{"history.csv", "--nodes", "1x8", "--slurm-array", "x.sh"}, failure.Misuse, `--slurm-array needs --into`},
		{"folder of an array", []string{"history.csv", "--nodes", "1x8", "--slurm-array", "x.sh", "--into", "a%b"}, failure.Misuse, `--into: Slurm cannot write`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, time.Time{}, env, append([]string{"tune"}, c.args...)...)
			if r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) {
				t.Errorf("exit code %d, want %d\n%s\nwant %s", r.code, c.code, r.err, c.err)
			}
		})
	}
}
