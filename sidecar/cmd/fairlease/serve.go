package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/operate/beside"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
)

func serveCommand(p *program) *cobra.Command {
	return &cobra.Command{Use: "serve", Short: "run the daemon", Args: exactly(),
		Long: `Run the daemon: one round every interval, on multiples of it by the wall clock. One daemon leads, by a
lock in PostgreSQL; others stand by and take over when it gives no sign of life.

SIGHUP reads the configuration again; a wrong one is not used. SIGTERM ends the daemon after the
present round: running jobs run on, gates lapse by themselves. While Slurm or PostgreSQL is away, rounds
pause and nothing changes.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			meter := metrics.New(build.Of().Version, time.Now)
			client, err := connect.Measured(cfg, meter.Call)
			if err != nil {
				return err
			}
			defer client.Close()
			verifier, err := connect.Verifier(cfg)
			if err != nil {
				return err
			}
			log := daemon.NewLog(&cfg.Output.Log, p.err, p.terminal() != nil, p.getenv("NO_COLOR") == "")
			for _, w := range cfg.Warnings() {
				log.Warn().Msg(w)
			}
			// The process uses the running program, even if its file has been replaced.
			aside := beside.Process{Context: c.Context(), Path: "/proc/self/exe", Args: []string{"beside"}, Limit: beside.Limit}
			study := beside.Process{Path: aside.Path, Args: studyArgs, Limit: beside.StudyLimit}
			ahead := beside.Process{Path: aside.Path, Args: forecastArgs, Limit: beside.ForecastLimit}
			watchdog, err := systemd.SdWatchdogEnabled(false)
			if err != nil {
				log.Warn().Err(err).Msg("watchdog")
			}
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			d := &daemon.Daemon{}
			study.In, ahead.In = d.InForce, d.InForce
			*d = daemon.Daemon{
				Cluster: client, Identify: client.Identity, Probe: func(ctx context.Context) (cluster.Observation, error) { return client.Observe(ctx, 0) },
				Notes: client.Notes, Connect: connect.Daemon(cfg), Decide: new(engine.Checked).Decide, Divide: aside.Divide, Audit: aside.Audit, Study: study.Study, Foresee: ahead.Forecast, Config: cfg,
				Reload: func() (*config.Config, error) { return config.Load(p.file, p.env) },
				Hangup: hangup, Manager: daemon.Manager{Watchdog: watchdog}, Log: log, Meter: meter,
			}
			if verifier != nil {
				d.Takes = verifier.Takes
			}
			return connect.Mismatch(d.Serve(c.Context()))
		}}
}

// studyArgs and forecastArgs are the commands of the processes that study the lease term and make forecasts for the daemon, with
// the configuration that it has in force.
var (
	studyArgs    = []string{"tune", "journal", "--json", "--workers=1", "--config=" + inForce}
	forecastArgs = []string{"forecast", "--now", "--json", "--workers=1", "--config=" + inForce}
)

// inForce stands for a file: the configuration is what a daemon writes to the standard input.
const inForce = "-"

// besideCommand is the command of the process that divides and audits for the daemon.
func besideCommand(p *program) *cobra.Command {
	return &cobra.Command{Use: "beside", Hidden: true, Short: "divide or audit for the daemon", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return beside.Answer(c.InOrStdin(), p.out) }}
}
