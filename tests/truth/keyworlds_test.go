package truth

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// keyWorld is a small cluster with some hours of jobs, in which settings can show what they decide.
type keyWorld struct {
	name  string
	hours int
	jobs  func(w *simtest.World, hour int)
}

var keyWorlds = []keyWorld{{"busy", 8, busy}, {"turns", 6, turns}, {"bound", 7, bound}, {"brief", 2, brief}, {"scattered", 7, scattered}, {"debts", 13, debts}, {"eight", 7, eight}, {"ragged", 4, ragged}, {"loose", 3, loose}, {"blocked", 6, blocked}, {"starving", 11, starving}}

// settled is a configuration, and what the engine gets of it.
type settled struct {
	config   *config.Config
	settings cluster.Settings
	weights  map[string]int64
}

// parsed reads a configuration of keys and values. interval is that of the worlds.
func parsed(values map[string]string) (*settled, error) {
	tree := map[string]map[string]string{}
	text := "interval: 1m\n"
	for _, key := range slices.Sorted(maps.Keys(values)) {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			text += key + ": " + values[key] + "\n"
			continue
		}
		if tree[section] == nil {
			tree[section] = map[string]string{}
		}
		tree[section][name] = values[key]
	}
	for _, section := range slices.Sorted(maps.Keys(tree)) {
		text += section + ":\n"
		for _, name := range slices.Sorted(maps.Keys(tree[section])) {
			text += "  " + name + ": " + tree[section][name] + "\n"
		}
	}
	c, err := config.Parse("f.yaml", []byte(text), nil)
	if err != nil {
		return nil, err
	}
	return &settled{c, c.Settings(), c.Rules().Weights}, nil
}

// in gives a snapshot with other settings and weights.
func (c *settled) in(s cluster.Snapshot) cluster.Snapshot {
	s.Settings = c.settings
	if len(c.weights) > 0 {
		s.Tenants = slices.Clone(s.Tenants)
		for t := range s.Tenants {
			s.Tenants[t].Weight = c.weights[s.Tenants[t].Name]
		}
	}
	return s
}

// decided is what a plan decides: its actions, leases and claims without their reasons, and the division of GPU models from then on.
type decided struct {
	actions  []cluster.Action
	leases   []cluster.Lease
	claims   []cluster.Claim
	question *cluster.AllocationRequest
	anew     bool // the division that is known does not fit the jobs, GPUs or settings any more
}

func essence(p *cluster.Plan) decided {
	d := decided{actions: slices.Clone(p.Actions), leases: slices.Clone(p.State.Leases), claims: p.State.Claims, question: p.AllocationRequest}
	for i := range d.actions {
		d.actions[i].Reason = cluster.Reason{}
	}
	for i := range d.leases {
		d.leases[i].Why = ""
	}
	return d
}

// same reports whether two plans decide the same.
func (d *decided) same(o *decided) bool {
	return reflect.DeepEqual(d.leases, o.leases) && reflect.DeepEqual(d.actions, o.actions) && reflect.DeepEqual(d.claims, o.claims) && d.divides(o)
}

// divides reports whether two plans ask for the same division.
func (d *decided) divides(o *decided) bool {
	if d.question == nil || o.question == nil {
		return d.question == o.question
	}
	x, y := *d.question, *o.question
	if x.Digest, y.Digest = "", ""; reflect.DeepEqual(x, y) {
		return true
	}
	p, q := engine.Divide(x), engine.Divide(y)
	return reflect.DeepEqual(p.Parts, q.Parts) && reflect.DeepEqual(p.Trades, q.Trades) && reflect.DeepEqual(p.CellTrades, q.CellTrades)
}

// decides gives what is decided in a snapshot, with a new division whatever was divided before.
func decides(s cluster.Snapshot) decided {
	if s.Allocation != nil {
		a := *s.Allocation
		a.Digest, s.Allocation = "", &a
	}
	p := engine.Decide(s)
	return essence(&p)
}

