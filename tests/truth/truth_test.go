// Package truth checks that nothing that people and programs are told of a round contradicts the numbers of that round: the sentences of
// explain, the tables of the commands, the pages and the JSON.
package truth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/outlook"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// told is all that is told of a round at a moment: texts by their places.
type told struct {
	*scene.Keeper
	past *scenetest.Past
	now  cluster.Instant
	text map[string]string
}

func (d *told) Past() scene.Past { return scene.Past{PastJobs: d.past, PastRounds: d.past} }

// mostJobs is the number of jobs whose pages are read.
const mostJobs = 12

var operator = rights.Person{User: "root", Operator: true}

// tell collects what commands, pages and the API tell of facts at a moment.
func tell(t testing.TB, f, past scene.Facts, now cluster.Instant) *told {
	d := &told{Keeper: scene.Hold(scene.Of(f)), past: &scenetest.Past{Facts: past}, now: now, text: map[string]string{}}
	s := d.Scene()
	pages := (&page.Pages{Source: d, Zone: time.UTC, Every: 10 * cluster.Minute, Now: now.Time}).Handler()
	answers := (&api.API{Source: d, Version: "test"}).Handler()
	get := func(h http.Handler, at string) string {
		r := httptest.NewRequest(http.MethodGet, at, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(rights.With(r.Context(), operator)))
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%s: status %d: %s", at, w.Code, w.Body)
		}
		return w.Body.String()
	}
	for _, at := range []string{"/", "/gpus", "/leases", "/places", "/jobs", "/market", "/objectives", "/rounds", fmt.Sprintf("/rounds/%d", s.Round)} {
		d.text["page "+at] = get(pages, at)
	}
	for _, at := range []string{"status", "tenants", "debts", "bound", "budgets", "objectives", "users", "jobs", "leases", "nodes", "gpus", "forecasts", "forecasts/coverage", "market", "rounds", "events"} {
		d.text["API /"+at] = get(answers, api.Root+"/"+at)
	}
	command := func(name string, write func(*view.Page)) {
		var out bytes.Buffer
		write(&view.Page{Out: &out, Now: now, Every: 10 * cluster.Minute})
		d.text[name] = out.String()
	}
	command("fairlease status", s.Status.Write)
	command("fairlease tenants", func(p *view.Page) { p.Table(view.TenantTable(p.Form, s.Tenants, true)) })
	command("fairlease tenants --users", func(p *view.Page) { p.Table(view.UserTable(s.Users)) })
	command("fairlease tenants --debts", func(p *view.Page) { p.Table(view.DebtTable(p.Form, s.Debts, s.Tenants)) })
	command("fairlease tenants --bound", func(p *view.Page) { p.Table(p.BoundTable(view.BoundOf(s.Bound, cluster.Hour, now))) })
	command("fairlease budgets", func(p *view.Page) { p.Table(p.BudgetTable(s.Budgets)) })
	command("fairlease objectives", func(p *view.Page) { p.Table(view.ObjectiveTable(p.Form, s.Status.Objectives)) })
	command("fairlease leases", func(p *view.Page) { p.Table(p.LeaseTable(s.Leases, false)) })
	command("fairlease gpus", func(p *view.Page) { p.Table(p.GPUTable(s.GPUs)) })
	command("fairlease forecast --all", func(p *view.Page) { _ = outlook.Show(p, s.Forecasts, cluster.JobID{}) })
	command("fairlease trades", func(p *view.Page) { p.Table(p.TradeTable(s.Market.Trades)) })
	command("fairlease override list", func(p *view.Page) { p.Table(p.OverrideTable(s.Overrides)) })
	command("fairlease habits", func(p *view.Page) { p.Table(view.HabitTable(p, view.Habits(s.Plan.State.Habits))) })
	command("fairlease profiles", func(p *view.Page) { p.Table(view.ProfileTable(p, view.Profiles(s.Snapshot, s.Plan))) })
	command("fairlease round", (&view.Decisions{Snapshot: s.Snapshot, Plan: s.Plan}).Write)
	if s.Cells != nil {
		command("fairlease cells show", func(p *view.Page) { s.Cells.Write(p, true) })
	}
	for i := range s.Jobs[:min(len(s.Jobs), mostJobs)] {
		id := s.Jobs[i].Record.ID.String()
		d.text["page of job "+id] = get(pages, page.JobPath(id))
		key, err := cluster.ParseJobID(id)
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.Explain(t.Context(), d.past, key)
		if err != nil {
			t.Fatal(err)
		}
		command("fairlease explain "+id, x.Write)
		command("fairlease explain --json "+id, func(p *view.Page) {
			if err := p.Encode(x); err != nil {
				t.Fatal(err)
			}
		})
	}
	return d
}

