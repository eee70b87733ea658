package slurm

import (
	"fmt"
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A number in a job stays unchanged while 64 bits can compute with it, and is clamped beyond
// that.
func TestNumbersOfAJobAreBounded(t *testing.T) {
	t.Parallel()
	const huge = `{"set":true,"infinite":false,"number":9223372036854775807}`
	for what, c := range map[string]struct {
		fields string
		want   cluster.Request
	}{
		"-N 300000000 --gres=gpu:8": {`"tres_req_str":"cpu=300000000,mem=30000000000M,node=300000000,billing=300000000,gres/gpu=2400000000","tres_per_node":"gres/gpu:8","node_count":300000000`,
			cluster.Request{Size: cluster.Whole(2_400_000_000), Nodes: 300_000_000, PerNode: 8, CPUs: 300_000_000, MemoryMB: 30_000_000_000}},
		"a million GPUs on as many nodes as there are numbers": {`"tres_req_str":"cpu=1,mem=1M,node=4294967293","tres_per_node":"gres/gpu:1000000","node_count":4294967293`,
			cluster.Request{Size: cluster.Whole(mostThings), Nodes: 4_294_967_293, PerNode: 1_000_000, CPUs: 1, MemoryMB: 1}},
		"--gpus=4G": {`"tres_req_str":"cpu=1,node=1,gres/gpu=4294967296","tres_per_node":"","tres_per_job":"gres/gpu:4G"`,
			cluster.Request{Size: cluster.Whole(4 << 30), Nodes: 1, CPUs: 1}},
		"--gpus-per-task and --ntasks": {`"tres_req_str":"cpu=4000000000,node=1","tres_per_node":"","tres_per_task":"gres/gpu:4000000000","tasks":4000000000,"tasks_per_node":` + huge,
			cluster.Request{Size: cluster.Whole(mostThings), Nodes: 1, PerNode: mostThings, CPUs: 4_000_000_000}},
		"--mem-per-cpu": {`"tres_req_str":"cpu=4000000000,node=1,gres/gpu=2","memory_per_cpu":` + huge,
			cluster.Request{Size: cluster.Whole(2), Nodes: 1, PerNode: 2, CPUs: 4_000_000_000, MemoryMB: mostMemory}},
		"everything": {`"tres_req_str":"cpu=99999999999999999999,mem=99999999P,node=99999999999999999999,gres/gpu=99999999999999999999","max_nodes":` + huge +
			`,"node_count":` + huge + `,"cpus":` + huge + `,"memory_per_node":` + huge + `,"tasks":` + huge,
			cluster.Request{Size: cluster.Whole(mostThings), Nodes: mostThings, MaxNodes: mostThings, PerNode: 2, CPUs: mostThings, MemoryMB: mostMemory}},
	} {
		t.Run(what, func(t *testing.T) {
			jobs := translated(t, []byte(`{"jobs":[`+waitingJob(1, c.fields)+`]}`))
			if len(jobs) != 1 || jobs[0].Request != c.want {
				t.Errorf("%+v; want %+v", jobs, c.want)
			}
		})
	}
}

// Any time that users may request, and that of a wrong clock, is safe in computations and valid
// in every calendar.
func TestTimesOfAJobAreBounded(t *testing.T) {
	t.Parallel()
	for _, seconds := range []string{"1000000000000", "9223372036854775807", "-1", "-9223372036854775808", "1e300"} {
		fields := ""
		for _, name := range []string{"submit_time", "eligible_time", "start_time", "end_time", "deadline", "suspend_time", "pre_sus_time", "time_limit"} {
			fields += fmt.Sprintf(`,"%s":{"set":true,"infinite":false,"number":%s}`, name, seconds)
		}
		jobs, notes := translatedAs(t, []byte(`{"jobs":[`+runningJob(1, fields[1:]+`,"restart_cnt":`+seconds)+`]}`))
		if seconds == "1e300" { // not a number
			if len(jobs) != 0 || len(notes) != 1 {
				t.Errorf("%s: %d jobs, %q", seconds, len(jobs), notes)
			}
			continue
		}
		j := jobs[0]
		for name, at := range map[string]cluster.Instant{"submit": j.Submit, "eligible": j.Eligible, "start": j.Start, "end": j.End, "deadline": j.Deadline} {
			if at < 0 || at > forever+1000 {
				t.Errorf("%s: %s at %v", seconds, name, at)
			}
		}
		if j.Limit < 0 || j.Limit > mostMinutes*cluster.Minute || j.Suspend < 0 || j.Restarts < 0 || j.Restarts > mostThings {
			t.Errorf("%s: limit %d, suspended %d, restarts %d", seconds, j.Limit, j.Suspend, j.Restarts)
		}
		if end := forever.Add(j.Limit); end.Time().Year() > 9999 || end < 0 {
			t.Errorf("%s: the latest begin and this limit end in %d", seconds, end.Time().Year())
		}
	}
}

func TestProducts(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]int64{{0, math.MaxInt64, 9, 0}, {3, 3, 10, 9}, {3, 4, 10, 10}, {1 << 32, 1 << 32, 1 << 40, 1 << 40}, {math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}} {
		if got := product(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d · %d within %d is %d; want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}
