package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Source is what pages show; a scene.Keeper is one.
type Source interface {
	Scene() *scene.Scene // the newest, which shows everything
	Past() scene.Past
}

// Pages makes the pages of a site. The context of a request says who asks (rights.With).
type Pages struct {
	Source Source
	// Live is the path of a stream of server-sent events "round", one for every new Scene, with its serial; "" = pages do not renew
	// themselves.
	Live string
	// Zone is the site's time zone; nil = that of this host.
	Zone *time.Location
	// Every is the time between two forecasts; 0 = there are none.
	Every cluster.Span
	// Now gives the time; nil = the clock of this host.
	Now func() time.Time
}

//go:embed templates assets
var files embed.FS

// asset is a file that pages need. Its path has a digest of its content, so that browsers may keep it for ever.
type asset struct{ path, kind, content string }

func newAsset(name, kind, content string) asset {
	sum := sha256.Sum256([]byte(content))
	stem, ext, _ := strings.Cut(name, ".")
	return asset{fmt.Sprintf("/assets/%s.%s.%s", stem, hex.EncodeToString(sum[:6]), ext), kind, content}
}

func embedded(name string) string {
	b, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // the build has embedded it
	}
	return string(b)
}

var (
	style  = newAsset("page.css", "text/css; charset=utf-8", chart.Style()+embedded("page.css"))
	script = newAsset("page.js", "text/javascript; charset=utf-8", chart.Script()+"\n"+embedded("page.js"))
	icon   = newAsset("icon.svg", "image/svg+xml", embedded("icon.svg"))
	// license accompanies the chart library in script.
	license = asset{"/assets/licence-uplot.txt", "text/plain; charset=utf-8", chart.License()}
)

// templates has a set for each page: the frame, and the page's own "main".
var templates = func() map[string]*template.Template {
	base := template.Must(chart.AddTo(template.New("").Funcs(functions)).ParseFS(files, "templates/frame.html"))
	out := map[string]*template.Template{}
	for _, name := range []string{"overview", "use", "leases", "places", "place", "market", "objectives", "jobs", "job", "rounds", "round", "audit", "lost"} {
		out[name] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return out
}()

// entry is a page in the navigation.
type entry struct {
	Path, Name string
	Here       bool
}

var entries = []entry{{Path: "/", Name: "Overview"}, {Path: "/gpus", Name: "GPUs over time"}, {Path: "/leases", Name: "Leases"}, {Path: "/places", Name: "Racks and nodes"},
	{Path: "/jobs", Name: "Jobs"}, {Path: "/market", Name: "Market"}, {Path: "/objectives", Name: "Objectives"}, {Path: "/rounds", Name: "Rounds"}}

// record is a page for operators alone.
var record = entry{Path: "/audit", Name: "Changes"}

// focusing are the pages that show one tenant alone in colour on demand.
var focusing = []string{"/gpus", "/leases", "/places"}

// visit is a request for a page, and the data of the page.
type visit struct {
	*scene.Scene
	Title   string
	Content any
	Who     rights.Person
	Now     time.Time
	// Focus is the tenant that alone has a colour on this page; "" = none.
	Focus string
	// Missing says why there is no history; "" = there is.
	Missing string

	pages  *Pages
	req    *http.Request
	theme  string
	colour map[string]int
}

// Handler serves the pages, and the files that they need. It answers GET and HEAD.
func (p *Pages) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, a := range []asset{style, script, icon, license} {
		mux.HandleFunc("GET "+a.path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(a.content))
		})
	}
	for path, fill := range map[string]func(*visit) (name string, content any, err error){
		"/{$}": overviewPage, "/gpus": usePage, "/leases": leasesPage, "/places": placesPage, "/places/{name}": placePage, "/market": marketPage, "/objectives": objectivesPage,
		"/jobs": jobsPage, "/jobs/{id}": jobPage, "/rounds": roundsPage, "/rounds/{number}": roundPage, "/audit": auditPage,
		"/": func(*visit) (string, any, error) { return "", nil, errLost },
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, fill) })
	}
	return mux
}

// errLost means that there is no such page, or that the person may not see it: a stranger learns no difference.
var errLost = errors.New("no such page")

func (p *Pages) serve(w http.ResponseWriter, r *http.Request, fill func(*visit) (string, any, error)) {
	who := rights.From(r.Context())
	v := &visit{Scene: who.See(p.Source.Scene()), Who: who, pages: p, req: r}
	if v.Now = time.Now(); p.Now != nil {
		v.Now = p.Now()
	}
	if slices.Contains(focusing, r.URL.Path) {
		v.Focus = v.query("tenant")
	}
	v.colour = colours(v.Tenants, v.Focus)
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "dark" || c.Value == "light") {
		v.theme = c.Value
	}
	name, content, err := fill(v)
	status := http.StatusOK
	if err != nil {
		name, content, status = "lost", nil, http.StatusNotFound
		v.Title = "Not found"
	}
	v.Content = content
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, "frame", v); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Cookie, Authorization")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.Map(printable, b.Bytes())) // the reader may have left
}