// never matches the words for a moment that is not known: the beginning of the epoch or of the calendar, and spans from there to now.
var never = regexp.MustCompile(`1970-|\b0001-|0000-00|\b[12]\d{4}-\d\d:\d\d:\d\d|106751-|\b[12]\d{4} d\b|\b[4-9]\d{5} h\b|-\d\d:\d\d:\d\d ago|in -\d|"Zone|> ago|\(in \)|It <|It $|it $|Why +it *\n`)

var (
	tags      = regexp.MustCompile(`<[^>]*>`)
	countdown = regexp.MustCompile(`(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d:\d\d) \((in |now|)((?:\d+-)?\d\d:\d\d:\d\d)?( ago)?\)`)
	starts    = regexp.MustCompile(`(?:starts|ends) (?:about|after) (?:\w{3} \d+ \w{3} )?(\d\d:\d\d)`)
	rank      = regexp.MustCompile(`it is number (\d+) in its tenant's queue`)
	ahead     = regexp.MustCompile(`(?:kept for it|leases there end|could serve it ends|tried again|begin time|lease ends|its lease until|granted [^;]*until|a lease until)[^;<\n]* ago\)`)
)

// known checks that no text tells a moment that is not known.
func (d *told) known(t testing.TB) {
	for at, text := range d.text {
		if i := never.FindStringIndex(text); i != nil {
			t.Fatalf("%s tells a moment that is not known: …%s…", at, text[max(i[0]-300, 0):min(i[1]+100, len(text))])
		}
		if strings.Contains(at, "API") || strings.Contains(at, "json") {
			continue
		}
		if strings.Contains(text, `"0001`) {
			t.Fatalf("%s has a zero time", at)
		}
	}
}

// timely checks that all texts of a moment have the same clock: a time and its distance agree with now, and what is still to come does
// not lie before now.
func (d *told) timely(t testing.TB) {
	for at, text := range d.text {
		if strings.HasPrefix(at, "API") || strings.Contains(at, "json") || strings.HasPrefix(at, "page /rounds/") || at == "fairlease round" {
			continue // absolute times, or those of a round
		}
		text = tags.ReplaceAllString(text, "")
		for _, m := range countdown.FindAllStringSubmatch(text, -1) {
			day := m[1]
			if day == "" {
				day = d.now.Time().Format(time.DateOnly)
			}
			when, err := time.Parse(time.DateTime, day+" "+m[2])
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			off := cluster.InstantOf(when).Sub(d.now)
			said := cluster.Span(0)
			if m[4] != "" {
				if said, err = cluster.ParseSpan(m[4]); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
			}
			if m[5] != "" {
				said = -said
			}
			if diff := said - off; diff < -2*cluster.Second || diff > 2*cluster.Second {
				t.Fatalf("%s says %q at %s", at, m[0], d.now)
			}
		}
		for _, m := range starts.FindAllStringSubmatch(text, -1) {
			if today := d.now.Time().Format("15:04"); !strings.ContainsAny(m[0], "JFMASOND") && m[1] < today {
				t.Fatalf("%s says %q at %s", at, m[0], d.now)
			}
		}
		if m := ahead.FindString(text); m != "" {
			t.Fatalf("%s says %q at %s", at, m, d.now)
		}
	}
}

