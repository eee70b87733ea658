package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Status is the output of the command status.
type Status struct {
	Alive  bool          `json:"alive"` // a daemon has the lead and gives signs of life
	Leader *store.Leader `json:"leader"`
	// Standbys are the other daemons, also those that are gone and did not end by themselves. The caller sets them.
	Standbys []store.Standby `json:"standbys,omitempty"`
	Mode     string          `json:"mode"`   // as configured here; "" = unknown
	Acting   []string        `json:"acting"` // partitions, as configured here
	// Waits is what a changed configuration would do that waits to be accepted; "" = none does.
	Waits string `json:"config_waits,omitempty"`
	// Preempted are partitions that are only observed, since Slurm may stop their jobs by itself.
	Preempted []cluster.Preempted `json:"preempted,omitempty"`
	// Tripped is why nothing is acted on until an operator resumes; nil = the breaker has not tripped.
	Tripped *cluster.Trip `json:"tripped,omitempty"`
	Round   int64         `json:"round"` // the newest committed one
	At      *time.Time    `json:"at"`
	Pools   []PoolStatus  `json:"pools"`
	// Jobs counts the jobs of the newest round, by state.
	Jobs      map[cluster.JobState]int `json:"jobs"`
	Reasons   map[cluster.Code]int     `json:"reasons"` // of waiting jobs
	Leases    int                      `json:"leases"`
	Claims    int                      `json:"claims"`
	Bad       []string                 `json:"bad_nodes"`
	Slow      []cluster.SlowNode       `json:"slow_nodes,omitempty"`
	SlowGPUs  []cluster.SlowGPU        `json:"slow_gpus,omitempty"`
	Overrides int                      `json:"overrides"`
	Aside     []AsideJob               `json:"aside,omitempty"`
	// Stranded lists the jobs that hold the CPUs or memory without which GPUs idle, most GPUs first.
	Stranded []StrandedGPUs `json:"stranded,omitempty"`
	// Own is true if this database user only sees its own tenants' jobs, leases and orders: then
	// there are no Pools.
	Own  bool       `json:"own_tenants_only,omitempty"`
	Next *time.Time `json:"next_lease_end"`
	// Schedule is the schedule whose settings the round had; nil = none.
	Schedule *cluster.Schedule `json:"schedule,omitempty"`
	// Tuned says which term was in place of the configuration's in the round, and Term which one was in force.
	Tuned *cluster.Tuned `json:"tuned,omitempty"`
	Term  cluster.Span   `json:"term_ms,omitempty"`
	// Divided is the policy that divides heterogeneous GPUs, Effective the tenants' throughput
	// under it.
	Divided string `json:"divided,omitempty"`
	Chooser string `json:"models_chooser,omitempty"` // the mechanism that turns its division into jobs
	// Differs lists, as key: value, what the preset of a paper sets otherwise than without the paper's defaults.
	Preset  string   `json:"preset,omitempty"`
	Differs []string `json:"paper_defaults,omitempty"`
	// Replaced says where another order decides than that mechanism, and why.
	Replaced []string `json:"models_chooser_replaced,omitempty"`
	// Schedulers are the virtual clusters' own schedulers.
	Schedulers []SchedulerStatus `json:"schedulers,omitempty"`
	Bound      string            `json:"bound,omitempty"` // how far its division may be from the best, in words
	// GPUs counts nodes by how well their GPUs are seen, and Unseen lists those that are not fresh; both are empty without
	// telemetry. The caller sets them.
	GPUs   []store.GPULook `json:"gpu_telemetry,omitempty"`
	Unseen []store.GPUNode `json:"gpu_nodes_not_fresh,omitempty"`
	// Remarks say which running jobs do not do what is usual for them. The caller sets them.
	Remarks []store.Remark `json:"remarks,omitempty"`
	// Budgets lists the budgets that the reader may see. The caller sets them.
	Budgets []store.Budget `json:"budgets,omitempty"`
	// Objectives lists how the site's objectives were kept. The caller sets them.
	Objectives []store.Objective `json:"objectives,omitempty"`
	// Soon lists the waiting jobs that start first by the newest forecast. The caller sets it.
	Soon []store.JobForecast `json:"soon,omitempty"`
	// CellTrades counts the trades of cells in force.
	CellTrades int               `json:"cell_trades,omitempty"`
	Effective  []store.Effective `json:"effective,omitempty"`
}