// printable replaces what could change how a page reads: control characters, and those of direction.
func printable(r rune) rune {
	if r < 0x7f && r >= ' ' || r == '\n' || unicode.IsPrint(r) {
		return r
	}
	if r == '\t' {
		return ' '
	}
	return '?'
}

// history notes why history is missing, and gives the error if there is no such thing.
func (v *visit) history(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, scene.ErrNone):
		return errLost
	case errors.Is(err, scene.ErrBusy):
		v.Missing = "History is missing: " + scene.ErrBusy.Error() + "."
	default:
		v.Missing = "History is missing: the journal does not answer now."
	}
	return nil
}

func (v *visit) past() scene.Past { return v.pages.Source.Past() }

// query gives a parameter of the request.
func (v *visit) query(name string) string { return strings.TrimSpace(v.req.URL.Query().Get(name)) }

// Entries gives the navigation.
func (v *visit) Entries() []entry {
	out := slices.Clone(entries)
	if v.Who.Operator {
		out = append(out, record)
	}
	for i := range out {
		e := &out[i]
		e.Here = e.Path == v.req.URL.Path || e.Path != "/" && strings.HasPrefix(v.req.URL.Path, e.Path+"/")
	}
	return out
}

// Style, Script, Icon and License are the paths of assets. Live is that of the stream.
func (v *visit) Style() string   { return style.path }
func (v *visit) Script() string  { return script.path }
func (v *visit) Icon() string    { return icon.path }
func (v *visit) License() string { return license.path }
func (v *visit) Live() string    { return v.pages.Live }
func (v *visit) Theme() string   { return v.theme }

func (v *visit) zone() *time.Location {
	if v.pages.Zone != nil {
		return v.pages.Zone
	}
	return time.Local
}

// ZoneName names the zone of all times, as of now.
func (v *visit) ZoneName() string {
	return v.Now.In(v.zone()).Format("MST (UTC-07:00)")
}

// Offsets gives the distances of the zone from UTC, as "FROM:EAST" with seconds since the epoch and seconds east of UTC, oldest first: those of the years
// that charts may show. A change of summer time begins another one.
func (v *visit) Offsets() string {
	var out []string
	for at, end := v.Now.AddDate(-2, 0, 0).In(v.zone()), v.Now.AddDate(1, 0, 0); ; {
		_, east := at.Zone()
		out = append(out, fmt.Sprintf("%d:%d", at.Unix(), east))
		_, next := at.ZoneBounds()
		if next.IsZero() || next.After(end) {
			return strings.Join(out, " ")
		}
		at = next
	}
}

// clock is the axis of charts over time, in a zone.
func clock(zone *time.Location) chart.Axis {
	return chart.Axis{Label: "time", Time: true, Zone: zone}
}

// Time gives a moment as an element: its time of day, with the date if that is another day.
func (v *visit) Time(at time.Time) template.HTML {
	if at.IsZero() {
		return "-"
	}
	at = at.In(v.zone())
	format := "2006-01-02 15:04"
	if at.Format(time.DateOnly) == v.Now.In(v.zone()).Format(time.DateOnly) {
		format = time.TimeOnly
	}
	// Nothing in it can be markup.
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, at.UTC().Format(time.RFC3339), at.Format(format)))
}

// When gives a moment that may be unknown.
func (v *visit) When(at *time.Time) template.HTML {
	if at == nil {
		return "-"
	}
	return v.Time(*at)
}

// Off words the distance of a moment from now; "-" if it is not known.
func (v *visit) Off(at *time.Time) string {
	if at == nil || at.IsZero() {
		return "-"
	}
	return v.words(v.Now, nil).Off(cluster.InstantOf(*at))
}

// Until words the distance of a moment to come. One that has passed since the round is awaited now.
func (v *visit) Until(at *time.Time) string {
	if at != nil && at.Before(v.Now) {
		return "now"
	}
	return v.Off(at)
}

// Ahead gives a moment to come and its distance, as the reasons of jobs do.
func (v *visit) Ahead(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return v.words(v.Now, nil).Ahead(cluster.InstantOf(*at))
}

// Percent gives a part as a number from 0 to 100.
func (v *visit) Percent(part float64) float64 { return 100 * part }

// After gives the number of the next round, recorded or not.
func (v *visit) After(round int64) int64 { return round + 1 }

// Debt words the GPU hours of a debt.
func (v *visit) Debt(d store.Debt) string { return hours(d.Time / 3_600_000) }

// Result words the outcome of an action, with its error.
func (v *visit) Result(a store.Action) string {
	if text := view.Outcome(&a); text != "failed" || a.Error == nil {
		return text
	}
	return "failed: " + *a.Error
}

