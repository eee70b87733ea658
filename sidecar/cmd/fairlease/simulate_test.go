package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// history is a small trace with typical errors of traces.
const history = `job_id,tenant,user,gpus,submit_time,duration_s,state
1,vision,alice,4,0,7200,COMPLETED
2,vision,alice,4,10,7200,COMPLETED
3,nlp,bob,8,600,1800,COMPLETED
4,nlp,bob,1,-5,60,COMPLETED
5,nlp,bob,64,700,60,COMPLETED
6,nlp,bob,0,800,60,COMPLETED
7,speech,carol,2,3600,3600,FAILED
8,speech,carol,two,3600,3600,FAILED
9,nlp,bob,1,4000,0,CANCELLED
`

// kinds is a history with names and models, in the columns of fairlease convert.
const kinds = `job_id,tenant,user,gpus,submit_time,duration_s,state,name,nodes,cpus,memory_mb,model,kind,limit_s
71_1,vision,alice,4,0,7200,COMPLETED,resnet50,1,8,100,,,
71_2,vision,alice,4,0,7200,COMPLETED,resnet50,1,8,100,,,
80,nlp,bob,4,60,3600,FAILED,bert,1,8,100,v100,,86400
81,vision,carol,2,60.500,3600,CANCELLED,bert,1,8,100,k80,LM,86400
`

// cellsOfTwo describes virtual clusters on two nodes of 8 GPUs.
const cellsOfTwo = `cellHierarchy:
  - {name: node, split: 8, child: gpu, node: true}
  - {name: gpu, model: gpu}
physicalCluster:
  - {type: node, nodes: "n[000001-000002]"}
vcAssignment:
  - {vc: vision, cells: [{type: node, number: 1}]}
  - {vc: nlp, cells: [{type: node, number: 1}]}
`

// folder makes a folder with the history and some weights, without a configuration.
func folder(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "history.csv"), history)
	write(t, filepath.Join(dir, "weights.csv"), "tenant,gpus\nvision,4\nnlp,4\nspeech,0\n")
	write(t, filepath.Join(dir, "few.csv"), "vision,4\n")
	write(t, filepath.Join(dir, "bad.csv"), "vision,4\nnlp,x\n")
	write(t, filepath.Join(dir, "header.csv"), "a,b\n1,2\n")
	const sacct = "JobID|User|Submit|ElapsedRaw|AllocTRES\n"
	write(t, filepath.Join(dir, "cpus.txt"), sacct+"1|ann|2026-03-02T10:00:00|60|cpu=4\n")
	write(t, filepath.Join(dir, "norows.txt"), sacct)
	write(t, filepath.Join(dir, "waiting.txt"), sacct+"1|ann|2026-03-02T10:00:00|0|gres/gpu=4\n")
	write(t, filepath.Join(dir, "bad.txt"), sacct+"1|ann|2026-03-02T10:00:00|x|gres/gpu=4\n")
	write(t, filepath.Join(dir, "alone.txt"), sacct+"1|ann|2026-03-02T10:00:00|60|gres/gpu=4\n")
	write(t, filepath.Join(dir, "cpus.csv"), "job_id,tenant,user,gpus,submit_time,duration_s,state\n1,a,b,0,0,60,COMPLETED\n")
	write(t, filepath.Join(dir, "config.yaml"), "lease: {term: 30m}\n")
	write(t, filepath.Join(dir, "weights.yaml"), "tenants: {weights: {nlp: 3, vision: 1, bio: 2}}\n")
	write(t, filepath.Join(dir, "worth.yaml"), "models: {worth: {v100: 1/4}}\n")
	write(t, filepath.Join(dir, "speeds.csv"), "pattern,model,speed\nresnet*,k80,0.25\n")
	write(t, filepath.Join(dir, "kinds.csv"), kinds)
	write(t, filepath.Join(dir, "cells.yaml"), cellsOfTwo)
	write(t, filepath.Join(dir, "own.yaml"), strings.Replace(cellsOfTwo, "vc: vision", "scheduler: /bin/sh, vc: vision", 1))
	write(t, filepath.Join(dir, "habits.csv"), "alice,resnet50,4,notice\nbob,*,*,periodic,15m,30s\n")
	t.Chdir(dir)
	return dir, []string{"FAIRLEASE_CONFIG=" + empty(t)}
}

