package rehearsal

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// One task of an array has the array's own id as its SLURM_JOB_ID: the last one that Slurm split off. A handler of this task that requeues
// $SLURM_JOB_ID requeues all tasks of the array. So two tasks of an array are tried, and only that one gets the notice.

var (
	inScript = regexp.MustCompile(`(?m)^#SBATCH\s+(?:.*\s)?(?:--array|-a)[=\s]?\s*([0-9][-0-9,:]*)`)
	inOption = regexp.MustCompile(`^(?:--array|-a)[=\s]?\s*([0-9][-0-9,:]*)`)
	// byJobID finds a handler that requeues $SLURM_JOB_ID.
	byJobID = regexp.MustCompile(`scontrol\s+requeue\w*\s[^\n;|&]*\$\{?SLURM_JOB_?ID\b`)
)

// tasksOf gives the numbers of the first two tasks of the array that a script is, by its text and the options of sbatch, as sbatch takes them.
func tasksOf(text []byte, options []string) []string {
	spec := ""
	if m := inScript.FindSubmatch(text); m != nil {
		spec = string(m[1])
	}
	for _, o := range options {
		if m := inOption.FindStringSubmatch(o); m != nil {
			spec = m[1]
		}
	}
	var out []string
	for part := range strings.SplitSeq(spec, ",") {
		span, step, _ := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(span, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		out = append(out, first)
		by, _ := strconv.Atoi(step)
		if b, err := strconv.Atoi(last); ranged && err == nil && a+max(by, 1) <= b {
			out = append(out, strconv.Itoa(a+max(by, 1)))
		}
		if len(out) >= 2 {
			return out[:2]
		}
	}
	return out
}

// together is how long tasks wait for each other to start.
const together = time.Minute

// task waits for the tasks of an array to run, and gives the one that has the array's id. If not all of them start in time, it is one
// that runs; if none does, the array.
func (r *Rehearsal) task(ctx context.Context, array cluster.JobID) (cluster.JobID, error) {
	began := time.Time{}
	for until := r.Now().Add(r.Patience); ; r.Sleep(ctx, time.Second) {
		tasks, err := r.Slurm.Tasks(ctx, array)
		if err != nil {
			return array, slurmSays("the array cannot be followed", err)
		}
		var runs []slurm.UserTask
		for _, t := range tasks {
			if t.State == "RUNNING" {
				runs = append(runs, t)
			}
		}
		if len(runs) > 0 && began.IsZero() {
			began = r.Now()
		}
		late := ctx.Err() != nil || r.Now().After(until) || len(runs) > 0 && r.Now().Sub(began) >= together
		if len(runs) < len(r.tasks) && !late {
			continue
		}
		for _, t := range runs {
			if t.Record == array.ID {
				return t.ID, nil
			}
		}
		if len(runs) > 0 {
			return runs[0].ID, nil
		}
		return array, ctx.Err()
	}
}

// siblings gives the other tasks of an array that were requeued.
func (r *Rehearsal) siblings(ctx context.Context, array, id cluster.JobID) (out []string, err error) {
	tasks, err := r.Slurm.Tasks(ctx, array)
	if err != nil {
		return nil, slurmSays("the array cannot be followed", err)
	}
	for _, t := range tasks {
		if t.ID != id && t.Restarts > 0 {
			out = append(out, t.ID.String())
		}
	}
	return out, nil
}
