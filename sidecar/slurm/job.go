package slurm

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/cluster/kinds"
)

// record is a job record of Slurm as kept between two looks: translated, with a few additional
// fields that later looks or actions need.
type record struct {
	id     int64
	states string // as in the list of states; shows whether it changed
	// jobs is what the record stands for: one job, the waiting tasks of an array, or none if it
	// concerns no GPU node.
	jobs []cluster.Job

	array int64 // 0 = no array
	limit int   // the array's %limit, 0 = none
	tasks int   // number of waiting tasks that it stands for
	cut   bool  // Slurm truncated the list of tasks
	wants bool  // it requests GPUs
	resv  string
	least cluster.Span // minimum run time, if it has a deadline
	// ran is the run time before the last suspension, from which a suspended job's Suspend is
	// computed.
	ran  cluster.Span
	asks uint64 // digest of the GPUs that it asks for, as Slurm has them
	// shares are the GPUs that the job shares by MPS, by node.
	shares map[string][]int
	// apart is true if the job's nodes are closed to other users.
	apart bool
	// use is what it uses of limits, if it runs and jobs is empty.
	use *cluster.Use
}

// sizeOf gives the size of the shards of a GPU that a job asks for, on nodes whose GPUs have the fewest.
func (t *translator) sizeOf(q *cluster.Request) cluster.Size {
	if least := t.fewest(q.MPS); least > 0 && q.Shards < least {
		return cluster.Size{Devices: 1, Part: cluster.WholeGPU * cluster.MicroGPU(q.Shards) / cluster.MicroGPU(least)}
	}
	return cluster.Whole(1)
}

// fewest gives the number of shards, or of those of MPS, of the GPUs that have the fewest; 0 = there are none.
func (t *translator) fewest(mps bool) (least int) {
	for _, n := range t.nodes {
		if n.Shards > 0 && n.MPS == mps && (least == 0 || n.Shards < least) {
			least = n.Shards
		}
	}
	return least
}

// translator turns Slurm's job records into ours.
type translator struct {
	nodes    map[string]cluster.Node // those with GPUs
	arrayCap int
	license  string // that gates jobs; "" = none
	now      cluster.Instant
}