func TestSimulate(t *testing.T) {
	_, env := folder(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"simulate", []string{"history.csv", "--nodes", "1x8"}},
		{"simulate-all", []string{"history.csv", "--nodes", "1x8", "--schedulers", "all"}},
		{"simulate-audit", []string{"history.csv", "--nodes", "1x8", "--weights", "weights.csv", "--audit"}},
		{"simulate-sizes", []string{"history.csv", "--sizes", "1x8,2x8", "--weights", "demand", "--term", "10m", "--interval", "30s", "--saves", "ideal"}},
		{"simulate-generate", []string{"--generate", "gavel", "--length", "1d", "--nodes", "4x8", "--until", "2d", "--fail-every", "1d", "--seed", "7"}},
		{"simulate-speeds", []string{"kinds.csv", "--nodes", "1x4:v100+1x4:k80", "--speeds", "speeds.csv", "--weights", "config", "-c", "weights.yaml"}},
		{"simulate-cells", []string{"history.csv", "--nodes", "2x8", "--schedulers", "quota-lend,hived", "--cells", "cells.yaml", "--audit"}},
		{"simulate-cells-weights", []string{"history.csv", "--sizes", "2x8,3x8", "--schedulers", "hived:fifo", "--cells", "weights"}},
		{"simulate-mixture", []string{"kinds.csv", "--nodes", "1x4", "--saves", "never:60,periodic=20m:30,notice:10", "--saves-by", "job", "--reported", "--seed", "3"}},
		{"simulate-habits", []string{"kinds.csv", "--nodes", "1x4", "--saves", "habits.csv,never:50,30m:50"}},
		{"simulate-csv", []string{"history.csv", "--nodes", "1x8", "--csv"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, time.Time{}, env, append([]string{"simulate"}, c.args...)...)
			if r.code != failure.OK {
				t.Fatalf("exit code %d\n%s", r.code, r.err)
			}
			golden(t, c.name, r.out+r.err)
		})
	}
}

