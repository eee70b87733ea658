package trial

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// source is where reports of jobs are received.
type source struct {
	// receive updates the trials from reports, and gives the time up to which they are known.
	receive func(ctx context.Context, trials []*Trial) (cluster.Instant, error)
	env     []string // environment with which jobs report there
	close   func()
}

// source chooses where to receive reports: the journal, if the daemon learns from them, else the
// folder for the user's own jobs.
func (d *Desk) source(ctx context.Context, o *Request) (*source, error) {
	folder := cmp.Or(d.Folder, d.Config.Models.Progress.Folder)
	why := "database.url is not set"
	if d.Config.Database.URL != "" {
		s, err := connect.Journal(ctx, d.Config)
		if err == nil {
			var snap cluster.Snapshot
			if snap, _, err = s.Rounds.Last(ctx); err == nil && snap.Settings.Divides() {
				return &source{receive: func(ctx context.Context, trials []*Trial) (cluster.Instant, error) { return o.read(ctx, s, trials) }, close: s.Close}, nil
			}
			s.Close()
		}
		if why = "no policy divided heterogeneous GPU models in the newest round"; err != nil {
			why = failure.Cause(err)
		}
	}
	if folder == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "the jobs' reports could not be received: the journal does not take them (" + why + "), and no folder is configured",
			Next: "set FAIRLEASE_PROGRESS_FOLDER to a shared folder with a subfolder of yours; or use --no-wait, and run fairlease profiles where the journal can be reached"}
	}
	me, err := user.Current()
	if err != nil {
		return nil, &failure.Error{Code: failure.No, What: "the present user cannot be determined", Err: err}
	}
	if info, err := os.Stat(filepath.Join(folder, me.Username)); err != nil || !info.IsDir() {
		return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%s has no folder %s for your jobs' reports", folder, me.Username),
			Next: "ask the administrator for it, or set FAIRLEASE_PROGRESS_FOLDER"}
	}
	drop := &telemetry.Spool{Folder: folder}
	book := profile.New(profile.Default(), nil, nil)
	return &source{receive: func(_ context.Context, trials []*Trial) (cluster.Instant, error) {
		return d.Now(), o.listen(drop, book, me.Username, d.Now(), trials)
	}, env: []string{"FAIRLEASE_PROGRESS_FOLDER=" + folder, "FAIRLEASE_PROGRESS_URL="}, close: func() {}}, nil
}

// read reads the journal's newest round.
func (o *Request) read(ctx context.Context, s *store.Store, trials []*Trial) (cluster.Instant, error) {
	snap, plan, err := s.Rounds.Last(ctx)
	if err != nil {
		return 0, err
	}
	o.Learn(&snap, &plan, trials)
	return snap.Now, nil
}

// Learn updates submitted trials from a round's profiles. A job's kind is that of its tenant, and
// reports from before the job began do not count.
func (o *Request) Learn(snap *cluster.Snapshot, plan *cluster.Plan, trials []*Trial) {
	for _, x := range submitted(trials) {
		for i := range snap.Former {
			if r := &snap.Former[i]; r.ID == x.ID {
				x.tenant = r.Tenant
			}
		}
		for i := range snap.Cases {
			if c := &snap.Cases[i]; c.Job.ID == x.ID {
				x.tenant = c.Record.Tenant
			}
		}
		for i := range plan.State.Profiles {
			e := &plan.State.Profiles[i]
			if e.Kind == cluster.KindOf(x.tenant, o.Kind) && e.With == "" && e.Model == x.Model && e.Gang == o.GPUs && e.Source == cluster.Observed && e.At >= x.Began {
				x.Profile = &Speed{Rate: e.Rate, Samples: e.Samples, Spread: e.Spread, At: e.At}
			}
		}
	}
}

// listen reads the reports of running jobs in the folder.
func (o *Request) listen(drop *telemetry.Spool, book *profile.Book, me string, now cluster.Instant, trials []*Trial) error {
	kind := cluster.KindOf(cmp.Or(o.Account, me), o.Kind)
	var holders []telemetry.Holder
	of := map[cluster.JobID]*Trial{}
	for _, x := range submitted(trials) {
		holders = append(holders, telemetry.Holder{Job: x.ID, User: me, UID: uint32(os.Getuid())})
		of[x.ID] = x
	}
	reports, wrong := drop.Read(holders, now)
	for _, r := range reports {
		if _, err := book.Report(profile.Run{Key: cluster.JobKey(r.Job.ID), Kind: kind, Model: of[r.Job].Model, Gang: o.GPUs, Since: of[r.Job].Began}, r); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, e := range book.Entries() {
		for _, x := range submitted(trials) {
			if x.Model == e.Model {
				x.Profile = &Speed{Rate: e.Rate, Samples: e.Samples, Spread: e.Spread, At: e.At}
			}
		}
	}
	if len(wrong) > 0 {
		return wrong[0]
	}
	return nil
}
