package remark

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// The kinds of remarks that a Judge makes.
const (
	Drift     = cluster.EventDrift
	Stall     = cluster.EventStall
	Straggler = cluster.EventStraggler
	Misreport = cluster.EventMisreport
)

const (
	block   = 5 * cluster.Minute
	lasting = 4                   // consecutive blocks that make a remark
	warmUp  = 10 * cluster.Minute // a job loads and compiles: no block of that time counts
)

// Judge follows running jobs from look to look. Equal calls in equal order give equal remarks.
type Judge struct {
	// MaxGap is the longest time between two looks over which a job is taken to do the same.
	MaxGap cluster.Span

	jobs  map[cluster.JobKey]*job
	usual map[subject]*kind
	news  []gpu.Remark
	told  map[cluster.Kind]cluster.Instant // kinds of contradicted claims, and since when
}

// job is what is known of one attempt of a job.
type job struct {
	holder       gpu.Holder
	model        string          // "" = several
	looked, full cluster.Instant // last looks at which some of its GPUs were seen, and all
	block        filling
	own          [measures]level // of the attempt's blocks
	drifts       [measures]streak
	stall        stalling
	lags         place            // the GPU or node that was far from the others in the last block,
	lag          streak           // and in so many before
	steps        cluster.Progress // the newest report that a block has used
	stands       []gpu.Remark
	told         map[subjectOfNews]bool
}

type subjectOfNews struct {
	kind string
	at   place
}

// filling is a block of looks that is not over. The means are of the looks at which all GPUs were seen and the job worked.
type filling struct {
	from       cluster.Instant
	all, looks int
	means      [measures]mean
	gpus       map[place]*[len(meanings)]mean
	quiet      bool // the job stood still at a look
}

type place struct {
	node  string
	index int // -1 = all the job's GPUs on the node
}

// streak counts consecutive blocks with the same deviation.
type streak struct {
	since  cluster.Instant
	blocks int
	up     bool
}

// next continues the streak with a block that deviates, or ends it.
func (s *streak) next(deviates, up bool, from cluster.Instant) {
	switch {
	case !deviates:
		*s = streak{}
	case s.blocks > 0 && s.up == up:
		s.blocks++
	default:
		*s = streak{from, 1, up}
	}
}

// Look compares the GPUs of jobs with what is usual. The report's GPUs are sorted; reports holds the newest progress of
// jobs that report it.
func (j *Judge) Look(r *gpu.Report, holders []gpu.Holder, reports map[cluster.JobID]cluster.Progress) {
	if j.jobs == nil {
		j.jobs = map[cluster.JobKey]*job{}
	}
	alone, live := gpu.Owners(holders), make(map[cluster.JobKey]bool, len(holders))
	for i := range holders {
		h := &holders[i]
		live[h.Key] = true
		x := j.jobs[h.Key]
		if x == nil || x.holder.Start != h.Start {
			if x != nil {
				j.learn(r.At, x)
			}
			x = &job{told: map[subjectOfNews]bool{}}
			j.jobs[h.Key] = x
		}
		x.holder = *h
		seen, whole := x.seen(r.GPUs, alone)
		if !h.Running || x.model == "" || r.At.Sub(x.looked) > j.MaxGap {
			x.forget()
		}
		if h.Running && len(seen) > 0 {
			j.take(r.At, x, seen, whole, reports[h.ID])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.jobs)) {
		if !live[key] {
			j.learn(r.At, j.jobs[key])
			delete(j.jobs, key)
		}
	}
}

// seen gives the job's GPUs that are fresh and that it alone holds, and whether these are all of them. It notes the model;
// "" = the job holds several.
func (x *job) seen(all []gpu.GPU, alone func(*gpu.GPU) (cluster.JobKey, bool)) (list []*gpu.GPU, whole bool) {
	count := 0
	for i, h := range x.holder.Holds {
		if x.model = h.Model; i > 0 && h.Model != x.holder.Holds[0].Model {
			x.model = ""
			return nil, false
		}
		count += h.Size.Devices
		from, _ := slices.BinarySearchFunc(all, h.Node, func(g gpu.GPU, node string) int { return cmp.Compare(g.Node, node) })
		for i := from; i < len(all) && all[i].Node == h.Node; i++ {
			g := &all[i]
			key, ok := alone(g)
			if ok && key == x.holder.Key && g.State == gpu.Fresh && !g.Shared && slices.Contains(h.Index, g.Index) {
				list = append(list, g)
			}
		}
	}
	return list, len(list) == count
}

// forget drops what was seen of the present: it does not go on. The levels of the attempt stay.
func (x *job) forget() {
	x.block, x.drifts, x.steps, x.stall.since, x.lag, x.stands = filling{}, [measures]streak{}, cluster.Progress{}, 0, streak{}, nil
}