// The configuration's settings apply unless a flag overrides them.
func TestSimulateHeedsTheConfiguration(t *testing.T) {
	_, env := folder(t)
	r := run(t, time.Time{}, env, "simulate", "history.csv", "--nodes", "1x8", "-c", "config.yaml")
	if r.code != failure.OK || !strings.Contains(r.out, "term 30m") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// Where all devices are worth a quarter of a GPU, tenants have a quarter of the GPU time.
func TestSimulateByWorth(t *testing.T) {
	_, env := folder(t)
	received := func(args ...string) (sum float64) {
		r := run(t, time.Time{}, env, append([]string{"simulate", "history.csv", "--nodes", "1x8:v100", "--schedulers", "astraea", "--json"}, args...)...)
		for _, m := range regexp.MustCompile(`"alloc_gpu_h": *([0-9.]+)`).FindAllStringSubmatch(r.out, -1) {
			x, _ := strconv.ParseFloat(m[1], 64)
			sum += x
		}
		if r.code != failure.OK || sum == 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		return sum
	}
	if whole, quarter := received(), received("-c", "worth.yaml"); quarter < whole/4*0.999 || quarter > whole/4*1.001 {
		t.Errorf("%v GPU hours, by quarters %v", whole, quarter)
	}
}

// A history with one tenant compares nothing: Slurm may have hidden the others.
func TestSimulateAloneSaysSo(t *testing.T) {
	_, env := folder(t)
	for name, want := range map[string]bool{"alone.txt": true, "history.csv": false} {
		r := run(t, time.Time{}, env, "simulate", name, "--nodes", "1x8")
		if r.code != failure.OK || strings.Contains(r.out+r.err, "PrivateData") != want {
			t.Errorf("%s: exit code %d\n%s%s", name, r.code, r.out, r.err)
		}
	}
}

// Written files are complete, and parsable.
func TestSimulateWritesFiles(t *testing.T) {
	dir, env := folder(t)
	r := run(t, time.Time{}, env, "simulate", "history.csv", "--sizes", "1x8,2x8", "--schedulers", "astraea", "--out", "out/new", "--html", "page.html", "--json")
	if r.code != failure.OK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if got := string(read("out/new/scores.json")); got != r.out {
		t.Error("the JSON in the folder is not that of the output")
	}
	var scores []score.Scores
	if err := json.Unmarshal(read("out/new/scores.json"), &scores); err != nil || len(scores) != 2 || scores[1].Nodes != 2 || scores[1].Jobs.Finished != 4 {
		t.Errorf("%v: %+v", err, scores)
	}
	if rows, err := csv.NewReader(bytes.NewReader(read("out/new/scores.csv"))).ReadAll(); err != nil || len(rows) < 100 {
		t.Errorf("%v: %d rows", err, len(rows))
	}
	for _, name := range []string{"page.html", "out/new/report.html"} {
		if page := string(read(name)); !strings.Contains(page, "</html>") || !strings.Contains(page, "history") {
			t.Errorf("%s is no whole page", name)
		}
	}
}

func TestSimulateComplaints(t *testing.T) {
	_, env := folder(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		err  string // pattern
	}{
		{"nothing", nil, failure.Misuse, `^fairlease: --nodes is missing: how large is the cluster\?`},
		{"no trace", []string{"--nodes", "1x8"}, failure.Misuse, `^fairlease: what is to be simulated\? Name a trace`},
		{"no such trace", []string{"none.csv", "--nodes", "1x8"}, failure.No, `^fairlease: the trace cannot be used\n  none.csv: cannot be read: no such file`},
		{"no trace's header", []string{"header.csv", "--nodes", "1x8"}, failure.No, `^fairlease: the trace cannot be used\n  header.csv: `},
		{"no GPUs", []string{"cpus.csv", "--nodes", "1x8"}, failure.No, `^fairlease: cpus has no job with GPUs and a run time: 1 jobs without GPUs\nnext: name a trace of jobs that had GPUs`},
		{"no GPUs recorded", []string{"cpus.txt", "--nodes", "1x8"}, failure.No, `1 jobs without GPUs\nnext: .*AccountingStorageTRES in slurm.conf`},
		{"no rows", []string{"norows.txt", "--nodes", "1x8"}, failure.No, `^fairlease: norows has no job with GPUs and a run time: it is empty\nnext: ask for more: sacct -S`},
		{"only waiting", []string{"waiting.txt", "--nodes", "1x8"}, failure.No, `^fairlease: waiting has no job with GPUs and a run time: 1 jobs that never ran\nnext: ask for more: sacct -S`},
		{"bad rows", []string{"bad.txt", "--nodes", "1x8"}, failure.No, `1 rows that make no sense\nnext: look at line 2 of bad.txt: elapsedraw "x"`},
		{"generates none", []string{"--generate", "philly", "--length", "1s", "--load", "0.001"}, failure.No, `it is empty\nnext: let more jobs arrive`},
		{"two traces", []string{"history.csv", "b.csv", "--nodes", "1x8"}, failure.Misuse, `one trace at a time`},
		{"trace and recipe", []string{"history.csv", "--generate", "philly", "--nodes", "1x8"}, failure.Misuse, `exclude each other`},
		{"recipe", []string{"--generate", "x"}, failure.Misuse, `--generate x is not known; write gavel or philly`},
		{"tenants", []string{"--generate", "philly", "--tenants", "0"}, failure.Misuse, `--tenants: one or more`},
		{"rate", []string{"--generate", "philly", "--load", "-1"}, failure.Misuse, `^fairlease: --generate: .*set PerHour to more than 0`},
		{"nodes", []string{"history.csv", "--nodes", "8"}, failure.Misuse, `^fairlease: --nodes: "8" is no cluster: write nodes x GPUs per node, as in 64x8`},
		{"sizes", []string{"history.csv", "--sizes", "8x8,x"}, failure.Misuse, `^fairlease: --sizes: "x" is no cluster`},
		{"nodes and sizes", []string{"history.csv", "--nodes", "8x8", "--sizes", "8x8"}, failure.Misuse, `--nodes and --sizes exclude each other`},
		{"cpus", []string{"history.csv", "--nodes", "8x8", "--cpus", "-1"}, failure.Misuse, `cannot be less than 0`},
		{"scheduler", []string{"history.csv", "--nodes", "1x8", "--schedulers", "x"}, failure.Misuse, `there is no scheduler "x"; there are (.|\n)*\nnext: see fairlease simulate --help\n$`},
		{"no prices", []string{"history.csv", "--nodes", "1x8:v100", "--schedulers", "fairlease:gavel:cost"}, failure.Misuse, `^fairlease: fairlease:gavel:cost weighs throughput against cost, and no price is known\nnext: write .* models.prices`},
		{"worth and speedups", []string{"history.csv", "--nodes", "1x8:v100", "-c", "worth.yaml", "--schedulers", "fairlease:drf"}, failure.Misuse, `^fairlease: fairlease:drf counts whole devices, and models.worth counts them as parts of GPUs\nnext: simulate it without models.worth`},
		{"no such cells", []string{"history.csv", "--nodes", "2x8", "--cells", "none.yaml"}, failure.Misuse, `^fairlease: --cells none.yaml cannot be used\n  .*no such file`},
		{"bad cells", []string{"history.csv", "--nodes", "2x8", "--cells", "weights.yaml"}, failure.Misuse, `^fairlease: --cells weights.yaml cannot be used\n  weights.yaml`},
		{"cells of another cluster", []string{"history.csv", "--nodes", "1x8", "--cells", "cells.yaml"}, failure.Misuse, `a node n000002, which is none of the cluster 1x8: its nodes are n000001 to n000001`},
		{"cells of other nodes", []string{"history.csv", "--nodes", "2x4", "--cells", "cells.yaml"}, failure.Misuse, `node n000001 has 4 GPUs of model gpu in the cluster 2x4, but in the cells 8`},
		{"cells with a scheduler", []string{"history.csv", "--nodes", "2x8", "--cells", "own.yaml"}, failure.Misuse, `^fairlease: --cells own.yaml cannot be simulated: virtual cluster vision has a scheduler of its own, which is not run here\nnext: take scheduler out`},
		{"cells of others", []string{"--generate", "philly", "--nodes", "2x8", "--cells", "cells.yaml"}, failure.Misuse, `a VC vision, but no tenant of that name has a weight`},
		{"mixed", []string{"history.csv", "--nodes", "1x8:a+1x8:b", "--mixed"}, failure.Misuse, `astraea keeps every gang on one GPU model`},
		{"term", []string{"history.csv", "--nodes", "1x8", "--term", "soon"}, failure.Misuse, `^fairlease: --term: "soon" is no length of time: `},
		{"short term", []string{"history.csv", "--nodes", "1x8", "--term", "5s"}, failure.Misuse, `a term is no shorter`},
		{"saves", []string{"history.csv", "--nodes", "1x8", "--saves", "x"}, failure.Misuse, `^fairlease: --saves: part 1, "x" is no manner of saving: write never, notice, .*\nnext: see fairlease simulate --help`},
		{"weights of saves", []string{"history.csv", "--nodes", "1x8", "--saves", "never:60,notice"}, failure.Misuse, `--saves: "notice" has no weight: where there are several manners, write one for each`},
		{"periodic", []string{"history.csv", "--nodes", "1x8", "--saves", "periodic"}, failure.Misuse, `--saves: part 1, periodic needs a time between two saves: write periodic=1h`},
		{"every", []string{"history.csv", "--nodes", "1x8", "--saves", "periodic", "--every", "soon"}, failure.Misuse, `^fairlease: --every: "soon" is no length of time`},
		{"saves by", []string{"history.csv", "--nodes", "1x8", "--saves-by", "user"}, failure.Misuse, `^fairlease: --saves-by user is not known; write kind or job`},
		{"no habits", []string{"history.csv", "--nodes", "1x8", "--saves", "none.json"}, failure.Misuse, `^fairlease: --saves: the habits cannot be used\n  .*none.json: no such file.*\nnext: name a file that fairlease habits --json wrote`},
		{"bad habits", []string{"history.csv", "--nodes", "1x8", "--saves", "./few.csv"}, failure.Misuse, `^fairlease: --saves: the habits cannot be used\n  ./few.csv: line 1: 2 fields: write user,command,gpus,manner`},
		{"format", []string{"history.csv", "--nodes", "1x8", "--format", "x"}, failure.Misuse, `--format x is not known`},
		{"zone", []string{"history.csv", "--nodes", "1x8", "--zone", "Mars/Olympus"}, failure.Misuse, `--zone Mars/Olympus is not known`},
		{"weights", []string{"history.csv", "--nodes", "1x8", "--weights", "x"}, failure.Misuse, `--weights x is neither equal, demand nor config, and no file that can be read\n`},
		{"weights of the configuration", []string{"history.csv", "--nodes", "1x8", "--weights", "config"}, failure.Misuse, `the configuration names no weights \(tenants.weights\)`},
		{"speeds", []string{"history.csv", "--nodes", "1x8:v100", "--speeds", "none.csv"}, failure.Misuse, `^fairlease: --speeds none.csv cannot be read\n  .*no such file`},
		{"speeds of no model", []string{"history.csv", "--nodes", "1x8", "--speeds", "speeds.csv"}, failure.Misuse, `--speeds needs a cluster that names its models`},
		{"bad speeds", []string{"history.csv", "--nodes", "1x8:v100", "--speeds", "bad.csv"}, failure.Misuse, `^fairlease: the speeds cannot be used\n  bad.csv: line 1: "vision,4" is no speed`},
		{"speeds of no job", []string{"history.csv", "--nodes", "1x8:v100", "--speeds", "speeds.csv"}, failure.Misuse, `speeds.csv fits no job`},
		{"throughputs", []string{"history.csv", "--nodes", "1x8:v100", "--throughputs", "none.json"}, failure.Misuse, `^fairlease: the throughputs cannot be used\n  none.json: cannot be read`},
		{"bad throughputs", []string{"history.csv", "--nodes", "1x8:v100", "--throughputs", "bad.csv"}, failure.Misuse, `bad.csv: line 1: `},
		{"few weights", []string{"history.csv", "--nodes", "1x8", "--weights", "few.csv"}, failure.Misuse, `few.csv has no weight for 2 tenants of the trace: nlp, speech\nnext: add a line`},
		{"bad weights", []string{"history.csv", "--nodes", "1x8", "--weights", "bad.csv"}, failure.Misuse, `bad.csv: line 2: "nlp,x" is no tenant with a weight`},
		{"csv and json", []string{"history.csv", "--nodes", "1x8", "--csv", "--json"}, failure.Misuse, `--csv and --json exclude each other`},
		{"no place", []string{"history.csv", "--nodes", "1x8", "--html", "none/page.html"}, failure.No, `^fairlease: none/page.html cannot be written\n`},
		{"no folder", []string{"history.csv", "--nodes", "1x8", "--out", "few.csv"}, failure.No, `^fairlease: few.csv cannot be written\n`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, time.Time{}, env, append([]string{"simulate"}, c.args...)...)
			if r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) {
				t.Errorf("exit code %d, want %d\n%s\nwant %s", r.code, c.code, r.err, c.err)
			}
		})
	}
}

