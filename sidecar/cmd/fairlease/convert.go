package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

const aboutConvert = `Write a trace of any format that fairlease simulate reads as plain CSV: one job per line, requeued
attempts joined, times in seconds since the first submission. With --anonymous the output names no
job, tenant or user. Rows that were left out are reported on standard error.`

func convertCommand(p *program) *cobra.Command {
	var w input.World
	var anonymous, brief bool
	c := &cobra.Command{Use: "convert TRACE [--anonymous] [--brief]", Short: "write a trace of jobs as plain CSV", Long: aboutConvert,
		Example: "  fairlease convert history.txt > history.csv\n  fairlease convert history.json --anonymous > to-be-published.csv", Args: exactly("the name of one trace"),
		RunE: func(_ *cobra.Command, args []string) error {
			load, err := w.Read(args[0])
			if err != nil {
				return err
			}
			w.LeftOut(p.err)
			jobs := load.Jobs
			if anonymous {
				jobs = trace.Anonymous(jobs)
			}
			write := trace.WriteFull
			if brief {
				write = trace.Write
			}
			if err := write(p.out, jobs); err != nil {
				return &failure.Error{Code: failure.No, What: "the output cannot be written", Err: err}
			}
			return nil
		}}
	simulate.TraceFlags(c, &w)
	f := c.Flags()
	f.BoolVar(&anonymous, "anonymous", false, "replace jobs, tenants, users and job names by numbers")
	f.BoolVar(&brief, "brief", false, "write only the seven columns that every such file has")
	return c
}
