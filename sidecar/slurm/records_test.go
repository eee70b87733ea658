package slurm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A job carries the words of its user's comment that concern fairlease.
func TestACommentIsRead(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/jobs-26.05-v0.0.44.json")
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`"comment":""`), []byte(`"comment":"mine, kind=resnet50,steps\/s.v100=12.5"`), 1)
	want := &cluster.Hints{Kind: "resnet50", Rates: []cluster.Rate{{Model: "v100", Rate: 12.5}}}
	if d := cmp.Diff(want, translated(t, data)[0].Hints); d != "" {
		t.Errorf("the hints of the first job (-want +got):\n%s", d)
	}
}

// A job carries its deadline; 0 without one.
func TestADeadlineIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		want  cluster.Instant
	}{{`{"set":true,"infinite":false,"number":1795242600}`, 1795242600000}, {`1795242600`, 1795242600000}, {`{"set":false,"infinite":false,"number":0}`, 0}, {`0`, 0}} {
		f := translated(t, []byte(`{"jobs":[`+waitingJob(7, `"deadline":`+c.field)+`]}`))
		if f[0].Deadline != c.want {
			t.Errorf("%s: a deadline of %v; want %v", c.field, f[0].Deadline, c.want)
		}
	}
}

// TestRealRecords translates recorded answers of real Slurms (testdata: the same eight jobs on each tested release,
// in each version of its API that we know), and expects equal results.
func TestRealRecords(t *testing.T) {
	t.Parallel()
	const s, m = cluster.Second, cluster.Minute
	type request = cluster.Request
	type holding = cluster.Holding
	records, err := filepath.Glob("testdata/jobs-*.json")
	if err != nil || len(records) != 1+4 {
		t.Fatalf("records %q (%v); want v0.0.42 of 24.11, and v0.0.42 to v0.0.45 of 26.05", records, err)
	}
	for _, record := range records {
		t.Run(record, func(t *testing.T) {
			data, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			jobs := translated(t, data)
			if len(jobs) != 17 {
				t.Fatalf("%d jobs; want 7 and an array of 10", len(jobs))
			}
			// Values that differ from run to run are checked separately.
			for i := range jobs {
				j := &jobs[i]
				running := j.State == cluster.Running
				if j.Submit == 0 || running != (j.Start > 0) && j.State != cluster.Done || (j.End > 0) != (j.Limit > 0) && running {
					t.Errorf("times of %v: submit %v start %v end %v", j.ID, j.Submit, j.Start, j.End)
				}
				if gate := j.Eligible.Sub(j.Submit); gate >= 59*m {
					j.PendingReason += " gated"
				}
				if (j.Blur == s/2) != (j.Start > 0) {
					t.Errorf("times of %v are off by %v", j.ID, j.Blur)
				}
				j.Submit, j.Eligible, j.Start, j.End, j.Blur = 0, 0, 0, 0, 0
				j.Command, j.Work = "", "" // only from v0.0.44 on: see TestRealSubmitLines
			}
			base := cluster.Job{Name: "wrap", QOS: "normal", Partitions: []string{"gpu"}, Batch: true, Requeueable: true}
			job := func(id int64, user, account string, state cluster.JobState, q request, change func(*cluster.Job)) cluster.Job {
				j := base
				j.ID, j.Record, j.User, j.Account, j.State, j.Request = cluster.JobID{ID: id}, id, user, account, state, q
				j.UID = map[string]uint32{"alice": 2001, "carol": 2002, "bob": 2003}[user]
				if change != nil {
					change(&j)
				}
				return j
			}
			want := []cluster.Job{
				job(1, "alice", "nlp", cluster.Running, request{Size: cluster.Whole(2), Nodes: 1, PerNode: 2, Model: "v100", CPUs: 2, MemoryMB: 200}, func(j *cluster.Job) {
					j.Name, j.NodeList, j.Limit = "train", []string{"v1"}, 600*s
					j.Holds = []holding{{Node: "v1", Model: "v100", Size: cluster.Whole(2), Index: []int{0, 1}, CPUs: 2, MemoryMB: 200}}
				}),
				job(2, "carol", "nlp", cluster.Running, request{Size: cluster.Whole(3), Nodes: 2, CPUs: 2, MemoryMB: 200}, func(j *cluster.Job) {
					j.NodeList = []string{"k[1-2]"}
					j.Holds = []holding{
						{Node: "k1", Model: "k80", Size: cluster.Whole(2), Index: []int{0, 1}, CPUs: 1, MemoryMB: 100},
						{Node: "k2", Model: "k80", Size: cluster.Whole(1), Index: []int{0}, CPUs: 1, MemoryMB: 100},
					}
				}),
				job(3, "bob", "vision", cluster.Waiting, request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100, Exclusive: true}, func(j *cluster.Job) {
					j.PendingReason, j.Exclude, j.Requeueable = "BeginTime gated", []string{"v2"}, false
				}),
			}
			for i, n := range []int32{0, 1, 2, 3, 4, 11, 13, 15, 17, 19} {
				want = append(want, job(4, "bob", "vision", cluster.Waiting, request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100}, func(j *cluster.Job) {
					j.ID, j.UnsplitArray, j.PendingReason = cluster.TaskID(4, n), true, "BeginTime gated"
					if i >= 3 {
						j.Inactive = "array limit"
					}
				}))
			}
			want = append(want,
				job(5, "bob", "vision", cluster.Waiting, request{Size: cluster.Whole(8), Nodes: 1, MaxNodes: 1, CPUs: 1, MemoryMB: 100}, func(j *cluster.Job) { j.PendingReason = "BeginTime gated" }),
				job(6, "alice", "nlp", cluster.Running, request{Size: cluster.Whole(1), Shards: 1, Nodes: 1, CPUs: 1, MemoryMB: 100}, func(j *cluster.Job) {
					j.NodeList = []string{"v2"}
					j.Holds = []holding{{Node: "v2", Model: "v100", Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, Index: []int{0}, CPUs: 1, MemoryMB: 100}}
				}),
				job(7, "alice", "nlp", cluster.Waiting, request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100}, func(j *cluster.Job) {
					j.PendingReason, j.Inactive = "Dependency", "dependency"
				}),
				job(8, "alice", "nlp", cluster.Done, request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100}, func(j *cluster.Job) {
					j.PendingReason, j.Outcome, j.Had = "NonZeroExitCode", "FAILED", []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(1)}}
				}),
			)
			if d := cmp.Diff(want, jobs); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

