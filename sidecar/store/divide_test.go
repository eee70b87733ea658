package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// bazaar invents divisions, with trades that come, shrink and go, for the rounds of a story.
type bazaar struct {
	rng       *rand.Rand
	division  *cluster.Allocation
	profiles  []cluster.Profile
	speeds    map[[2]string]float64
	divisions int
	over      map[int64]string // by trade: the reason why it ended
	undone    map[int64]string // same, of trades that were reverted in part
	first     map[int64]cluster.Trade
}

var (
	bazaarPools   = []string{"a100", "v100"}
	bazaarTenants = []string{"astro", "bio", "chem", "idle"}
)

// next gives a round a division, and sometimes a new one.
func (b *bazaar) next(snap *cluster.Snapshot, plan *cluster.Plan) {
	snap.Settings.Divide = "gandiva-fair"
	if b.rng.IntN(3) == 0 || b.division == nil {
		b.divide()
	}
	snap.Allocation, plan.State.Allocation = b.division, b.division
	if b.rng.IntN(4) == 0 {
		b.ask(plan)
	}
	if b.rng.IntN(3) == 0 {
		b.hear(snap.Now)
	}
	plan.State.Profiles = slices.Clone(b.profiles)
	snap.Declared = []cluster.Profile{{Kind: "bert", Model: "v100", Gang: 1, Rate: 7}}
}

func (b *bazaar) divide() {
	b.divisions++
	d := &cluster.Allocation{Policy: "gandiva-fair", Digest: fmt.Sprint("d", b.divisions), Pools: bazaarPools, Objective: b.rng.Float64()}
	if b.division != nil {
		d.NextTrade = b.division.NextTrade
		for _, t := range b.division.Trades {
			why := []string{"left", "speedups", "demand"}[b.rng.IntN(3)]
			switch b.rng.IntN(4) {
			case 0:
				d.Undone = append(d.Undone, cluster.Undone{ID: t.ID, FastGPUs: t.FastGPUs, SlowGPUs: t.SlowGPUs, Why: why, All: true})
				b.over[t.ID], b.undone[t.ID] = why, why
				continue
			case 1:
				d.Undone = append(d.Undone, cluster.Undone{ID: t.ID, FastGPUs: t.FastGPUs - t.FastGPUs/2, SlowGPUs: t.SlowGPUs - t.SlowGPUs/2, Why: why})
				t.FastGPUs, t.SlowGPUs, t.FastToGain = t.FastGPUs/2, t.SlowGPUs/2, t.FastToGain/2
				b.undone[t.ID] = why
			}
			d.Trades = append(d.Trades, t)
		}
	}
	for range b.rng.IntN(3) {
		d.NextTrade++
		i := b.rng.IntN(3)
		t := cluster.Trade{ID: d.NextTrade, Fast: "a100", Slow: "v100", FastTo: cluster.PartyName{Tenant: bazaarTenants[i], Kind: "x"},
			SlowTo: cluster.PartyName{Tenant: bazaarTenants[(i+1)%3], Kind: "y"}, FastGPUs: 1_000_000 + cluster.MicroGPU(b.rng.IntN(1e6)), SlowGPUs: 3_000_000,
			Price: 1 + b.rng.Float64(), FastToSpeedup: 4, SlowToSpeedup: 1.2, FastToGain: b.rng.Float64(), SlowToGain: 0.1}
		d.Trades = append(d.Trades, t)
		b.first[t.ID] = t
	}
	b.division = d
}

// ask asks a question: idle takes no part.
func (b *bazaar) ask(plan *cluster.Plan) {
	q := &cluster.AllocationRequest{Policy: "gandiva-fair", Pools: []cluster.GPUs{{Model: "a100"}, {Model: "v100"}}}
	b.speeds = map[[2]string]float64{}
	for _, tenant := range bazaarTenants[:3] {
		speed := 1 + float64(b.rng.IntN(8))/8
		// A job of three GPUs that only v100 serves, and a one-GPU job of another kind that runs
		// on both.
		q.Bids = append(q.Bids, cluster.Bid{Party: tenant + "/x", Tenant: tenant, Demand: 3, Speeds: []float64{0, 1}},
			cluster.Bid{Party: tenant + "/y", Tenant: tenant, Demand: 1, Speeds: []float64{speed, 1}})
		b.speeds[[2]string{tenant, "a100"}], b.speeds[[2]string{tenant, "v100"}] = speed, 1
	}
	plan.AllocationRequest = q
}

