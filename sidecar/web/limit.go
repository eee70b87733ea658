package web

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/rights"
)

// Limit is a listener with a maximum number of open connections, and of those from one address, or at a unix socket of one user. Beyond it,
// the oldest connection whose client asks nothing is closed, of that address or of the one with most connections: idle sockets of one user
// shut nobody out of a login node that many share. If all are being answered, the newcomer is told so, and closed.
type Limit struct {
	net.Listener
	Most, EachMost int
	Free           []netip.Prefix // addresses without EachMost, such as those of proxies
	FreeUsers      []uint32       // of unix sockets, likewise

	refusing atomic.Int64
	lock     sync.Mutex
	in       []*limited     // open connections, oldest first
	from     map[string]int // their number by address or user
}

// refusal is the answer to a connection that is too many. A client of TLS sees an error.
var refusal = func() string {
	const text = "there are too many connections: try again in a few seconds\n"
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text
}()

// Accept waits for the next connection that is not too many.
func (l *Limit) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limited{Conn: conn, of: l}
		if err := c.identify(); err != nil {
			_ = conn.Close() // it has gone already
			continue
		}
		switch out, ok := l.admit(c); {
		case !ok:
			l.refuse(conn)
		case out != nil:
			_ = out.Close()
			return c, nil
		default:
			return c, nil
		}
	}
}

// maxRefusals is the maximum number of connections that are being refused; others are just closed.
const maxRefusals = 100

// refuse answers a connection, and closes it when the client has read that. A connection with an unread question would be reset, and the
// client might lose the answer.
func (l *Limit) refuse(conn net.Conn) {
	if l.refusing.Add(1) > maxRefusals {
		l.refusing.Add(-1)
		_ = conn.Close()
		return
	}
	go func() {
		defer l.refusing.Add(-1)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := fmt.Fprint(conn, refusal); err != nil {
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, conn, maxHeader)
		}
	}()
}

// admit registers a connection if there is room, and gives the one that must be closed for it; nil = none.
func (l *Limit) admit(c *limited) (out *limited, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	free := c.peer != nil && slices.Contains(l.FreeUsers, *c.peer) || slices.ContainsFunc(l.Free, func(p netip.Prefix) bool { return p.Contains(c.address) })
	switch {
	case !free && l.from[c.from] >= l.EachMost:
		if out = l.idle(c.from); out == nil {
			return nil, false
		}
	case len(l.in) >= l.Most:
		most := ""
		for from, n := range l.from {
			if was := l.from[most]; n > was || n == was && from < most {
				most = from
			}
		}
		if out = l.idle(most); out == nil {
			return nil, false
		}
	}
	if l.from == nil {
		l.from = map[string]int{}
	}
	l.in = append(l.in, c)
	l.from[c.from]++
	return out, true
}

// idle gives the oldest connection of an address or user whose client is not being answered; nil = none.
func (l *Limit) idle(from string) *limited {
	at := slices.IndexFunc(l.in, func(c *limited) bool { return c.from == from && c.answering.Load() == 0 })
	if at < 0 {
		return nil
	}
	return l.in[at]
}

// limited is an open connection.
type limited struct {
	net.Conn
	of      *Limit
	from    string     // address or user
	address netip.Addr // of TCP
	peer    *uint32    // user at a unix socket
	once    sync.Once

	answering atomic.Int32 // questions on it that are being answered
}

// identify finds out where the connection is from.
func (c *limited) identify() error {
	if unix, ok := c.Conn.(*net.UnixConn); ok {
		uid, err := rights.PeerOf(unix)
		c.peer, c.from = &uid, fmt.Sprint("user ", uid)
		return err
	}
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	c.address = at.Addr().Unmap()
	c.from = c.address.String()
	return err
}

// Close closes the connection, and makes room for another.
func (c *limited) Close() error {
	c.once.Do(func() {
		c.of.lock.Lock()
		defer c.of.lock.Unlock()
		if at := slices.Index(c.of.in, c); at >= 0 {
			c.of.in = slices.Delete(c.of.in, at, at+1)
		}
		if c.of.from[c.from]--; c.of.from[c.from] <= 0 {
			delete(c.of.from, c.from)
		}
	})
	return c.Conn.Close()
}
