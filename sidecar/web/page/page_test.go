package page_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// desk is the pages of a made-up site.
type desk struct {
	*scene.Keeper
	past  *scenetest.Past
	pages http.Handler
}

func (d *desk) Past() scene.Past { return scene.Past{PastJobs: d.past, PastRounds: d.past} }

func newDesk(site scenetest.Site) *desk {
	d := &desk{Keeper: scene.Hold(site.Scene()), past: site.Past()}
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	return d
}

var operator = rights.Person{User: "root", Operator: true}

// member gives a user of the tenant of the first job.
func (d *desk) member() rights.Person {
	j := d.Scene().Jobs[0].Job()
	return rights.Person{User: j.User, Tenants: []string{j.Tenant}}
}

func (d *desk) ask(who rights.Person, target string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	w := httptest.NewRecorder()
	d.pages.ServeHTTP(w, r.WithContext(rights.With(r.Context(), who)))
	return w.Code, w.Body.String()
}

// addresses are one of each page, and some with parameters.
func (d *desk) addresses() []string {
	s := d.Scene()
	out := []string{"/", "/gpus", "/gpus?range=30d&pool=v100", "/leases", "/leases?find=n0000&range=1d&page=2", "/places", "/places?by=right", "/places?by=owner&show=bad", "/market", "/objectives",
		"/jobs", "/jobs?state=waiting&sort=wait&page=2", "/jobs?find=train", "/rounds", "/rounds?before=3", fmt.Sprintf("/rounds/%d", s.Round), fmt.Sprintf("/rounds/%d", s.Round-1), "/jobs/900001"}
	seen := map[string]bool{}
	for i := range s.Jobs {
		if j := s.Jobs[i].Job(); !seen[j.State] {
			seen[j.State] = true
			out = append(out, page.JobPath(j.SlurmID), "/jobs?tenant="+url.QueryEscape(j.Tenant))
		}
	}
	if len(s.Nodes) > 0 {
		out = append(out, "/places/"+s.Nodes[len(s.Nodes)-1].Name)
	}
	return out
}

// wrong is text that only a mistake of a template makes.
var wrong = regexp.MustCompile(`ZgotmplZ|<nil>|%!|0x[0-9a-f]{6}|NaN|\+Inf|no value`)

// check reads a page as browsers do: it needs nothing else, has nothing inline, and shows each name as text.
func check(t *testing.T, where, text string) {
	t.Helper()
	if bad := wrong.FindString(text); bad != "" {
		t.Errorf("%s has %q", where, bad)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s has the character %q", where, text[i:i+4])
	}
	ids := map[string]bool{}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", where, err)
			}
			return
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := tokens.Token()
		if slices.Contains([]string{"style", "img", "iframe", "object", "base"}, token.Data) {
			t.Errorf("%s has an element %s", where, token.Data)
		}
		source := false
		for _, a := range token.Attr {
			source = source || a.Key == "src"
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s has the attribute %s=%q", where, a.Key, a.Val)
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && (!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")) && a.Val != "#main" {
				t.Errorf("%s leads to %q", where, a.Val)
			}
			if a.Key == "id" && ids[a.Val] {
				t.Errorf("%s has the id %s twice", where, a.Val)
			}
			if a.Key == "id" {
				ids[a.Val] = true
			}
		}
		if token.Data == "script" && !source {
			t.Errorf("%s has a script of its own", where)
		}
	}
}

