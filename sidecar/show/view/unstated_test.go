package view_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Numbers that stand for something else are null in JSON, compact or indented, and come back whole; a user's text stays as it is.
func TestUnstate(t *testing.T) {
	const name = `,"rho":9223372036854775807,`
	in := struct {
		Name   string                 `json:"name"`
		Status cluster.JobStatus      `json:"status"`
		Stand  []cluster.TenantStatus `json:"standing"`
	}{name, cluster.JobStatus{Rho: cluster.Infinite, Reason: cluster.Reason{Behind: cluster.DueNothing, OtherBehind: 3, Rho: cluster.Infinite}},
		[]cluster.TenantStatus{{Behind: cluster.DueNothing, Rho: 0, RhoAll: cluster.Infinite}, {Behind: -1000, Rho: 5}}}
	for _, indent := range []string{"", "  "} {
		text, err := json.MarshalIndent(in, "", indent)
		if indent == "" {
			text, err = json.Marshal(in)
		}
		if err != nil {
			t.Fatal(err)
		}
		told := view.Unstate(text)
		var plain map[string]any
		if err := json.Unmarshal(told, &plain); err != nil {
			t.Fatal(err)
		}
		status := plain["status"].(map[string]any)
		stands := plain["standing"].([]any)[0].(map[string]any)
		if status["rho"] != nil || status["reason"].(map[string]any)["behind"] != nil || stands["behind"] != nil || stands["rho_all"] != nil || stands["rho"] != 0. || plain["name"] != name {
			t.Errorf("%s", told)
		}
		out := in
		out.Status, out.Stand = cluster.JobStatus{}, nil
		if err := json.Unmarshal(view.Restate(told), &out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(in, out); d != "" {
			t.Error(d)
		}
	}
}
