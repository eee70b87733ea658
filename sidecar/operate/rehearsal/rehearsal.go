// Package rehearsal tries a user's batch script: it gives the script a short lease, requeues it, and says whether it went
// on from its save, and what to change if it did not.
//
//	submit ─► runs for a lease ─► notice ─► requeue ─► runs again ─► findings ─► cancel
//
// It does what fairlease does at the end of a lease, with the rights of the user: sbatch, scancel and scontrol for one job
// of the user's own.
package rehearsal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Slurm is Slurm as its users have it.
type Slurm interface {
	Submit(ctx context.Context, args []string) (cluster.JobID, error)
	Job(ctx context.Context, id cluster.JobID) (slurm.UserJob, bool, error)
	Tasks(ctx context.Context, array cluster.JobID) ([]slurm.UserTask, error)
	Signal(ctx context.Context, id cluster.JobID, signal string) error
	Requeue(ctx context.Context, id cluster.JobID) error
	StartNow(ctx context.Context, id cluster.JobID) error
	Cancel(ctx context.Context, id cluster.JobID) error
}

// Rehearsal says what to try. Sleep and Now are the clock.
type Rehearsal struct {
	Script   string
	Args     []string      // of the script
	Options  []string      // of sbatch
	Lease    time.Duration // how long it runs before the requeue, the notice included
	Notice   time.Duration // between the notice and the requeue
	Signal   string        // of the notice: a name, none, or auto, which Check replaces by what the script needs
	Patience time.Duration // for each start
	Hurry    bool          // do not wait for the two minutes that Slurm delays a requeued job
	Slurm    Slurm
	Sleep    func(context.Context, time.Duration)
	Now      func() time.Time
	Tell     func(format string, args ...any) // progress, in words

	declares bool     // the script says how it saves
	tasks    []string // the first two of an array; nil = it is none
	byJobID  bool     // its text requeues $SLURM_JOB_ID
}

// Findings are the result. Resumed and Kept are "yes", "no" or "unknown".
type Findings struct {
	Job     string   `json:"job"`
	Resumed string   `json:"resumed"`         // whether it went on from a save
	Kept    string   `json:"output_kept"`     // whether its output survived the requeue
	Before  string   `json:"before"`          // its last counted step before the requeue; "" = it printed none
	After   string   `json:"after"`           // its first one afterwards
	Ended   string   `json:"ended,omitempty"` // its state, if it ended by itself
	Changes []string `json:"changes"`         // remedies, most important first
	Seconds float64  `json:"seconds"`
	// Siblings are other tasks of the array that were requeued when its one task had the notice.
	Siblings []string `json:"requeued_siblings,omitempty"`
}

// Good tells whether the script can be stopped without a loss.
func (f *Findings) Good() bool { return f.Resumed == "yes" && f.Kept == "yes" && len(f.Siblings) == 0 }

// notices finds the signal that a script asks fairlease to send in its comment.
var notices = regexp.MustCompile(`\bsignal=(?:SIG)?([A-Z0-9]+|none)\b`)

// NoticeFor gives the signal with which fairlease would give notice to a job with a script, by its text: the one
// that it asks for, USR1 if it saves on the notice or uses fairlease, else none, "".
func NoticeFor(text []byte) string {
	switch m := notices.FindSubmatch(text); {
	case m != nil && string(m[1]) == cluster.NoSignal:
		return ""
	case m != nil:
		return string(m[1])
	case bytes.Contains(text, []byte("saves=notice")), bytes.Contains(text, []byte("fairlease")):
		return "USR1"
	}
	return ""
}

// Check refuses a script that sbatch would not take, and times that make no sense.
func (r *Rehearsal) Check() error {
	text, err := os.ReadFile(r.Script)
	r.declares = bytes.Contains(text, []byte("saves="))
	r.tasks, r.byJobID = tasksOf(text, r.Options), byJobID.Match(text)
	switch r.Signal {
	case "auto":
		r.Signal = NoticeFor(text)
	case cluster.NoSignal:
		r.Signal = ""
	}
	if err == nil && !bytes.HasPrefix(text, []byte("#!")) {
		err = errors.New("it does not begin with #!, as in #!/bin/bash, which sbatch requires")
	}
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the batch script cannot be used", Err: err, Next: "call fairlease try-requeue SCRIPT; arguments of the script follow --"}
	}
	if r.Notice < 0 || r.Lease <= r.Notice {
		return failure.Usage("--lease is %s and --notice-time %s: a lease must be longer than its notice", cluster.SpanOf(r.Lease).Exact(), cluster.SpanOf(r.Notice).Exact())
	}
	return nil
}

