// Package trial measures the throughput of a kind of job. It runs a short job of the user's on
// each GPU model with idle GPUs, and collects the jobs' reports.
//
// The jobs are submitted as the user (see Request.Sbatch), on idle GPUs only. Reports come from
// the journal, if a daemon has learnt from them, or else from the folder of reports.
package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Request says what to measure, and how.
type Request struct {
	Kind, Script  string
	Args          []string
	Account       string
	Partitions    []string // partitions to search for GPUs; empty = the configuration's
	Models        []string // models to measure; empty = all
	GPUs, Minutes int      // of each job
	Wait          bool     // for the jobs' end
	Idle          bool     // submit also if no GPUs are idle
	DryRun        bool     // submit nothing
	Login         slurm.Login
}

// Desk is the environment of a trial. Slurm's commands determine the user.
type Desk struct {
	Config   *config.Config
	Folder   string // of reports; empty = the configuration's
	Now      func() cluster.Instant
	Poll     time.Duration // between two looks at running jobs
	Errors   io.Writer
	Terminal bool // Errors is one
}

// Check refuses invalid requests.
func (o *Request) Check() error {
	if err := profile.CheckName(o.Kind); err != nil {
		return &failure.Error{Code: failure.Misuse, What: err.Error(), Next: "the tenant is that of --account"}
	}
	if o.GPUs < 1 || o.Minutes < 1 {
		return failure.Usage("--gpus=%d --minutes=%d: a job needs one at least of each", o.GPUs, o.Minutes)
	}
	text, err := os.ReadFile(o.Script)
	if err == nil && !bytes.HasPrefix(text, []byte("#!")) {
		err = errors.New("it does not begin with #!, as in #!/bin/bash, which sbatch requires")
	}
	if at := adds.FindString(string(text)); err == nil && at != "" {
		err = fmt.Errorf("it has %q, which would add to the options of the measurement; remove the line", strings.TrimSpace(at))
	}
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the batch script cannot be used", Err: err, Next: "call fairlease profile KIND SCRIPT; arguments of the script follow --"}
	}
	return nil
}

// adds matches an #SBATCH line that --gres does not override: other GPUs, or many jobs.
var adds = regexp.MustCompile(`(?m)^#SBATCH(\s.*)?\s(--gpus|-G|--array|-a).*$`)

// Measure submits the jobs, waits for them and writes the results.
func (d *Desk) Measure(ctx context.Context, o *Request, p *view.Page) error {
	if len(o.Partitions) == 0 {
		o.Partitions = d.Config.Partitions
	}
	nodes, err := o.Login.Nodes(ctx)
	if err != nil {
		return noLogin(ctx, err)
	}
	trials, err := o.Trials(nodes)
	if err != nil {
		return err
	}
	o.Login.Env = []string{"FAIRLEASE_PROGRESS_EVERY=" + strconv.Itoa(max(int(d.Config.Models.Progress.Every.Span()/cluster.Second), 1))}
	receive := func(context.Context, []*Trial) (cluster.Instant, error) { return d.Now(), nil }
	if o.Wait {
		from, err := d.source(ctx, o)
		if err != nil {
			return err
		}
		defer from.close()
		receive = from.receive
		o.Login.Env = append(o.Login.Env, from.env...)
	}
	if o.DryRun {
		for _, x := range trials {
			if x.State == "" {
				line := slices.Concat([]string{"env"}, o.Login.Env, []string{"sbatch"}, o.Sbatch(x))
				p.Printf("%s\n", view.ShellWords(line...))
			} else {
				p.Printf("# %s: %s\n", x.Model, x.Note)
			}
		}
		return nil
	}
	if err := d.submit(ctx, o, trials); err != nil {
		return err
	}
	if o.Wait || ctx.Err() != nil {
		d.await(ctx, o, trials, receive)
	}
	p.Now = d.Now()
	return write(ctx, p, o, trials)
}

// noLogin says that Slurm's commands do not work here.
func noLogin(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &failure.Error{Code: failure.Absent, What: "Slurm does not answer", Err: err,
		Next: "run it where sbatch and scontrol work, as on a login node; check that slurmctld runs"}
}
