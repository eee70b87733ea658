package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutAudit = `List the record of administration, newest first: changed settings, files that wait to be accepted, overrides,
terms of fairlease tune, releases, repairs and migrations.

  WHEN         when it was recorded, by PostgreSQL's clock
  ROUND        first round with the setting; - = of no round
  KEY          key of the configuration; of an override, its scope and name
  BEFORE, NOW  the values; - = there is none. Passwords are never recorded.
  BY           author: the owner of the file, or the user that the command ran as. --json also has the
               database user, which PostgreSQL records itself.

A setting is recorded in the same transaction as the first round in which it is in force. No role may
change or delete a row, and fairlease never does. Tenants cannot read the record. With audit.syslog,
the daemon sends each row to syslog too.`

// actKinds are the kinds of rows, those of programs and those of the database's triggers.
var actKinds = []string{store.OfSetting, store.OfConfiguration, "override", "term", store.OfRelease, store.OfBreaker, "repair", "schema"}

// mayBeRecorded tells whether a key is one of the configuration, a section, an entry of a key, or a kind.
func mayBeRecorded(key string) bool {
	return key == "" || slices.Contains(actKinds, key) || slices.ContainsFunc(config.Keys(), func(k string) bool {
		return k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(key, k+".") || strings.HasPrefix(key, k+":")
	})
}

func auditCommand(p *program) *cobra.Command {
	var l view.Form
	var since, until string
	var of store.Acts
	c := &cobra.Command{Use: "audit", Short: "list who changed which setting, and what administrators did", Long: aboutAudit, Args: exactly(),
		Example: "  fairlease audit --since 30d\n  fairlease audit --key mode\n  fairlease audit --key override --by alice --json",
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if of.Since, of.Until, err = window(p, since, until); err != nil {
				return err
			}
			if of.Limit < 1 {
				return failure.Usage("--limit: write a number above 0")
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				list, err := s.Administration.List(c.Context(), of)
				if err != nil {
					return err
				}
				page := p.page(l)
				table := view.ActTable(page, list)
				if !mayBeRecorded(of.Key) {
					table.None = fmt.Sprintf("Nothing is recorded of %q: it is no key of the configuration (fairlease config show lists them) and no kind (%s).", of.Key, strings.Join(actKinds, ", "))
				}
				return page.List(table, append([]store.Act{}, list...))
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "from `WHEN` on: 30d (ago), 2030-01-31 (default: all)")
	f.StringVar(&until, "until", "", "before `WHEN`")
	f.StringVar(&of.Key, "key", "", "only a `KEY`, a section of the configuration, or a kind: "+strings.Join(actKinds, ", "))
	f.StringVar(&of.By, "by", "", "only by a `USER`")
	f.IntVar(&of.Limit, "limit", 1000, "at most `N`, the newest")
	listFlags(c, &l)
	return c
}
