package speeds

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// Keeps returns the part of its speed that a job keeps on nodes of a pool that are spread so: on more nodes than it needs, or on its fewest under more
// switches than these need. false = that is not known, or no nodes are so.
func Keeps(x *Speeds, i, pool int, spread cluster.Kind) (part float64, known bool) {
	if spread == cluster.AcrossSwitches && !x.found.Site.Switched(pool) {
		return 0, false
	}
	gang := x.found.Can[i].GPUs.Devices()
	if x.in.Settings.ScatterWait == 0 || gang < 2 || x.in.Cases[i].Tenant < 0 {
		return 0, false
	}
	if x.parts == nil {
		x.parts = profile.Scatterings(x.in.Snapshot.Declared)
	}
	shown := x.shown.Completions
	if x.in.Settings.NoEstimates || x.in.Settings.NoCompletions {
		shown = nil
	}
	if len(x.parts) == 0 && x.book == nil && len(shown) == 0 {
		return 0, false
	}
	return x.parts.Of(x.book, shown, spread, x.Pairs.kind(i), x.in.Pools[pool], gang)
}

// scatters reports whether it matters that gangs are scattered, as their run times show.
func scatters(x *Speeds) bool { return x.in.Settings.ScatterWait > 0 && !x.in.Settings.NoCompletions }

// watch takes the run times of gangs where no policy divides GPU models: of types that have been scattered since their first such job is seen.
func watch(x *Speeds) {
	finish(x, func(i int) bool {
		c := &x.in.Snapshot.Cases[i]
		gpus, one := held(c)
		if !one || gpus.Size.Devices < 2 {
			return false
		}
		_, known := cluster.FindCompletion(x.shown.Completions, x.Pairs.kind(i), gpus.Size.Devices)
		return known || c.Record.Scattered || c.Record.Across
	})
	x.shown.Fit(x.in.Now, x.unfinished())
}

// nameOf returns the name in run times of the GPUs of a model that a case had.
func nameOf(x *Speeds, i int, model string) string {
	r := &x.in.Snapshot.Cases[i].Record
	switch {
	case !scatters(x):
	case r.Scattered:
		return cluster.Spread(model, cluster.Scattered)
	case r.Across:
		return cluster.Spread(model, cluster.AcrossSwitches)
	}
	return model
}

// company returns the condition under which a running job's report counts: the kind beside it on its GPU, or how its nodes are spread; "" = it
// has its GPUs for itself, on the fewest nodes.
func company(x *Speeds, i int) cluster.Kind {
	if x.in.Settings.ScatterWait > 0 {
		if with := Spread(x, x.in.Snapshot.Cases[i].Job.Holds); with != "" {
			return with
		}
	}
	return x.Pairs.partner(i)
}

// Spread returns Scattered if GPUs of one model are, AcrossSwitches if they are on their fewest nodes, but under more switches than so many nodes
// need, and else "".
func Spread(x *Speeds, holds []cluster.Holding) cluster.Kind {
	if scattered(x, holds) {
		return cluster.Scattered
	}
	if len(holds) > 1 {
		if p := x.in.Pool(holds[0].Model); p >= 0 && x.found.Site.Across(p, holds) {
			return cluster.AcrossSwitches
		}
	}
	return ""
}

// scattered reports whether GPUs of one model are on more nodes than the fewest on which they fit.
func scattered(x *Speeds, holds []cluster.Holding) bool {
	if len(holds) < 2 {
		return false
	}
	p := x.in.Pool(holds[0].Model)
	return p >= 0 && len(holds) > x.found.Site.Fewest(p, cluster.SizeHeld(holds).Devices)
}

// listens reports whether reports are learnt from where no policy divides GPU models.
func listens(s *cluster.Settings) bool { return s.ScatterWait > 0 || s.Slices != nil && s.Slices.Pairs }

// reports lists the running jobs that are learnt from where no policy divides GPU models: gangs, if scattering matters, and jobs that share
// a GPU, if pairs do.
func reports(x *Speeds) map[cluster.JobID]int {
	out := map[cluster.JobID]int{}
	s := x.in.Settings
	for i := range x.in.Records {
		if !x.in.Cases[i].Runs || x.in.Cases[i].Tenant < 0 {
			continue
		}
		shares := s.Slices != nil && s.Slices.Pairs && x.in.Records[i].Slice != nil
		if shares || s.ScatterWait > 0 && x.in.Snapshot.Cases[i].Job.GPUsHeld() > 1 {
			out[x.in.Records[i].ID] = i
		}
	}
	return out
}
