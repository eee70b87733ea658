package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/trial"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func profileCommand(p *program) *cobra.Command {
	var l view.Form
	var o trial.Request
	var dry, noWait bool
	c := &cobra.Command{Use: "profile KIND [--account NAME] [--gpus N] [--minutes N] SCRIPT [-- ARGUMENT ...]",
		Short: "measure a job type: run a short job on each GPU model, on idle GPUs", Args: cobra.ArbitraryArgs,
		Long: `Run a batch script for a few minutes on each GPU model that has idle GPUs, and show its throughput (OEF §4.1).
The jobs are submitted with sbatch as the user who runs the command: one per model, with a time limit, and with
--comment=kind=KIND,gpus=idle. Their reports count for that job type. fairlease grants them idle GPUs only; no lease
ends for them, and they hold their GPUs for at most --minutes.

The script must report its progress (contrib/python has a library) at least twice, ten seconds apart; it need not
end by itself. The reports are read from the journal, where that can be reached and a policy divides GPU models. Otherwise
they are read from the folder FAIRLEASE_PROGRESS_FOLDER or models.progress.folder, which the jobs are told to use.

  STEPS/S   throughput of the whole gang
  SPEEDUP   over the slowest model measured
  SAMPLES   reports in the average; in the journal, with those of earlier jobs of the type
  SPREAD    standard deviation of the samples
  NOTE      why a model was not measured

An interrupt cancels the jobs that have not started. The exit code is 1 when a model was not measured.`,
		Example: "  fairlease profile bert --account nlp --gpus 4 --minutes 5 train.sh -- --batch-size 32\n  fairlease profile bert train.sh --models v100,k80 --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return &failure.Error{Code: failure.Misuse, What: "fairlease profile needs a job type (KIND) and a batch script", Next: "see fairlease profile --help"}
			}
			o.Kind, o.Script, o.Args, o.Wait, o.DryRun = args[0], args[1], args[2:], !noWait, dry
			if err := o.Check(); err != nil {
				return err
			}
			cfg, err := userConfig(p)
			if err != nil {
				return err
			}
			d := &trial.Desk{Config: cfg, Folder: p.getenv("FAIRLEASE_PROGRESS_FOLDER"), Now: p.now, Poll: p.poll, Errors: p.err, Terminal: p.terminal() != nil}
			return d.Measure(c.Context(), &o, p.page(l))
		}}
	c.Flags().StringVarP(&o.Account, "account", "A", "", "Slurm `ACCOUNT` of the jobs (default: the user's)")
	c.Flags().StringSliceVar(&o.Partitions, "partition", nil, "`PARTITIONS` with the GPUs to use (default: those of the configuration)")
	c.Flags().StringSliceVar(&o.Models, "models", nil, "measure these GPU `MODELS` only")
	c.Flags().IntVar(&o.GPUs, "gpus", 1, "`N` GPUs for each job")
	c.Flags().IntVar(&o.Minutes, "minutes", 5, "time limit of each job, `N` minutes")
	c.Flags().BoolVar(&o.Idle, "wait-for-idle", false, "also submit jobs for models without idle GPUs; they wait")
	c.Flags().BoolVar(&noWait, "no-wait", false, "submit the jobs and do not wait for their reports")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would be submitted")
	listFlags(c, &l)
	return c
}

// userConfig reads the parts of the configuration that the user may read: the site's may be for
// administrators only.
func userConfig(p *program) (*config.Config, error) {
	c, err := config.Load(p.file, p.env)
	if errors.Is(err, fs.ErrPermission) && p.file == "" {
		c, err = config.Parse("", nil, p.env)
	}
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}