// reasoned checks the reasons of jobs against the standings of their tenants.
func (d *told) reasoned(t testing.TB) {
	s := d.Scene()
	waiting := map[[2]string]int{}
	most := map[string]int{}
	for i := range s.Plan.Tenants {
		st := &s.Plan.Tenants[i]
		waiting[[2]string{st.Tenant, st.Pool}] = st.Waiting
		most[st.Tenant] = max(most[st.Tenant], st.Waiting)
	}
	for i := range s.Jobs {
		j := s.Jobs[i].Job()
		if j.Why == nil {
			continue
		}
		if j.Reason == "" {
			t.Fatalf("job %s has an empty reason (%s)", j.SlurmID, j.Code)
		}
		if r := j.Why; r.Queue == cluster.TenantQueues && r.Other != "" && r.Other == j.Tenant {
			t.Fatalf("job %s of tenant %s: %s", j.SlurmID, j.Tenant, j.Reason)
		}
		if m := rank.FindStringSubmatch(j.Reason); m != nil {
			n, _ := strconv.Atoi(m[1])
			there := waiting[[2]string{j.Tenant, j.Why.Pool}]
			if j.Why.Pool == "" {
				there = most[j.Tenant]
			}
			if n > there {
				t.Fatalf("job %s: %s, where %d jobs of %s wait for %q", j.SlurmID, j.Reason, there, j.Tenant, j.Why.Pool)
			}
		}
		kept := slices.ContainsFunc(s.Plan.State.Claims, func(c cluster.Claim) bool { return c.Job == j.Key })
		if j.Why.Code == cluster.ReasonClaim && !kept {
			t.Fatalf("job %s: %s, but no GPUs are kept for it", j.SlurmID, j.Reason)
		}
		frozen := slices.ContainsFunc(s.Overrides, func(o store.Override) bool { return o.Kind == string(cluster.Freeze) && o.For(&j.Job) })
		if j.Why.Code == cluster.ReasonFrozen && !frozen {
			t.Fatalf("job %s: %s, but nobody froze it", j.SlurmID, j.Reason)
		}
		if j.Submitted != nil && j.Eligible != nil && j.Submitted.After(*j.Eligible) {
			t.Fatalf("job %s was submitted at %s and eligible at %s", j.SlurmID, j.Submitted, j.Eligible)
		}
	}
}

// cells gives the cells of a table, by the names of columns.
func cells(table string) (out []map[string]string) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	head := strings.Split(lines[0], "|")
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "|") {
			row[head[i]] = cell
		}
		out = append(out, row)
	}
	return out
}

// agreed checks that a tenant's numbers are the same in all places.
func (d *told) agreed(t testing.TB) {
	s := d.Scene()
	var b bytes.Buffer
	p := &view.Page{Out: &b, Now: d.now, Form: view.Form{Parsable: true}}
	p.Table(view.TenantTable(p.Form, s.Tenants, true))
	pools := map[string]int{}
	rows := cells(b.String())
	for _, row := range rows {
		pools[row["TENANT"]]++
		if none, even := row["OWED"] == "0.00", row["EVEN"] == "-"; none != even || strings.HasPrefix(row["OWED"], "-0.00") {
			t.Fatalf("%s is owed %s and even in %s", row["TENANT"], row["OWED"], row["EVEN"])
		}
	}
	overview := rowsOf(d.text["page /"], "tenants")
	inRound := rowsOf(d.text[fmt.Sprintf("page /rounds/%d", s.Round)], "stood")
	for _, row := range rows {
		name := row["TENANT"]
		if x := overview[name]; x != nil && pools[name] == 1 && x["Rho"] != row["RHO"] {
			t.Fatalf("%s has rho %q in fairlease tenants and %q on the overview", name, row["RHO"], x["Rho"])
		}
		if x := inRound[name+" "+row["POOL"]]; x != nil && x["Rho"] != row["RHO"] {
			t.Fatalf("%s has rho %q in fairlease tenants and %q on the page of the round", name, row["RHO"], x["Rho"])
		}
		for at, text := range d.text {
			if !strings.HasPrefix(at, "fairlease explain") {
				continue
			}
			line := regexp.MustCompile(regexp.QuoteMeta(name+" in "+row["POOL"]+": due") + `.* (\S+)\n`).FindStringSubmatch(text)
			if line != nil && line[1] != row["RHO"] {
				t.Fatalf("%s has rho %s in fairlease tenants, and %s says %q", name, row["RHO"], at, line[0])
			}
		}
	}
	jobs := rowsOf(d.text["page /jobs"], "jobs")
	received := regexp.MustCompile(`Received .*\(rho (\S+)\)`)
	for i := range s.Jobs {
		id := s.Jobs[i].Record.ID.String()
		said := received.FindStringSubmatch(d.text["fairlease explain "+id])
		if x := jobs[id]; x != nil && said != nil && x["Rho"] != said[1] {
			t.Fatalf("job %s has rho %q in the list of jobs, and %q by fairlease explain", id, x["Rho"], said[1])
		}
		if text := d.text["page of job "+id]; said != nil && text != "" && !strings.Contains(text, "(rho "+said[1]+")") {
			t.Fatalf("the page of job %s has another rho than %q", id, said[1])
		}
	}
}

