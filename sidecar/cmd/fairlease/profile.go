package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/view"
)

// profiling is what a profile of a kind is asked for.
type profiling struct {
	kind, script   string
	args           []string
	account        string
	partitions     []string
	models         []string
	gpus, minutes  int
	wait, idle, do bool // for the jobs' end; for idle GPUs; at all
	login          slurm.Login
}

func (p *program) profile() *cobra.Command {
	var l view.Form
	o := profiling{}
	var dry, noWait bool
	c := &cobra.Command{Use: "profile KIND [--account NAME] [--gpus N] [--minutes N] SCRIPT [-- ARGUMENT ...]",
		Short: "measure a kind of job: run a short one once per GPU model, on idle GPUs", Args: cobra.ArbitraryArgs,
		Long: `Run a batch script for a few minutes on each GPU model that has idle GPUs, and show how fast it was (OEF §4.1).
The jobs are submitted with sbatch as whoever asks, one a model, with a time limit, and with
--comment=kind=KIND,gpus=idle: what they report counts for that kind, and fairlease grants them idle GPUs only. Nobody's
lease ends for them, and they hold what they got for --minutes at most.

The script must report its progress (contrib/python has a library), twice at least, ten seconds apart; it need not
end by itself. What it reports is read in the journal, where that can be reached and a policy divides GPU models,
else in the folder FAIRLEASE_PROGRESS_FOLDER or models.progress.folder, of which the jobs are told.

  STEPS/S   of the whole gang
  SPEEDUP   over the slowest model measured
  SAMPLES   reports that it is the average of, in the journal with those of earlier jobs of the kind
  SPREAD    standard deviation of these
  NOTE      why a model was not measured

An interrupt cancels the jobs that have not started. Exit code 1 when a model was not measured.`,
		Example: "  fairlease profile bert --account nlp --gpus 4 --minutes 5 train.sh -- --batch-size 32\n  fairlease profile bert train.sh --models v100,k80 --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return &failure.Error{Code: failure.Misuse, What: "fairlease profile needs a kind and a batch script", Next: "see fairlease profile --help"}
			}
			o.kind, o.script, o.args = args[0], args[1], args[2:]
			o.wait, o.do = !noWait, !dry
			if err := o.check(); err != nil {
				return err
			}
			return p.measure(c.Context(), l, &o)
		}}
	c.Flags().StringVarP(&o.account, "account", "A", "", "Slurm `ACCOUNT` of the jobs (default: the user's)")
	c.Flags().StringSliceVar(&o.partitions, "partition", nil, "`PARTITIONS` to look for idle GPUs in (default: those of the configuration)")
	c.Flags().StringSliceVar(&o.models, "models", nil, "measure these GPU `MODELS` only")
	c.Flags().IntVar(&o.gpus, "gpus", 1, "`N` GPUs for each job")
	c.Flags().IntVar(&o.minutes, "minutes", 5, "time limit of each job, `N` minutes")
	c.Flags().BoolVar(&o.idle, "wait-for-idle", false, "also submit jobs for models without idle GPUs; they wait")
	c.Flags().BoolVar(&noWait, "no-wait", false, "submit the jobs, and do not wait for what they report")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would be submitted")
	listFlags(c, &l)
	return c
}

// check refuses what no job can be made of.
func (o *profiling) check() error {
	if err := profile.CheckName(o.kind); err != nil {
		return &failure.Error{Code: failure.Misuse, What: err.Error(), Next: "the tenant is that of --account"}
	}
	if o.gpus < 1 || o.minutes < 1 {
		return failure.Usage("--gpus=%d --minutes=%d: a job needs one at least of each", o.gpus, o.minutes)
	}
	text, err := os.ReadFile(o.script)
	if err == nil && !bytes.HasPrefix(text, []byte("#!")) {
		err = errors.New("sbatch takes no script that does not begin with #!, as in #!/bin/bash")
	}
	if at := adds.FindString(string(text)); err == nil && at != "" {
		err = fmt.Errorf("it has %q, which counts beside what is asked for here", strings.TrimSpace(at))
	}
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the batch script cannot be used", Err: err, Next: "fairlease profile KIND SCRIPT; its arguments stand behind --"}
	}
	return nil
}

// adds finds a line by which a script asks sbatch for what --gres does not replace: other GPUs, or many jobs.
var adds = regexp.MustCompile(`(?m)^#SBATCH(\s.*)?\s(--gpus|-G|--array|-a).*$`)

// measure submits the jobs, waits for them and shows what they did.
func (p *program) measure(ctx context.Context, l view.Form, o *profiling) error {
	cfg, err := p.userConfig()
	if err != nil {
		return err
	}
	if len(o.partitions) == 0 {
		o.partitions = cfg.Partitions
	}
	nodes, err := o.login.Nodes(ctx)
	if err != nil {
		return p.noLogin(ctx, err)
	}
	trials, err := o.trials(nodes)
	if err != nil {
		return err
	}
	o.login.Env = []string{"FAIRLEASE_PROGRESS_EVERY=" + strconv.Itoa(max(int(cfg.Models.Progress.Every.Span()/cluster.Second), 1))}
	hear := func(context.Context, []*trial) (cluster.Instant, error) { return p.now(), nil }
	if o.wait {
		heard, err := p.ears(ctx, cfg, o)
		if err != nil {
			return err
		}
		defer heard.close()
		hear = heard.hear
		o.login.Env = append(o.login.Env, heard.env...)
	}
	if !o.do {
		for _, x := range trials {
			if x.State == "" {
				line := slices.Concat([]string{"env"}, o.login.Env, []string{"sbatch"}, o.sbatch(x))
				p.printf("%s\n", shellWords(line...))
			} else {
				p.printf("# %s: %s\n", x.Model, x.Note)
			}
		}
		return nil
	}
	if err := p.submit(ctx, o, trials); err != nil {
		return err
	}
	if o.wait || ctx.Err() != nil {
		p.await(ctx, o, trials, hear)
	}
	return p.measured(ctx, l, o, trials)
}

// userConfig reads the configuration as far as the user may: the site's may be for
// administrators only.
func (p *program) userConfig() (*config.Config, error) {
	c, err := config.Load(p.file, p.env)
	if errors.Is(err, fs.ErrPermission) && p.file == "" {
		c, err = config.Parse("", nil, p.env)
	}
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

// noLogin says that Slurm's commands do not work here.
func (p *program) noLogin(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &failure.Error{Code: failure.Absent, What: "Slurm cannot be asked", Err: err,
		Next: "run it where sbatch and scontrol work, as on a login node; check that slurmctld runs"}
}