// Every page of every site is whole, for an operator, for a user of a tenant and for a stranger.
func TestPagesAreWhole(t *testing.T) {
	for name, site := range map[string]scenetest.Site{
		"empty":    {Tenants: 1},
		"small":    {Nodes: 10, Jobs: 60, Market: true, Counters: true},
		"cells":    {Nodes: 200, Jobs: 900, Cells: true},
		"hostile":  {Nodes: 40, Jobs: 300, Market: true, Counters: true, Hostile: true},
		"large":    {Nodes: 2000, Jobs: 10_000, Market: true, Counters: true, Tenants: 100},
		"no jobs":  {Nodes: 10},
		"no nodes": {Tenants: 3, Market: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(site)
			people := []rights.Person{operator, {}}
			if len(d.Scene().Jobs) > 0 {
				people = append(people, d.member())
			}
			for _, who := range people {
				for _, at := range d.addresses() {
					code, text := d.ask(who, at)
					where := fmt.Sprintf("%s for %q", at, who.User)
					if code != http.StatusOK && (who.Operator || !strings.HasPrefix(at, "/jobs/")) {
						t.Errorf("%s: status %d", where, code)
					}
					check(t, where, text)
					if len(text) > 1<<20 {
						t.Errorf("%s has %d bytes, more than 1 MiB", where, len(text))
					}
				}
			}
		})
	}
}

// A user of a tenant finds no user and no job of others on any page, and cannot tell a job of others from one that does not exist.
func TestOthersJobsAreNotShown(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 40, Jobs: 300, Market: true, Counters: true})
	me := d.member()
	s := d.Scene()
	var other *scene.Job
	for i := range s.Jobs {
		if s.Jobs[i].Record.Tenant != me.Tenants[0] && s.Jobs[i].Record.State == cluster.Running {
			other = s.Jobs[i].Job()
		}
	}
	for _, at := range d.addresses() {
		if _, text := d.ask(me, at); strings.Contains(text, other.User) || strings.Contains(text, `href="`+page.JobPath(other.SlurmID)+`"`) {
			t.Errorf("%s names job %s of %s", at, other.SlurmID, other.User)
		}
	}
	code, text := d.ask(me, page.JobPath(other.SlurmID))
	missing, same := d.ask(me, "/jobs/777777")
	if code != http.StatusNotFound || missing != code || text != same {
		t.Errorf("status %d of a job of another tenant, %d of none; the pages differ: %t", code, missing, text != same)
	}
	if code, text := d.ask(operator, page.JobPath(other.SlurmID)); code != http.StatusOK || !strings.Contains(text, other.User) {
		t.Errorf("an operator does not see job %s: status %d", other.SlurmID, code)
	}
	if _, text := d.ask(me, fmt.Sprintf("/rounds/%d", s.Round)); !strings.Contains(text, "Only operators see") {
		t.Error("the page of a round does not say why it shows no decisions")
	}
}

// Links from past leases name the job by its key, so that they do not lead to a later job with the same id.
func TestJobsByKey(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60})
	live := d.Scene().Jobs[0].Job()
	for at, want := range map[string]int{
		page.JobKeyPath(live.SlurmID, live.Key):     http.StatusOK,
		page.JobKeyPath(live.SlurmID, live.Key+999): http.StatusNotFound, // another job had the id, and the journal has it no more
		page.JobKeyPath("900001", 900001):           http.StatusOK,
		page.JobKeyPath("900001", 5):                http.StatusNotFound,
	} {
		if code, _ := d.ask(operator, at); code != want {
			t.Errorf("%s: %d, want %d", at, code, want)
		}
	}
	if _, text := d.ask(operator, "/leases"); !strings.Contains(text, "?key=") {
		t.Error("past leases are not linked by key")
	}
	older(t)
}

