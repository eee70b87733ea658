package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/rehearsal"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

func wrapperCommand() *cobra.Command {
	return &cobra.Command{Use: "run [--signal NAME] [--notice NAME] [--hold SECONDS] -- COMMAND [ARGUMENT ...]",
		Short: "run a training command in a job, and save in time when its lease ends", Long: operate.WrapperAbout, DisableFlagParsing: true,
		Example: "  srun fairlease run -- torchrun --nproc-per-node 4 train.py\n  srun fairlease run --signal USR2 -- python train.py",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return c.Help()
			}
			return operate.ExecWrapper(args, os.Environ())
		}}
}

func tryRequeueCommand(p *program) *cobra.Command {
	var l view.Form
	r := rehearsal.Rehearsal{Slurm: slurm.Login{}, Now: time.Now, Sleep: rehearsal.Sleep}
	c := &cobra.Command{Use: "try-requeue SCRIPT [-- ARGUMENT ...]", Short: "try whether a batch script goes on from its save after a requeue", Long: rehearsal.About,
		Example: "  fairlease try-requeue train.sh\n  fairlease try-requeue train.sh --sbatch=--gres=gpu:1 --signal USR1 -- --batch-size 32", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &failure.Error{Code: failure.Misuse, What: "fairlease try-requeue needs a batch script", Next: "see fairlease try-requeue --help"}
			}
			r.Script, r.Args = args[0], args[1:]
			r.Tell = func(format string, args ...any) { fmt.Fprintf(p.err, format+"\n", args...) }
			return r.Run(c.Context(), p.page(l))
		}}
	timeVar(c, &r.Lease, "lease", time.Minute, "requeue the job after this `TIME`, like 90s; the notice is part of it")
	timeVar(c, &r.Notice, "notice-time", 20*time.Second, "`TIME` between the notice and the requeue")
	c.Flags().StringVar(&r.Signal, "signal", "auto", "`SIGNAL` of the notice, none, or auto: what the script asks for")
	timeVar(c, &r.Patience, "patience", 15*time.Minute, "maximum `TIME` to wait for each start")
	c.Flags().BoolVar(&r.Hurry, "now", false, "start the job at once after the requeue; Slurm delays it by two minutes")
	c.Flags().StringArrayVar(&r.Options, "sbatch", nil, "`OPTION` of sbatch; may be repeated")
	listFlags(c, &l)
	return c
}