// hear changes the observations of a kind, or drops them.
func (b *bazaar) hear(now cluster.Instant) {
	p := cluster.Profile{Kind: cluster.Kind(fmt.Sprintf("bio/k%d", b.rng.IntN(4))), Model: bazaarPools[b.rng.IntN(2)], Gang: 1, Source: cluster.Observed,
		Rate: b.rng.Float64() * 100, Samples: b.rng.IntN(9), Spread: b.rng.Float64(), At: now}
	b.profiles = slices.DeleteFunc(b.profiles, func(o cluster.Profile) bool { return o.Kind == p.Kind && o.Model == p.Model })
	if b.rng.IntN(4) > 0 {
		b.profiles = append(b.profiles, p)
	}
}

type profileSeen struct {
	Kind, Beside, Model, Source string
	Gang, Samples               int
	Rate, Spread                float64
	Heard                       *time.Time
	Basis                       string
}

type tradeSeen struct {
	ID                            int64
	FastTo, SlowTo, Kind          string
	Fast, Slow, LeftFast          int64
	Price, FastToGain, SlowToGain float64
	Undone                        bool
	Why                           string
}

type entitlementSeen struct {
	Tenant, Pool                       string
	Base, Usable, Divided, Entitlement int64
	Holds                              cluster.GPUCount
	Speed                              float64
}

const (
	profilesQuery = "select kind, beside, model, source, gang, samples, rate, spread, heard_at at time zone 'UTC', basis from fairlease.profiles"
	tradesQuery   = `select id, fast_to, slow_to, fast_to_kind || slow_to_kind, fairlease.millionths(fast_gpus), fairlease.millionths(slow_gpus),
		fairlease.millionths(left_fast_gpus), price, fast_to_gain, slow_to_gain, undone_at is not null, undone_why from fairlease.trades order by number`
	entitlementsQuery = `select tenant, pool, fairlease.millionths(base_gpus), fairlease.millionths(usable_gpus), fairlease.millionths(divided_gpus),
		fairlease.millionths(entitlement_gpus), holds_gpus, speed from fairlease.entitlements order by 1, 2`
)

