package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// life runs a story with a daemon's journal: rounds are committed, with a restart now and then.
type life struct {
	t       *testing.T
	store   *store.Store
	db      *pgx.Conn
	journal *store.Journal
	story   *journaltest.Story
}

func newLife(t *testing.T, c store.Config, story *journaltest.Story) *life {
	t.Helper()
	c.DSN = storetest.Database(t)
	l := &life{t: t, store: openStore(t, c), db: storetest.Connect(t, c.DSN), story: story}
	l.restart()
	return l
}

func (l *life) restart() {
	l.t.Helper()
	lapse(l.t, l.db)
	l.journal = takeLead(l.t, l.store).Journal()
	if _, err := l.journal.Open(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) round() (cluster.Snapshot, cluster.Plan) {
	l.t.Helper()
	snap, plan := l.story.Next()
	l.commit(snap, plan)
	return snap, plan
}

func (l *life) commit(snap cluster.Snapshot, plan cluster.Plan) {
	l.t.Helper()
	if err := l.journal.Commit(l.t.Context(), snap, plan); err != nil {
		l.t.Fatal(err)
	}
}

// ask gives the rows of a query, one T each, by position.
func ask[T any](l *life, query string, args ...any) []T {
	l.t.Helper()
	rows, err := l.db.Query(l.t.Context(), query, args...)
	if err != nil {
		l.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		l.t.Fatalf("%s: %v", query, err)
	}
	return all
}

// same fails unless the query gives what is wanted, in any order.
func same[T any](l *life, what string, want []T, query string, args ...any) {
	l.t.Helper()
	less := cmpopts.SortSlices(func(a, b T) bool { return cmp.Diff(a, b) < cmp.Diff(b, a) })
	if len(want) > 50 {
		less = cmpopts.EquateEmpty() // given in order
	}
	if diff := cmp.Diff(want, ask[T](l, query, args...), less, cmpopts.EquateEmpty()); diff != "" {
		l.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type account struct {
	Tenant, Pool string
	Time         cluster.GPUTime
}

type charge struct {
	Day                time.Time
	Tenant, User, Pool string
	Time               cluster.GPUTime
}

type lent struct {
	Pool string
	Time string
}

// TestTheBooksAgree runs a story across midnight, with restarts, in rounds off the boundaries of
// terms, and recounts everything.
func TestTheBooksAgree(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	story := journaltest.NewStory(1, 6, 30)
	story.Turn, story.Term, story.Notice = 7*cluster.Second+3, 3*cluster.Minute, 25*cluster.Second
	l := newLife(t, store.Config{}, story)
	wantCharges := map[charge]cluster.GPUTime{}
	wantLent := map[string]int64{}
	before := map[cluster.JobKey]cluster.Record{}
	var plan cluster.Plan
	midnight := cluster.Instant(1772409600000)
	lastDay, nextDay := midnight.Time().AddDate(0, 0, -1), midnight.Time()
	for i := range 300 {
		was := plan
		_, plan = l.round()
		from, to := was.At, plan.At
		for _, r := range plan.State.Records {
			b := before[r.Key]
			if d := int64(r.Alloc - b.Alloc); d != 0 {
				early := int64(0)
				if to <= midnight || d < 0 && from < midnight { // a stop's loss belongs to one moment
					early = d
				} else if from < midnight {
					early = d * int64(midnight-from) / int64(to-from)
				}
				wantCharges[charge{lastDay, r.Tenant, r.User, b.Held[0].Model, 0}] += cluster.GPUTime(early)
				wantCharges[charge{nextDay, r.Tenant, r.User, b.Held[0].Model, 0}] += cluster.GPUTime(d - early)
			}
			before[r.Key] = r
		}
		for pool, rate := range lentRates(was) {
			wantLent[pool] += rate * int64(to-from)
		}
		if i%41 == 40 {
			l.restart()
		}
	}
	if plan.At < midnight+cluster.Instant(20*cluster.Minute) {
		t.Fatalf("the story ends at %s, before the next day", plan.At)
	}

	var accounts []account
	for _, a := range plan.State.Ledger.Tenants {
		if a.Alloc > 0 {
			accounts = append(accounts, account{a.Tenant, a.Pool, a.Alloc})
		}
	}
	same(l, "charges against the ledger", accounts,
		"select tenant, pool, sum(gpu_ms)::bigint from fairlease.charges group by 1, 2 order by 1, 2")
	var charges []charge
	for key, sum := range wantCharges {
		if key.Time = sum; sum != 0 {
			charges = append(charges, key)
		}
	}
	got := map[charge]bool{}
	for _, c := range ask[charge](l, "select day::timestamp at time zone 'UTC', tenant, user_name, pool, gpu_ms from fairlease.charges") {
		c.Day = c.Day.UTC()
		got[c] = true
	}
	for _, c := range charges {
		if !got[c] {
			t.Errorf("no charge %v", c)
		}
	}
	if len(got) != len(charges) {
		t.Errorf("%d charges, want %d", len(got), len(charges))
	}

	// Leases: an ended lease was charged for exactly as long as it was held, less the loss of its
	// end, and a job's leases sum to what it received.
	type odd struct {
		Job  int64
		Term int
		Time *int64
		Want int64
	}
	same(l, "leases that are over", []odd{},
		`with held as (
			select l.job_key, term, l.gpu_ms, coalesce(gpus * extract(epoch from ended_at - started_at) * 1000, 0)::bigint - coalesce(x.gpu_ms, 0) as want
			from fairlease.leases l
			left join fairlease.losses x on x.job_key = l.job_key and x.lease_term = l.term
			where ended_at <= (select max(at) from fairlease.rounds)
		)
		select * from held where gpu_ms is distinct from want`)
	type total struct {
		Job  cluster.JobKey
		Time cluster.GPUTime
	}
	var totals []total
	for _, r := range before {
		if r.Terms > 0 && (r.Done != 0 || r.State == cluster.Waiting) {
			totals = append(totals, total{r.Key, r.Alloc})
		}
	}
	if len(totals) < 50 {
		t.Fatalf("the story has only %d jobs to look at", len(totals))
	}
	gotTotals := map[total]bool{}
	for _, row := range ask[total](l, "select job_key, coalesce(sum(gpu_ms), 0)::bigint from fairlease.leases group by 1") {
		gotTotals[row] = true
	}
	for _, want := range totals {
		if !gotTotals[want] {
			t.Errorf("the leases of job %d do not sum to the %d that it received", want.Job, want.Time)
		}
	}

	var pools []lent
	for pool, micro := range wantLent {
		pools = append(pools, lent{pool, millionths(micro)})
	}
	same(l, "lending by day against the standings", pools,
		"select pool, sum(gpu_ms)::text from fairlease.lending_days group by 1")

	var lost, known, unknown cluster.GPUTime
	for _, r := range before {
		lost, known, unknown = lost+r.Lost, known+r.KnownLost, unknown+r.UnknownLost
	}
	type one struct{ N int64 }
	if lost == 0 {
		t.Fatal("nothing was lost in this story")
	}
	same(l, "work lost", []one{{int64(lost)}}, "select sum(gpu_ms)::bigint from fairlease.losses")
	var most cluster.GPUTime
	for _, r := range before {
		most += r.MostLost
	}
	same(l, "work lost at most", []one{{int64(most)}}, "select sum(most_gpu_ms)::bigint from fairlease.work_lost")
	type sure struct {
		Certainty string
		Time      cluster.GPUTime
	}
	same(l, "how well it is known", []sure{{"known", known}, {"bounded", lost - known - unknown}, {"unknown", unknown}},
		"select certainty, sum(gpu_ms)::bigint from fairlease.losses group by 1")
	same(l, "types of jobs that lost work", []one{{0}}, `select count(*) from fairlease.work_lost_per_kind k
		where (command = '-') <> (unknown_gpu_hours > 0) or gpus not in (1, 2, 4, 8)`)
	same(l, "jobs", []one{{int64(len(before))}}, "select count(*) from fairlease.jobs")
	same(l, "jobs without their GPUs", []one{{0}}, "select count(*) from fairlease.jobs where gpus = 0")
	same(l, "pools that do not balance", []one{{0}}, "select count(*) from fairlease.pool_balance where unaccounted_gpu_ms <> 0")
	type bucket struct {
		Tenant, Pool string
		Start        time.Time
		Alloc, Due   cluster.GPUTime
		Extra        cluster.GPUTime
		ExtraDue     cluster.GPUTime
	}
	var buckets []bucket
	for _, a := range plan.State.Ledger.Tenants {
		for _, b := range a.Buckets {
			buckets = append(buckets, bucket{a.Tenant, a.Pool, b.Start.Time(), b.Alloc, b.Due, b.Extra, b.ExtraDue})
		}
	}
	rows := ask[bucket](l, "select tenant, pool, start_at, alloc_gpu_ms, due_gpu_ms, extra_gpu_ms, extra_due_gpu_ms from fairlease.window_buckets order by 1, 2, 3")
	for i := range rows {
		rows[i].Start = rows[i].Start.UTC()
	}
	if diff := cmp.Diff(buckets, rows); diff != "" {
		t.Errorf("buckets:\n%s", diff)
	}
}

// lentRates gives the lent GPUs of every pool, in millionths.
func lentRates(plan cluster.Plan) map[string]int64 {
	lent, borrowed := map[string]int64{}, map[string]int64{}
	for _, s := range plan.Tenants {
		lent[s.Pool] += int64(s.Lent)
		borrowed[s.Pool] += int64(s.Borrowed)
	}
	for pool := range lent {
		if lent[pool] = min(lent[pool], borrowed[pool]); lent[pool] == 0 {
			delete(lent, pool)
		}
	}
	return lent
}

// millionths writes a number of millionths as PostgreSQL does.
func millionths(n int64) string { return fmt.Sprintf("%d.%06d", n/1e6, n%1e6) }

func TestStatusesAreRefreshedInTurn(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(2, 2, 300)
	story.Restless = 0
	l := newLife(t, store.Config{Refresh: time.Minute}, story)
	for i := range 30 {
		_, plan := l.round()
		type count struct{ All, Old, New int }
		c := ask[count](l, `select count(*), count(*) filter (where at < $1::timestamptz - interval '1 minute'), count(*) filter (where round = $2)
			from fairlease.job_statuses`, plan.At.Time(), plan.Round)[0]
		if c.All != len(plan.Statuses) || c.Old != 0 {
			t.Errorf("round %d: %d statuses of %d live jobs, %d of them older than a minute", plan.Round, c.All, len(plan.Statuses), c.Old)
		}
		if i > 0 && c.New > c.All/2 {
			t.Errorf("round %d: all at once: %d of %d", plan.Round, c.New, c.All)
		}
	}
}

// TestAJobThatIsGone keeps Slurm's last report of it, through a restart too.
func TestAJobThatIsGone(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(3, 2, 5))
	_, plan := l.round()
	lastSeen := plan.State.Records[0]
	wanted := ask[jobSeen](l, jobSeenQuery, lastSeen.Key)
	for i := range 4 {
		snap, plan := l.story.Next()
		at := cluster.Case{Gone: true, Record: lastSeen, Control: cluster.Unmanaged, ControlWhy: "no longer in Slurm",
			Job: cluster.Job{ID: lastSeen.ID, State: cluster.Done}}
		snap.Cases = append([]cluster.Case{at}, snap.Cases[1:]...)
		plan.State.Records[0].State, plan.State.Records[0].Done = cluster.Done, plan.At
		l.commit(snap, plan)
		if i == 1 {
			l.restart()
		}
	}
	same(l, "the job that is gone", wanted, jobSeenQuery, lastSeen.Key)
	type state struct {
		State string
		Done  bool
	}
	same(l, "its state", []state{{"done", true}}, "select state, done_at is not null from fairlease.jobs where key = $1", lastSeen.Key)
}

type jobSeen struct {
	GPUs, CPUs   int
	Model, QOS   string
	Partitions   []string
	MemoryMB     int64
	Name, Tenant string
}

const jobSeenQuery = "select gpus, cpus, model, qos, partitions, memory_mb, name, tenant from fairlease.jobs where key = $1"

func TestAJobThatCameAndWentUnseen(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(3, 2, 5))
	l.round()
	snap, plan := l.story.Next()
	ghost := cluster.Record{Key: snap.NextKey, ID: cluster.JobID{ID: 77}, User: "ann", Account: "bio", Tenant: "bio", Alloc: 1000,
		State: cluster.Done, Done: plan.At}
	snap.Cases = append(snap.Cases, cluster.Case{Gone: true, Record: ghost})
	plan.State.Records = append(plan.State.Records, ghost)
	plan.State.NextKey++
	plan.State.Ledger.Tenants[3].Alloc += 1000 // bio's v100
	l.commit(snap, plan)
	type row struct {
		ID, User, State string
		Time            int64
	}
	same(l, "the job", []row{{"77", "ann", "done", 1000}}, "select slurm_id, user_name, state, alloc_gpu_ms from fairlease.jobs where slurm_job = 77")
	same(l, "its charge, to no user: its GPUs are not known", []row{{"bio", "", "v100", 1000}},
		"select tenant, user_name, pool, gpu_ms from fairlease.charges where user_name = ''")
}

func TestOutcomesAreWrittenDown(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(4, 2, 5))
	snap, plan := l.story.Next()
	plan.Actions = plan.Actions[:3]
	plan.Actions[2].Suppressed = true
	l.commit(snap, plan)
	type row struct {
		Ordinal     int
		OK, Skipped *bool
		Error       *string
		Took        *int64
		Suppressed  bool
	}
	query := "select ordinal, ok, skipped, error, took_ms, suppressed from fairlease.actions order by 1"
	same(l, "before", []row{{Ordinal: 0}, {Ordinal: 1}, {Ordinal: 2, Suppressed: true}}, query)
	outcomes := []cluster.Outcome{{OK: true, At: plan.At, Took: 12}, {Error: "Slurm says \"no\"\x00", At: plan.At, Took: 30}, {Skipped: true}}
	if err := l.journal.Settle(t.Context(), plan, outcomes); err != nil {
		t.Fatal(err)
	}
	yes, no, none, said := true, false, "", "Slurm says \"no\"\ufffd"
	took := []int64{12, 30, 0}
	same(l, "after", []row{
		{0, &yes, &no, &none, &took[0], false}, {1, &no, &no, &said, &took[1], false}, {2, &no, &yes, &none, &took[2], true},
	}, query)
	type round struct {
		Settled bool
		Acting  int64
	}
	same(l, "the round", []round{{true, 42}}, "select settled_at >= recorded_at, acting_ms from fairlease.rounds")
}

