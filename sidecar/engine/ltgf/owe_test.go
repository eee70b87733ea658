package ltgf

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// debtors is a cluster of several pools and tenants whose dues, demands and GPUs change at will.
type debtors struct {
	b     books
	holds []cluster.MicroGPU
}

func drawDebtors(rt *rapid.T, set *cluster.Settings, scale int) *debtors {
	tenants, pools := rapid.IntRange(2, 5).Draw(rt, "tenants"), rapid.IntRange(1, 3).Draw(rt, "pools")
	d := &debtors{b: books{settings: set, now: begin}}
	for p := range pools {
		d.b.ledger.Pools = append(d.b.ledger.Pools, cluster.PoolAccount{Pool: fmt.Sprint("p", p), GPUs: cluster.CountOf(16 * scale)})
	}
	for t := range tenants {
		for p := range pools {
			d.b.ledger.Tenants = append(d.b.ledger.Tenants, cluster.TenantPool{Tenant: fmt.Sprint("t", t), Pool: fmt.Sprint("p", p)})
		}
	}
	d.holds = make([]cluster.MicroGPU, tenants*pools)
	return d
}

// step lets a look go by: entitlements, demands and what tenants hold are others then.
func (d *debtors) step(rt *rapid.T, dt cluster.Span, scale int) {
	rows := d.b.ledger.Tenants
	n := len(rows)
	entitled, largest := make([]cluster.MicroGPU, n), make([]cluster.MicroGPU, n)
	weights := rapid.SliceOfN(rapid.Int64Range(0, 4), n, n).Draw(rt, "weights")
	for i := range rows {
		entitled[i] = cluster.MicroGPU(weights[i]*int64(scale))*cluster.WholeGPU + cluster.MicroGPU(weights[i]*333_333)
		rows[i].Demand = cluster.MicroGPU(rapid.IntRange(0, 20*scale).Draw(rt, "demand")) * cluster.WholeGPU
		d.holds[i] = cluster.Micro(rapid.IntRange(0, 10*scale).Draw(rt, "holds"))
		largest[i] = cluster.MicroGPU(rapid.IntRange(0, 16).Draw(rt, "gang")) * gpu / 2
	}
	Settle(&d.b.ledger, entitled, entitled, nil, largest, d.holds, d.b.settings, rapid.Bool().Draw(rt, "anew"))
	d.b.from, d.b.now = d.b.now, d.b.now.Add(dt)
	d.b.usage = new(lists).usage(len(rows))
	d.b.pools = make([]spent, len(d.b.ledger.Pools))
	for i := range rows {
		d.b.used[i] = d.holds[i].Over(dt)
		if rapid.IntRange(0, 4).Draw(rt, "gathers") == 0 {
			d.b.kept[i] = cluster.Times(1, dt)
		}
		if rapid.IntRange(0, 4).Draw(rt, "granted") == 0 {
			d.b.granted[i] = cluster.Times(2, dt)
		}
		if rapid.IntRange(0, 4).Draw(rt, "stops") == 0 { // also of what was received long ago
			most := min(rows[i].Alloc+d.b.used[i], cluster.Times(8*scale, 4*cluster.Hour))
			d.b.wasted[i] = cluster.GPUTime(rapid.Int64Range(0, int64(most)).Draw(rt, "destroyed"))
		}
	}
	d.b.ledger = d.b.close()
}

// sound fails unless the accounts of every pool sum to nothing, and each is the sum of its lots, which have one sign and
// are in order.
func sound(rt *rapid.T, l *cluster.Ledger) {
	n := len(l.Pools)
	sums, repays := make([]cluster.GPUTime, n), make([]cluster.MicroGPU, n)
	for i := range l.Tenants {
		t := &l.Tenants[i]
		sums[i%n], repays[i%n] = sums[i%n]+t.Owed, repays[i%n]+t.Repays
		var lots cluster.GPUTime
		for k, lot := range t.Lots {
			lots += lot.Time
			if lot.Time == 0 || (lot.Time > 0) != (t.Lots[0].Time > 0) {
				rt.Fatalf("%s in %s: lots of two signs, or empty ones: %v", t.Tenant, t.Pool, t.Lots)
			}
			if k > 0 && lot.Start <= t.Lots[k-1].Start {
				rt.Fatalf("%s in %s: lots out of order: %v", t.Tenant, t.Pool, t.Lots)
			}
		}
		if lots != t.Owed {
			rt.Fatalf("%s in %s is owed %d GPU-ms, its lots sum to %d", t.Tenant, t.Pool, t.Owed, lots)
		}
	}
	for p := range n {
		if sums[p] != 0 || repays[p] != 0 {
			rt.Fatalf("pool %d: accounts sum to %d GPU-ms, repayments to %d", p, sums[p], repays[p])
		}
	}
}

