package spending_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
)

var berlin = load("Europe/Berlin")

func load(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// Periods begin at midnight of the zone, also across changes of daylight saving time.
func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		per             spending.Per
		at, start, ends string
	}{
		{spending.Week, "2026-11-26 13:00", "2026-11-23 00:00", "2026-11-30 00:00"},
		{spending.Week, "2026-11-29 23:59", "2026-11-23 00:00", "2026-11-30 00:00"},
		{spending.Week, "2026-11-30 00:00", "2026-11-30 00:00", "2026-12-07 00:00"},
		{spending.Week, "2026-10-25 12:00", "2026-10-19 00:00", "2026-10-26 00:00"}, // 169 hours
		{spending.Month, "2026-12-31 23:59", "2026-12-01 00:00", "2027-01-01 00:00"},
		{spending.Month, "2028-02-29 00:00", "2028-02-01 00:00", "2028-03-01 00:00"},
		{spending.Quarter, "2026-03-31 23:59", "2026-01-01 00:00", "2026-04-01 00:00"},
		{spending.Quarter, "2026-11-26 00:00", "2026-10-01 00:00", "2027-01-01 00:00"},
		{spending.Year, "2026-11-26 00:00", "2026-01-01 00:00", "2027-01-01 00:00"},
	} {
		b := spending.Budget{Per: c.per, Zone: berlin}
		at, err := time.ParseInLocation("2006-01-02 15:04", c.at, berlin)
		if err != nil {
			t.Fatal(err)
		}
		start, end := b.Period(cluster.InstantOf(at))
		words := func(i cluster.Instant) string { return i.Time().In(berlin).Format("2006-01-02 15:04") }
		if words(start) != c.start || words(end) != c.ends {
			t.Errorf("%s of %s: %s to %s, want %s to %s", c.per, c.at, words(start), words(end), c.start, c.ends)
		}
	}
}

// A period begins at the end of the gap where clocks skip its midnight, and once where they show it twice.
func TestPeriodsWhoseMidnightIsSkipped(t *testing.T) {
	for _, c := range []struct{ zone, at, start, ends string }{
		{"America/Asuncion", "2017-09-30T23:59:00-04:00", "2017-09-01T00:00:00-04:00", "2017-10-01T01:00:00-03:00"},
		{"America/Asuncion", "2017-10-01T01:00:00-03:00", "2017-10-01T01:00:00-03:00", "2017-11-01T00:00:00-03:00"},
		{"America/St_Johns", "2009-10-31T23:59:00-02:30", "2009-10-01T00:00:00-02:30", "2009-11-01T00:00:00-02:30"},
		{"America/St_Johns", "2009-10-31T23:30:00-03:30", "2009-11-01T00:00:00-02:30", "2009-12-01T00:00:00-03:30"}, // set back from 00:01
	} {
		zone := load(c.zone)
		b := spending.Budget{Per: spending.Month, Zone: zone}
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		start, end := b.Period(cluster.InstantOf(at))
		words := func(i cluster.Instant) string { return i.Time().In(zone).Format(time.RFC3339) }
		if words(start) != c.start || words(end) != c.ends {
			t.Errorf("%s: %s to %s, want %s to %s", c.at, words(start), words(end), c.start, c.ends)
		}
	}
}

// Every moment lies in its period, and the next period begins when that ends.
func TestPeriodsFollowEachOther(t *testing.T) {
	zones := []*time.Location{time.UTC, berlin, load("America/Asuncion"), load("America/St_Johns"), load("Asia/Beirut")}
	rapid.Check(t, func(rt *rapid.T) {
		b := spending.Budget{Per: spending.Per(rapid.SampledFrom(spending.Pers).Draw(rt, "per")), Zone: rapid.SampledFrom(zones).Draw(rt, "zone")}
		at := cluster.Instant(rapid.Int64Range(1_000_000_000_000, 4_000_000_000_000).Draw(rt, "at"))
		start, end := b.Period(at)
		next, _ := b.Period(end)
		last, until := b.Period(end - 1)
		if at < start || at >= end || next != end || last != start || until != end {
			rt.Errorf("%s is in %s to %s; the next begins %s", at, start, end, next)
		}
	})
}

const start cluster.Instant = 1_793_487_600_000 // 2026-11-01 00:00 in Berlin

func account(hours float64) spending.Account {
	b := spending.Budget{Tenant: "nlp", Hours: hours, Prices: map[string]float64{"h100": 4}, Per: spending.Month, Zone: berlin, AtEnd: spending.IdleOnly}
	a := spending.Account{Budget: b, Base: map[string]cluster.GPUTime{"h100": cluster.Times(10, cluster.Hour)}}
	a.Start, a.End = b.Period(start)
	return a
}

func has(h100, a100 int) []spending.Standing {
	return []spending.Standing{{Model: "h100", Received: cluster.Times(10+h100, cluster.Hour), Holds: cluster.CountOf(2)}, {Model: "a100", Received: cluster.Times(a100, cluster.Hour)}}
}

