package forecast

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Past is what a forecast learns from: jobs of the last days.
type Past struct {
	// From is the moment since which all arrivals are in Jobs.
	From cluster.Instant
	Jobs []PastJob
}

// PastJob is a job of the past, or of the present.
type PastJob struct {
	// Job has the request and what tells its type: user, name, command, work, partitions, limit.
	Job    cluster.Job
	Tenant string
	Submit cluster.Instant // its first submission
	Ran    cluster.Span    // useful run time so far, as time on the reference model
	Ended  bool            // by itself: Ran is its run time. Else it is shorter.
}

// Remember adds ended jobs of the time before From, by their attempts in the accounting history. They tell run times, not arrivals.
func (p *Past) Remember(attempts []cluster.Attempt) {
	at := map[cluster.JobID]int{}
	for i := range attempts {
		a := &attempts[i]
		gpus := 0
		for _, g := range a.GPUs {
			gpus += g.Size.Devices
		}
		if a.End == 0 || a.End > p.From || gpus == 0 {
			continue
		}
		k, ok := at[a.ID]
		if !ok {
			k, at[a.ID] = len(p.Jobs), len(p.Jobs)
			p.Jobs = append(p.Jobs, PastJob{Tenant: a.Tenant, Submit: a.Submit, Job: cluster.Job{ID: a.ID, User: a.User, Account: a.Account, Name: a.Name, Work: a.Work,
				Request: cluster.Request{Size: cluster.Whole(gpus)}}})
		}
		j := &p.Jobs[k]
		j.Submit, j.Ran = min(j.Submit, a.Submit), j.Ran+max(a.End.Sub(a.Start)-a.Suspend, 0)
		j.Ended = j.Ended || a.Outcome == "COMPLETED" || a.Outcome == "FAILED" || a.Outcome == "TIMEOUT" || a.Outcome == "OUT_OF_MEMORY" || a.Outcome == "CANCELLED"
	}
}

// levels is the number of groups of run times that a job belongs to.
const levels = 5

// kind tells which jobs have similar run times.
type kind struct {
	tenant, user, what string
	gpus               int
}

// kindOf gives the kind of a job of a tenant.
func kindOf(j *cluster.Job, tenant string) kind {
	k := kind{tenant: tenant, user: j.User, what: j.Work, gpus: j.Request.Size.Devices}
	if t, ok := cluster.TypeOf(j); ok && k.what == "" {
		k.what = t.Command
	}
	return k
}

// keys names the groups of a kind, the closest first: its type, its user with as many GPUs, its user, its tenant, everybody.
func (k *kind) keys() [levels]string {
	gpus := strconv.Itoa(k.gpus)
	out := [levels]string{"", "u" + k.user + "\x00" + gpus, "U" + k.user, "t" + k.tenant, "*"}
	if k.what != "" {
		out[0] = "w" + k.user + "\x00" + k.what + "\x00" + gpus
	}
	return out
}

// own gives the groups of a kind that are of its user alone, the closest first.
func (k *kind) own() []string {
	keys := k.keys()
	return keys[:3]
}

// kept is the number of jobs that a group remembers.
const kept = 500

// length is how long a job ran; less than it would have if it was cut off or still runs.
type length struct {
	ran   cluster.Span
	ended bool
}

// lengths is the last jobs of a group.
type lengths struct {
	jobs   []length       // in the order of their submission
	sorted []cluster.Span // run times
}

// beyond counts the jobs that ran longer than a time.
func (l *lengths) beyond(ran cluster.Span) int {
	at, found := slices.BinarySearch(l.sorted, ran)
	for found && at < len(l.sorted) && l.sorted[at] == ran {
		at++
	}
	return len(l.sorted) - at
}

// history gives run times and arrivals by the past.
type history struct {
	groups []lengths
	index  map[string]int32
	days   [][]arrival // the past by days, the last day first; each by time
	day    cluster.Span
}

// arrival is a job that arrives at some time of a day.
type arrival struct {
	at   cluster.Span // since the day's begin
	job  job
	ran  cluster.Span
	over bool // ran is its run time
}

