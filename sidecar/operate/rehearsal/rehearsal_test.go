package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// script is a user's job in the double of Slurm. It does a step a second.
type script struct {
	saves     bool   // it goes on from its last step after a requeue
	appends   bool   // --open-mode=append
	silent    bool   // it counts no steps
	onNotice  string // its state after the notice; "" = it runs on, "requeue" = it requeues itself
	lastWords bool   // it says on SIGTERM what it has saved
	ends      int    // it ends by itself after so many steps
	fixed     bool   // --no-requeue
	fails     bool   // its second start fails
	late      int    // seconds until it starts
	lags      int    // seconds for which Slurm says that it waits after it has started again
	text      string // of the script, besides its first lines
	takes     bool   // its requeue of itself takes the other task of its array
}

// double is a Slurm with one job, on a clock of its own.
type double struct {
	script
	t         *testing.T
	now       time.Time
	job       slurm.UserJob
	id        cluster.JobID
	step      int
	delay     int // seconds until its next start
	did       []string
	signalled string
	requeued  time.Time
	shown     time.Time // from then on its state is shown as it is
	refuses   error
	args      []string
}

func (d *double) Submit(_ context.Context, args []string) (cluster.JobID, error) {
	d.args = args
	d.id, d.delay = cluster.JobID{ID: 7}, d.late
	d.job = slurm.UserJob{State: "PENDING", Reason: "Resources", Output: filepath.Join(d.t.TempDir(), "out"), Keeps: d.fixed}
	return d.id, d.refuses
}

// Tasks gives two tasks of an array; the second has the array's id.
func (d *double) Tasks(_ context.Context, array cluster.JobID) ([]slurm.UserTask, error) {
	other := d.job
	if other.Restarts = 0; d.takes {
		other.Restarts = d.job.Restarts
	}
	return []slurm.UserTask{{ID: cluster.TaskID(7, 0), Record: 8, UserJob: other}, {ID: cluster.TaskID(7, 3), Record: 7, UserJob: d.job}}, nil
}

func (d *double) write(format string, args ...any) {
	f, err := os.OpenFile(d.job.Output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, format, args...)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		d.t.Error(err)
	}
}

func (d *double) sleep(_ context.Context, span time.Duration) {
	for range int(span / time.Second) {
		d.now = d.now.Add(time.Second)
		switch d.job.State {
		case "PENDING":
			if d.delay--; d.delay >= 0 {
				continue
			}
			d.job.State, d.job.Nodes = "RUNNING", "v1"
			if d.now.Sub(d.requeued) <= time.Second || d.fails && d.job.Restarts > 0 { // "Job credential revoked"
				d.job.State, d.job.Exit, d.job.Reason = "FAILED", "1:0", "JobLaunchFailure"
				continue
			}
			d.shown = d.now.Add(time.Duration(d.lags*d.job.Restarts) * time.Second)
			if !d.appends {
				_ = os.Remove(d.job.Output)
			}
			if !d.saves {
				d.step = 0
			}
			d.write("start\n")
		case "RUNNING":
			d.step++
			if !d.silent {
				d.write("Epoch 1, step %d: loss 0.%d\n", d.step, d.step)
			}
			if d.ends > 0 && d.step >= d.ends {
				d.job.State, d.job.Exit = "COMPLETED", "0:0"
			}
		}
	}
}

func (d *double) Job(context.Context, cluster.JobID) (slurm.UserJob, bool, error) {
	j := d.job
	if d.now.Before(d.shown) {
		j.State = "PENDING"
	}
	return j, true, nil
}

func (d *double) Signal(_ context.Context, _ cluster.JobID, signal string) error {
	d.did, d.signalled = append(d.did, "signal "+signal), signal
	switch d.onNotice {
	case "":
	case "requeue":
		d.requeue()
	default:
		d.job.State = d.onNotice
	}
	return nil
}

func (d *double) requeue() {
	if d.lastWords {
		d.write("saved at step %d\n", d.step)
	}
	d.job.State, d.job.Reason, d.delay = "PENDING", "BeginTime", 120
	d.job.Restarts++
	d.requeued = d.now
}

