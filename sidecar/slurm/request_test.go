package slurm

import (
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Slurm lets nobody change jobs of scrontab, so these have no lease whatever else they ask for.
func TestScrontabComesFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		job  wireJob
		want string
	}{
		{"plain", wireJob{perNode: "gres/gpu:1"}, cluster.Cron},
		{"per socket", wireJob{perSocket: "gres/gpu:1"}, cluster.Cron},
		{"several models", wireJob{perJob: "gres/gpu:v100:1,gres/gpu:k80:1"}, cluster.Cron},
		{"shared with its user", wireJob{perNode: "gres/gpu:1", shared: []string{"user"}}, cluster.Cron},
		{"contiguous", wireJob{perNode: "gres/gpu:1", nodeCount: 2, maxNodes: 2, contig: true}, cluster.Cron},
		{"parts of GPUs by MPS on two nodes", wireJob{perNode: "gres/mps:50", nodeCount: 2, maxNodes: 2}, cluster.PartsOfGPUs},
		{"a part by MPS", wireJob{perNode: "gres/mps:50"}, cluster.Cron},
		{"a shard", wireJob{perNode: "gres/shard:1"}, cluster.Cron},
	} {
		c.job.cron = true
		if q := request(&c.job); q.Unplaceable != c.want || q.Leasable() {
			t.Errorf("%s: %q, leasable %v; want %q", c.name, q.Unplaceable, q.Leasable(), c.want)
		}
	}
}

// A job that asks for shards of one GPU, in any form, asks for that part of one. Shards of GPUs of several nodes, beside whole GPUs, on whole
// nodes or by socket are left to Slurm.
func TestShards(t *testing.T) {
	nodes := map[string]cluster.Node{"a": {Name: "a", Shards: 4}, "b": {Name: "b", Shards: 8}, "c": {Name: "c"}}
	quarter := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 4}
	for _, c := range []struct {
		name   string
		job    wireJob
		shards int
		size   cluster.Size
		model  string
	}{
		{"one", wireJob{perNode: "gres/shard:1"}, 1, quarter, ""},
		{"without a number", wireJob{perNode: "gres/shard"}, 1, quarter, ""},
		{"of a model", wireJob{perNode: "gres/shard:v100:3"}, 3, cluster.Size{Devices: 1, Part: 3 * cluster.WholeGPU / 4}, "v100"},
		{"for the job", wireJob{perJob: "gres/shard:2"}, 2, cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, ""},
		{"for each of two tasks", wireJob{perTask: "gres/shard:1", taskCount: 2, maxNodes: 1}, 2, cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, ""},
		{"all of a GPU where it has the fewest", wireJob{perNode: "gres/shard:4"}, 4, cluster.Whole(1), ""},
		{"more than a GPU has", wireJob{perNode: "gres/shard:9"}, 9, cluster.Whole(1), ""},
		{"none", wireJob{perNode: "gres/shard:0"}, 0, cluster.Size{}, ""},
		{"on two nodes", wireJob{perNode: "gres/shard:1", nodeCount: 2, maxNodes: 2}, 0, cluster.Size{}, ""},
		{"on one node or two", wireJob{perNode: "gres/shard:1", nodeCount: 1, maxNodes: 2}, 0, cluster.Size{}, ""},
		{"beside a GPU", wireJob{perNode: "gres/shard:1,gres/gpu:1"}, 0, cluster.Whole(1), ""},
		{"beside MPS", wireJob{perNode: "gres/shard:1,gres/mps:50"}, 1, quarter, ""},
		{"on a whole node", wireJob{perNode: "gres/shard:1", shared: []string{"none"}}, 0, cluster.Size{}, ""},
		{"by socket", wireJob{perSocket: "gres/shard:1"}, 0, cluster.Size{}, ""},
	} {
		tr := translator{nodes: nodes}
		c.job.states, c.job.id = []string{"PENDING"}, 7
		rec, err := tr.record(&c.job, nil)
		if err != nil || len(rec.jobs) != 1 && c.size.Devices > 0 {
			t.Fatalf("%s: %+v, %v", c.name, rec, err)
		}
		q := request(&c.job)
		if left := q.Unplaceable == cluster.PartsOfGPUs; left != (c.name != "none" && (c.shards == 0 || c.name == "beside MPS")) {
			t.Errorf("%s: unplaceable %q", c.name, q.Unplaceable)
		}
		if q.Shards != c.shards {
			t.Errorf("%s: %d shards, want %d", c.name, q.Shards, c.shards)
		}
		if len(rec.jobs) > 0 {
			if j := rec.jobs[0]; j.Request.Size != c.size || j.Request.Model != c.model {
				t.Errorf("%s: asks for %v of %q, want %v of %q", c.name, j.Request.Size, j.Request.Model, c.size, c.model)
			}
		}
	}
}

