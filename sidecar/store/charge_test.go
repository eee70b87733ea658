package store

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	day      = cluster.Instant(cluster.Day)
	midnight = 20514 * day // 2026-03-02
)

func TestDays(t *testing.T) {
	t.Parallel()
	type part struct {
		Day  int
		Time cluster.GPUTime
	}
	for _, c := range []struct {
		name     string
		from, to cluster.Instant
		total    cluster.GPUTime
		want     []part
	}{
		{"within a day", midnight + 1, midnight + 100, 99, []part{{0, 99}}},
		{"up to midnight", midnight - 100, midnight, 100, []part{{-1, 100}}},
		{"across midnight", midnight - 25, midnight + 75, 400, []part{{-1, 100}, {0, 300}}},
		{"the odd millisecond is not lost", midnight - 1, midnight + 2, 100, []part{{-1, 33}, {0, 67}}},
		{"three days", midnight - day, midnight + 2*day, 3, []part{{-1, 1}, {0, 1}, {1, 1}}},
		{"taken back", midnight - 25, midnight + 75, -400, []part{{-1, -100}, {0, -300}}},
		{"no time at all", midnight, midnight, 5, []part{{0, 5}}},
		{"nothing", midnight - 10, midnight + 10, 0, nil},
		{"all that fits", midnight - day/2, midnight + day/2, math.MaxInt64, []part{{-1, math.MaxInt64 / 2}, {0, math.MaxInt64/2 + 1}}},
	} {
		var got []part
		stretch{c.from, c.to}.days(c.total, func(d date, g cluster.GPUTime) {
			got = append(got, part{int((cluster.Instant(d) - midnight) / day), g})
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := dateOf(-1); got != date(-day) {
		t.Errorf("the millisecond before 1970 is of day %d", got)
	}
}

func TestReceived(t *testing.T) {
	t.Parallel()
	two := []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}
	const last, at = 1000, 2000
	for _, c := range []struct {
		name string
		was  holder
		now  cluster.Record
		want stretch
	}{
		{"it ran all the time", holder{alloc: 50, held: two},
			cluster.Record{Alloc: 2050, Held: two, HeldSince: 500}, stretch{1000, 2000}},
		{"it started in between", holder{},
			cluster.Record{Alloc: 600, Held: two, HeldSince: 1700}, stretch{1700, 2000}},
		{"it ended in between", holder{alloc: 50, held: two},
			cluster.Record{Alloc: 650}, stretch{1000, 1300}},
		{"it is new, and ran before the last round", holder{},
			cluster.Record{Alloc: 2400, Held: two, HeldSince: 800}, stretch{800, 2000}},
		{"nobody knows what it held", holder{},
			cluster.Record{Alloc: 10}, stretch{1000, 2000}},
		{"it received more than its GPUs can have made", holder{held: two},
			cluster.Record{Alloc: 9000, Held: two}, stretch{1000, 2000}},
	} {
		if got := received(c.was, c.now, !strings.HasPrefix(c.name, "it is new"), last, at); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := received(holder{}, cluster.Record{}, false, 0, at); got != (stretch{at, at}) {
		t.Errorf("in the first round ever: %v", got)
	}
}

// TestCharges charges tenants more than their jobs explain: the rest goes to no user.
func TestCharges(t *testing.T) {
	t.Parallel()
	w := newWritten(cluster.Minute)
	w.charged, w.nextKey = midnight-100, 3
	w.accounts = map[accountKey]cluster.GPUTime{{"bio", "a100"}: 1000}
	w.holders = map[cluster.JobKey]holder{
		1: {alloc: 500, held: []cluster.ModelSize{{Model: "a100", Size: cluster.Whole(1)}}},
		2: {alloc: 0, held: []cluster.ModelSize{{Model: "a100", Size: cluster.Whole(2)}, {Model: "v100", Size: cluster.Whole(1)}}},
	}
	rows := w.charges(cluster.Snapshot{Cases: []cluster.Case{{Record: cluster.Record{Key: 4}, Job: cluster.Job{
		Holds: []cluster.Holding{{Node: "n1", Model: "k80", Size: cluster.Whole(1)}, {Node: "n2", Model: "k80", Size: cluster.Whole(1)}}}}},
	}, cluster.State{
		Records: []cluster.Record{
			{Key: 1, Tenant: "bio", User: "ann", Alloc: 700, Held: w.holders[1].held},
			{Key: 2, Tenant: "bio", User: "bob", Alloc: 300},
			{Key: 3, User: "foreign", Alloc: 7},
			{Key: 4, Tenant: "bio", User: "cy", Alloc: 50},
			{Key: 5, Tenant: "bio", User: "dan", Alloc: 9, Held: w.holders[1].held, Uncharged: true},
		},
		Ledger: cluster.Ledger{At: midnight + 100, Tenants: []cluster.TenantPool{
			{Tenant: "bio", Pool: "a100", Alloc: 1440}, {Tenant: "bio", Pool: "k80", Alloc: 50}, {Tenant: "bio", Pool: "v100", Alloc: 98},
		}},
	})
	today, yesterday := date(midnight), date(midnight-day)
	want := map[chargeKey]cluster.GPUTime{
		{yesterday, "bio", "ann", "a100"}: 100, {today, "bio", "ann", "a100"}: 100,
		{yesterday, "bio", "bob", "a100"}: 200, {yesterday, "bio", "bob", "v100"}: 100,
		{yesterday, "bio", "cy", "k80"}: 25, {today, "bio", "cy", "k80"}: 25,
		{yesterday, "bio", "", "a100"}: 20, {today, "bio", "", "a100"}: 20,
		{yesterday, "bio", "", "v100"}: -1, {today, "bio", "", "v100"}: -1,
	}
	got := map[chargeKey]cluster.GPUTime{}
	for _, row := range rows {
		got[row.chargeKey] = row.Time
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Destroyed work is deducted from the received time of the job's user, even if the job holds no
// GPUs by then.
func TestDestroyedWorkLeavesItsUser(t *testing.T) {
	t.Parallel()
	w := newWritten(cluster.Minute)
	w.charged = midnight
	w.accounts = map[accountKey]cluster.GPUTime{{"bio", "a100"}: 1000}
	w.holders = map[cluster.JobKey]holder{1: holderOf(&cluster.Record{Alloc: 500,
		Stopping: &cluster.PendingStop{GPUs: []cluster.ModelSize{{Model: "a100", Size: cluster.Whole(2)}}, Work: 100}})}
	got := w.charges(cluster.Snapshot{}, cluster.State{
		Records: []cluster.Record{{Key: 1, Tenant: "bio", User: "ann", Alloc: 300, Lost: 200}},
		Ledger:  cluster.Ledger{At: midnight + 100, Tenants: []cluster.TenantPool{{Tenant: "bio", Pool: "a100", Alloc: 800}}},
	})
	want := []chargeRow{{chargeKey{date(midnight), "bio", "ann", "a100"}, -200}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(chargeRow{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLendings(t *testing.T) {
	t.Parallel()
	const g = cluster.WholeGPU
	type pair struct {
		Pool, From, To string
		GPUs           millionths
	}
	for _, c := range []struct {
		name      string
		standings []cluster.TenantStatus
		want      []pair
	}{
		{"nobody", []cluster.TenantStatus{{Tenant: "a", Pool: "p"}, {Tenant: "b", Pool: "p", Borrowed: g}}, nil},
		{"one to one", []cluster.TenantStatus{{Tenant: "a", Pool: "p", Lent: 2 * g}, {Tenant: "b", Pool: "p", Borrowed: 2 * g}},
			[]pair{{"p", "a", "b", 2_000_000}}},
		{"pools apart", []cluster.TenantStatus{{Tenant: "a", Pool: "p", Lent: g}, {Tenant: "a", Pool: "q", Borrowed: g},
			{Tenant: "b", Pool: "q", Lent: g}, {Tenant: "b", Pool: "p", Borrowed: g}},
			[]pair{{"p", "a", "b", 1_000_000}, {"q", "b", "a", 1_000_000}}},
		{"in proportion", []cluster.TenantStatus{{Tenant: "a", Pool: "p", Lent: 3 * g}, {Tenant: "b", Pool: "p", Lent: g},
			{Tenant: "c", Pool: "p", Borrowed: 2 * g}, {Tenant: "d", Pool: "p", Borrowed: 2 * g}},
			[]pair{{"p", "a", "c", 1_500_000}, {"p", "a", "d", 1_500_000}, {"p", "b", "c", 500_000}, {"p", "b", "d", 500_000}}},
		{"more lent than borrowed", []cluster.TenantStatus{{Tenant: "a", Pool: "p", Lent: 3 * g}, {Tenant: "b", Pool: "p", Lent: 3 * g},
			{Tenant: "c", Pool: "p", Borrowed: g}},
			[]pair{{"p", "a", "c", 500_000}, {"p", "b", "c", 500_000}}},
		{"the odd millionth is not lost", []cluster.TenantStatus{{Tenant: "a", Pool: "p", Lent: 1}, {Tenant: "b", Pool: "p", Lent: 1}, {Tenant: "c", Pool: "p", Lent: 1},
			{Tenant: "d", Pool: "p", Borrowed: 1}, {Tenant: "e", Pool: "p", Borrowed: 1}},
			[]pair{{"p", "b", "e", 1}, {"p", "c", "d", 1}}},
	} {
		var got []pair
		for _, row := range lendings(c.standings, 1) {
			got = append(got, pair{row.Pool, row.Lender, row.Borrower, row.GPUs})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
