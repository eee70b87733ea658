package syslog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon/syslog"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// server is a syslog that keeps what it gets.
type server struct{ net.PacketConn }

func listen(t *testing.T, network, address string) server {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return server{conn}
}

// got gives the lines that came, without the head of syslog.
func (s server) got(t *testing.T) (lines []string) {
	t.Helper()
	buffer := make([]byte, 1<<16)
	for {
		if err := s.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, _, err := s.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(buffer[:n]))
	}
}

// keys gives the keys and the new values of lines.
func keys(lines []string) (out []string) {
	for _, l := range lines {
		if m := regexp.MustCompile(` key="(.*)" before=.* now=(.*) round=`).FindStringSubmatch(l); m != nil {
			out = append(out, m[1]+"="+strings.Trim(m[2], `"`))
		} else {
			out = append(out, l)
		}
	}
	return out
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// desk is a journal with a leader, and what sends its record.
type desk struct {
	*store.Store
	lead   *store.Leadership
	sender *syslog.Sender
	values map[string]string
}

func open(t *testing.T) *desk {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DSN: storetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Store: s, lead: lead, sender: &syslog.Sender{}, values: map[string]string{}}
	if err := d.send(t.Context()); err != nil { // the migrations
		t.Fatal(err)
	}
	return d
}

func (d *desk) send(ctx context.Context) error { return d.sender.Send(ctx, store.Syslog{Lead: d.lead}) }

// set records settings: pairs of keys and values, as of a round.
func (d *desk) set(t *testing.T, round int64, pairs ...string) {
	t.Helper()
	off := "off"
	var list []store.Setting
	for i := 0; i < len(pairs); i += 2 {
		d.values[pairs[i]] = pairs[i+1]
	}
	for i, key := range []string{"audit.syslog", "lease.term", "mode"} {
		if value, ok := d.values[key]; ok {
			list = append(list, store.Setting{Ordinal: i, Kind: store.OfSetting, Key: key, Value: value, Default: &off, By: "ann", Why: "reload"})
		}
	}
	d.lead.Propose(list)
	if err := d.lead.Record(t.Context(), round); err != nil {
		t.Fatal(err)
	}
}

// Each change goes to the place of its time, once, also if the daemon starts anew. Rows that waited while the socket was dead come when it lives.
func TestSend(t *testing.T) {
	t.Parallel()
	d := open(t)
	socket := filepath.Join(t.TempDir(), "log")
	first := listen(t, "unixgram", socket)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d.set(t, 1, "lease.term", "10m")
	must(d.send(t.Context()))
	d.set(t, 2, "audit.syslog", "unix:"+socket, "mode", "act\nforged")
	must(d.send(t.Context()))
	must(d.send(t.Context()))
	lines := first.got(t)
	want(t, "on", keys(lines), "audit.syslog=unix:"+socket, `mode=act\nforged`)
	shape := regexp.MustCompile(`^<85>[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d fairlease\[\d+\]: by="ann" kind=setting key="audit.syslog" before="off" now="unix:\S+" round=2 at=\S+Z why="reload" database_user="\w+" id=\d+$`)
	if len(lines) > 0 && !shape.MatchString(lines[0]) {
		t.Errorf("a line is %q", lines[0])
	}

	must(first.Close())
	d.set(t, 3, "lease.term", "15m")
	if err := d.send(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dead socket: %v", err)
	}
	if x, err := d.Administration.Syslog(t.Context()); err != nil || x.Waiting != 1 || x.Since == nil || !strings.Contains(x.Error, socket) {
		t.Errorf("what waits: %+v, %v", x, err)
	}
	d.sender = &syslog.Sender{} // a new process
	_ = os.Remove(socket)
	first = listen(t, "unixgram", socket)
	must(d.send(t.Context()))
	must(d.send(t.Context()))
	want(t, "alive again", keys(first.got(t)), "lease.term=15m")
	if x, err := d.Administration.Syslog(t.Context()); err != nil || x != (store.SyslogState{}) {
		t.Errorf("nothing waits: %+v, %v", x, err)
	}

	second := listen(t, "udp", "127.0.0.1:0")
	place := "udp://" + second.LocalAddr().String()
	d.set(t, 4, "audit.syslog", place, "lease.term", "20m")
	d.set(t, 5, "mode", "observe")
	must(d.send(t.Context()))
	want(t, "the place that is left", keys(first.got(t)), "audit.syslog="+place, "lease.term=20m")
	lines = second.got(t)
	want(t, "the other place", keys(lines), "audit.syslog="+place, "lease.term=20m", "mode=observe")
	if shape := regexp.MustCompile(`^<85>1 \d{4}-\d\d-\d\dT\S+Z \S+ fairlease \d+ audit - by=`); len(lines) > 0 && !shape.MatchString(lines[0]) {
		t.Errorf("a line is %q", lines[0])
	}
	d.set(t, 6, "lease.term", "30m")
	d.set(t, 7, "audit.syslog", "off")
	d.set(t, 8, "lease.term", "1h")
	must(d.send(t.Context()))
	want(t, "off", keys(second.got(t)), "lease.term=30m", "audit.syslog=off")
	want(t, "the first place", keys(first.got(t)))
}

// A host without a server of syslog refuses datagrams. The rows go on waiting, and are sent when a server is there.
func TestRefused(t *testing.T) {
	t.Parallel()
	d := open(t)
	was := listen(t, "udp", "127.0.0.1:0")
	at := was.LocalAddr().String()
	_ = was.Close()
	d.set(t, 1, "audit.syslog", "udp://"+at)
	if err := d.send(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("no server: %v", err)
	}
	now := listen(t, "udp", at)
	if err := d.send(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "later", keys(now.got(t)), "audit.syslog=udp://"+at)
}

// A server that does not read gets no more once its queue is full: the sender gives up after its patience. Lines that were taken are not sent again.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	d := open(t)
	socket := filepath.Join(t.TempDir(), "log")
	deaf := listen(t, "unixgram", socket)
	d.set(t, 1, "audit.syslog", "unix:"+socket)
	var err error
	sent := 1
	for round := int64(2); err == nil && round < 5000; round++ {
		for ; err == nil && round%50 != 0; round++ {
			d.set(t, round, "lease.term", fmt.Sprint(round))
			sent++
		}
		err = d.send(t.Context())
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("after %d lines: %v", sent, err)
	}
	again := make(chan error, 1)
	go func() { again <- d.send(t.Context()) }()
	var lines []string
	for len(again) == 0 { // it reads now
		lines = append(lines, deaf.got(t)...)
	}
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	lines = append(lines, deaf.got(t)...)
	seen := map[string]bool{}
	for _, l := range keys(lines) {
		seen[l] = true
	}
	if len(lines) != sent || len(seen) != sent {
		t.Errorf("%d changes made %d lines, %d of them different", sent, len(lines), len(seen))
	}
}

// Long texts are cut, so that no server of syslog does it in the middle of what comes later.
func TestLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1000)
	l := syslog.Line(&store.Act{ID: 7, Kind: store.OfSetting, Key: "saves", After: &long, By: "a \"b\"", Why: "reload"})
	if len(l) > 1000 || !strings.HasPrefix(l, `by="a \"b\"" kind=setting key="saves" before=- now="ääää`) || !strings.HasSuffix(l, " id=7") || !strings.Contains(l, `ä…" round=0 `) {
		t.Errorf("%d bytes: %s", len(l), l)
	}
}
