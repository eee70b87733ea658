package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/syslog"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// askSyslog tries whether the configured syslog can be reached from this host. Nothing is sent, so udp says little.
func askSyslog(ctx context.Context, cfg *config.Config) error {
	conn, err := syslog.Open(ctx, cfg.Output.Audit.Syslog)
	if conn != nil {
		_ = conn.Close()
	}
	return err
}

// syslogLate is how long a change may wait to go to syslog: a daemon looks every ten seconds.
const syslogLate = 5 * time.Minute

// checkSyslog tells of changes that do not reach syslog.
func checkSyslog(f *findings, cfg *config.Config, open error, x *store.SyslogState, now time.Time) {
	place := cfg.Output.Audit.Syslog
	if place == config.SyslogOff {
		return
	}
	found := place + " can be opened from this host"
	if open != nil {
		found = failure.Cause(open)
	}
	f.must(open == nil, Warn, "syslog", found, "if the daemon runs here and cannot reach it either, changes wait in the journal", "start the system's syslog, or correct audit.syslog")
	if x == nil {
		return
	}
	found = "all changes went to syslog"
	if x.Since != nil {
		found = fmt.Sprintf("%d changes wait to go there, the oldest since %v", x.Waiting, cluster.InstantOf(*x.Since))
	}
	if x.Error != "" {
		found += "; the last try: " + x.Error
	}
	f.must(x.Error == "" && (x.Since == nil || now.Sub(*x.Since) < syslogLate), Warn, "record", found, "fairlease audit has them, syslog has not",
		"correct what the error names, or start the daemon: it sends what waits")
}
