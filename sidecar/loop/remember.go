package loop

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Remember joins a sighting with the memory into the snapshot of one round. It fails if they
// contradict each other: then nothing may be concluded.
func Remember(m cluster.State, seen cluster.Observation, orders []cluster.Override, rules Rules, settings cluster.Settings) (cluster.Snapshot, error) {
	return new(desk).remember(m, seen, orders, rules, settings)
}

// desk builds snapshots. It reuses its buffers for the next one.
type desk struct {
	tree    *tree
	cases   []cluster.Case // of the last snapshot
	brief   bool           // that snapshot is no longer needed
	settled *settled       // of the last round, if it was decided with these cases and committed; nil = it was not
	acts    []act          // of ours since that round
	nodes   []cluster.Node // of the last sighting, sorted
	order   []int          // buffer for a register's order
	met     []bool
	watched watchlist
}

// settled is the input of a round on which its cases depend, besides jobs and records.
type settled struct {
	rules     Rules
	preempted []cluster.Preempted
	tree      *tree
	allowance cluster.Span
}

// alike tells whether equal jobs and records make equal cases.
func (s *settled) alike(o *settled) bool {
	a, b := &s.rules, &o.rules
	return s.tree == o.tree && s.allowance == o.allowance && slices.Equal(s.preempted, o.preempted) &&
		a.Mode == b.Mode && a.Tripped == b.Tripped && a.OptOut == b.OptOut && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.QOS, b.QOS) && slices.Equal(a.Canary, b.Canary) && reflect.DeepEqual(a.Chosen, b.Chosen) &&
		slices.Equal(a.ExcludeAccounts, b.ExcludeAccounts) && slices.Equal(a.ExcludeUsers, b.ExcludeUsers) && slices.Equal(a.ExcludeQOS, b.ExcludeQOS)
}

