package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Level says how urgent something is.
type Level string

// The levels.
const (
	Good Level = "good"
	Warn Level = "warn"
	Bad  Level = "bad"
)

// Note is something to know at one glance, with the address of more.
type Note struct {
	Level Level
	Text  string
	More  string
}

// overview is the content of the first page.
type overview struct {
	Verdict string
	Level   Level
	Notes   []Note
	GPUs    sums
	Running int
	Waiting int
	Leases  int
	Longest *scene.Job // the job that has waited longest
	Tenants []tenantRow
	Budgets bool // some tenant that the person may see has one
	Bound   bool // some tenant that the person may see holds GPUs that cannot be taken back soon
	Hidden  int  // tenants beyond these
	Scale   float64
	Pools   []view.PoolStatus
	Reasons []reasonCount
	Events  []store.Noted
}

// sums counts the GPUs of all pools.
type sums struct {
	All, Bad, Busy, Idle, Out cluster.GPUCount
}

// BusyPart is the part of healthy GPUs that is busy.
func (s sums) BusyPart() float64 {
	return float64(s.Busy) / float64(max(s.All-s.Bad, 1))
}

// tenantRow is a tenant in all pools.
type tenantRow struct {
	Name           string
	Has            cluster.GPUCount
	Due, Wants     float64
	Lent, Borrowed float64
	Waiting        int
	Bound          cluster.GPUCount // GPUs that cannot be taken back soon
	Beyond         cluster.MicroGPU // of these, beyond what it is due
	Behind         cluster.Span     // in the pool where it is furthest behind
	Owed           cluster.GPUTime
	Rho            cluster.Rho // the lowest of the pools where it wants GPUs, else of those where it had some
	HasRho         bool        // it wants GPUs
	Weight         int64
	Budget         *store.Budget // nil = it has none, or the person may not see it
}

// GPUs is Has as a number for bars.
func (t *tenantRow) GPUs() float64 { return float64(t.Has) / float64(cluster.WholeGPU) }

// RhoText is its rho for people, as the tables of the commands have it.
func (t *tenantRow) RhoText() string {
	if t.HasRho {
		return t.Rho.String()
	}
	return view.Rho(t.Rho, 0)
}

// BudgetLevel marks how much of a budget is used.
func (t *tenantRow) BudgetLevel() Level { return Level(view.BudgetLevel(t.Budget)) }

// Level marks a tenant that waits, is behind, and has had clearly less than its due.
func (t *tenantRow) Level() Level {
	switch {
	case t.Waiting == 0 || !t.HasRho || t.Behind < cluster.Minute:
	case t.Rho < 800_000:
		return Bad
	case t.Rho < 950_000:
		return Warn
	}
	return Good
}

type reasonCount struct {
	Code string
	Jobs int
}

// mostTenants is the number of tenants on the first page.
const mostTenants = 40