func TestHistoriesAreSampled(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{Sample: 30 * time.Second}, journaltest.NewStory(5, 2, 5))
	var want []time.Time
	for i := range 20 {
		_, plan := l.round()
		if i%3 == 0 {
			want = append(want, plan.At.Time())
		}
	}
	type at struct{ At time.Time }
	for _, table := range []string{"tenant_history", "pool_history"} {
		var got []time.Time
		for _, row := range ask[at](l, "select distinct at from fairlease."+table+" order by 1") {
			got = append(got, row.At.UTC())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", table, diff)
		}
	}
	type stood struct {
		Rho        cluster.Rho
		Alloc, Due cluster.GPUTime
	}
	history := ask[stood](l, "select fairlease.millionths(rho) as rho, alloc_gpu_ms as alloc, due_gpu_ms as due from fairlease.tenant_history")
	for _, h := range history {
		if h.Rho != cluster.RhoOf(h.Alloc, h.Due) {
			t.Errorf("history gives %+v", h)
		}
	}
	if len(history) == 0 {
		t.Error("there is no history")
	}
}

func TestWhatIsMissingIsGone(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(6, 4, 5))
	_, first := l.round()
	l.round()
	snap, plan := l.story.Next()
	snap.Nodes = snap.Nodes[:3]
	snap.Tenants = snap.Tenants[:3]
	plan.State.Claims = nil
	gone := plan.State.Leases[0]
	plan.State.Leases = plan.State.Leases[1:]
	l.commit(snap, plan)
	standings := plan.Tenants
	type name struct{ Name string }
	same(l, "nodes gone", []name{{"gpu0003"}}, "select name from fairlease.nodes where gone_at is not null")
	same(l, "tenants gone", []name{{"idle"}}, "select name from fairlease.tenants where gone_at is not null")
	type lease struct {
		Job  cluster.JobKey
		Term int
		Why  string
		Time cluster.GPUTime
	}
	same(l, "leases dropped", []lease{{gone.Job, gone.Term, "dropped", gone.Size.Over(plan.At.Sub(first.At))}},
		"select job_key, term, why, gpu_ms from fairlease.leases where why = 'dropped'")
	type since struct{ At time.Time }
	lending := ask[since](l, "select at from fairlease.lending order by 1")
	l.restart()
	snap, plan = l.story.Next()
	plan.Tenants = standings
	l.commit(snap, plan)
	if diff := cmp.Diff(lending, ask[since](l, "select at from fairlease.lending order by 1")); diff != "" || len(lending) == 0 {
		t.Errorf("since when it is lent, before a restart and after:\n%s", diff)
	}
	same(l, "nodes gone after they came back", []name{}, "select name from fairlease.nodes where gone_at is not null")
	same(l, "leases in force", []name{{fmt.Sprint(len(plan.State.Leases))}}, "select count(*)::text from fairlease.leases where ended_at is null")
}
