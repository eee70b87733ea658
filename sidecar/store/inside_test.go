package store

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The journal keeps which jobs of its own tenant go before a job, and the columns keep the rest. A change of that alone
// does not write the row anew.
func TestDetailsInsideATenant(t *testing.T) {
	c := &cluster.Case{Job: cluster.Job{ID: cluster.JobID{ID: 7}}, Record: cluster.Record{Key: 7}}
	reason := cluster.Reason{Code: cluster.ReasonCells, Inside: &cluster.Inside{User: "bob", Level: -5, Above: 10}}
	row := func(r cluster.Reason) statusRow {
		return statusRow{Job: 7, Details: newDetailer(cluster.Plan{}).of(c, &c.Record, &r)}
	}
	var e Edge
	job := &Job{Key: 7, SlurmID: "7", Tenant: "nlp", User: "ann", GPUs: cluster.CountOf(4)}
	if err := e.add(job, &statusNow{reasonColumns: reasonColumns{Code: reason.Code}, Details: []byte(row(reason).Details)}); err != nil {
		t.Fatal(err)
	}
	if got := e.Plan.Statuses[0].Reason; got.Code != reason.Code || *got.Inside != *reason.Inside {
		t.Errorf("the reason is %+v, want %+v", got, reason)
	}
	if got := e.Snapshot.Cases[0]; got.Record.User != "ann" || got.Job.Request.Size.Devices != 4 {
		t.Errorf("the job is %+v", got)
	}
	other := reason
	other.Inside = &cluster.Inside{User: "carol"}
	if was, now := row(reason), row(other); was == now || !sameStatus(was, now, cluster.Hour) {
		t.Errorf("another user goes first: %+v, then %+v", was, now)
	}
	if was := row(cluster.Reason{Code: cluster.ReasonCells}); was.Details != "" {
		t.Errorf("details without need: %s", was.Details)
	}
}
