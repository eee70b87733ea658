package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/store"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// onJournal measures how the journal grows in a real PostgreSQL, by so many hours of a simulated cluster after the first
// half, and by a sixth of them where gates are begin times. There, 1,000 jobs run and 50,000 wait; one ends and another comes about every ten seconds, so no round is quiet.
func onJournal(hours float64) error {
	if err := journalGrowth("", 1_000_000, hours); err != nil {
		return err
	}
	return journalGrowth("_begin", 0, hours/6)
}

// scribe is a journal whose commits are timed.
type scribe struct {
	*store.Journal
	commits []time.Duration
	rounds  int
}

func (s *scribe) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	begin := time.Now()
	err := s.Journal.Commit(ctx, snap, plan)
	s.commits = append(s.commits, time.Since(begin))
	s.rounds++
	return err
}

// leading opens the journal at dsn with a new schema ("" = the usual one), and takes the lead. The caller closes the store.
func leading(ctx context.Context, dsn, schema string) (*store.Store, *store.Leadership, error) {
	if _, _, err := migrate.Up(ctx, dsn, cmp.Or(schema, migrate.Schema), func(string) {}); err != nil {
		return nil, nil, err
	}
	st, err := store.Open(ctx, store.Config{DSN: dsn, Schema: schema, Takeover: time.Hour})
	if err != nil {
		return nil, nil, err
	}
	lead, err := st.Acquire(ctx, "bench")
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	return st, lead, nil
}

// journalGrowth measures it with gates by licences, or by begin times if there are none. Names of figures end with end.
func journalGrowth(end string, licenses int64, hours float64) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	server, err := testcluster.StartPostgres(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Down()) }()
	st, lead, err := leading(ctx, server.DSN(), "")
	if err != nil {
		return err
	}
	defer st.Close()
	db, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }()

	v := crowdedSite(375, 50_000, 10*cluster.Second, licenses)
	v.Lend = true // jobs that have not changed are known, as they are on a Slurm
	journal := &scribe{Journal: lead.Journal()}
	settings := config.Default().Settings()
	l := &loop.Loop{Cluster: v, Journal: journal, Decide: new(engine.Decider).Decide, Brief: true,
		Configure: func() (loop.Rules, cluster.Settings) {
			return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, settings
		}}
	// Simulated time runs ten to twenty times as fast: so does what looks every minute for tables to be vacuumed.
	for _, text := range []string{"alter system set autovacuum_naptime = '3s'", "select pg_reload_conf()"} {
		if _, err := db.Exec(ctx, text); err != nil {
			return err
		}
	}
	run := func(span cluster.Span) error { return sim.Run(ctx, v, l, settings.Interval, v.Now().Add(span), nil) }
	fmt.Printf("50,000 jobs wait and 1,000 run, one ends about every 10 s; gates by %s; %s\n", map[bool]string{true: "licence", false: "begin time"}[licenses > 0], machine())
	if err := run(cluster.Span(warmUp * float64(cluster.Hour))); err != nil {
		return err
	}
	if err := tables(ctx, db, "after the first half hour"); err != nil {
		return err
	}
	before, log, err := footprint(ctx, db)
	if err != nil {
		return err
	}
	journal.rounds = 0
	begin := meter()
	if err := run(cluster.Span(hours * float64(cluster.Hour))); err != nil {
		return err
	}
	took := meter().over(begin, journal.rounds)
	if err := tables(ctx, db, "at the end"); err != nil {
		return err
	}
	after, logged, err := footprint(ctx, db)
	if err != nil {
		return err
	}
	day := 24 / hours / (1 << 20)
	slowest, at := time.Duration(0), 0
	for i, took := range journal.commits {
		if took > slowest {
			slowest, at = took, i+1
		}
	}
	fmt.Printf("%g hours, %d rounds: %.1f MiB in tables and indexes a day, %.1f MiB of WAL a day; the first commit took %s, the slowest, the %dth of %d, %s\n", hours,
		journal.rounds, float64(after-before)*day, float64(logged-log)*day, journal.commits[0].Round(time.Millisecond), at, len(journal.commits), slowest.Round(time.Millisecond))
	figure("journal_mib_per_day_50k"+end, float64(after-before)*day, "MiB")
	figure("commit_busiest"+end+"_ms", slowest.Seconds()*1e3, "ms")
	timed("journal_round_50k"+end+"_ms", took) // all but Slurm: simulation, decision and commit
	return nil
}

