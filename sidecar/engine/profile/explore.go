package profile

import (
	"cmp"
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

// Cost is what a trial would cost, in GPU-milliseconds: GPUs that do nothing while the job
// moves, that are taken from others, and that do less for the job than where it was.
type Cost struct {
	Trial int // index
	GPUs  cluster.GPUTime
}

// Explore orders the trials of what is not known yet, neither observed nor declared by the
// administrator: the cheapest first, of those as cheap the kind that is known on the fewest
// models, then by job and model. Each kind is tried on a model once.
func (b *Book) Explore(trials []Trial) []Cost {
	var out []Cost
	for i := range trials {
		t := &trials[i]
		if p := b.known(t.Kind, "", t.Model, t.Gang); t.Gang < 1 || p != nil && (p.Source == cluster.Observed || p.Basis == File) {
			continue
		}
		cost := cluster.Times(t.Gang, max(t.Move, 0))
		if !t.Idle {
			cost += cluster.Times(t.Gang, max(t.Term, 0))
		}
		if t.From != "" {
			cost += cluster.GPUTime(b.slower(t) * float64(cluster.Times(t.Gang, max(t.Term, 0))))
		}
		out = append(out, Cost{i, cost})
	}
	known := func(c Cost) int { return len(b.points(trials[c.Trial].Kind, trials[c.Trial].Gang)) }
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

// Reports tells whether a kind's jobs say how they get on: then a trial teaches something.
func (b *Book) Reports(kind cluster.Kind) bool {
	for i := range b.entries {
		if e := &b.entries[i]; e.Kind == kind && e.Source == cluster.Observed {
			return true
		}
	}
	return false
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