// bounded fails if somebody repays or is repaid more than the bounds allow.
func bounded(rt *rapid.T, l *cluster.Ledger, s *cluster.Settings) {
	for i := range l.Tenants {
		t := &l.Tenants[i]
		switch floor := cluster.MulDiv(int64(min(t.Own(), t.Demand)), int64(s.RepayFloorPercent), 100); {
		case t.Repays != 0 && (t.Repays > 0) != (t.Owed > 0):
			rt.Fatalf("%s in %s is owed %d GPU-ms and given %d microGPUs", t.Tenant, t.Pool, t.Owed, t.Repays)
		case t.Repays < 0 && int64(t.Entitlement) < floor:
			rt.Fatalf("%s in %s keeps %d of %d microGPUs that it repays from, the floor is %d", t.Tenant, t.Pool, t.Entitlement, t.Own(), floor)
		case t.Repays > 0 && s.BurstMaxMilli > 0 && int64(t.Entitlement) > cluster.MulDiv(int64(t.Own()), s.BurstMaxMilli, 1000)+1:
			rt.Fatalf("%s in %s is given %d microGPUs on %d, beyond its burst", t.Tenant, t.Pool, t.Repays, t.Own())
		case t.Repays > 0 && t.Entitlement > t.Demand:
			rt.Fatalf("%s in %s is due %d microGPUs and wants %d", t.Tenant, t.Pool, t.Entitlement, t.Demand)
		}
	}
}

func drawSettings(rt *rapid.T) cluster.Settings {
	s := cluster.Settings{RhoSelect: 16, CreditCap: cluster.Span(rapid.IntRange(0, 3).Draw(rt, "cap hours")) * cluster.Hour,
		Window: 14 * cluster.Day, Term: 15 * minute, BurstMaxMilli: rapid.SampledFrom([]int64{0, 1000, 1500, 2000}).Draw(rt, "burst"),
		RepayFloorPercent: rapid.SampledFrom([]int{0, 10, 50, 100}).Draw(rt, "floor")}
	switch rapid.IntRange(0, 3).Draw(rt, "memory") {
	case 0:
		s.Window = 2 * cluster.Hour
	case 1:
		s.HalfLife = cluster.Hour
	case 2:
		s.Window = 0
	}
	if rapid.Bool().Draw(rt, "divides") {
		s.Divide = "oef"
	}
	return s
}

// Under any use, demand, weights, settings and spans: zero-sum to the millisecond, sound lots, bounded repayments.
// The journalled ledger is the same ledger.
func TestPropertiesDebtsSumToNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := drawSettings(rt)
		d := drawDebtors(rt, &set, 1)
		for range rapid.IntRange(1, 30).Draw(rt, "looks") {
			if rapid.IntRange(0, 9).Draw(rt, "reload") == 0 {
				set = drawSettings(rt)
			}
			d.step(rt, cluster.Span(rapid.IntRange(0, 3_600_000).Draw(rt, "ms")), 1)
			sound(rt, &d.b.ledger)
			text, err := json.Marshal(d.b.ledger)
			var back cluster.Ledger
			if err == nil {
				err = json.Unmarshal(text, &back)
			}
			if err != nil {
				rt.Fatal(err)
			}
			for i := range back.Tenants {
				if x, y := &back.Tenants[i], &d.b.ledger.Tenants[i]; x.Owed != y.Owed || len(x.Lots) != len(y.Lots) || x.Repays != y.Repays || x.Repaying != y.Repaying || x.OwedCarry != y.OwedCarry {
					rt.Fatalf("%+v became %+v", y, x)
				}
			}
			d.b.ledger = back
			demands := append([]cluster.TenantPool(nil), back.Tenants...)
			Settle(&d.b.ledger, owns(demands), owns(demands), nil, make([]cluster.MicroGPU, len(demands)), d.holds, &set, true)
			sound(rt, &d.b.ledger)
			bounded(rt, &d.b.ledger, &set)
			if n := len(d.b.ledger.Tenants[0].Lots); n > 2*cuts+2 {
				rt.Fatalf("%d lots", n)
			}
		}
	})
}

