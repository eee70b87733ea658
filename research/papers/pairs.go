package papers

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
)

// pairer sets the pairs of jobs that may share GPUs, in next.pairs, and tells whether the policy
// must divide again. m.now is the previous round.
type pairer func(m *mechanism, r *round, next *tally) bool

// couple is two jobs, the one with the smaller key first.
type couple [2]cluster.JobKey

func (r *round) key(k int) cluster.JobKey { return r.Field.In.Records[r.Jobs[k].Case].Key }
func (r *round) id(k int) cluster.JobID   { return r.Snapshot.Cases[r.Jobs[k].Case].Job.ID }

// together gives the throughputs of two jobs on the same GPUs, a before b in the round; false if
// they cannot share any.
func (m *mechanism) together(r *round, next *tally, a, b int) (policy.Pair, bool) {
	q := policy.Pair{A: a, B: b}
	x, y := &r.Jobs[a], &r.Jobs[b]
	if x.GPUs != y.GPUs || !x.Movable || !y.Movable || stays(x) || stays(y) {
		return q, false
	}
	both := make([]float64, 2*r.Pools)
	q.SpeedA, q.SpeedB = both[:r.Pools], both[r.Pools:]
	some := false
	for p := range r.Pools {
		if !slices.Contains(next.may[a], p) || !slices.Contains(next.may[b], p) || m.speed(r, x, p) == 0 || m.speed(r, y, p) == 0 {
			continue
		}
		q.SpeedA[p], q.SpeedB[p] = m.beside(r, a, b, p, false)
		some = some || q.SpeedA[p] > 0
	}
	return q, some
}

// beside gives the throughputs of two jobs on the same GPUs of a pool; met = measured there.
func (m *mechanism) beside(r *round, a, b, pool int, met bool) (float64, float64) {
	return m.told.Beside(&r.Snapshot.Cases[r.Jobs[a].Case].Job, &r.Snapshot.Cases[r.Jobs[b].Case].Job, r.Field.In.Pools[pool], met)
}

// met gives the pairs that shared GPUs in the previous round, with the pool.
func (m *mechanism) met(r *round) map[couple]int {
	out := map[couple]int{}
	for k := range r.Jobs {
		j := &r.Jobs[k]
		if i, ok := m.now.hosts[r.key(k)]; ok && j.Runs && r.on(j) >= 0 {
			out[couple{m.now.rows[i].Job, m.now.rows[i].With}] = r.on(j)
		}
	}
	return out
}

// worth gives the combined throughput of two jobs on a pool, each relative to its throughput
// alone: above 1 sharing beats alternating.
func (m *mechanism) worth(r *round, a, b, pool int, met bool) float64 {
	x, y := m.beside(r, a, b, pool, met)
	if x == 0 || y == 0 {
		return 0
	}
	return x/m.speed(r, &r.Jobs[a], pool) + y/m.speed(r, &r.Jobs[b], pool)
}

// everyPair gives all pairs that should gain from sharing on some model: Gavel's space sharing
// (§3.1). Measured throughputs replace expected ones (§6).
func everyPair(m *mechanism, r *round, next *tally) bool {
	now := make([]int, len(m.now.at)) // rows, by previous row; -1 = gone
	known := make([]bool, len(r.Jobs))
	for key, i := range m.now.at {
		now[i] = -1
		if k, ok := next.at[key]; ok {
			known[k] = true
			if !stays(&r.Jobs[k]) {
				now[i] = k
			}
		}
	}
	met, changed := m.met(r), false
	for _, q := range m.now.pairs {
		if q.A, q.B = now[q.A], now[q.B]; q.A < 0 || q.B < 0 {
			continue
		}
		if p, ok := met[couple{r.key(q.A), r.key(q.B)}]; ok {
			if a, b := m.beside(r, q.A, q.B, p, true); a != q.SpeedA[p] || b != q.SpeedB[p] {
				q.SpeedA, q.SpeedB = slices.Clone(q.SpeedA), slices.Clone(q.SpeedB)
				q.SpeedA[p], q.SpeedB[p] = a, b
				changed = true
			}
		}
		next.pairs = append(next.pairs, q)
	}
	for b := range r.Jobs {
		for a := range b {
			if known[a] && known[b] {
				continue
			}
			q, ok := m.together(r, next, a, b)
			for p := 0; ok && p < r.Pools; p++ {
				if q.SpeedA[p] > 0 && m.worth(r, a, b, p, false) > 1 {
					next.pairs = append(next.pairs, q)
					break
				}
			}
		}
	}
	return changed
}

// keep copies the rows of pairs whose jobs still exist, and extends their time. It gives the new
// row by the old one.
func (t *tally) keep(was *tally, gone cluster.Span) map[int]int {
	moved := map[int]int{}
	for i := len(was.at); i < len(was.rows); i++ {
		row := &was.rows[i]
		_, a := t.at[row.Job]
		_, b := t.at[row.With]
		if a && b {
			moved[i] = len(t.rows)
			t.rows = append(t.rows, row.After(gone))
		}
	}
	return moved
}

// share gives the pairs their fractions of time. Only pairs with a fraction have a row.
func (t *tally) share(r *round, time [][]float64) {
	before := map[couple]rounds.Row{}
	for _, row := range t.rows[len(t.at):] {
		before[couple{row.Job, row.With}] = row
	}
	t.rows = t.rows[:len(t.at)]
	for i, part := range time {
		if slices.Max(part) == 0 {
			continue
		}
		q := t.pairs[i]
		a, b := &t.rows[q.A], &t.rows[q.B]
		row, ok := before[couple{a.Job, b.Job}]
		if !ok {
			row = newRow(r, &r.Jobs[q.A])
			row.With, row.First = b.Job, max(a.First, b.First)
		}
		row.Share = part
		t.rows = append(t.rows, row)
	}
}

