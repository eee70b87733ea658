package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

const defaultLimit = 100

// route is a question that the API answers.
type route struct {
	path   string
	is     string // summary
	params []param
	past   bool // the answer is from the journal's history, not from a Scene
	answer func(*call) (any, error)
	gives  any // a value of the answer's type
}

// param is a parameter of a query.
type param struct {
	name, is string
	kind     kind
	one      []string // its values; nil = any
}

type kind string

const (
	text   kind = "string"
	number kind = "integer"
	yes    kind = "boolean"
	when   kind = "date-time"
	span   kind = "span"
)

func (p *param) check(value string) (err error) {
	switch p.kind {
	case number:
		n, e := strconv.ParseInt(value, 10, 64)
		if e != nil || n < 0 || p.name == "limit" && (n < 1 || n > scene.MaxRows) {
			err = wrong("%s must be a number from %d to %d", p.name, map[bool]int{true: 1, false: 0}[p.name == "limit"], map[bool]int64{true: scene.MaxRows, false: 1<<63 - 1}[p.name == "limit"])
		}
	case yes:
		if value != "true" && value != "false" {
			err = wrong("%s must be true or false", p.name)
		}
	case when:
		if _, e := time.Parse(time.RFC3339, value); e != nil {
			err = wrong("%s must be a time like 2030-01-31T18:00:00Z", p.name)
		}
	case span:
		if d, e := time.ParseDuration(value); e != nil || d <= 0 {
			err = wrong("%s must be a length of time like 15m or 6h", p.name)
		}
	default:
		if len(value) > 256 {
			err = wrong("%s is too long", p.name)
		}
	}
	if err == nil && p.one != nil && !slices.Contains(p.one, value) {
		err = wrong("%s must be one of %s", p.name, strings.Join(p.one, ", "))
	}
	return err
}

var (
	byLimit  = param{"limit", "Maximum number of rows.", number, nil}
	byAfter  = param{"after", "Cursor of a list, from the header Link of its first part.", text, nil}
	byTenant = param{"tenant", "Only this tenant.", text, nil}
	bySince  = param{"since", "Begin of the window.", when, nil}
	byUntil  = param{"until", "End of the window.", when, nil}
)