// TestAllocationsReadBack runs stories of divisions with restarts, and compares the tables with
// each round.
func TestAllocationsReadBack(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Of(t, seeds.Some(1, 3)) {
		story := journaltest.NewStory(seed, 4, 10)
		l := newLife(t, store.Config{Sample: time.Second}, story)
		b := &bazaar{rng: rand.New(rand.NewPCG(seed, 7)), over: map[int64]string{}, undone: map[int64]string{}, first: map[int64]cluster.Trade{}}
		all := map[int64]told{}
		var snap cluster.Snapshot
		var plan cluster.Plan
		for i := range 40 {
			snap, plan = story.Next()
			b.next(&snap, &plan)
			l.commit(snap, plan)
			all[plan.Round] = tell(t, snap, plan)
			if b.rng.IntN(4) == 0 {
				l.restart()
			}
			if i%5 == 0 {
				b.compare(l, plan)
			}
		}
		b.compare(l, plan)
		for number, want := range all {
			l.isTold(number, want)
		}
		type lasted struct{ N, Open, Gaps int }
		same(l, "divisions, those in force, and those that did not follow on each other", []lasted{{b.divisions, 1, 0}},
			`with d as (select *, lag(ended_at) over (order by number) as before from fairlease.allocations)
			select count(*), count(*) filter (where ended_at is null), count(*) filter (where number > 1 and since is distinct from before) from d`)
		type odd struct {
			Tenant, Pool string
		}
		same(l, "the newest of the history against what is", []odd{},
			`select tenant, pool from (select distinct on (tenant, pool) * from fairlease.entitlement_history order by tenant, pool, at desc) h
			full join fairlease.entitlements e using (tenant, pool)
			where (h.base_gpus, h.usable_gpus, h.divided_gpus, h.entitlement_gpus, h.holds_gpus, h.speed)
				is distinct from (e.base_gpus, e.usable_gpus, e.divided_gpus, e.entitlement_gpus, e.holds_gpus, e.speed)`)

		// A round equal to the previous one writes none of it again.
		type version struct{ Text string }
		const versions = `select 'p' || kind || model || source || xmin::text from fairlease.profiles union all select 't' || number || ' ' || xmin::text from fairlease.trades
			union all select 'd' || number || ' ' || xmin::text from fairlease.allocations`
		snap, plan = story.Next()
		b.stay(&snap, &plan)
		l.commit(snap, plan)
		before := ask[version](l, versions)
		snap, plan = story.Next()
		b.stay(&snap, &plan)
		l.commit(snap, plan)
		slices.SortFunc(before, func(a, b version) int { return cmp.Compare(a.Text, b.Text) })
		same(l, "versions of rows", before, versions+" order by 1")

		// Another policy: its trades have ended, and there are no rows until it has a division.
		snap, plan = story.Next()
		b.stay(&snap, &plan)
		snap.Settings.Divide = "gavel:las"
		l.commit(snap, plan)
		for _, trade := range b.division.Trades {
			b.over[trade.ID], b.undone[trade.ID] = "policy", "policy"
		}
		b.division = &cluster.Allocation{}
		b.compare(l, plan)

		// It continues without a policy.
		l.round()
		type one struct{ N int }
		same(l, "rows of what is not divided", []one{{0}}, "select (select count(*) from fairlease.profiles) + (select count(*) from fairlease.entitlements)")
		same(l, "divisions in force", []one{{0}}, "select count(*) from fairlease.allocations where ended_at is null")
		same(l, "that histories end", []one{{0}}, `select count(*) from
			(select distinct on (tenant, pool) base_gpus from fairlease.entitlement_history order by tenant, pool, at desc) h where base_gpus > 0`)
	}
}

// stay gives a round the last division again.
func (b *bazaar) stay(snap *cluster.Snapshot, plan *cluster.Plan) {
	snap.Settings.Divide = "gandiva-fair"
	snap.Allocation, plan.State.Allocation, plan.State.Profiles = b.division, b.division, b.profiles
	snap.Declared = []cluster.Profile{{Kind: "bert", Model: "v100", Gang: 1, Rate: 7}}
}