func owns(rows []cluster.TenantPool) []cluster.MicroGPU {
	out := make([]cluster.MicroGPU, len(rows))
	for i := range rows {
		out[i] = rows[i].Own()
	}
	return out
}

// A year of 80,000 GPUs fits, all of it on one side.
func TestDebtsOfAYearOf80000GPUsFit(t *testing.T) {
	set := cluster.Settings{RhoSelect: 16, Window: 400 * cluster.Day, Term: 15 * minute, BurstMaxMilli: 2000, RepayFloorPercent: 50}
	b := books{settings: &set, now: begin, ledger: cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "p", GPUs: cluster.CountOf(80_000)}},
		Tenants: []cluster.TenantPool{{Tenant: "a", Pool: "p"}, {Tenant: "b", Pool: "p"}}}}
	half := cluster.MicroGPU(40_000) * cluster.WholeGPU
	for range 365 {
		for i := range b.ledger.Tenants {
			b.ledger.Tenants[i].Demand = 2 * half
		}
		Settle(&b.ledger, []cluster.MicroGPU{half, half}, []cluster.MicroGPU{half, half}, nil, []cluster.MicroGPU{8 * gpu, 8 * gpu}, []cluster.MicroGPU{80_000 * gpu, 0}, &set, true)
		b.from, b.now = b.now, b.now.Add(cluster.Day)
		b.usage, b.pools = new(lists).usage(2), make([]spent, 1)
		b.used[0] = cluster.Times(80_000, cluster.Day)
		b.ledger = b.close()
	}
	want := cluster.Times(40_000, 365*cluster.Day)
	if got := b.ledger.Tenants[1].Owed; got != want || b.ledger.Tenants[0].Owed != -want {
		t.Errorf("after a year b is owed %.0f GPU-hours, want %.0f", got.Hours(), want.Hours())
	}
	Settle(&b.ledger, []cluster.MicroGPU{half, half}, []cluster.MicroGPU{half, half}, nil, []cluster.MicroGPU{8 * gpu, 8 * gpu}, []cluster.MicroGPU{40_000 * gpu, 40_000 * gpu}, &set, true)
	if got := b.ledger.Tenants[1].Repays; got != half/2 {
		t.Errorf("b is repaid %d microGPUs, want %d: down to the floor", got, half/2)
	}
}

// pair is two tenants, 8 GPUs each, both wanting all.
func pair(owed cluster.GPUTime) (*cluster.Ledger, *cluster.Settings) {
	l := &cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "p", GPUs: cluster.CountOf(16)}}}
	for k, name := range []string{"a", "b"} {
		t := cluster.TenantPool{Tenant: name, Pool: "p", Base: 8 * gpu, Entitlement: 8 * gpu, Demand: 40 * gpu, Owed: owed}
		if k == 0 {
			t.Owed = -owed
		}
		t.Lots = []cluster.Lot{{Start: begin, Time: t.Owed}}
		l.Tenants = append(l.Tenants, t)
	}
	return l, &cluster.Settings{Term: 15 * minute, BurstMaxMilli: 2000, RepayFloorPercent: 50, CreditCap: 2 * cluster.Hour}
}

