// Package slownodes finds nodes whose GPUs are slower than those of other nodes, by the progress that jobs report.
//
//	reports ──► runs: one attempt of a job on one node ──► by user and type: this node beside the others ──► slow nodes
//
// A user's jobs of a type (kind, GPU model, number of GPUs) on a node are compared with the same user's jobs of that type on other nodes, so
// nobody's reports change how the jobs of others count. A user has one voice on a node: the median of its jobs there. A node is slow if the median
// of the voices is below the bound; of two middle values the higher one counts. So one user alone never makes a node slow, whatever it reports.
//
// The same of the jobs that have a GPU of the node, where Slurm reports which, makes that GPU slow (gpus.go).
//
// A slow node stays slow until its jobs are clearly above the bound, too few of them are known, or it was drained. Gangs avoid it where other
// nodes serve them as well (package place), and people are told. That is all.
package slownodes

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

const (
	warmUp = 10 * cluster.Minute // a job loads and compiles: no report of that time counts
	sample = 10 * cluster.Minute // between two reports that make a sample, at least
	every  = 5 * cluster.Minute  // nodes are compared at multiples of it
	recent = 2 * cluster.Hour    // of run time that the speed of an attempt is over; older samples fade
	oldest = 7 * cluster.Day     // since the end of an attempt

	// Attempts that are remembered, of those that go on, and as many of those that have ended, the newest ones.
	mostAlike = 4 // of a user's jobs of one type on one node,
	mostOnGPU = 2 // or with one first GPU
	mostUser  = 128
	mostAll   = 2048

	leastUsers  = 2 // on a slow node, or with a slow GPU
	leastJobs   = 3
	leastOthers = 3 // attempts on other nodes, beside which those of a node are compared,
	otherNodes  = 2 // and nodes that these are on

	noise       = 3     // standard deviations within which an attempt is as fast as usual
	leastSpread = 0.03  // of the logarithm
	quartile    = 0.674 // from the median, in standard deviations
	unsure      = 4     // a spread by that many attempts counts twice
)

// Next takes the reports since the last round. It returns the speeds of nodes to remember, and the events about nodes that have become slow, or
// are no longer.
func Next(in *round.Facts) (cluster.NodeSpeeds, []cluster.Event) {
	bound := in.Settings.SlowNodePercent
	if bound == 0 {
		return cluster.NodeSpeeds{}, nil
	}
	was := in.Snapshot.NodeSpeeds
	b := &book{in: in, runs: was.Runs}
	hear(b)
	if in.Now/cluster.Instant(every) == in.Snapshot.Ledger.At/cluster.Instant(every) { // it would cost large sites much in each round
		return cluster.NodeSpeeds{Runs: b.runs, Slow: was.Slow, GPUs: was.GPUs}, nil
	}
	age(b)
	slow, gpus, events := judge(compare(b.runs), &was, float64(bound)/100, in.Now)
	return cluster.NodeSpeeds{Runs: b.runs, Slow: slow, GPUs: gpus}, events
}

// book is the attempts during one round. Its input stays unchanged: the first change makes a copy.
type book struct {
	in   *round.Facts
	runs []cluster.NodeRun
	own  bool // runs is a copy
}

// change makes runs a copy that may be changed.
func (b *book) change() []cluster.NodeRun {
	if !b.own {
		b.runs, b.own = slices.Clone(b.runs), true
	}
	return b.runs
}

// age marks the attempts that have ended, and drops those that no longer count: old ones, those without a sample, those beyond the limits, and
// all of nodes that are gone, or down or drained: such a node may be another one when it is back.
func age(b *book) {
	ended := false
	drops := func(r *cluster.NodeRun) bool {
		return !b.serves(r.Node) || r.Ended != 0 && (r.Ran == 0 || b.in.Now.Sub(r.Ended) > oldest)
	}
	for k := range b.runs {
		if r := &b.runs[k]; r.Ended == 0 && !b.goesOn(r) {
			r = &b.change()[k]
			r.Ended, r.Steps, r.At, r.Suspended, ended = b.in.Now, 0, 0, 0, true
		}
	}
	if ended || slices.ContainsFunc(b.runs, func(r cluster.NodeRun) bool { return drops(&r) }) {
		b.runs = newest(slices.DeleteFunc(b.change(), func(r cluster.NodeRun) bool { return drops(&r) }))
	}
	if len(b.runs) == 0 {
		b.runs = nil // as a journal reads it
	}
}

