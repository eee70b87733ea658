package stride

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Server is a node, reduced to what placement needs.
type Server struct {
	Model int // index: 0 is the newest
	GPUs  int
}

// User is the owner of tickets.
type User struct {
	// Tickets are by model: the user's entitlement to its GPUs.
	Tickets []cluster.MicroGPU
}

// Placed is a job with a place.
type Placed struct {
	Key  cluster.JobKey
	User int // index
	On   []Part
	// Speed is the job's throughput on each model; 0 = unknown.
	Speed []float64
	// May lists the models on which it can run; nil = all.
	May []bool
}

// Queued is a job without a place.
type Queued struct {
	Key      cluster.JobKey // ascending by arrival
	User     int
	GPUs     int
	Priority int
	Speed    []float64
	May      []bool
}

// State is the placement of jobs. Nodes of parts are indices into Servers.
type State struct {
	Models  int
	Servers []Server
	Users   []User
	Jobs    []Placed
}

// Choice is the place of a job.
type Choice struct {
	Job     int // index
	Model   int
	On      []Part
	Tickets cluster.MicroGPU // of the job there (eq. 3)
}

// gpus is the size of a job.
func (p *Placed) gpus() int {
	n := 0
	for _, part := range p.On {
		n += part.GPUs
	}
	return n
}

// model gives the model on which a job runs; -1 = none.
func (s *State) model(p *Placed) int {
	if len(p.On) == 0 {
		return -1
	}
	return s.Servers[p.On[0].Node].Model
}

// wanted counts the GPUs that each user's jobs want, by user, then model.
func (s *State) wanted() [][]int {
	wanted := make([][]int, len(s.Users))
	for u := range wanted {
		wanted[u] = make([]int, s.Models)
	}
	for i := range s.Jobs {
		if m := s.model(&s.Jobs[i]); m >= 0 {
			wanted[s.Jobs[i].User][m] += s.Jobs[i].gpus()
		}
	}
	return wanted
}

// tickets gives a user's entitlement to a model.
func (s *State) tickets(user, model int) cluster.MicroGPU {
	if t := s.Users[user].Tickets; model < len(t) {
		return t[model]
	}
	return 0
}

// Strides gives the increase of each job's pass per quantum.
func (s *State) Strides() []Pass {
	wanted := s.wanted()
	strides := make([]Pass, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if m := s.model(j); m >= 0 {
			strides[i] = Stride(wanted[j.User][m], s.tickets(j.User, m))
		}
	}
	return strides
}

// loads gives the tickets per GPU of each server (eq. 2).
func (s *State) loads(wanted [][]int) []cluster.MicroGPU {
	loads := make([]cluster.MicroGPU, len(s.Servers))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		m := s.model(j)
		for _, p := range j.On {
			loads[p.Node] += cluster.MicroGPU(p.GPUs) * PerGPU(wanted[j.User][m], s.tickets(j.User, m))
		}
	}
	for n := range loads {
		loads[n] /= cluster.MicroGPU(max(s.Servers[n].GPUs, 1))
	}
	return loads
}

// Place chooses the next job and its place (Algorithm 2). The user is the one with the least for
// its tickets, the job its earliest one of highest priority. The model is the one with the
// highest throughput (§3.4), or the newest with tickets left if throughputs are unknown. The
// servers are those with the lowest load. It returns false if no job fits.
func (s *State) Place(queue []Queued) (Choice, bool) {
	wanted := s.wanted()
	order := make([]int, len(queue))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &queue[a], &queue[b]
		if x.User != y.User {
			return cmp.Or(s.poorer(wanted, x.User, y.User), cmp.Compare(x.User, y.User))
		}
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Key, y.Key))
	})
	for _, i := range order {
		q := &queue[i]
		m := s.bestModel(q, wanted[q.User])
		if m < 0 {
			continue
		}
		wanted[q.User][m] += q.GPUs
		tickets := PerGPU(wanted[q.User][m], s.tickets(q.User, m)) * cluster.MicroGPU(q.GPUs)
		return Choice{Job: i, Model: m, On: s.spot(s.loads(wanted), m, q.GPUs), Tickets: tickets}, true
	}
	return Choice{}, false
}