func TestRepaymentsAreBoundedAndEnd(t *testing.T) {
	eight := []cluster.MicroGPU{8 * gpu, 8 * gpu}
	hours := func(n float64) cluster.GPUTime { return cluster.GPUTime(n * float64(cluster.Hour)) }
	for _, c := range []struct {
		what   string
		owed   cluster.GPUTime
		change func(*cluster.Ledger, *cluster.Settings)
		want   cluster.MicroGPU
	}{
		{"down to the floor", hours(192), func(*cluster.Ledger, *cluster.Settings) {}, 4 * gpu},
		{"up to the burst", hours(192), func(_ *cluster.Ledger, s *cluster.Settings) { s.BurstMaxMilli = 1250 }, 2 * gpu},
		{"no more than is wanted", hours(192), func(l *cluster.Ledger, _ *cluster.Settings) { l.Tenants[1].Demand = 9 * gpu }, gpu},
		{"of what is wanted only", hours(192), func(l *cluster.Ledger, _ *cluster.Settings) { l.Tenants[0].Demand = 2 * gpu }, gpu},
		{"an idle debtor repays nothing", hours(192), func(l *cluster.Ledger, _ *cluster.Settings) { l.Tenants[0].Demand = 0 }, 0},
		{"nothing is repaid with a floor of 0", hours(192), func(_ *cluster.Ledger, s *cluster.Settings) { s.RepayFloorPercent = 0 }, 0},
		{"with a floor of 100 % neither", hours(192), func(_ *cluster.Ledger, s *cluster.Settings) { s.RepayFloorPercent = 100 }, 0},
		{"less than a term of the due waits", hours(1.9), func(*cluster.Ledger, *cluster.Settings) {}, 0},
		{"but goes on once begun", hours(.5), func(l *cluster.Ledger, _ *cluster.Settings) {
			l.Tenants[0].Repaying, l.Tenants[1].Repaying = true, true
		}, 2 * gpu},
		{"what the deficit carries settles itself", hours(3), func(l *cluster.Ledger, _ *cluster.Settings) {
			l.Tenants[0].Deficit, l.Tenants[1].Deficit = -hours(2), hours(2)
		}, 0},
		{"even", 0, func(l *cluster.Ledger, _ *cluster.Settings) {
			l.Tenants[0].Repaying, l.Tenants[1].Repaying = true, true
		}, 0},
		{"the weight is gone", hours(192), func(l *cluster.Ledger, _ *cluster.Settings) { l.Tenants[1].Entitlement, eight[1] = 0, 0 }, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			eight[1] = 8 * gpu
			l, s := pair(c.owed)
			c.change(l, s)
			Settle(l, eight, eight, nil, []cluster.MicroGPU{8 * gpu, 8 * gpu}, []cluster.MicroGPU{8 * gpu, 8 * gpu}, s, true)
			if a, b := l.Tenants[0].Repays, l.Tenants[1].Repays; b != c.want || a != -c.want {
				t.Errorf("repays %d and %d, want %d", a, b, c.want)
			}
			Settle(l, eight, eight, nil, []cluster.MicroGPU{8 * gpu, 8 * gpu}, []cluster.MicroGPU{8 * gpu, 8 * gpu}, s, false)
			if b := &l.Tenants[1]; b.Repays != c.want || b.Own() != eight[1] {
				t.Errorf("within the term: %d of %d, want %d of %d", b.Repays, b.Own(), c.want, eight[1])
			}
		})
	}
}

// A tenant is owed by many, and each owes less than a term of its due: all of them repay.
func TestManySmallDebtsAreRepaid(t *testing.T) {
	l := &cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "p"}}}
	var due []cluster.MicroGPU
	for k := range 21 {
		t := cluster.TenantPool{Tenant: fmt.Sprintf("t%02d", k), Pool: "p", Base: 8 * gpu, Entitlement: 8 * gpu, Demand: 40 * gpu, Owed: -cluster.Times(1, cluster.Hour)}
		if k == 20 {
			t.Owed *= -20
		}
		l.Tenants, due = append(l.Tenants, t), append(due, 8*gpu)
	}
	holds := make([]cluster.MicroGPU, 21)
	holds[20] = 8 * gpu
	Settle(l, due, due, nil, make([]cluster.MicroGPU, 21), holds, &cluster.Settings{Term: 15 * minute, BurstMaxMilli: 2000, RepayFloorPercent: 50}, true)
	if got := l.Tenants[20].Repays; got != 8*gpu {
		t.Errorf("repaid %d microGPUs, want 8 GPUs", got)
	}
}

// Gathered GPUs that idle are charged to the gang's tenant; those that others use meanwhile to these.
func TestGatheredGPUsAreChargedOnce(t *testing.T) {
	b := open(t, 8)
	b.s.Tenants = append(b.s.Tenants, cluster.Tenant{Name: "u", Weight: 1})
	other := running(2, 5, begin)
	other.Record.Tenant = "u"
	gang := waiting(1, 8)
	b.look(0, gang, other)
	for i := range b.s.Ledger.Tenants {
		r := &b.s.Ledger.Tenants[i]
		r.Base, r.Entitlement, r.Demand = 4*gpu, 4*gpu, 8*gpu
	}
	b.s.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Gathers: true, Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(8)}}}}
	b.pass(cluster.Hour, gang, other)
	// t had 3 of its 4 kept, u held 5.
	if got, want := b.row("t").Owed, cluster.Times(1, cluster.Hour); got != want || b.row("u").Owed != -want {
		t.Errorf("t is owed %.2f GPU-hours, u %.2f; want 1 and -1", got.Hours(), b.row("u").Owed.Hours())
	}
}