func overviewPage(v *visit) (string, any, error) {
	v.Title = "Overview"
	o := &overview{Pools: v.Status.Pools, Leases: v.Status.Leases, Events: v.Events[:min(len(v.Events), 8)], Tenants: tenantRows(v.Tenants)}
	for i := range o.Pools {
		p := &o.Pools[i]
		o.GPUs.All, o.GPUs.Busy, o.GPUs.Idle, o.GPUs.Bad, o.GPUs.Out = o.GPUs.All+p.GPUs, o.GPUs.Busy+p.Busy, o.GPUs.Idle+p.Idle, o.GPUs.Bad+p.Bad, o.GPUs.Out+p.Out
	}
	o.Running, o.Waiting = v.Status.Jobs[cluster.Running]+v.Status.Jobs[cluster.Configuring]+v.Status.Jobs[cluster.Suspended], v.Status.Jobs[cluster.Waiting]
	var longest *scene.Row
	for i := range v.Jobs {
		if j := &v.Jobs[i]; j.Record.State == cluster.Waiting && j.Inactive() == "" && j.Record.First != 0 && (longest == nil || j.Record.First < longest.Record.First) {
			longest = j
		}
	}
	if longest != nil {
		o.Longest = longest.Job()
	}
	o.Budgets = len(v.Budgets) > 0
	for i := range o.Tenants {
		if k := slices.IndexFunc(v.Budgets, func(b store.Budget) bool { return b.Tenant == o.Tenants[i].Name }); k >= 0 {
			o.Tenants[i].Budget = &v.Budgets[k]
		}
	}
	for i := range v.Bound {
		b := &v.Bound[i]
		if k := slices.IndexFunc(o.Tenants, func(t tenantRow) bool { return t.Name == b.Tenant }); k >= 0 {
			t := &o.Tenants[k]
			o.Bound, t.Bound, t.Beyond = true, t.Bound+b.GPUs, t.Beyond+b.Beyond
		}
	}
	o.Hidden = max(len(o.Tenants)-mostTenants, 0)
	o.Tenants = o.Tenants[:len(o.Tenants)-o.Hidden]
	for i := range o.Tenants {
		t := &o.Tenants[i]
		o.Scale = max(o.Scale, t.GPUs(), t.Due)
	}
	counts := map[string]int{}
	for code, n := range v.Status.Reasons {
		counts[string(code)] = n
	}
	o.Reasons = most(counts)
	o.Notes = notes(v.Scene, v.Now)
	o.Verdict, o.Level = "All is well", Good
	for _, n := range o.Notes {
		if n.Level == Warn && o.Level == Good {
			o.Verdict, o.Level = "Worth a look", Warn
		}
		if n.Level == Bad {
			o.Verdict, o.Level = "Needs attention", Bad
		}
	}
	return "overview", o, nil
}

// Bar gives the width of a bar, in percent of the widest.
func (o *overview) Bar(gpus float64) string {
	return fmt.Sprintf("%.2f", 100*gpus/max(o.Scale, 1e-9))
}

// tenantRows sums up tenants over pools, those first that are owed most, then by GPUs held.
func tenantRows(all []store.Tenant) []tenantRow {
	at := map[string]int{}
	var out []tenantRow
	const whole = float64(cluster.WholeGPU)
	for i := range all {
		x := &all[i]
		k, ok := at[x.Tenant]
		if !ok {
			k = len(out)
			at[x.Tenant] = k
			out = append(out, tenantRow{Name: x.Tenant, Behind: x.Late(), Weight: x.Weight})
		}
		t := &out[k]
		t.Has, t.Due, t.Wants = t.Has+x.Holds, t.Due+float64(x.Entitlement)/whole, t.Wants+float64(x.Demand)/whole
		t.Lent, t.Borrowed, t.Waiting, t.Owed = t.Lent+float64(x.Lent)/whole, t.Borrowed+float64(x.Borrowed)/whole, max(t.Waiting, x.Waiting), t.Owed+x.Owed
		t.Behind = max(t.Behind, x.Late())
		if x.Demand > 0 && (!t.HasRho || x.Rho < t.Rho) {
			t.Rho, t.HasRho = x.Rho, true
		} else if !t.HasRho && x.Rho > 0 && (t.Rho == 0 || x.Rho < t.Rho) {
			t.Rho = x.Rho
		}
	}
	slices.SortStableFunc(out, func(a, b tenantRow) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.Has, a.Has), strings.Compare(a.Name, b.Name))
	})
	return out
}

