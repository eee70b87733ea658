package main

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/top"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

// topCommand makes the command top.
func topCommand(p *program) *cobra.Command {
	var server, every string
	c := &cobra.Command{Use: "top [--every SPAN]", Short: "show tenants, leases and waiting jobs in the terminal, live", Args: exactly(),
		Long: `Show the daemon, the GPUs, the tenants, the jobs that hold leases and those that wait with the reason, and look
for a new round again and again. The keys are in the last line; ? explains the columns. It shows what
fairlease status, tenants, leases and explain show, with the same rights.

If the database or the daemon is away, the first line says so, and top goes on when it is back. Where the
output is no terminal, or TERM is dumb, it prints the state once. NO_COLOR=1 leaves colours out.`,
		RunE: func(c *cobra.Command, _ []string) error {
			span, err := config.ParseDuration(every)
			if err != nil || span.Span().Duration() < time.Second {
				return &failure.Error{Code: failure.Misuse, What: "--every must be at least 1s", Err: err, Next: "write --every 5s"}
			}
			_, _ = p.reach(siteKeys...) // says what is wrong, before the screen
			var site *ask.Site
			source := top.New(func(ctx context.Context) (top.Site, error) {
				cfg, err := reachQuietly(p, siteKeys...)
				if cfg != nil {
					site, err = ask.Open(ctx, cfg, server)
				} else {
					err = p.badConfig(err)
				}
				return site, err
			})
			defer func() {
				if site != nil {
					site.Close()
				}
			}()
			in, out, ok := screenOf(p)
			if !ok {
				return topOnce(c.Context(), p, source)
			}
			page := *ahead(p, p.page(view.Form{}))
			s := &top.Screen{Source: source, Every: span.Span().Duration(), Page: func() *view.Page {
				now := page
				now.Now = p.now()
				return &now
			}}
			return s.Run(c.Context(), tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(p.env))
		}}
	c.Flags().StringVar(&every, "every", "2s", "look for a new round every `SPAN`, at least 1s")
	serverFlag(c, &server)
	return c
}

// screenOf gives the terminal, if input and output are one that can move its cursor.
func screenOf(p *program) (in, out *os.File, ok bool) {
	in, reads := p.in.(*os.File)
	out, writes := p.out.(*os.File)
	return in, out, reads && writes && isatty.IsTerminal(in.Fd()) && isatty.IsTerminal(out.Fd()) && p.getenv("TERM") != "dumb" && p.getenv("TERM") != ""
}

// topOnce prints the state once.
func topOnce(ctx context.Context, p *program, source *top.Source) error {
	picture, err := source.Look(ctx, nil)
	if err != nil {
		return connect.JournalFailed(err)
	}
	picture.Write(p.page(view.Form{}))
	if !picture.Status.Alive {
		return failure.Quiet(failure.No)
	}
	return nil
}
