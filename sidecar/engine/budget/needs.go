package budget

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// kind is what is known of a kind of jobs: those of a type, or those of a user with as many GPUs that have none.
type kind struct {
	size    *size
	ended   int     // of the size, for least
	least   []int64 // by class: see Needs; 0 = not asked for
	habit   int32   // of its type: its index plus 1; -1 = nothing was observed, 0 = not looked up
	version int     // of the habits, for habit
	like    cluster.JobType
	all     *group
}

// group is the jobs of a user with as many GPUs, beside which everybody's count.
type group struct {
	like  cluster.JobType
	size  *size
	needs expect.Sum
	ended int // of the size, for needs
}

// size is the jobs of everybody with as many GPUs.
type size struct {
	gpus  int
	ended int // another number once one of them has ended
	needs expect.Sum
	of    int // the number of ended for which needs holds
}

// kin is the kind of a job.
type kin struct {
	user, command, name string
	gpus                int
	of                  *kind
}

// kinds are the answers of earlier rounds.
type kinds struct {
	of     []cluster.Habit // on which needs rest
	known  map[cluster.JobType]*kind
	groups map[cluster.JobType]*group
	sizes  map[int]*size // by GPUs
	jobs   []kin         // by key, modulo its length: jobs ask again and again, and a map of types is slower
	old    []int         // numbers of GPUs for which a job has ended in this round
}

// kindOf returns the kind of a case.
func kindOf(a *Account, i int) *kind {
	n := &a.notes.cases[i]
	if n.kind != nil {
		return n.kind
	}
	j, at := &a.in.Snapshot.Cases[i].Job, &a.kinds.jobs[int(a.in.Records[i].Key)&(len(a.kinds.jobs)-1)]
	if at.of == nil || at.gpus != j.Request.Size.Devices || at.user != j.User || at.command != j.Command || at.name != j.Name {
		*at = kin{j.User, j.Command, j.Name, j.Request.Size.Devices, a.kinds.find(j)}
	}
	n.kind = at.of
	return n.kind
}

// open makes room for a number of jobs, and keeps the answers if habits are those on which they rest.
func (x *kinds) open(habits []cluster.Habit, jobs int) {
	if n := 1 << max(bits.Len(uint(jobs)), 8); len(x.jobs) < n {
		x.jobs = make([]kin, n)
	}
	if x.known == nil {
		x.known, x.groups, x.sizes = map[cluster.JobType]*kind{}, map[cluster.JobType]*group{}, map[int]*size{}
	}
	if len(habits) == 0 || len(habits) != len(x.of) || &habits[0] != &x.of[0] {
		for _, all := range x.sizes {
			all.ended++
		}
	}
	x.old = x.old[:0]
}

// forget drops the answers for numbers of GPUs for which a job has ended.
func (x *kinds) forget(gpus []int) {
	for _, n := range gpus {
		if all := x.sizes[n]; all != nil {
			all.ended++
		}
	}
}

// close remembers the habits on which the answers rest; dropped tells that some were too many.
func (x *kinds) close(habits []cluster.Habit, dropped bool) {
	if x.of = habits; dropped {
		x.of = nil
	}
}

// habitIn returns kind.habit.
func (k *kind) habitIn(habits *stop.Habits) int32 {
	if k.habit == 0 || k.version != habits.Version {
		k.habit, k.version = -1, habits.Version
		if h := habits.Find(k.like); h >= 0 && k.like.Command != "" {
			k.habit = h + 1
		}
	}
	return k.habit
}

// find returns the kind of a job.
func (x *kinds) find(j *cluster.Job) *kind {
	like := groups(j)
	own := like[0]
	if own.GPUs == 0 {
		own = like[1]
	}
	k := x.known[own]
	if k == nil {
		all := x.group(like[1])
		k = &kind{size: all.size, like: own, all: all}
		x.known[own] = k
	}
	return k
}

// group returns the group of jobs like those of a user with as many GPUs.
func (x *kinds) group(like cluster.JobType) *group {
	g := x.groups[like]
	if g == nil {
		all := x.sizes[like.GPUs]
		if all == nil {
			all = &size{gpus: like.GPUs, ended: 1}
			x.sizes[like.GPUs] = all
		}
		g = &group{like: like, size: all}
		x.groups[like] = g
	}
	return g
}

// groups returns the groups of jobs whose past tells how much GPU time a job needs: of its type, of its user with as
// many GPUs, and of everybody with as many GPUs. Those that are unknown are empty.
func groups(j *cluster.Job) (groups [3]cluster.JobType) {
	if t, ok := cluster.TypeOf(j); ok {
		groups[0] = t
	}
	groups[1] = cluster.JobType{User: j.User, GPUs: j.Request.Size.Devices}
	groups[2] = cluster.JobType{GPUs: j.Request.Size.Devices}
	return groups
}

// ended remembers the GPU time of a job that ended.
func (o *observer) ended(i int) {
	got := o.a.in.Records[i].Alloc
	if got == 0 {
		return
	}
	if gpus := o.a.in.Snapshot.Cases[i].Job.Request.Size.Devices; !slices.Contains(o.a.kinds.old, gpus) {
		o.a.kinds.old = append(o.a.kinds.old, gpus)
	}
	last := cluster.JobType{}
	for _, g := range groups(&o.a.in.Snapshot.Cases[i].Job) {
		if g.GPUs > 0 && g != last {
			o.a.habits.Needed(g, o.a.in.Now, got)
			last = g
		}
	}
}

// strangers is the number of jobs as which all jobs of everybody weigh, beside those of a user.
const strangers = 3

// Needs returns the GPU time for which a job is expected to end, in seconds of one GPU; see expect.Sum.Next.
func (a *Account) Needs(i int) int64 {
	class := expect.ClassOf(a.in.Records[i].Alloc)
	if a.habits.Len() == 0 {
		var unknown expect.Sum
		return unknown.Next(class)
	}
	k := kindOf(a, i)
	if k.ended != k.size.ended {
		k.ended = k.size.ended
		clear(k.least)
	}
	for class >= len(k.least) {
		k.least = append(k.least, 0)
	}
	if k.least[class] == 0 {
		k.least[class] = needed(&a.habits, k, class)
	}
	return k.least[class]
}

// needed is Needs of a job of a kind and in a class.
func needed(habits *stop.Habits, k *kind, class int) int64 {
	sum := k.all.sum(habits)
	if k.like != k.all.like {
		sum.Add(received(habits, k.like), 0)
	}
	return sum.Next(class)
}

// received counts the jobs of a type by the GPU time that they received until they ended.
func received(habits *stop.Habits, t cluster.JobType) []int32 {
	if h := habits.At(habits.Find(t)); h != nil {
		return h.Needed
	}
	return nil
}

// sum returns the counts of the group and of everybody.
func (g *group) sum(habits *stop.Habits) expect.Sum {
	if g.ended != g.size.ended {
		g.ended, g.needs = g.size.ended, expect.Sum{}
		if g.like.User != "" {
			g.needs = g.size.sum(habits)
		}
		g.needs.Add(received(habits, g.like), 0)
	}
	return g.needs
}

// sum returns the counts of everybody.
func (all *size) sum(habits *stop.Habits) expect.Sum {
	if all.of != all.ended {
		all.of, all.needs = all.ended, expect.Sum{}
		all.needs.Add(received(habits, cluster.JobType{GPUs: all.gpus}), strangers)
	}
	return all.needs
}