// words makes sentences of reasons, with names only of jobs that the Scene shows.
func (v *visit) words(at time.Time, name func(cluster.JobKey) string) explain.Words {
	return explain.Words{Now: cluster.InstantOf(at), Zone: v.zone(), Job: name}
}

// name gives the id of a job in Slurm by its key.
func (v *visit) name(key cluster.JobKey) string {
	if key < 0 {
		return "of another tenant"
	}
	if i, ok := slices.BinarySearchFunc(v.Jobs, key, func(j scene.Row, key cluster.JobKey) int { return cmp.Compare(j.Record.Key, key) }); ok {
		return v.Jobs[i].Record.ID.String()
	}
	return ""
}

// Reason words why a job runs or waits, in clauses. Its times are relative to now, like all others of the page.
func (v *visit) Reason(j *scene.Job) []string {
	if j.Why == nil {
		return nil
	}
	return strings.Split("It "+v.words(v.Now, v.name).Reason(*j.Why), "; ")
}

// grey is the colour of the tenants that have none of their own.
const grey = chart.Colours - 1

// Colour is the class of a tenant's colour, the same on all pages: as many tenants as there are colours have one of their own, those
// with the largest weights.
func (v *visit) Colour(tenant string) string { return "k" + strconv.Itoa(v.hue(tenant)) }

func (v *visit) hue(tenant string) int {
	if c, ok := v.colour[tenant]; ok {
		return c
	}
	return grey
}

// byHue sorts tenants by their colours, grey last.
func (v *visit) byHue(a, b string) int {
	if x, y := v.hue(a) == grey, v.hue(b) == grey; x != y {
		return map[bool]int{true: 1, false: -1}[x]
	}
	return cmp.Or(v.hue(a)-v.hue(b), strings.Compare(a, b))
}

// colours gives each tenant a colour. With one in focus, all others are grey.
func colours(tenants []store.Tenant, focus string) map[string]int {
	weight := map[string]int64{}
	var names []string
	for i := range tenants {
		t := &tenants[i]
		if _, ok := weight[t.Tenant]; !ok {
			names = append(names, t.Tenant)
		}
		weight[t.Tenant] = max(weight[t.Tenant], t.Weight)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), strings.Compare(a, b)) })
	out := map[string]int{}
	for i, name := range names {
		if i >= grey {
			i++ // which is not a tenant's own
		}
		out[name] = i
		if i >= chart.Hues {
			out[name] = grey
		}
	}
	if _, ok := out[focus]; ok {
		for name, hue := range out {
			switch {
			case name != focus:
				out[name] = grey
			case hue == grey:
				out[name] = 0
			}
		}
	}
	return out
}

// Path is that of this page, and TenantNames are the tenants that it can show alone.
func (v *visit) Path() string { return v.req.URL.Path }

func (v *visit) TenantNames() []string { return slices.Sorted(maps.Keys(v.colour)) }

// Kept gives the parameters of this page that a form leaves as they are: all but one, and the page of a list.
func (v *visit) Kept(but string) map[string]string {
	out := map[string]string{}
	for name, values := range v.req.URL.Query() {
		if name != but && name != "page" && values[0] != "" {
			out[name] = values[0]
		}
	}
	return out
}

// Pager is the place of a part of a list.
type Pager struct {
	Page, Pages, All, First, Last int
	Prev, Next                    string // addresses; "" = none
}

// pager cuts a list of n rows into pages of size, and gives the bounds of the one that the request names.
func (v *visit) pager(n, size int) (Pager, int, int) {
	p := Pager{All: n, Pages: max((n+size-1)/size, 1)}
	asked, _ := strconv.Atoi(v.query("page")) // 0, which is no page, if it is no number
	p.Page = min(max(asked, 1), p.Pages)
	from := (p.Page - 1) * size
	to := min(from+size, n)
	p.First, p.Last = min(from+1, to), to
	if p.Page > 1 {
		p.Prev = v.With("page", strconv.Itoa(p.Page-1))
	}
	if p.Page < p.Pages {
		p.Next = v.With("page", strconv.Itoa(p.Page+1))
	}
	return p, from, to
}

// With gives the address of this page with another value of a parameter; "" = without it. The page of a list is forgotten.
func (v *visit) With(name, value string) string {
	q := v.req.URL.Query()
	q.Del("page")
	if q.Set(name, value); value == "" {
		q.Del(name)
	}
	path := url.URL{Path: v.req.URL.Path, RawQuery: q.Encode()}
	return path.String()
}

// JobPath is the address of a job's page.
func JobPath(id string) string { return "/jobs/" + url.PathEscape(id) }

// JobKeyPath is the address of the page of the job with a key, though another job may have its id now.
func JobKeyPath(id string, key cluster.JobKey) string {
	return fmt.Sprintf("%s?key=%d", JobPath(id), key)
}
