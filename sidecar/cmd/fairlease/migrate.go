package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/config"
)

func (p *program) migrate() *cobra.Command {
	return &cobra.Command{Use: "migrate", Short: "make or upgrade the tables in PostgreSQL", Args: exactly(),
		Long: "Bring the journal's schema up to date and make its views anew. Run it after every upgrade, before\nthe daemon is started again. Running it twice does no harm.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if cfg.Database.URL == "" {
				_, err := openStore(c.Context(), cfg)
				return err
			}
			from, to, err := migrate.Up(c.Context(), cfg.Database.URL, func(step string) { p.printf("%s\n", step) })
			if err != nil {
				return &failure{code: exitNo, what: "the schema at " + config.Mask(cfg.Database.URL) + " was not brought up to date", err: err,
					next: "check that PostgreSQL runs there, and that this user may create tables in that database"}
			}
			if from == to {
				p.printf("the schema was up to date: version %d\n", to)
				return nil
			}
			p.printf("the schema is version %d now, it was %d\n", to, from)
			return nil
		}}
}