func (d *desk) remember(m cluster.State, seen cluster.Observation, orders []cluster.Override, rules Rules, settings cluster.Settings) (cluster.Snapshot, error) {
	if back := m.Ledger.At.Sub(seen.Now); back > slack {
		return cluster.Snapshot{}, fmt.Errorf("the books are ahead of the clock: the last round was at %s, it is %s now; rounds pause until that has passed, "+
			"or after a wrong clock until `fairlease repair clock`", m.Ledger.At, seen.Now)
	} else if back > 0 { // a leap second, or a small correction of the clock
		seen.Now = m.Ledger.At
	}
	if !slices.ContainsFunc(seen.Nodes, func(n cluster.Node) bool { return len(n.GPUs) > 0 }) {
		return cluster.Snapshot{}, fmt.Errorf("the cluster reports no node with GPUs; nothing is decided (check GresTypes and the nodes' Gres in slurm.conf)")
	}
	seen.Limits.Recall(m.Limits)
	d.sortObservation(&seen)
	before := d.tree
	if !d.tree.fits(seen.Accounts, rules.TenantLevel) {
		d.tree = growTree(seen.Accounts, rules.TenantLevel)
	}
	t := d.tree
	s := cluster.Snapshot{
		Round: m.Round + 1, Now: seen.Now, Settings: settings,
		Nodes: seen.Nodes, NodesVersion: seen.NodesVersion, Reservations: seen.Reservations,
		Admission: cluster.Admit(seen.Partitions, seen.Accounts, seen.Limits),
		Attempts:  seen.Attempts, NextKey: max(m.NextKey, 1),
		Ledger: m.Ledger, Leases: m.Leases, Claims: m.Claims, Overrides: orders,
		Cells: rules.Cells, VCOrders: seen.VCOrders, Lost: m.Lost, Lent: m.Lent, CellTrades: m.CellTrades, Parties: m.Parties, Allocation: m.Allocation,
		Profiles: m.Profiles, Declared: rules.Profiles, Paces: m.Paces, Progress: seen.Progress,
		Completions: m.Completions, Usages: m.Usages, History: seen.History,
		Habits: m.Habits, Causes: m.Causes, Noise: m.Noise, Stops: m.Stops, Shadow: m.Shadow, Breaker: m.Breaker, NodeSpeeds: m.NodeSpeeds, Resumed: rules.Resumed, Latency: seen.Latency, Restored: m.Restored, Apart: seen.Apart, Uses: seen.Uses, Memory: seen.Memory, Sizes: seen.Sizes,
	}
	if m.Ledger.At > 0 && seen.Boot.Add(slack) > m.Ledger.At {
		s.Boot = seen.Boot
	}
	now := d.preempted(&seen, &rules, verdicts{m.Preempted, m.Unpreempted})
	s.Preempted, s.Unpreempted, s.WasPreempted = now.preempted, now.clear, m.Preempted
	if len(rules.Acting()) > len(s.Preempted) {
		s.License = seen.License
	}
	if s.Cells != nil && rules.Mode == Act && !rules.Tripped && s.Preempted == nil {
		s.Managed = rules.Partitions
	}
	reviveFromHistory(&m, seen.Attempts)
	s.Former = m.Former
	// The cases of known records have the records' order, by key. New ones follow, since their
	// keys are higher. Every one is set below.
	s.Cases = d.resume(m.Records, &settled{rules, s.Preempted, t, settings.StopAllowance})
	d.met = slices.Grow(d.met[:0], len(m.Records))[:len(m.Records)]
	met := d.met
	clear(met)
	known, gated, het := d.byID(m.Records), map[int64]*cluster.Record(nil), map[int64]carrier(nil)
	var moved []cluster.Job      // that count in another account than Slurm shows
	var revived []cluster.JobKey // former jobs that Slurm lists as not over
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		k := known.find(j)
		if k < 0 {
			if j.State == cluster.Done && (j.End <= m.Ledger.At || m.Ledger.At == 0) {
				continue // it ended before the first look
			}
			if key := formerOf(&m, j); key != 0 {
				revived = append(revived, key)
				continue
			}
			k = len(s.Cases)
			s.Cases = append(s.Cases, cluster.Case{Record: newRecord(j, s.NextKey)})
			s.NextKey++
			if j.UnsplitArray && gated == nil {
				gated = gates(m.Records)
			}
			if sibling, ok := gated[j.ID.ID]; ok && j.UnsplitArray {
				s.Cases[k].Record.Gate, s.Cases[k].Record.UserBegin = sibling.Gate, sibling.UserBegin
			}
		} else {
			met[k] = true
		}
		c := &s.Cases[k]
		kept := c.Was > 0 && j.Version != 0 && j.Version == c.Job.Version
		if !kept {
			c.Job = *j
			c.Gone, c.Changed, c.Was = false, 0, 0
			if j.Het != 0 {
				if het == nil {
					het = carriers(seen.Jobs, rules.Partitions)
				}
				carries := het[j.Het]
				carries.carry(&c.Job)
			}
			recallSlice(&c.Record, j, &m)
			takeSlice(&c.Job, &c.Record, m.Leases, s.Now)
			begin(&c.Job, &c.Record)
			stand(c, t, m.Leases, settings.StopAllowance, before != nil)
			c.Record.Tenant = t.tenant(c.Job.Account)
			rules.touch(c, s.Preempted)
			if c.Job.Account != j.Account {
				moved = append(moved, c.Job)
			}
			if c.Job.Account != j.Account || j.Het != 0 { // the case is not of the job alone
				c.Job.Version = 0
			}
		}
		if !kept || c.Record.State == cluster.Waiting {
			note(&c.Record, &c.Job, s.Now)
		}
		if len(m.Had) > 0 {
			recall(&c.Record, &c.Job, m.Had, s.Now)
		}
		if c.Record.UserPartitions != nil {
			c.Record.UserPartitions = restorable(c.Record.UserPartitions, &c.Job, seen.Partitions)
		}
	}
	if revived != nil {
		revive(&m, revived)
		d.tree = before
		return d.remember(m, seen, orders, rules, settings)
	}
	s.Tenants = t.tenants(append(slices.Clip(seen.Jobs), moved...), &rules)
	for k := range m.Records {
		if c := &s.Cases[k]; !met[k] && c.Was > 0 && c.Gone {
			c.Record.Basis = nil
		} else if !met[k] {
			*c = gone(m.Records[k])
		}
	}
	for _, a := range d.acts {
		if k := sort.Search(len(m.Records), func(k int) bool { return m.Records[k].Key >= a.job }); k < len(m.Records) && m.Records[k].Key == a.job {
			noteAct(&s.Cases[k].Record, a)
		}
	}
	for _, list := range []*[]cluster.Attempt{&s.Attempts, &s.History} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Tenant = t.tenant((*list)[i].Account)
		}
	}
	missed(&s, t)
	return s, nil
}

