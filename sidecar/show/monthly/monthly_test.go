package monthly_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/show/monthly"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// number is a line of a CSV file.
type number struct{ tenant, of, user, model, measure string }

// read reads the CSV files of a folder.
func read(t *testing.T, folder string) map[number]float64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	out := map[number]float64{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(f).ReadAll()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || strings.Join(lines[0], " ") != "tenant month of user model measure value unit" {
			t.Fatalf("%s: %v, %v", file, lines, err)
		}
		for _, l := range lines[1:] {
			key := number{l[0], l[2], l[3], l[4], l[5]}
			value, err := strconv.ParseFloat(l[6], 64)
			if _, twice := out[key]; twice || err != nil || l[1] != "2027-01" {
				t.Errorf("%s: %v, %v", file, l, err)
			}
			out[key] = value
		}
	}
	return out
}

// sum adds up numbers, in GPU-milliseconds.
func sum(numbers map[number]float64, which func(number) bool) (ms int64) {
	for n, hours := range numbers {
		if which(n) {
			ms += int64(math.Round(hours * 3_600_000))
		}
	}
	return ms
}

// A journal of three days on two models: all reports add up to the accounts, to the millisecond, in each way to add them up.
func TestReportsAddUp(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	set := simtest.Product()
	set.Term = cluster.Hour
	w := simtest.New(t, set, append(simtest.Nodes("v", "v100", 2, 8), simtest.Nodes("k", "k80", 1, 4)...), "nlp", "vision/+", "late")
	w.Loop.Journal = lead.Journal()
	for i := range 60 {
		work := sim.Work{Name: "train", User: fmt.Sprintf("user%d", i%5), Account: []string{"nlp", "vision/+", "nlp"}[i%3], Partition: "gpu",
			Request: simtest.Gang([]int{1, 2, 4, 8}[i%4]), Runs: cluster.Span(1+i%9) * cluster.Hour, Saves: sim.Never}
		w.Virtual.Submit(work)
		w.Run(cluster.Hour)
	}
	w.Run(12 * cluster.Hour)
	account := spending.Account{Budget: spending.Budget{Tenant: "nlp", Hours: 500, Prices: map[string]float64{"v100": 3}, Per: spending.Month, Zone: time.UTC, AtEnd: spending.Warn}}
	account.Start, account.End = account.Period(w.Now())
	account.Count(nil, w.Now(), w.Now())
	if err := lead.Spend(t.Context(), spending.Book{account}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	o := monthly.Order{Month: "2027-01", Folder: folder, Cluster: "c1", Now: w.Now().Time()}
	paths, err := o.Save(t.Context(), s)
	if err != nil || len(paths) != 6 || !slices.Contains(paths, filepath.Join(folder, "vision%2F+-2027-01.csv")) {
		t.Fatalf("%v, %v", paths, err)
	}
	got := read(t, folder)
	last := w.Last.State.Ledger
	if _, plan, err := s.Rounds.Last(t.Context()); err == nil {
		last = plan.State.Ledger
	} else {
		t.Fatal(err)
	}
	for _, row := range last.Tenants {
		models := func(measure string) func(number) bool {
			return func(n number) bool {
				return n.tenant == row.Tenant && n.model == row.Pool && n.of == "model" && n.measure == measure
			}
		}
		users := func(n number) bool {
			return n.tenant == row.Tenant && n.model == row.Pool && n.of == "user" && n.measure == "gpu_hours"
		}
		if all := sum(got, models("gpu_hours")); all != int64(row.Alloc) || sum(got, users) != all || sum(got, models("own"))+sum(got, models("borrowed")) != all {
			t.Errorf("%s on %s: the account has %d GPU-ms, the report %d, its users %d, own %d, borrowed %d", row.Tenant, row.Pool, row.Alloc, all, sum(got, users), sum(got, models("own")), sum(got, models("borrowed")))
		}
	}
	// The hourly accounts have the same: the growth of each hour, over all tenants.
	db := storetest.Connect(t, dsn)
	var hourly int64
	err = db.QueryRow(t.Context(), `select sum(grown)::bigint from (
		select max(alloc_gpu_ms) - coalesce(lag(max(alloc_gpu_ms)) over (partition by tenant, pool order by date_trunc('hour', at)), 0) as grown
		from (select tenant, pool, at, alloc_gpu_ms from fairlease.tenant_history union all select tenant, pool, at, alloc_gpu_ms from fairlease.ledger) h
		group by tenant, pool, date_trunc('hour', at)) g`).Scan(&hourly)
	if all := sum(got, func(n number) bool { return n.of == "model" && n.measure == "gpu_hours" }); err != nil || hourly != all || all == 0 {
		t.Errorf("the hours have %d GPU-ms, the reports %d; %v", hourly, all, err)
	}
	var lost int64
	if err := db.QueryRow(t.Context(), "select sum(gpu_ms)::bigint from fairlease.losses").Scan(&lost); err != nil || lost != sum(got, func(n number) bool { return n.of == "tenant" && n.measure == "work_lost" }) || lost == 0 {
		t.Errorf("stops destroyed %d GPU-ms, %v", lost, err)
	}
	lent, borrowed := sum(got, func(n number) bool { return n.measure == "lent" }), sum(got, func(n number) bool { return n.measure == "borrowed" })
	if borrowed == 0 || borrowed > lent+3 || borrowed < lent*9/10 { // borrowed from the grant, charged from the start
		t.Errorf("lent %d GPU-ms, borrowed %d", lent, borrowed)
	}
	if got[number{"nlp", "model", "", "v100", "price"}] != 3 || got[number{"nlp", "tenant", "", "", "budget"}] != 500 || got[number{"nlp", "tenant", "", "", "first_leases"}] != 40 || got[number{"nlp", "tenant", "", "", "rho"}] <= 0 {
		t.Errorf("%v", got)
	}
	if _, ok := got[number{"vision/+", "model", "", "v100", "price"}]; ok {
		t.Error("a tenant without a budget has prices")
	}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err != nil || strings.HasSuffix(path, ".html") && !whole(t, string(text)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, o := range []monthly.Order{{Month: "2026-12"}, {Month: "2027-02"}, {Month: "January"}, {Month: "2027-01", Tenants: []string{"nobody"}}, {Month: "2027-01", Folder: filepath.Join(folder, "none")}} {
		if o.Now = w.Now().Time(); o.Folder == "" {
			o.Folder = folder
		}
		if _, err := o.Save(t.Context(), s); err == nil {
			t.Errorf("%+v has no error", o)
		}
	}
}

// whole tells whether a page is well-formed, and asks for nothing.
func whole(t *testing.T, text string) bool {
	t.Helper()
	for _, bad := range []string{"<nil>", "%!", "ZgotmplZ", "no value"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
			return false
		}
	}
	z := html.NewTokenizer(strings.NewReader(text))
	for z.Next() != html.ErrorToken {
		for _, a := range z.Token().Attr {
			if a.Key == "src" || a.Key == "href" {
				t.Errorf("the page asks for %s", a.Val)
				return false
			}
		}
	}
	return strings.HasSuffix(strings.TrimSpace(text), "</html>")
}

// Names cannot break the page, and a month without anything is a page, too.
func TestOddReports(t *testing.T) {
	begin, end, err := monthly.Parse("2026-10")
	if err != nil || end.Sub(begin) != 31*24*time.Hour {
		t.Fatal(begin, end, err)
	}
	odd := `</script><b>"'&`
	for _, m := range []*store.Month{
		{Tenant: odd},
		{Tenant: odd, Charges: []store.Charge{{Day: begin, User: odd, Model: odd, Time: cluster.GPUTime(cluster.Hour)}}, Waits: []store.Wait{{User: odd, Seconds: 5}}, Steps: []store.Step{{Model: odd, At: begin, Holds: 3, Due: 2}},
			Budget: &store.PastBudget{Per: "month", Hours: 3, Used: 4, Prices: map[string]float64{odd: 2}}, Trades: []store.Traded{{Model: "other", Got: 7}}, Lost: []store.LostBy{{User: "gone", Time: 3}}},
	} {
		var out bytes.Buffer
		if err := monthly.Of(m, begin, end, odd, nil).Page(&out); err != nil || !whole(t, out.String()) || strings.Contains(out.String(), "<b>\"'&") {
			t.Errorf("%v", err)
		}
	}
}

var shots = flag.String("shots", "", "a folder for pages that people look at")

// A full month, and one that is not over, with everything that a page can have. The flag -shots leaves the pages in a folder.
func TestFullMonth(t *testing.T) {
	folder := cmp.Or(*shots, t.TempDir())
	begin, end, _ := monthly.Parse("2026-10")
	m := &store.Month{Tenant: "nlp", Received: 105, Due: 100, Lost: []store.LostBy{{User: "ann", Stops: 3, Time: cluster.Times(12, cluster.Hour)}},
		Lending: []store.Lent{{Model: "h100", Lent: cluster.Times(1200, cluster.Hour), Borrowed: cluster.Times(2600, cluster.Hour)}, {Model: "a100", Lent: cluster.Times(300, cluster.Hour)}},
		Idle:    []store.IdleBy{{User: "bob", Model: "a100", Time: cluster.Times(431, cluster.Hour)}},
		Trades:  []store.Traded{{Model: "h100", Gave: cluster.Times(200, cluster.Hour)}, {Model: "a100", Got: cluster.Times(410, cluster.Hour)}},
		Budget:  &store.PastBudget{Per: "month", Hours: 60000, Used: 52345, Prices: map[string]float64{"h100": 4, "a100": 2}}}
	for day := range 31 {
		for u, name := range []string{"ann", "bob", "carol", "dimitri", "a-user-with-a-very-long-name"} {
			wave := 1 + math.Sin(float64(day)/4+float64(u))
			at := begin.AddDate(0, 0, day)
			m.Charges = append(m.Charges, store.Charge{Day: at, User: name, Model: "h100", Time: cluster.GPUTime(float64(cluster.Hour) * 60 * wave / float64(u+1))},
				store.Charge{Day: at, User: name, Model: "a100", Time: cluster.GPUTime(float64(cluster.Hour) * 40 * wave)})
		}
		for k := range 4 {
			m.Steps = append(m.Steps, store.Step{Model: "h100", At: begin.AddDate(0, 0, day).Add(time.Duration(6*k) * time.Hour), Holds: 10 + 8*math.Sin(float64(4*day+k)/16), Due: 12})
		}
	}
	for i := range 400 {
		m.Waits = append(m.Waits, store.Wait{User: []string{"ann", "bob", "carol"}[i%3], Seconds: float64(i * i / 10)})
	}
	for name, now := range map[string]time.Time{"whole": end, "part": begin.AddDate(0, 0, 12).Add(7 * time.Hour)} {
		var out bytes.Buffer
		if err := monthly.Of(m, begin, now, "c1", nil).Page(&out); err != nil {
			t.Fatal(err)
		}
		for _, has := range []string{"Got by trades", "<b>87&nbsp;%</b>", "a-user-with-a-very-long-name", "<td>18,185</td>", map[string]string{"whole": "The month is over.", "part": "numbers up to 13 Oct 2026 07:00 UTC"}[name]} {
			if !whole(t, out.String()) || !strings.Contains(out.String(), has) {
				t.Errorf("the %s month does not have %q", name, has)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name+".html"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Names of tenants and users begin no formula in a spreadsheet.
func TestNoFormulas(t *testing.T) {
	r := &monthly.Report{Month: &store.Month{Tenant: "@nlp"}, Users: []monthly.User{{Name: "=cmd", Idle: 1}}}
	var out strings.Builder
	if err := r.CSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if row[0] != "'@nlp" || row[3] != "" && row[3] != "'=cmd" {
			t.Errorf("a cell of %q begins a formula", row)
		}
	}
}
