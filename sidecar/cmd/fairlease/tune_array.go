package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/view"
)

// taskResult is what a task of a job array leaves behind.
type taskResult struct {
	Task  int         `json:"task"`
	Of    int         `json:"of"`
	Trial score.Trial `json:"trial"`
}

// task runs one setting and writes what came of it.
func (p *program) task(ctx context.Context, w *world, s *sweep, setups []study.Setup) error {
	if s.into == "" {
		return failure.Usage("--task needs --into: the folder for its result")
	}
	if err := os.MkdirAll(s.into, 0o755); err != nil {
		return failure.Unwritten(s.into, err)
	}
	results, err := p.runAll(ctx, w, setups[s.task:s.task+1])
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure.Error{Code: failure.No, What: "interrupted: the task has left no result", Next: "submit it again: sbatch --array=" + fmt.Sprint(s.task) + " and the script's name"}
	}
	r := taskResult{Task: s.task, Of: len(setups), Trial: score.Trial{Window: setups[s.task].Settings.Window, Scores: results[0].Scores}}
	path := filepath.Join(s.into, fmt.Sprintf("trial-%05d.json", s.task))
	// Written whole or not at all: who collects must not read half a result.
	if err := p.files([]file{{path + ".part", func(out io.Writer) error { return json.NewEncoder(out).Encode(r) }}}, true); err != nil {
		return err
	}
	if err := os.Rename(path+".part", path); err != nil {
		return failure.Unwritten(path, err)
	}
	p.printf("written: %s\n", path)
	return nil
}

// collect shows what the tasks of a job array have left behind.
func (p *program) collect(s *sweep, l view.Form) error {
	paths, err := filepath.Glob(filepath.Join(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(s.collect), "trial-*.json")) // sorted
	if err != nil || len(paths) == 0 {
		return &failure.Error{Code: failure.No, What: s.collect + " has no result of a task (trial-*.json)", Next: "name the folder that --into named, when its tasks are done"}
	}
	var trials []score.Trial
	done, of := map[int]bool{}, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var r taskResult
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && of != 0 && r.Of != of {
			err = fmt.Errorf("it is one of %d settings, but another result is one of %d: the folder holds two sweeps", r.Of, of)
		}
		if err != nil {
			return &failure.Error{Code: failure.No, What: path + " cannot be used", Err: err, Next: "remove it and run its task again"}
		}
		of, done[r.Task] = r.Of, true
		trials = append(trials, r.Trial)
	}
	if err := p.trials(s, l, trials); err != nil {
		return err
	}
	var missing []string
	for task := range of {
		if !done[task] {
			missing = append(missing, fmt.Sprint(task))
		}
	}
	if len(missing) > 0 {
		return &failure.Error{Code: failure.No, What: fmt.Sprintf("%d of %d tasks have left no result: %s", len(missing), of, view.Some(missing, 20)),
			Next: "see their logs in " + s.collect + "; run them again with sbatch --array=" + strings.Join(missing, ",") + " and the script's name"}
	}
	return nil
}

// slurmArray writes the sweep as a job array.
func (p *program) slurmArray(c *cobra.Command, args []string, s *sweep, settings int) error {
	if s.into == "" {
		return failure.Usage("--slurm-array needs --into: a folder for the results that all nodes of the cluster see")
	}
	program, err := os.Executable()
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the program cannot find itself", Err: err}
	}
	into, err := filepath.Abs(s.into)
	if err != nil {
		return failure.Unwritten(s.into, err)
	}
	if strings.ContainsAny(into, "%\n\\") {
		return failure.Usage("--into: Slurm cannot write into a folder with %% or \\ in its name")
	}
	again := []string{program, "tune"}
	for _, a := range args {
		again = append(again, absolute(a))
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "slurm-array", "into", "task", "collect", "html", "json", "parsable", "noheader", "workers":
			return
		}
		again = append(again, "--"+f.Name+"="+value(f))
	})
	// The tasks' nodes may have another configuration, or none.
	if path := p.configFile(); path != "" && !c.Flags().Changed("config") {
		again = append(again, "--config="+absolute(path))
	}
	again = append(again, "--workers=1", "--into="+into)
	collect := []string{program, "tune", "--collect=" + into, "--html=" + filepath.Join(into, "tune.html")}
	var b bytes.Buffer
	fmt.Fprintf(&b, script, settings, view.ShellWords(into), settings-1, into, view.ShellWords(into), view.ShellWords(into), view.ShellWords(filepath.Join(into, "tune.txt")), view.ShellWords(view.ShellWords(collect...)), view.ShellWords(again...))
	if err := os.WriteFile(s.array, b.Bytes(), 0o755); err != nil {
		return failure.Unwritten(s.array, err)
	}
	p.printf("written: %s, a job array of %d tasks\nnext: bash %s\n", s.array, settings, s.array)
	return nil
}

// script is the job array. Run by hand it submits itself, and the job that collects.
const script = `#!/bin/bash
# fairlease tune as a job array: %d settings, one a task. To submit it: bash THIS_FILE [SBATCH_OPTION ...]
# When all tasks are done, a last job writes tune.txt and tune.html into %s.
#SBATCH --job-name=fairlease-tune
#SBATCH --array=0-%d
#SBATCH --ntasks=1 --cpus-per-task=1
#SBATCH --output="%s/task-%%a.log"
set -eu
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
	mkdir -p %s
	rm -f %s/trial-*.json
	id=$(sbatch "$@" --parsable "$0")
	sbatch "$@" --dependency="afterany:${id%%%%;*}" --job-name=fairlease-collect --ntasks=1 --output=%s --wrap=%s
	exit
fi
exec %s --task="$SLURM_ARRAY_TASK_ID"
`

// value gives a flag's value as it is written: a file by its whole name, for tasks run elsewhere.
func value(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	text := f.Value.String()
	word := f.Name == "weights" && (text == "equal" || text == "demand" || text == "config")
	if slices.Contains([]string{"weights", "speeds", "config"}, f.Name) && !word {
		return absolute(text)
	}
	if f.Name == "saves" {
		parts := strings.Split(text, ",")
		for i := range parts {
			if m, err := study.ParseMixture(parts[i], cluster.Hour); err == nil && m.File != "" {
				parts[i] = absolute(m.File)
			}
		}
		return strings.Join(parts, ",")
	}
	return text
}

// absolute gives the whole name of a file that is there, and any other word as it is.
func absolute(name string) string {
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return name
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
