package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// profiling is the longest run of a new job in Lucid's profiler (T_prof), as its authors chose it for Venus.
const profiling = 200 * cluster.Second

// newLucid makes Lucid (Hu et al., ASPLOS'23) without its packing:
//
//   - A new job of at most a node's GPUs first runs on nodes that are set aside, for at most T_prof: the profiler (§3.2),
//     fewest GPUs first. Most debugging jobs end there. Any other job is requeued and waits for its turn.
//   - Waiting jobs start by their predicted run time times their GPUs, least first, and run to their end (§3.4).
//   - The prediction is that of an additive model of what has ended (§3.5), fitted anew as jobs end.
//
// Left out is the binder (§3.3), which lets two jobs with low GPU utilisation share GPUs, with the models of utilisation and
// load behind it: traces do not tell the utilisation. Lucid schedules each virtual cluster alone; here all share the
// cluster, as with qssf.
//
// Left open by the paper, and chosen for the baseline: the profiler has a node of forty, or none in a cluster of less than
// twenty. A job waits for the profiler and for its turn at once, so that it also starts where GPUs are idle. Its work in the
// profiler is kept if it saves at the notice. A job that does not fit is skipped.
func newLucid(Options) rule {
	var over ended
	model := &additive{}
	return func(r *round) {
		over.learn(r, model.add)
		model.fit()
		for k := range r.jobs {
			if j := &r.jobs[k]; j.lease != nil && j.runs && j.lease.End > 0 && j.lease.End.Sub(r.now) <= r.set.Notice {
				r.dismiss(j)
			}
		}
		r.hold()
		if !r.idle() {
			return
		}
		if aside := r.profiler(); len(aside) > 0 {
			r.profile(aside)
			for _, k := range r.needing(aside) {
				r.start(&r.jobs[k], 0, nil)
			}
			for _, name := range aside {
				r.board.Close(name)
			}
		}
		r.startLeast(model.expect)
	}
}

// profiler gives the nodes that are set aside: the last healthy ones.
func (r *round) profiler() []string {
	var nodes []string
	for i := range r.s.Nodes {
		if n := &r.s.Nodes[i]; n.Bad == "" && len(n.GPUs) > 0 {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) < 20 {
		return nil
	}
	return nodes[len(nodes)-(len(nodes)+39)/40:]
}

// needing gives the waiting jobs that could never run beside the nodes that are set aside.
func (r *round) needing(aside []string) []int {
	rest := r.empty()
	for _, name := range aside {
		rest.Close(name)
	}
	fits := map[int]bool{} // by shape
	r.line = r.line[:0]
	for k := range r.jobs {
		j := &r.jobs[k]
		if j.lease != nil {
			continue
		}
		if _, known := fits[j.shape]; !known {
			fits[j.shape] = slices.ContainsFunc(j.pools, func(p int) bool {
				_, ok := rest.Fit(place.Ask{Shape: j.shape, Pool: p, Now: r.now, Max: -1})
				return ok
			})
		}
		if !fits[j.shape] {
			r.line = append(r.line, k)
		}
	}
	return r.line
}

// profile starts new jobs on the nodes that are set aside.
func (r *round) profile(aside []string) {
	r.line = r.line[:0]
	for k := range r.jobs {
		if j := &r.jobs[k]; j.lease == nil && j.movable && r.alloc(j) == 0 {
			r.line = append(r.line, k)
		}
	}
	slices.SortStableFunc(r.line, func(a, b int) int { return cmp.Compare(r.jobs[a].gpus, r.jobs[b].gpus) })
	for _, k := range r.line {
		j := &r.jobs[k]
		spec := r.f.Spec(j.at)
		if len(spec.Require) > 0 {
			continue
		}
		if spec.Require = aside; r.mixed && spec.Request.Model != "" {
			if spec.Require = r.having(spec.Request.Model, aside); len(spec.Require) == 0 {
				continue
			}
		}
		ask := place.Ask{Shape: r.site.Shape(spec), Now: r.now, End: r.now.Add(profiling), Max: -1}
		fits := false
		for _, ask.Pool = range j.pools {
			if found, ok := r.board.Fit(ask); ok {
				r.take(j, found, ask.End)
				fits = true
				break
			}
		}
		if !fits {
			return
		}
	}
}