// older checks that what is known of an older job shows nowhere as that of the job with its id now, whose user is another.
func older(t *testing.T) {
	t.Helper()
	site := scenetest.Site{Nodes: 10, Jobs: 60, Counters: true}
	f := site.Facts()
	all := scene.Of(f)
	at := slices.IndexFunc(all.Jobs, func(j scene.Row) bool { return j.Record.State == cluster.Running && len(j.Job().Nodes) > 0 })
	live, before := all.Jobs[at].Job(), all.Jobs[at].Record.Key+999
	f.GPUs = slices.DeleteFunc(f.GPUs, func(g store.GPU) bool { return g.Key == nil || *g.Key != live.Key })
	if len(f.GPUs) < 2 {
		t.Fatalf("job %s has %d GPUs", live.SlurmID, len(f.GPUs))
	}
	f.GPUs[0].Key = &before
	f.Remarks = []store.Remark{{Job: live.SlurmID, Key: before, Kind: "stall"}, {Job: live.SlurmID, Key: live.Key, Kind: "drift"}}
	d := newDesk(site)
	s := scene.Of(f)
	s.Status.Aside = []view.AsideJob{{ID: live.SlurmID, Key: before}}
	d.Keeper = scene.Hold(s)
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	_, text := d.ask(operator, page.JobPath(live.SlurmID))
	if n := strings.Count(text, "<li>"+f.GPUs[0].Node+" GPU "); n != len(f.GPUs)-1 {
		t.Errorf("the page shows %d GPUs, want %d", n, len(f.GPUs)-1)
	}
	id, _ := cluster.ParseJobID(live.SlurmID)
	if x, err := s.Explain(t.Context(), d.past, id); err != nil || len(x.GPUs) != len(f.GPUs)-1 {
		t.Errorf("explained with %d GPUs, want %d (%v)", len(x.GPUs), len(f.GPUs)-1, err)
	}
	part := s.For(scene.Scope{Tenants: []string{live.Tenant}}).Status
	if len(part.Remarks) != 1 || part.Remarks[0].Key != live.Key || len(part.Aside) != 0 {
		t.Errorf("the tenant sees %+v and %+v", part.Remarks, part.Aside)
	}
}

// The page of a live job has its forecast and the remarks on it; that of an ended job has neither.
func TestForecastAndRemarks(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60})
	live := slices.IndexFunc(d.Scene().Jobs, func(j scene.Row) bool { return j.Record.State == cluster.Waiting })
	wants := []string{"<h3>Forecast</h3><ul><li>starts about ", " in 8 of 10 runs</li>", "GPU 3 of n00001 has done half"}
	for at, shown := range map[string]bool{page.JobPath(d.Scene().Jobs[live].Record.ID.String()): true, "/jobs/900001": false} {
		_, text := d.ask(operator, at)
		for _, want := range wants {
			if strings.Contains(text, want) != shown {
				t.Errorf("%s: %q is shown: %t", at, want, !shown)
			}
		}
	}
}

// The overview shows what is used of a budget to its tenant's users, and says if it is used up.
func TestBudgetsOfTheOverview(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60})
	spent, half := d.Scene().Budgets[0], d.Scene().Budgets[2]
	note := "The budget of " + spent.Tenant + " for the month is used up: it gets idle GPUs only."
	for _, c := range []struct {
		who      rights.Person
		has, not []string
	}{
		{operator, []string{note, "120&nbsp;%", "80&nbsp;%", "40&nbsp;%", "Budget used"}, nil},
		{rights.Person{User: "x", Tenants: []string{half.Tenant}}, []string{"40&nbsp;%", "40000 of 100000 GPU hours until "}, []string{note, "120&nbsp;%"}},
		{rights.Person{}, nil, []string{"Budget used", note}},
	} {
		_, text := d.ask(c.who, "/")
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%q does not see %q", c.who.User, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%q sees %q", c.who.User, not)
			}
		}
	}
}