// run lets a world go under a configuration, as long as look, which sees every snapshot with what is decided, reports that there is more to see.
func (k *keyWorld) run(t testing.TB, c *settled, look func(s *cluster.Snapshot, d *decided) bool) {
	t.Helper()
	w := simtest.New(t, c.settings, append(simtest.Nodes("k", "k80", 3, 4), simtest.Nodes("v", "v100", 5, 4)...), "a", "b")
	w.Gate, w.Rules.Weights = c.settings.GateTTL, c.weights
	if c.config.Cells.File != "" {
		w.Rules.Cells = keyCells(k.name != "scattered")
	}
	for name, rates := range map[string][2]float64{"p": {1, 4}, "q": {1, 1.3}, "r": {2, 5}, "big": {1, 2}, "k1": {3, 9}, "k2": {3, 8}} {
		for p, model := range []string{"k80", "v100"} {
			w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: cluster.Kind(name), Model: model, Gang: 1, Rate: rates[p], Source: cluster.Declared})
		}
	}
	for _, model := range []string{"k80", "v100"} {
		w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: "p", With: cluster.Scattered, Model: model, Gang: 3, Rate: 0.1, Relative: true, Source: cluster.Declared})
	}
	more := true
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		p := engine.Decide(s)
		if more {
			d := essence(&p)
			if s.Allocation != nil {
				d = decides(s)
				d.anew = p.AllocationRequest != nil
			}
			more = look(&s, &d)
		}
		return p
	}
	for hour := 0; hour < k.hours && more; hour++ {
		k.jobs(w, hour)
		w.Run(cluster.Hour)
	}
}

// keyCells gives each tenant a node of k80 and, if all is set, nodes of v100, and leaves the others to both.
func keyCells(all bool) *cluster.Cells {
	d := &cluster.Cells{VCs: []cluster.VC{{Name: "a"}, {Name: "b"}}}
	for _, m := range []struct {
		model, prefix string
		nodes         []int // by virtual cluster
	}{{"k80", "k", []int{1, 1}}, {"v100", "v", []int{2, 1}}} {
		if !all && m.model == "v100" {
			continue
		}
		whole := m.model + ".node"
		d.Types = append(d.Types, cluster.CellType{Name: m.model, Model: m.model}, cluster.CellType{Name: whole, Child: m.model, Split: 4, Node: true})
		n := 0
		for vc, nodes := range m.nodes {
			d.VCs[vc].Cells = append(d.VCs[vc].Cells, cluster.CellQuota{Type: whole, Cells: nodes})
			for range nodes {
				n++
				name := fmt.Sprintf("%s%02d", m.prefix, n)
				d.Tops = append(d.Tops, cluster.TopCell{Name: name, Type: whole, Nodes: []string{name}})
			}
		}
	}
	return d
}

// busy has jobs of all sorts, more than fit. Tenant b comes late, and leaves for an hour.
func busy(w *simtest.World, hour int) {
	for i := range 5 {
		n := hour*5 + i
		job := sim.Work{User: []string{"x", "y", "z"}[n%3], Account: "a",
			Runs:    []cluster.Span{20 * cluster.Minute, 3 * cluster.Hour, 50 * cluster.Minute, 9 * cluster.Hour}[n%4],
			Request: []cluster.Request{simtest.Gang(1), simtest.Gang(2), simtest.Gang(4), {Size: cluster.Whole(6), CPUs: 6, MemoryMB: 6144}, {Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}}[n*3%5],
			Saves:   []sim.Saves{sim.AtEnd, sim.Never, sim.AtNotice, sim.OnTerm, sim.Periodic}[n*2%5], Every: 25 * cluster.Minute,
			QOS: []string{"", "high", "low"}[n*5%7%3], NoRequeue: n%11 == 10,
		}
		if n%2 == 1 && hour > 1 && hour != 5 {
			job.Account = "b"
		}
		switch n % 4 {
		case 0:
			job.Comment = fmt.Sprintf("kind=k%d,steps/s.v100=%d,steps/s.k80=10", n%5, 10+10*(n%3))
		case 1:
			job.Comment = "kind=new,steps/s.k80=7"
		case 2:
			job.Comment = "min-lease=40m"
		}
		if n%5 == 4 {
			job.Limit = job.Runs + cluster.Hour
			job.Deadline = w.Now().Add(2 * job.Runs)
		}
		if n%6 == 5 {
			c := sim.DefaultCosts()
			c.Save = 90 * cluster.Second
			job.Costs = &c
		}
		submit(w, 1, job)
	}
}

