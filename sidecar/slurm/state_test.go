package slurm

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestStatesOfSeveralFlags: what a job does is judged by all its states together, in any order.
func TestStatesOfSeveralFlags(t *testing.T) {
	for states, want := range map[string]cluster.JobState{
		"PENDING":                           cluster.Waiting,
		"PENDING,REQUEUED":                  cluster.Waiting,
		"PENDING,REQUEUE_HOLD":              cluster.Waiting,
		"PENDING,SPECIAL_EXIT":              cluster.Waiting,
		"PENDING,LAUNCH_FAILED":             cluster.Waiting,
		"PENDING,RECONFIG_FAIL":             cluster.Waiting,
		"PENDING,EXPEDITING":                cluster.Waiting,
		"PENDING,RESV_DEL_HOLD":             cluster.Waiting,
		"PENDING,REVOKED":                   cluster.Waiting,
		"PENDING,COMPLETING":                cluster.Completing,
		"PENDING,REQUEUED,COMPLETING":       cluster.Completing,
		"PENDING,SOMETHING_NEW":             cluster.Waiting,
		"RUNNING":                           cluster.Running,
		"RUNNING,CONFIGURING":               cluster.Configuring,
		"RUNNING,CONFIGURING,POWER_UP_NODE": cluster.Configuring,
		"RUNNING,POWER_UP_NODE":             cluster.Configuring,
		"RUNNING,CONFIGURING,SIGNALING":     cluster.Configuring,
		"RUNNING,CONFIGURING,COMPLETING":    cluster.Completing,
		"RUNNING,SIGNALING":                 cluster.Running,
		"RUNNING,RESIZING":                  cluster.Running,
		"RUNNING,STOPPED":                   cluster.Running,
		"RUNNING,SOMETHING_NEW":             cluster.Running,
		"RUNNING,COMPLETING":                cluster.Completing,
		"SUSPENDED":                         cluster.Suspended,
		"SUSPENDED,SIGNALING":               cluster.Suspended,
		"SUSPENDED,CONFIGURING":             cluster.Suspended,
		"COMPLETED":                         cluster.Done,
		"COMPLETED,STAGE_OUT":               cluster.Done,
		"COMPLETED,COMPLETING":              cluster.Completing,
		"CANCELLED,REVOKED":                 cluster.Done,
		"FAILED,LAUNCH_FAILED":              cluster.Done,
		"NODE_FAIL,CONFIGURING":             cluster.Done,
		"BOOT_FAIL,POWER_UP_NODE":           cluster.Done,
		"TIMEOUT,STAGE_OUT":                 cluster.Done,
		"OUT_OF_MEMORY,STAGE_OUT":           cluster.Done,
		"DEADLINE":                          cluster.Done,
		// without the word for what it does
		"CONFIGURING":   cluster.Configuring,
		"COMPLETING":    cluster.Completing,
		"STAGE_OUT":     cluster.Done,
		"SIGNALING":     cluster.Running,
		"REQUEUE_HOLD":  cluster.Waiting,
		"EXPEDITING":    cluster.Waiting,
		"SOMETHING_NEW": "",
	} {
		words := strings.Split(states, ",")
		for range words { // in any order
			words = append(words[1:], words[0])
			if got := state(&wireJob{states: words}); got != want {
				t.Errorf("%v is %q, want %q", words, got, want)
			}
		}
	}
}

