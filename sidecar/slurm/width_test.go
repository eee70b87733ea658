package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// racer is a job in a Slurm that starts it at a drawn moment, since its gate lapses or its owner opens it.
type racer struct {
	mu       sync.Mutex
	record   string // without its state, maximum and nodes
	least    int
	most     int // as Slurm has it; 0 = no limit
	required []string
	alloc    []string // on which it runs; nil = it waits
	// starts is the number of requests after which it starts, on the first nodes of order that fit.
	starts int
	order  []string
	shut   bool // it was just seen waiting behind a gate that was shut a moment before
	grant  bool
	cut    string // the change that shrank it; "" = none
}

// start gives the job its nodes: the required ones first, at most as many as it may have.
func (j *racer) start(width int) {
	most := min(max(width, j.least), len(j.order))
	if j.most > 0 {
		most = min(most, j.most)
	}
	for _, n := range slices.Concat(j.required, j.order) {
		if len(j.alloc) < most && !slices.Contains(j.alloc, n) {
			j.alloc = append(j.alloc, n)
		}
	}
}

func (j *racer) pass(width int) {
	// Between a look at a shut gate and the next request there is no time for a lapse.
	if j.starts--; j.starts < 0 && j.alloc == nil && (j.grant || !j.shut) {
		j.start(width)
	}
}

func (j *racer) read(width int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.pass(width)
		j.shut = j.alloc == nil
		jobs(900, fmt.Sprintf(j.record, j.state(), j.most))(w, r)
	}
}

func (j *racer) state() string {
	if j.alloc == nil {
		return "PENDING"
	}
	return "RUNNING"
}

// obey carries out a change as slurmctld does, and gives its error; 0 = none. It refuses a maximum of a running job before anything
// else, but obeys a list of nodes whatever else it refuses.
func (j *racer) obey(body string, width int) int {
	var ch struct {
		Required []string `json:"required_nodes"`
		Most     int      `json:"maximum_nodes"`
		Begin    any      `json:"begin_time"`
	}
	if err := json.Unmarshal([]byte(body), &ch); err != nil {
		return 9000
	}
	j.pass(width)
	j.shut = false
	named := slices.DeleteFunc(slices.Clone(ch.Required), func(n string) bool { return n == "" })
	if j.alloc == nil {
		if ch.Most > 0 {
			j.most = ch.Most
		}
		if ch.Required != nil {
			j.required = named
		}
		return 0
	}
	if ch.Required != nil {
		part := len(named) > 0 && slices.Contains(named, j.alloc[0]) && !slices.ContainsFunc(named, func(n string) bool { return !slices.Contains(j.alloc, n) })
		if part && len(named) < len(j.alloc) {
			j.cut = fmt.Sprintf("%s reached a job that runs on %s", body, strings.Join(j.alloc, ","))
		}
		if !part {
			return codeInvalidNodes
		}
	}
	if ch.Most > 0 || ch.Begin != nil {
		return codeNotPending
	}
	return 0
}

