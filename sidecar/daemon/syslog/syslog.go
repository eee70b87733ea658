// Package syslog sends the record of administration to syslog, one line for each change.
//
// A line that was sent is noted after that. A daemon that dies in between leaves its rows in the journal, and the next one sends them again,
// with the same ids: each line comes at least once, where the server of syslog takes what it gets.
package syslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Box is the part of the record of administration that has not gone to syslog yet.
type Box interface {
	// Waiting gives the value of audit.syslog that was recorded last ("" = the default), and at most limit rows, oldest first.
	Waiting(ctx context.Context, limit int) (place string, acts []store.Act, err error)
	// Sent notes rows that have gone there, or need not, and why others wait ("" = none do).
	Sent(ctx context.Context, ids []int64, why string) error
}

const (
	// batch is how many rows are sent at once.
	batch = 100
	// patience is how long a line may take.
	patience = 2 * time.Second
	// answer is how long a host that has no server of syslog may take to refuse a datagram.
	answer = 200 * time.Millisecond
	// mostText is the maximum length of a text in a line, in bytes before quotes. Servers of syslog cut longer lines.
	mostText = 300
	// priority is that of all lines: facility authpriv, severity notice.
	priority = 10*8 + 5
)

// Sender sends what waits in a box.
type Sender struct {
	moved int64 // the newest change of audit.syslog that went to the place before it, too
}

// Send sends the rows that wait. The error says why they go on waiting.
//
// A change of audit.syslog, and what was recorded before it or with it, goes to the place that it leaves, too, if that can be reached: nobody turns
// syslog off unseen.
func (x *Sender) Send(ctx context.Context, box Box) error {
	place, acts, err := box.Waiting(ctx, batch)
	if err != nil || len(acts) == 0 {
		return err
	}
	place = cmp.Or(place, config.SyslogOff)
	var left error
	if before, upto, change := leaves(acts); change > x.moved && before != place {
		x.moved = change
		_, left = deliver(ctx, before, acts[:upto])
	}
	sent, err := deliver(ctx, place, acts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ids, why := make([]int64, sent), ""
	for i := range ids {
		ids[i] = acts[i].ID
	}
	if err != nil {
		why = err.Error()
	}
	return errors.Join(err, left, box.Sent(ctx, ids, why))
}

// leaves finds the newest change of audit.syslog: the place before it, how many rows were recorded until its round ended, and its id; 0 = there is none.
func leaves(acts []store.Act) (before string, upto int, change int64) {
	round := int64(0)
	for i := range acts {
		switch a := &acts[i]; {
		case a.Kind == store.OfSetting && a.Key == "audit.syslog" && a.Before != nil:
			before, upto, change, round = *a.Before, i+1, a.ID, a.Round
		case upto == i && change > 0 && a.Round == round:
			upto = i + 1
		}
	}
	return before, upto, change
}

// deliver sends rows to a place, and counts those that were taken. It ends at the first that is not.
func deliver(ctx context.Context, place string, acts []store.Act) (sent int, err error) {
	conn, err := Open(ctx, place)
	if err != nil {
		return 0, err
	}
	if conn == nil {
		return len(acts), nil
	}
	defer conn.Close()
	datagrams := conn.LocalAddr().Network() == "udp"
	host, _ := os.Hostname() // for display
	for i := range acts {
		head := fmt.Sprintf("<%d>%s fairlease[%d]: ", priority, acts[i].At.Local().Format(time.Stamp), os.Getpid())
		if datagrams {
			head = fmt.Sprintf("<%d>1 %s %s fairlease %d audit - ", priority, acts[i].At.UTC().Format("2006-01-02T15:04:05.000Z"), cmp.Or(host, "-"), os.Getpid())
		}
		err := conn.SetWriteDeadline(time.Now().Add(patience))
		if err == nil {
			_, err = conn.Write([]byte(head + Line(&acts[i])))
		}
		switch {
		case err != nil && datagrams:
			return 0, err // of one before
		case err != nil:
			return i, err
		}
	}
	if datagrams {
		if err := conn.SetReadDeadline(time.Now().Add(answer)); err != nil {
			return 0, err
		}
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNREFUSED) {
			return 0, err
		}
	}
	return len(acts), nil
}

// Open opens a value of audit.syslog; nil = off. Nothing is sent yet, so that udp never fails for a host that has no syslog.
func Open(ctx context.Context, place string) (net.Conn, error) {
	network, address, err := config.SyslogPlace(place)
	if err != nil || network == "" {
		return nil, err
	}
	return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
}

// Line words a row, without the head of syslog. Texts are quoted as in Go, so that none begins another line, and cut.
func Line(a *store.Act) string {
	text := func(t *string) string {
		if t == nil {
			return "-"
		}
		if len(*t) > mostText {
			return strconv.Quote(strings.ToValidUTF8((*t)[:mostText], "") + "…")
		}
		return strconv.Quote(*t)
	}
	return fmt.Sprintf("by=%s kind=%s key=%s before=%s now=%s round=%d at=%s why=%s database_user=%s id=%d",
		text(&a.By), a.Kind, text(&a.Key), text(a.Before), text(a.After), a.Round, a.At.UTC().Format("2006-01-02T15:04:05.000Z"), text(&a.Why), text(&a.DatabaseUser), a.ID)
}
