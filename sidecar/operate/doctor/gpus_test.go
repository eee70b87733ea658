package doctor

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// The exporter's idea of a GPU's job is held against Slurm's: only a job that Slurm has on other GPUs of the node shows
// another order, not one that is over.
func TestOrderOfGPUs(t *testing.T) {
	job := func(id int64, index ...int) cluster.Job {
		return cluster.Job{ID: cluster.JobID{ID: id}, Record: id, State: cluster.Running, Holds: []cluster.Holding{{Node: "a", Model: "h100", Size: cluster.Whole(len(index)), Index: index}}}
	}
	seen := &cluster.Observation{Nodes: []cluster.Node{{Name: "a", GPUs: []cluster.GPUs{{Model: "h100", Count: 2}}}}, Jobs: []cluster.Job{job(7, 0), job(8, 1)}}
	for _, c := range []struct {
		names [2]string // of jobs, in the exporter
		want  string
	}{
		{[2]string{"7", "8"}, "GPU counters ok: read on 1 node"},
		{[2]string{"", ""}, "GPU counters ok: read on 1 node"},
		{[2]string{"6", "8"}, "GPU counters ok: read on 1 node"},
		{[2]string{"8", "7"}, "order of GPUs warn: 1 node with another order in Slurm than in the exporter: a (its exporter says that GPU 0 has job 8, Slurm says job 7"},
	} {
		f := &findings{area: "gpus"}
		checkGPUs(f, &Gauged{Nodes: []gpu.Node{{Name: "a"}}, Readings: []gpu.Reading{{Rows: []gpu.Row{{Index: 0, Job: c.names[0]}, {Index: 1, Job: c.names[1]}}}}}, seen)
		if x := &f.list[0]; !strings.HasPrefix(x.Check+" "+x.Level+": "+x.Found, c.want) || x.Level != OK && (x.Means == "" || x.Do == "") {
			t.Errorf("%v: %+v, want %s", c.names, f.list, c.want)
		}
	}
}

func TestGPUCounters(t *testing.T) {
	seen := &cluster.Observation{Nodes: []cluster.Node{{Name: "a", GPUs: []cluster.GPUs{{Model: "h100", Count: 2}}}, {Name: "b", GPUs: []cluster.GPUs{{Model: "h100", Count: 2}}}}}
	nodes := []gpu.Node{{Name: "a"}, {Name: "b"}}
	row := func(i int, without ...gpu.Meaning) gpu.Row {
		r := gpu.Row{Index: i}
		for _, m := range without {
			r.Values[m] = math.NaN()
		}
		return r
	}
	good := gpu.Reading{Rows: []gpu.Row{row(0), row(1)}}
	for _, c := range []struct {
		readings []gpu.Reading
		err      error
		level    string
		want     string
	}{
		{[]gpu.Reading{good, good}, nil, OK, "read on 2 nodes"},
		{[]gpu.Reading{good, {Err: errors.New("refused")}}, nil, Warn, "1 node not read: b (refused)"},
		{[]gpu.Reading{{Err: errors.New("refused")}, {Err: errors.New("refused")}}, nil, Fail, "no node is read: a (refused)"},
		{[]gpu.Reading{good, {Rows: []gpu.Row{row(0)}}}, nil, Warn, "1 node without all counters: b (1 of 2 GPUs are reported)"},
		{[]gpu.Reading{good, {Rows: []gpu.Row{row(0, gpu.Power), row(1, gpu.Util)}}}, nil, Warn, "b (no power, no utilization)"},
		{[]gpu.Reading{good, good}, errors.New("one store did not answer"), Warn, "one store did not answer"},
	} {
		f := &findings{area: "gpus"}
		checkGPUs(f, &Gauged{Nodes: nodes, Readings: c.readings, Err: c.err}, seen)
		if len(f.list) != 1 || f.list[0].Level != c.level || !strings.Contains(f.list[0].Found, c.want) {
			t.Errorf("%+v, want %s with %q", f.list, c.level, c.want)
		}
	}
	f := &findings{area: "jobs"}
	checkRemarks(f, nil)
	if len(f.list) > 0 {
		t.Errorf("without remarks: %+v", f.list)
	}
	checkRemarks(f, []store.Remark{{Job: "7", User: "ann", Kind: "stall", Text: "has stood still"}})
	if len(f.list) != 1 || f.list[0].Level != Warn || f.list[0].Found != "stall 1; the oldest, stall: job 7 of ann, has stood still" {
		t.Errorf("remarks: %+v", f.list)
	}
	f = &findings{}
	if checkGPUs(f, nil, seen); len(f.list) > 0 {
		t.Errorf("without telemetry: %+v", f.list)
	}
}
