package place

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The best of a list are those that a stable sort puts first, few or many.
func TestBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []choice
		for slot := range rapid.IntRange(0, 40).Draw(t, "slots") {
			list = append(list, choice{slot: slot, spare: rapid.IntRange(0, 5).Draw(t, "spare")})
		}
		n := rapid.IntRange(-1, 20).Draw(t, "n")
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b choice) int { return cmp.Compare(a.spare, b.spare) })
		best(list, n, func(a, b *choice) bool { return a.spare < b.spare })
		for k := range min(n, len(list)) {
			if list[k].slot != want[k].slot {
				t.Fatalf("place %d: slot %d, want %d", k, list[k].slot, want[k].slot)
			}
		}
		slices.SortFunc(list, func(a, b choice) int { return cmp.Compare(a.slot, b.slot) })
		for slot := range list {
			if list[slot].slot != slot {
				t.Fatalf("slot %d is lost", slot)
			}
		}
	})
}