// packing is Gandiva's space sharing as Gavel's evaluation ran it (§7.3, §8; policies/gandiva.py
// of the authors' code). If there are more jobs than GPUs, all single jobs are paired at random,
// with equal numbers of GPUs. A pair is separated only if one of the two cannot share a model at
// all, or if their total throughput over all models is below that of one job alone on one. Tried
// pairs are not remembered. (Their paper says "until a combination that improves performance is
// found".)
type packing struct {
	with map[cluster.JobKey]cluster.JobKey // in both directions
}

func newPacking() pairer {
	g := &packing{with: map[cluster.JobKey]cluster.JobKey{}}
	return g.pair
}

// part separates a pair.
func (g *packing) part(a cluster.JobKey) {
	delete(g.with, g.with[a])
	delete(g.with, a)
}

func (g *packing) pair(m *mechanism, r *round, next *tally) bool {
	gpus, wanted := 0, 0
	for _, n := range next.gpus {
		gpus += n
	}
	for k := range r.Jobs {
		wanted += r.Jobs[k].GPUs
	}
	if g.judge(m, r, next); wanted > gpus {
		var single []int
		for b := range r.Jobs {
			with, ok := g.with[r.key(b)]
			if !ok {
				single = append(single, b)
			} else if a := next.at[with]; a < b {
				if q, ok := m.together(r, next, a, b); ok {
					next.pairs = append(next.pairs, q)
				}
			}
		}
		g.group(m, r, next, single)
	}
	return !slices.Equal(next.couples(), m.now.couples())
}

// group draws as many pairs of single jobs as there are single jobs. Jobs that cannot share stay
// alone.
func (g *packing) group(m *mechanism, r *round, next *tally, single []int) {
	lot := rand.New(rand.NewPCG(uint64(r.Now), 0))
	for n := len(single); n > 0 && len(single) > 1; n-- {
		i := lot.IntN(len(single))
		k := (i + 1 + lot.IntN(len(single)-1)) % len(single)
		a, b := min(single[i], single[k]), max(single[i], single[k])
		if q, ok := m.together(r, next, a, b); ok {
			g.with[r.key(a)], g.with[r.key(b)] = r.key(b), r.key(a)
			next.pairs = append(next.pairs, q)
			single = slices.DeleteFunc(single, func(x int) bool { return x == a || x == b })
		}
	}
}

// couples lists the pairs, sorted.
func (t *tally) couples() []couple {
	var out []couple
	for _, q := range t.pairs {
		out = append(out, couple{t.rows[q.A].Job, t.rows[q.B].Job})
	}
	slices.SortFunc(out, func(a, b couple) int { return slices.Compare(a[:], b[:]) })
	return out
}

// judge separates pairs with too little throughput, and those with an ended job.
func (g *packing) judge(m *mechanism, r *round, next *tally) {
	for _, x := range slices.Sorted(maps.Keys(g.with)) {
		y, ok := g.with[x]
		if !ok {
			continue
		}
		a, here := next.at[x]
		b, there := next.at[y]
		if !here || !there {
			g.part(x)
			continue
		}
		sum, never := 0.0, false
		for p := range r.Pools {
			w := m.worth(r, a, b, p, true)
			sum, never = sum+w, never || w == 0
		}
		if never || sum < 1 {
			g.part(x)
		}
	}
}

// packed divides the time of all GPUs equally, regardless of model, between the pairs and the
// single jobs. Only if some GPUs stay idle, those are the slowest: otherwise the policy would
// have no chance under low load.
func packed(p policy.Problem) (policy.Shares, error) {
	one := p
	one.Jobs, one.Pairs = nil, nil
	pair := make([]int, len(p.Jobs)) // 1 + pair index for the first of two; -1 for the second
	for i, q := range p.Pairs {
		pair[q.A], pair[q.B] = i+1, -1
	}
	for k, j := range p.Jobs {
		if pair[k] > 0 {
			j.Speed = p.Pairs[pair[k]-1].SpeedA
		}
		if pair[k] >= 0 {
			one.Jobs = append(one.Jobs, j)
		}
	}
	one.Models = fastestFirst(one)
	shares, err := alike("las", one)
	if err != nil {
		return shares, err
	}
	none, rest := make([]float64, len(p.Models)), shares.Time
	out := policy.Shares{Time: make([][]float64, len(p.Jobs)), PairTime: make([][]float64, len(p.Pairs))}
	for k := range p.Jobs {
		out.Time[k] = none
		switch {
		case pair[k] > 0:
			out.PairTime[pair[k]-1], rest = rest[0], rest[1:]
		case pair[k] == 0:
			out.Time[k], rest = rest[0], rest[1:]
		}
	}
	return out, nil
}

// fastestFirst gives as many GPUs as the jobs can use, of the models with the highest throughput
// first. Of each there is at least a trace, for jobs that run on no other.
func fastestFirst(p policy.Problem) []policy.Model {
	const trace = 1e-3
	models, order := slices.Clone(p.Models), make([]int, len(p.Models))
	does, wanted := make([]float64, len(p.Models)), 0.0
	for _, j := range p.Jobs {
		wanted += float64(j.Gang)
		for i, v := range j.Speed {
			does[i] += v
		}
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(does[b], does[a]) })
	for _, i := range order {
		models[i].GPUs = max(min(models[i].GPUs, wanted), trace)
		wanted -= models[i].GPUs
	}
	return models
}