// notes says what an administrator should know, the most urgent first.
func notes(s *scene.Scene, now time.Time) []Note {
	var out []Note
	say := func(level Level, more, format string, args ...any) {
		out = append(out, Note{level, fmt.Sprintf(format, args...), more})
	}
	st := s.Status
	if s.Silent != nil {
		say(Bad, "", "The journal has not answered for %s: this is the state of before.", cluster.SpanOf(now.Sub(*s.Silent)))
	}
	switch {
	case s.Silent != nil:
	case st.Leader == nil:
		say(Bad, "", "No daemon leads, so no decisions are made. Start one: systemctl start fairlease")
	case !st.Alive:
		say(Bad, "", "The daemon %s leads, but gives no sign of life: it is dead or cut off.", st.Leader.Holder)
	}
	if s.Round == 0 {
		say(Warn, "", "No round has been recorded yet.")
		return out
	}
	if s.Cells != nil && len(s.Cells.Unsafe) > 0 {
		say(Bad, "/places", "The promises to virtual clusters do not add up: nothing is granted until they do. Run: fairlease cells check")
	}
	if n := len(st.Bad); n > 0 {
		say(Warn, "/places?show=bad", "%s bad: %s.", plural(n, "node is", "nodes are"), few(view.BadNodes(st.Bad)))
	}
	if n := len(st.Slow); n > 0 {
		words, first := view.SlowNodes(st.Slow)
		say(Warn, "/places/"+url.PathEscape(first.Node), "%s slow: %s.", plural(n, "node is", "nodes are"), words)
	}
	if n := len(st.SlowGPUs); n > 0 {
		words, first := view.SlowGPUs(st.SlowGPUs)
		say(Warn, "/places/"+url.PathEscape(first.Node), "%s slow: %s.", plural(n, "GPU is", "GPUs are"), words)
	}
	if st.Tripped != nil {
		say(Bad, "", "The breaker has tripped, and nothing is acted on: %s. When the cause is found: fairlease resume --reason TEXT", st.Tripped.Says())
	}
	if st.Waits != "" {
		say(Warn, "", "A change of the configuration waits to be accepted: %s. To see it: fairlease config accept", st.Waits)
	}
	for _, x := range st.Preempted {
		say(Warn, "", "Partition %s is only observed: %s.", x.Partition, x.Why)
	}
	if n := len(st.Aside); n > 0 {
		say(Warn, "", "%s set aside, since fairlease cannot handle them; the first is job %s: %s.", plural(n, "job is", "jobs are"), st.Aside[0].ID, st.Aside[0].Why)
	}
	if n := len(st.Stranded); n > 0 {
		say(Warn, JobPath(st.Stranded[0].Job), "%s GPUs stand idle, since jobs hold the CPUs or memory that they need; most by job %s.", gpus(sumStranded(st)), st.Stranded[0].Job)
	}
	if n := len(st.Unseen); n > 0 {
		say(Warn, "/places", "The GPUs of %s not seen by telemetry: %s.", plural(n, "node are", "nodes are"), view.Some(unseen(st), 4))
	}
	if st.Mode != "" && st.Mode != "act" {
		say(Warn, "", "The mode is %s: decisions are recorded, and not carried out.", st.Mode)
	}
	for i := range s.Budgets {
		if b := &s.Budgets[i]; b.Spent != nil {
			say(Warn, "", "The budget of %s for the %s is used up%s.", b.Tenant, b.Per, map[bool]string{true: ": it gets idle GPUs only"}[b.IdleOnly])
		}
	}
	if st.Overrides > 0 {
		say(Good, "", "%s in force.", plural(st.Overrides, "override is", "overrides are"))
	}
	rank := map[Level]int{Bad: 0, Warn: 1, Good: 2}
	slices.SortStableFunc(out, func(a, b Note) int { return rank[a.Level] - rank[b.Level] })
	return out
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

func sumStranded(st *view.Status) (sum float64) {
	for i := range st.Stranded {
		sum += st.Stranded[i].GPUs
	}
	return sum
}

func unseen(st *view.Status) []string {
	names := map[string]bool{}
	for i := range st.Unseen {
		names[st.Unseen[i].Node] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// few joins the first reasons of bad nodes.
func few(reasons []string) string {
	const most = 4
	if len(reasons) > most {
		return strings.Join(reasons[:most], "; ") + "; …"
	}
	return strings.Join(reasons, "; ")
}
