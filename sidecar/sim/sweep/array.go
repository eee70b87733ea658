package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Result is the output of a task of a job array.
type Result struct {
	Task  int         `json:"task"`
	Of    int         `json:"of"` // tasks
	Trial score.Trial `json:"trial"`
}

// Save writes a result into a folder and gives the file's path. The file appears in one step,
// since the collecting job must not read half a result.
func (r *Result) Save(dir string) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("trial-%05d.json", r.Task))
	text, err := json.Marshal(r)
	if err != nil {
		return path, err
	}
	if err := os.WriteFile(path+".part", append(text, '\n'), 0o644); err != nil {
		return path, failure.Unwritten(path+".part", err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return path, failure.Unwritten(path, err)
	}
	return path, nil
}

// Collect reads the results of a job array's tasks, and names the tasks without one: missing, nil
// = none.
func Collect(dir string) (trials []score.Trial, missing, err error) {
	paths, err := filepath.Glob(filepath.Join(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(dir), "trial-*.json")) // sorted
	if err != nil || len(paths) == 0 {
		return nil, nil, &failure.Error{Code: failure.No, What: dir + " has no result of a task (trial-*.json)", Next: "name the folder that --into named, when its tasks are done"}
	}
	done, of := map[int]bool{}, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var r Result
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && of != 0 && r.Of != of {
			err = fmt.Errorf("it is one of %d settings, but another result is one of %d: the folder holds two sweeps", r.Of, of)
		}
		if err != nil {
			return nil, nil, &failure.Error{Code: failure.No, What: path + " cannot be used", Err: err, Next: "remove it and run its task again"}
		}
		of, done[r.Task] = r.Of, true
		trials = append(trials, r.Trial)
	}
	var tasks []string
	for task := range of {
		if !done[task] {
			tasks = append(tasks, fmt.Sprint(task))
		}
	}
	if len(tasks) > 0 {
		missing = &failure.Error{Code: failure.No, What: fmt.Sprintf("%d of %d tasks have left no result: %s", len(tasks), of, view.Some(tasks, 20)),
			Next: "see their logs in " + dir + "; run them again with sbatch --array=" + strings.Join(tasks, ",") + " and the script's name"}
	}
	return trials, missing, nil
}

// Array is a sweep as a job array.
type Array struct {
	Program string         // runs the sweep
	Args    []string       // of its command tune
	Flags   *pflag.FlagSet // the given ones
	Config  string         // path of the configuration, if it is not a flag; "" = none
	Into    string         // folder for results
	Tasks   int
}

// Script gives the script of the job array.
func (a *Array) Script() (string, error) {
	into, err := filepath.Abs(a.Into)
	if err != nil {
		return "", failure.Unwritten(into, err)
	}
	if strings.ContainsAny(into, "%\n\\") {
		return "", failure.Usage("--into: Slurm cannot write into a folder with %% or \\ in its name")
	}
	again := []string{a.Program, "tune"}
	for _, arg := range a.Args {
		again = append(again, absolute(arg))
	}
	a.Flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "slurm-array", "into", "task", "collect", "html", "json", "parsable", "noheader", "workers":
			return
		}
		again = append(again, "--"+f.Name+"="+value(f))
	})
	if a.Config != "" { // the tasks' nodes may have another one, or none
		again = append(again, "--config="+absolute(a.Config))
	}
	again = append(again, "--workers=1", "--into="+into)
	collect := []string{a.Program, "tune", "--collect=" + into, "--html=" + filepath.Join(into, "tune.html")}
	folder := view.ShellWords(into)
	return fmt.Sprintf(script, a.Tasks, folder, a.Tasks-1, into, folder, folder, view.ShellWords(filepath.Join(into, "tune.txt")),
		view.ShellWords(view.ShellWords(collect...)), view.ShellWords(again...)), nil
}

// script is the job array. Run by hand it submits itself, and the collecting job.
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

// value gives a flag's value; a file as an absolute path, for tasks elsewhere.
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
			if m, err := experiment.ParseMixture(parts[i], cluster.Hour); err == nil && m.File != "" {
				parts[i] = absolute(m.File)
			}
		}
		return strings.Join(parts, ",")
	}
	return text
}

// absolute gives the absolute path of an existing file, and any other word unchanged.
func absolute(name string) string {
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return name
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