// A tenant that has all that it wants, in whatever pools, is owed nothing.
func TestNobodyIsOwedWhatItWantsNotWhereModelsAreDivided(t *testing.T) {
	set := cluster.Settings{RhoSelect: 16, Window: cluster.Day, Divide: "oef"}
	b := books{settings: &set, from: begin, now: begin.Add(cluster.Hour), ledger: cluster.Ledger{
		Pools: []cluster.PoolAccount{{Pool: "p"}, {Pool: "q"}},
		Tenants: []cluster.TenantPool{
			{Tenant: "a", Pool: "p", Entitlement: 8 * gpu, Demand: 4 * gpu}, {Tenant: "a", Pool: "q", Entitlement: 8 * gpu},
			{Tenant: "b", Pool: "p", Entitlement: 8 * gpu}, {Tenant: "b", Pool: "q", Entitlement: 8 * gpu, Demand: 16 * gpu}}}}
	b.usage, b.pools = new(lists).usage(4), make([]spent, 2)
	b.used[0], b.used[3] = cluster.Times(4, cluster.Hour), cluster.Times(16, cluster.Hour)
	b.ledger = b.close()
	for i := range b.ledger.Tenants {
		if owed := b.ledger.Tenants[i].Owed; owed != 0 {
			t.Errorf("row %d is owed %.2f GPU-hours", i, owed.Hours())
		}
	}
}

// A returning tenant takes GPUs in return for what it left idle, up to the credit cap, without a
// debt. Beyond that it owes.
func TestWhatATenantLeftIdleIsNoDebt(t *testing.T) {
	l, s := pair(0)
	l.Tenants[0].Lots, l.Tenants[1].Lots = nil, nil
	l.Tenants[1].Deficit = cluster.Times(2, cluster.Hour)
	b := books{settings: s, from: begin, now: begin.Add(cluster.Hour), ledger: *l, pools: make([]spent, 1), usage: new(lists).usage(2)}
	b.used[0], b.used[1] = cluster.Times(5, cluster.Hour), cluster.Times(11, cluster.Hour)
	s.Window = cluster.Day
	b.ledger = b.close()
	if got, want := b.ledger.Tenants[0].Owed, cluster.Times(1, cluster.Hour); got != want {
		t.Errorf("a is owed %.2f GPU-hours, want 1: of 3 that b had beyond its due 2 were its own", got.Hours())
	}
}

// Charge changes no lot or bucket that it was given, in the room of another page or not.
func TestPropertiesChargeLeavesDebtsThatItWasGiven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, s := pair(cluster.Times(3, cluster.Hour))
		s.Window = 2 * cluster.Hour
		for i := range l.Tenants {
			l.Tenants[i].Pool = "v100"
			l.Tenants[i].Lots = append(l.Tenants[i].Lots, cluster.Lot{Start: begin + 1, Time: l.Tenants[i].Owed})
			l.Tenants[i].Owed *= 2
			l.Tenants[i].Buckets = []cluster.Bucket{{Start: begin, Alloc: 5, Due: 6}}
		}
		l.Pools[0].Pool, l.At = "v100", begin
		c := running(1, rapid.IntRange(1, 16).Draw(rt, "gpus"), begin)
		c.Record.Tenant = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant")
		snap := cluster.Snapshot{Settings: *s, Now: begin.Add(cluster.Span(rapid.IntRange(0, 4*3_600_000).Draw(rt, "ms"))), Cases: []cluster.Case{c},
			Nodes:   []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 16}}}},
			Tenants: []cluster.Tenant{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}}
		snap.Ledger = *l
		before, _ := json.Marshal(snap)
		first := Charge(&snap, Buffer{}, new(Memory))
		text, _ := json.Marshal(first.Ledger)
		other := Charge(&snap, Buffer{}, new(Memory))
		again := Charge(&snap, other, new(Memory)) // in the room of a page that nobody needs any more
		if after, _ := json.Marshal(snap); string(after) != string(before) {
			rt.Fatalf("was %s\nis  %s", before, after)
		}
		if now, _ := json.Marshal(first.Ledger); string(now) != string(text) || !reflect.DeepEqual(again.Ledger, first.Ledger) {
			rt.Fatal("two charges of the same differ")
		}
	})
}