// watchlist is Rules.preempted of the last round, and its input besides the rules.
type watchlist struct {
	of         cluster.Preemption
	partitions []cluster.Partition
	rules      Rules
	was        verdicts
	now        verdicts
}

// preempted is Rules.preempted. It repeats its last result for the same input: sightings share unchanged lists.
func (d *desk) preempted(seen *cluster.Observation, rules *Rules, was verdicts) verdicts {
	if seen.Preemption.None() || rules.Preemption == PreemptionKnown {
		return verdicts{}
	}
	w := &d.watched
	same := len(w.partitions) > 0 && len(w.partitions) == len(seen.Partitions) && &w.partitions[0] == &seen.Partitions[0] && reflect.DeepEqual(w.of, seen.Preemption) &&
		slices.Equal(w.rules.Acting(), rules.Acting()) && slices.Equal(w.rules.QOS, rules.QOS) && slices.Equal(w.rules.ExcludeQOS, rules.ExcludeQOS) &&
		w.was.equal(&was)
	if !same {
		*w = watchlist{seen.Preemption, seen.Partitions, *rules, was, rules.preempted(&seen.Preemption, seen.Partitions, was)}
	}
	return w.now
}

// resume gives a case to each record, with spare capacity. Where Was is above 0, the rest of the case is as in the last round; elsewhere it is
// undefined.
func (d *desk) resume(records []cluster.Record, now *settled) []cluster.Case {
	last, n := d.cases, len(records)
	if d.settled == nil || !now.alike(d.settled) {
		last = nil
	}
	cases := d.cases
	if d.cases = nil; !d.brief || cap(cases) < n {
		cases = make([]cluster.Case, n, n+n/8+16)
	}
	cases, d.settled = cases[:n], now
	from := 0
	for k := range records {
		c, r := &cases[k], &records[k]
		for from < len(last) && last[from].Record.Key < r.Key {
			from++
		}
		if from >= len(last) || last[from].Record.Key != r.Key {
			c.Record = *r // in an assignment of its own, which makes no other copy
			last, c.Was = nil, 0
			continue
		}
		was := &last[from]
		from++
		if !was.Gone && (was.Job.Version == 0 || !steady(&was.Record, r)) {
			c.Record = *r
			c.Was = 0
			continue
		}
		tenant, uncharged := was.Record.Tenant, was.Record.Uncharged
		if c != was { // it moves up, over a case that has been read
			c.Job = was.Job
			c.Control, c.ControlWhy, c.Left, c.Way, c.Changed, c.Gone = was.Control, was.ControlWhy, was.Left, was.Way, was.Changed, was.Gone
		}
		c.Record = *r
		c.Record.Tenant, c.Record.Uncharged, c.Was = tenant, uncharged, int32(from)
	}
	return cases
}

// steady tells whether a job that is as in the last round makes the same case again, apart from its record. was is its record in the last
// snapshot, and r that of now, in which its state is up to date.
func steady(was, r *cluster.Record) bool {
	if r.Restarts != was.Restarts || r.Configured != was.Configured || r.Basis != was.Basis { // no decision changes its account and name
		return false
	}
	switch r.State { // as in stand
	case cluster.Waiting:
		return r.Basis == nil
	case cluster.Configuring, cluster.Running, cluster.Suspended:
		return r.Basis != nil
	}
	return true
}

// gates gives one task for every array with a gate of ours: it stands for tasks not seen before.
func gates(records []cluster.Record) map[int64]*cluster.Record {
	gated := map[int64]*cluster.Record{}
	for i := range records {
		r := &records[i]
		if _, task := r.ID.Index(); task && r.Gate > 0 && r.Done == 0 && (gated[r.ID.ID] == nil || r.Gate > gated[r.ID.ID].Gate) {
			gated[r.ID.ID] = r
		}
	}
	return gated
}