// poorer compares two users by what they have for their tickets.
func (s *State) poorer(wanted [][]int, a, b int) int {
	sum := func(u int) (gpus uint64, tickets uint64) {
		for m, n := range wanted[u] {
			gpus += uint64(n)
			tickets += uint64(max(s.tickets(u, m), 0))
		}
		return gpus, tickets
	}
	ga, ta := sum(a)
	gb, tb := sum(b)
	if ta == 0 || tb == 0 {
		return cmp.Compare(tb, ta)
	}
	hi, lo := bits.Mul64(ga, tb)
	high, low := bits.Mul64(gb, ta)
	return cmp.Or(cmp.Compare(hi, high), cmp.Compare(lo, low))
}

// bestModel gives the model with the highest throughput for a job: the paper's least mini-batch
// time over tickets per GPU, where a GPU counts at most one, as no job runs more than all the
// time. Ties go to the model with most tickets per GPU, then to the newest. An unknown job goes
// to the newest model where its user has a ticket left for each of its GPUs, else to the newest.
// -1 = it fits on none.
func (s *State) bestModel(q *Queued, wanted []int) int {
	best, rate, share := -1, 0.0, cluster.MicroGPU(0)
	first, open := -1, -1
	for m := range s.Models {
		if !may(q.May, m) || s.spot(make([]cluster.MicroGPU, len(s.Servers)), m, q.GPUs) == nil {
			continue
		}
		perGPU := PerGPU(wanted[m]+q.GPUs, s.tickets(q.User, m))
		if first < 0 {
			first = m
		}
		if open < 0 && perGPU >= cluster.WholeGPU {
			open = m
		}
		r := rateOf(q.Speed, m, perGPU)
		if r > rate || r == rate && r > 0 && perGPU > share {
			best, rate, share = m, r, perGPU
		}
	}
	switch {
	case best >= 0:
		return best
	case open >= 0:
		return open
	}
	return first
}

// rateOf is a job's throughput on a model with so many tickets per GPU.
func rateOf(speed []float64, model int, perGPU cluster.MicroGPU) float64 {
	if model >= len(speed) || !(speed[model] > 0) || math.IsInf(speed[model], 1) {
		return 0
	}
	return speed[model] * float64(min(perGPU, cluster.WholeGPU)) / float64(cluster.WholeGPU)
}

func may(models []bool, m int) bool { return models == nil || m < len(models) && models[m] }

// spot gives the servers of a model for so many GPUs: the large enough one with the lowest load;
// else several, lowest load first. nil = not enough.
func (s *State) spot(loads []cluster.MicroGPU, model, gpus int) []Part {
	var order []int
	for n := range s.Servers {
		if s.Servers[n].Model == model {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loads[a], loads[b]) })
	for _, n := range order {
		if s.Servers[n].GPUs >= gpus {
			return []Part{{n, gpus}}
		}
	}
	var on []Part
	for _, n := range order {
		g := min(gpus, s.Servers[n].GPUs)
		if g > 0 {
			on = append(on, Part{n, g})
			gpus -= g
		}
		if gpus == 0 {
			return on
		}
	}
	return nil
}

// Balance moves a small job from a server with a high load to one with a low load of the same
// model, if they differ by more than the threshold (§3.5). It takes the two with the largest
// difference, and the job that minimises the higher of their loads. It returns false if loads are
// balanced. Servers stay packed (§3.3): no move leaves GPUs idle whenever a gang pauses.
func (s *State) Balance(threshold cluster.MicroGPU) (Choice, bool) {
	wanted := s.wanted()
	loads := s.loads(wanted)
	small := make([][]int, len(s.Servers)) // jobs by server
	for i := range s.Jobs {
		if on := s.Jobs[i].On; len(on) == 1 {
			small[on[0].Node] = append(small[on[0].Node], i)
		}
	}
	order := make([]int, 0, len(s.Servers))
	for n := range s.Servers {
		if s.Servers[n].GPUs > 0 {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loads[a], loads[b]) })
	var best Choice
	most := max(threshold, 0)
	for h := len(order) - 1; h >= 0; h-- {
		for _, lo := range order[:h] {
			hi := order[h]
			if loads[hi]-loads[lo] <= most {
				break
			}
			if s.Servers[hi].Model != s.Servers[lo].Model {
				continue
			}
			if c, ok := s.lighten(hi, lo, small, wanted, loads); ok {
				best, most = c, loads[hi]-loads[lo]
			}
		}
	}
	return best, best.On != nil
}

