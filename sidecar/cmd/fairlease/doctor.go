package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func doctorCommand(p *program) *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "doctor", Short: "check Slurm, PostgreSQL, configuration and all installed parts, and say what to do", Args: exactly(),
		Long: `Check everything that fairlease depends on, and the versions of all its parts. Say what each finding means and
what to do about it. Run it as the daemon's user: runuser -u fairlease -- fairlease doctor
doctor changes nothing. The exit code is 1 if a check fails; warnings do not count.`,
		RunE: func(c *cobra.Command, _ []string) error {
			found := doctor.Examine(c.Context(), p.file, p.env, p.clock)
			if err := doctor.Write(p.page(l), found); err != nil {
				return err
			}
			if slices.ContainsFunc(found, func(x doctor.Finding) bool { return x.Level == doctor.Fail }) {
				return failure.Quiet(failure.No)
			}
			return nil
		}}
	listFlags(c, &l)
	return c
}
