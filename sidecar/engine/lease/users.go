package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// UserTurn is a user while the jobs of its tenant are ordered.
type UserTurn struct {
	// Behind is the GPU time by which it is behind its equal part, with every lease in force, and every job that is
	// ordered, charged to its end.
	Behind cluster.GPUTime
	last   cluster.GPUTime // at the last of its jobs
	any    bool            // it has one
}

// next returns the turn of the user's next job, and charges it. The turns of a user's jobs never rise, so that they
// stay in their order. ahead is GPU time by which the job goes earlier.
func (u *UserTurn) next(gpus cluster.MicroGPU, term cluster.Span, ahead cluster.GPUTime) cluster.GPUTime {
	turn := u.Behind + ahead
	if u.any {
		turn = min(turn, u.last)
	}
	u.last, u.any = turn, true
	u.Behind -= gpus.Over(term)
	return turn
}

// OrderUsers sorts the candidates of a tenant, given by their indices, so that its users share it equally: the user
// that is furthest behind its equal part goes first, and each job is charged to its user in turn. Between the jobs of a
// user, the order is that of Order, with an equal part of newGPUs for each user. A running job goes before
// waiting ones of users that are further behind by at most the threshold. Urgent jobs, and those of a higher level, go
// first whoever their user is. users is by Candidate.User; the turns of those in jobs are used up.
func (s *Sorter) OrderUsers(cs []Candidate, jobs []int, newGPUs cluster.MicroGPU, users []UserTurn, settings *cluster.Settings) {
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(cs[a].Priority.User, cs[b].Priority.User) })
	var each [][]int
	for lo, hi := 0, 1; hi <= len(jobs); hi++ {
		if hi == len(jobs) || cs[jobs[hi]].Priority.User != cs[jobs[lo]].Priority.User {
			each, lo = append(each, jobs[lo:hi]), hi
		}
	}
	for _, of := range each {
		s.Order(cs, of, newGPUs/cluster.MicroGPU(len(each)))
	}
	if len(each) > 1 {
		TakeTurns(cs, jobs, users, settings)
	}
}

// TakeTurns merges the candidates of a tenant as OrderUsers does; the order of each user's jobs stays. It sets the
// candidates' UserSide.
func TakeTurns(cs []Candidate, jobs []int, users []UserTurn, s *cluster.Settings) {
	line := make([]turn, len(jobs))
	for at, i := range jobs {
		k := &cs[i]
		ahead := cluster.GPUTime(0)
		if k.Running {
			ahead = k.Counts().Over(s.Threshold)
		}
		own := users[k.Priority.User].next(k.Counts(), s.Term, ahead)
		switch half := k.Counts().Over(s.Term) / 2; {
		case own >= half:
			k.Priority.UserSide = 1
		case own < -half:
			k.Priority.UserSide = -1
		default:
			k.Priority.UserSide = 0
		}
		line[at] = turnOf(k, i)
		line[at].class, line[at].rho = class(k), cluster.Rho(-own)
	}
	slices.SortStableFunc(line, turn.compare)
	for at := range line {
		jobs[at] = line[at].candidate
	}
}
