package eligible

import "github.com/fairlease/fairlease/sidecar/cluster"

// fitting leaves out the pools on whose GPUs a job's memory is known not to fit. Its user's word is
// best: a requested model, or mem.MODEL in its comment. Then come jobs of its type that ran there: a completed one
// proves that it fits, a failure with the memory full that it does not. Else the most that its type used on other
// models is compared with what the model has. If nothing would be left, nothing is left out: frameworks reserve more
// memory than they need. own is the pool that the job holds, which stays; -1 = none.
func (f *Nodes) fitting(i, own int, pools []int) []int {
	j := &f.in.Snapshot.Cases[i].Job
	if len(f.in.Snapshot.Sizes) == 0 || len(pools) < 2 || j.Request.Model != "" {
		return pools
	}
	used := f.used(j)
	declared := []cluster.GPUMemory(nil)
	if j.Hints != nil {
		declared = j.Hints.Memory
	}
	if len(used) == 0 && len(declared) == 0 {
		return pools
	}
	var fits []int
	for _, p := range pools {
		if p == own || f.fits(f.in.Pools[p], used, declared) {
			fits = append(fits, p)
		}
	}
	if len(fits) == 0 || len(fits) == len(pools) {
		return pools
	}
	return fits
}

// used gives the memory that a job's type used, by model.
func (f *Nodes) used(j *cluster.Job) []cluster.MemoryUse {
	all := f.in.Snapshot.Memory
	kind, ok := cluster.TypeOf(j)
	if len(all) == 0 || !ok {
		return nil
	}
	return cluster.MemoryOf(all, kind)
}

// fits tells whether a job's memory fits on one GPU of a model; true if that is unknown.
func (f *Nodes) fits(model string, used []cluster.MemoryUse, declared []cluster.GPUMemory) bool {
	size := f.size(model)
	for _, d := range declared {
		if d.Model == model {
			return size == 0 || d.Bytes <= size
		}
	}
	most := int64(0)
	for k := range used {
		if used[k].Model == model {
			return !used[k].Full
		}
		most = max(most, used[k].Bytes)
	}
	return size == 0 || most <= size
}

// size gives the memory of one GPU of a model in bytes; 0 = unknown.
func (f *Nodes) size(model string) int64 {
	for _, s := range f.in.Snapshot.Sizes {
		if s.Model == model {
			return s.Bytes
		}
	}
	return 0
}