// submit queues n equal jobs that save at the end of their leases, unless the job says otherwise.
func submit(w *simtest.World, n int, job sim.Work) {
	job.Name, job.Partition = "train", "gpu"
	if job.Saves == sim.Always {
		job.Saves = sim.AtEnd
	}
	for range n {
		w.Virtual.Submit(job)
	}
}

// turns has many small jobs that can be stopped. Tenant b comes after an hour, and then short jobs of both do.
func turns(w *simtest.World, hour int) {
	one := sim.Work{User: "x", Account: "a", Request: simtest.Gang(1), Runs: 9 * cluster.Hour, Comment: "kind=p", Saves: sim.AtNotice}
	switch hour {
	case 0:
		submit(w, 12, one)
		one.User, one.QOS, one.Request, one.Comment = "y", "high", simtest.Gang(2), "kind=q"
		submit(w, 8, one)
	case 1, 4:
		one.User, one.Account, one.Comment = "z", "b", "kind=q"
		submit(w, 10, one)
		one.Request, one.QOS, one.Comment = simtest.Gang(4), "high", "kind=p"
		submit(w, 4, one)
	default:
		one.Runs, one.Comment, one.User = 30*cluster.Minute, "kind=r", "y"
		submit(w, 2, one)
		one.QOS, one.Runs = "high", 35*cluster.Minute
		submit(w, 2, one)
		one.User, one.Account, one.QOS = "v", "b", "high"
		submit(w, 3, one)
		one.Request, one.Comment = cluster.Request{Size: cluster.Whole(3), CPUs: 3, MemoryMB: 3072}, "kind=p"
		submit(w, 2, one)
	}
}

// bound has jobs that cannot be requeued, while the other tenant is away.
func bound(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "b", Request: simtest.Gang(4), Runs: 40 * cluster.Minute}
	switch hour {
	case 0:
		submit(w, 4, job)
	case 2, 3:
		job.Account, job.NoRequeue, job.Runs = "a", true, 5*cluster.Hour
		submit(w, 3, job)
		job.Request = simtest.Gang(1)
		submit(w, 6, job)
		job.Request, job.Runs, job.Limit = simtest.Gang(2), 40*cluster.Minute, 50*cluster.Minute
		submit(w, 4, job)
	case 5:
		submit(w, 5, job)
	}
}

// brief has jobs that cannot be requeued, and end soon.
func brief(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "b", Request: simtest.Gang(4), Runs: 40 * cluster.Minute}
	if hour == 0 {
		submit(w, 4, job)
		return
	}
	job.Account, job.NoRequeue, job.Request, job.Limit = "a", true, simtest.Gang(2), 50*cluster.Minute
	submit(w, 14, job)
}

// scattered leaves one idle GPU on each of several nodes, and has a gang whose tenant has its share.
func scattered(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Runs: 9 * cluster.Hour}
	of := func(tenant, model string, gpus int) {
		job.Account, job.Request = tenant, simtest.Gang(gpus)
		job.Request.Model = model
		submit(w, 1, job)
	}
	switch hour {
	case 0:
	case 1:
		of("b", "v100", 4)
		fallthrough
	default:
		return
	}
	for _, tenant := range []string{"a", "b", "a"} {
		of(tenant, "k80", 4)
	}
	for range 5 {
		for i, tenant := range []string{"a", "b", "a", "b"} {
			if job.Runs = 9 * cluster.Hour; i == 0 {
				job.Runs = 20 * cluster.Minute
			}
			of(tenant, "v100", 1)
		}
	}
}

