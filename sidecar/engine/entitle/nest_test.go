package entitle

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Below each account the parts add up to its quota, whatever its tenants want. A tenant gets what it wants of its own quota, and
// nobody more than it wants while a sibling lacks some.
func TestNest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 6 // GPUs
		var all []relative
		var grow func(above []string, depth int)
		grow = func(above []string, depth int) {
			for i := range rapid.IntRange(1, 4).Draw(t, "below") {
				if depth < 3 && rapid.Bool().Draw(t, "account") {
					grow(append(slices.Clone(above), fmt.Sprint("a", i)), depth+1)
					continue
				}
				all = append(all, relative{tenant: round.TenantIndex(len(all)), above: above,
					quota: cluster.MicroGPU(rapid.IntRange(0, most*1e6).Draw(t, "quota")), want: cluster.MicroGPU(rapid.IntRange(0, 2*most).Draw(t, "want")) * cluster.WholeGPU})
			}
		}
		grow([]string{"top"}, 1)
		slices.SortStableFunc(all, func(a, b relative) int { return slices.Compare(a.above, b.above) })
		sums := func(of []relative) (quota, want, part cluster.MicroGPU) {
			for i := range of {
				quota, want, part = quota+of[i].quota, want+of[i].want, part+of[i].part
			}
			return quota, want, part
		}
		total, _, _ := sums(all)
		divide(all, 1, total)
		if _, _, part := sums(all); part != total {
			t.Fatalf("the parts add up to %d of %d", part, total)
		}
		var check func(of []relative, depth int)
		check = func(of []relative, depth int) {
			type side struct{ quota, want, part cluster.MicroGPU }
			var sides []side
			lacks, spare := false, false
			const rounding = 8 // of shares to millionths of a GPU
			for _, branch := range groups(of, depth) {
				var s side
				s.quota, s.want, s.part = sums(branch)
				sides = append(sides, s)
				lacks = lacks || s.quota > 0 && s.part+rounding < s.want
				spare = spare || s.part > s.want+rounding
				if len(branch) > 1 {
					check(branch, depth+1)
				}
			}
			quota, _, part := sums(of)
			for _, s := range sides {
				if part >= quota && s.part+rounding < min(s.want, s.quota) {
					t.Fatalf("one that wants %d of its %d gets %d: %+v", s.want, s.quota, s.part, sides)
				}
			}
			if lacks && spare {
				t.Fatalf("one gets more than it wants, and another one lacks some: %+v", sides)
			}
		}
		check(all, 1)
	})
}
