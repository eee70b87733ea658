package playground_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/playground"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// weights are of the accounts of trace/testdata/sacct.txt.
func weights(f playground.Facts) map[string]int64 {
	out := map[string]int64{}
	for i, t := range f.Tenants {
		out[t.Name] = int64(i + 1)
	}
	return out
}

// The scores are those of `fairlease simulate` with the same options: on generated jobs, and on a history with weights and jobs that save.
func TestTheScoresAreThoseOfSimulate(t *testing.T) {
	const history = "../trace/testdata/sacct.txt"
	text, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	own, err := playground.Read("sacct.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	generated, err := playground.Generate(playground.Recipe{Nodes: "2x8", Tenants: 3, Load: 1.2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	shares := filepath.Join(t.TempDir(), "weights")
	lines := ""
	for name, weight := range weights(own.Facts()) {
		lines += name + "," + string(rune('0'+weight)) + "\n"
	}
	if err := os.WriteFile(shares, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		world  *playground.World
		choice playground.Choice
		native input.World
		args   []string
	}{
		"generated": {generated, playground.Choice{Nodes: "2x8", Interval: "1m", Until: "7d"},
			input.World{Generate: "philly", Length: "7d", Tenants: 3, Load: 1.2, Nodes: "2x8", Weights: "equal", Until: "7d", Saving: input.Saving{Saves: "never", By: "kind"}}, nil},
		"history": {own, playground.Choice{Nodes: "4x8", Interval: "1m", Weights: weights(own.Facts()), Saves: "1h"},
			input.World{Nodes: "4x8", Weights: shares, Zone: "UTC", Saving: input.Saving{Saves: "1h", By: "kind"}}, []string{history}},
	} {
		t.Run(name, func(t *testing.T) {
			c.native.Seed, c.native.Repair = 1, "1h"
			base, err := c.native.Setup(config.Default(), c.args, "")
			if err != nil {
				t.Fatal(err)
			}
			base.Settings.Interval = cluster.Minute
			base.Settings = experiment.Fit(base.Settings)
			setups, err := input.Cross(base, "", playground.Schedulers(), "")
			if err != nil {
				t.Fatal(err)
			}
			for i := range setups {
				want, err := experiment.Run(context.Background(), setups[i], nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.world.Run(context.Background(), &c.choice, setups[i].Scheduler, func(int) {})
				if err != nil {
					t.Fatal(err)
				}
				if want.Jobs.Finished == 0 || !reflect.DeepEqual(got.Scores, want.Scores) {
					t.Errorf("%s: %+v, and simulate gives %+v", setups[i].Scheduler, got.Scores, want.Scores)
				}
			}
		})
	}
}

// A round of a replay says where each job runs, on no more GPUs than there are, and why each other job waits.
func TestReplay(t *testing.T) {
	w, err := playground.Generate(playground.Recipe{Nodes: "2x8", Tenants: 3, Load: 2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := &playground.Choice{Nodes: "2x8", Interval: "1m"}
	nodes, err := playground.Nodes(c)
	if err != nil || len(nodes) != 2 || nodes[0].GPUs != cluster.CountOf(8) {
		t.Fatal(nodes, err)
	}
	rounds, full, waited := 0, 0, 0
	err = w.Replay(c, cluster.Day, func(r *playground.Round) bool {
		rounds++
		if r.At < 24*3600 {
			t.Errorf("round %d is %d s after the start: before the first day ends", r.Round, r.At)
		}
		used := map[string]cluster.GPUCount{}
		for _, j := range r.Holds {
			sum := cluster.GPUCount(0)
			for _, h := range j.Nodes {
				used[h.Node] += h.GPUs
				sum += h.GPUs
			}
			if sum != j.GPUs || j.Why == "" || j.Name == "" {
				t.Errorf("round %d: a holder is %+v", r.Round, j)
			}
		}
		for _, n := range nodes {
			if used[n.Node] > n.GPUs {
				t.Errorf("round %d: %s GPUs are held on %s, which has %s", r.Round, used[n.Node], n.Node, n.GPUs)
			}
		}
		if used[nodes[0].Node]+used[nodes[1].Node] == cluster.CountOf(16) {
			full++
		}
		for _, j := range r.Waits {
			waited++
			if j.Why == "" || strings.Contains(j.Why, "job #") || j.GPUs == 0 {
				t.Errorf("round %d: a waiting job is %+v", r.Round, j)
			}
		}
		return rounds < 400
	})
	if err != nil || rounds != 400 || full == 0 || waited == 0 {
		t.Errorf("%v: %d rounds, %d with no idle GPU, %d waiting jobs", err, rounds, full, waited)
	}
}

// The report on the page is that of the file, and names from a history stay text.
func TestWrite(t *testing.T) {
	w, err := playground.Read("own.csv", []byte("job_id,tenant,user,gpus,submit_time,duration_s,state\n1,<script>,u,1,0,60,COMPLETED\n2,b,u,1,0,60,COMPLETED\n"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []score.Scores
	for _, name := range playground.Schedulers() {
		o, err := w.Run(t.Context(), &playground.Choice{Nodes: "1x1"}, name, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, o.Scores)
	}
	text, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := playground.Write(text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.File, r.Body) || !strings.Contains(r.Head, "slurm-preempt") || strings.Contains(r.Body, "<script>") || !strings.Contains(r.Body, "&lt;script&gt;") {
		t.Errorf("%s\n%s", r.Head, r.Body)
	}
	var back []score.Scores
	if err := json.Unmarshal([]byte(r.JSON), &back); err != nil || len(back) != 3 {
		t.Error(err, r.JSON)
	}
}

// A choice that cannot be simulated is refused, and says what to write.
func TestRefused(t *testing.T) {
	w, err := playground.Generate(playground.Recipe{Nodes: "1x1", Tenants: 1, Load: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for text, c := range map[string]playground.Choice{
		"is no cluster":                    {Nodes: "many"},
		"how jobs save":                    {Nodes: "1x1", Saves: "often"},
		"the time between rounds":          {Nodes: "1x1", Interval: "soon"},
		"the end":                          {Nodes: "1x1", Until: "late"},
		"all accounts have a weight of 0":  {Nodes: "1x1", Weights: map[string]int64{"tenant001": 0}},
		"write a whole number from 0":      {Nodes: "1x1", Weights: map[string]int64{"tenant001": -1}},
		"rounds are a second apart or mor": {Nodes: "1x1", Interval: "0s"},
	} {
		if _, err := w.Run(t.Context(), &c, "astraea", nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", c, err, text)
		}
	}
	for text, r := range map[string]playground.Recipe{"is no cluster": {}, "write 1 to 1000": {Nodes: "1x1"}, "PerHour": {Nodes: "1x1", Tenants: 1, Load: -1}} {
		if _, err := playground.Generate(r); err == nil {
			t.Errorf("%+v: no error, want %q", r, text)
		}
	}
}