var (
	row  = regexp.MustCompile(`(?s)<tr>(.*?)</tr>`)
	cell = regexp.MustCompile(`(?s)<t[hd][^>]*>(.*?)</t[hd]>`)
)

// rowsOf gives the rows of a section's table by the first cell, and by the first two.
func rowsOf(text, section string) map[string]map[string]string {
	_, text, _ = strings.Cut(text, `aria-labelledby="`+section+`-h"`)
	text, _, _ = strings.Cut(text, "</table>")
	out := map[string]map[string]string{}
	var head []string
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		var list []string
		for _, c := range cell.FindAllStringSubmatch(m[1], -1) {
			list = append(list, strings.TrimSpace(tags.ReplaceAllString(c[1], "")))
		}
		if head == nil {
			head = list
			continue
		}
		r := map[string]string{}
		for i := range min(len(list), len(head)) {
			r[head[i]] = list[i]
		}
		if len(list) > 1 {
			out[list[0]], out[list[0]+" "+list[1]] = r, r
		}
	}
	return out
}

// drawn gives the newest round of a drawn cluster under drawn load.
func drawn(rt *rapid.T, t testing.TB) (cluster.Snapshot, cluster.Plan) {
	set := simtest.Product()
	set.Term = rapid.SampledFrom([]cluster.Span{5, 15}).Draw(rt, "term") * cluster.Minute
	set.Threshold = rapid.SampledFrom([]cluster.Span{0, 1}).Draw(rt, "threshold") * cluster.Minute
	set.BurstMaxMilli = rapid.SampledFrom([]int64{0, 1000}).Draw(rt, "burst")
	if rapid.Bool().Draw(rt, "users share") {
		set.Users = cluster.UsersEqual
	}
	if rapid.IntRange(0, 2).Draw(rt, "divided") == 0 {
		set.Divide = rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset")
		set.DivideJobs, set.Mechanism = preset.OfJobs(set.Divide), rapid.SampledFrom(cluster.Mechanisms).Draw(rt, "mechanism")
	}
	nodes := simtest.Nodes("a", "v100", rapid.IntRange(1, 3).Draw(rt, "v100"), 4)
	nodes = append(nodes, simtest.Nodes("b", "k80", rapid.IntRange(0, 2).Draw(rt, "k80"), 4)...)
	w := simtest.New(t, set, nodes, "nlp", "vision", "bio")
	journal := sim.NewMemory()
	w.Loop.Journal = journal
	if rapid.IntRange(0, 5).Draw(rt, "observes") == 0 {
		w.Rules.Mode = loop.Observe
	}
	var ids []cluster.JobID
	for range rapid.IntRange(1, 12).Draw(rt, "steps") {
		switch rapid.IntRange(0, 7).Draw(rt, "event") {
		case 0, 1, 2, 3:
			req := simtest.Gang(rapid.SampledFrom([]int{1, 2, 4}).Draw(rt, "gpus"))
			if rapid.IntRange(0, 3).Draw(rt, "typed") == 0 {
				req.Model = rapid.SampledFrom([]string{"v100", "k80"}).Draw(rt, "model")
			}
			for range rapid.IntRange(1, 6).Draw(rt, "jobs") {
				work := sim.Work{User: rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "user"), Partition: "gpu", Request: req,
					Account: rapid.SampledFrom([]string{"nlp", "nlp", "vision", "bio", "stranger"}).Draw(rt, "account"),
					Comment: rapid.SampledFrom([]string{"", "saves=5m", "kind=a,steps/s.v100=4,steps/s.k80=1"}).Draw(rt, "comment"),
					Runs:    cluster.Span(rapid.IntRange(1, 90).Draw(rt, "minutes")) * cluster.Minute}
				if rapid.IntRange(0, 5).Draw(rt, "array") == 0 {
					ids = append(ids, w.SubmitArray(work, 3)...)
				} else {
					ids = append(ids, w.Virtual.Submit(work))
				}
			}
		case 4:
			if len(ids) > 0 {
				w.Requeue(rapid.SampledFrom(ids).Draw(rt, "requeue"))
			}
		case 5:
			if len(ids) > 0 {
				w.Hold(rapid.SampledFrom(ids).Draw(rt, "hold"), rapid.Bool().Draw(rt, "held"))
			}
		case 6, 7:
			if len(w.Last.State.Records) == 0 {
				break
			}
			r := &w.Last.State.Records[rapid.IntRange(0, len(w.Last.State.Records)-1).Draw(rt, "ordered")]
			o := cluster.Override{Kind: rapid.SampledFrom([]cluster.OverrideKind{cluster.Exempt, cluster.Boost, cluster.Freeze}).Draw(rt, "order"),
				Until: w.Now().Add(cluster.Span(rapid.IntRange(1, 60).Draw(rt, "for minutes")) * cluster.Minute), Reason: "because"}
			switch rapid.SampledFrom([]string{"job", "user", "tenant"}).Draw(rt, "scope") {
			case "job":
				o.Scope, o.Name, o.Job, o.User, o.Submit = "job", r.ID.String(), r.Key, r.User, r.Submit
			case "user":
				o.Scope, o.Name = "user", r.User
			case "tenant":
				o.Scope, o.Name = "tenant", "nlp"
			}
			journal.Override(o)
		}
		w.Run(cluster.Span(rapid.IntRange(1, 900).Draw(rt, "seconds")) * cluster.Second)
	}
	snap, plan, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap, plan
}

