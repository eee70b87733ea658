package gpu

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Holder is a job that holds GPUs.
type Holder struct {
	Key     cluster.JobKey
	ID      cluster.JobID
	Record  int64 // Slurm's id of the job, as the job sees it
	User    string
	Type    cluster.JobType
	Typed   bool // Type tells the job from its user's others
	Start   cluster.Instant
	Running bool // false = suspended or completing: it uses nothing
	Holds   []cluster.Holding
}

// HoldersOf gives the jobs of a snapshot that hold GPUs.
func HoldersOf(s *cluster.Snapshot) []Holder {
	var out []Holder
	for i := range s.Cases {
		if c := &s.Cases[i]; !c.Gone {
			if h, ok := HolderOf(&c.Job); ok {
				h.Key = c.Record.Key
				out = append(out, h)
			}
		}
	}
	return out
}

// HolderOf gives a job without its key; false = it holds no GPU.
func HolderOf(j *cluster.Job) (h Holder, ok bool) {
	if j.State == cluster.Waiting || j.State == cluster.Done || j.GPUsHeld() == 0 {
		return h, false
	}
	h = Holder{ID: j.ID, Record: j.Record, User: j.User, Start: j.Start, Running: j.State == cluster.Running, Holds: j.Holds}
	h.Type, h.Typed = cluster.TypeOf(j)
	return h, true
}

// Ended is an attempt that is over.
type Ended struct {
	Key     cluster.JobKey
	Outcome string // as Slurm calls it: "COMPLETED", "FAILED", "NODE_FAIL", …
}

// HourUse is what a job's GPUs of one model did in a part of an hour, to be added to what is known of the hour already.
// Times are GPU-milliseconds. Of each counter there is the sum of value × time, and the time in which it was known.
type HourUse struct {
	Hour  cluster.Instant
	Job   cluster.JobKey
	Model string
	// Held is the time in which the job held the GPUs, Seen the part in which they were fresh, Idle the part of it in
	// which they were idle.
	Held, Seen, Idle       cluster.GPUTime
	Util, SM, Tensor, DRAM Weighted
	Power                  Weighted // watts
	Memory                 int64    // maximum in use on one GPU, bytes
}

// Weighted is a mean over GPU time.
type Weighted struct {
	Sum  float64 // value × GPU-milliseconds
	Time cluster.GPUTime
}

func (w *Weighted) add(value float64, time cluster.GPUTime) {
	if !math.IsNaN(value) {
		w.Sum += value * float64(time)
		w.Time += time
	}
}

// Remark is news about a job's GPUs.
type Remark struct {
	Kind  string // HoldsIdle, or one of package remark
	Job   cluster.JobKey
	ID    cluster.JobID
	User  string // the job's
	Node  string // "" = all of the job's
	GPU   int    // index on the node; -1 = all of the job's there
	Since cluster.Instant
	Text  string
}

// HoldsIdle is the kind of the remark that a job has held idle GPUs for idle.tell_after.
const HoldsIdle = cluster.EventHoldsIdle

// Compare orders by job, kind, node and GPU.
func (r *Remark) Compare(o *Remark) int {
	return cmp.Or(cmp.Compare(r.Job, o.Job), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Node, o.Node), cmp.Compare(r.GPU, o.GPU))
}

// Book joins GPUs with the jobs that hold them, and sums up what they did.
type Book struct {
	// TellAfter is for how long a job holds idle GPUs before that is remarked; 0 = never.
	TellAfter cluster.Span
	// MaxGap is the longest time that one look stands for.
	MaxGap cluster.Span

	last    cluster.Instant // of the last look
	jobs    map[cluster.JobKey]*account
	hours   map[hourKey]*HourUse
	memory  map[memoryKey]*cluster.MemoryUse
	sizes   map[string]int64 // memory of a GPU in bytes, by Slurm's model
	remarks []Remark
}

// account is what is known of one attempt of a job.
type account struct {
	holder Holder
	uses   []cluster.GPUUse // by model
	told   cluster.Instant  // since when the idle GPUs of the last remark were idle; 0 = no remark
}

type hourKey struct {
	hour  cluster.Instant
	job   cluster.JobKey
	model string
}

type memoryKey struct {
	kind  cluster.JobType
	model string
}

const hour = cluster.Instant(cluster.Hour)

// place is a GPU's place in the cluster.
type place struct {
	node  string
	index int
}