// The overview counts the GPUs of each tenant that cannot be taken back soon, for those who may see the tenant.
func TestBoundGPUsOfTheOverview(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60})
	s := *d.Scene()
	bound := func(pool string, gpus int, beyond cluster.MicroGPU) store.Bound {
		return store.Bound{Tenant: s.Tenants[0].Tenant, Pool: pool, GPUs: cluster.CountOf(gpus), Beyond: beyond}
	}
	for name, c := range map[string]struct {
		rows []store.Bound
		who  rights.Person
		want string // "" = no column
	}{
		"sums of pools": {[]store.Bound{bound("v100", 700, 0), bound("v100", 50, 3*cluster.WholeGPU/2), bound("k80", 27, cluster.WholeGPU)}, operator, `<span title="2.5 beyond its due">777</span>`},
		"none":          {nil, operator, ""},
		"not theirs":    {[]store.Bound{bound("v100", 777, 0)}, rights.Person{User: "x", Tenants: []string{"nobody"}}, ""},
		"of no tenant":  {[]store.Bound{{Pool: "v100", GPUs: cluster.CountOf(777)}}, operator, ""},
	} {
		s.Bound = c.rows
		d.Keeper = scene.Hold(&s)
		d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
		_, text := d.ask(c.who, "/")
		if column := strings.Contains(text, ">Bound</th>"); column != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: a column %t, want one with %q", name, column, c.want)
		}
	}
}

// The overview says which partition is only observed, and why, and does not name it among those that are acted on.
func TestPreemptionOnTheOverview(t *testing.T) {
	s := scenetest.Site{Nodes: 4, Jobs: 6}.Scene()
	s.Status.Preempted = []cluster.Preempted{{Partition: "gpu", Why: "Slurm may requeue its jobs"}}
	if list := s.Status.ActsOn(); len(s.Status.Acting) != 1 || len(list) != 0 {
		t.Errorf("acts on %v of %v", list, s.Status.Acting)
	}
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 6})
	d.Keeper = scene.Hold(s)
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	if _, text := d.ask(operator, "/"); !strings.Contains(text, "Partition gpu is only observed: Slurm may requeue its jobs.") {
		t.Errorf("nothing about it in %s", text)
	}
}

// The overview and the node's page say that a node is slow, to everybody who may see nodes.
func TestASlowNodeOnThePages(t *testing.T) {
	f := scenetest.Site{Nodes: 4, Jobs: 6}.Facts()
	name := f.Snapshot.Nodes[1].Name
	f.Plan.State.NodeSpeeds.Slow = []cluster.SlowNode{{Node: name, Model: "v100", Percent: 62, Jobs: 5, Users: 2}}
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 6})
	d.Keeper = scene.Hold(scene.Of(f))
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	for _, who := range []rights.Person{operator, {User: "u"}} {
		if _, text := d.ask(who, "/"); !strings.Contains(text, "1 node is slow: "+name+" at 62 % of the usual speed of jobs.") || !strings.Contains(text, "/places/"+name) {
			t.Errorf("%s: nothing about it in %s", who.User, text)
		}
		if _, text := d.ask(who, "/places/"+name); !strings.Contains(text, "slow: 62 %") {
			t.Errorf("%s: nothing about it in %s", who.User, text)
		}
	}
}

// The same of a slow GPU.
func TestASlowGPUOnThePages(t *testing.T) {
	f := scenetest.Site{Nodes: 4, Jobs: 6}.Facts()
	name := f.Snapshot.Nodes[1].Name
	f.Plan.State.NodeSpeeds.GPUs = []cluster.SlowGPU{{SlowNode: cluster.SlowNode{Node: name, Model: "v100", Percent: 62, Jobs: 5, Users: 2}, Index: 1}}
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 6})
	d.Keeper = scene.Hold(scene.Of(f))
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	for _, who := range []rights.Person{operator, {User: "u"}} {
		if _, text := d.ask(who, "/"); !strings.Contains(text, "1 GPU is slow: GPU 1 of "+name+" at 62 % of the usual speed of jobs.") || !strings.Contains(text, "/places/"+name) {
			t.Errorf("%s: nothing about it in %s", who.User, text)
		}
		if _, text := d.ask(who, "/places/"+name); !strings.Contains(text, "GPU 1 slow: 62 %") {
			t.Errorf("%s: nothing about it in %s", who.User, text)
		}
	}
}

