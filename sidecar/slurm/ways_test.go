package slurm

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Of several options that keep a job's GPUs, the one counts that counts for the submit plugin: its test (slurmplugin/gate_test.c) reads
// the same file.
func TestOneOfSeveralWaysOut(t *testing.T) {
	options := map[string]struct {
		way    cluster.Way
		says   string
		fields string // of Slurm's record
	}{
		"het":        {cluster.WayHet, "heterogeneous", `"het_job_id":{"set":true,"infinite":false,"number":1}`},
		"contiguous": {cluster.WayContiguous, "contiguous nodes", `"contiguous":true,"node_count":{"set":true,"infinite":false,"number":2},"tres_req_str":"cpu=2,node=2,gres/gpu=4"`},
		"session":    {cluster.WaySession, "interactive", `"batch_flag":false`},
		"cron":       {cluster.WayOther, "scrontab", `"cron":"0 1 * * *"`},
		"exclusive":  {cluster.WayOther, "exclusive=user", `"shared":["user"]`},
		"socket":     {cluster.WayOther, "gpus-per-socket", `"tres_per_socket":"gres/gpu:1"`},
		"models":     {cluster.WayOther, "several GPU models", `"tres_per_job":"gres/gpu:v100:1,gres/gpu:k80:1"`},
		"brackets":   {cluster.WayOther, "constraint [a|b]", `"features":"[a|b]"`},
		"no_requeue": {cluster.WayNoRequeue, "--no-requeue", `"requeue":false`},
	}
	text, err := os.ReadFile("../../slurmplugin/ways.txt")
	if err != nil {
		t.Fatal(err)
	}
	rules := loop.Rules{Mode: loop.Act, Partitions: []string{"main"}, TenantLevel: 1}
	lines := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		var fields []string
		for _, word := range words {
			if options[word].way == "" {
				t.Fatalf("option %q", word)
			}
			fields = append(fields, options[word].fields)
		}
		jobs := translated(t, []byte(`{"jobs":[`+waitingJob(1, strings.Join(fields, ","))+`]}`))
		seen := cluster.Observation{Now: 1_000_000, Jobs: jobs, Nodes: []cluster.Node{{Name: "v1", Partitions: []string{"main"}, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}},
			Partitions: []cluster.Partition{{Name: "main", Up: true}}, Accounts: []cluster.Account{{Name: "nlp", Parent: "root", Shares: 1}, {Name: "root"}}}
		snap, err := loop.Remember(cluster.State{}, seen, nil, rules, cluster.Settings{})
		if err != nil || len(snap.Cases) != 1 {
			t.Fatalf("%s: %d jobs, %v", line, len(snap.Cases), err)
		}
		if x, want := &snap.Cases[0], options[words[0]]; x.Way != want.way || !strings.Contains(x.ControlWhy, want.says) {
			t.Errorf("%s: way %q (%s), want %q (%s)", strings.TrimSpace(line), x.Way, x.ControlWhy, want.way, want.says)
		}
	}
	if lines < 40 {
		t.Errorf("%d jobs", lines)
	}
}
