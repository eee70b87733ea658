package slurm

import (
	"fmt"
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
		n := readNode(r)
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
		if q.Size.Devices != x.gpus || q.Features != x.features || !q.Leasable() {
			t.Errorf("%+v: %d GPUs, features %q, %q; want %d, %q", x.w, q.Size.Devices, q.Features, q.Unplaceable, x.gpus, x.features)
		}
	}
}

// TestPartsThatMakeNoSense: the rest of a record stays.
func TestPartsThatMakeNoSense(t *testing.T) {
	r := newReader(strings.NewReader(`{"name":"r","node_list":"v[2-1],v[3-4],k1","start_time":1,"end_time":2}`))
	want := []string{"k1", "v3", "v4"}
	if v := readReservation(r); r.junk != "" || cmp.Diff(want, v.Nodes) != "" {
		t.Errorf("the reservation is %+v, %s", v, r.junk)
	}
	r = newReader(strings.NewReader(`{"name":"r","node_list":"v[2-1]","start_time":1,"end_time":2}`))
	if v := readReservation(r); r.junk == "" {
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
			n := readNode(r)
			return r, n.Name == "v1" && len(n.GPUs) == 1 && len(n.Partitions) == 1
		},
		"partition": func() (*reader, bool) {
			r := read(`{"name":"main","maximums":{"time":"x","nodes":5},"accounts":7.5,"nodes":{"configured":"v[1-2]"},"partition":{"state":["UP"]}}`)
			p := readPartition(r)
			return r, p.Name == "main" && p.Up && len(p.Nodes) == 2 && p.Rules.MaxNodes == 5
		},
		"reservation, which then keeps whole nodes": func() (*reader, bool) {
			r := read(`{"name":"r","node_list":"v1","start_time":5,"end_time":9,"tres":{},"core_count":4,"core_specializations":[{"node":"v1","core":"0-3"}],"flags":["FLEX"]}`)
			v := readReservation(r)
			return r, v.Name == "r" && len(v.Nodes) == 1 && v.Start == 5000 && v.End == 9000 && len(v.Flags) == 1 && v.Parts == nil
		},
		"partition without readable nodes": func() (*reader, bool) {
			r := read(`{"name":"main","nodes":{"configured":"v[2-1]"},"partition":{"state":["UP"]}}`)
			p := readPartition(r)
			return r, p.Name == "main" && p.Up && p.Nodes == nil
		},
		"reservation, which has begun then": func() (*reader, bool) {
			r := read(`{"name":"r","node_list":"v1","start_time":"x","end_time":[]}`)
			v := readReservation(r)
			return r, v.Name == "r" && len(v.Nodes) == 1 && v.Start == 0 && v.End == forever
		},
		"reservation without a readable name": func() (*reader, bool) {
			r := read(`{"name":{},"node_list":"v1","start_time":5,"end_time":9}`)
			v := readReservation(r)
			return r, v.Name != "" && !v.Ours && len(v.Nodes) == 1 && v.Start == 5000
		},
		"job": func() (*reader, bool) {
			r := read(`{"job_id":7,"job_state":["PENDING"],"name":[],"comment":{},"deadline":"x","excluded_nodes":7.5,"user_name":"alice"}`)
			w := readJob(r)
			return r, w.id == 7 && w.wrong == "" && w.user == "alice" && w.name == ""
		},
		"association": func() (*reader, bool) {
			r := read(`{"account":"nlp","user":"alice","cluster":"c","max":{"jobs":{"active":"x"}},"shares_raw":3}`)
			a := readAssociation(r, unreadTRES{})
			return r, a.account == "nlp" && a.user == "alice" && a.shares.n == 3
		},
		"QOS": func() (*reader, bool) {
			r := read(`{"name":"normal","preempt":"x","limits":{"max":{"active_jobs":{"count":5}}}}`)
			q, _ := readQOS(r, unreadTRES{})
			return r, q.Name == "normal" && len(q.Caps) == 1
		},
	} {
		r, good := one()
		if !good || r.junk != "" || r.odd == "" || r.err != nil {
			t.Errorf("%s: junk %q, left out %q, %v", what, r.junk, r.odd, r.err)
		}
	}
	for what, one := range map[string]func() *reader{
		"node":      func() *reader { r := read(`{"name":"v1","state":7.5,"gres":{}}`); readNode(r); return r },
		"partition": func() *reader { r := read(`{"name":[],"nodes":{"configured":"v1"}}`); readPartition(r); return r },
		"reservation": func() *reader {
			r := read(`{"name":"r","node_list":{"v":1},"start_time":5}`)
			readReservation(r)
			return r
		},
		"job": func() *reader {
			r := read(`{"job_id":7,"job_state":["PENDING"],"tres_per_node":{}}`)
			readJob(r)
			return r
		},
		"association": func() *reader {
			r := read(`{"account":"nlp","shares_raw":"x"}`)
			readAssociation(r, unreadTRES{})
			return r
		},
	} {
		if r := one(); r.junk == "" {
			t.Errorf("%s: a value that it cannot do without is left out", what)
		}
	}
}

