package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// licenses is the licences that waiting jobs ask for, and what is promised of them in a round. A running job has its own: it
// asks for none, and no lease ends for licences.
type licenses struct {
	now    cluster.Instant
	counts []license
	needs  map[string]*needs
	last   [64]*needs // cache: the last request of similar length and end
}

// license is the licences of one name.
type license struct {
	*cluster.LicenseCount
	used int64 // by running jobs and grants
	want int64 // with the demand that counts as due
}

// needs is a request for licences whose counts are known.
type needs struct {
	text   string
	either bool // one of them is enough
	list   []need
	says   string // cache: why it is refused, in words, as of said
	said   []int64
}

// need is a number of licences of one name.
type need struct {
	at int // license
	n  int64
}

// open takes the licences of a round.
func (x *licenses) open(now cluster.Instant, counts []cluster.LicenseCount) {
	x.now, x.counts = now, x.counts[:0]
	for i := range counts {
		x.counts = append(x.counts, license{LicenseCount: &counts[i], used: counts[i].Used})
	}
	clear(x.needs)
	clear(x.last[:])
}

// of gives the licences that a job must be given to start; nil = none whose counts are known.
func (x *licenses) of(j *cluster.Job) *needs {
	if len(x.counts) == 0 || j.Licenses == "" || j.State != cluster.Waiting {
		return nil
	}
	n := len(j.Licenses)
	at := &x.last[(n+7*int(j.Licenses[n-1])+int(j.Licenses[0]))%len(x.last)]
	if *at == nil || (*at).text != j.Licenses {
		if *at = x.needs[j.Licenses]; *at == nil {
			*at = x.read(j.Licenses)
		}
	}
	if len((*at).list) == 0 {
		return nil
	}
	return *at
}

// read reads a request. One of alternatives without a count cannot be judged.
func (x *licenses) read(request string) *needs {
	out := &needs{text: request}
	var all []cluster.LicenseNeed
	all, out.either = cluster.ParseLicenses(request)
	for _, l := range all {
		at, known := slices.BinarySearchFunc(x.counts, l.Name, func(c license, name string) int { return strings.Compare(c.Name, name) })
		if known {
			out.list = append(out.list, need{at, l.Count})
		} else if out.either {
			out.list = nil
			break
		}
	}
	if x.needs == nil {
		x.needs = map[string]*needs{}
	}
	x.needs[request] = out
	return out
}

// reserved gives how many licences other jobs' reservations keep from a job, as slurmctld counts them: all that overlap with its
// run, also those in use by jobs of the reservation.
func (x *licenses) reserved(l *license, j *cluster.Job) int64 {
	n, limit := int64(0), j.ShortestLimit()
	for i := range l.Reserved {
		if v := &l.Reserved[i]; v.End > x.now && (limit == 0 || v.Start < x.now.Add(limit)) && (v.Reservation != j.Reservation || j.Reservation == "") {
			n += v.Count
		}
	}
	return n
}

// free gives how many licences of one name a job could have beside those in use.
func (x *licenses) free(l *license, j *cluster.Job, used int64) int64 {
	return l.Total - l.Deficit - used - x.reserved(l, j)
}

// room tells whether a job's licences are free, beside those promised to others.
func (x *licenses) room(n *needs, j *cluster.Job) bool {
	return x.first(n, j, func(l *license) int64 { return l.used }) >= 0
}

// first gives the first alternative of a job that is free, or 0 if all that it asks for are free; -1 = they are not.
func (x *licenses) first(n *needs, j *cluster.Job, used func(*license) int64) int {
	for i := range n.list {
		l := &x.counts[n.list[i].at]
		switch enough := x.free(l, j, used(l)) >= n.list[i].n; {
		case enough && n.either:
			return i
		case !enough && !n.either:
			return -1
		}
	}
	if n.either {
		return -1
	}
	return 0
}

// take counts a job's licences as used. Of alternatives Slurm takes the first that is free.
func (x *licenses) take(n *needs, j *cluster.Job) {
	x.add(n, x.first(n, j, func(l *license) int64 { return l.used }), func(l *license) *int64 { return &l.used })
}

// add adds a job's licences to a sum, of alternatives only the one at first.
func (x *licenses) add(n *needs, first int, sum func(*license) *int64) {
	for i := range n.list {
		if !n.either || i == max(first, 0) {
			*sum(&x.counts[n.list[i].at]) += n.list[i].n
		}
	}
}

// wants tells whether the licences of a waiting job are free beside those of jobs whose demand counts already.
func (x *licenses) wants(n *needs, j *cluster.Job) (first int, ok bool) {
	first = x.first(n, j, func(l *license) int64 { return l.want })
	return first, first >= 0
}

// refuses gives in words which licences of a job are not free; "" = they are.
func (x *licenses) refuses(n *needs, j *cluster.Job) string {
	if x.room(n, j) {
		return ""
	}
	now := make([]int64, 0, 8) // stays on the stack
	for i := range n.list {
		l := &x.counts[n.list[i].at]
		now = append(now, l.used, x.reserved(l, j))
	}
	if slices.Equal(now, n.said) {
		return n.says
	}
	n.said = append(n.said[:0], now...)
	var parts []string
	remote := false
	for _, want := range n.list {
		l := &x.counts[want.at]
		if n.either || x.free(l, j, l.used) < want.n {
			parts = append(parts, x.words(l, j))
			remote = remote || l.Remote
		}
	}
	asks := n.text
	if !n.either {
		asks = x.asks(n, j)
	}
	n.says = "licence " + strings.Join(parts, "; licence ") + "; your job asks for " + asks
	if remote {
		n.says += changes
	} else {
		n.says += "; an administrator can change their number (Licenses in slurm.conf)"
	}
	return n.says
}

// asks writes the counts that are not free, in the order of words.
func (x *licenses) asks(n *needs, j *cluster.Job) string {
	var counts []string
	for _, want := range n.list {
		if l := &x.counts[want.at]; x.free(l, j, l.used) < want.n {
			counts = append(counts, fmt.Sprint(want.n))
		}
	}
	return strings.Join(counts, " and ")
}

// words writes what is not free of a licence: "matlab: 4 of 4 in use".
func (x *licenses) words(l *license, j *cluster.Job) string {
	out := fmt.Sprintf("%s: %d of %d in use", l.Name, l.used, l.Total)
	if l.used > l.Used {
		out += " or granted"
	}
	if l.Deficit > 0 {
		out += fmt.Sprintf(", %d in use outside of Slurm", l.Deficit)
	}
	if n := x.reserved(l, j); n > 0 {
		out += fmt.Sprintf(", %d reserved", n)
	}
	return out
}