// Look joins the GPUs of one look, by node and index, with the jobs that hold them. GPUs that several jobs hold, and
// GPUs without an index in Slurm, belong to nobody. It gives the nodes on which the exporter counts GPUs in another order
// than Slurm, and says how that shows: nothing of them counts.
func (b *Book) Look(now cluster.Instant, gpus []GPU, holders []Holder) (misjoined map[string]string) {
	b.prepare()
	at := make(map[place]*GPU, len(gpus))
	for i := range gpus {
		if g := &gpus[i]; g.Instance == "" {
			at[place{g.Node, g.Index}] = g
		}
	}
	held, owner := heldBy(holders, len(gpus))
	misjoined = misjoins(func(yield func(place, *Row) bool) {
		for p, g := range at {
			if !yield(p, &g.Row) {
				return
			}
		}
	}, held, owner)
	elapsed := min(now.Sub(b.last), b.MaxGap)
	if b.last == 0 {
		elapsed = 0
	}
	live := make(map[cluster.JobKey]bool, len(holders))
	for i := range holders {
		h := &holders[i]
		live[h.Key] = true
		a := b.jobs[h.Key]
		if a == nil || a.holder.Start != h.Start {
			a = &account{}
			b.jobs[h.Key] = a
		}
		a.holder = *h
		if !h.Running {
			continue
		}
		b.take(now, a, min(elapsed, max(now.Sub(h.Start), 0)), func(p place) *GPU {
			g := at[p]
			if g == nil || held[p] > 1 || g.Shared || g.State != Fresh || misjoined[p.node] != "" {
				return nil
			}
			return g
		})
	}
	b.last = now
	for key, a := range b.jobs {
		a.holder.Running = a.holder.Running && live[key] // others have ended, and how they did is not known yet
	}
	return misjoined
}

func (b *Book) prepare() {
	if b.jobs == nil {
		b.jobs, b.hours = map[cluster.JobKey]*account{}, map[hourKey]*HourUse{}
	}
	if b.memory == nil {
		b.memory = map[memoryKey]*cluster.MemoryUse{}
	}
	if b.sizes == nil {
		b.sizes = map[string]int64{}
	}
}

// heldBy counts the holders of each GPU, and gives Slurm's id of the last one.
func heldBy(holders []Holder, gpus int) (held map[place]int, owner map[place]int64) {
	held, owner = make(map[place]int, gpus), make(map[place]int64, gpus)
	for i := range holders {
		for p := range holders[i].places() {
			held[p]++
			owner[p] = holders[i].Record
		}
	}
	return held, owner
}

// places goes through the GPUs that a job holds and that Slurm numbers, with their models.
func (h *Holder) places() iter.Seq2[place, string] {
	return func(yield func(place, string) bool) {
		for i := range h.Holds {
			for _, index := range h.Holds[i].Index {
				if !yield(place{h.Holds[i].Node, index}, h.Holds[i].Model) {
					return
				}
			}
		}
	}
}

// Misjoins gives the nodes on which the exporter counts GPUs in another order than Slurm, as Look does, and says how that
// shows.
func Misjoins(nodes []Node, readings []Reading, holders []Holder) map[string]string {
	held, owner := heldBy(holders, 0)
	return misjoins(func(yield func(place, *Row) bool) {
		for i := range readings {
			for k := range readings[i].Rows {
				if r := &readings[i].Rows[k]; r.Instance == "" && !yield(place{nodes[i].Name, r.Index}, r) {
					return
				}
			}
		}
	}, held, owner)
}

// misjoins finds nodes on which the exporter itself says that a GPU has a job which, by Slurm, holds others of the node's
// GPUs, while another job holds this one: NVIDIA's and Slurm's indices differ there.
func misjoins(at iter.Seq2[place, *Row], held map[place]int, owner map[place]int64) map[string]string {
	type jobAt struct {
		node string
		job  int64
	}
	var runs map[jobAt]bool
	out := map[string]string{}
	for p, g := range at {
		if g.Job == "" || g.Shared || held[p] != 1 {
			continue
		}
		job, err := strconv.ParseInt(g.Job, 10, 64)
		if err != nil || owner[p] == job {
			continue
		}
		if runs == nil {
			runs = make(map[jobAt]bool, len(owner))
			for q, id := range owner {
				runs[jobAt{q.node, id}] = true
			}
		}
		if !runs[jobAt{p.node, job}] {
			continue
		}
		why := fmt.Sprintf("its exporter says that GPU %d has job %d, Slurm says job %d: they number the GPUs differently; set AutoDetect=nvml in gres.conf", p.index, job, owner[p])
		if was, ok := out[p.node]; !ok || why < was {
			out[p.node] = why
		}
	}
	return out
}

