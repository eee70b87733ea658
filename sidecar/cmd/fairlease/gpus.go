package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) gpus() *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "gpus [NODE|JOB|USER]", Short: "list GPUs, who has them, what they do, and since when they idle", Args: cobra.MaximumNArgs(1),
		Long: `List GPUs as their counters showed them last (telemetry.gpu), to the minute. UTIL is the part of the time in
which a kernel ran; TENSOR the activity of the tensor cores. REMARKS names what is unusual (drift, stall, straggler,
misreport); fairlease explain JOB says more. Only fresh GPUs count; WHY says why others are
stale (their values do not change), broken (they contradict each other) or unknown.`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				list, err := s.GPUs(c.Context(), strings.Join(args, ""), 1_000_000)
				if err != nil {
					return err
				}
				page := p.page(l)
				return p.list(c, page, s, page.GPUTable(list), list)
			})
		}}
	listFlags(c, &l)
	return c
}