// sortObservation sorts the cluster's lists, in copies: no order of arrival may reach a plan.
func (d *desk) sortObservation(s *cluster.Observation) {
	if len(s.Nodes) != len(d.nodes) || len(s.Nodes) > 0 && &s.Nodes[0] != &d.nodes[0] { // sightings share unchanged lists
		d.nodes = sorted(s.Nodes, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	}
	s.Nodes = d.nodes
	s.Reservations = sorted(s.Reservations, func(a, b *cluster.Reservation) int { return cmp.Compare(a.Name, b.Name) })
	s.Jobs = sorted(s.Jobs, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	byStart := func(a, b *cluster.Attempt) int { return cmp.Or(cmp.Compare(a.Start, b.Start), a.ID.Compare(b.ID)) }
	s.Attempts, s.History = sorted(s.Attempts, byStart), sorted(s.History, byStart)
	s.Uses = sorted(s.Uses, func(a, b *cluster.GPUUse) int { return a.Compare(b) })
}

func sorted[T any](in []T, compare func(a, b *T) int) []T {
	order := true
	for i := 1; i < len(in) && order; i++ {
		order = compare(&in[i-1], &in[i]) <= 0
	}
	if order {
		return in
	}
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b T) int { return compare(&a, &b) })
	return out
}

// register finds records by Slurm's job ids, which several records may share. Queries must come
// in the order of ids.
type register struct {
	records []cluster.Record
	order   []int // of records: by id, then key; nil = they are in that order
	at      int   // in order: ids before it were queried
}

// in gives the index of a record by its place in the order.
func (g *register) in(at int) int {
	if g.order == nil {
		return at
	}
	return g.order[at]
}

func (d *desk) byID(records []cluster.Record) *register {
	// Jobs mostly arrive in the order of their ids.
	sorted := true
	for i := 1; i < len(records) && sorted; i++ {
		sorted = records[i-1].ID.Compare(records[i].ID) <= 0
	}
	if sorted {
		return &register{records: records}
	}
	d.order = slices.Grow(d.order[:0], len(records))[:len(records)]
	order := d.order
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(records[a].ID.Compare(records[b].ID), cmp.Compare(a, b))
	})
	return &register{records: records, order: order}
}

// find gives the record that a job continues, or -1.
func (g *register) find(j *cluster.Job) int {
	for g.at < len(g.records) && g.records[g.in(g.at)].ID.Compare(j.ID) < 0 {
		g.at++
	}
	found := -1
	for at := g.at; at < len(g.records); at++ { // the newest that fits
		k := g.in(at)
		r := &g.records[k]
		if r.ID != j.ID {
			break
		}
		if continues(r, j) {
			found = k
		}
	}
	return found
}

// continues tells whether a job that is listed is that of a record with its id. The id alone proves nothing, since Slurm reuses ids.
// It is the same job if its submit time is the same, or if it was requeued since: then the restart count rises at once, but the
// submit time changes only when the job has cleaned up.
func continues(r *cluster.Record, j *cluster.Job) bool {
	cleaned := r.State == cluster.Completing && j.Restarts == r.Restarts && j.Restarts > 0 && j.Submit > r.Submit
	return r.User == j.User && (r.Submit == j.Submit || j.Restarts > r.Restarts || cleaned)
}

// newRecord makes the record of a new job. Its current request is its user's, unless our submit
// plugin has set a gate.
func newRecord(j *cluster.Job, key cluster.JobKey) cluster.Record {
	r := cluster.Record{Key: key, ID: j.ID, Submit: j.Submit, Restarts: j.Restarts, State: j.State}
	if j.State == cluster.Done || j.State == cluster.Completing {
		r.State = cluster.Waiting // its whole run will be charged
	}
	r.Locked = j.Locked
	if j.Marked {
		r.UserBegin, r.Gate = j.MarkedBegin, j.Eligible
	}
	return r
}

// begin sets when an attempt began whose nodes booted or were prepared first: Slurm shows when it gave them to the job, except for nodes that
// it powered up.
func begin(j *cluster.Job, r *cluster.Record) {
	at := r.ConfiguredIn(j.Restarts, j.State)
	if at == 0 || j.State == cluster.Configuring {
		return
	}
	if j.State == cluster.Done && j.End > 0 {
		at = min(at, j.End)
	}
	j.Start = max(j.Start, at)
}