// the words for the changes
const (
	appendOutput = "add `#SBATCH --open-mode=append`: a requeue truncates the output file"
	wrapIt       = "run it as `srun fairlease run -- COMMAND`: it ended by itself when it had saved, so Slurm does not run it again"
	trapIt       = "have it trap the notice, or send none (--comment=signal=none): a process without a handler dies of the signal"
	resumeIt     = "have it look for its newest checkpoint when it starts, and go on from there; and save when it gets SIGTERM, or often"
	countIt      = "have it print its steps, as in `step 1200`, or report them with fairlease.progress(): then it can be told whether it resumed"
	ownTask      = "have it requeue its own task alone: `scontrol requeue ${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}`; in one task of an array SLURM_JOB_ID is the id of the whole array"
	allowIt      = "add `#SBATCH --requeue`: Slurm does not requeue the job, so it keeps its GPUs and gets them later"
)

// Try runs the rehearsal. The job is cancelled at its end, whatever happens.
func (r *Rehearsal) Try(ctx context.Context) (Findings, error) {
	began := r.Now()
	options := append([]string{}, r.Options...)
	if len(r.tasks) > 0 {
		options = append(options, "--array="+strings.Join(r.tasks, ","))
	}
	id, err := r.Slurm.Submit(ctx, append(append(options, r.Script), r.Args...))
	if err != nil {
		return Findings{}, &failure.Error{Code: failure.No, What: "sbatch refused the script", Err: err, Next: "submit it by hand, and then try again"}
	}
	defer func() { _ = r.Slurm.Cancel(context.WithoutCancel(ctx), id) }() // it may have ended
	f := Findings{Job: id.String(), Resumed: "unknown", Kept: "unknown", Changes: []string{}}
	r.Tell("job %s is submitted", id)
	err = r.try(ctx, id, &f)
	f.Seconds = r.Now().Sub(began).Seconds()
	return f, err
}

func (r *Rehearsal) try(ctx context.Context, id cluster.JobID, f *Findings) error {
	array := id
	if len(r.tasks) > 0 {
		var err error
		if id, err = r.task(ctx, array); err != nil {
			return err
		}
		f.Job = id.String()
		r.Tell("of the array, tasks %s are tried; task %s has the notice", strings.Join(r.tasks, " and "), id)
	}
	j, err := r.starts(ctx, id, 0, &output{})
	if err != nil {
		return err
	}
	if j.Keeps {
		f.Changes = append(f.Changes, allowIt)
		return nil
	}
	r.Tell("it runs on %s; its lease ends in %s", j.Nodes, cluster.SpanOf(r.Lease))
	if j, err = r.runs(ctx, id, r.Lease-r.Notice); err != nil {
		return err
	}
	if j.Over() {
		f.Ended = j.State
		return &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s ended by itself (%s, exit code %s) before its lease", id, j.State, j.Exit),
			Next: "try a script that runs longer, or a shorter --lease; its output is in " + j.Output}
	}
	if r.Signal != "" {
		r.Tell("notice: SIG%s to its steps, %s before the requeue", r.Signal, cluster.SpanOf(r.Notice))
		if err := r.Slurm.Signal(ctx, id, r.Signal); err != nil {
			return slurmSays("the notice could not be sent", err)
		}
	}
	if j, err = r.runs(ctx, id, r.Notice); err != nil {
		return err
	}
	if len(r.tasks) > 0 {
		if f.Siblings, err = r.siblings(ctx, array, id); err != nil {
			return err
		}
		if len(f.Siblings) > 0 || r.byJobID {
			f.Changes = append(f.Changes, ownTask)
		}
	}
	switch {
	case j.Over() && j.State == "COMPLETED":
		f.Ended, f.Changes = j.State, append(f.Changes, wrapIt)
		return nil
	case j.Over():
		f.Ended, f.Changes = j.State, append(f.Changes, trapIt)
		return nil
	}
	before := look(j.Output)
	if j.Restarts == 0 { // else it has requeued itself, as some frameworks do
		if err := r.Slurm.Requeue(ctx, id); err != nil {
			return slurmSays("the job could not be requeued", err)
		}
	}
	r.Tell("it is requeued, and waits for its next start")
	if j, err = r.starts(ctx, id, 1, &before); err != nil {
		return err
	}
	r.Tell("it runs again on %s", j.Nodes)
	var after output
	for until := r.Now().Add(r.Lease); ; r.Sleep(ctx, time.Second) {
		j, _, err = r.Slurm.Job(ctx, id)
		if after = look(j.Output); err != nil || ctx.Err() != nil || j.Over() || r.Now().After(until) || len(after.since(&before)) > 0 {
			break
		}
	}
	if err != nil {
		return slurmSays("the job cannot be followed", err)
	}
	if j.Over() && len(steps(before.text)) > 0 && len(after.since(&before)) == 0 {
		f.Ended = j.State
		return &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s ended before its first step after the requeue (%s, exit code %s, %s)", id, j.State, j.Exit, cmp.Or(j.Reason, "no reason given")),
			Next: "look for the cause in " + j.Output}
	}
	f.judge(&before, &after)
	return ctx.Err()
}

func slurmSays(what string, err error) error {
	return &failure.Error{Code: failure.No, What: what, Err: err, Next: "check with scontrol show job"}
}

// settle is how long a requeued job waits before it is started again, on nodes whose clocks differ by less than a second:
// slurmd kills a job that starts in the second of its requeue ("Job credential revoked").
const settle = 2 * time.Second

