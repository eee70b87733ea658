package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) cellsShow() *cobra.Command {
	var vc string
	var all, asJSON bool
	c := &cobra.Command{Use: "show", Short: "the cluster and every virtual cluster as trees of cells: who holds what", Args: exactly(),
		Long: `Show the cells as the newest round left them: the cluster from the largest cells down, then what
each virtual cluster (VC) was promised at each level:

  reserved   cells of that level, any of them; pinned ones are certain ones, its own for ever
  bound      its jobs are in them
  lost       cannot be had until hardware is repaired
  free       may be had at any time; those lent, by recalling the opportunistic leases in them

A guaranteed lease stands in cells of the job's own tenant; an opportunistic one stands on GPUs that
are lent, and is recalled at once when their owner needs them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				snap, plan, err := s.Last(c.Context())
				if err != nil {
					return err
				}
				if snap.Cells == nil || plan.Cells == nil {
					return &failure.Error{Code: failure.No, What: "there are no cells in the newest round", Next: "see fairlease cells --help, how to describe them, and fairlease status, whether rounds are made"}
				}
				f := view.CellsOf(&snap, &plan)
				if vc != "" && !f.Only(vc) {
					return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("there is no virtual cluster %q", vc), Next: "fairlease cells show has all"}
				}
				if asJSON {
					return p.page(view.Form{}).Encode(f)
				}
				f.Write(p.page(view.Form{}), all)
				return nil
			})
		}}
	c.Flags().StringVar(&vc, "vc", "", "only the virtual cluster `NAME`")
	c.Flags().BoolVarP(&all, "all", "a", false, "unfold what is summarised for a large cluster")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, with all numbers, unfolded")
	return c
}
