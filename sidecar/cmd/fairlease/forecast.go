package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/operate/outlook"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

const aboutForecast = `Say when a job starts and ends, or all jobs: in the median of the runs, and the interval for eight of ten.

The daemon makes forecasts every ten minutes (forecast.every). It continues the present queue in simulated time a
hundred times, each time with other run times and arrivals, drawn from the journal's last days. --now makes one at
once, which needs a reader's rights and some seconds.`

func forecastCommand(p *program) *cobra.Command {
	var l view.Form
	var all, now bool
	var workers int
	var server string
	c := &cobra.Command{Use: "forecast JOB|--all [--now]", Short: "say when jobs will start and end", Long: aboutForecast, Args: cobra.MaximumNArgs(1),
		Example: "  fairlease forecast 4711\n  fairlease forecast --all\n  fairlease forecast --all --now --json",
		RunE: func(c *cobra.Command, args []string) error {
			var id cluster.JobID
			switch {
			case len(args) == 1 && !all:
				var err error
				if id, err = cluster.ParseJobID(args[0]); err != nil {
					return &failure.Error{Code: failure.Misuse, What: err.Error()}
				}
			case len(args) == 1 || !all && !now:
				return failure.Usage("name a job, or give --all")
			}
			if now && server != "" {
				return failure.Usage("--now needs a reader's rights in the journal: leave --server out")
			}
			if !now {
				return p.withSite(c.Context(), server, func(s *ask.Site) error {
					list, err := s.Forecasts(c.Context(), id)
					if err != nil {
						return err
					}
					if err := outlook.Show(ahead(p, p.page(l)), list, id); err != nil || !p.page(l).ForPeople() {
						return err
					}
					if cells, err := s.Cells(c.Context()); err == nil && cells != nil {
						p.printf("%s\n", outlook.OfCells)
					}
					return nil
				})
			}
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				q, err := outlook.Ask(c.Context(), s, cfg, workers, pastOf(p, cfg))
				if err != nil {
					return err
				}
				f, err := outlook.Make(c.Context(), q)
				if err != nil {
					return err
				}
				if l.JSON {
					return p.page(l).Encode(f)
				}
				return outlook.Show(p.page(l), outlook.Rows(q, f), id)
			})
		}}
	c.Flags().BoolVar(&all, "all", false, "all jobs")
	c.Flags().BoolVar(&now, "now", false, "make a forecast now, and write nothing down")
	simulate.WorkersFlag(c, &workers)
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}

// ahead tells a page how often forecasts are made, by the configuration that users may read.
func ahead(p *program, page *view.Page) *view.Page {
	if c, _ := reachQuietly(p, "forecast"); c != nil {
		page.Every = c.Forecast.Every.Span()
	}
	return page
}

// pastOf reads the accounting history. Without it, forecasts know the journal alone, and a note says so.
func pastOf(p *program, cfg *config.Config) func(context.Context, cluster.Instant, cluster.Instant) []cluster.Attempt {
	return func(ctx context.Context, since, until cluster.Instant) []cluster.Attempt {
		client, err := connect.Slurm(cfg)
		var list []cluster.Attempt
		if err == nil {
			defer client.Close()
			list, err = client.History(ctx, since, until)
		}
		if err != nil {
			fmt.Fprintf(p.err, "fairlease: run times are those of the journal alone, which begins at %s: the accounting history cannot be read: %s\n", p.date(until.Time()), failure.Cause(err))
		}
		return list
	}
}

const aboutWhatif = `Answer what would be, or would have been:

  --submit 'GPUS gpus TIME as TENANT'   when a job would start and end, and on which GPU model sooner; behind it perhaps
                                        on MODEL, user NAME, account NAME, qos NAME, partition NAME, licenses LIST
  --drain NODES --at WHEN [--for TIME]  which tenants' jobs a maintenance delays
  --weights, --add, --preset, --term    the site's own history under other settings, beside what was: GPU hours, waits,
                                        rho and preemptions of each tenant

The first two are forecasts from the newest round; see fairlease forecast. The third replays the journal since --since, with
the assumptions of fairlease shadow: once with the present settings and once with the others. Further replays leave out a
tenth of the jobs each, and show how far a difference may be chance.`

func whatifCommand(p *program) *cobra.Command {
	var l view.Form
	var o outlook.WhatIf
	var since string
	var workers int
	c := &cobra.Command{Use: "whatif [--submit JOB | --drain NODES --at WHEN | --weights … --since WHEN]", Short: "estimate the effect of other settings, drains or another job",
		Long: aboutWhatif, Args: exactly(),
		Example: "  fairlease whatif --submit '8 gpus 24h as nlp'\n  fairlease whatif --drain 'node[1-8]' --at 2030-01-31T08:00 --for 10h\n  fairlease whatif --weights nlp=x3 --add 8x8:h100 --term 30m --since 30d",
		RunE: func(c *cobra.Command, _ []string) error {
			from, _, err := window(p, since, "")
			if err != nil {
				return err
			}
			o.Now, o.Workers, o.Run, o.Date = p.clock().In(p.zone()), workers, p.session(workers).All, p.date
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				o.History = pastOf(p, cfg)
				return connect.NoWindow(o.Answer(c.Context(), p.page(l), s, cfg, from), p.date)
			})
		}}
	f := c.Flags()
	f.StringVar(&o.Submit, "submit", "", "`JOB` that would be submitted now, as in '8 gpus 24h as nlp' or '8 gpus 24h as nlp on h100 user alice'")
	f.StringVar(&o.Drain, "drain", "", "`NODES` that would not be used, as in node[1-8]")
	f.StringVar(&o.At, "at", "", "`WHEN` a drain begins: 2h (ahead), 2030-01-31T18:00 (default: now)")
	f.StringVar(&o.For, "for", "", "`TIME` that a drain lasts (default: beyond the horizon)")
	f.StringSliceVar(&o.Weights, "weights", nil, "`LIST` of other weights, as in nlp=3, or factors, as in nlp=x2")
	f.StringVar(&o.Add, "add", "", "`NODES` in addition, as in 8x8:h100")
	f.StringVar(&o.Preset, "preset", "", "another preset `NAME`")
	f.StringVar(&o.Term, "term", "", "another lease.term `TIME`")
	f.StringVar(&since, "since", "", "`WHEN` the replayed time begins: 30d (ago), 2030-01-31 (default: as far back as the journal goes)")
	f.IntVar(&o.Repetitions, "repetitions", 4, "`N` replays that leave out a tenth of the jobs each")
	simulate.SavingFlags(f, &o.Saving)
	simulate.WorkersFlag(c, &workers)
	listFlags(c, &l)
	return c
}