// Debts older than the window are gone, on both sides; by a half-life half is.
func TestDebtsAreKeptForTheWindow(t *testing.T) {
	for _, c := range []struct {
		what             string
		window, halfLife cluster.Span
		after            cluster.Span
		want             float64
	}{
		{"within the window", cluster.Day, 0, 23 * cluster.Hour, 8},
		{"after it", cluster.Day, 0, 25 * cluster.Hour, 0},
		{"a half-life", cluster.Day, 10 * cluster.Hour, 10 * cluster.Hour, 4},
		{"two", cluster.Day, 10 * cluster.Hour, 20 * cluster.Hour, 2},
		{"for ever", 0, 0, 1000 * cluster.Hour, 8},
	} {
		t.Run(c.what, func(t *testing.T) {
			l, s := pair(cluster.Times(8, cluster.Hour))
			s.Window, s.HalfLife = c.window, c.halfLife
			b := books{settings: s, now: begin, ledger: *l, pools: make([]spent, 1)}
			for range int(c.after / (30 * minute)) {
				b.from, b.now = b.now, b.now.Add(30*minute)
				b.usage = new(lists).usage(2)
				b.used[0], b.used[1] = cluster.Times(8, 30*minute), cluster.Times(8, 30*minute)
				b.ledger = b.close()
			}
			a, z := b.ledger.Tenants[0].Owed, b.ledger.Tenants[1].Owed
			if got := z.Hours(); a+z != 0 || got > c.want+.01 || got < c.want-.01 {
				t.Errorf("%.3f GPU-hours are left, and %.3f; want %.1f", got, a.Hours(), c.want)
			}
		})
	}
}

// Tenants with a surplus owe the GPU time that stops destroyed, while its tenant uses GPUs again. A tenant that has just its
// due owes nothing of it, and the shortfalls of other tenants count as before.
func TestSurplusesOweDestroyedWork(t *testing.T) {
	hour := func(gpus int) cluster.GPUTime { return cluster.Times(gpus, cluster.Hour) }
	for _, c := range []struct {
		what      string
		used      [3]int // of the tenant whose work was destroyed, of another, and of one that lacks half of its due
		destroyed cluster.GPUTime
		owed      [3]cluster.GPUTime
		left      cluster.GPUTime
	}{
		{"nothing was destroyed", [3]int{4, 6, 2}, 0, [3]cluster.GPUTime{0, -hour(2), hour(2)}, 0},
		{"nobody has more than its due", [3]int{4, 4, 2}, hour(2), [3]cluster.GPUTime{}, 0},
		{"a surplus is shared by what they lack", [3]int{4, 6, 2}, hour(2), [3]cluster.GPUTime{hour(1), -hour(2), hour(1)}, 0},
		{"more than it uses: the rest later", [3]int{4, 10, 2}, hour(7), [3]cluster.GPUTime{hour(4), -hour(6), hour(2)}, hour(3)},
		{"its own surplus is no debt", [3]int{6, 4, 2}, hour(2), [3]cluster.GPUTime{}, 0},
		{"it is idle", [3]int{0, 4, 2}, hour(2), [3]cluster.GPUTime{}, hour(2)},
	} {
		set := cluster.Settings{RhoSelect: 16, Window: 14 * cluster.Day, Term: 15 * minute}
		b := books{settings: &set, from: begin, now: begin.Add(cluster.Hour), ledger: cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "p"}}}, usage: new(lists).usage(3), pools: make([]spent, 1)}
		for k, name := range []string{"a", "b", "c"} {
			b.ledger.Tenants = append(b.ledger.Tenants, cluster.TenantPool{Tenant: name, Pool: "p", Entitlement: 4 * gpu, Demand: 4 * gpu})
			b.used[k] = hour(c.used[k])
			if c.used[k] > 4 {
				b.ledger.Tenants[k].Demand = 20 * gpu
			}
		}
		if c.used[0] == 0 {
			b.ledger.Tenants[0].Demand = 0
		}
		b.wasted[0] = c.destroyed
		l := b.close()
		for k := range l.Tenants {
			if got := l.Tenants[k].Owed; got != c.owed[k] {
				t.Errorf("%s: %s is owed %.2f GPU-hours, want %.2f", c.what, l.Tenants[k].Tenant, got.Hours(), c.owed[k].Hours())
			}
		}
		if got := l.Tenants[0].Destroyed; got != c.left {
			t.Errorf("%s: %.2f GPU-hours are left to be taken off, want %.2f", c.what, got.Hours(), c.left.Hours())
		}
	}
}