// TestRecordsThatMakeNoSense: a record that is left out costs itself alone; if no record of a list makes sense, the look fails.
func TestRecordsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	node := func(name, gres string) string {
		return `{"name":"` + name + `","state":["IDLE"],"gres":"` + gres + `","partitions":["main"]}`
	}
	list := func(member string, records ...string) answer {
		return text(`{"` + member + `":[` + strings.Join(records, ",") + `],"last_update":900,"errors":[]}`)
	}
	nodes := func(good, bad int, plain ...string) answer {
		for i := range good {
			plain = append(plain, node(fmt.Sprintf("v%d", i+1), "gpu:v100:4"))
		}
		for i := range bad {
			plain = append(plain, node(fmt.Sprintf("x%d", i+1), "gpu:a:b:c"))
		}
		return list("nodes", plain...)
	}
	senseless := `{"name":"odd","node_list":"v[2-1]","start_time":1,"end_time":2000000}`
	for name, x := range map[string]struct {
		path   string
		answer answer
		seen   func(*cluster.Observation) int
		want   int
		note   string
		err    string
	}{
		"the only reservation": {"reservations", list("reservations", senseless), func(s *cluster.Observation) int { return len(s.Reservations) }, 0,
			"the nodes of reservation odd make no sense (v[2-1]): jobs that are granted them do not start", ""},
		"2 of 3 reservations": {"reservations", list("reservations", senseless, senseless, `{"name":"r","node_list":"v1","start_time":"x"}`),
			func(s *cluster.Observation) int { return len(s.Reservations) }, 1, "/reservations/2/start_time", ""},
		"all of 2 reservations": {"reservations", list("reservations", senseless, senseless), nil, 0, "", "2 of 2 records make no sense"},
		"the only partition's nodes": {"partitions", list("partitions", `{"name":"main","nodes":{"configured":"v[2-1]"},"partition":{"state":["UP"]}}`),
			func(s *cluster.Observation) int { return len(s.Partitions) }, 1, "the nodes of partition main make no sense", ""},
		"2 of 3 partitions":     {"partitions", list("partitions", `{"name":[]}`, `{"name":[]}`, `{"name":"main"}`), func(s *cluster.Observation) int { return len(s.Partitions) }, 1, "/partitions/0/name", ""},
		"all of 2 partitions":   {"partitions", list("partitions", `{"name":[]}`, `{"name":[]}`), nil, 0, "", "2 of 2 records make no sense"},
		"2 of 12 nodes":         {"nodes", nodes(10, 2), func(s *cluster.Observation) int { return len(s.Nodes) }, 10, "gpu:a:b:c", ""},
		"all of 12 nodes":       {"nodes", nodes(0, 12), nil, 0, "", "12 of 12 records make no sense"},
		"all 2 nodes with GPUs": {"nodes", nodes(0, 2, node("c1", ""), node("c2", "")), nil, 0, "", "no other node has GPUs"},
	} {
		f := newRecorded(t, 44)
		f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
		f.on("GET /slurm/v0.0.44/"+x.path+"/", x.answer)
		c := f.client()
		s, err := c.Observe(t.Context(), 0)
		switch notes := strings.Join(c.Notes(), "\n"); {
		case x.err != "":
			if err == nil || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s: error %v; want %q", name, err, x.err)
			}
		case err != nil || x.seen(&s) != x.want || !strings.Contains(notes, x.note):
			t.Errorf("%s: %v; want %d of them and a note with %q\n%s", name, err, x.want, x.note, notes)
		}
	}
}

// TestFactsOfOddRecords: the nodes that cannot be read have their names, and a QOS that takes no jobs is known; one without a limit is not one.
func TestFactsOfOddRecords(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/nodes/", text(`{"nodes":[{"name":"v1","state":["IDLE"],"gres":"gpu:v100:4"},{"name":"x1","state":["IDLE"],"gres":"gpu:a:b:c","partitions":["main"]}],"last_update":900,"errors":[]}`))
	f.on("GET /slurmdb/v0.0.44/qos/", text(`{"qos":[{"name":"normal","limits":{"max":{"jobs":{"count":{"set":false,"infinite":true,"number":0},"per":{"user":{"set":true,"infinite":false,"number":5}}}}}},
		{"name":"shut","limits":{"max":{"jobs":{"count":{"set":true,"infinite":false,"number":0}}}}},
		{"name":"nobodys","limits":{"max":{"jobs":{"per":{"user":{"set":true,"infinite":false,"number":0}}}}}}],"errors":[]}`))
	facts, err := f.client().Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Unread) != 1 || facts.Unread[0].Name != "x1" || cmp.Diff([]string{"main"}, facts.Unread[0].Partitions) != "" {
		t.Errorf("unread nodes: %+v", facts.Unread)
	}
	if d := cmp.Diff([]string{"normal", "shut", "nobodys"}, facts.QOS) + cmp.Diff(map[string]string{"shut": "GrpSubmitJobs", "nobodys": "MaxSubmitJobsPerUser"}, facts.NoSubmit); d != "" {
		t.Error(d)
	}
}
