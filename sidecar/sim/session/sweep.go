package session

import (
	"context"
	"fmt"
	"os"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/sweep"
)

// Tuning is what fairlease tune is asked for.
type Tuning struct {
	sweep.Sweep
	HTML                 string
	Array, Into, Collect string
	Task                 int         // to run alone; negative = all
	Again                sweep.Array // of Array
}

// Tune runs the settings of a sweep over the jobs and the cluster that a world, a configuration and args give: all of
// them, one task, or none where it writes a job array or collects the results of one.
func (s *Session) Tune(ctx context.Context, w *input.World, configured func() (*config.Config, error), t *Tuning, page *view.Page) error {
	if t.Collect != "" {
		return Collect(page, t.Collect, t.HTML)
	}
	c, err := configured()
	if err != nil {
		return err
	}
	base, err := w.Setup(c, t.Again.Args, "")
	if err != nil {
		return err
	}
	setups, err := t.Setups(base)
	switch {
	case err != nil:
		return err
	case t.Task >= len(setups):
		return failure.Usage("--task %d: there are %d settings, counted from 0", t.Task, len(setups))
	case t.Array != "":
		t.Again.Into, t.Again.Tasks = t.Into, len(setups)
		return s.Array(t.Again, t.Array)
	case t.Task >= 0:
		return s.Task(ctx, setups, t.Task, t.Into)
	}
	return s.Sweep(ctx, w, setups, page, t.HTML)
}

// Sweep runs all settings and recommends one.
func (s *Session) Sweep(ctx context.Context, w *input.World, setups []experiment.Setup, page *view.Page, html string) error {
	if page.ForPeople() {
		w.Tell(s.Out, &setups[0])
		page.Printf("\n")
	}
	results, err := s.All(ctx, setups)
	if err != nil {
		return err
	}
	var trials []score.Trial
	for i := range results {
		if results[i].Scheduler != "" {
			trials = append(trials, score.Trial{Window: setups[i].Settings.Window, Scores: results[i].Scores})
		}
	}
	if err := sweep.Write(page, trials, html); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure.Error{Code: failure.No, What: "interrupted", Err: fmt.Errorf("%d of %d settings had come to their end", whole(results), len(results)),
			Next: "choose among those only, or try fewer --terms"}
	}
	return nil
}

// Task runs one setting of a sweep and writes its result into a folder.
func (s *Session) Task(ctx context.Context, setups []experiment.Setup, task int, into string) error {
	if into == "" {
		return failure.Usage("--task needs --into: the folder for its result")
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return failure.Unwritten(into, err)
	}
	results, err := s.All(ctx, setups[task:task+1])
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure.Error{Code: failure.No, What: "interrupted: the task has left no result", Next: "submit it again: sbatch --array=" + fmt.Sprint(task) + " and the script's name"}
	}
	r := sweep.Result{Task: task, Of: len(setups), Trial: score.Trial{Window: setups[task].Settings.Window, Scores: results[0].Scores}}
	path, err := r.Save(into)
	if err == nil {
		fmt.Fprintf(s.Out, "written: %s\n", path)
	}
	return err
}

// Collect writes the results of a job array's tasks in a folder, as Sweep would.
func Collect(page *view.Page, dir, html string) error {
	trials, missing, err := sweep.Collect(dir)
	if err != nil {
		return err
	}
	if err := sweep.Write(page, trials, html); err != nil {
		return err
	}
	return missing
}

// Array writes a sweep with this program as a job array into a file.
func (s *Session) Array(a sweep.Array, path string) error {
	if a.Into == "" {
		return failure.Usage("--slurm-array needs --into: a folder for the results that all nodes of the cluster see")
	}
	var err error
	if a.Program, err = os.Executable(); err != nil {
		return &failure.Error{Code: failure.No, What: "the program cannot find itself", Err: err}
	}
	text, err := a.Script()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		return failure.Unwritten(path, err)
	}
	fmt.Fprintf(s.Out, "written: %s, a job array of %d tasks\nnext: bash %s\n", path, a.Tasks, path)
	return nil
}