// AsideJob is a job that is set aside, with the reason.
type AsideJob struct {
	ID   string         `json:"id"`
	Key  cluster.JobKey `json:"job_key"` // our own number of the job: Slurm reuses its ids
	User string         `json:"user"`
	Why  string         `json:"why"`
}

// StrandedGPUs counts idle GPUs that are charged to a job's tenant, since the job holds the CPUs or memory that goes
// with them.
type StrandedGPUs struct {
	Job    string  `json:"job"`
	User   string  `json:"user"`
	Tenant string  `json:"tenant"` // "" = none
	GPUs   float64 `json:"gpus"`
}

// stranded lists the jobs of a round that strand GPUs.
func stranded(snap *cluster.Snapshot) []StrandedGPUs {
	by := map[int]cluster.MicroGPU{}
	for _, x := range ltgf.Stranded(snap) {
		by[x.Case] += x.GPUs
	}
	var out []StrandedGPUs
	for _, i := range slices.SortedFunc(maps.Keys(by), func(a, b int) int { return cmp.Or(cmp.Compare(by[b], by[a]), a-b) }) {
		c := &snap.Cases[i]
		out = append(out, StrandedGPUs{c.Job.ID.String(), c.Job.User, c.Record.Payer(), float64(by[i]) / float64(cluster.WholeGPU)})
	}
	return out
}

// PoolStatus is the use of the GPUs of one model.
type PoolStatus struct {
	Pool  string           `json:"pool"`
	GPUs  cluster.GPUCount `json:"gpus"`
	Busy  cluster.GPUCount `json:"busy"`
	Idle  cluster.GPUCount `json:"idle"`
	Bad   cluster.GPUCount `json:"bad"`
	Claim cluster.GPUCount `json:"claimed"`
	// Out counts healthy GPUs that cannot be leased, busy and idle ones: jobs that are left alone
	// hold them, or others have reserved them. OutBy is the same by reason.
	Out   cluster.GPUCount                  `json:"out_of_reach"`
	OutBy map[cluster.Left]cluster.GPUCount `json:"out_of_reach_by,omitempty"`
}