// compare compares the tables with the newest round.
func (b *bazaar) compare(l *life, plan cluster.Plan) {
	l.t.Helper()
	profiles := []profileSeen{{Kind: "bert", Model: "v100", Source: "declared", Gang: 1, Rate: 7, Basis: "file"}}
	for _, p := range b.profiles {
		at := p.At.Time()
		profiles = append(profiles, profileSeen{string(p.Kind), string(p.With), p.Model, string(p.Source), p.Gang, p.Samples, p.Rate, p.Spread, &at, p.Basis})
	}
	same(l, "profiles", profiles, profilesQuery)

	now := map[int64]cluster.Trade{}
	for _, t := range b.division.Trades {
		now[t.ID] = t
	}
	var trades []tradeSeen
	for id := int64(1); id <= int64(len(b.first)); id++ {
		was, is := b.first[id], now[id]
		if b.over[id] != "" { // its last gain stays
			is = cluster.Trade{}
		}
		trades = append(trades, tradeSeen{id, was.FastTo.Tenant, was.SlowTo.Tenant, "xy", int64(was.FastGPUs), int64(was.SlowGPUs), int64(is.FastGPUs),
			was.Price, is.FastToGain, was.SlowToGain, b.undone[id] != "", b.undone[id]})
	}
	got := ask[tradeSeen](l, tradesQuery)
	for i := range got {
		if got[i].LeftFast == 0 {
			got[i].FastToGain = 0
		}
	}
	if !slices.Equal(trades, got) {
		l.t.Errorf("trades are\n%+v\nwant\n%+v", got, trades)
	}

	traded := map[[2]string]cluster.MicroGPU{}
	for _, t := range b.division.Trades {
		traded[[2]string{t.FastTo.Tenant, "a100"}] += t.FastGPUs
		traded[[2]string{t.SlowTo.Tenant, "a100"}] -= t.FastGPUs
		traded[[2]string{t.FastTo.Tenant, "v100"}] -= t.SlowGPUs
		traded[[2]string{t.SlowTo.Tenant, "v100"}] += t.SlowGPUs
	}
	var entitlements []entitlementSeen
	for i, r := range plan.State.Ledger.Tenants {
		speed := b.speeds[[2]string{r.Tenant, r.Pool}]
		if speed == 0 {
			speed = 1
		}
		usable := r.Base // in this story all want more than their entitlement, or nothing
		if r.Demand == 0 {
			usable = 0
		}
		entitlements = append(entitlements, entitlementSeen{r.Tenant, r.Pool, int64(r.Base), int64(usable), int64(r.Entitlement - traded[[2]string{r.Tenant, r.Pool}]),
			int64(r.Entitlement), plan.Tenants[i].Holds, speed})
	}
	same(l, "entitlements", entitlements, entitlementsQuery)
}

// TestOddAllocations commits impossible values: they must not stop the journal.
func TestOddAllocations(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(2, 2, 5)
	l := newLife(t, store.Config{}, story)
	snap, plan := story.Next()
	snap.Settings.Divide = "gandiva-fair"
	twice := cluster.Trade{ID: 3, FastGPUs: 1_000_000, SlowGPUs: 1_000_000}
	snap.Allocation = &cluster.Allocation{Policy: "gandiva-fair", Trades: []cluster.Trade{twice, twice, {ID: 4}},
		CellTrades: []cluster.CellTrade{{Trade: cluster.Trade{ID: 5, FastGPUs: 4_000_000, SlowGPUs: 16_000_000}}}, Why: "no\x00answer",
		Undone: []cluster.Undone{{ID: 99}}, Parts: []cluster.Part{{Party: "a"}}}
	p := cluster.Profile{Kind: "bio/k", Model: "v100", Source: cluster.Observed}
	plan.State.Profiles = []cluster.Profile{p, p}
	plan.AllocationRequest = &cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "a100"}}, Bids: []cluster.Bid{{Tenant: "bio", Speeds: []float64{0}}, {Tenant: "nobody", Speeds: []float64{5}}}}
	l.commit(snap, plan)
	l.restart()
	next, after := story.Next()
	next.Settings, next.Allocation, after.State.Profiles = snap.Settings, snap.Allocation, plan.State.Profiles
	l.commit(next, after)
	type row struct{ Trades, Profiles, Divisions int }
	same(l, "rows", []row{{2, 1, 1}}, "select (select count(*) from fairlease.trades), (select count(*) from fairlease.profiles), (select count(*) from fairlease.allocations)")
	type speed struct{ Speed float64 }
	same(l, "what is of no use", []speed{{0}}, "select speed from fairlease.entitlements where tenant = 'bio' and pool = 'a100'")
}