// No sentence, page or table of a drawn round contradicts the numbers of the round, at once or while no new round is recorded.
func TestNothingContradictsTheRound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		snap, plan := drawn(rt, t)
		f := scenetest.Of(snap, plan)
		older := time.Duration(rapid.IntRange(0, 120).Draw(rt, "forecasts are older by minutes")) * time.Minute
		for i := range f.Forecasts {
			x := &f.Forecasts[i]
			for _, at := range []**time.Time{&x.StartP10, &x.StartP50, &x.StartP90, &x.EndP10, &x.EndP50, &x.EndP90} {
				if *at != nil {
					then := (*at).Add(-older)
					*at = &then
				}
			}
			x.AsOf = x.AsOf.Add(-older)
			if rapid.IntRange(0, 5).Draw(rt, "its state has changed") == 0 {
				x.Waits = !x.Waits
			}
		}
		now := plan.At.Add(cluster.Span(rapid.SampledFrom([]int{0, 1, 21, 300, 1500}).Draw(rt, "seconds since the round")) * cluster.Second)
		d := tell(t, f, f, now)
		d.known(inDraw(rt, t))
		d.timely(inDraw(rt, t))
		d.reasoned(inDraw(rt, t))
		d.agreed(inDraw(rt, t))
		d.stated(inDraw(rt, t))
		for i := range f.Forecasts { // forecasts of another state are told nowhere
			x := d.Scene().Forecasts
			if k := slices.IndexFunc(x, func(y store.JobForecast) bool { return y.Key == f.Forecasts[i].Key }); k >= 0 && x[k].Waits != (x[k].State == "waiting") && x[k].State != "completing" && x[k].Why == "" && x[k].State != "suspended" {
				rt.Fatalf("job %s is %s, and its forecast was made when it waited: %t", x[k].SlurmID, x[k].State, x[k].Waits)
			}
		}
	})
}