// take adds one look at a job, and closes its block if that is over.
func (j *Judge) take(now cluster.Instant, x *job, seen []*gpu.GPU, whole bool, report cluster.Progress) {
	if report.At < x.holder.Start {
		report = cluster.Progress{} // of an earlier attempt
	}
	b := &x.block
	if b.from == 0 {
		*b = filling{from: now, gpus: make(map[place]*[len(meanings)]mean, len(seen))}
	}
	b.all++
	for _, g := range seen {
		at := place{g.Node, g.Index}
		if b.gpus[at] == nil {
			b.gpus[at] = new([len(meanings)]mean)
		}
		if !g.Idle { // GPUs that idle are told of by themselves
			for k, m := range meanings {
				b.gpus[at][k].add(g.Values[m])
			}
		}
	}
	x.looked = now
	if whole {
		j.work(now, x, seen, report)
	} else if now.Sub(x.full) > j.MaxGap { // nothing is known of the job as a whole
		x.drifts, x.stall.since = [measures]streak{}, 0
		x.stands = slices.DeleteFunc(x.stands, func(r gpu.Remark) bool { return r.Kind == Stall || r.Kind == Drift })
	}
	if now.Sub(b.from) < block {
		return
	}
	j.compare(x)
	if b.from.Sub(x.holder.Start) >= warmUp {
		j.drift(x, report)
	}
	x.block = filling{}
}

// work adds a look at all GPUs of a job.
func (j *Judge) work(now cluster.Instant, x *job, seen []*gpu.GPU, report cluster.Progress) {
	var values [measures]float64
	for m := range measures {
		values[m] = m.of(seen)
	}
	x.full = now
	stalled := x.stall.look(now, &values, report)
	if x.stall.since > 0 {
		x.block.quiet = true
		if stalled {
			j.stand(x, gpu.Remark{Kind: Stall, GPU: -1, Since: x.stall.since, Text: x.stall.words()})
		}
		return
	}
	x.end(Stall)
	x.block.looks++
	for m := range measures {
		x.block.means[m].add(values[m])
	}
}

// stand makes a remark, unless it stands: it then keeps its words. It is news if its end was seen, or it is the first.
func (j *Judge) stand(x *job, r gpu.Remark) {
	r.Job, r.ID, r.User = x.holder.Key, x.holder.ID, x.holder.User
	if slices.ContainsFunc(x.stands, func(s gpu.Remark) bool { return s.Compare(&r) == 0 }) {
		return
	}
	x.stands = append(x.stands, r)
	if of := (subjectOfNews{r.Kind, place{r.Node, r.GPU}}); !x.told[of] {
		x.told[of] = true
		j.news = append(j.news, r)
	}
}

// end takes the remarks of a kind back: the next ones are news.
func (x *job) end(kind string) {
	x.stands = slices.DeleteFunc(x.stands, func(r gpu.Remark) bool {
		if r.Kind == kind {
			delete(x.told, subjectOfNews{kind, place{r.Node, r.GPU}})
		}
		return r.Kind == kind
	})
}

// Accuse remarks on the jobs of kinds whose claims are contradicted, as texts says for each kind. of gives the kinds of
// jobs. It is news once for a kind.
func (j *Judge) Accuse(now cluster.Instant, texts map[cluster.Kind]string, of map[cluster.JobKey]cluster.Kind) {
	if j.told == nil {
		j.told = map[cluster.Kind]cluster.Instant{}
	}
	maps.DeleteFunc(j.told, func(k cluster.Kind, _ cluster.Instant) bool { return texts[k] == "" })
	for _, key := range slices.Sorted(maps.Keys(j.jobs)) {
		x, kind := j.jobs[key], of[key]
		text := texts[kind]
		if text == "" {
			x.end(Misreport)
			continue
		}
		since, told := j.told[kind]
		if !told {
			since = now
			j.told[kind] = now
		}
		x.told[subjectOfNews{Misreport, place{"", -1}}] = told
		j.stand(x, gpu.Remark{Kind: Misreport, GPU: -1, Since: since, Text: text})
	}
}

// Remarks gives those that stand now, by job, kind, node and GPU.
func (j *Judge) Remarks() []gpu.Remark {
	var out []gpu.Remark
	for _, x := range j.jobs {
		out = append(out, x.stands...)
	}
	slices.SortFunc(out, func(a, b gpu.Remark) int { return a.Compare(&b) })
	return out
}

// News gives the remarks that were made since the last call.
func (j *Judge) News() []gpu.Remark {
	out := j.news
	j.news = nil
	slices.SortFunc(out, func(a, b gpu.Remark) int { return a.Compare(&b) })
	return out
}

// clock gives a moment in words of a remark.
func clock(at cluster.Instant) string { return at.Time().UTC().Format("15:04 UTC") }

// round gives a value with three digits.
func round(x float64) string { return fmt.Sprintf("%.3g", x) }