func TestRecordsOfSeveralFlags(t *testing.T) {
	tr := translator{nodes: map[string]cluster.Node{"v1": {Name: "v1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}, arrayCap: 100, now: 1e12}
	read := func(states string) cluster.Job {
		t.Helper()
		r := newReader(strings.NewReader(`{"job_id":7,"job_state":[` + states + `],"user_name":"a","account":"nlp","batch_flag":true,"tres_per_node":"gres/gpu:2",
			"tres_req_str":"cpu=1,node=1,gres/gpu=2","tres_alloc_str":"cpu=1,node=1,gres/gpu=2","nodes":"v1","node_count":1,"gres_detail":["gpu:v100:2(IDX:0-1)"],
			"time_limit":10,"submit_time":90,"start_time":100,"end_time":700}`))
		w := readJob(r)
		c := &Client{&link{}}
		rec := queue{c.link}.translate(&tr, &w, &notes{})
		if rec == nil || len(rec.jobs) != 1 {
			t.Fatalf("%s: %+v", states, rec)
		}
		return rec.jobs[0]
	}
	for _, x := range []struct {
		states  string
		state   cluster.JobState
		gpus    int
		end     cluster.Instant
		outcome string
		aside   bool
	}{
		{`"RUNNING"`, cluster.Running, 2, within(700), "", false},
		{`"RUNNING","CONFIGURING","POWER_UP_NODE"`, cluster.Configuring, 2, 0, "", false}, // its limit begins when it does
		{`"RUNNING","COMPLETING"`, cluster.Completing, 2, within(700), "", false},
		{`"COMPLETED","COMPLETING"`, cluster.Completing, 2, within(700), "COMPLETED", false},
		{`"STAGE_OUT","FAILED"`, cluster.Done, 0, within(700), "FAILED", false},
		{`"SOMETHING_NEW"`, cluster.Completing, 2, 0, "", true}, // it occupies its GPUs, and nothing is done with it
	} {
		j := read(x.states)
		if j.State != x.state || j.GPUsHeld() != x.gpus || j.End != x.end || j.Outcome != x.outcome || (j.Aside != "") != x.aside {
			t.Errorf("%s: state %s, %d GPUs, end %d, outcome %q, aside %q; want %+v", x.states, j.State, j.GPUsHeld(), j.End, j.Outcome, j.Aside, x)
		}
	}
}

// TestAJobThatStagesOut: a job whose files are staged out by its burst buffer, as Slurm 24.11 and 26.05 record it, has ended when its script
// did. It is charged until then.
func TestAJobThatStagesOut(t *testing.T) {
	tr := translator{nodes: map[string]cluster.Node{"v1": {Name: "v1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}, arrayCap: 100, now: 1e12}
	for states, outcome := range map[string]string{`"COMPLETED","STAGE_OUT"`: "COMPLETED", `"CANCELLED","STAGE_OUT"`: "CANCELLED"} {
		r := newReader(strings.NewReader(`{"job_id":138,"job_state":[` + states + `],"state_reason":"None","user_name":"alice","account":"nlp","batch_flag":true,"requeue":true,"tres_per_node":"gres/gpu:2",
			"tres_req_str":"cpu=1,mem=100M,node=1,billing=1,gres/gpu=2","tres_alloc_str":"cpu=1,mem=100M,node=1,billing=1,gres/gpu=2,gres/gpu:v100=2","nodes":"v1","node_count":{"set":true,"number":1},"gres_detail":[],
			"job_resources":{"nodes":{"count":1,"list":"v1","allocation":[{"name":"v1","cpus":{"count":1,"used":0},"memory":{"used":0,"allocated":100}}]}},
			"time_limit":{"set":true,"number":10},"submit_time":{"set":true,"number":1795803183},"start_time":{"set":true,"number":1795803184},"end_time":{"set":true,"number":1795803199}}`))
		w := readJob(r)
		rec := queue{&link{}}.translate(&tr, &w, &notes{})
		if rec == nil || len(rec.jobs) != 1 {
			t.Fatalf("%s: %+v", states, rec)
		}
		j := rec.jobs[0]
		if j.State != cluster.Done || j.Aside != "" || j.GPUsHeld() != 0 || j.Outcome != outcome || j.End.Sub(j.Start) != 15*cluster.Second || len(j.Had) != 1 || j.Had[0] != (cluster.ModelSize{Model: "v100", Size: cluster.Whole(2)}) {
			t.Errorf("%s: %+v", states, j)
		}
	}
}

// TestJobsThatAreOver: scontrol shows users one word, of a flag if the job has one.
func TestJobsThatAreOver(t *testing.T) {
	for state, want := range map[string]bool{
		"PENDING": false, "CONFIGURING": false, "RUNNING": false, "SUSPENDED": false, "STOPPED": false, "COMPLETING": false, "REQUEUED": false, "REQUEUE_HOLD": false,
		"REQUEUE_FED": false, "RESIZING": false, "SIGNALING": false, "STAGE_OUT": false, "SPECIAL_EXIT": false, "RESV_DEL_HOLD": false, "SOMETHING_NEW": false,
		"COMPLETED": true, "CANCELLED": true, "FAILED": true, "TIMEOUT": true, "NODE_FAIL": true, "PREEMPTED": true, "BOOT_FAIL": true, "DEADLINE": true, "OUT_OF_MEMORY": true, "REVOKED": true,
	} {
		if j := (UserJob{State: state}); j.Over() != want {
			t.Errorf("a job that is %s is over: %v", state, j.Over())
		}
	}
}
