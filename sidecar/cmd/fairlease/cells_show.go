package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func cellsShowCommand(p *program) *cobra.Command {
	var vc, server string
	var all, asJSON bool
	c := &cobra.Command{Use: "show", Short: "show the cluster and every virtual cluster as trees of cells", Args: exactly(),
		Long: `Show the cells as of the newest round: the cluster from the largest cells down, then the promise to
each virtual cluster (VC) at each level:

  reserved   promised cells of that level; pinned cells are fixed ones
  bound      cells with jobs of the VC
  lost       unavailable until hardware is repaired
  free       available at any time; lent cells, by recalling the opportunistic leases in them

A guaranteed lease holds cells of the job's own tenant. An opportunistic lease holds GPUs that
are lent, and is recalled at once when their owner needs them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				f, err := s.Cells(c.Context())
				if err != nil {
					return err
				}
				if f == nil {
					return &failure.Error{Code: failure.No, What: "there are no cells in the newest round", Next: "describe them in cells.file (fairlease cells --help), and check with fairlease status that rounds are made"}
				}
				if vc != "" && !f.Only(vc) {
					return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("there is no virtual cluster %q", vc), Next: "fairlease cells show lists all"}
				}
				if asJSON {
					return p.page(view.Form{}).Encode(f)
				}
				f.Write(p.page(view.Form{}), all)
				return nil
			})
		}}
	c.Flags().StringVar(&vc, "vc", "", "only the virtual cluster `NAME`")
	c.Flags().BoolVarP(&all, "all", "a", false, "do not summarise a large cluster")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, with all numbers, not summarised")
	serverFlag(c, &server)
	return c
}
