package daemon

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the service manager, if there is one.
type Manager struct {
	// Watchdog is its maximum time between two signs of life; 0 = it has no watchdog.
	Watchdog time.Duration
	patience time.Duration // for a message; 0 = a second
	waits    atomic.Int32  // messages that it has not taken yet
}

var errSilent = errors.New("the service manager takes no messages")

// tell sends it newline-separated assignments like "READY=1", as in sd_notify(3). One that does not read holds the daemon up for a second at most.
func (m *Manager) tell(words ...string) error {
	const most = 8
	if m.waits.Add(1) > most {
		m.waits.Add(-1)
		return errSilent
	}
	told := make(chan error, 1)
	go func() {
		defer m.waits.Add(-1)
		_, err := systemd.SdNotify(false, strings.Join(words, "\n"))
		told <- err
	}()
	select {
	case err := <-told:
		return err
	case <-time.After(cmp.Or(m.patience, time.Second)):
		return errSilent
	}
}