// GPUs that a lease holds for a job that has not begun, or that has finished since the last look,
// count as received: the tenant neither falls behind for that time nor is owed it. Tenant u takes
// what t lacks beyond that.
func TestLeasedGPUsAreHad(t *testing.T) {
	for _, c := range []struct {
		lease cluster.LeaseState
		ran   cluster.Span // from the last look on
		left  bool         // the job is over at the look
	}{
		{cluster.Granted, 0, false},
		{cluster.Granted, 20 * second, true},
		{cluster.Active, 20 * second, true},
		{cluster.Noticed, 20 * second, true},
		{cluster.Active, minute, false},
	} {
		b := open(t, 8)
		other := b.lending()
		other.Job.Holds[0].Size = cluster.Whole(5)
		job := waiting(1, 3)
		if c.lease != cluster.Granted {
			job = running(1, 3, b.now)
		}
		b.look(0, job, other)
		for i := range b.s.Ledger.Tenants {
			r := &b.s.Ledger.Tenants[i]
			r.Base, r.Entitlement, r.Demand = 4*gpu, 4*gpu, 8*gpu
		}
		b.s.Leases = []cluster.Lease{{Job: 1, State: c.lease, Pool: "v100", Size: cluster.Whole(3), Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(3)}}}}
		if c.left {
			job = done(running(1, 3, b.now), b.now.Add(c.ran))
		}
		b.pass(minute, job, other)
		want := cluster.Times(1, minute)
		if got := b.row("t"); got.Owed != want || got.Deficit != want || got.Alloc != cluster.Times(3, c.ran) {
			t.Errorf("%s, the job ran for %s: t is owed %d GPU-ms, %d behind, and received %d; want %d, %d and %d", c.lease, c.ran, got.Owed, got.Deficit, got.Alloc,
				want, want, cluster.Times(3, c.ran))
		}
	}
}

// GPUs that a job without a lease kept busy, or stranded, until it ended since the last look count as received to this look,
// and so do those that it still cleans up.
func TestGPUsOfEndedJobsAreHad(t *testing.T) {
	all := cluster.Holding{Node: "n1", CPUs: 1, MemoryMB: 800}
	for name, c := range map[string]struct {
		before, ran cluster.Case // the job at the two looks
		got         cluster.GPUTime
	}{
		"it ran":             {running(1, 3, begin), done(running(1, 3, begin), begin.Add(20*second)), cluster.Times(3, 20*second)},
		"it still cleans up": {completing(running(1, 3, begin), begin), completing(running(1, 3, begin), begin), 0},
		"it stranded":        {holding(running(1, 0, begin), all), done(running(1, 0, begin), begin.Add(20*second)), 0},
		"it is forgotten":    {holding(running(1, 0, begin), all), gone(1, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, 8)
			b.s.Nodes[0].CPUs, b.s.Nodes[0].MemoryMB = 80, 800
			other := b.lending()
			other.Job.Holds[0].Size = cluster.Whole(5)
			b.look(0, c.before, other)
			for i := range b.s.Ledger.Tenants {
				r := &b.s.Ledger.Tenants[i]
				r.Base, r.Entitlement, r.Demand = 4*gpu, 4*gpu, 8*gpu
			}
			b.pass(minute, c.ran, other)
			want := cluster.Times(1, minute)
			if got := b.row("t"); got.Owed != want || got.Deficit != want || got.Alloc != c.got {
				t.Errorf("t is owed %d GPU-ms, %d behind, and received %d; want %d, %d and %d", got.Owed, got.Deficit, got.Alloc, want, want, c.got)
			}
			if left := b.s.Ledger.Stranded; len(left) > 0 {
				t.Errorf("%v are stranded by a job that has ended", left)
			}
		})
	}
}

func holding(c cluster.Case, on cluster.Holding) cluster.Case {
	c.Job.Holds = []cluster.Holding{on}
	return c
}