// routes are all questions, but for the live stream and the description.
var routes = []route{
	{path: "/status", is: "The state of the daemon, the GPUs and the jobs, as fairlease status --json.", answer: status, gives: Status{}},
	{path: "/person", is: "The person who asks, as this server knows them.", answer: person, gives: Person{}},
	{path: "/tenants", is: "Every tenant in every pool, as fairlease tenants --json.", answer: tenants, gives: []store.Tenant{}},
	{path: "/debts", is: "GPU time that tenants owe each other, as fairlease tenants --debts --json.", answer: func(c *call) (any, error) { return c.scene.Debts, nil }, gives: []store.Debt{}},
	{path: "/bound", is: "Running jobs whose GPUs cannot be taken back soon, and why; fairlease tenants --bound sums them.", answer: func(c *call) (any, error) { return append([]store.Bound{}, c.scene.Bound...), nil }, gives: []store.Bound{}},
	{path: "/objectives", is: "How the site's objectives were kept over the last 28 days, as fairlease objectives --json.", answer: func(c *call) (any, error) { return append([]store.Objective{}, c.scene.Status.Objectives...), nil }, gives: []store.Objective{}},
	{path: "/budgets", is: "Budgets of tenants and what is used of them, as fairlease budgets --json.", answer: func(c *call) (any, error) { return append([]store.Budget{}, c.scene.Budgets...), nil }, gives: []store.Budget{}},
	{path: "/users", is: "Users of tenants that share equally, as fairlease tenants --users --json.", answer: func(c *call) (any, error) { return c.scene.Users, nil }, gives: []cluster.UserAccount{}},
	{path: "/jobs", is: "Live jobs, and why they run or wait, by fairlease's key.", answer: jobs, gives: []scene.Job{}, params: []param{byLimit, byAfter, byTenant,
		{"state", "Only jobs in this state.", text, []string{"waiting", "configuring", "running", "suspended", "completing"}}, {"user", "Only jobs of this user.", text, nil}, {"code", "Only jobs with this reason.", text, nil}}},
	{path: "/jobs/{id}", is: "Why a job runs or waits, as fairlease explain --json, with what its text needs.", answer: job, gives: Explained{}, past: true},
	{path: "/jobs/{id}/gpus", is: "What the GPUs of a job did, by hour.", answer: jobGPUs, gives: []store.GPUHour{}, past: true, params: []param{byLimit}},
	{path: "/leases", is: "Leases in force, as fairlease leases --json; with all=true those that were in force in a window, too.", answer: leases, gives: []store.Lease{},
		params: []param{byLimit, byAfter, {"all", "Include leases that have ended.", yes, nil}, bySince, byUntil, {"node", "Only leases of this node.", text, nil}}},
	{path: "/nodes", is: "Nodes with GPUs, and the jobs on them.", answer: nodes, gives: []scene.Node{}, params: []param{byLimit, byAfter}},
	{path: "/nodes/{name}", is: "One node.", answer: node, gives: scene.Node{}},
	{path: "/gpus", is: "GPUs, who has them and what they do, as fairlease gpus --json.", answer: gpus, gives: []store.GPU{}, params: []param{byLimit, byAfter,
		{"of", "Only those of a node, of a user or of a job.", text, nil}}},
	{path: "/forecasts", is: "The newest forecasts of live jobs, by fairlease's key, as fairlease forecast --all --json.", answer: forecasts, gives: []store.JobForecast{}, params: []param{byLimit, byAfter,
		{"job", "Only this job, or the tasks of this array.", text, nil}}},
	{path: "/forecasts/coverage", is: "How many statements of earlier forecasts kept their word, by class; the whole kinds first.", answer: func(c *call) (any, error) { return append([]forecast.Coverage{}, c.scene.Coverage...), nil }, gives: []forecast.Coverage{}},
	{path: "/cells", is: "Cells of virtual clusters, as fairlease cells show --json.", answer: cells, gives: view.Cells{}, params: []param{{"vc", "Only this virtual cluster.", text, nil}}},
	{path: "/market", is: "How heterogeneous GPUs are divided and traded.", answer: func(c *call) (any, error) { return market(c.scene.Market), nil }, gives: scene.Market{}},
	{path: "/trades", is: "Present and past trades, as fairlease trades --all --json.", answer: trades, gives: []store.Trade{}, past: true, params: []param{byLimit}},
	{path: "/rounds", is: "Rounds, newest first.", answer: rounds, gives: []store.Round{}, past: true, params: []param{byLimit, byAfter}},
	{path: "/rounds/{number}", is: "What a round knew and decided; for operators.", answer: round, gives: Decided{}, past: true},
	{path: "/events", is: "Events, newest first.", answer: events, gives: []store.Noted{}, past: true, params: []param{byLimit, byAfter}},
	{path: "/audit", is: "Who changed which setting, and what administrators did, newest first, as fairlease audit --json; for operators.", answer: audit, gives: []store.Act{}, past: true,
		params: []param{byLimit, byAfter, bySince, byUntil, {"key", "Only a key, a section of the configuration, or a kind.", text, nil}, {"by", "Only by this user.", text, nil}}},
	{path: "/shares", is: "What every tenant had and was due over time, as means of steps. A step without a row is like the one before.", answer: shares, gives: []store.Share{}, past: true,
		params: []param{bySince, byUntil, {"step", "Length of a step; at least a 500th of the window.", span, nil}}},
}

// Status is the answer of fairlease status, and the age of it.
type Status struct {
	*view.Status
	Read   time.Time  `json:"read,omitzero"`          // when the journal was read
	Silent *time.Time `json:"silent_since,omitempty"` // since then the journal does not answer
}

