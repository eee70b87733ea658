package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// resumeCommand makes the command that closes the breaker.
func resumeCommand(p *program) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "resume --reason TEXT", Short: "act again after the breaker has tripped", Args: exactly(),
		Long: `Let fairlease act again, after its breaker has tripped: within an hour more starts failed, more work was
lost, more jobs were requeued or failed after a stop, or looks at Slurm took longer than the section
breaker of the configuration allows. fairlease status tells why, with the jobs. Nothing else ends it: no reload,
no restart and no time. It takes effect within two rounds, and the record of administration has it (fairlease audit).`,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return &failure.Error{Code: failure.Misuse, What: "a resume needs a reason", Next: "add --reason 'what was wrong, and is mended'"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				_, plan, err := s.Rounds.Last(c.Context())
				if err != nil {
					return err
				}
				trip := plan.State.Breaker.Trip
				if trip == nil {
					return &failure.Error{Code: failure.No, What: "the breaker has not tripped", Next: "fairlease status shows what fairlease acts on"}
				}
				err = s.Administration.Resume(c.Context(), cluster.GoAhead{Round: trip.Round, By: operate.Author(p.getenv("SUDO_USER")), Why: strings.TrimSpace(reason)})
				if err != nil {
					return &failure.Error{Code: failure.No, What: "the resume was not recorded", Err: err, Next: connect.OrRole(err, "")}
				}
				p.printf("fairlease acts again within two rounds; it had stopped since %s\n", trip.Says())
				return nil
			})
		}}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record of administration")
	return c
}