// ragged leaves idle GPUs on several nodes. The gangs that come then fit on none of them.
func ragged(w *simtest.World, hour int) {
	long := sim.Work{User: "x", Account: "a", Request: simtest.Gang(2), Runs: 9 * cluster.Hour}
	short := long
	short.Runs, short.Account = 20*cluster.Minute, "b"
	switch hour {
	case 0:
		for range 7 {
			submit(w, 1, long)
			submit(w, 1, short)
		}
	case 1:
		apart := short
		apart.Request, apart.Comment, apart.Runs = cluster.Request{Size: cluster.Whole(3), CPUs: 3, MemoryMB: 3072}, "kind=p", 3*cluster.Hour
		submit(w, 1, apart)
		short.Request, short.Runs = simtest.Gang(4), 3*cluster.Hour
		submit(w, 3, short)
		short.NoRequeue, short.Request = true, simtest.Gang(1)
		submit(w, 6, short)
	case 3:
		short.Request, short.QOS = cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}, "high"
		submit(w, 1, short)
		short.Request = cluster.Request{Size: cluster.Whole(6), CPUs: 6, MemoryMB: 6144}
		submit(w, 1, short)
	}
}

// eight has a gang for which one job must move.
func eight(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "b"}
	of := func(gpus int, runs cluster.Span) {
		job.Request, job.Runs = simtest.Gang(gpus), runs
		job.Request.Model = "v100"
		submit(w, 1, job)
	}
	const short, long = 20 * cluster.Minute, 30 * cluster.Hour
	switch hour {
	case 0:
		of(4, long)
		of(4, long)
		of(2, long)
		job.Account = "a"
		of(1, long)
		of(1, short)
		of(3, short)
		of(1, long)
		of(4, short)
	case 1:
		job.Request, job.Runs = cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192, Model: "v100"}, long
		submit(w, 1, job)
	}
}

// debts has a tenant that cannot give back GPUs that the other is due, until it can.
func debts(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "a", Request: simtest.Gang(2), Runs: 8 * cluster.Hour, NoRequeue: true}
	switch hour {
	case 0:
		submit(w, 14, job)
	case 1:
		job.Account, job.NoRequeue, job.Request, job.Runs = "b", false, simtest.Gang(1), 9*cluster.Hour
		submit(w, 28, job)
	case 8:
		job.NoRequeue, job.Request, job.Runs = false, simtest.Gang(1), 9*cluster.Hour
		submit(w, 28, job)
	}
}

// starving has a large job that shorter ones of its tenant pass by.
func starving(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "a", Request: simtest.Gang(4), Runs: 60 * cluster.Hour, Comment: "kind=big", Command: "big"}
	if hour == 0 {
		submit(w, 5, job)
	}
	job.Runs, job.Comment, job.Command = 50*cluster.Minute, "kind=short", "short"
	submit(w, 9, job)
	if job.User, job.Request = "y", simtest.Gang(2); hour < 3 {
		submit(w, 3, job)
	}
}

// loose leaves two idle GPUs on each of several nodes of a virtual cluster.
func loose(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "b", Request: simtest.Gang(4), Runs: 9 * cluster.Hour}
	switch hour {
	case 0:
		submit(w, 5, job)
		job.Account, job.Request = "a", simtest.Gang(2)
		for i := range 6 {
			job.Runs = []cluster.Span{9 * cluster.Hour, 20 * cluster.Minute}[i%2]
			submit(w, 1, job)
		}
	case 1:
		job.Account, job.Request = "a", cluster.Request{Size: cluster.Whole(3), CPUs: 3, MemoryMB: 3072}
		submit(w, 1, job)
		job.Comment = "kind=p"
		submit(w, 1, job)
	}
}

// blocked has jobs that cannot be requeued on every node, and gangs that fit nowhere until these end.
func blocked(w *simtest.World, hour int) {
	job := sim.Work{User: "x", Account: "a", Request: simtest.Gang(3), Runs: 10 * cluster.Minute}
	switch hour {
	case 0:
		for i := range 8 {
			submit(w, 1, job)
			one := job
			one.Request, one.NoRequeue, one.Runs = simtest.Gang(1), true, cluster.Span(150+20*i)*cluster.Minute
			submit(w, 1, one)
		}
		job.Runs, job.Request = 9*cluster.Hour, simtest.Gang(4)
		submit(w, 2, job)
	case 1:
		job.Account, job.Runs, job.Request = "b", 9*cluster.Hour, simtest.Gang(4)
		submit(w, 2, job)
		job.Account, job.Request = "a", simtest.Gang(2)
		submit(w, 3, job)
	}
}
