package store_test

import (
	"context"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// TestTheBooksOfARealEngine runs the engine on a virtual cluster for some hours, with the journal
// in PostgreSQL, and daemons that die now and then.
func TestTheBooksOfARealEngine(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	nodes := append(simtest.Nodes("k", "k80", 2, 4), simtest.Nodes("v", "v100", 2, 8)...)
	w := simtest.New(t, simtest.Product(), nodes, "bio", "chem", "idle")
	for hour := range seeds.Some(3, 6) {
		lapse(t, db)
		w.Loop = &loop.Loop{Cluster: w.Loop.Cluster, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Configure: w.Loop.Configure}
		for i := range 4 {
			w.Submit("bio", 2, 1<<i, cluster.Span(7+13*i)*cluster.Minute+cluster.Span(hour)*1234)
			w.Submit("chem", 1, 1<<(3-i), cluster.Span(90-20*i)*cluster.Minute+cluster.Span(hour)*777)
		}
		w.Run(cluster.Hour + 7*cluster.Second)
	}
	l := &life{t: t, store: s, db: db}
	_, plan, err := s.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var accounts []account
	for _, a := range plan.State.Ledger.Tenants {
		if a.Alloc > 0 {
			accounts = append(accounts, account{a.Tenant, a.Pool, a.Alloc})
		}
	}
	if len(accounts) != 4 {
		t.Errorf("only %v received anything", accounts)
	}
	same(l, "charges against the ledger", accounts,
		"select tenant, pool, sum(gpu_ms)::bigint from fairlease.charges group by 1, 2 order by 1, 2")
	type count struct{ N int64 }
	same(l, "charges to no user", []count{{0}}, "select count(*) from fairlease.charges where user_name = ''")
	same(l, "pools that do not balance", []count{{0}}, "select count(*) from fairlease.pool_balance where unaccounted_gpu_ms <> 0")
	type odd struct {
		Job         int64
		Alloc, Sum  int64
		Terms, Rows int64
	}
	same(l, "done jobs whose leases do not sum to what they received", []odd{},
		`with summed as (
			select j.key, j.alloc_gpu_ms, coalesce(sum(l.gpu_ms), 0)::bigint as gpu_ms, j.terms, count(*)
			from fairlease.jobs j join fairlease.leases l on l.job_key = j.key where j.state = 'done' group by j.key
		)
		select * from summed where alloc_gpu_ms <> gpu_ms`)
	same(l, "leases", []count{{int64(len(plan.State.Leases))}}, "select count(*) from fairlease.leases where ended_at is null")
	// A reclaimed lease ends when its GPUs are seen free: until then they were cleaning up, which
	// is charged to no tenant.
	// So does a renewed lease whose successor was recalled before it began.
	same(l, "leases that were not charged for as long as they were held", []odd{},
		`with held as (
			select job_key, gpu_ms, (gpus * extract(epoch from ended_at - started_at) * 1000)::bigint as want, gpus * 20000::bigint as slack,
				why in ('reclaimed', 'recalled') or why = 'renewed' and exists (
					select from fairlease.leases n where n.job_key = l.job_key and n.term = l.term + 1 and n.started_at is null and n.why = 'recalled') as cleaned
			from fairlease.leases l where started_at is not null and gpu_ms is not null
		)
		select job_key, gpu_ms, want, 0::bigint, 0::bigint from held
		where gpu_ms <> want and (not cleaned or gpu_ms > want or gpu_ms < want - slack)`)
	type kinds struct{ Finished, Renewed, Reclaimed bool }
	same(l, "kinds of ends in this story", []kinds{{true, true, true}},
		"select bool_or(why = 'finished'), bool_or(why = 'renewed'), bool_or(why = 'reclaimed') from fairlease.leases")
}

// limited is a cluster with limits, which slurmdbd gives while it is there.
type limited struct {
	loop.Cluster
	limits cluster.Limits
	away   bool
}

func (c *limited) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := c.Cluster.Observe(ctx, since)
	if seen.Limits = (cluster.Limits{}); !c.away {
		seen.Limits = c.limits
		seen.Limits.Read = seen.Now
	}
	return seen, err
}

// The last known limits hold for a daemon that starts while slurmdbd is away, and for the next one, too. When slurmdbd is back,
// its own do.
func TestLimitsOutliveADaemonWithoutSlurmdbd(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 8), "bio", "chem")
	slurm := &limited{Cluster: w.Loop.Cluster}
	slurm.limits.Associations = []cluster.Association{{Account: "bio", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 3}}}}
	var recalled *cluster.Limits
	w.Check = func(r loop.Report) { recalled = r.Recalled }
	run := func(what string, holds int) { // 6 = 6 or more
		t.Helper()
		lapse(t, db)
		w.Loop = &loop.Loop{Cluster: slurm, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Configure: w.Loop.Configure}
		w.Run(cluster.Hour + 7*cluster.Second)
		if got := min(w.Standing("bio", "v100").Holds, cluster.CountOf(6)); got != cluster.CountOf(holds) {
			t.Errorf("%s: bio holds %s GPUs, want %d", what, got, holds)
		}
		if want := slurm.away && holds < 6; (recalled != nil) != want {
			t.Errorf("%s: limits of before the start: %+v, want some: %v", what, recalled, want)
		}
	}
	run("nothing waits", 0)
	w.Submit("chem", 10, 1, 30*cluster.Hour)
	w.Run(cluster.Minute)
	w.Gate = 1000 * cluster.Hour // jobs wait for fairlease from now on
	w.Submit("bio", 10, 1, 30*cluster.Hour)
	read := w.Now()
	run("slurmdbd is there", 3)
	slurm.away = true
	run("a daemon starts without slurmdbd", 3)
	run("and another one", 3)
	if recalled == nil || recalled.Read < read || recalled.Read > read.Add(2*cluster.Hour) {
		t.Errorf("the limits are %+v, want those of about %s", recalled, read)
	}
	slurm.away, slurm.limits.Associations[0].Caps = false, []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 5}}
	run("slurmdbd is back", 5)
	slurm.limits.Associations = nil
	run("no limit is left", 6)
	slurm.away = true
	run("none was known", 6)
}
