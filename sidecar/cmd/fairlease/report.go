package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/monthly"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

func reportCommand(p *program) *cobra.Command {
	var o monthly.Order
	c := &cobra.Command{Use: "report [TENANT…] [--month MONTH] [--out DIR]", Short: "write a tenant's month as a page with plots, and as CSV",
		Long: `Write TENANT-MONTH.html and TENANT-MONTH.csv for each tenant, or for all: GPU hours by model and by user,
own, lent, borrowed and traded ones, rho, waits, GPUs held idle, work lost, price and budget. The page needs
no network. Months are of UTC, as the view gpu_hours. It needs a reader's rights.`,
		Example: "  fairlease report nlp --month 2026-10 --out /var/www/reports",
		RunE: func(c *cobra.Command, tenants []string) error {
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				if len(tenants) > 0 {
					o.Tenants = tenants
				}
				o.Prices, o.Now = cfg.Models.Prices, p.clock()
				is, _, err := s.Identity(c.Context())
				if err != nil {
					return err
				}
				o.Cluster = is.Name
				paths, err := o.Save(c.Context(), s)
				for _, path := range paths {
					p.page(view.Form{}).Printf("%s\n", path)
				}
				return err
			})
		}}
	c.Flags().StringVar(&o.Month, "month", "", "`MONTH`, as in 2026-10 (default: the last one that is over)")
	c.Flags().StringVar(&o.Folder, "out", ".", "`DIR` for the files; it must exist")
	return c
}