// stand lets the facts on which a job was granted its lease hold until it waits again, whatever its owner has changed since. A
// job that started without a lease has those of its first sight. leases are those of the last round; looks tells whether that
// was this process's: before its first look, gates may have been opened by fairlease release.
func stand(c *cluster.Case, t *tree, leases []cluster.Lease, allowance cluster.Span, looks bool) {
	j, r := &c.Job, &c.Record
	again := j.Restarts > r.Restarts
	switch {
	case j.State == cluster.Waiting && (again || !granted(r, leases)):
		r.Basis = nil
	case j.Started() && j.Aside == "" && (r.Basis == nil || again):
		r.Basis, r.Account, r.Name = cluster.BasisOf(j), j.Account, j.Name
		if looks && j.Batch && (!again && forced(r, j) || again && unseen(r, leases)) {
			r.Basis.Forced, r.Basis.Fixed = true, false
		}
	case j.Started() && j.Aside == "" && j.Batch && (grown(r, j, leases) || longer(r, j, leases)):
		b := *r.Basis // records of several rounds share it
		b.Request, b.Limit, b.Forced, b.Fixed = j.Request, j.Limit, true, false
		r.Basis = &b
	}
	if r.Basis == nil {
		return
	}
	if r.Account != j.Account && t.tenant(r.Account) == "" { // the account has another name now
		r.Account = j.Account
	}
	r.Basis, c.Changed = r.Basis.Over(j, r, allowance/2)
}

// forced tells whether a job that runs now waited behind a shut gate at the last look, which was opened by somebody else: its licence
// was taken off, or it began before its gate's begin time. A licence that was found taken off at the last look has a begin time, too: when it
// is put back, the job may run already. A gate that lapses has neither sign.
func forced(r *cluster.Record, j *cluster.Job) bool {
	return r.State == cluster.Waiting && !r.Pinned && (r.Locked && !j.Locked || j.Start > 0 && j.Start < r.Gate.Add(-slack))
}

// unseen tells whether a job that runs again was requeued and started between two looks: it was granted no lease since.
func unseen(r *cluster.Record, leases []cluster.Lease) bool {
	return r.State == cluster.Configuring || (r.State == cluster.Running || r.State == cluster.Suspended) && grantOf(r, leases) == nil
}

// granted tells whether a job has been granted a lease in which it has not started yet.
func granted(r *cluster.Record, leases []cluster.Lease) bool {
	return r.Basis != nil && grantOf(r, leases) != nil
}

// grantOf gives the lease in which a job has not been seen running yet; nil = none.
func grantOf(r *cluster.Record, leases []cluster.Lease) *cluster.Lease {
	k, ok := slices.BinarySearchFunc(leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) })
	if !ok || leases[k].State != cluster.Granted {
		return nil
	}
	return &leases[k]
}

// grown tells whether a job that is seen running for the first time in its lease holds more GPUs than it was granted, since its owner
// asked for more while the grant was under way. Nodes that only Slurm chooses, and whole nodes, may have more GPUs than was asked for.
func grown(r *cluster.Record, j *cluster.Job, leases []cluster.Lease) bool {
	b := r.Basis
	if r.State != cluster.Waiting || b.Forced || j.Request.Size.Amount() <= b.Size.Amount() || b.Loose() || j.Request.Loose() || b.Exclusive || j.Request.Exclusive || j.Het != 0 {
		return false
	}
	l := grantOf(r, leases)
	return l != nil && cluster.SizeHeld(j.Holds).Amount() > max(cluster.SizeHeld(l.Nodes).Amount(), b.Size.Amount())
}

// longer tells whether a job that is seen running for the first time in its lease may run for longer than when it was granted: its owner
// has raised its time limit while the grant was under way.
func longer(r *cluster.Record, j *cluster.Job, leases []cluster.Lease) bool {
	if r.State != cluster.Waiting || r.Basis.Forced || r.Basis.Limit == 0 || grantOf(r, leases) == nil {
		return false
	}
	return j.Limit == 0 || j.Limit > max(r.Basis.Limit, r.UserLimit)+cluster.Minute // which is Slurm's unit
}

// slack is the maximum difference between Slurm's whole seconds and our milliseconds.
const slack = 2 * cluster.Second

// note saves the user's request from before our changes, and the user's later changes.
func note(r *cluster.Record, j *cluster.Job, now cluster.Instant) {
	first := r.User == ""
	r.User, r.Account, r.Name = j.User, j.Account, j.Name
	if j.State != cluster.Done {
		r.Done = 0
	}
	if r.UserLimit == 0 || r.Ran == 0 && (r.Terms == 0 || j.State == cluster.Waiting) {
		r.UserLimit = j.Limit
	}
	if j.State != cluster.Waiting {
		return
	}
	if first && !j.Marked && r.Gate == 0 && j.Eligible > now || !first && moved(r, j, now) {
		r.UserBegin = j.Eligible
	}
	if !r.Pinned {
		r.UserNodes, r.UserMaxNodes, r.UserPartitions = j.NodeList, 0, nil
		if j.SiteFactor != nil {
			r.SiteFactor = *j.SiteFactor
		}
	}
}