// goesOn reports whether an attempt has not ended.
func (b *book) goesOn(r *cluster.NodeRun) bool {
	i := b.in.Find(r.Job)
	return i >= 0 && b.in.Cases[i].Live && b.in.Snapshot.Cases[i].Job.Start == r.Start
}

// serves reports whether a node is there, and neither down nor drained.
func (b *book) serves(node string) bool {
	nodes := b.in.Snapshot.Nodes
	i, ok := slices.BinarySearchFunc(nodes, node, func(n cluster.Node, name string) int { return strings.Compare(n.Name, name) })
	return ok && nodes[i].Bad == ""
}

// alike names the attempts that are compared with each other.
type alike struct {
	user string
	kind cluster.Kind
	on   cluster.GPUs // a model, and the GPUs of the job
}

func alikeOf(r *cluster.NodeRun) alike {
	return alike{r.User, r.Kind, cluster.GPUs{Model: r.Model, Count: r.Gang}}
}

// kept counts the attempts that are remembered.
type kept struct {
	same  map[there]int
	users map[string]int
	all   int
}

// there names the attempts of a type on a node with a first GPU; -1 = with any.
type there struct {
	alike
	node string
	gpu  int
}

// full reports whether no attempt of a user can be remembered.
func (x *kept) full(user string) bool { return x.users[user] >= mostUser || x.all >= mostAll }

// takes counts one more attempt; false = it would be beyond the limits.
func (x *kept) takes(r *cluster.NodeRun) bool {
	at := there{alikeOf(r), r.Node, -1}
	first := at
	if len(r.Index) > 0 {
		first.gpu = r.Index[0]
	}
	if x.full(r.User) || x.same[at] >= mostAlike && (first == at || x.same[first] >= mostOnGPU) {
		return false
	}
	if x.same == nil {
		x.same, x.users = map[there]int{}, map[string]int{}
	}
	if x.same[at]++; first != at {
		x.same[first]++
	}
	x.users[r.User]++
	x.all++
	return true
}

// newest drops the ended attempts beyond the limits, those that ended first.
func newest(runs []cluster.NodeRun) []cluster.NodeRun {
	var order []int // ended, the newest first
	for k := range runs {
		if runs[k].Ended != 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(runs[j].Ended, runs[i].Ended) })
	var x kept
	drop := map[int]bool{}
	for _, k := range order {
		drop[k] = !x.takes(&runs[k])
	}
	out := runs[:0]
	for k := range runs {
		if !drop[k] {
			out = append(out, runs[k])
		}
	}
	return out
}

// hear takes the newest report of each job that has whole GPUs of one node to itself.
func hear(b *book) {
	if len(b.in.Snapshot.Progress) == 0 {
		return
	}
	byID := map[cluster.JobID]int{}
	for i := range b.in.Cases {
		c := &b.in.Snapshot.Cases[i]
		if j := &c.Job; b.in.Cases[i].Runs && b.in.Cases[i].Tenant >= 0 && j.State == cluster.Running && !j.Paused && c.Record.Slice == nil &&
			len(j.Holds) == 1 && j.Holds[0].Size.IsWhole() {
			byID[j.ID] = i
		}
	}
	last := map[int]cluster.Progress{} // by case
	for _, r := range b.in.Snapshot.Progress {
		if i, ok := byID[r.Job]; ok && r.At > last[i].At && cluster.CheckSteps(r.Steps) == nil {
			last[i] = r
		}
	}
	var goOn *kept
	for _, i := range slices.Sorted(maps.Keys(last)) {
		r, j := last[i], &b.in.Snapshot.Cases[i].Job
		k, known := b.find(i)
		switch {
		case r.At.Sub(j.Start) < warmUp || !b.serves(j.Holds[0].Node):
		case known:
			b.sample(k, j, &r)
		default:
			if goOn == nil {
				goOn = b.goOn()
			}
			if goOn.full(j.User) {
				continue
			}
			if n := b.attempt(i, &r); goOn.takes(&n) {
				b.runs = slices.Insert(b.change(), k, n)
			}
		}
	}
}

// find gives the index of a case's attempt, or its place.
func (b *book) find(i int) (int, bool) {
	c := &b.in.Snapshot.Cases[i]
	return slices.BinarySearchFunc(b.runs, &c.Job, func(r cluster.NodeRun, j *cluster.Job) int {
		return cmp.Or(cmp.Compare(r.Job, c.Record.Key), cmp.Compare(r.Start, j.Start))
	})
}

