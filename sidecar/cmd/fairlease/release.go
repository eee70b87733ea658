package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/hostlist"
	"github.com/fairlease/fairlease/sidecar/store"
)

func (p *program) release() *cobra.Command {
	var l listing
	var dry, force, afterCrash bool
	var patience time.Duration
	c := &cobra.Command{Use: "release", Short: "give every job back to Slurm, leave no trace", Args: exactly(),
		Long: `Give every waiting job back to Slurm as its user had it: begin time, required nodes, time
limit, priority; remove our reservations. Running jobs run on. It works without PostgreSQL: what
is ours it knows from the local state file and from Slurm (the submit plugin's mark, the names of
reservations), and from the journal where that can be reached.

Stop the daemon first, or set mode: observe, else the daemon gates again.

With --after-crash, as the systemd unit has it, it looks at what ended the daemon ($SERVICE_RESULT)
and does nothing after a clean stop: then gates lapse by themselves, or a restart goes on with them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if result := p.getenv("SERVICE_RESULT"); afterCrash && (result == "success" || result == "") {
				p.printf("the daemon stopped cleanly: nothing is released, gates lapse by themselves\n")
				return nil
			}
			cfg, err := p.config()
			if err != nil {
				return err
			}
			return p.letGo(c.Context(), cfg, l, patience, dry, force || afterCrash)
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&force, "force", false, "though a daemon is seated")
	c.Flags().BoolVar(&afterCrash, "after-crash", false, "only if the service did not stop cleanly")
	c.Flags().DurationVar(&patience, "patience", time.Minute, "`TIME` to wait for jobs that still clean up after a requeue")
	c.Flags().BoolVar(&l.json, "json", false, "write JSON")
	return c
}

func (p *program) letGo(ctx context.Context, cfg *config.Config, l listing, patience time.Duration, dry, force bool) error {
	client, err := openSlurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	state, err := daemon.ReadState(cfg.Files.State)
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: %v; going on without it\n", err)
	}
	memory, err := p.remembered(ctx, cfg, dry || force)
	if err != nil {
		return err
	}
	r := &daemon.Release{Cluster: client, State: state, Memory: memory, Patience: patience}
	if dry {
		return p.wouldRelease(ctx, cfg, r, l)
	}
	done, err := r.Do(ctx)
	if err != nil {
		return noSlurm(cfg, err)
	}
	if len(done.Failed) == 0 {
		if err := daemon.Forget(cfg.Files.State, cfg.Files.Heartbeats, cfg.Partitions); err != nil {
			fmt.Fprintf(p.err, "fairlease: %v\n", err)
		}
	}
	if l.json {
		err = p.json(done)
	} else {
		p.released(&done)
	}
	if err == nil && len(done.Failed) > 0 {
		return quiet(exitNo)
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

func (p *program) wouldRelease(ctx context.Context, cfg *config.Config, r *daemon.Release, l listing) error {
	actions, err := r.Plan(ctx)
	if err != nil {
		return noSlurm(cfg, err)
	}
	if l.json {
		return p.json(actions)
	}
	w := p.words(p.now(), nil)
	t := &table{head: []string{"WHAT", "FOR", "BEGIN", "NODES"}}
	for i := range actions {
		a := &actions[i]
		begin := "now"
		if a.Until > 0 {
			begin = w.Time(a.Until)
		}
		if a.Verb == cluster.Release || a.Verb == cluster.Unreserve {
			begin = ""
		}
		t.add(string(a.Verb), subject(a), begin, hostlist.Compress(a.NodeList))
	}
	if len(actions) == 0 {
		p.printf("nothing of ours is in Slurm\n")
		return nil
	}
	p.table(l, t)
	return nil
}

// remembered gives what the journal remembers; nothing where it cannot be reached.
// It refuses while a daemon is alive, unless told not to mind.
func (p *program) remembered(ctx context.Context, cfg *config.Config, anyway bool) (cluster.Memory, error) {
	if cfg.Database.URL == "" {
		return cluster.Memory{}, nil
	}
	s, err := openStore(ctx, cfg)
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: %v; going on without it\n", err)
		return cluster.Memory{}, nil
	}
	defer s.Close()
	seat, err := s.Seated(ctx)
	if err == nil && !anyway && seat != nil && living(seat) {
		return cluster.Memory{}, &failure{code: exitNo, what: fmt.Sprintf("%s is seated and gates jobs again in its next round", seat.Holder),
			next: "stop it first (systemctl stop fairlease), or set mode: observe and reload it, then release; or --force"}
	}
	_, plan, err := s.Last(ctx)
	if err != nil {
		fmt.Fprintf(p.err, "fairlease: %v; going on without it\n", err)
	}
	return plan.Memory, nil
}

// living tells whether a seat's holder may still act. One on this host is asked for
// by its process; of others the last sign of life must do.
func living(seat *store.Seated) bool {
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