// blank makes moments unknown, of those that a choice selects.
func blank(v reflect.Value, choose func() bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Type() == reflect.TypeFor[*time.Time]() {
			if choose() {
				v.SetZero()
			}
			return
		}
		blank(v.Elem(), choose)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if choose() {
				v.SetZero()
			}
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				blank(v.Field(i), choose)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			blank(v.Index(i), choose)
		}
	case reflect.Int64:
		if v.Type() == reflect.TypeFor[cluster.Instant]() && choose() {
			v.SetZero()
		}
	}
}

// No text and no JSON tells a moment that is not known, whichever these are.
func TestUnknownMomentsAreNotTold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		site := scenetest.Site{Nodes: 10, Jobs: 30, Market: rapid.Bool().Draw(rt, "market"), Counters: rapid.Bool().Draw(rt, "counters")}
		f := site.Facts()
		f.Plan.State.Habits = []cluster.Habit{{Type: cluster.JobType{User: "ann", Command: "train"}, Resumed: 1, At: f.Plan.At}}
		f.Plan.State.Profiles = []cluster.Profile{{Kind: "a", Model: "v100", Gang: 1, Rate: 3, Samples: 2, Source: cluster.Observed, At: f.Plan.At}}
		f.Overrides = []store.Override{{ID: 1, Kind: "boost", Scope: "user", Name: "ann", Until: f.Plan.At.Time(), By: "root"}}
		if len(f.Plan.State.Leases) > 0 {
			l := &f.Plan.State.Leases[0]
			f.Plan.State.Claims = []cluster.Claim{{Job: l.Job, Pool: l.Pool, Nodes: l.Nodes, At: f.Plan.At, Made: f.Plan.At}}
		}
		for i := range f.Plan.Statuses { // sentences of all codes
			if codes := []cluster.Code{"", cluster.ReasonClaim, cluster.ReasonFailed, cluster.ReasonNotice, cluster.ReasonSpent, cluster.ReasonBound, cluster.ReasonRefused, cluster.ReasonStarting}; i%2 == 0 {
				r := &f.Plan.Statuses[i].Reason
				r.Code, r.Until = codes[i/2%len(codes)], f.Plan.At
				r.Budget, r.Bound = &cluster.TenantBudget{Since: f.Plan.At, Until: f.Plan.At}, &cluster.BindLimit{Tenant: "t", Until: f.Plan.At}
			}
		}
		now := f.Plan.At
		bits, part := rapid.Uint64().Draw(rt, "bits"), rapid.SampledFrom([]uint64{0, 1, 3}).Draw(rt, "part")
		blank(reflect.ValueOf(&f).Elem(), func() bool {
			bits = bits*6364136223846793005 + 1442695040888963407
			return (bits>>40)&part == 0
		})
		f.Snapshot.Now, f.Plan.At = now, now // a round has a time
		tell(t, f, site.Facts(), now).known(inDraw(rt, t))
	})
}

// inDraw lets the checks fail the drawn case, so that it is made small.
func inDraw(rt *rapid.T, t testing.TB) testing.TB { return drawnCase{t, rt} }

type drawnCase struct {
	testing.TB
	rt *rapid.T
}

func (d drawnCase) Fatalf(format string, args ...any) { d.rt.Helper(); d.rt.Fatalf(format, args...) }

// stated checks that no JSON has a number that stands for something else: the largest and smallest there are, and -1.
func (d *told) stated(t testing.TB) {
	for at, text := range d.text {
		if !strings.Contains(at, "API") && !strings.Contains(at, "json") {
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		numbers(v, "", func(key string, n json.Number) {
			if f, err := n.Float64(); err != nil || f >= 1<<62 || f <= -1<<62 || n == "-1" {
				t.Fatalf("%s: %s is %s", at, key, n)
			}
		})
	}
}

// numbers visits the numbers of decoded JSON, with their keys.
func numbers(v any, key string, visit func(key string, n json.Number)) {
	switch x := v.(type) {
	case map[string]any:
		for k, v := range x {
			numbers(v, key+"."+k, visit)
		}
	case []any:
		for _, v := range x {
			numbers(v, key, visit)
		}
	case json.Number:
		visit(key, x)
	}
}
