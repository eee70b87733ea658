package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/operate/outlook"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

const aboutDiff = `Compare the file NEW with the configuration, and say what it would do before it is in force:

  which keys have other values, and which of them need a restart
  what the newest recorded round would have decided by NEW, and by the present file: leases that end or go on,
  jobs that start or do not, jobs that are left alone or managed, and weights, dues and debts of tenants
  with --for, how jobs get on in that time, by forecasts with the same draws as in fairlease forecast

Nothing is written or changed. The exit code is 0 if nothing differs, 1 if something does, and 2 if a file is bad, as of diff(1).`

func configDiff(p *program) *cobra.Command {
	var l view.Form
	var ahead string
	x := outlook.Reconfigured{}
	c := &cobra.Command{Use: "diff NEW", Short: "compare another file with the configuration, and say what it would do", Long: aboutDiff, Args: exactly("a file"),
		Example: "  fairlease config diff /root/new.yaml\n  fairlease config diff /root/new.yaml --for 24h --json",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if ahead != "" {
				d, bad := config.ParseDuration(ahead)
				if bad != nil || d <= 0 {
					return failure.Usage("--for %q: write a time, as in 24h", ahead)
				}
				x.For = d.Span()
			}
			if x.Was, err = p.configInForce(); err != nil {
				return err
			}
			if x.Now, err = checked(p, args[0]); err != nil {
				return err
			}
			x.History = pastOf(p, x.Was)
			o := &outlook.Otherwise{Keys: config.Changes(x.Was, x.Now)}
			s, err := connect.Journal(c.Context(), x.Was)
			if err == nil {
				defer s.Close()
				o, err = x.Ask(c.Context(), s)
				err = connect.JournalFailed(err)
			}
			var worded *failure.Error
			switch {
			case errors.As(err, &worded) && o != nil:
				o.Why = worded.Error()
			case err != nil:
				return err
			}
			if err := o.Write(p.page(l)); err != nil || !o.Differs() {
				return err
			}
			return failure.Quiet(failure.No)
		}}
	c.Flags().StringVar(&ahead, "for", "", "also compare the `TIME` ahead, as in 24h")
	simulate.WorkersFlag(c, &x.Workers)
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON, with all numbers")
	return c
}
