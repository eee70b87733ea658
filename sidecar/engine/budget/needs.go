package budget

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
)

// need is what the GPU time that a job is expected to need depends on.
type need struct {
	like  cluster.JobType
	class int
}

// answer is what jobs were found to need. Few groups of jobs come up again and again, and a map is slower.
type answer struct {
	need
	least int64
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
	like := groups(&a.Snapshot.Cases[i].Job)
	q := need{like[0], class}
	if like[0].GPUs == 0 {
		q.like = like[1]
	}
	st := &a.Jobs[i]
	at := &a.asked[uint(int(st.Tenant)*31+int(st.User)*17+q.like.GPUs*7+q.class)%uint(len(a.asked))]
	if at.need == q && q.like.GPUs > 0 { // else it may be unused
		return at.least
	}
	if least, ok := a.needs[q]; ok {
		*at = answer{q, least}
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
	least := sum.Next(q.class)
	if a.needs == nil {
		a.needs = map[need]int64{}
	}
	a.needs[q] = least
	*at = answer{q, least}
	return least
}
