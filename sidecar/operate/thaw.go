package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Thaw holds the options for resuming jobs that were suspended for their partner on a GPU.
type Thaw struct {
	Config *config.Config
	All    bool // all of them, whether a daemon leads or not
	Errors io.Writer
	Now    time.Time
}

// Thawed is the result.
type Thawed struct {
	Resumed []cluster.JobID `json:"resumed"`
	Failed  []string        `json:"failed"` // in words
}

// late is how much longer than the turns of others and three rounds a job is suspended until it was forgotten, and silent how much longer than three rounds
// there is no heartbeat until no daemon leads.
const late, silent = 15 * cluster.Second, 15 * cluster.Second

// Do resumes jobs: all of them if no daemon leads, else those that should have been resumed already. It knows them by this host's state file or by
// the journal, by the newer of both, and works with one of them alone. It asks Slurm only if a job should run by that.
func (t *Thaw) Do(ctx context.Context, p *view.Page) error {
	known, led := t.known(ctx)
	now, all := cluster.InstantOf(t.Now), t.All || !led
	others := cluster.Span(t.Config.Placing.Sharing.Jobs-1) * t.Config.Placing.Sharing.Quantum.Span()
	wait := 3*t.Config.Interval.Span() + late
	known = slices.DeleteFunc(known, func(j daemon.Touched) bool { return !all && now.Sub(j.Slice.At) <= max(others, j.Slice.Turn.Away)+wait })
	done := Thawed{Resumed: []cluster.JobID{}, Failed: []string{}}
	if len(known) > 0 {
		client, err := connect.Slurm(t.Config)
		if err != nil {
			return err
		}
		defer client.Close()
		if done, err = thaw(ctx, client, known); err != nil {
			return connect.SlurmAway(t.Config, err)
		}
	}
	var err error
	if p.JSON {
		err = p.Encode(done)
	} else {
		p.Printf("resumed: %d jobs that were suspended for another job on their GPU\n", len(done.Resumed))
		for _, f := range done.Failed {
			p.Printf("%s %s\n", p.Paint("failed:", "red"), f)
		}
	}
	if err == nil && len(done.Failed) > 0 {
		return failure.Quiet(failure.No)
	}
	return err
}

// known gives the jobs that fairlease may have suspended, and whether a daemon leads.
func (t *Thaw) known(ctx context.Context) (jobs []daemon.Touched, led bool) {
	state, err := daemon.ReadState(t.Config.Files.State)
	if err != nil {
		fmt.Fprintf(t.Errors, "fairlease: %v; going on without it\n", err)
	}
	sliced := func(list []daemon.Touched) []daemon.Touched {
		return slices.DeleteFunc(list, func(j daemon.Touched) bool { return j.Slice == nil })
	}
	s, err := connect.Journal(ctx, t.Config)
	if err == nil {
		defer s.Close()
		jobs, led, err = t.journal(ctx, s, &state, sliced)
	}
	if err != nil {
		fmt.Fprintf(t.Errors, "fairlease: %s; going on with %s\n", firstLine(err), t.Config.Files.State)
		if led = t.beats(); led && cluster.InstantOf(t.Now).Sub(state.Written) > cluster.Hour {
			return nil, led // another host's daemon leads since then
		}
		return sliced(state.Jobs), led
	}
	return jobs, led
}

// journal gives the same by the journal.
func (t *Thaw) journal(ctx context.Context, s *store.Store, state *daemon.State, sliced func([]daemon.Touched) []daemon.Touched) (jobs []daemon.Touched, led bool, err error) {
	_, plan, err := s.Rounds.Last(ctx)
	if err != nil {
		return nil, false, err
	}
	last, err := s.LastLeadership(ctx)
	if err != nil {
		return nil, false, err
	}
	jobs = daemon.Sliced(&plan.State)
	if state.Round > plan.Round && (last == nil || state.Term == last.Term) { // the newest rounds are lost
		jobs = sliced(state.Jobs)
	}
	if len(jobs) > 0 && last != nil && !t.All {
		led, err = lives(ctx, s, last)
	}
	return jobs, led, err
}

// beats tells whether a daemon leads, by the heartbeats on this host, which a standby relays.
func (t *Thaw) beats() bool {
	for _, p := range t.Config.Partitions {
		file, err := os.Stat(filepath.Join(t.Config.Files.Heartbeats, p))
		if err == nil && cluster.SpanOf(t.Now.Sub(file.ModTime())) <= 3*t.Config.Interval.Span()+silent {
			return true
		}
	}
	return false
}

// thaw resumes those of the jobs that are suspended and hold a part of a GPU. A job that has another user by now is another job.
func thaw(ctx context.Context, c loop.Cluster, known []daemon.Touched) (Thawed, error) {
	done := Thawed{Resumed: []cluster.JobID{}, Failed: []string{}}
	seen, err := c.Observe(ctx, 0)
	if err != nil {
		return done, err
	}
	var list []cluster.Action
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		if j.State == cluster.Suspended && !cluster.SizeHeld(j.Holds).IsWhole() && slices.ContainsFunc(known, func(k daemon.Touched) bool { return k.ID == j.ID && k.User == j.User }) {
			list = append(list, cluster.Action{Verb: cluster.Resume, ID: j.ID, Record: j.Record, Reason: cluster.Reason{Code: cluster.ReasonTidy}})
		}
	}
	for i, o := range c.Apply(ctx, list) {
		if o.OK {
			done.Resumed = append(done.Resumed, list[i].ID)
		} else if !o.Skipped {
			done.Failed = append(done.Failed, fmt.Sprintf("resume of job %s: %s", list[i].ID, o.Error))
		}
	}
	return done, nil
}
