package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// names gives the names of all schedulers.
func names() []string {
	return slices.Concat(experiment.Schedulers(), experiment.Cellular(), experiment.Dividing(), experiment.Heterogeneous())
}

// The help names every scheduler, without their suffixes.
func TestHelpNamesTheSchedulers(t *testing.T) {
	for _, name := range names() {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "+ss"), "-blind"); !strings.Contains(simulate.About(), base) {
			t.Errorf("%s is not in the help", name)
		}
	}
}

// Every scheduler is available by its name, on homogeneous and heterogeneous GPUs.
func TestEverySchedulerSimulates(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"tiny.csv":    "job_id,tenant,user,gpus,submit_time,duration_s,state,name\n1,a,ann,1,0,600,COMPLETED,x\n2,b,bob,2,10,900,COMPLETED,y\n3,b,bob,1,20,1200,COMPLETED,y\n",
		"how.csv":     "x,k80,0.25\ny,k80,0.5\n",
		"prices.yaml": "models:\n  prices: {v100: 3}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := slices.DeleteFunc(names(), func(name string) bool { return strings.HasPrefix(name, "gavel:cost-least-slo") }) // it starts only jobs with deadlines
	for _, speeds := range [][]string{nil, {"--speeds", "how.csv"}} {
		args := append([]string{"simulate", "tiny.csv", "-c", "prices.yaml", "--nodes", "1x2:v100+1x2:k80", "--saves", "at-end", "--json", "--schedulers", strings.Join(all, ",")}, speeds...)
		var out, errs bytes.Buffer
		code := run(t.Context(), args, &out, &errs, nil)
		var scores []score.Scores
		if err := json.Unmarshal(out.Bytes(), &scores); err != nil || code != failure.OK || len(scores) != len(all) {
			t.Fatalf("exit code %d, %d scores of %d schedulers (%v)\n%s", code, len(scores), len(all), err, &errs)
		}
		for i := range scores {
			if scores[i].Scheduler != all[i] || scores[i].Jobs.Finished != 3 {
				t.Errorf("%s: %d of 3 jobs finished, as %s", all[i], scores[i].Jobs.Finished, scores[i].Scheduler)
			}
		}
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"simulate", "tiny.csv", "--nodes", "1x2", "--schedulers", "gavel"}, &errs, &errs, nil); code != failure.Misuse {
		t.Errorf("an unknown scheduler: exit code %d\n%s", code, &errs)
	}
	for _, name := range names() {
		if !strings.Contains(errs.String(), name) {
			t.Errorf("the error for an unknown scheduler does not name %s", name)
		}
	}
}
