package admit

import (
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Need is what a job uses of a limit on GPUs or jobs in use.
type Need struct {
	Limit int   // index into InUse
	Count int64 // GPUs or jobs
	// Most is how much may be in use together with the job when it starts; math.MaxInt64 = another limit decides on the job.
	Most int64
}

// Needs returns what a job uses of each limit on GPUs or jobs in use. They leave room again when other jobs end. why is the rule
// that keeps a waiting job from starting even then, in words; "" = none. A job that waits in several partitions counts in the
// first of them that lets it in.
func Needs(b *Book, j *cluster.Job) (list []Need, why string) {
	if b.rules == nil || len(j.Partitions) == 0 {
		return nil, ""
	}
	d := b.first(j)
	if j.State == cluster.Waiting {
		if d, why = entry(b, j); why == "" {
			if n := b.site.of(j); n != nil {
				why = b.site.refuses(n, j)
			}
		}
		if why != "" {
			return nil, why
		}
	}
	if !b.limits {
		return nil, ""
	}
	for _, at := range d.counts {
		m := &b.meters[at]
		n := amount(j, m.cap.TRES)
		if !m.frees() || n == 0 {
			continue
		}
		x := Need{Limit: at, Count: n, Most: math.MaxInt64}
		if slices.Contains(d.checks, at) {
			x.Most = m.cap.Max
		}
		list = append(list, x)
	}
	return list, ""
}

// entry gives the first partition that lets a waiting job in when other jobs end, or else why none does.
func entry(b *Book, j *cluster.Job) (*door, string) {
	doors, why := b.class(j).doors, ""
	for i := range doors {
		no := lasting(b, &doors[i], j)
		if no == "" {
			return &doors[i], ""
		}
		if why == "" {
			why = no
		}
	}
	return nil, why
}

// lasting gives the rule that keeps a waiting job from starting in a partition also when other jobs end; "" = none. Limits on
// other resources than GPUs and jobs are taken to stay as full as they are.
func lasting(b *Book, d *door, j *cluster.Job) string {
	if d.no != "" {
		return d.no
	}
	if no := d.exceeds(j); no != "" || !b.limits {
		return no
	}
	if no := b.exceeds(d, j); no != "" {
		return no
	}
	for _, at := range d.checks {
		m := &b.meters[at]
		if n := m.asks(j); !m.frees() && !m.spares(n) && m.next+n > m.cap.Max {
			return m.says()
		}
	}
	return ""
}

// InUse returns what running jobs use of the limits, by Need.Limit. Granted jobs that have not started are not counted.
func InUse(b *Book) []int64 {
	use := make([]int64, len(b.meters))
	add := func(j *cluster.Job, count func(tres string) int64) {
		for _, at := range b.first(j).counts {
			use[at] += count(b.meters[at].cap.TRES)
		}
	}
	if !b.limits {
		return use
	}
	for i := range b.rules.Others {
		o := &b.rules.Others[i]
		add(asJob(o), o.Amount)
	}
	for i := range b.facts.Cases {
		if j := &b.facts.Snapshot.Cases[i].Job; b.facts.Cases[i].Live && j.Started() && len(j.Partitions) > 0 {
			add(j, func(tres string) int64 { return amount(j, tres) })
		}
	}
	return use
}

// frees tells whether a limit is on GPUs or jobs in use.
func (m *meter) frees() bool {
	return !m.cap.Minutes() && (m.cap.TRES == "" || strings.HasPrefix(m.cap.TRES, "gres/gpu"))
}
