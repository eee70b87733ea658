package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// from dials a server from one of this machine's addresses.
func from(t *testing.T, address, server string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := d.DialContext(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A flood of silent or incomplete connections neither exceeds the limit, nor keeps other reports
// out, not even those of its own address.
func TestAFloodOfConnectionsShutsOutItself(t *testing.T) {
	b := &Inbox{Open: func(context.Context, []byte) (uint32, []byte, error) { return 7, []byte(`{"job":"1","steps":1}`), nil },
		Now: time.Now, AtOnce: 2, Patience: time.Minute, Owner: func(cluster.JobID) (uint32, bool) { return 7, true }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := b.Server()
	server.ReadHeaderTimeout, server.ReadTimeout = time.Hour, time.Hour // timeouts must not help here
	door := b.Door(l)
	go func() { _ = server.Serve(door) }()
	t.Cleanup(func() { _ = server.Close() })
	says := []string{"", "POST /v1/progress HT", "POST /v1/progress HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nMUN"}
	quiet := from(t, "127.0.0.3", l.Addr().String()) // never the one to be closed
	for i := range mostConnections + 50 {
		_, _ = io.WriteString(from(t, "127.0.0.2", l.Addr().String()), says[i%len(says)]) // or the connection was closed
	}
	for _, address := range []string{"127.0.0.4", "127.0.0.2", "127.0.0.3"} {
		conn := quiet
		if address != "127.0.0.3" {
			conn = from(t, address, l.Addr().String())
		}
		if _, err := io.WriteString(conn, "POST /v1/progress HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len("HTTP/1.1 202"))
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 202" {
			t.Errorf("a report from %s in a flood is answered with %q, %v", address, answer, err)
		}
	}
	door.lock.Lock()
	defer door.lock.Unlock()
	if n := len(door.in); n != mostConnections {
		t.Errorf("%d connections are open, and %d may be", n, mostConnections)
	}
}

// A user with many invalid reports is ignored for a while, which affects no other user.
func TestAUserWhoseReportsAreNoGood(t *testing.T) {
	var text string
	b, now, post := inbox(t, func(_ context.Context, credential []byte) (uint32, []byte, error) {
		uid, payload, _ := strings.Cut(string(credential), " ")
		var id uint32
		_, err := fmt.Sscan(uid, &id)
		return id, []byte(payload), err
	})
	me := os.Getuid()
	var code int
	for i := range mostBlame {
		if code, text, _ = post([]byte("65534 nonsense")); code != http.StatusBadRequest {
			t.Fatalf("report %d: %d %q", i, code, text)
		}
	}
	if code, text, _ = post([]byte(`65534 {"job":"5","steps":1}`)); code != http.StatusTooManyRequests || !strings.Contains(text, "not looked at for a while") {
		t.Errorf("after them a good one: %d %q", code, text)
	}
	if code, text, _ = post(fmt.Appendf(nil, `%d {"job":"1","steps":1}`, me)); code != http.StatusAccepted {
		t.Errorf("another user's report: %d %q", code, text)
	}
	for range mostBlame + 1 { // a report for a job that is not known yet does not count
		code, text, _ = post(fmt.Appendf(nil, `%d {"job":"6","steps":1}`, me))
	}
	if code != http.StatusNotFound {
		t.Errorf("reports of a job that is not known: %d %q", code, text)
	}
	if reports, refused := b.Take(); len(reports) != 1 || refused != 2*mostBlame+2 {
		t.Errorf("%+v and %d refused", reports, refused)
	}
	*now = now.Add(time.Second)
	if code, text, _ = post([]byte(`65534 {"job":"5","steps":1}`)); code != http.StatusAccepted {
		t.Errorf("in the next round: %d %q", code, text)
	}
}

// Bad credentials from an address silence nobody there: a good one has its turn among them. They are opened one by one, and at a
// pace, so that other addresses keep their places and the host its processor.
func TestAnAddressWhoseCredentialsAreNoGood(t *testing.T) {
	var open, most, garbage atomic.Int32
	b := &Inbox{Open: func(_ context.Context, credential []byte) (uint32, []byte, error) {
		if string(credential) == "garbage" {
			garbage.Add(1)
			most.Store(max(most.Load(), open.Add(1)))
			defer open.Add(-1)
			return 0, nil, &Refused{"it is no MUNGE credential"}
		}
		return 7, []byte(`{"job":"1","steps":1}`), nil
	}, Now: time.Now, AtOnce: 2, Patience: time.Minute, Owner: func(cluster.JobID) (uint32, bool) { return 7, true }}
	post := func(address, credential string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/progress", strings.NewReader(credential))
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w
	}
	for i := range mostBlame {
		if w := post(fmt.Sprintf("10.0.0.1:%d", 1000+i), "garbage"); w.Code != http.StatusUnauthorized {
			t.Fatalf("credential %d: %d %s", i, w.Code, w.Body)
		}
	}
	began := time.Now()
	var all sync.WaitGroup
	for range mostBlame {
		all.Go(func() { post("10.0.0.1:9", "garbage") })
	}
	for _, address := range []string{"10.0.0.1:7", "[fd00::1]:7"} {
		if w := post(address, "good"); w.Code != http.StatusAccepted {
			t.Errorf("a good one from %s: %d %s", address, w.Code, w.Body)
		}
	}
	all.Wait()
	if took := time.Since(began); took < (mostBlame-1)*pace || most.Load() != 1 || garbage.Load() != 2*mostBlame {
		t.Errorf("%d bad ones were opened in %v, %d at once", garbage.Load(), took, most.Load())
	}
}

// Text without the form of a credential takes no process.
func TestNonsenseIsNotOpened(t *testing.T) {
	m := Munge{Program: "/nonexistent/unmunge"}
	var refused *Refused
	for _, text := range []string{"", "garbage", "MUNGE:", "MUNGE", ":"} {
		if _, _, err := m.Open(t.Context(), []byte(text)); text != "MUNGE:" && !errors.As(err, &refused) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := m.Open(t.Context(), []byte("MUNGE:AwQD:\n")); err == nil || errors.As(err, new(*Refused)) {
		t.Errorf("a credential by its form is not opened: %v", err)
	}
}
