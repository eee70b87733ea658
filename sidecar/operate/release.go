package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Release holds the options for returning jobs.
type Release struct {
	Config   *config.Config
	Patience time.Duration // maximum wait for jobs that still clean up after a requeue
	DryRun   bool          // only show the actions
	Only     daemon.Whose  // owner of the jobs to return; the zero value = everybody
	Errors   io.Writer
	Author   string // for the record of administration

	release daemon.Release
}

// ByHand returns jobs unless a daemon leads, which would gate them again; with force it does
// so anyway.
func (b *Release) ByHand(ctx context.Context, p *view.Page, force bool) error {
	b.readState()
	if err := b.remember(ctx, b.DryRun || force); err != nil {
		return err
	}
	return b.letGo(ctx, p)
}

// readState starts a release with the state file of this host's daemon.
func (b *Release) readState() {
	b.release.Patience, b.release.Only = b.Patience, b.Only
	var err error
	if b.release.State, err = daemon.ReadState(b.Config.Files.State); err != nil {
		fmt.Fprintf(b.Errors, "fairlease: %v; going on without it\n", err)
	}
}

// AfterCrash returns jobs after the daemon's crash. It takes over the daemon's lead, and only if
// that daemon had it last.
func (b *Release) AfterCrash(ctx context.Context, p *view.Page) error {
	b.readState()
	not := func(format string, args ...any) error {
		p.Printf("nothing is released: %s; gates lapse by themselves within %v, reservations at their end\n",
			fmt.Sprintf(format, args...), b.Config.Gate.TTL)
		return nil
	}
	s, err := connect.Journal(ctx, b.Config)
	if err != nil {
		return not("PostgreSQL cannot say whether another daemon leads: %s", firstLine(err))
	}
	defer s.Close()
	last, err := s.LastLeadership(ctx)
	switch {
	case err != nil:
		return not("PostgreSQL cannot say whether another daemon leads: %s", firstLine(err))
	case last == nil:
		return not("no daemon has ever led")
	case last.Term != b.release.State.Term:
		return not("the daemon that crashed was not the last leader, %s was (term %d)", last.Holder, last.Term)
	}
	if living, err := lives(ctx, s, last); err != nil {
		return not("PostgreSQL cannot say whether another daemon leads: %s", firstLine(err))
	} else if living {
		return not("%s leads (term %d)", last.Holder, last.Term)
	}
	if !b.DryRun {
		lead, err := s.Succeed(ctx, connect.Holder(), last.Term)
		if err != nil {
			return not("%s", firstLine(err))
		}
		held, letGo := daemon.Hold(ctx, connect.Leadership(lead, s))
		defer func() {
			letGo()
			if err := lead.Resign(context.WithoutCancel(ctx)); err != nil {
				fmt.Fprintf(b.Errors, "fairlease: %v\n", err)
			}
		}()
		ctx = held
	}
	b.recall(ctx, s)
	return b.letGo(ctx, p)
}