// take adds one look at a job's GPUs; find gives a GPU that speaks for the job, or nil.
func (b *Book) take(now cluster.Instant, a *account, elapsed cluster.Span, find func(place) *GPU) {
	byModel := map[string][]*GPU{}
	count := map[string]int{} // of its GPUs, by model
	for i := range a.holder.Holds {
		count[a.holder.Holds[i].Model] += a.holder.Holds[i].Size.Devices
	}
	for p, model := range a.holder.places() {
		if g := find(p); g != nil {
			byModel[model] = append(byModel[model], g)
		}
	}
	all := true
	for _, model := range slices.Sorted(maps.Keys(count)) {
		seen := byModel[model]
		all = all && len(seen) == count[model]
		h := b.hour(now, a.holder.Key, model)
		h.Held += cluster.GPUTime(count[model]) * cluster.GPUTime(elapsed)
		for _, g := range seen {
			b.hourly(h, g, cluster.GPUTime(elapsed))
		}
	}
	for _, model := range slices.Sorted(maps.Keys(count)) {
		a.idle(now, model, byModel[model])
		if all {
			a.sample(now, model, byModel[model])
			b.remember(now, a, model)
		}
	}
	b.tell(now, a)
}

func (b *Book) hour(now cluster.Instant, job cluster.JobKey, model string) *HourUse {
	key := hourKey{now - now%hour, job, model}
	h := b.hours[key]
	if h == nil {
		h = &HourUse{Hour: key.hour, Job: job, Model: model}
		b.hours[key] = h
	}
	return h
}

// hourly adds one GPU to what its job did in the hour.
func (b *Book) hourly(h *HourUse, g *GPU, time cluster.GPUTime) {
	h.Seen += time
	if g.Idle {
		h.Idle += time
	}
	v := &g.Values
	h.Util.add(v[Util], time)
	h.SM.add(v[SM], time)
	h.Tensor.add(v[Tensor], time)
	h.DRAM.add(v[DRAM], time)
	h.Power.add(v[Power], time)
	if v.Has(Used) {
		h.Memory = max(h.Memory, int64(v[Used]))
	}
	if size := v.Memory(); size > 0 {
		b.sizes[h.Model] = size
	}
}

// use gives what is known of a job's GPUs of a model.
func (a *account) use(now cluster.Instant, model string) *cluster.GPUUse {
	for i := range a.uses {
		if a.uses[i].Model == model {
			return &a.uses[i]
		}
	}
	a.uses = append(a.uses, cluster.GPUUse{Job: a.holder.ID, Model: model, Start: a.holder.Start, From: now})
	return &a.uses[len(a.uses)-1]
}

// idle notes which of a job's GPUs of a model are idle.
func (a *account) idle(now cluster.Instant, model string, seen []*GPU) {
	u := a.use(now, model)
	u.Idle, u.IdleSince = 0, 0
	for _, g := range seen {
		if g.Idle {
			u.Idle++
			u.IdleSince = max(u.IdleSince, g.IdleSince, a.holder.Start)
		}
	}
}

// sample adds the mean over a job's GPUs of a model, all of them fresh. A counter that some of them lack is left out.
func (a *account) sample(now cluster.Instant, model string, seen []*GPU) {
	u := a.use(now, model)
	u.GPUs, u.At = len(seen), now
	for m, mean := range map[Meaning]*cluster.Mean{Util: &u.Util, SM: &u.SM, Tensor: &u.Tensor, DRAM: &u.DRAM, Power: &u.Power, Clock: &u.Clock, PCIeRX: &u.PCIeRX} {
		sum := 0.0
		for _, g := range seen {
			sum += g.Values[m]
		}
		if !math.IsNaN(sum) && len(seen) > 0 {
			mean.Add(sum / float64(len(seen)))
		}
	}
	for _, g := range seen {
		if g.Values.Has(Used) {
			u.Memory = max(u.Memory, int64(g.Values[Used]))
		}
	}
}

// remember keeps how much memory jobs of the type used.
func (b *Book) remember(now cluster.Instant, a *account, model string) {
	u := a.use(now, model)
	if !a.holder.Typed || u.Memory == 0 {
		return
	}
	key := memoryKey{a.holder.Type, model}
	x := b.memory[key]
	if x == nil {
		x = &cluster.MemoryUse{Type: key.kind, Model: model}
		b.memory[key] = x
	}
	x.Bytes, x.At = max(x.Bytes, u.Memory), now
}