// Jobs in steps, as in Gavel's traces, get durations by their throughput table, and run under its
// policies.
func TestSimulateGavel(t *testing.T) {
	dir, env := folder(t)
	write(t, filepath.Join(dir, "table.json"), `{"v100": {"('A3C', 1)": {"null": 10}}, "k80": {"('A3C', 1)": {"null": 5}}}`)
	write(t, filepath.Join(dir, "gavel.csv"), "job,job_type,scale_factor,steps,unit_arrival\n0,A3C,1,36000,0\n1,A3C,1,36000,0\n")
	args := []string{"simulate", "gavel.csv", "--throughputs", "table.json", "--per-hour", "2", "--nodes", "1x1:v100+1x1:k80", "--schedulers", "fifo,fairlease:gavel:las"}
	r := run(t, time.Time{}, env, args...)
	if r.code != failure.OK || !strings.Contains(r.out, "fifo") || !strings.Contains(r.out, "fairlease:gavel:las") || !strings.Contains(r.out, "gavel: 2 jobs of 1 tenants") {
		t.Errorf("%d\n%s\n%s", r.code, r.out, r.err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(args, "--speeds", "weights.csv"), "--speeds and --throughputs exclude each other"},
		{[]string{"simulate", "gavel.csv", "--throughputs", "table.json", "--per-hour", "2", "--nodes", "1x1"}, "--throughputs needs a cluster that names its models"},
		{[]string{"simulate", "gavel.csv", "--throughputs", "table.json", "--nodes", "1x1:v100"}, "how many jobs arrive in an hour are needed"},
	} {
		if r := run(t, time.Time{}, env, c.args...); r.code == failure.OK || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: %d, %s; want %s", c.args, r.code, r.err, c.want)
		}
	}
}