// record translates w. before is the previous record (see seen.known), or nil.
func (t *translator) record(w *wireJob, before *record) (*record, error) {
	rec := &record{
		id:     w.id,
		states: stateKey(w.states),
		array:  w.array,
		limit:  w.arrayMax,
		cut:    isCut(w.tasks),
		resv:   w.resv,
		ran:    span(w.ranBefore),
		apart:  apart(w),
	}
	q := request(w)
	if q.Shards > 0 {
		if q.Size = t.sizeOf(&q); q.MPS && q.Size.IsWhole() { // Slurm gives no second GPU of the node to MPS meanwhile
			q.Size, q.Shards, q.MPS, q.Unplaceable = cluster.Size{}, 0, false, cluster.PartsOfGPUs
		}
	}
	rec.wants = q.Size.Devices > 0 || q.Unplaceable == cluster.PartsOfGPUs
	j := cluster.Job{
		ID:            w.jobID(),
		Record:        w.id,
		Name:          w.name,
		User:          w.user,
		UID:           uint32(w.uid.n),
		Account:       w.account,
		QOS:           w.qos,
		Partitions:    w.partition,
		State:         state(w),
		PendingReason: because(w),
		Batch:         w.batch,
		Requeueable:   w.requeue && w.batch,
		Expedited:     slices.Contains(w.flags, "EXPEDITED_REQUEUE"),
		Het:           w.het,
		Request:       q,
		Submit:        instant(w.submit),
		Eligible:      instant(w.eligible),
		Limit:         limit(w.limit),
		MinLimit:      limit(w.least),
		Deadline:      instant(w.deadline),
		Restarts:      w.restarts,
		Reservation:   w.resv,
	}
	var err error
	var odd bool
	j.Exclude, _ = hostlist.Readable(w.excluded) // a part that nobody can read excludes no node
	if j.NodeList, odd = hostlist.Readable(w.required); odd {
		j.NodeList = hostlist.Split(w.required, "[]") // it is written back as it was
		j.Request.Unplaceable = cmp.Or(j.Request.Unplaceable, cluster.UnreadNodes)
	}
	j.Licenses, j.Locked, j.Either = licenses(w.licenses, t.license)
	rec.least = cmp.Or(j.MinLimit, j.Limit)
	said, unread := hintWords(w)
	j.Hints = cluster.ParseHints(said, unread)
	if j.Hints != nil && j.Hints.Share {
		j.Ask = oneGPU(w, &j.Request)
	}
	j.Marked, j.MarkedBegin, j.MarkedGate = mark(w.mark)
	switch j.State {
	case cluster.Waiting:
		// Slurm 26.05 holds jobs that request a licence when it is removed from slurm.conf, and
		// names the licence.
		if j.Stranded = w.reason == "JobHeldAdmin" && strings.HasPrefix(w.remark, "License request") &&
			(j.Locked || t.license != "" && strings.Contains(w.remark, "'"+t.license)); !j.Stranded {
			j.Inactive = inactive(w)
		}
	default:
		j.Start, j.End, j.Blur = within(w.start), within(w.end), half
		j.Suspend = suspension(w, j.State, t.now)
		if j.Limit == 0 && j.State != cluster.Done || j.State == cluster.Configuring {
			j.End = 0 // Slurm reports a year from now; the limit begins when the nodes are ready
		}
	}
	switch j.State {
	case cluster.Done:
		j.Outcome = cmp.Or(outcome(w.states), w.states[0])
	case cluster.Completing:
		j.Outcome = outcome(w.states)
	}
	if holds(j.State) {
		if j.Holds, rec.shares, err = t.holdings(w); err != nil {
			return nil, err
		}
	}
	if j.State == cluster.Done && rec.wants && j.Start > 0 {
		if j.Had, err = t.had(w); err != nil {
			return nil, err
		}
	}
	if j.State == cluster.Completing {
		lastAttempt(w, &j, before)
	}
	// Once a job has started, Slurm shows its allocated nodes and forgets the requested ones. But it shows that its owner has had it ask
	// for more GPUs since the last look.
	rec.asks = maphash.Comparable(hashSeed, [...]string{w.perJob, w.perNode, w.perSocket, w.perTask})
	if j.State != cluster.Waiting && before.isSame(j) {
		if was := before.jobs[0].Request; rec.asks == before.asks || q.Size.Amount() <= was.Size.Amount() {
			j.Request = was
		}
	}
	if !rec.wants && len(j.Holds) == 0 {
		if holds(j.State) && j.State != cluster.Completing {
			rec.use = use(w)
		}
		return rec, nil
	}
	j.Command, j.Declares = commandLine(w), declared(w, said, j.Hints)
	j.Work = kinds.Command{Script: w.command, Line: w.submitLine, Dir: w.dir}.Label()
	rec.jobs = []cluster.Job{j}
	if w.array > 0 && !w.task.set {
		list, total, odd := taskNumbers(w.tasks, t.arrayCap)
		if odd != nil && total == 0 {
			return nil, odd
		}
		rec.cut = rec.cut || odd != nil
		rec.standFor(list, total)
	}
	return rec, nil
}

// standFor makes an array's record stand for the given tasks, of total in all. There are none if
// the whole array was cancelled.
func (r *record) standFor(tasks []int, total int) {
	template := r.jobs[0]
	r.jobs, r.tasks = make([]cluster.Job, len(tasks)), total
	for i, n := range tasks {
		r.jobs[i] = template
		r.jobs[i].ID = cluster.TaskID(r.array, int32(n))
		r.jobs[i].UnsplitArray = total > 1
	}
}

// isSame reports whether j is the submission that was seen before under its record: its owner may change its name and
// account meanwhile. A requeue changes the submit time once the job has cleaned up.
func (r *record) isSame(j cluster.Job) bool {
	if r == nil || len(r.jobs) == 0 {
		return false
	}
	o := &r.jobs[0]
	cleaned := o.State == cluster.Completing && j.Restarts > 0 && j.Submit > o.Submit
	return o.User == j.User && (o.Submit == j.Submit && o.Restarts <= j.Restarts || o.Restarts < j.Restarts || o.Restarts == j.Restarts && cleaned)
}

func holds(s cluster.JobState) bool {
	return s != cluster.Waiting && s != cluster.Done
}

// lastAttempt restores what Slurm forgets of a job that cleans up: the models of its GPUs and,
// once it is requeued, its start.
func lastAttempt(w *wireJob, j *cluster.Job, before *record) {
	if w.is("PENDING") {
		j.Start, j.End = 0, 0
	}
	if !before.isSame(*j) || before.id != w.id || !holds(before.jobs[0].State) {
		return
	}
	was := before.jobs[0]
	var still []cluster.Holding
	for _, h := range was.Holds {
		if slices.ContainsFunc(j.Holds, func(o cluster.Holding) bool { return o.Node == h.Node }) {
			still = append(still, h)
		}
	}
	if len(still) > 0 {
		j.Holds, j.Start = still, was.Start
	}
}

