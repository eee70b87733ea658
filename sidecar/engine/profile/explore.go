package profile

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Trial is a job that could be run on a model to see how fast its kind is there.
type Trial struct {
	Key   cluster.JobKey
	Kind  cluster.Kind
	Model string
	Gang  int
	From  string       // the model that it runs on; "" = it waits
	Idle  bool         // GPUs of the model are idle; else others give way for a term
	Move  cluster.Span // to save, where it runs, and to start
	Term  cluster.Span // that it would stay
}

// Least gives what a trial costs at least: GPUs that do nothing while the job moves, and that are taken from others.
func (t *Trial) Least() cluster.GPUTime {
	cost := cluster.Times(t.Gang, max(t.Move, 0))
	if !t.Idle {
		cost += cluster.Times(t.Gang, max(t.Term, 0))
	}
	return cost
}

// Cost is what a trial would cost, in GPU-milliseconds: GPUs that do nothing while the job
// moves, that are taken from others, and that do less for the job than where it was.
type Cost struct {
	Trial int // index
	GPUs  cluster.GPUTime
}

// runs is a kind at a gang size.
type runs struct {
	kind cluster.Kind
	gang int
}

// Explore orders the trials of what is not known yet, neither observed nor declared by the
// administrator: the cheapest first, of those as cheap the kind that is known on the fewest
// models, then by job and model. Each kind is tried on a model once.
func (b *Book) Explore(trials []Trial) []Cost {
	var out []Cost
	for i := range trials {
		t := &trials[i]
		if t.Gang < 1 || b.Seen(t.Kind, t.Model, t.Gang) {
			continue
		}
		cost := t.Least()
		if t.From != "" {
			cost += cluster.GPUTime(b.slower(t) * float64(cluster.Times(t.Gang, max(t.Term, 0))))
		}
		out = append(out, Cost{i, cost})
	}
	counts := map[runs]int{}
	known := func(c Cost) int {
		t := &trials[c.Trial]
		n, counted := counts[runs{t.Kind, t.Gang}]
		if counted {
			return n
		}
		for _, x := range b.guess.own(b.guess.table(t.Gang), t.Kind, t.Gang) {
			if !math.IsNaN(x) {
				n++
			}
		}
		counts[runs{t.Kind, t.Gang}] = n
		return n
	}
	slices.SortStableFunc(out, func(x, y Cost) int {
		s, t := &trials[x.Trial], &trials[y.Trial]
		return cmp.Or(cmp.Compare(x.GPUs, y.GPUs), cmp.Compare(known(x), known(y)), cmp.Compare(s.Key, t.Key), cmp.Compare(s.Model, t.Model))
	})
	seen := map[cluster.Profile]bool{}
	return slices.DeleteFunc(out, func(c Cost) bool {
		t := &trials[c.Trial]
		key := cluster.Profile{Kind: t.Kind, Model: t.Model, Gang: t.Gang}
		was := seen[key]
		seen[key] = true
		return was
	})
}

// Seen tells whether it is known how fast a kind is on a model without a trial: it was observed, or the
// administrator says so.
func (b *Book) Seen(kind cluster.Kind, model string, gang int) bool {
	p := b.known(kind, "", model, gang)
	return p != nil && (p.Source == cluster.Observed || p.Basis == File)
}

// Reports tells whether a kind's jobs say how they get on: then a trial teaches something.
func (b *Book) Reports(kind cluster.Kind) bool {
	from, to := b.of(kind)
	return slices.ContainsFunc(b.entries[from:to], func(e cluster.Profile) bool { return e.Source == cluster.Observed })
}

// slower gives the part of its speed that a job is thought to lose by a trial; half where
// there is no telling.
func (b *Book) slower(t *Trial) float64 {
	here, ok := b.Rate(t.Kind, t.From, t.Gang)
	there, guess := b.Rate(t.Kind, t.Model, t.Gang)
	if !ok || !guess || here.Rate == 0 {
		return 0.5
	}
	return max(1-there.Rate/here.Rate, 0)
}