// The overview says that the breaker has tripped: to operators with the jobs, to others without. Operators read of a change that waits.
func TestBreakerOnTheOverview(t *testing.T) {
	s := scenetest.Site{Nodes: 4, Jobs: 6}.Scene()
	s.Status.Waits = "2 leases would end"
	s.Status.Tripped = &cluster.Trip{Kind: cluster.FailedStarts, Bound: 10, Count: 11, Jobs: []cluster.Fault{{ID: cluster.JobID{ID: 4711}}}, Users: 3}
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 6})
	d.Keeper = scene.Hold(s)
	d.pages = (&page.Pages{Source: d, Live: "/live", Zone: time.UTC}).Handler()
	for _, c := range []struct {
		who  rights.Person
		jobs bool
	}{{operator, true}, {rights.Person{User: "u"}, false}} {
		if _, text := d.ask(c.who, "/"); !strings.Contains(text, "The breaker has tripped, and nothing is acted on: the starts of 11 jobs failed") || strings.Contains(text, "4711") != c.jobs {
			t.Errorf("%s: nothing about it, or others' jobs, in %s", c.who.User, text)
		} else if strings.Contains(text, "waits to be accepted: 2 leases would end. To see it: fairlease config accept") != c.jobs {
			t.Errorf("%s: of the change that waits, in %s", c.who.User, text)
		}
	}
}

// Odd addresses get a page, or the page that says that there is none; nothing changes over HTTP.
func TestOddAddresses(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60})
	for at, want := range map[string]int{
		"/jobs?page=-1": 200, "/jobs?page=99999999999999999999": 200, "/jobs?sort=odd&state=%00": 200, "/gpus?range=odd&pool=odd": 200, "/rounds?before=x": 200, "/leases?find=%ff": 200,
		"/places?by=odd": 200, "/jobs/0": 404, "/jobs/x": 404, "/jobs/1_99": 404, "/rounds/0": 404, "/rounds/-1": 404, "/rounds/9999999": 404, "/places/none": 404, "/odd": 404, "/assets/": 404,
		"/jobs/" + strings.Repeat("9", 40): 404, "/assets/..%2f..%2fetc%2fpasswd": 404,
	} {
		code, text := d.ask(operator, at)
		if code != want {
			t.Errorf("%s: status %d, want %d", at, code, want)
		}
		check(t, at, text)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		d.pages.ServeHTTP(w, httptest.NewRequest(method, "/jobs", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d", method, w.Code)
		}
	}
}

// Without the journal the pages show the last Scene, say since when, and say that history is missing.
func TestJournalGone(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60, Market: true})
	s, since := *d.Scene(), time.Now().Add(-time.Hour)
	s.Silent = &since
	d.Put(&s)
	d.past.Err = scene.ErrAway
	for _, at := range d.addresses() {
		code, text := d.ask(operator, at)
		if code != http.StatusOK && at != "/jobs/900001" {
			t.Errorf("%s: status %d", at, code)
		}
		if !strings.Contains(text, "The journal has not answered since") {
			t.Errorf("%s does not say that it is old", at)
		}
		check(t, at, text)
	}
	if _, text := d.ask(operator, "/"); !strings.Contains(text, "Needs attention") {
		t.Error("the overview finds all well")
	}
	if _, text := d.ask(operator, "/gpus"); !strings.Contains(text, "History is missing: the journal does not answer now.") {
		t.Error("the page of GPUs over time does not say that history is missing")
	}
	d.past.Err = scene.ErrBusy
	if _, text := d.ask(operator, "/rounds"); !strings.Contains(text, "try again in a few seconds") {
		t.Error("the log of rounds does not say that it can be tried again")
	}
}