// recall takes the settings of a job's user from what it had before fairlease changed it. After a dump was restored, the journal does not know
// that its nodes, begin time and partitions are fairlease's own, and would take them for the user's.
func recall(r *cluster.Record, j *cluster.Job, had []cluster.Record, now cluster.Instant) {
	k, ok := slices.BinarySearchFunc(had, j.ID, func(h cluster.Record, id cluster.JobID) int { return h.ID.Compare(id) })
	if !ok || had[k].User != j.User || had[k].Submit > j.Submit || j.State == cluster.Done || r.Pinned {
		return
	}
	h := &had[k]
	r.UserBegin, r.UserNodes, r.UserMaxNodes, r.UserPartitions = h.UserBegin, h.UserNodes, h.UserMaxNodes, h.UserPartitions
	r.UserLimit, r.SiteFactor, r.Pinned = cmp.Or(h.UserLimit, r.UserLimit), h.SiteFactor, true
	if j.State == cluster.Waiting && j.Eligible > max(h.UserBegin, now).Add(slack) {
		r.Gate = j.Eligible
	}
}

// restorable gives the partitions of a list that a grant has narrowed that can be given back: those that are still there. There are none if the
// user, or an administrator, has chosen others since.
func restorable(list []string, j *cluster.Job, partitions []cluster.Partition) (out []string) {
	for _, name := range list {
		if slices.ContainsFunc(partitions, func(p cluster.Partition) bool { return p.Name == name }) {
			out = append(out, name)
		}
	}
	if slices.ContainsFunc(j.Partitions, func(p string) bool { return !slices.Contains(list, p) }) {
		return nil
	}
	return out
}

// moved tells whether the user has changed the begin time of a waiting job: it differs from our
// last value and from the user's earlier one.
func moved(r *cluster.Record, j *cluster.Job, now cluster.Instant) bool {
	// A requeue without a gate is delayed by Slurm, from the time when the job has cleaned up,
	// which is then its submit time.
	const requeueDelay = 2 * cluster.Minute
	switch {
	case j.Restarts > 0 && j.Eligible <= j.Submit.Add(requeueDelay+slack):
		return false
	case j.Eligible > 0 && r.UserBegin > now && j.Eligible < r.UserBegin.Add(-slack): // we never gate it for a shorter time
		return true
	case r.Gate > 0:
		return r.Restarts == j.Restarts && j.Eligible > r.Gate.Add(slack)
	}
	// After a first lease, a requeue without a gate delays it by Slurm's own delay.
	return r.Terms == 0 && j.Eligible > max(r.UserBegin, now).Add(slack)
}

// gone makes the case of a job that the cluster no longer lists.
func gone(r cluster.Record) cluster.Case {
	r.Basis = nil
	return cluster.Case{Gone: true, Record: r, Control: cluster.Unmanaged, ControlWhy: "no longer in Slurm",
		Job: cluster.Job{ID: r.ID, User: r.User, Account: r.Account, Name: r.Name, State: cluster.Done, Submit: r.Submit, Restarts: r.Restarts}}
}

// missed adds the jobs that came and went between two looks. Slurm reuses ids: a job of another user that had the id, or one that was over before
// this one was submitted, is another job. One that began before the last look, which did not find it, was over by then: slurmdbd does not know that
// of jobs that slurmctld lost.
func missed(s *cluster.Snapshot, t *tree) {
	if len(s.Attempts) == 0 {
		return
	}
	type owned struct {
		id   cluster.JobID
		user string
	}
	const live = cluster.Instant(math.MaxInt64)
	over := map[owned]cluster.Instant{} // when the newest known job with that id and user was over
	for i := range s.Cases {
		r := &s.Cases[i].Record
		if over[owned{r.ID, r.User}] = live; r.Done > 0 {
			over[owned{r.ID, r.User}] = r.Done
		}
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		of := owned{a.ID, a.User}
		if a.Submit <= over[of] || a.Start.Add(slack) < s.Ledger.At {
			continue
		}
		over[of] = live
		c := gone(cluster.Record{Key: s.NextKey, ID: a.ID, User: a.User, Account: a.Account, Tenant: t.tenant(a.Account), Submit: a.Submit})
		s.NextKey++
		s.Cases = append(s.Cases, c)
	}
}
