package budget

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
)

// need is what the GPU time that a job is expected to need depends on.
type need struct {
	like  cluster.JobType
	class int
}

// kin is what is known of a job's kind: it holds from round to round.
type kin struct {
	user, command, name string
	gpus                int
	habit               int32 // as in Account.habitOf; 0 = not looked up
	version             int   // of the habits, for habit
	class               int
	least               int64 // of GPU time in that class; 0 = not asked for. Until another job with as many GPUs ends
}

// kinds are the answers of earlier rounds.
type kinds struct {
	of    []cluster.Habit // on which needs rest
	needs map[need]int64
	jobs  []kin // by key, modulo its length: jobs ask again and again, and a map of types is slower
	old   []int // numbers of GPUs for which a job has ended in this round
}

// kinOf returns what is known of a case's kind.
func kinOf(a *Account, i int) *kin {
	j, at := &a.Snapshot.Cases[i].Job, &a.kinds.jobs[int(a.Records[i].Key)&(len(a.kinds.jobs)-1)]
	if at.gpus != j.Request.GPUs || at.user != j.User || at.command != j.Command || at.name != j.Name {
		*at = kin{user: j.User, command: j.Command, name: j.Name, gpus: j.Request.GPUs}
	}
	return at
}

// open keeps the answers if habits are those on which they rest. It makes room for a number of jobs.
func (x *kinds) open(habits []cluster.Habit, jobs int) {
	same := len(habits) > 0 && len(habits) == len(x.of) && &habits[0] == &x.of[0]
	if n := 1 << max(bits.Len(uint(jobs)), 8); len(x.jobs) < n {
		x.jobs = make([]kin, n)
	}
	if !same {
		x.needs = map[need]int64{}
		for k := range x.jobs {
			x.jobs[k].least = 0
		}
	}
	x.old = x.old[:0]
}

// forget drops the answers for numbers of GPUs for which a job has ended.
func (x *kinds) forget(gpus []int) {
	if len(gpus) == 0 {
		return
	}
	maps.DeleteFunc(x.needs, func(q need, _ int64) bool { return slices.Contains(gpus, q.like.GPUs) })
	for k := range x.jobs {
		if slices.Contains(gpus, x.jobs[k].gpus) {
			x.jobs[k].least = 0
		}
	}
}

// close remembers the habits on which the answers rest; dropped tells that some were too many.
func (x *kinds) close(habits []cluster.Habit, dropped bool) {
	if x.of = habits; dropped {
		x.of = nil
	}
}

// groups returns the groups of jobs whose past tells how much GPU time a job needs: of its type, of its user with as
// many GPUs, and of everybody with as many GPUs. Those that are unknown are empty.
func groups(j *cluster.Job) (groups [3]cluster.JobType) {
	if t, ok := cluster.TypeOf(j); ok {
		groups[0] = t
	}
	groups[1] = cluster.JobType{User: j.User, GPUs: j.Request.GPUs}
	groups[2] = cluster.JobType{GPUs: j.Request.GPUs}
	return groups
}

// ended remembers the GPU time of a job that ended.
func (o *observer) ended(i int) {
	got := o.Records[i].Alloc
	if got == 0 {
		return
	}
	if gpus := o.Snapshot.Cases[i].Job.Request.GPUs; !slices.Contains(o.kinds.old, gpus) {
		o.kinds.old = append(o.kinds.old, gpus)
	}
	last := cluster.JobType{}
	for _, g := range groups(&o.Snapshot.Cases[i].Job) {
		if g.GPUs > 0 && g != last {
			o.habits.Needed(g, o.Now, got)
			last = g
		}
	}
}

// strangers is the number of jobs as which all jobs of everybody weigh, beside those of a user.
const strangers = 3

// Needs returns the GPU time for which a job is expected to end, in seconds of one GPU; see expect.Sum.Next.
func (a *Account) Needs(i int) int64 {
	class := expect.ClassOf(a.Records[i].Alloc)
	if a.habits.Len() == 0 {
		var unknown expect.Sum
		return unknown.Next(class)
	}
	at := kinOf(a, i)
	if at.class != class || at.least == 0 {
		at.class, at.least = class, needed(a, groups(&a.Snapshot.Cases[i].Job), class)
	}
	return at.least
}

// needed is Needs of a job in groups and in a class.
func needed(a *Account, like [3]cluster.JobType, class int) int64 {
	q := need{like[0], class}
	if like[0].GPUs == 0 {
		q.like = like[1]
	}
	if least, ok := a.kinds.needs[q]; ok {
		return least
	}
	var sum expect.Sum
	for k, g := range like {
		most := int64(0)
		if k == len(like)-1 {
			most = strangers
		}
		if h := a.habits.At(a.habits.Find(g)); h != nil && (k == 0 || g != like[k-1]) {
			sum.Add(h.Needed, most)
		}
	}
	least := sum.Next(class)
	a.kinds.needs[q] = least
	return least
}