// StatusOf sums up the newest round, and the tenants' throughput. The caller sets Mode and
// Acting.
func StatusOf(lead *store.Leader, snap *cluster.Snapshot, plan *cluster.Plan, effective []store.Effective) *Status {
	st := &Status{Divided: snap.Settings.Divide, Differs: snap.Settings.Differs, Schedule: snap.Settings.Schedule, Tuned: snap.Settings.Tuned, Term: snap.Settings.Term, Effective: effective, Leader: lead, Alive: Lives(lead), Round: plan.Round, Jobs: map[cluster.JobState]int{}, Reasons: map[cluster.Code]int{},
		Leases: len(plan.State.Leases), Claims: len(plan.State.Claims), Overrides: len(snap.Overrides), CellTrades: len(plan.State.CellTrades)}
	if len(st.Differs) > 0 {
		st.Preset = snap.Settings.Preset
	}
	if st.Divided != "" {
		st.Chooser = cmp.Or(snap.Settings.Mechanism, cluster.Nearest)
		st.Replaced = replaced(snap, st.Chooser)
	}
	st.Schedulers = schedulersOf(snap, plan)
	if d := snap.Allocation; d != nil && d.Policy == st.Divided {
		st.Bound = explain.Bound(d)
	}
	if plan.Round > 0 && plan.At > 0 {
		at := plan.At.Time()
		st.At = &at
	}
	reasons := plan.Statuses // by key, as the cases
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Job.State != cluster.Done {
			st.Jobs[c.Job.State]++
		}
		for len(reasons) > 0 && reasons[0].Job < c.Record.Key {
			reasons = reasons[1:]
		}
		if len(reasons) > 0 && reasons[0].Job == c.Record.Key && c.Job.State == cluster.Waiting {
			st.Reasons[reasons[0].Reason.Code]++
		}
		if c.Job.Aside != "" && c.Job.State != cluster.Done {
			st.Aside = append(st.Aside, AsideJob{c.Job.ID.String(), c.Record.Key, c.Job.User, c.Job.Aside})
		}
	}
	var next cluster.Instant
	for i := range plan.State.Leases {
		if end := plan.State.Leases[i].End; end > 0 && (next == 0 || end < next) {
			next = end
		}
	}
	if next > 0 {
		at := next.Time()
		st.Next = &at
	}
	for i := range snap.Nodes {
		if n := &snap.Nodes[i]; n.Bad != "" {
			st.Bad = append(st.Bad, n.Name+" ("+n.Bad+")")
		}
	}
	st.Pools, st.Stranded, st.Preempted = poolStates(snap, plan), stranded(snap), snap.Preempted
	st.Tripped, st.Slow, st.SlowGPUs = plan.State.Breaker.Trip, plan.State.NodeSpeeds.Slow, plan.State.NodeSpeeds.GPUs
	return st
}

// Lives tells whether a daemon has the lead and gives signs of life.
func Lives(lead *store.Leader) bool {
	return lead != nil && lead.Renewed.Add(lead.Silent).Before(lead.Takeover)
}

// Own is what a user may read who may not read whole rounds: the data of its own tenants.
type Own struct {
	Round     int64 // 0 = no round yet, and the rest is empty
	At        time.Time
	Jobs      []store.Count
	Leases    []store.Lease
	Overrides []store.Override
	Effective []store.Effective
}

// OwnStatusOf sums up what a user may read. The caller sets Mode and Acting.
func OwnStatusOf(lead *store.Leader, own *Own) *Status {
	st := &Status{Own: true, Leader: lead, Alive: Lives(lead), Round: own.Round, Jobs: map[cluster.JobState]int{}, Reasons: map[cluster.Code]int{},
		Leases: len(own.Leases), Effective: own.Effective}
	if own.Round == 0 {
		return st
	}
	st.At = &own.At
	for _, c := range own.Jobs {
		if c.Code == "" {
			st.Jobs[cluster.JobState(c.State)] = c.Jobs
		} else {
			st.Reasons[cluster.Code(c.Code)] = c.Jobs
		}
	}
	for i := range own.Leases {
		if end := own.Leases[i].Ends; !end.IsZero() && (st.Next == nil || end.Before(*st.Next)) {
			st.Next = &end
		}
	}
	for _, o := range own.Overrides {
		if o.Ended == nil && o.Until.After(own.At) {
			st.Overrides++
		}
	}
	return st
}

// out counts GPUs as out of reach.
func (p *PoolStatus) out(why cluster.Left, n cluster.GPUCount) {
	if p.OutBy == nil {
		p.OutBy = map[cluster.Left]cluster.GPUCount{}
	}
	p.Out += n
	p.OutBy[why] += n
}

// scheduleWords says which settings a schedule holds, and until when.
func scheduleWords(p *Page, s *cluster.Schedule) string {
	return fmt.Sprintf("%s until %s: %s", s.Name, p.words(nil).Ahead(s.Until), s.Sets)
}

