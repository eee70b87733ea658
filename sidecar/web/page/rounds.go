package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// rounds is the content of the log of rounds.
type rounds struct {
	Rows  []store.Round
	Older string // address of older ones; "" = none
}

const mostRounds = 50

func roundsPage(v *visit) (string, any, error) {
	v.Title = "Rounds"
	before, _ := strconv.ParseInt(v.query("before"), 10, 64) // 0 if it is no number: the newest
	rows, err := v.past().Rounds(v.req.Context(), before, mostRounds)
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	r := &rounds{Rows: rows}
	if n := len(rows); n == mostRounds {
		r.Older = v.With("before", strconv.FormatInt(rows[n-1].Number, 10))
	}
	return "rounds", r, nil
}

// round is the content of the page of a round: what it decided, and why.
type round struct {
	Number     int64
	Prev, Next int64 // recorded ones; 0 = none
	Facts      *store.Round
	Known      bool // its snapshot and plan are kept, and the person may see them
	Decisions  []decision
	More       int // decisions beyond these
	Counts     []reasonCount
	Actions    []reasonCount
	Tenants    []cluster.TenantStatus
	Events     []cluster.Event
	Quiet      int // leases that did not change
}

// decision is a lease or an action that a round made, with its reason.
type decision struct {
	What   string
	Job    string
	Tenant string
	User   string
	GPUs   cluster.GPUCount
	Pool   string
	Nodes  []string
	Why    string
}

const mostDecisions = 100

func roundPage(v *visit) (string, any, error) {
	number, err := strconv.ParseInt(v.req.PathValue("number"), 10, 64)
	if err != nil || number <= 0 {
		return "", nil, errLost
	}
	v.Title = fmt.Sprintf("Round %d", number)
	r := &round{Number: number}
	ctx := v.req.Context()
	// Rounds in which nothing changed are not recorded: the next and the last one are looked for.
	near, err := v.past().Rounds(ctx, number+neighbours, 2*neighbours)
	if err := v.history(err); err != nil {
		return "", nil, err
	}
	for i := range near {
		switch n := near[i].Number; {
		case n > number:
			r.Next = n
		case n == number:
			r.Facts = &near[i]
		case r.Prev == 0:
			r.Prev = n
		}
	}
	if r.Facts == nil {
		if v.Missing != "" {
			return "round", r, nil
		}
		return "", nil, errLost
	}
	edge, err := v.past().Decided(ctx, v.Scope(), number)
	if pruned := v.history(err); pruned == nil && v.Missing == "" { // else it is pruned, or not for this person
		r.Known = true
		r.decided(v, &edge)
	}
	return "round", r, nil
}

const neighbours = 100

// verbs words what a round did with a lease, by the code of its job's reason; of others nothing changed.
var verbs = map[cluster.Code]string{cluster.ReasonGranted: "granted", cluster.ReasonRenewed: "renewed", cluster.ReasonAdopted: "adopted",
	cluster.ReasonNotice: "given notice", cluster.ReasonEnding: "requeued", cluster.ReasonRecalled: "recalled"}

// decided lists what changed in a round.
func (r *round) decided(v *visit, edge *store.Edge) {
	snap, plan := &edge.Snapshot, &edge.Plan
	find := func(key cluster.JobKey) *cluster.Case {
		if i, ok := slices.BinarySearchFunc(snap.Cases, key, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) }); ok {
			return &snap.Cases[i]
		}
		return nil
	}
	words := v.words(plan.At.Time(), func(key cluster.JobKey) string {
		if c := find(key); c != nil {
			return c.Record.ID.String()
		}
		return ""
	})
	reasons := make(map[cluster.JobKey]*cluster.Reason, len(plan.Statuses))
	counts := map[string]int{}
	for i := range plan.Statuses {
		reasons[plan.Statuses[i].Job] = &plan.Statuses[i].Reason
		counts[string(plan.Statuses[i].Reason.Code)]++
	}
	r.Counts = most(counts)
	add := func(what string, key cluster.JobKey, gpus cluster.GPUCount, pool string, holds []cluster.Holding) {
		d := decision{What: what, GPUs: gpus, Pool: pool}
		if c := find(key); c != nil {
			d.Job, d.Tenant, d.User = c.Record.ID.String(), c.Record.Tenant, c.Record.User
		}
		for i := range holds {
			d.Nodes = append(d.Nodes, holds[i].Node)
		}
		if why := reasons[key]; why != nil {
			d.Why = "It " + words.Reason(*why)
		}
		r.Decisions = append(r.Decisions, d)
	}
	for i := range plan.State.Leases {
		l := &plan.State.Leases[i]
		why := reasons[l.Job]
		if why == nil || verbs[why.Code] == "" {
			r.Quiet++
			continue
		}
		add(verbs[why.Code], l.Job, l.Size.Count(), l.Pool, l.Nodes)
	}
	for i := range plan.State.Claims {
		c := &plan.State.Claims[i]
		add("kept GPUs for it", c.Job, cluster.CountHeld(c.Nodes), c.Pool, c.Nodes)
	}
	rank := map[string]int{"granted": 0, "recalled": 1, "given notice": 2, "requeued": 3, "kept GPUs for it": 4, "adopted": 5, "renewed": 6}
	slices.SortStableFunc(r.Decisions, func(a, b decision) int { return rank[a.What] - rank[b.What] })
	r.More = max(len(r.Decisions)-mostDecisions, 0)
	r.Decisions = r.Decisions[:len(r.Decisions)-r.More]
	acts := map[string]int{}
	for i := range plan.Actions {
		what := strings.ReplaceAll(string(plan.Actions[i].Verb), "_", " ")
		if plan.Actions[i].Suppressed {
			what += " (suppressed by the mode)"
		}
		acts[what]++
	}
	r.Actions = most(acts)
	r.Tenants = slices.Clone(plan.Tenants)
	slices.SortStableFunc(r.Tenants, func(a, b cluster.TenantStatus) int { return cmp.Compare(b.Behind, a.Behind) })
	r.Tenants = r.Tenants[:min(len(r.Tenants), mostTenants)]
	r.Events = plan.Events[:min(len(plan.Events), mostDecisions)]
}

// most lists counts, the largest first.
func most(counts map[string]int) (out []reasonCount) {
	for name, n := range counts {
		out = append(out, reasonCount{name, n})
	}
	slices.SortFunc(out, func(a, b reasonCount) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Code, b.Code))
	})
	return out
}
