package profile

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Trial is a possible run of a job on a model to measure its kind there.
type Trial struct {
	Key   cluster.JobKey
	Kind  cluster.Kind
	Model string
	Gang  int
	From  string       // the model on which it runs; "" = it waits
	Idle  bool         // GPUs of the model are idle; else others yield for a term
	Move  cluster.Span // duration of save, if it runs, and start
	Term  cluster.Span // duration of its stay
}

// Least gives the minimum cost of a trial: GPUs that are idle during the move or taken from
// others.
func (t *Trial) Least() cluster.GPUTime {
	cost := cluster.Times(t.Gang, max(t.Move, 0))
	if !t.Idle {
		cost += cluster.Times(t.Gang, max(t.Term, 0))
	}
	return cost
}

// Cost is the cost of a trial, in GPU-milliseconds: GPUs that are idle during the move or taken
// from others, and lost throughput of the job.
type Cost struct {
	Trial int // index
	GPUs  cluster.GPUTime
}

// runs is a kind at a gang size.
type runs struct {
	kind cluster.Kind
	gang int
}

// Explore orders the trials of kinds that are neither observed nor declared by the administrator:
// the cheapest first, then kinds with the fewest known models, then by job and model. Each kind
// is tried once per model.
func (b *Book) Explore(trials []Trial) []Cost {
	var out []Cost
	for i := range trials {
		t := &trials[i]
		if t.Gang < 1 || b.Seen(t.Kind, t.Model, t.Gang) {
			continue
		}
		cost := t.Least()
		if t.From != "" {
			cost += cluster.GPUTime(slower(b, t) * float64(cluster.Times(t.Gang, max(t.Term, 0))))
		}
		out = append(out, Cost{i, cost})
	}
	counts := map[runs]int{}
	known := func(c Cost) int {
		t := &trials[c.Trial]
		of := runs{t.Kind, t.Gang}
		n, counted := counts[of]
		if !counted {
			n = knownOn(b, of)
			counts[of] = n
		}
		return n
	}
	slices.SortStableFunc(out, func(x, y Cost) int {
		if x.GPUs != y.GPUs {
			return cmp.Compare(x.GPUs, y.GPUs)
		}
		s, t := &trials[x.Trial], &trials[y.Trial]
		return cmp.Or(cmp.Compare(known(x), known(y)), cmp.Compare(s.Key, t.Key), cmp.Compare(s.Model, t.Model))
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

// Seen tells whether the speed of a kind on a model is known without a trial: observed, or
// declared by the administrator.
func (b *Book) Seen(kind cluster.Kind, model string, gang int) bool {
	p := b.facts.known(kind, "", model, gang)
	return p != nil && (p.Source == cluster.Observed || p.Basis == File)
}

// Observed tells whether a kind was ever observed on a model, at any gang size.
func (b *Book) Observed(kind cluster.Kind, model string) bool {
	from, to := b.facts.of(kind)
	return slices.ContainsFunc(b.facts.entries[from:to], func(e cluster.Profile) bool {
		return e.Source == cluster.Observed && e.Model == model && e.With == ""
	})
}

// Reports tells whether a kind's jobs report progress: otherwise a trial measures nothing.
func (b *Book) Reports(kind cluster.Kind) bool {
	from, to := b.facts.of(kind)
	return slices.ContainsFunc(b.facts.entries[from:to], func(e cluster.Profile) bool { return e.Source == cluster.Observed })
}

// slower gives the fraction of its speed that a job is expected to lose by a trial; half if
// unknown.
func slower(b *Book, t *Trial) float64 {
	here, there := rateOf(b, runs{t.Kind, t.Gang}, t.From), rateOf(b, runs{t.Kind, t.Gang}, t.Model)
	if !here.known || !there.known || here.steps == 0 {
		return 0.5
	}
	return max(1-there.steps/here.steps, 0)
}

// rateOf gives the rate of a kind on a model.
func rateOf(b *Book, of runs, model string) rate {
	if m := b.memory; m != nil {
		if at := slices.Index(m.models, model); at >= 0 {
			b.Speedups(of.kind, of.gang, m.models)
			return m.now[of].rates[at]
		}
	}
	p, known := b.Rate(of.kind, model, of.gang)
	return rate{p.Rate, known}
}

// knownOn counts the models on which a kind is known to run.
func knownOn(b *Book, of runs) (n int) {
	k := b.memory.kept(of)
	if k != nil && k.models >= 0 {
		return k.models
	}
	for _, x := range b.guess.own(b.guess.table(of.gang), of.kind, of.gang) {
		if !math.IsNaN(x) {
			n++
		}
	}
	if k != nil {
		k.models = n
	}
	return n
}