// An interrupt ends a simulation with the results so far.
func TestSimulateInterrupted(t *testing.T) {
	_, env := folder(t)
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	// The first line of the output is written just before the simulation begins.
	p := &program{out: writer(func(b []byte) (int, error) { stop(); return out.Write(b) }), err: &errs, env: env, clock: time.Now}
	code := p.run(ctx, []string{"simulate", "--generate", "philly", "--nodes", "8x8"}, strings.NewReader(""))
	if code != failure.No || !strings.Contains(errs.String(), "fairlease: interrupted\n  0 of 2 runs had come to their end\n") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// everybody gives the names of all schedulers.
func everybody() []string {
	return slices.Concat(experiment.Schedulers(), experiment.Cellular(), experiment.Dividing(), experiment.Heterogeneous())
}

// The help and the man page name every scheduler, without their prefixes and suffixes.
func TestSimulateHelpNamesTheSchedulers(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fairlease.1")
	if err != nil {
		t.Fatal(err)
	}
	manual := strings.ReplaceAll(string(page), `\-`, "-")
	for _, name := range everybody() {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "+ss"), "-blind")
		if !strings.Contains(simulate.About(), base) {
			t.Errorf("%s is not in the help", name)
		}
		if base = strings.TrimPrefix(base, "fairlease:"); !strings.Contains(manual, base) {
			t.Errorf("%s is not in the man page", name)
		}
	}
}