// A job that asks for less of one GPU by MPS than all of it asks for that part, on nodes that have MPS alone. All else by MPS is left to Slurm.
func TestMPS(t *testing.T) {
	nodes := map[string]cluster.Node{"a": {Name: "a", Shards: 100, MPS: true}, "b": {Name: "b", Shards: 4}}
	for _, c := range []struct {
		name string
		job  wireJob
		part cluster.MicroGPU // 0 = it is left to Slurm
	}{
		{"half", wireJob{perNode: "gres/mps:50"}, cluster.WholeGPU / 2},
		{"of a model", wireJob{perNode: "gres/mps:v100:20"}, cluster.WholeGPU / 5},
		{"for each of two tasks", wireJob{perTask: "gres/mps:10", taskCount: 2, maxNodes: 1}, cluster.WholeGPU / 5},
		{"all of a GPU", wireJob{perNode: "gres/mps:100"}, 0},
		{"more than a GPU has", wireJob{perNode: "gres/mps:150"}, 0},
		{"on two nodes", wireJob{perNode: "gres/mps:50", nodeCount: 2, maxNodes: 2}, 0},
		{"beside a GPU", wireJob{perNode: "gres/mps:50,gres/gpu:1"}, 0},
		{"on a whole node", wireJob{perNode: "gres/mps:50", shared: []string{"none"}}, 0},
	} {
		tr := translator{nodes: nodes}
		c.job.states, c.job.id = []string{"PENDING"}, 7
		rec, err := tr.record(&c.job, nil)
		if err != nil || len(rec.jobs) != 1 {
			t.Fatalf("%s: %+v, %v", c.name, rec, err)
		}
		q := rec.jobs[0].Request
		if left := q.Unplaceable == cluster.PartsOfGPUs; left != (c.part == 0) || q.MPS == left || !left && q.Size != (cluster.Size{Devices: 1, Part: c.part}) {
			t.Errorf("%s: %+v", c.name, q)
		}
	}
}

// A job holds its part of the GPUs that Slurm names, by the shards that they have; where Slurm names none, of one GPU of the node.
func TestShardsThatAJobHolds(t *testing.T) {
	node := cluster.Node{Name: "a", Shards: 4, GPUs: []cluster.GPUs{{Model: "v100", Count: 2}}}
	part := func(n cluster.MicroGPU) cluster.Size { return cluster.Size{Devices: 1, Part: n * cluster.WholeGPU / 4} }
	for text, want := range map[string]cluster.Holding{
		"shard:1(0/4,1/4)": {Model: "v100", Size: part(1), Index: []int{1}}, "shard:v100:3(3/4,0/4)": {Model: "v100", Size: part(3), Index: []int{0}},
		"shard:4(4/4,0/4)": {Model: "v100", Size: cluster.Whole(1), Index: []int{0}}, "shard:2": {Model: "v100", Size: part(2)}, "shard:9": {Model: "v100", Size: cluster.Whole(1)},
		"shard:3(1/4,2/4)": {Model: "v100", Size: cluster.Size{Devices: 2, Part: 3 * cluster.WholeGPU / 8}, Index: []int{0, 1}}, "shard:1(1/0)": {Model: "v100", Size: cluster.Whole(1), Index: []int{0}},
		"gpu:1(IDX:0),shard:2(0/4,2/4)": {Model: "v100", Size: cluster.Size{Devices: 2, Part: 3 * cluster.WholeGPU / 4}, Index: []int{0, 1}}, "shard:0": {},
	} {
		list, err := gresList(text)
		if err != nil {
			t.Fatal(err)
		}
		here := held("a", node, list)
		for _, g := range list {
			if g.name == "shard" {
				here = withShards(here, node, g)
			}
		}
		want.Node = "a"
		if len(here) != 1 || !reflect.DeepEqual(here[0], want) {
			t.Errorf("%s: %+v, want %+v", text, here, want)
		}
	}
}