// isCut reports whether a list of tasks ends in "...": slurmrestd cuts long ones
// off, unless SLURM_BITSTR_LEN=0 stands in its environment.
func isCut(tasks string) bool { return strings.Contains(tasks, "...") }

// taskNumbers reads "0-4,11-19:2%5"; of a truncated or odd list, the readable part.
func taskNumbers(s string, most int) (list []int, total int, err error) {
	s, _, _ = strings.Cut(s, "%")
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if cut, ok := strings.CutSuffix(s, "..."); ok {
		s = cut[:max(strings.LastIndexByte(cut, ','), 0)]
	}
	if s == "" {
		return nil, 0, nil
	}
	if list, total, err = numberRanges(s, most); err == nil {
		return list, total, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		some, n, odd := numberRanges(part, most-len(list))
		if odd == nil {
			list, total = append(list, some...), total+n
		}
	}
	slices.Sort(list)
	return slices.Compact(list), total, err
}

// stateKey makes one comparable word of a state list.
func stateKey(states []string) string {
	if len(states) == 1 {
		return states[0]
	}
	sorted := slices.Clone(states)
	slices.Sort(sorted)
	return strings.Join(sorted, ",")
}

// state reduces a job's states: one of what the job does, with flags beside it. A flag counts by itself only where that one is missing.
// Flags that are not named here change nothing: a job that is SIGNALING, RESIZING or STOPPED (by a signal) runs, one whose files are
// staged out has ended and holds no GPUs, and one that was requeued for whatever reason waits. "" = none of the states is known.
func state(w *wireJob) cluster.JobState { return stateOfAll(w.states) }

func stateOfAll(states []string) cluster.JobState {
	found := cluster.JobState("")
	for _, s := range states {
		switch s {
		case "COMPLETING":
			return cluster.Completing
		case "PENDING":
			found = cluster.Waiting
		case "RUNNING":
			found = cluster.Running
		case "SUSPENDED":
			found = cluster.Suspended
		default:
			if slices.Contains(ended, s) {
				found = cluster.Done
			}
		}
	}
	switch {
	case found == cluster.Running && (slices.Contains(states, "CONFIGURING") || slices.Contains(states, "POWER_UP_NODE")):
		return cluster.Configuring
	case found != "":
		return found
	}
	for _, s := range states {
		switch s {
		case "CONFIGURING", "POWER_UP_NODE":
			return cluster.Configuring
		case "SIGNALING", "RESIZING", "STOPPED":
			return cluster.Running
		case "STAGE_OUT", "REVOKED":
			return cluster.Done
		case "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "LAUNCH_FAILED", "RECONFIG_FAIL", "EXPEDITING":
			return cluster.Waiting
		}
	}
	return ""
}