// No change that reaches a running job names fewer nodes than the job has, whatever its request is and whenever it starts.
func TestNoChangeShrinksARunningJob(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	nodes := []string{"v1", "v2", "v3", "v4", "v5", "v6"}
	rapid.Check(t, func(t *rapid.T) {
		j := &racer{starts: rapid.IntRange(0, 6).Draw(t, "starts"), order: rapid.Permutation(nodes).Draw(t, "order")}
		width := rapid.IntRange(1, len(nodes)).Draw(t, "width")
		count, fields := 1, ""
		switch rapid.SampledFrom([]string{"plain", "fixed", "range", "gpus", "tasks"}).Draw(t, "request") {
		case "plain": // --gres=gpu:1: Slurm takes one node, though it shows no maximum
			j.least, width, fields = 1, 1, `"tres_per_node":"gres/gpu:1"`
		case "fixed": // -N3
			j.least = rapid.IntRange(1, len(nodes)).Draw(t, "nodes")
			j.most, count, fields = j.least, j.least, `"tres_per_node":"gres/gpu:1"`
		case "range": // -N1-4
			j.least = rapid.IntRange(1, 3).Draw(t, "least")
			j.most = rapid.IntRange(j.least, len(nodes)).Draw(t, "most")
			count, fields = j.most, `"tres_per_node":"gres/gpu:1"`
		case "gpus": // --gpus=4
			j.least, fields = 1, `"tres_per_job":"gres/gpu:4"`
		case "tasks": // -n4 --gres=gpu:1
			j.least, j.most, fields = 1, 4, `"tres_per_node":"gres/gpu:1","tasks":4,"flags":["EXACT_TASK_COUNT_REQUESTED","JOB_IMPLICIT_MAX_NODES"]`
		}
		j.record = `{"job_id":7,"job_state":["%s"],"name":"train","user_name":"alice","account":"nlp","partition":"main","batch_flag":true,"requeue":true,` +
			`"tres_req_str":"cpu=1,mem=100M,node=` + fmt.Sprint(j.least) + `,billing=2,gres/gpu=4","submit_time":100,"priority":7,"max_nodes":%d,"node_count":` +
			fmt.Sprint(count) + "," + fields + "}"
		own := rapid.SliceOfNDistinct(rapid.SampledFrom(nodes), 0, 3, rapid.ID[string]).Draw(t, "own")
		j.required = own
		f.on("GET /slurm/v0.0.44/jobs/", jobs(900, fmt.Sprintf(j.record, "PENDING", j.most)))
		f.on("GET /slurm/v0.0.44/job/7", j.read(width))
		f.on("POST /slurm/v0.0.44/job/7", func(w http.ResponseWriter, r *http.Request) {
			j.mu.Lock()
			defer j.mu.Unlock()
			if code := j.obey(f.lastBody(), width); code != 0 {
				status(500, text(fmt.Sprintf(`{"errors":[{"error_number":%d,"error":"no"}]}`, code)))(w, r)
				return
			}
			text(ok)(w, r)
		})
		c := f.client()
		f.see(c)
		a := cluster.Action{Verb: rapid.SampledFrom([]cluster.Verb{cluster.Grant, cluster.RevokeGrant, cluster.Open}).Draw(t, "verb"),
			ID: cluster.JobID{ID: 7}, Record: 7, NodeList: own, MaxNodes: rapid.SampledFrom([]int{0, -1, 4}).Draw(t, "restored")}
		if j.grant = a.Verb == cluster.Grant; j.grant {
			most := j.most
			if most == 0 {
				most = len(nodes)
			}
			if j.least, most = min(j.least, most), max(most, 1); strings.Contains(fields, "per_node") && j.most == 0 {
				most = 1
			}
			a.Nodes = rapid.SliceOfNDistinct(rapid.SampledFrom(nodes), j.least, most, rapid.ID[string]).Draw(t, "granted")
		} else {
			a.Until = 2_000_000_000
		}
		out := c.Apply(t.Context(), []cluster.Action{a})
		if j.cut != "" {
			t.Fatal(j.cut)
		}
		if j.alloc == nil && !out[0].OK {
			t.Fatalf("the job waits, but %s failed: %+v", a.Verb, out[0])
		}
		if j.grant && j.alloc == nil && (!slices.Equal(j.required, a.Nodes) || j.most > 0 && j.most < j.least) {
			t.Fatalf("granted %q with at most %d nodes; want %q", j.required, j.most, a.Nodes)
		}
	})
}

// lastBody is the body of the newest request.
func (f *recorded) lastBody() string {
	all := f.all()
	return all[len(all)-1].body
}

// A job that has started when its grant comes is left as it is: nothing but a maximum of nodes is sent to it, and the outcome is a skip.
func TestAGrantThatIsLateChangesNothing(t *testing.T) {
	t.Parallel()
	f, c := acting(t, 44, `{"job_id":7,"job_state":["PENDING"],"name":"train","user_name":"alice","account":"nlp","partition":"main","batch_flag":true,"requeue":true,`+
		`"tres_req_str":"cpu=1,node=1,gres/gpu=4","tres_per_job":"gres/gpu:4","submit_time":100,"priority":7,"node_count":1}`)
	f.on("POST /slurm/v0.0.44/job/7", status(500, text(`{"errors":[{"error_number":2073,"error":"Job is no longer pending execution"}]}`)))
	out := c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Grant, ID: cluster.JobID{ID: 7}, Record: 7, Nodes: []string{"v1", "v2"}}})
	if !out[0].Skipped || f.count("POST /slurm/v0.0.44/job/7") != 1 {
		t.Errorf("%+v after %v", out[0], f.all())
	}
	if body := f.body("POST /slurm/v0.0.44/job/7"); len(body) != 1 || body["maximum_nodes"] != 2.0 {
		t.Errorf("sent %v", body)
	}
}
