package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// jobs is the content of the list of jobs.
type jobs struct {
	Find, State, Tenant, Code, Sort string
	States, Tenants, Codes          []string
	Pager                           Pager
	Rows                            []*scene.Job
	Kept                            []kept
}

// kept is how many statements of a class of forecasts kept their word.
type kept struct {
	forecast.Coverage
	Name, Text string
	Level      Level // Warn if the class surely does not keep its word
}

// keptOf words how many statements kept their word.
func keptOf(list []forecast.Coverage) (out []kept) {
	for i := range list {
		c := &list[i]
		x := kept{*c, view.Statements(c), view.KeptWord(c), Good}
		if view.BreaksWord(c) {
			x.Level = Warn
		}
		out = append(out, x)
	}
	return out
}

const mostJobs = 100

// orders are the orders of the list.
var orders = map[string]func(a, b *scene.Row) int{
	"":     func(a, b *scene.Row) int { return cmp.Compare(a.Record.Key, b.Record.Key) },
	"gpus": func(a, b *scene.Row) int { return cmp.Compare(b.GPUs(), a.GPUs()) },
	"rho":  func(a, b *scene.Row) int { return cmp.Compare(a.Rho(), b.Rho()) },
	"wait": func(a, b *scene.Row) int { return cmp.Compare(since(a), since(b)) },
	"user": func(a, b *scene.Row) int { return strings.Compare(a.Record.User, b.Record.User) },
}

// since is when a job's wait began; jobs that do not wait come last.
func since(j *scene.Row) cluster.Instant {
	if j.Record.State != cluster.Waiting || j.Record.First == 0 {
		return math.MaxInt64
	}
	return j.Record.First
}

func jobsPage(v *visit) (string, any, error) {
	v.Title = "Jobs"
	l := &jobs{Find: v.query("find"), State: v.query("state"), Tenant: v.query("tenant"), Code: v.query("code"), Sort: v.query("sort")}
	order, ok := orders[l.Sort]
	if !ok {
		l.Sort, order = "", orders[""]
	}
	states, tenants, codes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var found []*scene.Row
	for i := range v.Jobs {
		j := &v.Jobs[i]
		states[string(j.Record.State)], tenants[j.Record.Tenant], codes[string(j.Code())] = true, true, true
		if l.has(j) {
			found = append(found, j)
		}
	}
	l.States, l.Tenants, l.Codes = sorted(states), sorted(tenants), sorted(codes)
	slices.SortStableFunc(found, order)
	var from, to int
	l.Pager, from, to = v.pager(len(found), mostJobs)
	for _, j := range found[from:to] {
		l.Rows = append(l.Rows, j.Job())
	}
	l.Kept = keptOf(v.Coverage)
	return "jobs", l, nil
}

// has tells whether a job is in the list that the filters select.
func (l *jobs) has(j *scene.Row) bool {
	if l.State != "" && string(j.Record.State) != l.State || l.Tenant != "" && j.Record.Tenant != l.Tenant || l.Code != "" && string(j.Code()) != l.Code {
		return false
	}
	return l.Find == "" || strings.HasPrefix(j.Record.ID.String(), l.Find) || strings.Contains(j.Record.Name, l.Find) || strings.Contains(j.Record.User, l.Find)
}