func status(c *call) (any, error) { return Status{c.scene.Status, c.scene.Read, c.scene.Silent}, nil }

// Person is who asks.
type Person struct {
	User     string   `json:"user"` // "" = anonymous
	Operator bool     `json:"operator"`
	Tenants  []string `json:"tenants"`
}

func person(c *call) (any, error) {
	return Person{c.person.User, c.person.Operator, append([]string{}, c.person.Tenants...)}, nil
}

func tenants(c *call) (any, error) { return c.scene.Tenants, nil }

func jobs(c *call) (any, error) {
	after := cluster.JobKey(0)
	if text, ok := c.args["after"]; ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, wrong("%q is no cursor of a list of jobs", text)
		}
		after = cluster.JobKey(n)
	}
	fits := func(arg, value string) bool { want, ok := c.args[arg]; return !ok || want == value }
	list := c.scene.Jobs
	at, _ := slices.BinarySearchFunc(list, after+1, func(j scene.Row, key cluster.JobKey) int { return cmp.Compare(j.Record.Key, key) })
	out, limit := []*scene.Job{}, c.limit()
	for i := at; i < len(list); i++ {
		j := &list[i]
		if !fits("state", string(j.Record.State)) || !fits("tenant", j.Record.Tenant) || !fits("user", j.Record.User) || !fits("code", string(j.Code())) {
			continue
		}
		if len(out) == limit {
			c.next(strconv.FormatInt(int64(out[limit-1].Key), 10))
			break
		}
		out = append(out, j.Job())
	}
	return out, nil
}

// Explained is the answer of fairlease explain, and what its text needs.
type Explained struct {
	*view.Explanation
	Context scene.Context `json:"context"`
	// Missing says why the leases and actions of the past are missing; "" = they are not.
	Missing string `json:"missing,omitempty"`
}

// jobID gives the job that the path names.
func (c *call) jobID() (cluster.JobID, error) {
	id, err := cluster.ParseJobID(c.request.PathValue("id"))
	if err != nil {
		return id, wrong("%v", err)
	}
	return id, nil
}

func job(c *call) (any, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	x, err := c.scene.Explain(c.request.Context(), c.past, id)
	if x == nil {
		return nil, err
	}
	out := Explained{Explanation: x, Context: c.scene.ContextOf(x)}
	if err != nil {
		out.Missing = c.worded(err).Error()
	}
	return out, nil
}

func jobGPUs(c *call) (any, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	if j := c.scene.Job(id); j != nil {
		return c.past.GPUHours(c.request.Context(), j.Key, c.limit())
	}
	j, err := c.past.Find(c.request.Context(), c.scene.Scope(), id, 0)
	if err != nil {
		return nil, err
	}
	return c.past.GPUHours(c.request.Context(), j.Key, c.limit())
}

// A cursor of leases is the last one's name: when it was granted in microseconds, its job's key and its term.
func leaseCursor(l *store.Lease) string {
	return fmt.Sprintf("%d.%d.%d", l.Granted.UnixMicro(), l.Job, l.Term)
}

func (c *call) afterLease() (*store.LeaseName, error) {
	text, ok := c.args["after"]
	if !ok {
		return nil, nil
	}
	n, err := numbers(text, 3)
	if err != nil {
		return nil, err
	}
	return &store.LeaseName{Granted: time.UnixMicro(n[0]).UTC(), Job: cluster.JobKey(n[1]), Term: int(n[2])}, nil
}

// numbers reads a cursor of some numbers.
func numbers(text string, n int) ([]int64, error) {
	parts := strings.Split(text, ".")
	out := make([]int64, len(parts))
	for i, part := range parts {
		x, err := strconv.ParseInt(part, 10, 64)
		if err != nil || x < 0 || len(parts) != n {
			return nil, wrong("%q is no cursor of this list", text)
		}
		out[i] = x
	}
	return out, nil
}