// tell remarks once that a job has held idle GPUs for long.
func (b *Book) tell(now cluster.Instant, a *account) {
	idle, since := idleOf(a.uses)
	if b.TellAfter > 0 && idle > 0 && a.told != since && now.Sub(since) >= b.TellAfter {
		a.told = since
		b.remarks = append(b.remarks, Remark{Kind: HoldsIdle, Job: a.holder.Key, ID: a.holder.ID, User: a.holder.User, GPU: -1, Since: since,
			Text: fmt.Sprintf("has held %s for %s", count(idle, "idle GPU"), now.Sub(since))})
	}
}

// idleOf gives the number of a job's idle GPUs on all models, and since when all of these have been idle.
func idleOf(uses []cluster.GPUUse) (idle int, since cluster.Instant) {
	for i := range uses {
		idle += uses[i].Idle
		since = max(since, uses[i].IdleSince)
	}
	return idle, since
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// full is the part of a GPU's memory from which on a failed job is taken to have died of a lack of it.
const full = 0.95

// End takes the end of attempts, and forgets them. It keeps whether jobs of the type completed on a model, or failed there
// with the memory full. Slurm's OUT_OF_MEMORY is about the host's memory, and counts as neither.
func (b *Book) End(now cluster.Instant, ended []Ended) {
	b.prepare()
	for _, e := range ended {
		a := b.jobs[e.Key]
		if a == nil {
			continue
		}
		delete(b.jobs, e.Key)
		for i := range a.uses {
			u := &a.uses[i]
			x := b.memory[memoryKey{a.holder.Type, u.Model}]
			if x == nil || !a.holder.Typed || len(a.uses) > 1 {
				continue
			}
			switch size := b.sizes[u.Model]; {
			case e.Outcome == "COMPLETED":
				x.Completed, x.Full, x.At = true, false, now
			case e.Outcome == "FAILED" && !x.Completed && size > 0 && float64(u.Memory) >= full*float64(size):
				x.Full, x.At = true, now
			}
		}
	}
}

// Uses gives what the GPUs of running jobs did, by job and model.
func (b *Book) Uses() []cluster.GPUUse {
	var out []cluster.GPUUse
	for _, a := range b.jobs {
		if a.holder.Running {
			for i := range a.uses {
				if a.uses[i].At > 0 || a.uses[i].Idle > 0 {
					out = append(out, a.uses[i])
				}
			}
		}
	}
	slices.SortFunc(out, func(x, y cluster.GPUUse) int { return x.Compare(&y) })
	return out
}

// Hours gives what has been added since the last Settle, by hour, job and model.
func (b *Book) Hours() []HourUse {
	var out []HourUse
	for _, h := range b.hours {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(x, y HourUse) int {
		return cmp.Or(cmp.Compare(x.Hour, y.Hour), cmp.Compare(x.Job, y.Job), cmp.Compare(x.Model, y.Model))
	})
	return out
}

// Remarks gives the news since the last Settle.
func (b *Book) Remarks() []Remark { return b.remarks }

// Add adds news.
func (b *Book) Add(news ...Remark) { b.remarks = append(b.remarks, news...) }

// Settle records that hours and remarks were written down.
func (b *Book) Settle() { b.hours, b.remarks = map[hourKey]*HourUse{}, nil }

// Memory gives how much memory of a GPU each type of job used, by type and model.
func (b *Book) Memory() []cluster.MemoryUse {
	out := make([]cluster.MemoryUse, 0, len(b.memory))
	for _, x := range b.memory {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(x, y cluster.MemoryUse) int { return x.Compare(&y) })
	return out
}

// Sizes gives the memory of a GPU, by Slurm's model.
func (b *Book) Sizes() []cluster.GPUMemory {
	var out []cluster.GPUMemory
	for _, model := range slices.Sorted(maps.Keys(b.sizes)) {
		out = append(out, cluster.GPUMemory{Model: model, Bytes: b.sizes[model]})
	}
	return out
}

// Recall gives the book what an earlier one knew of memory.
func (b *Book) Recall(memory []cluster.MemoryUse, sizes []cluster.GPUMemory) {
	b.prepare()
	for _, x := range memory {
		b.memory[memoryKey{x.Type, x.Model}] = &x
	}
	for _, x := range sizes {
		b.sizes[x.Model] = x.Bytes
	}
}

// Owners gives a function that finds the job that alone holds a GPU; false = none, or several.
func Owners(holders []Holder) func(*GPU) (cluster.JobKey, bool) {
	owner := map[place]cluster.JobKey{}
	for i := range holders {
		for p := range holders[i].places() {
			if _, ok := owner[p]; ok {
				owner[p] = 0
			} else {
				owner[p] = holders[i].Key
			}
		}
	}
	return func(g *GPU) (cluster.JobKey, bool) {
		key := owner[place{g.Node, g.Index}]
		return key, key != 0 && g.Instance == ""
	}
}