// warmUp is how many hours pass before the growth is measured.
const warmUp = 0.5

// crowdedSite makes a cluster whose nodes of 8 GPUs, of two models, are full with jobs of 20 tenants that never save, with so many
// more that wait; another comes every so often.
func crowdedSite(nodesThere, waiting int, every cluster.Span, licenses int64) *sim.Virtual {
	const tenants, users = 20, 10
	random := rand.New(rand.NewPCG(7, 7))
	var nodes []cluster.Node
	for i := range nodesThere {
		nodes = append(nodes, cluster.Node{Name: fmt.Sprintf("gpu%04d", i+1), GPUs: []cluster.GPUs{{Model: []string{"a100", "h100"}[i%2], Count: 8}},
			CPUs: 128, MemoryMB: 1 << 20, Partitions: []string{"gpu"}})
	}
	accounts := []cluster.Account{{Name: "root"}}
	for t := range tenants {
		accounts = append(accounts, cluster.Account{Name: fmt.Sprintf("tenant%02d", t), Parent: "root", Shares: int64(1 + t%5)})
	}
	v := sim.NewVirtual(1_800_000_000_000, nodes, accounts)
	v.Gate, v.License, v.Forget = 10*cluster.Minute, licenses, true
	next := func() sim.Work {
		t := random.IntN(tenants)
		gpus := []int{1, 2, 4, 8}[random.IntN(4)]
		model := []string{"", "a100", "h100"}[random.IntN(3)]
		runs := cluster.Span(random.ExpFloat64()*2.8*float64(cluster.Hour)) + cluster.Minute
		return sim.Work{Name: fmt.Sprintf("train-%d", random.IntN(500)), User: fmt.Sprintf("user%02d%d", t, random.IntN(users)),
			Account: fmt.Sprintf("tenant%02d", t), QOS: "normal", Partition: "gpu", Command: fmt.Sprintf("/home/shared/train%d.sh", random.IntN(40)),
			Request: cluster.Request{Size: cluster.Whole(gpus), Nodes: 1, PerNode: gpus, Model: model, CPUs: 8 * gpus, MemoryMB: int64(gpus) * 65536},
			Runs:    runs, Limit: 2*runs + cluster.Hour, Saves: sim.Never}
	}
	for range waiting + nodesThere*8/3 {
		v.Submit(next())
	}
	at := v.Now()
	v.Feed(func(yield func(sim.Arrival) bool) {
		for {
			at = at.Add(cluster.Span(random.ExpFloat64() * float64(every)))
			if !yield(sim.Arrival{At: at, Work: next()}) {
				return
			}
		}
	})
	return v
}

// footprint gives the bytes of the database after a vacuum, and those of WAL so far.
func footprint(ctx context.Context, db *pgx.Conn) (size, log int64, err error) {
	err = db.QueryRow(ctx, "select pg_current_wal_lsn() - '0/0'").Scan(&log)
	if err != nil {
		return 0, 0, err
	}
	if _, err := db.Exec(ctx, "vacuum"); err != nil {
		return 0, 0, err
	}
	err = db.QueryRow(ctx, "select pg_database_size(current_database())").Scan(&size)
	return size, log, err
}

// tables prints the largest tables.
func tables(ctx context.Context, db *pgx.Conn, when string) error {
	rows, err := db.Query(ctx, `select relname, pg_total_relation_size(relid), pg_indexes_size(relid), n_tup_ins, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables order by 2 desc limit 12`)
	if err != nil {
		return err
	}
	fmt.Println(when + ":")
	var table string
	var all, indexes, inserted, updated, hot int64
	_, err = pgx.ForEachRow(rows, []any{&table, &all, &indexes, &inserted, &updated, &hot}, func() error {
		fmt.Printf("  %-22s %8.1f MiB, of it indexes %7.1f; %d rows written, %d rewritten (%d in place)\n", table, float64(all)/(1<<20), float64(indexes)/(1<<20), inserted, updated, hot)
		return nil
	})
	return err
}
