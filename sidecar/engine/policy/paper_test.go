package policy_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

const gpu = cluster.WholeGPU

// ASTRAEA §4.2.2, eq. 6: "Each tenant j is associated with a weight W. Then the GPU
// quota of this tenant is" M·W_j over the sum of all weights.
func TestEquation6QuotaByWeight(t *testing.T) {
	for _, c := range []struct {
		name    string
		total   cluster.MicroGPU
		weights []int64
		want    []cluster.MicroGPU
	}{
		{"equal", 8 * gpu, []int64{1, 1}, []cluster.MicroGPU{4 * gpu, 4 * gpu}},
		{"3:1", 8 * gpu, []int64{3, 1}, []cluster.MicroGPU{6 * gpu, 2 * gpu}},
		{"only ratios matter", 8 * gpu, []int64{3e12, 1e12}, []cluster.MicroGPU{6 * gpu, 2 * gpu}},
		{"one tenant", 7 * gpu, []int64{5}, []cluster.MicroGPU{7 * gpu}},
		// A millionth is left over: ties go to the earlier.
		{"thirds", gpu, []int64{1, 1, 1}, []cluster.MicroGPU{333_334, 333_333, 333_333}},
		// 8e6·2690/2726 = 7,894,350.69…, 8e6·36/2726 = 105,649.30…: the larger remainder.
		{"2690:36", 8 * gpu, []int64{2690, 36}, []cluster.MicroGPU{7_894_351, 105_649}},
		{"the larger remainder, not the earlier", 10, []int64{1, 2, 4}, []cluster.MicroGPU{1, 3, 6}},
		{"weight 0 gets nothing, also not what is left over", gpu, []int64{0, 1, 1, 1}, []cluster.MicroGPU{0, 333_334, 333_333, 333_333}},
		{"all weights 0", 8 * gpu, []int64{0, 0}, []cluster.MicroGPU{0, 0}},
		{"negative is 0", 8 * gpu, []int64{-5, 1}, []cluster.MicroGPU{0, 8 * gpu}},
		{"no GPUs", 0, []int64{1, 1}, []cluster.MicroGPU{0, 0}},
		{"no tenants", 8 * gpu, nil, []cluster.MicroGPU{}},
		{"80,000 GPUs", 80_000 * gpu, []int64{1, 2}, []cluster.MicroGPU{26_666_666_667, 53_333_333_333}},
		{"weights that do not fit in a sum", 8 * gpu, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, 0, math.MaxInt64},
			[]cluster.MicroGPU{2 * gpu, 2 * gpu, 2 * gpu, 0, 2 * gpu}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := policy.Quota(c.total, c.weights); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Whatever the weights: the parts sum to the total exactly, no part is a millionth
// or more away from eq. 6, and the order of the tenants decides nothing else.
func TestQuotaIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, int64(100_000*gpu)).Draw(t, "total")
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1e12)), 1, 40).Draw(t, "weights")
		var sum int64
		for _, w := range weights {
			sum += w
		}
		if sum == 0 {
			return
		}
		var got int64
		for i, part := range policy.Quota(cluster.MicroGPU(total), weights) {
			got += int64(part)
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(total), big.NewInt(weights[i])), big.NewInt(sum))
			off := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(part)), exact)
			if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("weight %d of %d: got %d of %d, %s off", weights[i], sum, part, total, off.FloatString(3))
			}
		}
		if got != total {
			t.Fatalf("the parts sum to %d, not to %d", got, total)
		}
	})
}