func (d *double) Requeue(context.Context, cluster.JobID) error {
	d.did = append(d.did, "requeue")
	d.requeue()
	return nil
}

func (d *double) StartNow(context.Context, cluster.JobID) error {
	d.did, d.delay = append(d.did, "start now"), 0
	return nil
}

func (d *double) Cancel(context.Context, cluster.JobID) error {
	d.did = append(d.did, "cancel")
	return nil
}

// try rehearses a script.
func try(t *testing.T, s script, change func(*Rehearsal)) (*double, Findings, error) {
	t.Helper()
	d := &double{script: s, t: t, now: time.Unix(1_700_000_000, 0)}
	path := filepath.Join(t.TempDir(), "train.sh")
	if err := os.WriteFile(path, []byte("#!/bin/bash\n#SBATCH --comment=saves=notice\n"+s.text), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &Rehearsal{Script: path, Args: []string{"--lr", "1"}, Options: []string{"-A", "nlp"}, Lease: time.Minute, Notice: 20 * time.Second, Signal: "auto",
		Patience: 5 * time.Minute, Slurm: d, Sleep: d.sleep, Now: func() time.Time { return d.now }, Tell: func(string, ...any) {}}
	if change != nil {
		change(r)
	}
	if err := r.Check(); err != nil {
		return d, Findings{}, err
	}
	f, err := r.Try(t.Context())
	return d, f, err
}

// Each kind of script gets its verdict, and the changes that it needs.
func TestVerdicts(t *testing.T) {
	for _, x := range []struct {
		name    string
		script  script
		resumed string
		kept    string
		changes []string
		did     string
	}{
		{"resumes", script{saves: true, appends: true}, "yes", "yes", nil, "signal USR1, requeue, cancel"},
		{"resumes, and says so when it is stopped", script{saves: true, appends: true, lastWords: true}, "yes", "yes", nil, "signal USR1, requeue, cancel"},
		{"restarts", script{appends: true}, "no", "yes", []string{resumeIt}, "signal USR1, requeue, cancel"},
		{"restarts, with last words", script{appends: true, lastWords: true}, "no", "yes", []string{resumeIt}, "signal USR1, requeue, cancel"},
		{"resumes and loses its output", script{saves: true}, "yes", "no", []string{appendOutput}, "signal USR1, requeue, cancel"},
		{"restarts and loses its output", script{}, "no", "no", []string{resumeIt, appendOutput}, "signal USR1, requeue, cancel"},
		{"restarts, and Slurm's state is late", script{lags: 3}, "no", "no", []string{resumeIt, appendOutput}, "signal USR1, requeue, cancel"},
		{"counts nothing", script{saves: true, appends: true, silent: true}, "unknown", "yes", []string{countIt}, "signal USR1, requeue, cancel"},
		{"saves and ends", script{saves: true, appends: true, onNotice: "COMPLETED"}, "unknown", "unknown", []string{wrapIt}, "signal USR1, cancel"},
		{"dies of the notice", script{saves: true, appends: true, onNotice: "FAILED"}, "unknown", "unknown", []string{trapIt}, "signal USR1, cancel"},
		{"requeues itself", script{saves: true, appends: true, onNotice: "requeue"}, "yes", "yes", nil, "signal USR1, cancel"},
		{"is never requeued", script{fixed: true}, "unknown", "unknown", []string{allowIt}, "cancel"},
	} {
		t.Run(x.name, func(t *testing.T) {
			d, f, err := try(t, x.script, nil)
			if err != nil {
				t.Fatal(err)
			}
			if f.Resumed != x.resumed || f.Kept != x.kept || !reflect.DeepEqual(f.Changes, append([]string{}, x.changes...)) {
				t.Errorf("findings %+v, want resumed %s, output kept %s, changes %q", f, x.resumed, x.kept, x.changes)
			}
			if did := strings.Join(d.did, ", "); did != x.did {
				t.Errorf("it did %s, want %s", did, x.did)
			}
			if good := x.resumed == "yes" && x.kept == "yes"; f.Good() != good {
				t.Errorf("good is %v", f.Good())
			}
			if f.Resumed == "no" && (f.After != "step 1" || f.Before < "step 5") || f.Resumed == "yes" && (f.After < f.Before || !strings.HasPrefix(f.Before, "step ")) {
				t.Errorf("before %q, after %q", f.Before, f.After)
			}
			if got := strings.Join(d.args[:2], " "); got != "-A nlp" || strings.Join(d.args[3:], " ") != "--lr 1" {
				t.Errorf("sbatch was given %q", d.args)
			}
		})
	}
}

// One task of an array whose handler requeues $SLURM_JOB_ID takes the others down; that is seen, and said.
func TestSiblings(t *testing.T) {
	const array = "#SBATCH --array=0-99:3%4\n"
	for name, x := range map[string]struct {
		script   script
		options  []string
		siblings int
		changes  []string
	}{
		"takes its siblings":          {script{text: array, takes: true, onNotice: "requeue"}, nil, 1, []string{ownTask}},
		"an array by option":          {script{takes: true, onNotice: "requeue"}, []string{"--array=0,3"}, 1, []string{ownTask}},
		"requeues its own task":       {script{text: array + "trap 'scontrol requeue ${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}' USR1\n", onNotice: "requeue"}, nil, 0, nil},
		"would, by its text":          {script{text: array + "trap 'scontrol requeue $SLURM_JOB_ID' USR2\n"}, nil, 0, []string{ownTask}},
		"would, were it an array":     {script{text: "trap 'scontrol requeue $SLURM_JOB_ID' USR1\n", onNotice: "requeue"}, nil, 0, nil},
		"an array that does not mind": {script{text: array}, nil, 0, nil},
	} {
		x.script.saves, x.script.appends = true, true
		d, f, err := try(t, x.script, func(r *Rehearsal) { r.Options = x.options })
		if err != nil || len(f.Siblings) != x.siblings || !reflect.DeepEqual(f.Changes, append([]string{}, x.changes...)) || f.Resumed != "yes" || f.Good() != (x.siblings == 0) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		if narrowed := strings.Contains(strings.Join(d.args, " "), "--array=0,3"); narrowed != (strings.Contains(x.script.text, "--array") || x.options != nil) {
			t.Errorf("%s: sbatch was given %q", name, d.args)
		}
	}
}

func TestTasksOfAnArray(t *testing.T) {
	for spec, want := range map[string]string{"1-9": "1,2", "4": "4", "2,7-9": "2,7", "0-8:4%2": "0,4", "5-5": "5", "": ""} {
		var option, script []string
		if spec != "" {
			option, script = []string{"--array=" + spec}, []string{"#SBATCH -J x --array " + spec}
		}
		later := tasksOf([]byte("#SBATCH -a90-99\n"), append(option, "-a4"))
		for _, got := range [][]string{tasksOf(nil, option), tasksOf([]byte("#!/bin/sh\n"+strings.Join(script, "")+"\n"), nil)} {
			if text := strings.Join(got, ","); text != want || strings.Join(later, ",") != "4" {
				t.Errorf("%q: %q, want %q; %q", spec, text, want, later)
			}
		}
	}
}

// The lease has its length, the notice comes in time, and Slurm's delay is waited for or cut short.
func TestTimes(t *testing.T) {
	_, slow, err := try(t, script{saves: true, appends: true}, nil)
	if err != nil || slow.Seconds < 180 || slow.Seconds > 190 {
		t.Errorf("a minute's lease and two minutes' delay took %g s, %v", slow.Seconds, err)
	}
	d, fast, err := try(t, script{saves: true, appends: true}, func(r *Rehearsal) { r.Hurry, r.Lease, r.Notice = true, 30*time.Second, 10*time.Second })
	if err != nil || fast.Seconds < 30 || fast.Seconds > 40 || strings.Join(d.did, ", ") != "signal USR1, requeue, start now, cancel" {
		t.Errorf("in a hurry it took %g s and did %s, %v", fast.Seconds, d.did, err)
	}
	d, _, err = try(t, script{saves: true, appends: true, onNotice: "FAILED"}, func(r *Rehearsal) { r.Signal = "none" })
	if err != nil || strings.Join(d.did, ", ") != "requeue, cancel" {
		t.Errorf("without a notice it did %s, %v", d.did, err)
	}
}

// A rehearsal that cannot be judged says why, and leaves no job behind.
func TestRehearsalsThatFail(t *testing.T) {
	for name, x := range map[string]struct {
		script script
		change func(*Rehearsal)
		want   string
		code   int
	}{
		"too short":         {script{ends: 10}, nil, "job 7 ended by itself (COMPLETED, exit code 0:0) before its lease", failure.No},
		"no GPUs":           {script{late: 9999}, nil, "job 7 did not start in 5 min (PENDING, Resources)", failure.No},
		"no lease":          {script{}, func(r *Rehearsal) { r.Lease = r.Notice }, "--lease is 20 s and --notice-time 20 s: a lease must be longer than its notice", failure.Misuse},
		"no script":         {script{}, func(r *Rehearsal) { r.Script += "x" }, "the batch script cannot be used", failure.Misuse},
		"no batch script":   {script{}, func(r *Rehearsal) { r.Script = "rehearsal.go" }, "it does not begin with #!", failure.Misuse},
		"refused by sbatch": {script{}, func(r *Rehearsal) { r.Slurm.(*double).refuses = errors.New("Invalid account") }, "sbatch refused the script: Invalid account", failure.No},
	} {
		d, _, err := try(t, x.script, x.change)
		var e *failure.Error
		if !errors.As(err, &e) || e.Code != x.code || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
		if submitted := d.id != (cluster.JobID{}) && d.refuses == nil; submitted != (strings.Join(d.did, ", ") == "cancel") {
			t.Errorf("%s: it did %q", name, d.did)
		}
	}
}

// A second start that fails is no script that prints no steps.
func TestSecondStartFails(t *testing.T) {
	d, f, err := try(t, script{saves: true, appends: true, fails: true}, nil)
	const want = "job 7 ended before its first step after the requeue (FAILED, exit code 1:0, JobLaunchFailure)"
	if err == nil || !strings.Contains(err.Error(), want) || len(f.Changes) != 0 || strings.Join(d.did, ", ") != "signal USR1, requeue, cancel" {
		t.Errorf("%v, %+v, it did %q; want %s", err, f, d.did, want)
	}
}

func TestNoticeFor(t *testing.T) {
	for text, want := range map[string]string{
		"#SBATCH --comment=saves=notice": "USR1", "srun fairlease run -- python x.py": "USR1", "#SBATCH --comment=saves=notice,signal=SIGUSR2": "USR2",
		"#SBATCH --comment=saves=notice,signal=none": "", "python train.py": "", "#SBATCH --comment=signal=USR2": "USR2",
	} {
		if got := NoticeFor([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A script that can be stopped is told how to say so, unless it does.
func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"srun fairlease run -- python x.py": "saves=notice", "python x.py": "saves=term", "#SBATCH --comment=saves=30m\npython x.py": "",
	} {
		r := Rehearsal{Script: filepath.Join(t.TempDir(), "x.sh"), Signal: "auto", Lease: 2, Notice: 1}
		if err := os.WriteFile(r.Script, []byte("#!/bin/bash\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		if got := r.advice(); want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestStepsInOutput(t *testing.T) {
	for text, want := range map[string][]step{
		"step 12\nStep: 13": {{"step", 12}, {"step", 13}}, "Epoch=3 steps=4": {{"epoch", 3}, {"step", 4}}, "footstep 3 stepping 4 step of 5": nil,
		"[iter 100/2000] loss 3": {{"iter", 100}}, "iteration  7": {{"iteration", 7}},
		"step 19\nslurmstepd: error: *** STEP 1.0 ON k1 CANCELLED AT 2026-11-26T03:19:31 DUE TO JOB REQUEUE ***\nsrun: Job step aborted\nstep 20": {{"step", 19}, {"step", 20}},
		"step 46slurmstepd-k1: error: *** STEP 4.0 ON k1 CANCELLED ***\nstep 47":                                                                  {{"step", 46}, {"step", 47}},
		"slurmstepd-k1: error: *** STEP 812.0 ON k1 CANCELLED ***\n0: slurmstepd: error: *** STEP 812.0 ON k1 CANCELLED ***\n0: step 20":          {{"step", 20}},
	} {
		if got := steps([]byte(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
