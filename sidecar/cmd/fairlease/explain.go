package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func explainCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	c := &cobra.Command{Use: "explain JOB", Short: "say why a job runs or waits, in words and numbers", Args: exactly("a job id, as in 123 or 123_4"),
		Long: "Say why a job runs or waits, what it waits for, when the next lease that could serve it ends,\nwhat its tenant is due and has, and what fairlease did with it. For a running job, also say how it saves,\nthe evidence for that, and when it may be stopped.",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := cluster.ParseJobID(args[0])
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: err.Error()}
			}
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				x, err := s.Explain(c.Context(), id)
				if errors.Is(err, store.ErrNone) && !failure.Worded(err) {
					return notInJournal(c.Context(), p, s, id)
				}
				if err != nil {
					return err
				}
				if l.JSON {
					return p.page(l).Encode(x)
				}
				x.Write(ahead(p, p.page(l)))
				return nil
			})
		}}
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON, with all numbers")
	serverFlag(c, &server)
	return c
}

// notInJournal says of a job that is not in the journal where it was searched, and what Slurm
// reports of it.
func notInJournal(ctx context.Context, p *program, s *ask.Site, id cluster.JobID) error {
	f := &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s is not in the journal", id)}
	looked := "the journal was searched"
	if number, at, err := s.Newest(ctx); err == nil && number > 0 {
		looked = fmt.Sprintf("the journal was searched up to round %d of %s", number, at.In(p.zone()).Format(time.DateTime))
	}
	cfg, err := reachQuietly(p, "slurm", "gate")
	if cfg == nil {
		return p.badConfig(err)
	}
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	seen, err := client.Observe(ctx, 0)
	if err != nil {
		f.Err = fmt.Errorf("%s; Slurm could not be asked: %s", looked, failure.Cause(err))
		return f
	}
	for i := range seen.Jobs {
		if seen.Jobs[i].ID == id {
			f.Err = fmt.Errorf("%s; Slurm has it: %s, account %s, %s", looked, seen.Jobs[i].State, seen.Jobs[i].Account, cmp.Or(seen.Jobs[i].PendingReason, "no reason given"))
			f.Next = "wait for the next round; check with fairlease status that rounds are made"
			return f
		}
	}
	f.Err = fmt.Errorf("%s; Slurm lists no such job that has or requests GPUs", looked)
	f.Next = fmt.Sprintf("check the id with squeue; jobs without GPUs are not managed; for one that ended long ago: sacct -j %s", id)
	return f
}