// Every scheduler is available by its name, on homogeneous and heterogeneous GPUs.
func TestEverySchedulerSimulates(t *testing.T) {
	dir, env := folder(t)
	write(t, filepath.Join(dir, "tiny.csv"), "job_id,tenant,user,gpus,submit_time,duration_s,state,name\n1,a,ann,1,0,600,COMPLETED,x\n2,b,bob,2,10,900,COMPLETED,y\n3,b,bob,1,20,1200,COMPLETED,y\n")
	write(t, filepath.Join(dir, "how.csv"), "x,k80,0.25\ny,k80,0.5\n")
	write(t, filepath.Join(dir, "prices.yaml"), "models:\n  prices: {v100: 3}\n")
	var names []string
	for _, name := range everybody() {
		if !strings.HasPrefix(name, "gavel:cost-least-slo") { // it starts only jobs with deadlines
			names = append(names, name)
		}
	}
	for _, speeds := range [][]string{nil, {"--speeds", "how.csv"}} {
		args := append([]string{"simulate", "tiny.csv", "-c", "prices.yaml", "--nodes", "1x2:v100+1x2:k80", "--saves", "at-end", "--json", "--schedulers", strings.Join(names, ",")}, speeds...)
		r := run(t, time.Time{}, env, args...)
		var scores []score.Scores
		if err := json.Unmarshal([]byte(r.out), &scores); err != nil || r.code != failure.OK || len(scores) != len(names) {
			t.Fatalf("exit code %d, %d scores of %d schedulers (%v)\n%s", r.code, len(scores), len(names), err, r.err)
		}
		for i := range scores {
			if scores[i].Scheduler != names[i] || scores[i].Jobs.Finished != 3 {
				t.Errorf("%s: %d of 3 jobs finished, as %s", names[i], scores[i].Jobs.Finished, scores[i].Scheduler)
			}
		}
	}
	if r := run(t, time.Time{}, env, "tune", "tiny.csv", "--nodes", "1x2:v100+1x2:k80", "--scheduler", "fairlease:gavel:cost"); r.code != failure.Misuse || !strings.Contains(r.err, "no price is known") {
		t.Errorf("tune without prices: exit code %d\n%s", r.code, r.err)
	}
	r := run(t, time.Time{}, env, "simulate", "tiny.csv", "--nodes", "1x2", "--schedulers", "gavel")
	for _, name := range everybody() {
		if !strings.Contains(r.err, name) {
			t.Errorf("who asks for a scheduler that there is not is not told of %s", name)
		}
	}
}