// ended are the states of jobs that are over.
var ended = []string{"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}

// outcome is how a job ended, without Slurm's flags; "" = unknown.
func outcome(states []string) string {
	for _, s := range states {
		if slices.Contains(ended, s) {
			return s
		}
	}
	return ""
}

func because(w *wireJob) string {
	reason := w.reason
	if reason == "None" {
		reason = ""
	}
	switch {
	case w.remark == "":
		return reason
	case strings.HasPrefix(w.remark, reason): // "ReqNodeNotAvail, Reserved for maintenance"
		return w.remark
	}
	return reason + ": " + w.remark
}

// inactive says why a waiting job could not start on an empty cluster. The cause is visible even
// while the job is gated.
func inactive(w *wireJob) string {
	switch {
	case w.is("RESV_DEL_HOLD") || w.reason == "ReservationDeleted":
		return "held: its reservation is gone"
	case w.is("SPECIAL_EXIT") || w.is("REQUEUE_HOLD"):
		return "held: requeued with a hold"
	case w.reason == "DependencyNeverSatisfied":
		return "dependency never satisfied"
	case w.hold || w.priority.set && w.priority.n == 0 || strings.HasPrefix(w.reason, "JobHeld"):
		return "held"
	case w.depends != "":
		return "dependency"
	case w.is("REVOKED"):
		return "runs on another cluster"
	case w.reason == "InvalidAccount" || w.reason == "InvalidQOS" || w.reason == "PartitionDown" || w.reason == "PartitionInactive":
		return w.reason
	}
	return ""
}

func limit(n number) cluster.Span {
	if !n.set || n.n <= 0 {
		return 0
	}
	return cluster.Span(min(n.n, mostMinutes)) * cluster.Minute
}

// suspension is the suspended time of the current attempt.
func suspension(w *wireJob, s cluster.JobState, now cluster.Instant) cluster.Span {
	if w.suspended == 0 || w.start == 0 {
		return 0
	}
	until := within(w.suspended) // the last resume
	if s == cluster.Suspended {
		until = now
	}
	return max(until.Sub(within(w.start))-span(w.ranBefore), 0)
}

// licenses splits the requested licences into the user's own, in Slurm's syntax, and ours. locked =
// it requests ours exactly once, with a count of at least 1: Slurm also accepts counts of 0, and
// several counts of one licence, whose sum may overflow. either = it requests one of several.
func licenses(request, ours string) (own string, locked, either bool) {
	if strings.Contains(request, "|") {
		return request, false, true
	}
	var others []string
	found, exact := 0, true
	for item := range strings.FieldsFuncSeq(request, func(c rune) bool { return c == ',' || c == ';' }) {
		name, count := item, "1"
		if at := strings.IndexAny(item, ":="); at >= 0 {
			name, count = item[:at], item[at+1:]
		}
		if ours != "" && name == ours {
			found++
			n, err := strconv.ParseUint(count, 10, 30)
			exact = exact && err == nil && n > 0
			continue
		}
		others = append(others, item)
	}
	return strings.Join(others, ","), found == 1 && exact, false
}

// noted gives the rest of the first word that begins so in an admin_comment, which others write to as well.
func noted(comment, begins string) string {
	for word := range strings.FieldsFuncSeq(comment, func(c rune) bool { return strings.ContainsRune(" ;|\n", c) }) {
		if rest, ok := strings.CutPrefix(word, begins); ok {
			return rest
		}
	}
	return ""
}

// mark reads the submit plugin's "fl:begin=<epoch|0>,gate=<epoch>", also among other words.
func mark(comment string) (marked bool, begin, gate cluster.Instant) {
	for item := range strings.SplitSeq(noted(comment, "fl:"), ",") {
		key, value, _ := strings.Cut(item, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch key {
		case "begin":
			marked, begin = true, instant(min(n, lastSecond))
		case "gate":
			gate = instant(min(n, lastSecond))
		}
	}
	if !marked {
		return false, 0, 0
	}
	return true, begin, gate
}

// holdings gives the job's allocation on each GPU node, from gres_detail and job_resources, which
// are per node. Without them, it uses tres_alloc_str if the job has one node.
func (t *translator) holdings(w *wireJob) ([]cluster.Holding, map[string][]int, error) {
	names, err := hostlist.Expand(w.nodes)
	if err != nil {
		return nil, nil, err
	}
	details := w.detail
	if len(details) == 0 && len(names) > 0 { // so for every job that cleans up
		details = spread(w, names)
	}
	var out []cluster.Holding
	var shares map[string][]int
	for i, name := range names {
		node, ok := t.nodes[name]
		if !ok {
			continue
		}
		var list []gres
		if i < len(details) {
			if list, err = gresList(details[i]); err != nil {
				return nil, nil, err
			}
		}
		part := w.part(name, max(len(names), w.nodeCount))
		here := held(name, node, list)
		for _, g := range list {
			switch parts := g.shared(); {
			case g.name == "shard", g.name == "mps" && node.MPS:
				here = withShards(here, node, g)
			case g.name != "gpu" && len(parts) > 0:
				if shares == nil {
					shares = map[string][]int{}
				}
				for _, p := range parts {
					shares[name] = append(shares[name], p.index)
				}
			}
		}
		here[0].CPUs, here[0].MemoryMB = part.cpus, part.memoryMB
		out = append(out, here...)
	}
	slices.SortFunc(out, func(a, b cluster.Holding) int {
		if c := strings.Compare(a.Node, b.Node); c != 0 {
			return c
		}
		return strings.Compare(a.Model, b.Model)
	})
	return out, shares, nil
}

// withShards adds shards of GPUs to holdings on a node. Where Slurm does not name the GPUs, they are of one.
func withShards(here []cluster.Holding, node cluster.Node, g gres) []cluster.Holding {
	parts := g.shared()
	if len(parts) == 0 && node.Shards > 0 && g.count > 0 {
		parts = []usedPart{{-1, g.count, node.Shards}}
	}
	if len(parts) == 0 {
		return here
	}
	model := cmp.Or(g.model, onlyModel(node))
	at := slices.IndexFunc(here, func(h cluster.Holding) bool { return h.Model == model || h.Size.Devices == 0 })
	if at < 0 {
		at, here = len(here), append(here, cluster.Holding{Node: node.Name})
	}
	h := &here[at]
	h.Model = model
	for _, p := range parts {
		part := max(cluster.WholeGPU*cluster.MicroGPU(min(p.used, max(p.of, 1)))/cluster.MicroGPU(max(p.of, 1)), 1)
		if h.Size = h.Size.And(cluster.Size{Devices: 1, Part: part}); p.index >= 0 {
			h.Index = append(h.Index, p.index)
		}
	}
	slices.SortFunc(here, func(a, b cluster.Holding) int { return strings.Compare(a.Model, b.Model) })
	return here
}

// had gives the GPUs of a finished job, by model.
func (t *translator) had(w *wireJob) ([]cluster.ModelSize, error) {
	nodes, _, err := t.holdings(w)
	var out []cluster.ModelSize
	for _, h := range nodes {
		at := slices.IndexFunc(out, func(g cluster.ModelSize) bool { return g.Model == h.Model })
		switch {
		case h.Size.Devices == 0:
		case at < 0:
			out = append(out, cluster.ModelSize{Model: h.Model, Size: h.Size})
		default:
			out[at].Size = out[at].Size.And(h.Size)
		}
	}
	slices.SortFunc(out, func(a, b cluster.ModelSize) int { return strings.Compare(a.Model, b.Model) })
	return out, err
}

// held gives a list of GPUs as holdings on a node, one per model, or one without GPUs if the list
// is empty. CPUs and memory go to the first.
func held(name string, node cluster.Node, list []gres) []cluster.Holding {
	var out []cluster.Holding
	for _, g := range list {
		if g.name != "gpu" || g.count == 0 {
			continue
		}
		h := cluster.Holding{Node: name, Model: g.model, Size: cluster.Whole(g.count), Index: g.indices()}
		if h.Model == "" {
			h.Model = onlyModel(node)
		}
		out = append(out, h)
	}
	if len(out) == 0 {
		return []cluster.Holding{{Node: name}}
	}
	slices.SortFunc(out, func(a, b cluster.Holding) int { return strings.Compare(a.Model, b.Model) })
	return out
}

// onlyModel is the model of a node's GPUs, for jobs whose GPUs Slurm does not name.
func onlyModel(node cluster.Node) string {
	if len(node.GPUs) == 0 {
		return untyped
	}
	return node.GPUs[0].Model
}

// part gives the job's CPUs and memory on a node, or an even share of the total if Slurm does not
// report them.
func (w *wireJob) part(node string, nodes int) nodePart {
	for _, p := range w.parts {
		if p.node == node {
			return p
		}
	}
	got := parseTres(w.got)
	return nodePart{
		node:     node,
		cpus:     (got.cpus + nodes - 1) / nodes,
		memoryMB: (got.memoryMB + int64(nodes) - 1) / int64(nodes),
	}
}

// spread derives gres_detail from tres_alloc_str: the same on every node.
func spread(w *wireJob, names []string) []string {
	got := parseTres(w.got)
	if parts := max(got.shards, got.mps); got.gpus == 0 && parts > 0 && min(got.shards, got.mps) == 0 && len(names) == 1 {
		name := "shard:"
		if got.mps > 0 {
			name = "mps:"
		}
		return []string{name + strconv.Itoa(parts)}
	}
	if got.gpus == 0 {
		return nil
	}
	entry := "gpu"
	for m := range got.models {
		if len(got.models) == 1 {
			entry += ":" + m
		}
	}
	nodes := max(len(names), w.nodeCount) // a job that cleans up lists only the unfinished nodes
	out := make([]string, len(names))
	for i := range out {
		n := got.gpus / nodes
		if i < got.gpus%nodes {
			n++
		}
		out[i] = entry + ":" + strconv.Itoa(n)
	}
	return out
}

// readSLUID reads a job's step_id and gives its SLUID; the rest is not needed.
func readSLUID(r *reader) (id string) {
	r.object(func(name string) {
		if name == "sluid" {
			id = r.text()
		} else {
			r.skip()
		}
	})
	return id
}
