package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func gpusCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	c := &cobra.Command{Use: "gpus [NODE|JOB|USER]", Short: "list GPUs, who has them, what they do, and since when they idle", Args: cobra.MaximumNArgs(1),
		Long: `List GPUs as their counters showed them last (telemetry.gpu), to the minute. UTIL is the part of the time in
which a kernel ran; TENSOR the activity of the tensor cores. REMARKS names what is unusual (drift, stall, straggler,
misreport); fairlease explain JOB says more. Only fresh GPUs count; WHY says why others are
stale (their values do not change), broken (they contradict each other) or unknown.`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				list, err := s.GPUs(c.Context(), strings.Join(args, ""))
				if err != nil {
					return err
				}
				page := p.page(l)
				page.Counters = watchedBy(p, server, strings.Join(args, ""))
				return p.list(c, page, s, page.GPUTable(list), list)
			})
		}}
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}

// watchedBy says why no GPU is listed; "" = this host's configuration does not tell.
func watchedBy(p *program, server, of string) string {
	cfg, err := p.config()
	switch {
	case err != nil || server != "" || cfg.Database.URL == "" || p.configFile() == "": // the daemon's host has another file
		return ""
	case !cfg.Telemetry.GPU.On():
		return "No GPU is watched: telemetry.gpu is not set (docs/telemetry.md)."
	case of != "":
		return fmt.Sprintf("No GPU of %s has been read, as a node, a job or a user: fairlease gpus has all.", of)
	}
	return fmt.Sprintf("telemetry.gpu is set, and nothing has been read yet: the daemon that leads reads every %v. See fairlease doctor.", cfg.Telemetry.GPU.Every)
}
