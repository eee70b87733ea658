package main

import (
	"net/http"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/site"
)

func webCommand(p *program) *cobra.Command {
	return &cobra.Command{Use: "web", Short: "serve the web page and its API", Args: exactly(),
		Long: `Serve the web page and a JSON API (/api/v1/, described in /api/v1/openapi.json) at web.listen and web.socket.
It reads the journal with the rights of a reader (role fairlease_reader), and changes nothing.

People see the jobs of their tenants and the sums of all tenants; operators (web.operators) see everything. A person
is known at the local socket by the kernel, elsewhere by a MUNGE credential, a token of auth/jwt or a trusted proxy; see
docs/web.md. While the journal does not answer, the last good state is shown, with its age.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			log := daemon.NewLog(&cfg.Output.Log, p.err, p.terminal() != nil, p.getenv("NO_COLOR") == "")
			ready := func() {
				if _, err := systemd.SdNotify(false, systemd.SdNotifyReady); err != nil {
					log.Warn().Err(err).Msg("tell the service manager")
				}
			}
			return site.Serve(c.Context(), cfg, build.Of().Version, pages(cfg.Forecast.Every.Span()), ready,
				func(text string) { log.Info().Msg(text) }, func(err error) { log.Error().Err(err).Msg("the journal cannot be read") })
		}}
}

// pages makes the pages of a site, where forecasts are made every so often.
func pages(every cluster.Span) site.Page {
	return func(s api.Source) http.Handler {
		return (&page.Pages{Source: s, Live: api.Root + "/live", Every: every}).Handler()
	}
}