// tunedWords says which term tuning has put in place of the configuration's, and why; "" = none. term is the one in force.
func tunedWords(p *Page, t *cluster.Tuned, term cluster.Span) string {
	if t == nil || t.Term == t.File {
		return ""
	}
	held := ""
	if term != t.Term {
		held = fmt.Sprintf(" (now %v, by the schedule)", config.Duration(term))
	}
	return fmt.Sprintf("%v%s in place of %v since %s, by %s: %s", config.Duration(t.Term), held, config.Duration(t.File), p.Time(t.Since), t.By, t.Why)
}

// outWords says why GPUs are out of reach.
var outWords = map[cluster.Left]string{
	cluster.LeftOptOut:      "held by jobs that opt out of leases",
	cluster.LeftExcluded:    "held by jobs that the configuration excludes",
	cluster.LeftReservation: "reserved by others",
	cluster.LeftNoTenant:    "held by jobs without a tenant",
	cluster.LeftAside:       "held by jobs that are set aside",
}

// outOfReach says how many GPUs of all pools are out of reach, and why.
func outOfReach(pools []PoolStatus) string {
	all, by := cluster.GPUCount(0), map[string]cluster.GPUCount{}
	for i := range pools {
		all += pools[i].Out
		for why, n := range pools[i].OutBy {
			by[outWords[why]] += n
		}
	}
	if all == 0 {
		return ""
	}
	var parts []string
	for _, why := range slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%s %s", by[why], why))
	}
	return strings.Join(parts, ", ")
}

// gpusAt is the GPUs of one model on a node.
type gpusAt struct{ node, model string }

// poolStates counts GPUs by use, in the order of the ledger's pools.
func poolStates(snap *cluster.Snapshot, plan *cluster.Plan) []PoolStatus {
	at := map[string]int{}
	held := map[gpusAt]cluster.GPUCount{}
	var out []PoolStatus
	for _, a := range plan.State.Ledger.Pools {
		at[a.Pool] = len(out)
		out = append(out, PoolStatus{Pool: a.Pool, GPUs: a.GPUs, Bad: a.BadGPUs})
	}
	count := func(holdings []cluster.Holding, add func(*PoolStatus, cluster.GPUCount)) {
		for _, h := range holdings {
			if i, ok := at[h.Model]; ok {
				add(&out[i], h.Size.At(snap.Settings.Worth(h.Model)).Count())
			}
		}
	}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Gone || c.Job.State == cluster.Waiting || c.Job.State == cluster.Done {
			continue
		}
		count(c.Job.Holds, func(p *PoolStatus, n cluster.GPUCount) { p.Busy += n })
		for _, h := range c.Job.Holds {
			held[gpusAt{h.Node, h.Model}] += h.Size.Count()
		}
		if c.Control == cluster.Unmanaged {
			count(c.Job.Holds, func(p *PoolStatus, n cluster.GPUCount) { p.out(c.Left, n) })
		}
	}
	reserved := reservedGPUs(snap)
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		left := reserved[n.Name]
		for _, g := range n.GPUs {
			if free := min(cluster.CountOf(g.Count)-held[gpusAt{n.Name, g.Model}], left); n.Bad == "" && free > 0 {
				if i, ok := at[g.Model]; ok {
					out[i].out(cluster.LeftReservation, cluster.GPUCount(cluster.MicroGPU(free).At(snap.Settings.Worth(g.Model))))
				}
				left -= free
			}
		}
	}
	for i := range plan.State.Claims {
		count(plan.State.Claims[i].Nodes, func(p *PoolStatus, n cluster.GPUCount) { p.Claim += n })
	}
	for i := range out {
		out[i].Idle = max(out[i].GPUs-out[i].Bad-out[i].Busy, 0)
	}
	return out
}

// reservedGPUs counts by node the GPUs that reservations of others keep now, and that their own jobs do not hold.
func reservedGPUs(snap *cluster.Snapshot) map[string]cluster.GPUCount {
	out := map[string]cluster.GPUCount{}
	for i := range snap.Reservations {
		r := &snap.Reservations[i]
		if r.Ours || r.Start > snap.Now || snap.Now >= r.End {
			continue
		}
		for _, node := range r.Nodes {
			part, some := r.Part(node)
			if !some {
				out[node] = cluster.CountOf(math.MaxInt32)
				continue
			}
			out[node] += max(cluster.CountOf(part.GPUs)-heldWithin(snap, r.Name, node), 0)
		}
	}
	return out
}