// week is the window of lists for which none is named.
const week = 7 * 24 * time.Hour

func leases(c *call) (any, error) {
	before, err := c.afterLease()
	if err != nil {
		return nil, err
	}
	limit, node := c.limit(), c.args["node"]
	var out []store.Lease
	if c.args["all"] == "true" {
		until := c.moment("until", time.Time{}) // without an end
		w := store.LeaseWindow{Since: c.moment("since", time.Now().Add(-week)), Until: until, Before: before, Limit: limit}
		if node != "" {
			w.Nodes = []string{node}
		}
		if out, err = c.past.Leases(c.request.Context(), c.scene.Scope(), w); err != nil {
			return nil, err
		}
		store.LookAhead(out, c.scene.Forecasts)
	} else {
		for _, l := range c.scene.Leases {
			later := before != nil && cmp.Or(before.Granted.Compare(l.Granted), cmp.Compare(before.Job, l.Job), cmp.Compare(before.Term, l.Term)) <= 0
			if !later && (node == "" || slices.Contains(l.Nodes, node)) && len(out) < limit {
				out = append(out, l)
			}
		}
	}
	if len(out) == limit {
		c.next(leaseCursor(&out[limit-1]))
	}
	return out, nil
}

func nodes(c *call) (any, error) {
	list := c.scene.Nodes
	at := 0
	if after, ok := c.args["after"]; ok {
		at, ok = slices.BinarySearchFunc(list, after, func(n scene.Node, name string) int { return strings.Compare(n.Name, name) })
		if ok {
			at++
		}
	}
	end := min(at+c.limit(), len(list))
	if end < len(list) {
		c.next(list[end-1].Name)
	}
	return list[at:end], nil
}

func node(c *call) (any, error) {
	n := c.scene.Node(c.request.PathValue("name"))
	if n == nil {
		return nil, missing("the newest round has no node %q with GPUs", c.request.PathValue("name"))
	}
	return *n, nil
}

func gpus(c *call) (any, error) {
	list, of := c.scene.GPUs, c.args["of"]
	if of != "" { // among what the person may see: a name of others selects nothing
		var newest *scene.Job // with the id: GPUs of an older one are not its
		if id, err := cluster.ParseJobID(of); err == nil {
			newest = c.scene.Job(id)
		}
		list = slices.DeleteFunc(slices.Clone(list), func(g store.GPU) bool {
			held := g.Job != nil && *g.Job == of && (newest == nil || g.Key != nil && *g.Key == newest.Key)
			return g.Node != of && (g.User == nil || *g.User != of) && !held
		})
	}
	return part(c, list, func(at int, _ *store.GPU) int64 { return int64(at) })
}

func forecasts(c *call) (any, error) {
	var id cluster.JobID
	if text, ok := c.args["job"]; ok {
		var err error
		if id, err = cluster.ParseJobID(text); err != nil {
			return nil, wrong("%v", err)
		}
	}
	return part(c, store.ForecastsOf(c.scene.Forecasts, id), func(_ int, f *store.JobForecast) int64 { return int64(f.Key) })
}

// part gives the rows of a list after the cursor, at most limit. Cursors grow along the list.
func part[T any](c *call, list []T, cursor func(at int, row *T) int64) ([]T, error) {
	from := 0
	if text, ok := c.args["after"]; ok {
		after, err := numbers(text, 1)
		if err != nil {
			return nil, err
		}
		for from < len(list) && cursor(from, &list[from]) <= after[0] {
			from++
		}
	}
	to := min(from+c.limit(), len(list))
	if from < to && to < len(list) {
		c.next(strconv.FormatInt(cursor(to-1, &list[to-1]), 10))
	}
	return list[from:to], nil
}

