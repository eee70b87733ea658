package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/advise"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutAdvise = `Propose the smallest virtual clusters in which each tenant's jobs would have waited no longer than
they did. The jobs come from the journal. Each tenant's jobs are replayed alone on candidate cells, first
come, first served. Small cells are preferred where they serve as well, since they cost other tenants less.

The types of cells are those of FILE, else of the configuration's file of cells. NOW is the present
promise; it does not influence the proposal. The lines below the table can be put into the file.

Gangs are placed on as few nodes as they fit on. Jobs that have not ended are left out: choose a window
(--since) much longer than the jobs.`

func cellsAdviseCommand(p *program) *cobra.Command {
	var l view.Form
	var since, until string
	c := &cobra.Command{Use: "advise [FILE]", Short: "propose the smallest virtual clusters that would have sufficed", Args: cobra.MaximumNArgs(1), Long: aboutAdvise,
		Example: "  fairlease cells advise --since 14d\n  fairlease cells advise proposal.yaml --since 2030-01-01 --until 2030-02-01",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := mended(p)
			if err != nil {
				return err
			}
			f, err := cellTypes(cfg, args)
			if err != nil {
				return err
			}
			from, to, err := window(p, since, until)
			if err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Rounds.Past(c.Context(), from, to)
				if err != nil {
					return connect.NoWindow(err, p.date)
				}
				advice, err := advise.OfJournal(f.Cells, &past)
				if err != nil {
					return err
				}
				if advice == nil {
					return &failure.Error{Code: failure.No, What: "no job with GPUs ended in that window", Next: "name a longer one: --since"}
				}
				return advice.Write(p.page(l))
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31 (default: as far back as the journal goes)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	listFlags(c, &l)
	return c
}

// cellTypes reads the cells file in the arguments, or the configured one.
func cellTypes(cfg *config.Config, args []string) (*config.CellFile, error) {
	file := cfg.CellFile()
	if len(args) > 0 {
		file = args[0]
	}
	if file == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "no file of cells is configured", Next: "make one: fairlease cells init -o FILE; then: fairlease cells advise FILE"}
	}
	f, err := config.LoadCells(file)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: file + " cannot be used", Err: err, Next: "see fairlease cells check " + file}
	}
	return f, nil
}