// heldWithin counts the GPUs of a node that jobs in a reservation hold.
func heldWithin(snap *cluster.Snapshot, reservation, node string) (gpus cluster.GPUCount) {
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Gone || c.Job.Reservation == "" || !slices.Contains(strings.Split(c.Job.Reservation, ","), reservation) {
			continue
		}
		for _, h := range c.Job.Holds {
			if h.Node == node {
				gpus += h.Size.Count()
			}
		}
	}
	return gpus
}

// Write writes the status; in parsable form, only the pools.
func (st *Status) Write(p *Page) {
	t := &Table{Head: []string{"POOL", ">GPUS", ">BUSY", ">IDLE", ">CLAIMED", ">BAD", ">OUT_OF_REACH"}}
	for _, x := range st.Pools {
		t.Add(x.Pool, fmt.Sprint(x.GPUs), fmt.Sprint(x.Busy), fmt.Sprint(x.Idle), fmt.Sprint(x.Claim), fmt.Sprint(x.Bad), fmt.Sprint(x.Out))
	}
	if p.Parsable {
		p.Table(t)
		return
	}
	say := func(name, format string, args ...any) { p.Printf("%-9s %s\n", name, fmt.Sprintf(format, args...)) }
	switch {
	case st.Leader == nil:
		say("daemon", "%s", p.Paint("no daemon leads, so no rounds are made; start one: systemctl start fairlease", "red"))
	case !st.Alive:
		say("daemon", "%s", p.Paint(fmt.Sprintf("%s leads, but gave no sign of life for %s: it is dead or cut off", st.Leader.Holder, cluster.SpanOf(st.Leader.Silent)), "red"))
	default:
		say("daemon", "%s leads since %s, seen %s ago", st.Leader.Holder, p.Time(cluster.InstantOf(st.Leader.Acquired)), max(cluster.SpanOf(st.Leader.Silent), 0))
	}
	for _, x := range st.Standbys {
		if x.Alive {
			say("standby", "%s, runs since %s, seen %s ago", x.Holder, p.Time(cluster.InstantOf(x.Since)), max(cluster.SpanOf(x.Silent), 0))
		} else {
			say("gone", "%s", p.Paint(fmt.Sprintf("%s was last seen at %s, %s ago: it does not stand by", x.Holder, p.Time(cluster.InstantOf(x.Seen)), cluster.SpanOf(x.Silent)), "yellow"))
		}
	}
	acting := "no partition is acted on"
	if list := st.ActsOn(); len(list) > 0 {
		acting = "acting on " + strings.Join(list, ", ")
	}
	if st.Mode == "" {
		say("mode", "unknown: the configuration file of this host has a mistake")
	} else {
		say("mode", "%s: %s (as configured here)", st.Mode, acting)
	}
	if st.Waits != "" {
		say("config", "%s", p.Paint("a change waits to be accepted: "+st.Waits+"; to see it: fairlease config accept", "yellow"))
	}
	if st.Tripped != nil {
		say("breaker", "%s", p.Paint(fmt.Sprintf("has tripped at %s, and nothing is acted on: %s; when the cause is found: fairlease resume --reason TEXT", p.Time(st.Tripped.At), st.Tripped.Says()), "red"))
	}
	for _, x := range st.Preempted {
		say("observed", "%s", p.Paint(fmt.Sprintf("partition %s: %s (docs/operations.md, \"Preemption by Slurm itself\")", x.Partition, x.Why), "red"))
	}
	if st.Round == 0 {
		say("round", "none has been recorded yet")
		return
	}
	at := explain.Unknown
	if st.At != nil {
		at = p.Time(cluster.InstantOf(*st.At))
	}
	say("round", "%d, recorded at %s; rounds without changes are not recorded", st.Round, at)
	if st.Schedule != nil {
		say("schedule", "%s", scheduleWords(p, st.Schedule))
	}
	if words := tunedWords(p, st.Tuned, st.Term); words != "" {
		say("term", "%s", words)
	}
	say("jobs", "%s", Counts(st.Jobs))
	if len(st.Reasons) > 0 {
		say("waiting", "%s", Reasons(st.Reasons))
	}
	for i := range st.Soon {
		say([]string{"next", ""}[min(i, 1)], "job %s of %s %s", st.Soon[i].SlurmID, st.Soon[i].User, p.starts(&st.Soon[i].Forecast))
	}
	claims := fmt.Sprintf(", %d claims", st.Claims)
	if st.Own {
		claims = ""
	}
	say("leases", "%d in force%s%s", st.Leases, claims, st.nextEnd(p))
	for _, note := range p.BudgetNotes(st.Budgets) {
		say("budget", "%s", note)
	}
	if st.Overrides > 0 {
		say("overrides", "%d in force (fairlease override list)", st.Overrides)
	}
	if st.CellTrades > 0 {
		say("cells", "%s of cells in force (fairlease cells show)", Plural(st.CellTrades, "trade"))
	}
	if n := len(st.Aside); n > 0 {
		first := &st.Aside[0]
		say("aside", "%s", p.Paint(fmt.Sprintf("%s set aside, charged and left alone, since fairlease cannot handle them; the first is job %s of %s: %s", Plural(n, "job"), first.ID, first.User, first.Why), "red"))
	}
	if s := outOfReach(st.Pools); s != "" {
		say("beyond", "GPUs that cannot be leased: %s", s)
	}
	if len(st.Stranded) > 0 {
		say("stranded", "%s", strandedWords(st.Stranded))
	}
	if len(st.Bad) > 0 {
		say("bad", "%s", strings.Join(BadNodes(st.Bad), "; "))
	}
	if len(st.Slow) > 0 {
		words, first := SlowNodes(st.Slow)
		say("slow", "%s (docs/telemetry.md, \"Slow nodes\"); if the first is at fault: %s", words, first.Drain())
	}
	if len(st.SlowGPUs) > 0 {
		words, first := SlowGPUs(st.SlowGPUs)
		say("slow", "%s (docs/telemetry.md, \"Slow GPUs\"); if the first is at fault: %s", words, first.Drain())
	}
	if words := gpuLooks(st.GPUs, st.Unseen, p.Now.Time()); words != "" {
		say("telemetry", "%s", words)
	}
	if words := Remarks(st.Remarks); words != "" {
		say("remarks", "%s", words)
	}
	if st.Own {
		say("seen", "jobs, leases and overrides of your own tenants; this database user may not see others")
	} else {
		p.Printf("\n")
		p.Table(t)
	}
	st.effective(p)
	for _, line := range st.Replaced {
		p.Printf("%s\n", line)
	}
	for i := range st.Schedulers {
		p.Printf("%s\n", st.Schedulers[i].words(p))
	}
	if len(st.Differs) > 0 {
		p.Printf("preset %s sets %s\n", st.Preset, strings.Join(st.Differs, ", "))
	}
}

