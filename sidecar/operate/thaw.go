package operate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Thaw holds the options for resuming jobs that were suspended for their partner on a GPU.
type Thaw struct {
	Config *config.Config
	All    bool // not only those that should have been resumed already
	Errors io.Writer
	Now    time.Time
}

// Thawed is the result.
type Thawed struct {
	Resumed []cluster.JobID `json:"resumed"`
	Failed  []string        `json:"failed"` // in words
}

// late is how much longer than a turn and three rounds a job is suspended until nobody seems to look after it.
const late = 15 * cluster.Second

// Do resumes jobs. It knows them by this host's state file or by the journal, by the newer of both, and works with one of them alone. It
// asks Slurm only if a job should run by that.
func (t *Thaw) Do(ctx context.Context, p *view.Page) error {
	known := t.known(ctx)
	now := cluster.InstantOf(t.Now)
	wait := t.Config.Placing.Sharing.Quantum.Span() + 3*t.Config.Interval.Span() + late
	known = slices.DeleteFunc(known, func(j daemon.Touched) bool {
		return j.Slice == nil || !t.All && (j.Slice.Runs || now.Sub(j.Slice.At) <= wait)
	})
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

// known gives the jobs that fairlease may have suspended.
func (t *Thaw) known(ctx context.Context) []daemon.Touched {
	state, err := daemon.ReadState(t.Config.Files.State)
	if err != nil {
		fmt.Fprintf(t.Errors, "fairlease: %v; going on without it\n", err)
	}
	s, err := connect.Journal(ctx, t.Config)
	if err == nil {
		defer s.Close()
		_, plan, e := s.Rounds.Last(ctx)
		if err = e; err == nil && plan.Round >= state.Round {
			return daemon.Sliced(&plan.State)
		}
	}
	if err != nil {
		fmt.Fprintf(t.Errors, "fairlease: %s; going on with %s\n", firstLine(err), t.Config.Files.State)
	}
	return state.Jobs
}

// thaw resumes those of the jobs that are suspended. A job that has another user by now is another job.
func thaw(ctx context.Context, c loop.Cluster, known []daemon.Touched) (Thawed, error) {
	done := Thawed{Resumed: []cluster.JobID{}, Failed: []string{}}
	seen, err := c.Observe(ctx, 0)
	if err != nil {
		return done, err
	}
	var list []cluster.Action
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		if j.State == cluster.Suspended && slices.ContainsFunc(known, func(k daemon.Touched) bool { return k.ID == j.ID && k.User == j.User }) {
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
