package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

func migrateCommand(p *program) *cobra.Command {
	var roles bool
	c := &cobra.Command{Use: "migrate", Short: "make or upgrade the tables in PostgreSQL", Args: exactly(),
		Long: `Bring the journal's schema and views up to date. Run this after every upgrade, before you start the daemon
again. A daemon that still runs loses the lead. migrate changes nothing that is up to date. Views keep their grants.

With --roles, also make roles for database users. Their names begin with the schema's name:

  fairlease_reader     reads all of the journal
  fairlease_tenant     reads the rows of its own tenants
  fairlease_operator   reads all, and gives overrides: exempt, boost, freeze
  fairlease_daemon     has the rights that the daemon needs
  fairlease_views      owns the views; it cannot log in

A database user is the Slurm user of the same name, unless the table database_users names another one.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.reach("database")
			if err != nil {
				return err
			}
			if cfg.Database.URL == "" {
				_, err := connect.Journal(c.Context(), cfg)
				return err
			}
			from, to, err := migrate.UpBy(c.Context(), cfg.Database.URL, cfg.Database.Schema, operate.Author(p.getenv("SUDO_USER")), func(step string) { p.printf("%s\n", step) })
			if err != nil {
				return &failure.Error{Code: failure.No, What: "the schema at " + config.Mask(cfg.Database.URL) + " was not brought up to date", Err: err,
					Next: connect.DatabaseNext(cfg, err)}
			}
			if from == to {
				p.printf("the schema was up to date: version %d\n", to)
			} else {
				p.printf("the schema is version %d now, it was %d\n", to, from)
			}
			if !roles {
				return nil
			}
			if err := migrate.Roles(c.Context(), cfg.Database.URL, cfg.Database.Schema, func(step string) { p.printf("%s\n", step) }); err != nil {
				return &failure.Error{Code: failure.No, What: "the roles were not made; the tables are up to date", Err: err}
			}
			return nil
		}}
	c.Flags().BoolVar(&roles, "roles", false, "also make the roles for database users")
	return c
}