// ActsOn gives the partitions of Acting that are not only observed, since Slurm may stop their jobs by itself.
func (st *Status) ActsOn() []string {
	var out []string
	if st.Tripped != nil {
		return nil
	}
	for _, name := range st.Acting {
		if !slices.ContainsFunc(st.Preempted, func(x cluster.Preempted) bool { return x.Partition == name }) {
			out = append(out, name)
		}
	}
	return out
}

// SlowNodes words slow nodes, the slowest first, and gives that one.
func SlowNodes(list []cluster.SlowNode) (words string, first *cluster.SlowNode) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b cluster.SlowNode) int { return cmp.Compare(a.Percent, b.Percent) })
	each := make([]string, len(list))
	for i := range list {
		each[i] = fmt.Sprintf("%s at %d %%", list[i].Node, list[i].Percent)
	}
	return Some(each, 4) + " of the usual speed of jobs", &list[0]
}

// SlowGPUs words slow GPUs, the slowest first, and gives that one.
func SlowGPUs(list []cluster.SlowGPU) (words string, first *cluster.SlowGPU) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b cluster.SlowGPU) int { return cmp.Compare(a.Percent, b.Percent) })
	each := make([]string, len(list))
	for i := range list {
		each[i] = fmt.Sprintf("GPU %d of %s at %d %%", list[i].Index, list[i].Node, list[i].Percent)
	}
	return Some(each, 4) + " of the usual speed of jobs", &list[0]
}