// The list of jobs has what its filters say, page by page.
func TestListOfJobs(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 60, Jobs: 350})
	rows := regexp.MustCompile(`<th scope="row"><a href="/jobs/(\d+)">`)
	seen := map[string]bool{}
	for n := 1; n <= 4; n++ {
		_, text := d.ask(operator, fmt.Sprintf("/jobs?page=%d", n))
		for _, row := range rows.FindAllStringSubmatch(text, -1) {
			if seen[row[1]] {
				t.Errorf("job %s is on two pages", row[1])
			}
			seen[row[1]] = true
		}
	}
	if len(seen) != len(d.Scene().Jobs) {
		t.Errorf("%d of %d jobs are on the pages", len(seen), len(d.Scene().Jobs))
	}
	j := d.Scene().Jobs[41].Job()
	_, text := d.ask(operator, "/jobs?state="+j.State+"&tenant="+j.Tenant+"&code="+string(j.Code)+"&find="+j.SlurmID)
	if got := rows.FindAllStringSubmatch(text, -1); !slices.ContainsFunc(got, func(row []string) bool { return row[1] == j.SlurmID }) {
		t.Errorf("the filters do not find job %s: %v", j.SlurmID, got)
	}
}

// The list of jobs says how often forecasts kept their word: to a member of a tenant of its own and of the whole site.
func TestForecastsKept(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 8, Jobs: 40})
	me := d.member()
	for who, others := range map[*rights.Person]bool{&operator: true, &me: false} {
		_, text := d.ask(*who, "/jobs")
		for _, want := range []string{"starts of waiting jobs</th><td class=\"n\">78 % (70 to 85)", "ends of running jobs</th><td class=\"n warn\">66 % (62 to 70)", "starts of waiting jobs of tenant " + me.Tenants[0] + "<"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		for i := range d.Scene().Coverage {
			if c := &d.Scene().Coverage[i]; c.By == "tenant" && c.Class != me.Tenants[0] && strings.Contains(text, "of tenant "+c.Class+"<") != others {
				t.Errorf("of tenant %s is on the page: %t", c.Class, !others)
			}
		}
	}
}

// Assets have names with digests, and are kept; the theme of the cookie is in the page.
func TestAssetsAndTheme(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	_, text := d.ask(operator, "/")
	paths := regexp.MustCompile(`/assets/[^"]+`).FindAllString(text, -1)
	if len(paths) != 4 {
		t.Fatalf("assets %v, want style, script, icon and licence", paths)
	}
	for _, path := range paths {
		w := httptest.NewRecorder()
		d.pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %d bytes, %v", path, w.Code, w.Body.Len(), w.Header())
		}
	}
	for cookie, want := range map[string]bool{"dark": true, "light": true, `"><b>`: false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: "theme", Value: cookie})
		w := httptest.NewRecorder()
		d.pages.ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), `data-theme="`+cookie+`"`); got != want || strings.Contains(w.Body.String(), "<b>\"") {
			t.Errorf("theme %s is in the page: %t, want %t", cookie, got, want)
		}
	}
}

// An event leads to the page of its own job, though another may have its id by now; an event of a job that the journal has forgotten names none.
func TestEventsLinkByKey(t *testing.T) {
	site := scenetest.Site{Nodes: 4, Jobs: 10}
	d, f := newDesk(site), site.Facts()
	id, none := "7", ""
	f.Events = []store.Noted{{Event: store.Event{At: f.Plan.At.Time(), Kind: "aside", SlurmID: &id, Text: "of seven"}, Job: 4711},
		{Event: store.Event{At: f.Plan.At.Time(), Kind: "aside", SlurmID: &none, Text: "of none"}, Job: 4712}}
	d.Keeper = scene.Hold(scene.Of(f))
	_, text := d.ask(operator, "/")
	if !strings.Contains(text, `<a href="/jobs/7?key=4711">job 7</a>: of seven`) || !regexp.MustCompile(`[\d>] *of none`).MatchString(text) || strings.Contains(text, "job </a>") {
		t.Errorf("%s", text[strings.Index(text, "Newest events"):])
	}
}
