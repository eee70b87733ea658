package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

const at = cluster.Instant(1_800_000_000_000) // 2027-01-15 08:00:00 UTC

// A table is aligned for people and separated by bars for programs; long cells overflow.
func TestTable(t *testing.T) {
	long := strings.Repeat("x", 61)
	for _, c := range []struct {
		name    string
		form    view.Form
		colours bool
		want    string
	}{
		{"for people", view.Form{}, false, "NAME  GPUS\na        8\n" + long + "    16\n"},
		{"without a header", view.Form{NoHeader: true}, false, "a        8\n" + long + "    16\n"},
		{"for programs", view.Form{Parsable: true}, false, "NAME|GPUS\na|8\n" + long + "|16\n"},
		{"for programs, without a header", view.Form{Parsable: true, NoHeader: true}, true, "a|8\n" + long + "|16\n"},
		{"in colours", view.Form{NoHeader: true}, true, "\x1b[31ma\x1b[0m        8\n" + long + "    16\n"},
		{"as JSON", view.Form{JSON: true}, true, "[\n  \"<all>\"\n]\n"},
	} {
		var out bytes.Buffer
		table := &view.Table{Head: []string{"NAME", ">GPUS"}, Tint: func(row, column int) string {
			if row == 0 && column == 0 {
				return "red"
			}
			return ""
		}}
		table.Add("a", "8")
		table.Add(long, "16")
		p := &view.Page{Out: &out, Form: c.form, Colours: c.colours}
		if err := p.List(table, []string{"<all>"}); err != nil || out.String() != c.want {
			t.Errorf("%s (%v):\n%s\nwant\n%s", c.name, err, out.String(), c.want)
		}
	}
}

// A cell for programs has neither a bar nor an end of a line, which users may write.
func TestDelimitersInCells(t *testing.T) {
	var out bytes.Buffer
	table := &view.Table{Head: []string{"JOB", "REASON"}}
	table.Add("7", "a|b\r\nc\nd\re")
	if (&view.Page{Out: &out, Form: view.Form{Parsable: true}}).Table(table); out.String() != "JOB|REASON\n7|a b c d e\n" {
		t.Errorf("%q", out.String())
	}
}

// Only output for people names a list's round.
func TestAsOf(t *testing.T) {
	for _, c := range []struct {
		form  view.Form
		round int64
		want  string
	}{
		{view.Form{}, 7, "\nas of round 7 at 08:00:00 (in 5 min)\n"},
		{view.Form{}, 0, "no round has been recorded yet\n"},
		{view.Form{Parsable: true}, 7, ""}, {view.Form{JSON: true}, 0, ""}, {view.Form{NoHeader: true}, 7, ""},
	} {
		var out bytes.Buffer
		(&view.Page{Out: &out, Form: c.form, Now: at.Add(-5 * cluster.Minute)}).AsOf(c.round, at)
		if out.String() != c.want {
			t.Errorf("%+v, round %d: %q, want %q", c.form, c.round, out.String(), c.want)
		}
	}
}

// A state is one line on a terminal, and separate lines elsewhere; nothing is repeated.
func TestLine(t *testing.T) {
	for terminal, want := range map[bool]string{
		true:  "\r\x1b[Kwaits\r\x1b[Kfairlease: odd\n\r\x1b[Kruns\r\x1b[K",
		false: "waits\nfairlease: odd\nruns\n",
	} {
		var out bytes.Buffer
		l := view.Line{Out: &out, Terminal: terminal}
		for _, text := range []string{"waits", "waits"} {
			l.Set(text)
		}
		l.Say("odd")
		l.Say("odd")
		l.Set("runs")
		l.End()
		if out.String() != want {
			t.Errorf("terminal %v: %q, want %q", terminal, out.String(), want)
		}
	}
}

// A bar appears after two seconds, changes at most five times a second and is removed at the end.
func TestBar(t *testing.T) {
	begun := at.Time()
	for _, c := range []struct {
		over, of int
		after    time.Duration
		want     string
	}{
		{1, 2, time.Second, ""},
		{0, 100, time.Minute, "\r[..............................]   0 %  0 of 100 jobs, ? left   \r\x1b[K"},
		{50, 100, time.Minute, "\r[###############...............]  50 %  50 of 100 jobs, 1 min left   \r\x1b[K"},
		{100, 100, time.Minute, "\r[##############################] 100 %  100 of 100 jobs, 0 s left   \r\x1b[K"},
		{0, 0, time.Minute, ""},
	} {
		var out bytes.Buffer
		b := view.NewBar(&out, begun)
		b.Set(c.over, c.of, begun.Add(c.after))
		b.Set(c.over, c.of, begun.Add(c.after+time.Millisecond)) // too soon after the previous one
		b.End()
		if out.String() != c.want {
			t.Errorf("%d of %d after %v: %q, want %q", c.over, c.of, c.after, out.String(), c.want)
		}
	}
	none := view.NewBar(nil, begun)
	none.Set(1, 2, begun.Add(time.Hour))
	none.End()
}

