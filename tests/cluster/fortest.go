package testcluster

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// noCluster names an environment variable that, when it is set, leaves out all tests that need a cluster.
const noCluster = "FAIRLEASE_NO_CLUSTER"

// ForTest boots a cluster for one test, ended with it. It skips the test when there is no root, FAIRLEASE_NO_CLUSTER is set, or
// auth/jwt is wanted and cannot be built, or a freezer and there is none; anything else that goes wrong fails the test.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	SkipUnlessRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	o.Attached = true
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	c, err := Up(ctx, o)
	if errors.Is(err, ErrNoSource) || errors.Is(err, ErrNoFreezer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("slurmctld of cluster %s: %s", c.Name, c.logTail(Slurmctld))
		}
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// SkipUnlessRoot skips a test that needs root, with the reason.
func SkipUnlessRoot(t testing.TB) {
	t.Helper()
	if os.Getenv(noCluster) != "" {
		t.Skip("needs a real Slurm, and " + noCluster + " is set")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs a real Slurm, which needs root: run as root")
	}
}

// PostgresForTest starts a private PostgreSQL for one test, ended with it. It skips the test when PostgreSQL is not installed.
func PostgresForTest(t testing.TB) *Postgres {
	t.Helper()
	if _, err := PostgresTool("initdb"); err != nil {
		t.Skip(err)
	}
	p, err := StartPostgres(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Down(); err != nil {
			t.Error(err)
		}
	})
	return p
}
