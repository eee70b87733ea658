package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/advise"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

const aboutAdvise = `Propose the smallest virtual clusters in which each tenant's jobs would have waited no longer than
they did, by the journal. The jobs of each tenant are replayed alone on candidate cells, first come first
served; small cells are preferred to large ones where they serve as well, since they cost others less.

The types of cells are those of FILE, else of the configuration's file of cells; what it promises to
whom is not read. NOW is what it promises. Below the table stands what can be put into the file.

A gang is taken to be on as few nodes as it fits on. Jobs that were not over count for nothing: take a
window (--since) much longer than the jobs.`

func (p *program) cellsAdvise() *cobra.Command {
	var l view.Form
	var since, until string
	c := &cobra.Command{Use: "advise [FILE]", Short: "the smallest virtual clusters that would have served as well", Args: cobra.MaximumNArgs(1), Long: aboutAdvise,
		Example: "  fairlease cells advise --since 14d\n  fairlease cells advise proposal.yaml --since 2030-01-01 --until 2030-02-01",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.mended()
			if err != nil {
				return err
			}
			f, err := p.cellTypes(cfg, args)
			if err != nil {
				return err
			}
			from, to, err := p.window(since, until)
			if err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Past(c.Context(), from, to)
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
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31 (default: as far back as can be told)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	listFlags(c, &l)
	return c
}

// cellTypes reads the cells file in the arguments, or the configured one.
func (p *program) cellTypes(cfg *config.Config, args []string) (*config.CellFile, error) {
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
