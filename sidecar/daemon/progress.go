package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// progress receives the reports of running jobs, and tells them their leases.
type progress struct {
	report  *reporter
	takes   func(ctx context.Context, user, token string) (bool, error) // nil = no tokens
	inbox   *telemetry.Inbox                                            // nil = not open
	drop    *fetch                                                      // nil = none
	running atomic.Pointer[map[cluster.JobID]uint32]
	users   atomic.Pointer[map[string]uint32]                // of running jobs, by name
	leases  atomic.Pointer[map[cluster.JobID]telemetry.Term] // of the last round; nil = not known
	notices *telemetry.Notices                               // nil = none
	writing atomic.Bool                                      // notices are being written
	wrote   *map[cluster.JobID]telemetry.Term                // guarded by writing
}

// listen opens the inbox and the folder that the configuration names. closing closes the inbox.
func (e *progress) listen(ctx context.Context, p *config.Progress) (closing func(), err error) {
	if p.Folder != "" {
		e.drop = &fetch{read: (&telemetry.Spool{Folder: p.Folder}).Read, folder: p.Folder}
	}
	if p.Leases != "" {
		e.notices = &telemetry.Notices{Folder: p.Leases}
	}
	if p.Listen == "" {
		return func() {}, nil
	}
	e.inbox = &telemetry.Inbox{Open: telemetry.Munge{Socket: p.Munge}.Open, Owner: e.owner, Number: e.number, Lease: e.lease, Now: time.Now,
		Every: p.Every.Span().Duration(), AtOnce: 2, Patience: 5 * time.Second}
	if e.takes != nil {
		e.inbox.Tokens = &telemetry.Tokens{Ask: e.takes}
	}
	if err := web.Validate(p.WebConfig); err != nil {
		return nil, fmt.Errorf("accepting progress reports (models.progress.web_config): %w", err)
	}
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Listen)
	if err != nil {
		return nil, fmt.Errorf("accepting progress reports (models.progress.listen): %w", err)
	}
	server := e.inbox.Server()
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // no HTTP/2: the door counts a connection as one request at a time
	go func() {
		if err := web.Serve(e.inbox.Door(on), server, &web.FlagConfig{WebConfigFile: &p.WebConfig}, slog.New(slog.DiscardHandler)); !errors.Is(err, http.ErrServerClosed) {
			e.report.log.Error().Err(err).Msg("no longer accepting progress reports")
		}
	}()
	e.report.log.Info().Stringer("address", on.Addr()).Msg("accepting progress reports")
	return func() { _ = server.Close() }, nil
}

// owner implements telemetry.Owner.
func (e *progress) owner(job cluster.JobID) (uint32, bool) {
	running := e.running.Load()
	if running == nil {
		return 0, false
	}
	uid, ok := (*running)[job]
	return uid, ok
}

// number implements telemetry.Inbox.Number.
func (e *progress) number(user string) (uint32, bool) {
	users := e.users.Load()
	if users == nil {
		return 0, false
	}
	uid, ok := (*users)[user]
	return uid, ok
}

// hear adds the reports since the last look to seen.
func (e *progress) hear(seen *cluster.Observation) {
	if e.inbox == nil && e.drop == nil {
		return
	}
	running, users := map[cluster.JobID]uint32{}, map[string]uint32{}
	var holders []telemetry.Holder
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		if j.State != cluster.Running {
			continue
		}
		running[j.ID] = j.UID
		if j.User != "" {
			users[j.User] = j.UID
		}
		holders = append(holders, telemetry.Holder{Job: j.ID, User: j.User, UID: j.UID})
	}
	e.running.Store(&running)
	e.users.Store(&users)
	if e.inbox != nil {
		reports, refused := e.inbox.Take()
		seen.Progress = append(seen.Progress, reports...)
		if refused > 0 {
			e.report.log.Debug().Int("refused", refused).Msg("progress reports refused")
		}
	}
	if e.drop != nil {
		e.drop.fetch(e.report, seen, holders)
	}
}

// fetch reads the folder of reports beside the rounds. A file system that hangs must not delay
// rounds or the daemon's end: a reader that waits for it is abandoned.
type fetch struct {
	read   func([]telemetry.Holder, cluster.Instant) ([]cluster.Progress, []error)
	folder string
	got    chan catch      // the result of the current read; nil = none is running
	since  cluster.Instant // start of the current read
	late   bool            // its delay was logged
}

// catch is the result of one read.
type catch struct {
	reports []cluster.Progress
	wrong   []error
}

// patience is how long a read of the folder may take before its delay is logged.
const patience = cluster.Minute

// fetch takes the result of the last read, and starts another one for the jobs that run now, for
// the next round.
func (f *fetch) fetch(report *reporter, seen *cluster.Observation, running []telemetry.Holder) {
	if f.got != nil {
		select {
		case all := <-f.got:
			seen.Progress = append(seen.Progress, all.reports...)
			if f.late {
				report.log.Info().Str("folder", f.folder).Msg("the folder of reports answers again")
			}
			f.got, f.late = nil, false
			report.about("progress", errors.Join(all.wrong...))
		default:
			if on := seen.Now.Sub(f.since); on >= patience && !f.late {
				f.late = true
				report.once("progress", fmt.Errorf("the folder of reports %s has not answered for %s: what jobs leave there is not heard; is its file system there?", f.folder, on))
			}
			return
		}
	}
	got, read, now := make(chan catch, 1), f.read, seen.Now
	f.got, f.since = got, now
	go func() {
		reports, wrong := read(running, now)
		got <- catch{reports, wrong}
	}()
}
