package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestForeignResourcesBesideGPUs: a job that asks for another resource beside GPUs is managed, and granted nodes that have it. How much of it is free,
// only Slurm knows.
func TestForeignResourcesBesideGPUs(t *testing.T) {
	node := func(gres string) []string {
		r := newReader(strings.NewReader(`{"name":"n","state":["IDLE"],"active_features":["ib"],"gres":"` + gres + `"}`))
		n := r.node()
		if r.junk != "" || len(n.GPUs) != 1 || n.GPUs[0].Count != 4 {
			t.Errorf("%s: %+v, %s", gres, n, r.junk)
		}
		return n.Features
	}
	for gres, want := range map[string][]string{
		"gpu:v100:4":                                {"ib"},
		"gpu:v100:4(S:0-1),shard:8":                 {"ib"},
		"gpu:v100:4,nic:2":                          {"gres:nic", "ib"},
		"craynetwork:4,gpu:v100:4,mps:100":          {"gres:craynetwork", "ib"},
		"gpu:v100:4,nic:mlx5:2(S:0)":                {"gres:nic", "gres:nic:mlx5", "ib"},
		"gpu:v100:4,nic:0":                          {"ib"},
		"gpu:v100:4,bandwidth:lustre:no_consume:4G": {"gres:bandwidth", "gres:bandwidth:lustre", "ib"},
		"gpu:v100:4,(null),N/A,::":                  {"ib"},
	} {
		if d := cmp.Diff(want, node(gres)); d != "" {
			t.Errorf("%s: %s", gres, d)
		}
	}
	for _, x := range []struct {
		w        wireJob
		gpus     int
		features string
	}{
		{wireJob{perNode: "gres/gpu:1"}, 1, ""},
		{wireJob{perNode: "gres/gpu:1,gres/craynetwork:1"}, 1, "gres:craynetwork"},
		{wireJob{perNode: "gres/nic:mlx5:1,gres/gpu:v100:2"}, 2, "gres:nic&gres:nic:mlx5"},
		{wireJob{perJob: "gres/gpu:4,gres/nic:1", features: "ib"}, 4, "ib&gres:nic"},
		{wireJob{perNode: "gres/gpu:1,gres/nic:1", features: "ib|roce"}, 1, "ib&gres:nic|roce&gres:nic"},
		{wireJob{perNode: "gres/gpu:1,gres/nic:1", features: "[r1|r2]"}, 1, "[r1|r2]"},
		{wireJob{perTask: "cpu=4,gres/gpu:1,gres/nic:0,license/x:1", taskCount: 2}, 2, ""},
		{wireJob{perNode: "gres/gpu:1,gres/odd:a:b:c"}, 1, "gres:odd&gres:odd:a"},
		{wireJob{perNode: "gres/nic:1"}, 0, ""},
	} {
		q := request(&x.w)
		if q.GPUs != x.gpus || q.Features != x.features || !q.Leasable() {
			t.Errorf("%+v: %d GPUs, features %q, %q; want %d, %q", x.w, q.GPUs, q.Features, q.Unplaceable, x.gpus, x.features)
		}
	}
}

// TestPartsThatMakeNoSense: the rest of a record stays.
func TestPartsThatMakeNoSense(t *testing.T) {
	r := newReader(strings.NewReader(`{"name":"r","node_list":"v[2-1],v[3-4],k1","start_time":1,"end_time":2}`))
	want := []string{"k1", "v3", "v4"}
	if v := r.reservation(); r.junk != "" || cmp.Diff(want, v.Nodes) != "" {
		t.Errorf("the reservation is %+v, %s", v, r.junk)
	}
	r = newReader(strings.NewReader(`{"name":"r","node_list":"v[2-1]","start_time":1,"end_time":2}`))
	if v := r.reservation(); r.junk == "" {
		t.Errorf("a reservation of no readable node is %+v", v)
	}
	if got := less([]cluster.GPUs{{Model: "a100", Count: 4}, {Model: "h100", Count: 4}}, []cluster.GPUs{{Model: "gpu", Count: 1}}); got[0].Count+got[1].Count != 8 {
		t.Errorf("a drained GPU of an unknown model is taken off %+v", got)
	}
}

// TestValuesThatMakeNoSense: a value that a record can do without costs only itself.
func TestValuesThatMakeNoSense(t *testing.T) {
	read := func(text string) *reader { return newReader(strings.NewReader(text)) }
	for what, one := range map[string]func() (*reader, bool){
		"node": func() (*reader, bool) {
			r := read(`{"name":"v1","state":["IDLE"],"gres":"gpu:v100:4","specialized_memory":"x","active_features":{"a":[]},"partitions":["main"]}`)
			n := r.node()
			return r, n.Name == "v1" && len(n.GPUs) == 1 && len(n.Partitions) == 1
		},
		"partition": func() (*reader, bool) {
			r := read(`{"name":"main","maximums":{"time":"x","nodes":5},"accounts":7.5,"nodes":{"configured":"v[1-2]"},"partition":{"state":["UP"]}}`)
			p := r.partition()
			return r, p.Name == "main" && p.Up && len(p.Nodes) == 2 && p.Rules.MaxNodes == 5
		},
		"reservation, of which no part is then known": func() (*reader, bool) {
			r := read(`{"name":"r","node_list":"v1","start_time":5,"end_time":9,"tres":{},"core_count":4,"core_specializations":[{"node":"v1","core":"0-3"}],"flags":["FLEX"]}`)
			v := r.reservation()
			return r, v.Name == "r" && len(v.Nodes) == 1 && v.Start == 5000 && v.End == 9000 && len(v.Flags) == 1 && v.Parts == nil
		},
		"job": func() (*reader, bool) {
			r := read(`{"job_id":7,"job_state":["PENDING"],"name":[],"comment":{},"deadline":"x","excluded_nodes":7.5,"user_name":"alice"}`)
			w := r.job()
			return r, w.id == 7 && w.wrong == "" && w.user == "alice" && w.name == ""
		},
		"association": func() (*reader, bool) {
			r := read(`{"account":"nlp","user":"alice","cluster":"c","max":{"jobs":{"active":"x"}},"shares_raw":3}`)
			a := r.association(unreadTRES{})
			return r, a.account == "nlp" && a.user == "alice" && a.shares.n == 3
		},
		"QOS": func() (*reader, bool) {
			r := read(`{"name":"normal","preempt":"x","limits":{"max":{"active_jobs":{"count":5}}}}`)
			q, _ := r.qos(unreadTRES{})
			return r, q.Name == "normal" && len(q.Caps) == 1
		},
	} {
		r, good := one()
		if !good || r.junk != "" || r.odd == "" || r.err != nil {
			t.Errorf("%s: junk %q, left out %q, %v", what, r.junk, r.odd, r.err)
		}
	}
	for what, one := range map[string]func() *reader{
		"node":        func() *reader { r := read(`{"name":"v1","state":7.5,"gres":{}}`); r.node(); return r },
		"partition":   func() *reader { r := read(`{"name":"main","nodes":[]}`); r.partition(); return r },
		"reservation": func() *reader { r := read(`{"name":"r","node_list":"v1","start_time":"x"}`); r.reservation(); return r },
		"job": func() *reader {
			r := read(`{"job_id":7,"job_state":["PENDING"],"tres_per_node":{}}`)
			r.job()
			return r
		},
		"association": func() *reader { r := read(`{"account":"nlp","shares_raw":"x"}`); r.association(unreadTRES{}); return r },
	} {
		if r := one(); r.junk == "" {
			t.Errorf("%s: a value that it cannot do without is left out", what)
		}
	}
}