// Values are written as the file would have them.
func TestConfigTable(t *testing.T) {
	var out bytes.Buffer
	p := &view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}}
	p.Table(view.ConfigTable([]config.Value{{Key: "mode", Value: "act"}, {Key: "license", Value: ""}, {Key: "partitions", Value: []string{"gpu"}}, {Key: "retries", Value: 2}}))
	const want = "mode|act|\nlicense|\"\"|\npartitions|[\"gpu\"]|\nretries|2|\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Shares appear only if all tenants are listed; a debt is settled when the creditor's is.
func TestTenants(t *testing.T) {
	hour := cluster.GPUTime(3_600_000)
	all := []store.Tenant{{}, {}}
	all[0].Tenant, all[0].Pool, all[0].Weight, all[0].Owed, all[0].EvenIn = "nlp", "v100", 3, hour, nil
	all[1].Tenant, all[1].Pool, all[1].Weight = "vision", "v100", 1
	show := func(table *view.Table) string {
		var out bytes.Buffer
		(&view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}}).Table(table)
		return out.String()
	}
	if got := show(view.TenantTable(view.Form{Parsable: true}, all, true)); !strings.HasPrefix(got, "nlp|v100|75.0%|") || !strings.Contains(got, "|1.00|0.00|paused\n") || !strings.Contains(got, "\nvision|v100|25.0%|") || !strings.HasSuffix(got, "|-\n") {
		t.Error(got)
	}
	if got := show(view.TenantTable(view.Form{Parsable: true}, all[:1], false)); !strings.HasPrefix(got, "nlp|v100|-|") {
		t.Error(got)
	}
	debts := []store.Debt{{Pool: "v100", Creditor: "nlp", Debtor: "vision", Time: float64(hour)}}
	if got := show(view.DebtTable(view.Form{Parsable: true}, debts, all)); got != "v100|nlp|vision|1.00|paused\n" {
		t.Error(got)
	}
	users := []cluster.UserAccount{{Tenant: "nlp", User: "ann", Wants: []cluster.UserDemand{{Pool: "k80", GPUs: cluster.WholeGPU}, {Pool: "v100", GPUs: 2 * cluster.WholeGPU}},
		Owed: -hour, Lent: hour / 2, Alloc: hour, Due: hour, Before: cluster.UserTime{Alloc: 2 * hour, Due: hour}}}
	if got := show(view.UserTable(users)); got != "nlp|ann|3.00|3.00|2.00|1.500|-1.00|0.50\n" {
		t.Error(got)
	}
}

// Past orders say when they ended, and who ended them.
func TestOverrideTable(t *testing.T) {
	end, by := at.Time(), "root"
	var out bytes.Buffer
	p := &view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}, Now: at}
	p.Table(p.OverrideTable([]store.Override{{ID: 1, Kind: "boost", Scope: "user", Name: "ann", Until: at.Add(cluster.Hour).Time(), By: "bob", Reason: "r"},
		{ID: 2, Kind: "freeze", Scope: "job", Name: "7", Until: at.Add(cluster.Hour).Time(), Ended: &end, EndedBy: &by}}))
	if want := "1|boost|user|ann|09:00:00|bob||r\n2|freeze|job|7|08:00:00||root|\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A list without rows says why, for people; programs get its head.