// lighten finds the job whose move from one server to another minimises the higher of their
// loads, and leaves both as packed as before.
func (s *State) lighten(hi, lo int, small [][]int, wanted [][]int, loads []cluster.MicroGPU) (best Choice, ok bool) {
	least := loads[hi] - 1 // loads are rounded; so the sorted loads decrease with each move, and moves end
	m := s.Servers[hi].Model
	for _, i := range small[hi] {
		j := &s.Jobs[i]
		g := j.On[0].GPUs
		tickets := PerGPU(wanted[j.User][m], s.tickets(j.User, m)) * cluster.MicroGPU(g)
		after := max(loads[hi]-tickets/cluster.MicroGPU(s.Servers[hi].GPUs), loads[lo]+tickets/cluster.MicroGPU(s.Servers[lo].GPUs))
		if g > s.Servers[lo].GPUs || after > least || after == least && (!ok || j.Key > s.Jobs[best.Job].Key) {
			continue
		}
		if s.packed(hi, small[hi], -1, -1) && !s.packed(hi, small[hi], i, -1) || s.packed(lo, small[lo], -1, -1) && !s.packed(lo, small[lo], -1, i) {
			continue
		}
		least, ok = after, true
		best = Choice{Job: i, Model: m, On: []Part{{lo, g}}, Tickets: tickets}
	}
	return best, ok
}

// packed tells whether a server's small jobs, without one and with another (-1 = none), keep its
// GPUs busy or all run, whichever of them pauses.
func (s *State) packed(server int, small []int, without, with int) bool {
	sum, largest := 0, 0
	count := func(i int) {
		g := s.Jobs[i].gpus()
		sum += g
		largest = max(largest, g)
	}
	for _, i := range small {
		if i != without {
			count(i)
		}
	}
	if with >= 0 {
		count(with)
	}
	return sum <= s.Servers[server].GPUs || sum-largest >= s.Servers[server].GPUs
}

// Better moves one job to another model: the one with the largest gain, if that exceeds the
// threshold, relative to its present throughput (§3.5). Only known speeds count.
func (s *State) Better(threshold float64) (Choice, bool) {
	wanted := s.wanted()
	var best Choice
	most := 1 + max(threshold, 0)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		from := s.model(j)
		if from < 0 {
			continue
		}
		now := rateOf(j.Speed, from, PerGPU(wanted[j.User][from], s.tickets(j.User, from)))
		for m := range s.Models {
			if m == from || now == 0 || !may(j.May, m) {
				continue
			}
			perGPU := PerGPU(wanted[j.User][m]+j.gpus(), s.tickets(j.User, m))
			gain := rateOf(j.Speed, m, perGPU) / now
			if gain > most || gain == most && best.On != nil && j.Key < s.Jobs[best.Job].Key {
				if on := s.landing(j, m, wanted); on != nil {
					best, most = Choice{Job: i, Model: m, On: on, Tickets: perGPU * cluster.MicroGPU(j.gpus())}, gain
				}
			}
		}
	}
	return best, best.On != nil
}

// landing gives the servers of another model for a job, by their loads with it.
func (s *State) landing(j *Placed, model int, wanted [][]int) []Part {
	wanted[j.User][model] += j.gpus()
	defer func() { wanted[j.User][model] -= j.gpus() }()
	return s.spot(s.loads(wanted), model, j.gpus())
}
