package slownodes

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// slowGPU is a slow GPU of a node, by number, and what its jobs say.
type slowGPU struct {
	gpu int
	sum
}

// gpusOf finds the slow GPUs of a node, and what is said of the rest of the node. bound gives the bound of a GPU. A job is as slow as its slowest
// GPU. So the GPU that most slow attempts had is taken first, and attempts with it say nothing of the others any more. GPUs that the attempts do
// not tell apart from it are slow as well.
func gpusOf(list []said, bound func(gpu int) float64) (slow []slowGPU, rest []said) {
	for rest = list; ; {
		worst := suspects(rest, bound)
		if len(worst) == 0 {
			return slow, rest
		}
		first, all := worst[0].gpu, rest
		for _, x := range worst {
			if x.gpu != first && apart(all, first, x.gpu, bound) {
				continue
			}
			slow, rest = append(slow, x), without(rest, x.gpu)
		}
	}
}

// suspects lists the GPUs whose jobs are slow, the one of most slow attempts first, of these the one of fewest others.
func suspects(list []said, bound func(gpu int) float64) []slowGPU {
	below, all := map[int]int{}, map[int]int{} // attempts, by GPU
	for _, x := range list {
		for _, gpu := range x.run.Index {
			if all[gpu]++; x.off < math.Log(bound(gpu)) {
				below[gpu]++
			}
		}
	}
	var out []slowGPU
	for _, gpu := range slices.Sorted(maps.Keys(below)) { // a sound node has none
		if s := sumOf(with(list, gpu)); s.slow(bound(gpu)) {
			out = append(out, slowGPU{gpu, s})
		}
	}
	slices.SortStableFunc(out, func(x, y slowGPU) int {
		return cmp.Or(cmp.Compare(below[y.gpu], below[x.gpu]), cmp.Compare(all[x.gpu], all[y.gpu]))
	})
	return out
}

// apart reports whether attempts tell a slow GPU apart from another one: those without the other are slow as well, or those of the other without
// it are not. At least two users must say so.
func apart(list []said, slow, other int, bound func(gpu int) float64) bool {
	alone, rest := sumOf(without(with(list, slow), other)), sumOf(without(with(list, other), slow))
	return alone.users >= leastUsers && alone.ratio < bound(slow) || rest.users >= leastUsers && rest.ratio >= bound(other)
}

// with gives the attempts that are known to have had a GPU, and without the others.
func with(list []said, gpu int) (out []said) {
	for _, x := range list {
		if slices.Contains(x.run.Index, gpu) {
			out = append(out, x)
		}
	}
	return out
}

func without(list []said, gpu int) (out []said) {
	for _, x := range list {
		if !slices.Contains(x.run.Index, gpu) {
			out = append(out, x)
		}
	}
	return out
}