func TestEmptyLists(t *testing.T) {
	p := &view.Page{Now: at}
	for name, table := range map[string]*view.Table{
		"tenants": view.TenantTable(p.Form, nil, true), "users": view.UserTable(nil), "debts": view.DebtTable(p.Form, nil, nil), "leases": p.LeaseTable(nil, false), "past leases": p.LeaseTable(nil, true),
		"gpus": p.GPUTable(nil), "forecasts": p.ForecastTable(nil), "overrides": p.OverrideTable(nil), "released": p.ReleaseTable(nil), "budgets": p.BudgetTable(nil),
		"habits": view.HabitTable(p, nil), "profiles": view.ProfileTable(p, nil), "sources of profiles": view.ProfileCheckTable(p, nil), "trades": p.TradeTable(nil), "bound": p.BoundTable(nil),
	} {
		for _, form := range []view.Form{{}, {Parsable: true}} {
			var out bytes.Buffer
			(&view.Page{Out: &out, Form: form}).Table(table)
			if says := strings.HasSuffix(out.String(), ".\n"); says == form.Parsable || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("the empty list of %s, for programs %t: %q", name, form.Parsable, out.String())
			}
		}
	}
}

// A forecast of another state of the job is none, and says when the next one comes; moments that have passed are now.
func TestForecastsOfThePast(t *testing.T) {
	of := func(minutes ...int) (out [3]*time.Time) {
		for i, m := range minutes {
			then := at.Add(cluster.Span(m) * cluster.Minute).Time()
			out[i] = &then
		}
		return out
	}
	p := &view.Page{Now: at, Every: 10 * cluster.Minute}
	for _, c := range []struct {
		state  string
		waits  bool
		starts [3]*time.Time
		want   string
	}{
		{"waiting", true, of(5, 10, 15), "starts about 08:10, between 08:05 and 08:15 in 8 of 10 runs; "},
		{"waiting", true, of(-5, 10, 15), "starts about 08:10, by 08:15 in 9 of 10 runs; "},
		{"waiting", true, of(-9, -5, 15), "starts about now, by 08:15 in 9 of 10 runs; "},
		{"waiting", true, of(-9, -5, -1), "starts now: nearly all runs expected it by 07:59; "},
		{"waiting", true, of(-9), "starts in more than 7 days in half of the runs; "},
		{"waiting", false, of(5, 10, 15), "none: it has begun to wait again since the newest forecasts were made; the next ones come at 08:06:00 (in 6 min) (forecast.every); to make one now: fairlease forecast 7 --now"},
		{"running", true, of(5, 10, 15), "none: it has started since the newest forecasts were made; the next ones come at 08:06:00"},
	} {
		f := store.Forecast{Waits: c.waits, StartP10: c.starts[0], StartP50: c.starts[1], StartP90: c.starts[2], AsOf: at.Add(-4 * cluster.Minute).Time(), Runs: 100, Horizon: 7 * 24 * time.Hour}.As(c.state)
		if got := p.Ahead(&f, "7"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, forecast as one that waits %t: %q, want %q", c.state, c.waits, got, c.want)
		}
	}
	if got := p.NoForecast("7"); !strings.HasPrefix(got, "none yet: forecasts are made every 10 min ") {
		t.Error(got)
	}
	if got := (&view.Page{}).NoForecast("7"); got != "" {
		t.Errorf("where none are made: %q", got)
	}
}

// The time of a requeue is not that of the submission, and rho and debts are written alike wherever they stand.
func TestNumbersThatDoNotExist(t *testing.T) {
	submit, eligible := at.Time(), at.Add(-cluster.Hour).Time()
	j := store.Job{Submitted: &submit, Eligible: &eligible}
	if j.TellRequeue(); j.Submitted != nil || j.LastQueued == nil {
		t.Errorf("%v after %v", j.Submitted, j.Eligible)
	}
	first := store.Job{Submitted: &eligible, Eligible: &submit}
	if first.TellRequeue(); first.Submitted == nil || first.LastQueued != nil {
		t.Errorf("%v before %v", first.Submitted, first.Eligible)
	}
	if got := view.Rho(0, 0) + " " + view.Rho(0, cluster.WholeGPU) + " " + view.Rho(cluster.Fair, 0) + " " + view.JobRho(0, 0) + " " + view.JobRho(0, 1); got != "- 0.000 1.000 - 0.000" {
		t.Error(got)
	}
	for owed, want := range map[cluster.GPUTime]string{36_000: "|0.01|0.00|paused", -36_000: "|-0.01|0.00|paused", 17_000: "|0.00|0.00|-", -17_000: "|0.00|0.00|-", 0: "|0.00|0.00|-"} {
		var out bytes.Buffer
		(&view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}}).Table(view.TenantTable(view.Form{Parsable: true}, []store.Tenant{{Owed: owed}}, true))
		if !strings.HasSuffix(out.String(), want+"\n") || !strings.Contains(out.String(), "|0|-|") {
			t.Errorf("owed %d: %s", owed, &out)
		}
	}
}
