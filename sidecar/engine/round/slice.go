package round

import (
	"iter"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// MaySlice reports whether a job may take turns on a GPU of a model.
func (f *Facts) MaySlice(i int, model string) bool {
	j, st := &f.Snapshot.Cases[i].Job, &f.Cases[i]
	return cluster.TakesTurns(j, &f.Records[i]) && st.Control == cluster.FullControl && st.Order == nil && f.Settings.Slices.Fits(j, model, f.Snapshot.Sizes, f.Snapshot.Memory)
}

// Mates returns by case the others that are on the same device; a case comes with each device that it has.
func Mates(on iter.Seq2[int, cluster.Device]) map[int][]int {
	cases, of := map[cluster.Device][]int{}, map[int][]int{}
	for i, d := range on {
		for _, k := range cases[d] {
			of[i], of[k] = append(of[i], k), append(of[k], i)
		}
		cases[d] = append(cases[d], i)
	}
	return of
}