func sorted(set map[string]bool) (out []string) {
	for name := range set {
		if name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// oneJob is the content of a job's page.
type oneJob struct {
	store.Job
	Live  *scene.Job // nil = it has ended, or the newest round does not know it
	Why   []string   // the reason, in clauses
	Right string     // of its lease, in words
	// Requeued tells in clauses of its newest requeue that fairlease did not order.
	Requeued []string
	Turn     []string
	// Forecast says when it starts and ends, in clauses; Remarks what is unusual about it now.
	Forecast []string
	Remarks  []store.Remark
	Rho      string
	Leases   []store.Lease
	Actions  []store.Action
	Seen     []store.GPU // GPUs that it holds, as telemetry saw them last
	Use      *chart.Chart
	Held     cluster.GPUTime // of the hours in Use
	Idle     cluster.GPUTime
}

func jobPage(v *visit) (string, any, error) {
	id, err := cluster.ParseJobID(v.req.PathValue("id"))
	if err != nil {
		return "", nil, errLost
	}
	v.Title = "Job " + id.String()
	key, _ := strconv.ParseInt(v.query("key"), 10, 64)
	j := &oneJob{Live: v.Job(id)}
	if j.Live != nil && key != 0 && j.Live.Key != cluster.JobKey(key) {
		j.Live = nil
	}
	ctx := v.req.Context()
	if j.Live != nil {
		j.Job, j.Why = j.Live.Job, v.Reason(j.Live)
		j.Turn = v.turn(j.Live)
		if j.Live.Class != "" {
			j.Right = explain.Right(cluster.LeaseClass(j.Live.Class))
		}
		for _, name := range j.Live.Nodes {
			n := v.Node(name)
			if n == nil {
				continue
			}
			for _, g := range n.Seen {
				if g.Key != nil && *g.Key == j.Key {
					j.Seen = append(j.Seen, g)
				}
			}
		}
	} else {
		found, err := v.past().Find(ctx, v.Scope(), id, cluster.JobKey(key))
		if v.history(err) != nil || v.Missing != "" {
			return "", nil, errLost
		}
		j.Job = found
	}
	received, due := j.Work, j.WorkDue
	j.Rho = view.JobRho(received, due)
	told, err := v.past().Told(ctx, &j.Job)
	if err != nil {
		return "job", j, v.history(err)
	}
	j.Leases, j.Actions = told.Leases, told.Actions
	if j.Live != nil {
		j.Remarks = told.Remarks
		words := view.Page{Zone: v.zone(), Now: cluster.InstantOf(v.Now), Every: v.pages.Every}
		if f := told.Forecast; f != nil {
			now := f.As(j.State)
			j.Forecast = strings.Split(words.Ahead(&now, j.SlurmID), "; ")
		} else if text := words.NoForecast(j.SlurmID); text != "" && j.State == string(cluster.Waiting) {
			j.Forecast = strings.Split(text, "; ")
		}
	}
	hours, err := v.past().GPUHours(ctx, j.Key, 14*24)
	if err != nil {
		return "job", j, v.history(err)
	}
	j.use(hours, clock(v.zone()))
	if words := v.words(v.Now, v.name).Requeued(j.Requeues(), j.Restarts); words != "" {
		j.Requeued = strings.Split(words, "; ")
	}
	return "job", j, nil
}

// turn says where a waiting job's tenant stands among those that wait. Everybody may know that: these are sums.
func (v *visit) turn(j *scene.Job) []string {
	if j.State != string(cluster.Waiting) || j.Tenant == "" {
		return nil
	}
	pool := v.Tenants // all, unless the reason is about one
	if j.Why != nil && j.Why.Pool != "" {
		pool = slices.DeleteFunc(slices.Clone(pool), func(t store.Tenant) bool { return t.Pool != j.Why.Pool })
	}
	rows := slices.DeleteFunc(tenantRows(pool), func(t tenantRow) bool { return t.Waiting == 0 })
	at := slices.IndexFunc(rows, func(t tenantRow) bool { return t.Name == j.Tenant })
	if at < 0 {
		return nil
	}
	t := &rows[at]
	out := []string{fmt.Sprintf("Its tenant is number %d of %s by how far they are behind: %s.", at+1, plural(len(rows), "waiting tenant", "waiting tenants"), explain.Behind(t.Behind))}
	out = append(out, fmt.Sprintf("Its tenant has %s of the %s GPUs that it is due, and %s.", t.Has, gpus(t.Due), plural(t.Waiting, "waiting job", "waiting jobs")))
	if j.Until != nil {
		out = append(out, "Next chance: "+v.Ahead(j.Until)+".")
	}
	return out
}

// use draws what the job's GPUs did, hour by hour, with a line for each model.
func (j *oneJob) use(hours []store.GPUHour, x chart.Axis) {
	if len(hours) == 0 {
		return
	}
	at := map[string]int{}
	c := &chart.Chart{Title: "Use of the job's GPUs", Kind: chart.Lines, Wide: true, X: x, Y: chart.Axis{Label: "% of time", Max: 100}}
	for _, h := range slices.Backward(hours) {
		j.Held, j.Idle = j.Held+h.Held, j.Idle+h.Idle
		for _, counter := range []struct {
			name  string
			value *float64
		}{{"a kernel ran", h.Util}, {"tensor cores", h.Tensor}} {
			if counter.value == nil {
				continue
			}
			name := h.Model + ": " + counter.name
			k, ok := at[name]
			if !ok {
				k = len(c.Series)
				at[name] = k
				c.Series = append(c.Series, chart.Series{Name: name, Colour: k % chart.Colours, Steps: true})
			}
			s := &c.Series[k]
			s.X, s.Y = append(s.X, float64(h.Hour.Unix())), append(s.Y, 100**counter.value)
		}
	}
	if len(c.Series) > 0 {
		if len(c.Series) == 1 { // which has no legend
			c.Y.Label += ", " + c.Series[0].Name
		}
		j.Use = c
	}
}
