package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

// listFlags adds the flags that all lists have.
func listFlags(c *cobra.Command, l *view.Form) {
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON, with all numbers")
	c.Flags().BoolVarP(&l.Parsable, "parsable", "P", false, "write columns separated by |, for programs; a | in a cell is a blank")
	c.Flags().BoolVarP(&l.NoHeader, "noheader", "n", false, "write no header line")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if l.JSON && l.Parsable {
			return &failure.Error{Code: failure.Misuse, What: "--json and --parsable exclude each other", Next: "see " + c.CommandPath() + " --help"}
		}
		return nil
	}
}

// serverFlag adds the flag that names a web server in place of the journal.
func serverFlag(c *cobra.Command, server *string) {
	c.Flags().StringVar(server, "server", "", "ask fairlease web at `URL` or unix:/path (default: the journal, else web.server or web.socket)")
}

// newest tells the newest round.
type newest interface {
	Newest(context.Context) (int64, time.Time, error)
}

// page gives the output of a command.
func (p *program) page(l view.Form) *view.Page {
	return &view.Page{Out: p.out, Form: l, Colours: p.colours(), Zone: p.zone(), Now: p.now()}
}

// list writes a table of the journal's rows, or all as JSON, with the number of their round.
func (p *program) list(c *cobra.Command, page *view.Page, s newest, t *view.Table, all any) error {
	if err := page.List(t, all); err != nil {
		return err
	}
	return p.asOf(c, page, s)
}

// asOf names the round of a list.
func (p *program) asOf(c *cobra.Command, page *view.Page, s newest) error {
	if !page.ForPeople() {
		return nil
	}
	round, at, err := s.Newest(c.Context())
	if err == nil {
		page.AsOf(round, cluster.InstantOf(at))
	}
	return err
}

// remembered is a list from the newest round's memory.
type remembered[T any] struct {
	of    func(*cluster.Snapshot, *cluster.Plan) ([]T, error)
	fits  func(x *T, name string) bool // the name is the command's argument
	none  string                       // printed if no entry fits the name
	table func(*view.Page, []T) *view.Table
}

// show writes the list, or the entries that match the command's argument.
func (r remembered[T]) show(c *cobra.Command, p *program, l view.Form, args []string) error {
	return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
		snap, plan, err := s.Rounds.Last(c.Context())
		if err != nil {
			return err
		}
		if plan.Round == 0 {
			return &failure.Error{Code: failure.No, What: "no round has been recorded yet", Next: "check with fairlease status that a daemon makes rounds"}
		}
		all, err := r.of(&snap, &plan)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			all = slices.DeleteFunc(all, func(x T) bool { return !r.fits(&x, args[0]) })
			if len(all) == 0 {
				return &failure.Error{Code: failure.No, What: fmt.Sprintf(r.none, args[0]), Next: c.CommandPath() + " has all"}
			}
		}
		page := p.page(l)
		return p.list(c, page, s.Rounds, r.table(page, all), all)
	})
}

// withSite runs work with the state of the site: from the journal, or from a web server.
func (p *program) withSite(ctx context.Context, server string, work func(*ask.Site) error) error {
	c, err := p.reach(siteKeys...)
	if err != nil {
		return err
	}
	s, err := ask.Open(ctx, c, server)
	if err != nil {
		return err
	}
	defer s.Close()
	return connect.JournalFailed(work(s))
}

// withStore runs work with the journal's store and the configuration. work uses these sections of it, and database.
func (p *program) withStore(ctx context.Context, work func(*config.Config, *store.Store) error, sections ...string) error {
	return p.storeOf(ctx, func() (*config.Config, error) { return p.reach(append(sections, "database")...) }, work)
}

// computing is withStore for commands whose answer depends on what is in force.
func (p *program) computing(ctx context.Context, work func(*config.Config, *store.Store) error) error {
	return p.storeOf(ctx, p.configInForce, work)
}

func (p *program) storeOf(ctx context.Context, read func() (*config.Config, error), work func(*config.Config, *store.Store) error) error {
	c, err := read()
	if err != nil {
		return err
	}
	s, err := connect.Journal(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	return connect.JournalFailed(work(c, s))
}

// timeFlag is the value of a flag with a length of time, in the forms of the configuration.
type timeFlag struct{ to *time.Duration }

func (f timeFlag) Type() string { return "duration" }

func (f timeFlag) String() string {
	if f.to == nil {
		return ""
	}
	return config.Duration(cluster.SpanOf(*f.to)).String()
}

func (f timeFlag) Set(text string) error {
	d, err := config.ParseDuration(text)
	if err == nil {
		*f.to = d.Span().Duration()
	}
	return err
}

// timeVar adds a flag with a length of time to a command.
func timeVar(c *cobra.Command, to *time.Duration, name string, usual time.Duration, usage string) {
	*to = usual
	c.Flags().Var(timeFlag{to}, name, usage)
}
