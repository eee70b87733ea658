package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// olderCommit is the commit whose simulations are timed beside those of this one: a slow loss of speed shows in no comparison with the
// run before.
const olderCommit = "51c4ec1"

// firstWithDecisions is the first commit that has -decisions.
const firstWithDecisions = "75aa904c"

// besideOlder times two simulations by the program of this commit and of the older one, in turn, and prints the ratios of their CPU
// times. It says so where git has no older commit, or a trace is missing.
func besideOlder(traces string) error {
	if out, err := exec.Command("git", "cat-file", "-t", olderCommit+"^{commit}").CombinedOutput(); err != nil {
		fmt.Printf("the figures …_over_%s are left out: git has no such commit (%s)\n", olderCommit, strings.TrimSpace(string(out)))
		return nil
	}
	dir, err := os.MkdirTemp("", "fairlease-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, older := filepath.Join(dir, "now"), filepath.Join(dir, "older")
	if err := buildBoth("./sidecar/cmd/fairlease", program, older, olderCommit, filepath.Join(dir, "source")); err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		args []string
	}{
		{"sim_venus40", []string{filepath.Join(traces, "venus_2w.csv.gz"), "--nodes", "40x8", "--weights", filepath.Join(traces, "venus_tenants.csv")}},
		{"sim_1250x8", strings.Fields("--generate philly --nodes 1250x8 --load 0.65 --length 2d --until 2d --interval 1m --tenants 20")},
	} {
		if traces == "" && x.name == "sim_venus40" {
			fmt.Printf("%s_over_%s is left out: FAIRLEASE_TRACES names no folder with the traces\n", x.name, olderCommit)
			continue
		}
		least := [2]float64{math.Inf(1), math.Inf(1)}
		for range 3 {
			for k, path := range []string{program, older} {
				run := exec.Command(path, append([]string{"simulate"}, append(x.args, "--schedulers", "astraea", "--saves", "at-end", "--workers", "1")...)...)
				run.Env = append(os.Environ(), "GOMAXPROCS=1")
				if out, err := run.CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w\n%s", strings.Join(run.Args, " "), err, out)
				}
				least[k] = min(least[k], (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Seconds())
			}
		}
		fmt.Printf("%s, least CPU of three runs in turn: %.2f s, by commit %s %.2f s\n", x.name, least[0], olderCommit, least[1])
		figure(x.name+"_over_"+olderCommit, least[0]/least[1], "x")
	}
	return nil
}

// buildBoth builds a program of this tree and that of a commit, whose files it puts into source.
func buildBoth(pkg, now, older, commit, source string) error {
	script := `set -e; go build -o "$1" "$5"; mkdir "$3"; git archive "$4" | tar -x -C "$3"; cd "$3"; go build -o "$2" "$5"`
	if out, err := exec.Command("bash", "-o", "pipefail", "-c", script, "bash", now, older, source, commit, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("building %s of this tree and of commit %s: %w\n%s", pkg, commit, err, out)
	}
	return nil
}

// besideDecisions runs -decisions of this tree and of a commit, and prints by how many times the figures differ.
func besideDecisions(commit string) error {
	dir, err := os.MkdirTemp("", "fairlease-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	now, older, source := filepath.Join(dir, "now"), filepath.Join(dir, "older"), filepath.Join(dir, "source")
	if err := buildBoth("./tests/bench", now, older, commit, source); err != nil {
		return err
	}
	was := map[string]float64{}
	for _, program := range []string{older, now} {
		run := exec.Command(program, "-decisions")
		if program == older {
			run.Dir = source
		}
		out, err := run.Output()
		if err != nil {
			return fmt.Errorf("-decisions: %w\n%s", err, out)
		}
		lines := strings.Split(string(out), "\n")
		for _, c := range costs(lines) {
			if program == older {
				was[c.name] = c.value
			} else if old, known := was[c.name]; known {
				fmt.Printf("%s %.4g%s, by commit %s %.4g: %.2f times\n", c.name, c.value, c.unit, commit, old, c.value/old)
			}
		}
		for _, line := range lines {
			if program == now && strings.HasPrefix(line, "figure ") {
				measured = append(measured, line)
				fmt.Println(line)
			}
		}
	}
	return nil
}
