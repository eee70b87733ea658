package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// MaySlice reports whether a job may take turns on a GPU of a model. A job that was requeued at its start may: nobody ends turns by requeues of a job,
// since whole terms cost its partner stops.
func (f *Facts) MaySlice(i int, model string) bool {
	j, r, st := &f.Snapshot.Cases[i].Job, &f.Records[i], &f.Cases[i]
	if j.Hints == nil || !j.Hints.Share || j.Ask == "" || !j.Batch || j.Het != 0 || st.Control != cluster.FullControl || st.Order != nil || r.Failed > 0 && r.SlurmSaid != cluster.RequeuedAtStart {
		return false
	}
	return f.Settings.Slices.Fits(j, model, f.Snapshot.Sizes, f.Snapshot.Memory)
}