// learn makes a history of the jobs known at a moment.
func learn(p *Past) *history {
	h := &history{index: map[string]int32{}}
	jobs := slices.Clone(p.Jobs)
	slices.SortStableFunc(jobs, func(a, b PastJob) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := range jobs {
		x := &jobs[i]
		if x.Ran <= 0 {
			continue
		}
		k := kindOf(&x.Job, x.Tenant)
		for _, key := range k.keys() {
			if key == "" {
				continue
			}
			at, ok := h.index[key]
			if !ok {
				at = int32(len(h.groups))
				h.index[key], h.groups = at, append(h.groups, lengths{})
			}
			h.groups[at].jobs = append(h.groups[at].jobs, length{x.Ran, x.Ended})
		}
	}
	for i := range h.groups {
		g := &h.groups[i]
		g.jobs = g.jobs[max(len(g.jobs)-kept, 0):]
		for _, x := range g.jobs {
			g.sorted = append(g.sorted, x.ran)
		}
		slices.Sort(g.sorted)
	}
	return h
}

// like gives the groups of a kind, the closest first; -1 = none.
func (h *history) like(k kind) (out [levels]int32) {
	for i, key := range k.keys() {
		out[i] = -1
		if at, ok := h.index[key]; ok && key != "" {
			out[i] = at
		}
	}
	return out
}

// mostDays is how many days of arrivals are repeated at most.
const mostDays = 14

// arrive cuts the past into days that end at the present, for jobs that the site can serve. In less than a day too little is known: then
// no jobs arrive.
func (h *history) arrive(p *Past, s *site) {
	h.day = cluster.Day
	h.days = make([][]arrival, max(min(int(s.now.Sub(p.From)/h.day), mostDays), 0))
	for i := range p.Jobs {
		x := &p.Jobs[i]
		back := s.now.Sub(x.Submit)
		d := int((back - 1) / h.day)
		if back <= 0 || d >= len(h.days) {
			continue
		}
		if a, ok := h.arrivalOf(x, s); ok {
			a.at = cluster.Span(d+1)*h.day - back
			h.days[d] = append(h.days[d], a)
		}
	}
	for _, d := range h.days {
		slices.SortStableFunc(d, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	}
}

// await makes known arrivals the only day, as long as the horizon.
func (h *history) await(future []PastJob, s *site, horizon cluster.Span) {
	var day []arrival
	for i := range future {
		if a, ok := h.arrivalOf(&future[i], s); ok && future[i].Submit > s.now {
			a.at = future[i].Submit.Sub(s.now)
			day = append(day, a)
		}
	}
	slices.SortStableFunc(day, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	h.day, h.days = horizon, [][]arrival{day}
}

// arrivalOf gives a job as it may arrive; false = the site cannot serve it.
func (h *history) arrivalOf(x *PastJob, s *site) (arrival, bool) {
	t, known := s.named[x.Tenant]
	k := kindOf(&x.Job, x.Tenant)
	pace := s.paceLike(k)
	at, ok := s.shapeOf(&x.Job.Request, x.Job.Partitions, pace, 0)
	a := arrival{job: job{tenant: t, shape: at, quota: s.arrivalQuota(x), gpus: s.sharing.units(x.Job.Request.Size), order: s.order(&x.Job), pace: pace, like: h.like(k), manner: s.mannerOf(&x.Job, nil)}, ran: x.Ran, over: x.Ended}
	if ok {
		s.limited(&a.job, x.Job.Limit)
	}
	return a, known && ok
}

// strangeness is the number of jobs as which all wider groups together weigh beside a group.
const strangeness = 1

// least is the shortest time that jobs run on which outlived all others.
const least = 10 * cluster.Minute

// total draws the run time of a job that has run for some time. run is the number of the run, from which its blocks follow.
func (h *history) total(rng *rand.Rand, run uint64, like *[levels]int32, ran cluster.Span) cluster.Span {
	for at := 0; at < levels; at++ {
		g := like[at]
		if g < 0 {
			continue
		}
		l := &h.groups[g]
		n := l.beyond(ran)
		if n == 0 || at < levels-1 && rng.IntN(n+strangeness) >= n {
			continue
		}
		x := l.draw(rng, run^uint64(g)*0x9e3779b97f4a7c15, ran, n)
		if x.ended {
			return x.ran
		}
		ran = x.ran // it runs longer than that
		at--
	}
	// Nobody ran longer: half of such jobs run as long again (Pareto's law with exponent 1).
	return cluster.Span(min(float64(max(ran, least))/(1-rng.Float64()), float64(max(ran, least))*50))
}

// tries is how often a block is drawn from for a job that runs longer than a time.
const tries = 12

// draw draws one of the n jobs that ran longer than a time, from blocks of successive jobs.
func (l *lengths) draw(rng *rand.Rand, seed uint64, ran cluster.Span, n int) length {
	size := 1
	for size*size < len(l.jobs) {
		size++
	}
	for range tries {
		u := rng.IntN(len(l.jobs))
		begin := mix(seed+uint64(u/size)) % uint64(len(l.jobs))
		if x := l.jobs[(int(begin)+u%size)%len(l.jobs)]; x.ran > ran {
			return x
		}
	}
	want := l.sorted[len(l.sorted)-1-rng.IntN(n)]
	for _, x := range l.jobs {
		if x.ran == want {
			return x
		}
	}
	return length{want, true}
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