// goOn counts the attempts that go on.
func (b *book) goOn() *kept {
	x := &kept{}
	for k := range b.runs {
		if b.runs[k].Ended == 0 {
			x.takes(&b.runs[k])
		}
	}
	return x
}

// attempt gives the attempt of a case, which begins with a report.
func (b *book) attempt(i int, r *cluster.Progress) cluster.NodeRun {
	c := &b.in.Snapshot.Cases[i]
	j, declared := &c.Job, ""
	if j.Hints != nil {
		declared = j.Hints.Kind
	}
	out := cluster.NodeRun{Job: c.Record.Key, Start: j.Start, Node: j.Holds[0].Node, Model: j.Holds[0].Model, User: j.User,
		Kind: profile.KindOf(b.in.Settings.Kinds, c.Record.Tenant, j.User, j.Name, declared, j.Work), Gang: j.GPUsHeld(), Steps: r.Steps, At: r.At, Suspended: j.Suspend}
	if h := &j.Holds[0]; len(h.Index) == h.Size.Devices {
		out.Index = h.Index
	}
	return out
}

// sample takes a report of an attempt. A counter that went back is a job that resumed from a save, and one that stands is a job that evaluates or
// waits: neither tells how fast the node is.
func (b *book) sample(k int, j *cluster.Job, report *cluster.Progress) {
	r := b.runs[k]
	span, steps := report.At.Sub(r.At)-max(j.Suspend-r.Suspended, 0), report.Steps-r.Steps
	if steps > 0 && span < sample || report.At <= r.At || r.Ended != 0 {
		return // the rest counts in the next sample
	}
	if rate := steps / max(span, 1).Duration().Seconds(); steps > 0 && cluster.CheckRate(rate) == nil {
		r.Did, r.Ran = r.Did+steps, r.Ran+span
		if r.Ran > recent {
			r.Did, r.Ran = r.Did*float64(recent)/float64(r.Ran), recent
		}
	}
	r.Steps, r.At, r.Suspended = report.Steps, report.At, j.Suspend
	b.change()[k] = r
}

// where is a model's GPUs on a node.
type where struct{ node, model string }

// said is an attempt, and the logarithm of its speed relative to what is usual for it.
type said struct {
	run *cluster.NodeRun
	off float64
}

// compare compares attempts with those of their like on other nodes.
func compare(runs []cluster.NodeRun) map[where][]said {
	groups := map[alike][]*cluster.NodeRun{}
	for k := range runs {
		if r := &runs[k]; r.Ran > 0 {
			groups[alikeOf(r)] = append(groups[alikeOf(r)], r)
		}
	}
	out := map[where][]said{}
	for of, all := range groups { // each by itself
		slices.SortStableFunc(all, func(x, y *cluster.NodeRun) int { return cmp.Compare(speed(x), speed(y)) })
		here := map[string][]int{} // of all, ascending
		for k, r := range all {
			here[r.Node] = append(here[r.Node], k)
		}
		for node, these := range here {
			middle, spread, ok := usual(all, these)
			if !ok || len(here) <= otherNodes {
				continue
			}
			at := where{node, of.on.Model}
			for _, k := range these {
				off := speed(all[k]) - middle
				if math.Abs(off) <= noise*max(spread, leastSpread) {
					off = 0
				}
				out[at] = append(out[at], said{all[k], off})
			}
		}
	}
	return out
}

// speed gives the logarithm of the speed of an attempt, in steps per second.
func speed(r *cluster.NodeRun) float64 { return math.Log(r.Did / r.Ran.Duration().Seconds()) }

// usual gives the median and the spread of attempts without some of them; false = too few are left. all are sorted by speed, and without ascends.
// The spread is that of the faster half: other slow nodes widen only the rest. Of few attempts it is larger, as it is then not well known.
func usual(all []*cluster.NodeRun, without []int) (middle, spread float64, ok bool) {
	n := len(all) - len(without)
	if n < leastOthers {
		return 0, 0, false
	}
	at := func(k int) float64 { // of the rest
		for _, gone := range without {
			if gone <= k {
				k++
			}
		}
		return speed(all[k])
	}
	middle = (at((n-1)/2) + at(n/2)) / 2
	return middle, (at(n-1-(n-1)/4) - middle) / quartile * (1 + unsure/float64(n)), true
}