func TestAudits(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(1, 2, 5))
	lapse(t, l.db)
	lead := takeLead(t, l.store)
	more := 0.5
	a := cluster.Audit{At: 1772409600000, Policy: "oef:coop", Slack: -1}
	write := func() error { return lead.Audit(t.Context(), a) }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Slack, Least *float64
		Misreports   int
	}
	query := "select pareto_slack, least_sharing_incentive, misreports from fairlease.audits_per_day"
	same(l, "an empty audit", []row{{}}, query)
	least := 0.75
	a.At, a.Slack = a.At.Add(cluster.Hour), 0.25
	a.Tenants = []cluster.AuditedTenant{{Tenant: "bio", Incentive: least, More: &more}, {Tenant: "chem", Incentive: 2}}
	a.Envy = []cluster.Envy{{Tenant: "bio", Of: "chem", Ratio: cluster.MaxRatio}}
	a.Misreports = []cluster.Misreport{{Kind: "bio/k", Model: "v100", Said: 2, Seen: 1}}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	same(l, "the audit of that day", []row{{&a.Slack, &least, 1}}, query)
	type gain struct {
		Tenant     string
		More, Less *float64
	}
	same(l, "gains", []gain{{"bio", &more, nil}, {"chem", nil, nil}}, "select tenant, gained_by_more, gained_by_less from fairlease.fairness_audit")

	a.Slack = math.NaN()
	if err := write(); err != nil {
		t.Errorf("slack that is no number: %v", err) // it is unknown
	}
	a.Envy[0].Ratio = math.Inf(1)
	if err := write(); err == nil {
		t.Error("infinity was written down")
	}
	a.Envy = nil
	lapse(t, l.db)
	takeLead(t, l.store)
	if err := write(); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("the deposed wrote an audit (%v)", err)
	}
}

// TestTheMarketOfARealEngine lets the engine divide two models between tenants with different
// speedups, with the journal in PostgreSQL and daemons that die.
func TestTheMarketOfARealEngine(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	set := simtest.Product()
	set.Divide = "gandiva-fair"
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 2, 4), simtest.Nodes("v", "v100", 2, 4)...), "bio", "nlp")
	for kind, rate := range map[cluster.Kind]float64{"bio/bio_user.train": 12, "nlp/nlp_user.train": 50} {
		w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: kind, Model: "k80", Gang: 1, Rate: 10}, cluster.Profile{Kind: kind, Model: "v100", Gang: 1, Rate: rate})
	}
	slices.SortFunc(w.Rules.Profiles, func(a, b cluster.Profile) int { return a.Compare(&b) })
	w.Submit("nlp", 12, 1, 3*cluster.Hour)
	for range 3 {
		w.Submit("bio", 12, 1, 40*cluster.Minute)
		lapse(t, db)
		w.Loop = &loop.Loop{Cluster: w.Loop.Cluster, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Divide: engine.Divide, Configure: w.Loop.Configure}
		w.Run(cluster.Hour)
	}
	l := &life{t: t, store: s, db: db}
	type yes struct{ Yes bool }
	same(l, "trades that gained both, and were undone when one had nothing left to do", []yes{{true}},
		`select count(*) > 0 and bool_and(fast = 'v100' and fast_to = 'nlp' and slow_to = 'bio' and fast_to_gain > 0 and slow_to_gain > 0 and price between 1.2 and 5)
			and bool_or(not in_force and undone_why in ('left', 'demand', 'entitlement')) from fairlease.trade_history`)
	same(l, "that nlp got more than its share of v100, and bio more GPUs for that", []yes{{true}},
		`select bool_or(tenant = 'nlp' and pool = 'v100' and traded_gpus > 0) and bool_or(tenant = 'bio' and pool = 'k80' and traded_gpus > 0) from fairlease.entitlements_over_time`)
	same(l, "moments at which more was due than there is", []yes{},
		"select true from fairlease.entitlements_over_time group by pool, from_at having sum(entitlement_gpus) > 8")
	// When a tenant arrives the last division stays for one more round.
	same(l, "tenants that were due less than their share is worth, for longer than a round", []yes{},
		"select true from fairlease.effective_throughput_over_time where due_throughput < share_throughput * 0.999999 and until_at - from_at > interval '10 s'")
	type speed struct {
		Tenant, Pool string
		Speed        float64
	}
	same(l, "what a GPU is worth", []speed{{"bio", "v100", 1.2}, {"nlp", "v100", 5}},
		"select distinct tenant, pool, speed from fairlease.entitlements_over_time where pool = 'v100' and speed <> 1")
	same(l, "kinds in force", []yes{{true}}, "select count(*) = 4 and max(speedup) = 5 from fairlease.job_profiles where basis = 'file'")
	same(l, "divisions that were none", []yes{}, "select true from fairlease.allocation_history where why_not <> '' or held < interval '0'")
	same(l, "days", []yes{{true}}, "select bool_and(ratio > 0.5) and count(distinct tenant) = 2 from fairlease.effective_throughput_per_day")
	trades, err := s.Jobs.Trades(t.Context(), true, 100)
	if err != nil || len(trades) == 0 {
		t.Fatalf("%d trades (%v)", len(trades), err)
	}
	inForce, err := s.Jobs.Trades(t.Context(), false, 100)
	if err != nil || slices.ContainsFunc(inForce, func(tr store.Trade) bool { return !tr.InForce }) || len(inForce) >= len(trades) {
		t.Errorf("%d trades in force of %d (%v)", len(inForce), len(trades), err)
	}
	worth, err := s.Tenants.Effective(t.Context(), "")
	if err != nil || len(worth) != 2 || worth[1].Tenant != "nlp" || worth[1].Rho == nil {
		t.Fatalf("what GPUs do for tenants: %+v (%v)", worth, err)
	}
	same(l, "what GPUs do for tenants", worth, "select tenant, sum(holds_gpus * speed), sum(entitlement_gpus * speed), sum(usable_gpus * speed), sum(holds_gpus * speed) / nullif(sum(usable_gpus * speed), 0) from fairlease.entitlements group by 1 order by 1")
	x, err := s.Jobs.Explain(t.Context(), cluster.JobID{ID: 1})
	if err != nil || x.Job.Tenant != "nlp" || x.Effective == nil || x.Effective.Throughput != worth[1].Throughput || *x.Effective.Rho != *worth[1].Rho {
		t.Errorf("the explanation has %+v, want %+v (%v)", x.Effective, worth[1], err)
	}
}

