package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Errors distinguish a wrong configuration from an unreachable service.
func TestWhatCannotBeOpened(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(*config.Config) error
		code int
		want string
	}{
		{"no database", func(c *config.Config) error { _, err := connect.Journal(t.Context(), c); return err }, failure.Misuse, "no database is configured"},
		{"a database that is away", func(c *config.Config) error {
			c.Database.URL = "postgresql://u:secret@/f?host=" + t.TempDir()
			_, err := connect.Journal(t.Context(), c)
			return err
		}, failure.Absent, "the journal cannot be reached at postgresql://u:xxxxx@/f?host="},
		{"an address that is none", func(c *config.Config) error {
			c.Slurm.Address = "::"
			_, err := connect.Slurm(c)
			return err
		}, failure.Misuse, "slurm cannot be set up"},
	} {
		err := c.open(config.Default())
		var f *failure.Error
		if !errors.As(err, &f) || f.Code != c.code || !strings.HasPrefix(f.What, c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	cfg := config.Default()
	if _, err := connect.Daemon(cfg)(t.Context()); !errors.Is(err, daemon.ErrSchema) {
		t.Errorf("the daemon is not told that no schema will come: %v", err)
	}
}

// A round's error names its source, once.
func TestRoundFailed(t *testing.T) {
	away := &net.OpError{Op: "dial", Net: "unix", Err: errors.New("no such file")}
	worded := &failure.Error{Code: failure.No, What: "said already"}
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{worded, failure.No, "said already"},
		{fmt.Errorf("look at the cluster: %w", away), failure.Absent, "Slurm does not answer at "},
		{fmt.Errorf("%w: %w", loop.ErrJournal, store.ErrDenied), failure.No, "the journal could not be read or written"},
		{fmt.Errorf("%w: it goes backwards", daemon.ErrClock), failure.No, "no round was made"},
		{fmt.Errorf("%w: %w", daemon.ErrCluster, errors.New("x")), failure.Misuse, daemon.ErrCluster.Error()},
		{fmt.Errorf("%w: %w", daemon.ErrCells, config.Problems{{}}), failure.Misuse, daemon.ErrCells.Error()},
		{errors.New("odd"), failure.No, "no round could be made"},
	} {
		var f *failure.Error
		if err := connect.RoundFailed(config.Default(), c.err); !errors.As(err, &f) || f.Code != c.code || !strings.HasPrefix(f.What, c.want) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if err := connect.RoundFailed(config.Default(), context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt is worded: %v", err)
	}
	if err := connect.JournalFailed(nil); err != nil {
		t.Error(err)
	}
	if next := connect.OrRole(store.ErrDenied, "x") + connect.OrRole(errors.New("y"), ", else x"); !strings.HasSuffix(next, "(see ROLES in fairlease(1)), else x") {
		t.Errorf("%q", next)
	}
}

// A journal without a store is empty, and a read-only one rejects writes.
func TestReadOnlyJournal(t *testing.T) {
	j := connect.ReadOnlyJournal(nil)
	if m, err := j.Open(t.Context()); err != nil || m.Round != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if orders, err := j.Overrides(t.Context(), 0); err != nil || orders != nil {
		t.Errorf("%+v, %v", orders, err)
	}
	for _, err := range []error{j.Commit(t.Context(), cluster.Snapshot{}, cluster.Plan{}), j.Enrol(t.Context(), nil), j.Settle(t.Context(), cluster.Plan{}, nil)} {
		if err == nil {
			t.Error("it was written to")
		}
	}
}