// starts waits for a start of a job after so many requeues, or its end. before is the output until then.
func (r *Rehearsal) starts(ctx context.Context, id cluster.JobID, restarts int, before *output) (slurm.UserJob, error) {
	hurried := !r.Hurry || restarts == 0
	for until := r.Now().Add(r.Patience); ; r.Sleep(ctx, time.Second) {
		j, known, err := r.Slurm.Job(ctx, id)
		// The attempt that ended may have had last words. A file that does not go on is the next attempt's already.
		if now := look(j.Output); j.State == "PENDING" && bytes.HasPrefix(now.text, before.text) {
			*before = now
		}
		switch {
		case err != nil:
			return j, slurmSays("the job cannot be followed", err)
		case !known || ctx.Err() != nil || r.Now().After(until):
			return j, &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s did not start in %s (%s, %s)", id, cluster.SpanOf(r.Patience), j.State, j.Reason),
				Err: ctx.Err(), Next: "try when GPUs are free, or give it more time with --patience"}
		case j.Restarts >= restarts && (j.State == "RUNNING" || j.Over()):
			return j, nil
		case !hurried && j.State == "PENDING":
			hurried = true
			r.Sleep(ctx, settle)
			if err := r.Slurm.StartNow(ctx, id); err != nil {
				return j, slurmSays("its start could not be hurried", err)
			}
		}
	}
}

// runs waits while a job runs, at most so long, and returns its state.
func (r *Rehearsal) runs(ctx context.Context, id cluster.JobID, most time.Duration) (slurm.UserJob, error) {
	for until := r.Now().Add(most); ; r.Sleep(ctx, time.Second) {
		j, _, err := r.Slurm.Job(ctx, id)
		if err != nil {
			return j, slurmSays("the job cannot be followed", err)
		}
		if j.State != "RUNNING" && j.State != "COMPLETING" || !r.Now().Before(until) || ctx.Err() != nil {
			return j, ctx.Err()
		}
	}
}

// output is what a job has written.
type output struct {
	text  []byte
	known bool
}

// mostOutput is the maximum size of an output file that is read.
const mostOutput = 64 << 20

func look(path string) output {
	s, err := os.Stat(path)
	if err != nil || s.Size() > mostOutput {
		return output{}
	}
	text, err := os.ReadFile(path)
	return output{text, err == nil}
}

// since gives what the second attempt wrote.
func (o *output) since(before *output) []step {
	if kept := bytes.HasPrefix(o.text, before.text); kept {
		return steps(o.text[len(before.text):])
	}
	return steps(o.text)
}

// step is a counted step, as in "step 1200" or "epoch: 3".
type step struct {
	word string
	n    float64
}

// slurms are Slurm's own lines in a job's output, such as "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED ...". A slurmd
// with a name of its own adds that (slurmstepd-n1), and srun --label the task's number. Such a line may begin within one of the job's.
var slurms = regexp.MustCompile(`(?m)^(\d+: )?(slurmstepd(-\S+)?|srun): .*$|\*\*\* (STEP|JOB) \S+ ON .*$`)

var counted = regexp.MustCompile(`(?i)\b(step|iteration|iter|epoch|batch)s?\b\W{0,3}(\d+)`)

func steps(text []byte) (out []step) {
	for _, m := range counted.FindAllSubmatch(slurms.ReplaceAll(text, nil), -1) {
		if n, err := strconv.ParseFloat(string(m[2]), 64); err == nil {
			out = append(out, step{strings.ToLower(string(m[1])), n})
		}
	}
	return out
}

// judge compares the output of both attempts. The word whose number grew most before the requeue counts. A first number
// afterwards in the upper half of the steps done is a resumption; in the lower tenth, a restart.
func (f *Findings) judge(before, after *output) {
	if before.known && after.known {
		f.Kept = "yes"
		if !bytes.HasPrefix(after.text, before.text) {
			f.Kept = "no"
			f.Changes = append(f.Changes, appendOutput)
		}
	}
	first, last := map[string]float64{}, map[string]float64{}
	word := ""
	for _, s := range steps(before.text) {
		if _, seen := first[s.word]; !seen {
			first[s.word] = s.n
		}
		last[s.word] = s.n
		if word == "" || last[s.word]-first[s.word] > last[word]-first[word] {
			word = s.word
		}
	}
	done := last[word] - first[word]
	for _, s := range after.since(before) {
		if s.word != word || done <= 0 {
			continue
		}
		f.Before, f.After = fmt.Sprintf("%s %g", word, last[word]), fmt.Sprintf("%s %g", word, s.n)
		switch got := s.n - first[word]; {
		case got >= done/2:
			f.Resumed = "yes"
		case got <= done/10:
			f.Resumed = "no"
		}
		break
	}
	switch f.Resumed {
	case "no":
		f.Changes = append([]string{resumeIt}, f.Changes...)
	case "unknown":
		f.Changes = append(f.Changes, countIt)
	}
}
