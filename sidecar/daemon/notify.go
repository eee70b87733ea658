package daemon

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Notifier reports the daemon's state to the service manager, as in sd_notify(3). The zero value
// reports nothing.
type Notifier struct {
	socket   string
	Watchdog time.Duration // maximum time between two signs of life; 0 = no watchdog
}

// NewNotifier reads NOTIFY_SOCKET and WATCHDOG_USEC through getenv.
func NewNotifier(getenv func(string) string) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	if rest, ok := strings.CutPrefix(n.socket, "@"); ok {
		n.socket = "\x00" + rest // the abstract namespace
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 && n.socket != "" {
		n.Watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// Tell sends one message of newline-separated assignments like "READY=1".
func (n Notifier) Tell(words ...string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	if _, err := conn.Write([]byte(strings.Join(words, "\n"))); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}
