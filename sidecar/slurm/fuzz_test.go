package slurm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// FuzzJobs feeds the decoder of job lists with arbitrary bytes. It must not panic, use unbounded
// memory or accept a broken list as complete; accepted lists must be consistent.
func FuzzJobs(f *testing.F) {
	f.Add([]byte(`{"jobs":[` + waitingJob(1, "") + `,` + runningJob(2, "") + `],"last_update":5,"errors":[]}`))
	f.Add([]byte(`{"jobs":[` + waitingJob(3, `"array_job_id":3,"array_task_string":"0-4,11-19:2%5","array_max_tasks":5`) + `]}`))
	f.Add([]byte(`{"jobs":[` + runningJob(4, `"tres_alloc_str":"gres/gpu=1","gres_detail":["shard:1(1/2,0/2)"]`) + `],"errors":[{"error_number":1}]}`))
	f.Add([]byte(`{"jobs":[` + waitingJob(3, `"array_job_id":3,"array_task_string":"0-4,odd,9-7,11","required_nodes":"v[2-1],v1","excluded_nodes":"v[","tres_req_str":"cpu=x,gres/gpu=1,odd"`) + `]}`))
	f.Add([]byte(`{"jobs":[{"job_id":{"number":-1}},{"job_id":1e99},{"job_state":"RUNNING","job_id":"7"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr := translator{nodes: map[string]cluster.Node{"v1": {Name: "v1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}, arrayCap: 100, now: 1e12}
		s := seen{gpuNodes: tr.nodes, records: map[int64]*record{}}
		_, err := readReply(bytes.NewReader(data), func(r *reader, name string) bool {
			if name != "jobs" {
				return false
			}
			r.array(func() {
				r.junk = ""
				w := readJob(r)
				if r.junk != "" || r.err != nil {
					return
				}
				if rec, err := tr.record(&w, s.known(&w)); err == nil {
					s.records[w.id] = rec
				}
			})
			return true
		})
		if err == nil && !bytes.HasSuffix(bytes.TrimRight(data, " \t\r\n"), []byte("}")) && !bytes.Contains(data, []byte("}")) {
			t.Error("a reply without an end was taken")
		}
		jobs := s.assemble(1e12)
		for i, j := range jobs {
			if j.Record <= 0 || j.State == "" || j.Request.Size.Devices < 0 || j.Suspend < 0 || j.Limit < 0 {
				t.Errorf("senseless job: %+v", j)
			}
			if i > 0 && jobs[i-1].ID.Compare(j.ID) > 0 {
				t.Errorf("not sorted: %v before %v", jobs[i-1].ID, j.ID)
			}
			for _, h := range j.Holds {
				if h.Size.Devices < 0 || h.Node == "" || h.Size.Devices > 0 && h.Model == "" {
					t.Errorf("senseless holding: %+v", h)
				}
			}
		}
	})
}

// FuzzOthers does the same with the other lists.
func FuzzOthers(f *testing.F) {
	f.Add([]byte(`{"nodes":[{"name":"v1","state":["IDLE","DRAIN"],"gres":"gpu:v100:4(S:0-1),shard:8","gres_drained":"gpu:v100:1(IDX:3)","cpus":16,"real_memory":8000}]}`))
	f.Add([]byte(`{"partitions":[{"name":"main","nodes":{"configured":"v[1-2]"},"maximums":{"time":{"infinite":true}},"partition":{"state":["UP"]}}]}`))
	f.Add([]byte(`{"partitions":[{"name":"main","accounts":{"allowed":"b,a,a","deny":"ALL"},"qos":{"deny":["x"]},"maximums":{"nodes":{"number":-3,"set":true},"cpus_per_node":"x"},"minimums":{"nodes":1e30}}]}`))
	f.Add([]byte(`{"reservations":[{"name":"fairlease_1","node_list":"v1","accounts":"nlp,vision","start_time":{"number":5,"set":true},"flags":["FLEX"]}]}`))
	f.Add([]byte(`{"nodes":[{"name":"v1","state":["IDLE"],"gres":"gpu:v100:4","specialized_memory":"x"}],"partitions":[{"name":"p","accounts":[7],"maximums":{"time":"x"}}],"qos":[{"name":"q","limits":[]}]}`))
	f.Add([]byte(`{"reservations":[{"name":"gpus","node_list":"v1","core_count":8,"tres":"cpu=8,gres/gpu:v100=1,gres/gpu=1","core_specializations":[{"node":"v1","core":"8-15"}]}]}`))
	f.Add([]byte(`{"reservations":[{"name":"cores","node_list":"v1","core_count":4,"tres":"cpu=8","core_specializations":[{"node":"v1","core":"0-3"},{"core":7},3]}]}`))
	f.Add([]byte(`{"associations":[{"account":"nlp","shares_raw":"Infinity"}]}`))
	f.Add([]byte(`{"associations":[{"account":"nlp","max":{"tres":{"total":[{"type":"gres","name":"gpu","count":-1},{"type":"cpu","count":1e99}],"per":7},"jobs":{"active":null}}}]}`))
	f.Add([]byte(`{"qos":[{"name":"hi","flags":"X,OVERRIDE_PARTITION_QOS","limits":{"max":{"tres":{"per":{"user":[{"type":"gres","name":"gpu","count":{"set":true,"number":2}}]}}},"min":[]}}]}`))
	f.Add([]byte(siteLicenses))
	f.Add([]byte(`{"shares":[{"name":"alice","parent":"nlp","type":["USER"],"shares":{"set":true,"infinite":true}}]}`))
	f.Add([]byte(`{"jobs":[{"job_id":3,"state":{"current":["PENDING","REQUEUED"]},"time":{"start":5,"end":9},"tres":{"allocated":[{"type":"gres","name":"gpu:v100","count":2}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Client
		_, _ = readReply(bytes.NewReader(data), func(r *reader, name string) bool {
			r.junk = ""
			switch name {
			case "nodes":
				r.array(func() {
					for _, g := range readNode(r).GPUs {
						if g.Count < 0 || g.Model == "" {
							t.Errorf("senseless GPUs: %+v", g)
						}
					}
				})
			case "partitions":
				r.array(func() {
					if p := readPartition(r); p.Rules.MinNodes < 0 || p.Rules.MaxNodes < 0 || p.Rules.CPUsPerNode < 0 || !slices.IsSorted(p.Rules.AllowAccounts) {
						t.Errorf("senseless rules: %+v", p.Rules)
					}
				})
			case "reservations":
				r.array(func() {
					for _, p := range readReservation(r).Parts {
						if p.CPUs < 0 || p.Node == "" {
							t.Errorf("a senseless part of a node: %+v", p)
						}
					}
				})
			case "shares":
				r.array(func() { readShare(r) })
			case "associations":
				r.array(func() {
					if a := readAssociation(r, unreadTRES{}); a.translate().Name != a.account {
						t.Errorf("an account changed its name: %+v", a)
					}
				})
			case "qos":
				r.array(func() {
					q, _ := readQOS(r, unreadTRES{})
					for _, x := range q.Caps {
						if x.Max < 0 || x.Rule == "" {
							t.Errorf("a senseless limit: %+v", x)
						}
					}
				})
			case "licenses":
				r.array(func() {
					if l, reserved, _ := readLicense(r); min(l.Total, l.Used, l.Deficit, reserved) < 0 {
						t.Errorf("senseless counts: %+v, %d", l, reserved)
					}
				})
			case "jobs":
				r.array(func() { history(c).attempt(r) })
			default:
				return false
			}
			return true
		})
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"v[1-2,05],k1", "gpu:v100:2(IDX:0-1),shard:1(1/2)", "0-4,11-19:2%5", "cpu=4,mem=1.5T,gres/gpu:v100=4", "fl:begin=5,gate=6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if list, err := gresList(s); err == nil {
			for _, g := range list {
				g.indices()
				g.shared()
			}
		}
		if tasks, _, err := taskNumbers(s, 50); err == nil && len(tasks) > 50 {
			t.Errorf("%d tasks", len(tasks))
		}
		if x := parseTres(s); x.gpus < 0 || x.cpus < 0 || x.memoryMB < 0 {
			t.Errorf("negative: %+v", x)
		}
		mark(s)
		newReader(strings.NewReader(s)).number()
	})
}
