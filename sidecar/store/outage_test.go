package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

func TestPostgresGoneForAWhile(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	p := testcluster.PostgresForTest(t)
	if _, _, err := migrate.Up(t.Context(), p.DSN(), migrate.Schema, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{DSN: p.DSN(), Takeover: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lead, err := s.Acquire(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	story := journaltest.NewStory(1, 4, 20)
	for _, end := range []func(context.Context) error{p.Kill, p.Stop} {
		snap, plan := story.Next()
		if err := j.Commit(t.Context(), snap, plan); err != nil {
			t.Fatal(err)
		}
		written := plan.State
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcomes := make([]cluster.Outcome, len(plan.Actions))
		next, nextPlan := story.Next()
		_, overrides := j.Overrides(t.Context(), plan.At)
		_, open := s.Leader(t.Context())
		for what, err := range map[string]error{
			"commit": j.Commit(t.Context(), next, nextPlan), "settle": j.Settle(t.Context(), plan, outcomes),
			"keep": lead.Keep(t.Context()), "overrides": overrides, "leading": open,
		} {
			if err == nil || errors.Is(err, ErrDeposed) {
				t.Errorf("%s without PostgreSQL: %v", what, err)
			}
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		memory, err := j.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written, memory, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("PostgreSQL came back with another memory:\n%s", diff)
		}
		if err := j.Settle(t.Context(), plan, outcomes); err != nil {
			t.Errorf("the round from before cannot be settled: %v", err)
		}
		if err := j.Commit(t.Context(), next, nextPlan); err != nil {
			t.Errorf("work does not go on: %v", err)
		}
	}
}

// cutter makes connections that can be cut after a commit was carried out and before its answer
// arrives.
type cutter struct{ armed atomic.Bool }

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn
	cutter    *cutter
	committed atomic.Bool
}

func (c *cutConn) Write(text []byte) (int, error) {
	if c.cutter.armed.Load() && bytes.Contains(text, []byte("commit\x00")) {
		c.committed.Store(true)
	}
	return c.Conn.Write(text)
}

func (c *cutConn) Read(text []byte) (int, error) {
	n, err := c.Conn.Read(text)
	if err == nil && c.committed.Load() { // the server's answer is lost
		c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestACommitOfUnknownFate(t *testing.T) {
	t.Parallel()
	var c cutter
	s, err := open(t.Context(), Config{DSN: storetest.Database(t)}, c.dial)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lead, err := s.Acquire(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	story := journaltest.NewStory(1, 4, 20)
	snap, plan := story.Next()
	if err := j.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	c.armed.Store(true)
	snap, plan = story.Next()
	if err := j.Commit(t.Context(), snap, plan); err == nil {
		t.Fatal("a commit that was never answered succeeded")
	}
	c.armed.Store(false)
	// It was written. Neither it nor the next may be encoded as a difference to the round before
	// it.
	if err := j.Commit(t.Context(), snap, plan); !errors.Is(err, errStale) {
		t.Errorf("the same round again: %v", err)
	}
	nextSnap, next := story.Next()
	if err := j.Commit(t.Context(), nextSnap, next); !errors.Is(err, errStale) {
		t.Errorf("the next round without opening again: %v", err)
	}
	memory, err := j.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.State, memory, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("opened again it gives another memory:\n%s", diff)
	}
	if err := j.Commit(t.Context(), nextSnap, next); err != nil {
		t.Error(err)
	}
}

func TestAHungDaemonIsTakenOver(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{DSN: storetest.Database(t), Takeover: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hung, err := s.Acquire(t.Context(), "hung")
	if err != nil {
		t.Fatal(err)
	}
	held, done := make(chan struct{}), make(chan error, 1)
	release := sync.OnceFunc(func() { close(held) })
	defer release() // else closing the store waits for it
	go func() {
		done <- hung.inTerm(context.Background(), func(tx pgx.Tx) error {
			<-held // with the lead's row locked
			_, err := tx.Exec(context.Background(), "insert into fairlease.tenants (name, weight) values ('ghost', 1)")
			return err
		})
	}()
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := s.Acquire(t.Context(), "next")
		var taken *TakenError
		if err == nil {
			break
		}
		if !errors.As(err, &taken) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	release()
	if err := <-done; err == nil {
		t.Error("the hung daemon could still write")
	}
	var ghosts int
	if err := s.pool.QueryRow(t.Context(), "select count(*) from fairlease.tenants").Scan(&ghosts); err != nil || ghosts != 0 {
		t.Errorf("%d rows of the hung daemon (%v)", ghosts, err)
	}
}