// strandedWords says how many GPUs are stranded, and names the job that strands most.
func strandedWords(list []StrandedGPUs) string {
	sum := 0.0
	for _, x := range list {
		sum += x.GPUs
	}
	most := &list[0]
	return fmt.Sprintf("%s without the CPUs or memory that jobs hold, charged to their tenants; most by job %s of %s", Plural(int(math.Round(sum)), "idle GPU"), most.Job, most.User)
}

// effective writes the tenants' throughput on heterogeneous GPUs, if a policy divides them.
func (st *Status) effective(p *Page) {
	if len(st.Effective) == 0 {
		return
	}
	t := &Table{Head: []string{"TENANT", ">NOW", ">DUE", ">BY_WEIGHT", ">RATIO"}}
	for _, x := range st.Effective {
		rho := "-"
		if x.Rho != nil {
			rho = fmt.Sprintf("%.3f", *x.Rho)
		}
		t.Add(x.Tenant, fmt.Sprintf("%.2f", x.Throughput), fmt.Sprintf("%.2f", x.Due), fmt.Sprintf("%.2f", x.Share), rho)
	}
	p.Printf("\n%s\n", p.Paint(fmt.Sprintf("Throughput of each tenant's GPUs, in GPUs of the reference model (%s divides, %s chooses jobs):", st.Divided, st.Chooser), "bold"))
	p.Table(t)
	if st.Bound != "" {
		p.Printf("%s\n", st.Bound)
	}
}

// replaced says where another order decides than a mechanism: users who take turns, and the orders of virtual clusters.
func replaced(snap *cluster.Snapshot, mechanism string) (out []string) {
	user, several := map[string]string{}, map[string]bool{}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Job.State == cluster.Done || c.Record.Tenant == "" {
			continue
		}
		was, known := user[c.Record.Tenant]
		several[c.Record.Tenant] = several[c.Record.Tenant] || known && was != c.Record.User
		user[c.Record.Tenant] = c.Record.User
	}
	maps.DeleteFunc(several, func(_ string, yes bool) bool { return !yes })
	if snap.Settings.Users == cluster.UsersEqual && len(several) > 0 {
		out = append(out, fmt.Sprintf("users: equal: users take turns in place of models.chooser %s, as there are jobs of several users of %s", mechanism, strings.Join(slices.Sorted(maps.Keys(several)), ", ")))
	}
	if snap.Cells == nil {
		return out
	}
	by := map[string][]string{}
	for i := range snap.Cells.VCs {
		v := &snap.Cells.VCs[i]
		if order := cmp.Or(v.Chooser, snap.Settings.Chooser); order != cluster.CellsByShare && order != "" {
			by[order] = append(by[order], v.Name)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("cells.chooser: %s orders jobs in place of models.chooser %s in the cells of %s", order, mechanism, strings.Join(by[order], ", ")))
	}
	return out
}

func (st *Status) nextEnd(p *Page) string {
	if st.Next == nil {
		return ""
	}
	return "; the next ends" + p.words(nil).At(cluster.InstantOf(*st.Next))
}