// recall gives a release the memory of the journal's newest round, if it can be read.
func (b *Release) recall(ctx context.Context, s *store.Store) {
	_, plan, err := s.Rounds.Last(ctx)
	if err == nil {
		b.release.Memory = plan.State
		b.release.Of, _, err = s.Identity(ctx)
	}
	if err != nil {
		fmt.Fprintf(b.Errors, "fairlease: %v; going on without it\n", err)
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// letGo releases, or shows the actions with DryRun.
func (b *Release) letGo(ctx context.Context, p *view.Page) error {
	client, err := connect.Slurm(b.Config)
	if err != nil {
		return err
	}
	defer client.Close()
	b.release.Cluster = client
	if b.DryRun {
		return b.wouldRelease(ctx, p)
	}
	done, err := b.release.Do(ctx)
	if errors.Is(err, daemon.ErrCluster) {
		return connect.Mismatch(err)
	}
	if err != nil {
		return connect.SlurmAway(b.Config, err)
	}
	if len(done.Failed) == 0 && b.Only.Everybody() {
		if err := daemon.Forget(b.Config.Files.State, b.Config.Files.Heartbeats, b.Config.Partitions); err != nil {
			fmt.Fprintf(b.Errors, "fairlease: %v\n", err)
		}
	}
	b.record(ctx, &done)
	if p.JSON {
		err = p.Encode(done)
	} else {
		writeReleased(p, &done)
		if done.Owned == 0 && !b.Only.Everybody() {
			p.Printf("%s\n", b.nobodys())
		}
	}
	if err == nil && len(done.Failed) > 0 {
		return failure.Quiet(failure.No)
	}
	return err
}

// record adds the release to the record of administration. A release does not need PostgreSQL, so a failure is only said.
func (b *Release) record(ctx context.Context, done *daemon.Released) {
	if b.Config.Database.URL == "" {
		return
	}
	s, err := connect.Journal(ctx, b.Config)
	if err == nil {
		defer s.Close()
		what := fmt.Sprintf("%d jobs opened, %d freed, %d reservations removed, %d failures", done.Opened, done.Freed, done.Reservations, len(done.Failed))
		err = s.Administration.Add(ctx, store.Act{Kind: store.OfRelease, Key: "release", After: &what, By: b.Author, Why: "fairlease release"})
	}
	if err != nil {
		fmt.Fprintf(b.Errors, "fairlease: this release is not in the record of administration (fairlease audit): %s\n", firstLine(err))
	}
}

func writeReleased(p *view.Page, done *daemon.Released) {
	p.Printf("released: %d waiting jobs opened, %d running jobs freed of a reservation, %d reservations removed\n", done.Opened, done.Freed, done.Reservations)
	if done.Resumed > 0 {
		p.Printf("resumed: %d jobs that were suspended for another job on their GPU\n", done.Resumed)
	}
	for _, f := range done.Failed {
		p.Printf("%s %s\n", p.Paint("failed:", "red"), f)
	}
	if len(done.Failed) > 0 {
		p.Printf("next: run fairlease release again; remaining gates lapse by themselves (gate.ttl)\n")
	}
	if n := len(done.Sliced); n > 0 {
		p.Printf("note: %d running jobs go on with half of a GPU (job %v%s), and ask for that again if they are requeued: scontrol update jobid=JOB TresPerNode=gres/gpu:1 while they wait\n",
			n, done.Sliced[0], map[bool]string{true: ", …"}[n > 1])
	}
	if n := len(done.Pinned); n > 0 {
		p.Printf("note: %d running jobs keep the node list of their lease (job %v%s); Slurm does not allow changes while they run, and it matters only if they are requeued\n",
			n, done.Pinned[0], map[bool]string{true: ", …"}[n > 1])
	}
}

func (b *Release) wouldRelease(ctx context.Context, p *view.Page) error {
	actions, owned, err := b.release.Plan(ctx)
	if errors.Is(err, daemon.ErrCluster) {
		return connect.Mismatch(err)
	}
	if err != nil {
		return connect.SlurmAway(b.Config, err)
	}
	if p.JSON {
		return p.Encode(actions)
	}
	switch {
	case len(actions) > 0:
		p.Table(p.ReleaseTable(actions))
	case b.Only.Everybody():
		p.Printf("fairlease has nothing left in Slurm\n")
	case owned > 0:
		p.Printf("fairlease has set nothing in Slurm for the jobs of %v\n", b.Only)
	default:
		p.Printf("%s\n", b.nobodys())
	}
	return nil
}

// nobodys says that the owner has no jobs, since the name may be misspelt, or be an account below a tenant.
func (b *Release) nobodys() string {
	return fmt.Sprintf("note: Slurm has no job of %v that is not over; fairlease tenants lists the tenants, --users their users", b.Only)
}

// remember is recall if the journal is reachable. It refuses while a daemon is alive, except with
// anyway.
func (b *Release) remember(ctx context.Context, anyway bool) error {
	if b.Config.Database.URL == "" {
		return nil
	}
	s, err := connect.Journal(ctx, b.Config)
	if err != nil {
		fmt.Fprintf(b.Errors, "fairlease: %v; going on without it; a daemon that leads will gate the jobs again\n", err)
		return nil
	}
	defer s.Close()
	last, err := s.LastLeadership(ctx)
	var living bool
	if err == nil && !anyway && last != nil {
		living, err = lives(ctx, s, last)
	}
	if err != nil {
		fmt.Fprintf(b.Errors, "fairlease: %v; going on without it; a daemon that leads will gate the jobs again\n", err)
	}
	if living {
		return &failure.Error{Code: failure.No, What: fmt.Sprintf("%s leads and gates jobs again in its next round", last.Holder),
			Next: "stop it (systemctl stop fairlease), or set mode: observe and reload it; then release; or use --force"}
	}
	b.recall(ctx, s)
	return nil
}

// lives tells whether a lead's holder still acts. It waits for a sign of life of a holder that may be dead.
func lives(ctx context.Context, s *store.Store, lead *store.LastLeadership) (bool, error) {
	if !MayLive(lead) {
		return false, nil
	}
	return s.Lives(ctx, lead)
}

// MayLive tells whether a lead's holder can still act: its term has not ended and, on this host, its process runs.
func MayLive(lead *store.LastLeadership) bool {
	if lead.Ended {
		return false
	}
	here, err := os.Hostname()
	host, pid, ok := strings.Cut(lead.Holder, ":")
	n, bad := strconv.Atoi(pid)
	if err != nil || !ok || bad != nil || host != here {
		return true
	}
	return alive(n)
}

// alive tells whether a process of this host runs. A zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && !strings.HasPrefix(state, "Z")
}
