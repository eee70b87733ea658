package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) release() *cobra.Command {
	var l view.Form
	var dry, force, afterCrash bool
	var patience time.Duration
	c := &cobra.Command{Use: "release", Short: "give every job back to Slurm, leave no trace", Args: exactly(),
		Long: `Give every waiting job back to Slurm as its user had it: begin time, required nodes, time
limit, priority; remove our reservations. Running jobs run on. It works without PostgreSQL: what
is ours it knows from the local state file and from Slurm (the submit plugin's mark, the names of
reservations), and from the journal where that can be reached.

Stop the daemon first, or set mode: observe, else the daemon gates again.

With --after-crash, as the systemd unit has it, it looks at what ended the daemon ($SERVICE_RESULT)
and does nothing after a clean stop: then gates lapse by themselves, or a restart goes on with them.
It releases only if this host's daemon was the last one in the seat and no daemon is seated now: a
standby that crashes owns nothing in Slurm. While PostgreSQL cannot tell, it releases nothing.
During the release it holds the seat itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if result := p.getenv("SERVICE_RESULT"); afterCrash && (result == "success" || result == "") {
				p.printf("the daemon stopped cleanly: nothing is released, gates lapse by themselves\n")
				return nil
			}
			cfg, err := p.config()
			if err != nil {
				return err
			}
			r := &daemon.Release{Patience: patience}
			if r.State, err = daemon.ReadState(cfg.Files.State); err != nil {
				fmt.Fprintf(p.err, "fairlease: %v; going on without it\n", err)
			}
			if afterCrash {
				return p.succeed(c.Context(), cfg, r, l, dry)
			}
			if err := p.remember(c.Context(), cfg, r, dry || force); err != nil {
				return err
			}
			return p.letGo(c.Context(), cfg, r, l, dry)
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&force, "force", false, "though a daemon is seated")
	c.Flags().BoolVar(&afterCrash, "after-crash", false, "only if the service did not stop cleanly")
	c.Flags().DurationVar(&patience, "patience", time.Minute, "`TIME` to wait for jobs that still clean up after a requeue")
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON")
	return c
}

// succeed releases in the place of the daemon that crashed: from its seat, and only if it had that last.
func (p *program) succeed(ctx context.Context, cfg *config.Config, r *daemon.Release, l view.Form, dry bool) error {
	not := func(format string, args ...any) error {
		p.printf("nothing is released: %s; what fairlease has left in Slurm lapses by itself (gates within %v, reservations at their end)\n",
			fmt.Sprintf(format, args...), cfg.Gate.TTL)
		return nil
	}
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		return not("whether another daemon is seated cannot be known: %s", firstLine(err))
	}
	defer s.Close()
	last, err := s.LastSeat(ctx)
	switch {
	case err != nil:
		return not("whether another daemon is seated cannot be known: %s", firstLine(err))
	case last == nil:
		return not("no daemon was ever seated")
	case last.Term != r.State.Term:
		return not("the daemon that crashed was not the last one in the seat, %s was (term %d)", last.Holder, last.Term)
	case !last.Ended && living(last):
		return not("%s is seated (term %d)", last.Holder, last.Term)
	}
	if !dry {
		seat, err := s.Succeed(ctx, connect.Holder(), last.Term)
		if err != nil {
			return not("%s", firstLine(err))
		}
		held, letGo := daemon.Hold(ctx, connect.Seat{Seat: seat, Store: s})
		defer func() {
			letGo()
			if err := seat.Resign(context.WithoutCancel(ctx)); err != nil {
				fmt.Fprintf(p.err, "fairlease: %v\n", err)
			}
		}()
		ctx = held
	}
	p.recall(ctx, s, r)
	return p.letGo(ctx, cfg, r, l, dry)
}

// recall gives a release the memory of the journal's newest round; none where that cannot be read.
func (p *program) recall(ctx context.Context, s *store.Store, r *daemon.Release) {
	_, plan, err := s.Last(ctx)
	if err == nil {
		r.Memory = plan.Memory
		r.Of, _, err = s.Identity(ctx)
	}
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: %v; going on without it\n", err)
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// letGo releases, or with dry shows what that would do.
func (p *program) letGo(ctx context.Context, cfg *config.Config, r *daemon.Release, l view.Form, dry bool) error {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	r.Cluster = client
	if dry {
		return p.wouldRelease(ctx, cfg, r, l)
	}
	done, err := r.Do(ctx)
	if errors.Is(err, daemon.ErrCluster) {
		return connect.Mismatch(err)
	}
	if err != nil {
		return connect.SlurmAway(cfg, err)
	}
	if len(done.Failed) == 0 {
		if err := daemon.Forget(cfg.Files.State, cfg.Files.Heartbeats, cfg.Partitions); err != nil {
			fmt.Fprintf(p.err, "fairlease: %v\n", err)
		}
	}
	if l.JSON {
		err = p.page(l).Encode(done)
	} else {
		p.released(&done)
	}
	if err == nil && len(done.Failed) > 0 {
		return failure.Quiet(failure.No)
	}
	return err
}

func (p *program) released(done *daemon.Released) {
	p.printf("released: %d waiting jobs opened, %d running jobs freed of a reservation, %d reservations removed\n", done.Opened, done.Freed, done.Reservations)
	for _, f := range done.Failed {
		p.printf("%s %s\n", p.paint("failed:", "red"), f)
	}
	if len(done.Failed) > 0 {
		p.printf("next: run fairlease release again; what is left lapses by itself (gate.ttl)\n")
	}
	if n := len(done.Pinned); n > 0 {
		p.printf("note: %d running jobs keep the node list of their lease, which Slurm lets nobody change while they run (job %v%s); it matters only if they are requeued\n",
			n, done.Pinned[0], map[bool]string{true: ", …"}[n > 1])
	}
}

func (p *program) wouldRelease(ctx context.Context, cfg *config.Config, r *daemon.Release, l view.Form) error {
	actions, err := r.Plan(ctx)
	if errors.Is(err, daemon.ErrCluster) {
		return connect.Mismatch(err)
	}
	if err != nil {
		return connect.SlurmAway(cfg, err)
	}
	if l.JSON {
		return p.page(l).Encode(actions)
	}
	if len(actions) == 0 {
		p.printf("nothing of ours is in Slurm\n")
		return nil
	}
	page := p.page(l)
	page.Table(page.ReleaseTable(actions))
	return nil
}

// remember is recall where the journal can be reached. It refuses while a daemon is alive, unless told not to mind.
func (p *program) remember(ctx context.Context, cfg *config.Config, r *daemon.Release, anyway bool) error {
	if cfg.Database.URL == "" {
		return nil
	}
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: %v; going on without it: whether a daemon is seated is not known, one that is will gate jobs again\n", err)
		return nil
	}
	defer s.Close()
	last, err := s.LastSeat(ctx)
	if err == nil && !anyway && last != nil && !last.Ended && living(last) {
		return &failure.Error{Code: failure.No, What: fmt.Sprintf("%s is seated and gates jobs again in its next round", last.Holder),
			Next: "stop it first (systemctl stop fairlease), or set mode: observe and reload it, then release; or --force"}
	}
	p.recall(ctx, s, r)
	return nil
}

// living tells whether a seat's holder may still act. One on this host is asked for
// by its process; of others the last sign of life must do.
func living(seat *store.LastSeat) bool {
	if !seat.Renewed.Add(seat.Silent).Before(seat.Takeover) {
		return false
	}
	here, err := os.Hostname()
	host, pid, ok := strings.Cut(seat.Holder, ":")
	n, bad := strconv.Atoi(pid)
	if err != nil || !ok || bad != nil || host != here {
		return true
	}
	return alive(n)
}

// alive tells whether a process of this host runs. One that is dead but was not
// waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && !strings.HasPrefix(state, "Z")
}