func cells(c *call) (any, error) {
	if c.scene.Cells == nil {
		return nil, missing("there are no cells in the newest round")
	}
	out := *c.scene.Cells
	if vc, ok := c.args["vc"]; ok {
		out.VCs, out.Trades = slices.Clone(out.VCs), slices.Clone(out.Trades)
		if !out.Only(vc) {
			return nil, missing("there is no virtual cluster %q", vc)
		}
	}
	return out, nil
}

// market gives the market with lists that are not null.
func market(m scene.Market) scene.Market {
	m.Trades, m.Cells, m.Effective = append([]store.Trade{}, m.Trades...), append([]cluster.CellTrade{}, m.Cells...), append([]store.Effective{}, m.Effective...)
	return m
}

func trades(c *call) (any, error) {
	return c.past.Trades(c.request.Context(), c.scene.Scope(), c.limit())
}

func rounds(c *call) (any, error) {
	before := int64(0)
	if text, ok := c.args["after"]; ok {
		n, err := numbers(text, 1)
		if err != nil {
			return nil, err
		}
		before = n[0]
	}
	out, err := c.past.Rounds(c.request.Context(), before, c.limit())
	if err == nil && len(out) == c.limit() {
		c.next(strconv.FormatInt(out[len(out)-1].Number, 10))
	}
	return out, err
}

// Decided is what a round knew and decided, in the form in which the journal keeps it.
type Decided struct {
	Snapshot cluster.Snapshot `json:"snapshot"`
	Plan     cluster.Plan     `json:"plan"`
}

func round(c *call) (any, error) {
	n, err := strconv.ParseInt(c.request.PathValue("number"), 10, 64)
	if err != nil || n <= 0 {
		return nil, wrong("%q is no number of a round", c.request.PathValue("number"))
	}
	if !c.person.Operator {
		return nil, &problem{status: http.StatusForbidden, What: "a whole round names the jobs of all tenants: only operators may see it", Next: "an administrator can name you in web.operators"}
	}
	e, err := c.past.Decided(c.request.Context(), c.scene.Scope(), n)
	return Decided{e.Snapshot, e.Plan}, err
}

func audit(c *call) (any, error) {
	if !c.person.Operator {
		return nil, &problem{status: http.StatusForbidden, What: "only operators may see the record of administration", Next: "an administrator can name you in web.operators"}
	}
	of := store.Acts{Since: c.moment("since", time.Time{}), Until: c.moment("until", time.Time{}), Key: c.args["key"], By: c.args["by"], Limit: c.limit()}
	if text, ok := c.args["after"]; ok {
		n, err := numbers(text, 1)
		if err != nil {
			return nil, err
		}
		of.Before = n[0]
	}
	out, err := c.past.Acts(c.request.Context(), c.scene.Scope(), of)
	if err == nil && len(out) == c.limit() {
		c.next(strconv.FormatInt(out[len(out)-1].ID, 10))
	}
	return append([]store.Act{}, out...), err
}

func events(c *call) (any, error) {
	round, ordinal := int64(0), 0
	if text, ok := c.args["after"]; ok {
		n, err := numbers(text, 2)
		if err != nil {
			return nil, err
		}
		round, ordinal = n[0], int(n[1])
	}
	out, err := c.past.Events(c.request.Context(), c.scene.Scope(), round, ordinal, c.limit())
	if err == nil && len(out) == c.limit() {
		last := &out[len(out)-1]
		c.next(fmt.Sprintf("%d.%d", last.Round, last.Ordinal))
	}
	return out, err
}

func shares(c *call) (any, error) {
	until := c.moment("until", time.Now())
	since := c.moment("since", until.Add(-24*time.Hour))
	if !since.Before(until) {
		return nil, wrong("since (%s) is not before until (%s)", since.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	step, err := time.ParseDuration(cmp.Or(c.args["step"], "1m"))
	if err != nil {
		return nil, err
	}
	return c.past.Shares(c.request.Context(), since, until, step)
}
