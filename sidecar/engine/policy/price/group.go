package price

import (
	"math"
	"math/bits"
	"slices"
)

// group makes one job of those with the same speeds, its gang the sum of theirs. It gives
// the new job of each old one, and the new gangs and speeds, in the order of the first of
// each.
func group(k int, gang, speed []float64) (like []int, gangs, speeds []float64) {
	n := len(gang)
	like = make([]int, n)
	gangs, speeds = make([]float64, 0, n), make([]float64, 0, n*k)
	size := 1 << bits.Len(uint(2*n))
	slots := make([]int32, size) // a group's number + 1, by the hash of its speeds
	for m := range n {
		row := speed[m*k : (m+1)*k]
		h := uint64(0)
		for _, v := range row {
			h = (h ^ math.Float64bits(v)) * 0x9E3779B97F4A7C15
			h ^= h >> 29
		}
		i := int(h & uint64(size-1))
		for slots[i] != 0 && !slices.Equal(row, speeds[int(slots[i]-1)*k:int(slots[i])*k]) {
			i = (i + 1) & (size - 1)
		}
		if slots[i] == 0 {
			gangs, speeds = append(gangs, 0), append(speeds, row...)
			slots[i] = int32(len(gangs))
		}
		like[m] = int(slots[i]) - 1
		gangs[like[m]] += gang[m]
	}
	return like, gangs, speeds
}
