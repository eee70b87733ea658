package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// ears is how the daemon hears what running jobs say of their progress.
type ears struct {
	inbox   *telemetry.Inbox // nil = none is open
	drop    *telemetry.Drop  // nil = there is none
	running atomic.Pointer[map[cluster.JobID]uint32]
}

// listen opens the inbox and the folder that the configuration names; close ends the former.
func (d *Daemon) listen(ctx context.Context) (closing func(), err error) {
	p := &d.Config.Models.Progress
	if p.Folder != "" {
		d.ears.drop = &telemetry.Drop{Folder: p.Folder}
	}
	if p.Listen == "" {
		return func() {}, nil
	}
	d.ears.inbox = &telemetry.Inbox{Open: telemetry.Munge{Socket: p.Munge}.Open, Owner: d.ears.owner, Now: time.Now,
		Every: p.Every.Span().Duration(), AtOnce: 2, Patience: 5 * time.Second}
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Listen)
	if err != nil {
		return nil, fmt.Errorf("taking reports of progress (models.progress.listen): %w", err)
	}
	server := d.ears.inbox.Server()
	go func() {
		if err := server.Serve(d.ears.inbox.Door(on)); !errors.Is(err, http.ErrServerClosed) {
			d.Log.Error().Err(err).Msg("reports of progress are taken no longer")
		}
	}()
	d.Log.Info().Stringer("address", on.Addr()).Msg("taking reports of progress")
	return func() { _ = server.Close() }, nil
}

// owner implements telemetry.Owner.
func (e *ears) owner(job cluster.JobID) (uint32, bool) {
	running := e.running.Load()
	if running == nil {
		return 0, false
	}
	uid, ok := (*running)[job]
	return uid, ok
}

// hear adds to what was seen what running jobs have reported since.
func (d *Daemon) hear(seen *cluster.Sighting) {
	e := &d.ears
	if e.inbox == nil && e.drop == nil {
		return
	}
	running := map[cluster.JobID]uint32{}
	var holders []telemetry.Holder
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		if j.State != cluster.Running {
			continue
		}
		running[j.ID] = j.UID
		holders = append(holders, telemetry.Holder{Job: j.ID, User: j.User, UID: j.UID})
	}
	e.running.Store(&running)
	if e.inbox != nil {
		reports, refused := e.inbox.Take()
		seen.Progress = append(seen.Progress, reports...)
		if refused > 0 {
			d.Log.Debug().Int("refused", refused).Msg("reports of progress")
		}
	}
	if e.drop != nil {
		reports, wrong := e.drop.Read(holders, seen.Now)
		seen.Progress = append(seen.Progress, reports...)
		if err := errors.Join(wrong...); err != nil {
			d.once("progress", err)
		} else {
			d.said.clear("progress")
		}
	}
}
