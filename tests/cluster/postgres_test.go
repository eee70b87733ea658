package testcluster_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

// ask runs a query with psql.
func ask(p *testcluster.Postgres, query string) (string, error) {
	out, err := exec.Command("psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command="+query, p.DSN()).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestPostgres(t *testing.T) {
	seeds.Slow(t)
	p, other := testcluster.PostgresForTest(t), testcluster.PostgresForTest(t)
	ctx := t.Context()
	if out, err := ask(p, "create table t as select 7 as n"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := ask(other, "select count(*) from pg_tables where tablename = 't'"); err != nil || out != "0" {
		t.Errorf("two servers share a table: %s, %v", out, err)
	}
	for _, c := range []struct {
		name string
		end  func(context.Context) error
	}{{"kill", p.Kill}, {"stop", p.Stop}} {
		name := c.name
		if err := c.end(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if out, err := ask(p, "select 1"); err == nil {
			t.Errorf("after %s it answers %s", name, out)
		}
		if err := p.Start(ctx); err != nil {
			t.Fatalf("start after %s: %v", name, err)
		}
		if out, err := ask(p, "select n from t"); err != nil || out != "7" {
			t.Errorf("after %s it has %s, %v", name, out, err)
		}
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	hung, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := exec.CommandContext(hung, "psql", "--command=select 1", p.DSN()).Run(); err == nil || hung.Err() == nil {
		t.Errorf("a frozen server answers: %v", err)
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	if out, err := ask(p, "select n from t"); err != nil || out != "7" {
		t.Errorf("once it is thawed it has %s, %v", out, err)
	}
	if err := other.Down(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.Dir); err == nil {
		t.Errorf("%s is still there", other.Dir)
	}
}

func TestNamedPostgres(t *testing.T) {
	seeds.Slow(t)
	testcluster.PostgresForTest(t) // skips where there is none
	name := "test-named"
	t.Cleanup(func() { testcluster.PostgresDown(name) })
	if err := testcluster.PostgresDown(name); err != nil {
		t.Fatal(err)
	}
	if _, err := testcluster.PostgresUp(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := testcluster.PostgresUp(t.Context(), name); err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Errorf("the same server twice: %v", err)
	}
	if err := testcluster.PostgresDown(name); err != nil {
		t.Error(err)
	}
}
