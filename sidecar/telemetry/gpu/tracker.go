package gpu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// State says whether the values of a GPU, or of all GPUs of a node, can be believed.
type State string

// The states. Silent is of nodes only: it was not read at the newest look.
const (
	Fresh   State = "fresh"
	Stale   State = "stale"   // the values have not changed for too long
	Broken  State = "broken"  // the values contradict each other
	Unknown State = "unknown" // too little is reported
	Silent  State = "silent"
)

// GPU is one GPU, or MIG instance, as judged at one look.
type GPU struct {
	Node string
	Row
	State State
	Why   string          // why it is not fresh
	At    cluster.Instant // when the values were read
	// Idle is true if the GPU is fresh and idle. IdleSince is since when, without a break longer than the maximum age in
	// which it was not fresh; 0 = it is not known to be idle.
	Idle      bool
	IdleSince cluster.Instant
}

// NodeState is the state of the GPUs of a node.
type NodeState struct {
	Node  string
	State State
	Why   string
	Since cluster.Instant // when the state began
	Read  cluster.Instant // when it was last read; 0 = never
}

// Tracker judges GPUs from look to look.
type Tracker struct {
	// MaxAge is the age of values that have not changed at which they are stale.
	MaxAge cluster.Span
	nodes  map[string]*tracked
	levels map[string]*level // by model, as the driver calls it
}

// tracked is what is known of a node.
type tracked struct {
	state NodeState
	gpus  []track // by index, instance
}

// track is what is known of a GPU.
type track struct {
	gpu   GPU
	since cluster.Instant // when a value last changed, or the first look
	moved bool            // a value has changed
	same  int             // looks since then
	rests cluster.Instant // last look at which it was idle
	// contradicted counts consecutive looks at which a kernel ran and nothing was active. stuck stays until something is
	// active again.
	contradicted int
	stuck        bool
}

// level is the lowest and the highest power seen on GPUs of a model, in watts.
type level struct{ low, high float64 }

const (
	// sameLooks is the minimum number of looks without a change of a stale GPU: one exporter reads every 30 s whatever
	// the interval of looks.
	sameLooks = 3
	// someUse is the utilization above which the profiling counters cannot all be 0, and contradictions the number of
	// consecutive looks that prove them broken: one may fall on the start of a kernel.
	someUse        = 0.20
	contradictions = 2
)

// Look takes one reading for each node and judges their GPUs. Nodes that are not listed are forgotten.
func (t *Tracker) Look(now cluster.Instant, nodes []Node, readings []Reading) {
	was := t.nodes
	t.nodes = make(map[string]*tracked, len(nodes))
	if t.levels == nil {
		t.levels = map[string]*level{}
	}
	for i := range nodes {
		n := was[nodes[i].Name]
		if n == nil {
			n = &tracked{state: NodeState{Node: nodes[i].Name}}
		}
		t.nodes[nodes[i].Name] = n
		state := Silent
		var why string
		if r := &readings[i]; r.Err != nil {
			why = r.Err.Error()
			for k := range n.gpus {
				n.gpus[k].doubt(now, t.MaxAge, Unknown, "its node was not read: "+why)
			}
		} else {
			n.state.Read = now
			n.gpus = t.rows(n, now, r)
			state, why = n.sum()
		}
		n.set(now, state, why)
	}
}

func (n *tracked) set(now cluster.Instant, state State, why string) {
	if n.state.State != state {
		n.state.Since = now
	}
	n.state.State, n.state.Why = state, why
}

// sum gives the state of a node: the worst of its GPUs'.
func (n *tracked) sum() (State, string) {
	for _, worst := range []State{Broken, Stale, Unknown} {
		count, first := 0, ""
		for i := range n.gpus {
			if g := &n.gpus[i].gpu; g.State == worst {
				if count++; count == 1 {
					first = fmt.Sprintf("GPU %s: %s", g.Name(), g.Why)
				}
			}
		}
		switch count {
		case 0:
		case 1:
			return worst, first
		default:
			return worst, fmt.Sprintf("%d GPUs, the first is %s", count, first)
		}
	}
	return Fresh, ""
}

// Name gives the index of the GPU and, for a MIG instance, its number: "3" or "3.13".
func (r *Row) Name() string {
	if r.Instance == "" {
		return fmt.Sprint(r.Index)
	}
	return fmt.Sprintf("%d.%s", r.Index, r.Instance)
}

func byPlace(a *Row, b *Row) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(len(a.Instance), len(b.Instance)), cmp.Compare(a.Instance, b.Instance))
}

// rows judges the rows of a node. GPUs that are no longer reported are kept as unknown while they could be stale.
func (t *Tracker) rows(n *tracked, now cluster.Instant, r *Reading) []track {
	out := make([]track, 0, len(r.Rows))
	old := n.gpus
	for i := range r.Rows {
		row := &r.Rows[i]
		for len(old) > 0 && byPlace(&old[0].gpu.Row, row) < 0 {
			out = lost(out, old[0], now, t.MaxAge)
			old = old[1:]
		}
		x := track{gpu: GPU{Node: n.state.Node}}
		seen := len(old) > 0 && byPlace(&old[0].gpu.Row, row) == 0
		if seen {
			x, old = old[0], old[1:]
		}
		split := i+1 < len(r.Rows) && row.Instance == "" && r.Rows[i+1].Index == row.Index
		t.judge(&x, row, now, cmp.Or(r.At, now), seen, split)
		out = append(out, x)
	}
	for _, x := range old {
		out = lost(out, x, now, t.MaxAge)
	}
	return out
}

