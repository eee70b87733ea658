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
	script := `set -e; go build -o "$1" ./sidecar/cmd/fairlease; mkdir "$3"; git archive "$4" | tar -x -C "$3"; cd "$3"; go build -o "$2" ./sidecar/cmd/fairlease`
	if out, err := exec.Command("bash", "-o", "pipefail", "-c", script, "bash", program, older, filepath.Join(dir, "source"), olderCommit).CombinedOutput(); err != nil {
		return fmt.Errorf("building both programs: %w\n%s", err, out)
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
