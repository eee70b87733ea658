package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

const about = `fairlease shares the GPUs of a Slurm cluster fairly over time. It is a sidecar: users submit
with sbatch and Slurm schedules, as before; fairlease decides which jobs hold GPUs for the next term.

Every tenant (a Slurm account) is due its share of GPU time. A job holds GPUs by a lease, for one
term (15 minutes). At the end of the term the lease is renewed, or the job is told to save,
requeued, and waits for its next lease. GPUs that one tenant leaves idle go to the others.
rho near 1 means that a tenant has received what it was due.

To begin, on slurmctld's host or another one that reaches slurmrestd:

  fairlease simulate FILE       replay your own job history in simulated time
  fairlease doctor              check the setup, and say what to do about each finding
  fairlease round --dry-run     show what fairlease would do now; needs no database
  fairlease migrate             make the tables in PostgreSQL
  fairlease serve               run the daemon; in mode observe it changes nothing in Slurm
  fairlease shadow              after some days of that: backtest fairlease against what happened

Exit codes: 0 done; 1 failed, or the answer is no; 2 the command line or the configuration
is wrong; 3 Slurm or PostgreSQL cannot be reached.`

// rootCommand makes the tree of commands.
func rootCommand(p *program) *cobra.Command {
	root := &cobra.Command{
		Use: "fairlease", Short: "fair GPU time on Slurm, by leases", Long: about,
		SilenceErrors: true, SilenceUsage: true,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVarP(&p.file, "config", "c", "", "configuration `FILE` (default: $FAIRLEASE_CONFIG, else "+config.DefaultPath+")")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if given := c.Flags().Args(); c.HasSubCommands() && len(given) > 0 { // a misspelt command has none of its flags
			if unknown := c.ValidateArgs(given); unknown != nil {
				return unknown
			}
		}
		return &failure.Error{Code: failure.Misuse, What: err.Error(), Next: "see " + c.CommandPath() + " --help"}
	})
	root.AddGroup(&cobra.Group{ID: "inspect", Title: "Inspect:"}, &cobra.Group{ID: "override", Title: "Override:"},
		&cobra.Group{ID: "simulate", Title: "Simulate:"}, &cobra.Group{ID: "operate", Title: "Operate:"}, &cobra.Group{ID: "configure", Title: "Configure:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			c.DisableFlagsInUseLine = strings.Contains(c.Use, "--")
			root.AddCommand(c)
		}
	}
	add("inspect", statusCommand(p), topCommand(p), tenantsCommand(p), budgetsCommand(p), objectivesCommand(p), reportCommand(p), leasesCommand(p), explainCommand(p), forecastCommand(p), noticesCommand(p), gpusCommand(p), habitsCommand(p), profilesCommand(p), tradesCommand(p), cellsCommand(p), replayCommand(p))
	add("override", orderCommand(p, "exempt", "never gate or requeue a job, or the jobs of a user or tenant"),
		orderCommand(p, "boost", "put a job first within its tenant, or a tenant first"),
		orderCommand(p, "freeze", "give no new lease to a job, or to the jobs of a user or tenant"), overrideCommand(p), auditCommand(p))
	add("simulate", simulate.Command(simulate.Program{Config: p.config, Session: p.session}), tuneCommand(p), shadowCommand(p), worthCommand(p), whatifCommand(p), convertCommand(p), profileCommand(p), tryRequeueCommand(p))
	add("operate", serveCommand(p), webCommand(p), roundCommand(p), releaseCommand(p), thawCommand(p), resumeCommand(p), repairCommand(p), wrapperCommand())
	add("configure", doctorCommand(p), migrateCommand(p), configurationCommand(p), cellsCommand(p), versionCommand(p))
	root.AddCommand(besideCommand(p))
	root.SetHelpCommandGroupID("configure")
	root.SetCompletionCommandGroupID("configure")
	return root
}

// subcommand refuses a name that is none of a command's commands, and says which ones it resembles.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	next := "see " + c.CommandPath() + " --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		next = fmt.Sprintf("did you mean %s %s?", c.CommandPath(), strings.Join(near, " or "))
	}
	return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath()), Next: next}
}

// exactly refuses any other number of arguments, in words.
func exactly(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(what) {
			return nil
		}
		said := fmt.Sprintf("%s takes no argument, but was given %q", c.CommandPath(), args)
		if len(what) > 0 {
			said = fmt.Sprintf("%s needs %s", c.CommandPath(), strings.Join(what, " and "))
		}
		return &failure.Error{Code: failure.Misuse, What: said, Next: "see " + c.CommandPath() + " --help"}
	}
}

func versionCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "version [--json]", Short: "print the version", Args: exactly()}
	asJSON := c.Flags().Bool("json", false, "write JSON")
	c.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return p.page(view.Form{JSON: true}).Encode(build.Of())
		}
		p.printf("%s\n", build.Of())
		return nil
	}
	return c
}