// lost keeps a GPU that a reading lacks for a while.
func lost(out []track, x track, now cluster.Instant, maxAge cluster.Span) []track {
	if now.Sub(x.gpu.At) > maxAge {
		return out
	}
	x.doubt(now, maxAge, Unknown, "the exporter no longer reports it")
	return append(out, x)
}

// doubt takes back that a GPU is fresh. It remains idle since when it was for as long as that could be a gap.
func (x *track) doubt(now cluster.Instant, maxAge cluster.Span, state State, why string) {
	x.gpu.State, x.gpu.Why, x.gpu.Idle = state, why, false
	if state != Unknown || now.Sub(x.rests) > maxAge {
		x.gpu.IdleSince = 0
	}
}

// judge takes the newest row of a GPU.
func (t *Tracker) judge(x *track, row *Row, now, at cluster.Instant, seen, split bool) {
	g := &x.gpu
	switch {
	case !seen:
		x.since = now
	case !sameValues(&g.Values, &row.Values):
		x.since, x.moved, x.same = now, true, 0
	default:
		x.same++
	}
	g.Row, g.At = *row, at
	if g.State, g.Why = t.state(x, now, split); g.State != Fresh {
		x.doubt(now, t.MaxAge, g.State, g.Why)
		return
	}
	if g.Idle = t.learn(&g.Row).idle(&g.Values); !g.Idle {
		g.IdleSince = 0
		return
	}
	if g.IdleSince == 0 || now.Sub(x.rests) > t.MaxAge {
		g.IdleSince = at
	}
	x.rests = now
}

// sameValues compares all counters: of a live GPU at least its energy or its power changes all the time.
func sameValues(a, b *Values) bool {
	for m := range a {
		if a[m] != b[m] && (a.Has(Meaning(m)) || b.Has(Meaning(m))) {
			return false
		}
	}
	return true
}

// state judges whether the values can be believed.
func (t *Tracker) state(x *track, now cluster.Instant, split bool) (State, string) {
	v := &x.gpu.Values
	active, counted := 0.0, false
	for _, m := range []Meaning{Engine, SM, Tensor, DRAM} {
		if v.Has(m) {
			active, counted = max(active, v[m]), true
		}
	}
	switch {
	case active > 0:
		x.contradicted, x.stuck = 0, false
	case counted && v.Has(Util) && v[Util] > someUse:
		x.contradicted++
		x.stuck = x.stuck || x.contradicted >= contradictions
	default:
		x.contradicted = 0
	}
	switch {
	case x.stuck:
		return Broken, "the profiling counters stay 0 although kernels run; restart nv-hostengine or dcgm-exporter"
	case x.contradicted > 0:
		return Unknown, "the profiling counters are 0 although a kernel runs"
	case split:
		return Unknown, "it is divided into MIG instances, which are not joined with jobs"
	case x.same >= sameLooks && now.Sub(x.since) >= t.MaxAge:
		return Stale, fmt.Sprintf("no value has changed at %d looks; restart dcgm-exporter", x.same)
	case !x.moved:
		return Unknown, "no value has been seen to change yet"
	case !v.Has(Util) && !v.Has(Engine):
		return Unknown, "neither its utilization nor the activity of its engine is reported"
	}
	return Fresh, ""
}

// learn notes the power of a GPU among those of its model.
func (t *Tracker) learn(row *Row) *level {
	l := t.levels[row.Model]
	if l == nil {
		l = &level{low: mosts[Power]}
		t.levels[row.Model] = l
	}
	if power := row.Values[Power]; row.Values.Has(Power) && power >= 1 {
		l.low, l.high = min(l.low, power), max(l.high, power)
	}
	return l
}

// idle tells whether a GPU is idle: no kernel ran, and its power is near the lowest of its model. A GPU whose memory is in
// use draws more than the lowest, up to about twice as much.
func (l *level) idle(v *Values) bool {
	const part, engine = 0.3, 0.01
	return v.Has(Util) && v[Util] == 0 && !(v[Engine] > engine) && v.Has(Power) && v[Power] <= l.low+max(l.low, part*(l.high-l.low))
}

// GPUs gives all GPUs by node, index and instance.
func (t *Tracker) GPUs() []GPU {
	count := 0
	for _, n := range t.nodes {
		count += len(n.gpus)
	}
	out := make([]GPU, 0, count)
	for _, n := range t.sorted() {
		for i := range n.gpus {
			out = append(out, n.gpus[i].gpu)
		}
	}
	return out
}

// Nodes gives the states of all nodes, by name.
func (t *Tracker) Nodes() []NodeState {
	var out []NodeState
	for _, n := range t.sorted() {
		out = append(out, n.state)
	}
	return out
}

func (t *Tracker) sorted() []*tracked {
	out := make([]*tracked, 0, len(t.nodes))
	for _, n := range t.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *tracked) int { return cmp.Compare(a.state.Node, b.state.Node) })
	return out
}

// Refuse makes all GPUs of a node unknown at this look, for a reason that their values do not show.
func (t *Tracker) Refuse(now cluster.Instant, node, why string) {
	n := t.nodes[node]
	for i := range n.gpus {
		n.gpus[i].doubt(now, 0, Unknown, why)
	}
	n.set(now, Broken, why)
}
