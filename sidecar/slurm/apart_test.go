package slurm

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A job with --exclusive=user, =mcs or =topo asks for whole nodes, and while it runs, the GPUs of its nodes that no job holds are
// its own: Slurm gives them to nobody else. Several such jobs on a node count each GPU once.
func TestWholeNodesOfAUserAreHeld(t *testing.T) {
	t.Parallel()
	type holding = cluster.Holding
	runs := func(id int, detail, more string) string {
		return strings.Replace(runningJob(id, more), "gpu:v100:2(IDX:0-1)", detail, 1)
	}
	const user = `"shared":["user"]`
	whole := func(index ...int) []holding {
		return []holding{{Node: "v1", Model: "v100", Size: cluster.Whole(len(index)), Index: index, CPUs: 2, MemoryMB: 100}}
	}
	for name, c := range map[string]struct {
		jobs []string
		want map[int64][]holding
	}{
		"alone":                        {[]string{runs(4, "gpu:v100:1(IDX:2)", user)}, map[int64][]holding{4: whole(0, 1, 2, 3)}},
		"by MCS label":                 {[]string{runs(4, "gpu:v100:1(IDX:2)", `"shared":["mcs"]`)}, map[int64][]holding{4: whole(0, 1, 2, 3)}},
		"by topology":                  {[]string{runs(4, "gpu:v100:1(IDX:2)", `"shared":["topo"]`)}, map[int64][]holding{4: whole(0, 1, 2, 3)}},
		"all its GPUs are its own":     {[]string{runs(4, "gpu:v100:4(IDX:0-3)", user)}, map[int64][]holding{4: whole(0, 1, 2, 3)}},
		"two of a user":                {[]string{runs(4, "gpu:v100:1(IDX:0)", user), runs(5, "gpu:v100:2(IDX:1-2)", user)}, map[int64][]holding{4: whole(0, 3), 5: whole(1, 2)}},
		"a plain one joins":            {[]string{runs(4, "gpu:v100:1(IDX:0)", ""), runs(5, "gpu:v100:1(IDX:1)", user)}, map[int64][]holding{4: whole(0), 5: whole(1, 2, 3)}},
		"others without":               {[]string{runs(4, "gpu:v100:1(IDX:0)", `"shared":["oversubscribe"]`), runs(5, "gpu:v100:1(IDX:1)", `"shared":[]`)}, map[int64][]holding{4: whole(0), 5: whole(1)}},
		"it cleans up":                 {[]string{strings.Replace(runs(4, "gpu:v100:2(IDX:0-1)", user), "RUNNING", "COMPLETING\",\"COMPLETED", 1)}, map[int64][]holding{4: whole(0, 1, 2, 3)}},
		"its GPUs' numbers are hidden": {[]string{runs(4, "gpu:v100:1", user)}, map[int64][]holding{4: {{Node: "v1", Model: "v100", Size: cluster.Whole(4), CPUs: 2, MemoryMB: 100}}}},
		"it asks for no GPUs": {[]string{strings.NewReplacer(`,gres/gpu=2`, "", `"tres_per_node":"gres/gpu:2",`, "").Replace(runs(4, "", user))},
			map[int64][]holding{4: whole(0, 1, 2, 3)}},
	} {
		got := map[int64][]holding{}
		for _, j := range translated(t, []byte(`{"jobs":[`+strings.Join(c.jobs, ",")+`]}`)) {
			got[j.Record] = j.Holds
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, mode := range []string{"user", "mcs", "topo"} {
		j := translated(t, []byte(`{"jobs":[`+waitingJob(7, `"shared":[`+strconv.Quote(mode)+`]`)+`]}`))[0]
		if r := j.Request; !r.Exclusive || !r.Loose() || !r.Apart() || !r.Leasable() || r.Unplaceable != "exclusive="+mode {
			t.Errorf("--exclusive=%s: %+v", mode, r)
		}
	}
}

// On a node of two models, a job whose nodes are closed to other users holds what nobody holds of either.
func TestWholeNodesOfTwoModels(t *testing.T) {
	t.Parallel()
	node := cluster.Node{Name: "m1", GPUs: []cluster.GPUs{{Model: "k80", Count: 2}, {Model: "v100", Count: 4}}}
	own := cluster.Holding{Node: "m1", Model: "v100", Size: cluster.Whole(1), Index: []int{2}, CPUs: 3, MemoryMB: 7}
	for name, c := range map[string]struct{ own, others, want []cluster.Holding }{
		"alone": {own: []cluster.Holding{own}, want: []cluster.Holding{{Node: "m1", Model: "k80", Size: cluster.Whole(2), CPUs: 3, MemoryMB: 7}, {Node: "m1", Model: "v100", Size: cluster.Whole(4), Index: []int{2}}}},
		"beside another": {own: []cluster.Holding{own}, others: []cluster.Holding{{Node: "m1", Model: "k80", Size: cluster.Whole(2)}},
			want: []cluster.Holding{{Node: "m1", Model: "v100", Size: cluster.Whole(4), Index: []int{2}, CPUs: 3, MemoryMB: 7}}},
		"without GPUs": {own: []cluster.Holding{{Node: "m1", CPUs: 3, MemoryMB: 7}}, others: []cluster.Holding{{Node: "m1", Model: "v100", Size: cluster.Whole(3)}},
			want: []cluster.Holding{{Node: "m1", Model: "k80", Size: cluster.Whole(2), CPUs: 3, MemoryMB: 7}, {Node: "m1", Model: "v100", Size: cluster.Whole(1)}}},
	} {
		s := seen{gpuNodes: map[string]cluster.Node{"m1": node}}
		jobs := []cluster.Job{{Holds: c.own}, {Holds: c.others}}
		before := cmp.Diff(nil, c.own)
		s.keepWhole(jobs, []int{0})
		if d := cmp.Diff(c.want, jobs[0].Holds); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if cmp.Diff(nil, c.own) != before {
			t.Errorf("%s: the record's own holdings changed: %+v", name, c.own)
		}
	}
}

// A started job keeps the request of the last look, since Slurm forgets which nodes it asked for, unless its owner has had it ask for more
// GPUs since.
func TestGPUsAskedForSinceTheLastLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts func(string) string
		want   int
	}{
		"as before":                   {func(s string) string { return s }, 2},
		"on more nodes than it needs": {func(s string) string { return strings.Replace(s, `"node_count":1`, `"node_count":2`, 1) }, 2},
		"more": {func(s string) string {
			return strings.Replace(s, `"tres_per_node":"gres/gpu:2"`, `"tres_per_node":"gres/gpu:4"`, 1)
		}, 4},
		"fewer": {func(s string) string {
			return strings.Replace(s, `"tres_per_node":"gres/gpu:2"`, `"tres_per_node":"gres/gpu:1"`, 1)
		}, 2},
	} {
		tr := translator{nodes: map[string]cluster.Node{"v1": {Name: "v1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}, arrayCap: 1000, now: 1}
		read := func(text string, before *record) (rec *record) {
			_, err := readReply(strings.NewReader(`{"jobs":[`+text+`]}`), func(r *reader, field string) bool {
				if field != "jobs" {
					return false
				}
				r.array(func() {
					w := readJob(r)
					var err error
					if rec, err = tr.record(&w, before); err != nil {
						t.Fatal(err)
					}
				})
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			return rec
		}
		waits := read(waitingJob(7, `"node_count":1`), nil)
		runs := read(c.starts(runningJob(7, `"node_count":1`)), waits)
		if got := runs.jobs[0].Request.Size.Devices; waits.jobs[0].Request.Size.Devices != 2 || got != c.want {
			t.Errorf("%s: it asks for %d GPUs, want %d", name, got, c.want)
		}
		if again := read(c.starts(runningJob(7, `"node_count":1`)), runs); again.jobs[0].Request.Size.Devices != c.want {
			t.Errorf("%s: at the next look it asks for %d GPUs", name, again.jobs[0].Request.Size.Devices)
		}
	}
}

// A node that is closed to other users is held as a whole also where the jobs there share a GPU: the GPUs that nobody holds are counted by their numbers.
func TestSharedGPUsOfClosedNodes(t *testing.T) {
	node := cluster.Node{Name: "m1", Shards: 8, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}
	var here []cluster.Holding
	for range 4 {
		here = append(here, cluster.Holding{Node: "m1", Model: "v100", Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 8}, Index: []int{0}})
	}
	got := filled(here[:1], node, here)
	if len(got) != 1 || got[0].Size.Amount() != 3*cluster.WholeGPU+cluster.WholeGPU/8 || !slices.Equal(got[0].Index, []int{0, 1, 2, 3}) {
		t.Errorf("the first of four jobs with a shard of GPU 0 holds %+v, want that and the three other GPUs", got)
	}
}