// TestWhoGoesFirstWhereModelsAreDivided lets tenants queue for a policy's division, or jobs if
// the policy divides between jobs. The view of waiting jobs says which of them went before a job,
// as the engine does.
func TestWhoGoesFirstWhereModelsAreDivided(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for policy, jobs := range map[string]bool{"gavel:ftf": true, "gandiva-fair": false} {
		t.Run(policy, func(t *testing.T) {
			s := openStore(t, store.Config{DSN: storetest.Database(t), Refresh: time.Second})
			set := simtest.Product()
			set.Divide, set.DivideJobs, set.Mechanism = policy, jobs, cluster.ByDebt
			w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 1, 4), simtest.Nodes("v", "v100", 1, 4)...), "bio", "nlp")
			w.Loop.Journal = takeLead(t, s).Journal()
			w.Submit("nlp", 12, 1, 3*cluster.Hour)
			w.Submit("bio", 12, 1, 3*cluster.Hour)
			w.Run(cluster.Hour + 10*cluster.Second) // to the end of a term: otherwise nothing went first
			_, plan, err := s.Rounds.Last(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting, err := s.Jobs.Waiting(t.Context(), 100)
			if err != nil {
				t.Fatal(err)
			}
			said, ids := map[cluster.JobKey]string{}, map[cluster.JobKey]string{}
			for _, x := range waiting {
				said[x.Job] = x.Reason
			}
			for _, r := range plan.State.Records {
				ids[r.Key] = r.ID.String()
			}
			others := 0
			for _, v := range plan.Statuses {
				r := &v.Reason
				if r.Code != cluster.ReasonBehind || r.Other == "" {
					continue
				}
				others++
				first, own := "tenant "+r.Other, "its own tenant is "
				if jobs {
					first, own = "job "+ids[r.OtherJob]+" of "+r.Other, "it is "
				}
				if got := said[v.Job]; !strings.HasPrefix(got, first+" goes first, being ") || !strings.Contains(got, "; "+own) {
					t.Errorf("of job %s it says %q, though %s went before it", ids[v.Job], got, first)
				}
			}
			if others == 0 {
				t.Error("nobody goes before anybody")
			}
		})
	}
}