// GPU time from before the period does not count. GPUs that are held count to the minute, at the model's price.
func TestCount(t *testing.T) {
	a := account(1000)
	at := start.Add(cluster.Hour)
	a.Count(has(5, 7), at, at.Add(30*cluster.Minute))
	if a.Used != 4*(5+1)+7 || a.Received["h100"] != cluster.Times(6, cluster.Hour) || a.At != at.Add(30*cluster.Minute) {
		t.Errorf("used %v: %+v", a.Used, a)
	}
	a.Count(has(5, 7), at, at.Add(-cluster.Hour)) // a clock that was set back
	if a.Used != 4*5+7 || a.At != at {
		t.Errorf("used %v at %s", a.Used, a.At)
	}
}

// Each limit is reached once, and told until that was heard. Work that a stop destroys reaches back over no limit.
func TestLimits(t *testing.T) {
	a, at := account(100), start.Add(cluster.Hour)
	for _, step := range []struct {
		a100, told, reached int
		news                string
		idle                bool
	}{
		{79, 0, 0, "", false},
		{80, 0, 80, "tenant nlp has used 80 % of its budget of 100 GPU-hours for the month from 2026-11-01", false},
		{85, 0, 80, "tenant nlp has used 80 % of its budget", false},
		{85, 80, 80, "", false},
		{100, 80, 100, "used 100 % of its budget of 100 GPU-hours for the month from 2026-11-01; until 2026-12-01 00:00:00 it gets only GPUs that no other tenant wants", true},
		{99, 100, 100, "", true},
		{120, 100, 100, "", true},
	} {
		a.Told = step.told
		a.Count([]spending.Standing{{Model: "a100", Received: cluster.Times(step.a100, cluster.Hour)}}, at, at)
		s := a.State()
		if a.Reached() != step.reached || !strings.Contains(s.News, step.news) || (s.News == "") != (step.news == "") || (s.Since > 0) != step.idle || step.idle && s.Until != a.End {
			t.Errorf("%d of 100 used: reached %d, %+v", step.a100, a.Reached(), s)
		}
	}
	a.AtEnd = spending.Refuse
	if s := a.State(); s.Since == 0 || s.Until != a.End {
		t.Errorf("a budget that refuses jobs: %+v", s)
	}
	a.AtEnd = spending.Warn
	if s := a.State(); s != (cluster.TenantBudget{}) {
		t.Errorf("a budget that warns: %+v", s)
	}
}

// A changed budget counts at once; periods that are over, and budgets that the configuration no longer has, end.
func TestConfigure(t *testing.T) {
	a := account(100)
	a.Count(has(20, 10), start.Add(cluster.Hour), start.Add(cluster.Hour))
	a.Told = 100
	if a.Used != 90 || a.Reached() != 80 {
		t.Fatalf("used %v, reached %d", a.Used, a.Reached())
	}
	smaller, larger := a.Budget, a.Budget
	smaller.Hours, larger.Hours = 90, 1000
	book, missing := spending.Book{a}.Configure([]spending.Budget{smaller}, start)
	if len(missing) != 0 || book[0].Spent == 0 || book.States()["nlp"].Since == 0 {
		t.Errorf("with 90 hours: %+v, missing %v", book, missing)
	}
	book, _ = book.Configure([]spending.Budget{larger}, start)
	if book[0].Reached() != 0 || book[0].Told != 0 || book.States() != nil {
		t.Errorf("with 1000 hours: %+v", book)
	}
	if book, missing = book.Configure([]spending.Budget{larger}, a.End); len(book) != 0 || len(missing) != 1 {
		t.Errorf("in the next period: %+v, missing %v", book, missing)
	}
	if book, missing = (spending.Book{a}).Configure(nil, start); len(book) != 0 || len(missing) != 0 {
		t.Errorf("without a budget: %+v, missing %v", book, missing)
	}
}

// A round counts the budgets of 100 tenants on four models.
func BenchmarkCount(b *testing.B) {
	var budgets []spending.Budget
	var book spending.Book
	standing := []spending.Standing{{Model: "a100", Holds: cluster.CountOf(8)}, {Model: "h100", Holds: cluster.CountOf(8)}, {Model: "k80"}, {Model: "v100", Holds: cluster.CountOf(2)}}
	for i := range 100 {
		a := account(1e6)
		a.Tenant = fmt.Sprintf("tenant%02d", i)
		budgets, book = append(budgets, a.Budget), append(book, a)
	}
	b.ReportAllocs()
	for now := start; b.Loop(); now++ {
		book, _ = book.Configure(budgets, now)
		for i := range book {
			book[i].Count(standing, start, now)
		}
		if book.States() != nil {
			b.Fatal("a limit was reached")
		}
	}
}