// translated gives the jobs of a full list on a cluster of v1, v2, k1 and k2; every record must
// be valid.
func translated(t testing.TB, data []byte) []cluster.Job {
	t.Helper()
	jobs, wrong := translatedAs(t, data)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return jobs
}

// translatedAs gives the jobs, and the invalid records.
func translatedAs(t testing.TB, data []byte) (jobs []cluster.Job, wrong []string) {
	t.Helper()
	s := seen{gpuNodes: map[string]cluster.Node{}, records: map[int64]*record{}}
	for name, model := range map[string]string{"v1": "v100", "v2": "v100", "k1": "k80", "k2": "k80"} {
		s.gpuNodes[name] = cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: model, Count: 4}}}
	}
	tr := translator{nodes: s.gpuNodes, arrayCap: 1000, now: 1}
	_, err := readReply(bytes.NewReader(data), func(r *reader, name string) bool {
		if name != "jobs" {
			return false
		}
		r.array(func() {
			r.junk = ""
			w := readJob(r)
			rec, err := tr.record(&w, nil)
			if r.junk != "" || err != nil {
				wrong = append(wrong, fmt.Sprintf("record %d: %s %v", w.id, r.junk, err))
				return
			}
			s.records[w.id] = rec
		})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.assemble(1), wrong
}
