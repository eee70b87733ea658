package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Login accesses Slurm as its users do: through its commands, with the rights of the user that
// runs this program.
type Login struct {
	Env []string // KEY=value, for submitted jobs, in addition to the program's own
}

// UserNode is a node with GPUs as users see it.
type UserNode struct {
	cluster.Node                // without CPUs, memory and features
	Idle         []cluster.GPUs // its unused GPUs, by model
}

// UserJob is a job as its user sees it.
type UserJob struct {
	State  string // Slurm's: PENDING, RUNNING, COMPLETED, TIMEOUT, …
	Reason string // why it waits or failed; "" = none
	Exit   string // its exit code and signal, "3:0"
	Nodes  string // as Slurm lists them; "" = none yet
	Output string // the file
	// Restarts counts its requeues. Keeps tells that Slurm does not requeue it (--no-requeue).
	Restarts int
	Keeps    bool
}

// UserTask is a task of an array as its user sees it. Record is its SLURM_JOB_ID: of one task, the array's id.
type UserTask struct {
	ID     cluster.JobID
	Record int64
	UserJob
}

// Over tells whether a job has ended.
func (j *UserJob) Over() bool {
	return j.State == "" || j.State == "REVOKED" || slices.Contains(ended, j.State)
}

// Nodes lists the nodes that have GPUs.
func (l Login) Nodes(ctx context.Context) ([]UserNode, error) {
	text, err := l.run(ctx, "scontrol", "show", "node", "--details", "--oneliner")
	if err != nil {
		return nil, err
	}
	var out []UserNode
	for line := range strings.Lines(text) {
		if n := userNode(line); len(n.GPUs) > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}

// userNode reads a line of scontrol, without entries of GPUs that make no sense. GPUs with an allocated shard are not idle.
func userNode(line string) UserNode {
	words := shown(line)
	n := UserNode{Node: cluster.Node{Name: words["NodeName"]}}
	if words["Partitions"] != "" {
		n.Partitions = strings.Split(words["Partitions"], ",")
	}
	var states []string
	for s := range strings.SplitSeq(words["State"], "+") {
		name, silent := strings.CutSuffix(strings.TrimRight(s, "#!%$@^-~"), "*")
		if states = append(states, name); silent {
			states = append(states, "NOT_RESPONDING")
		}
	}
	n.Bad, n.Busy = health(states)
	var lists [3][]gres
	for i, key := range []string{"Gres", "GresDrain", "GresUsed"} {
		lists[i], _ = gresList(words[key])
	}
	n.GPUs = less(gpuCounts(lists[0]), gpuCounts(lists[1]))
	n.Idle = less(slices.Clone(n.GPUs), gpuCounts(lists[2]))
	for _, g := range lists[2] {
		if g.name == "shard" || g.name == "mps" {
			n.Idle = less(n.Idle, []cluster.GPUs{{Model: g.pool(), Count: len(g.shared())}})
		}
	}
	return n
}

// shown reads a line of key=value; the first value of a key counts.
func shown(line string) map[string]string {
	out := map[string]string{}
	for _, word := range strings.Fields(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			if _, there := out[key]; !there && value != "(null)" && value != "N/A" {
				out[key] = value
			}
		}
	}
	return out
}

// Submit runs sbatch for a script, and gives the job's id. It continues when ctx ends, since the
// job may exist already.
func (l Login) Submit(ctx context.Context, args []string) (cluster.JobID, error) {
	text, err := l.run(context.WithoutCancel(ctx), "sbatch", append([]string{"--parsable"}, args...)...)
	if err != nil {
		return cluster.JobID{}, err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(text), ";") // of a named cluster
	job, err := cluster.ParseJobID(id)
	if err != nil {
		return cluster.JobID{}, fmt.Errorf("sbatch said %.80q, no job's id", text)
	}
	return job, nil
}

// Job gives the state of a job; false = Slurm does not know it any more.
func (l Login) Job(ctx context.Context, id cluster.JobID) (UserJob, bool, error) {
	text, err := l.run(ctx, "scontrol", "show", "job", "--oneliner", id.String())
	var e *Error
	if errors.As(err, &e) && e.Code == codeUnknownJob {
		return UserJob{}, false, nil
	}
	if err != nil {
		return UserJob{}, false, err
	}
	j := userJob(shown(text))
	if j.State == "" {
		return j, false, fmt.Errorf("scontrol show job %s said %.80q", id, text)
	}
	return j, true, nil
}

// userJob reads a job from words of scontrol.
func userJob(words map[string]string) UserJob {
	j := UserJob{State: words["JobState"], Reason: words["Reason"], Exit: words["ExitCode"], Nodes: words["NodeList"], Output: words["StdOut"]}
	j.Restarts, _ = strconv.Atoi(words["Restarts"]) // missing = none
	j.Keeps = words["Requeue"] == "0"
	if j.Reason == "None" {
		j.Reason = ""
	}
	if j.State == "EXPEDITING" { // it waits after a requeue; scontrol shows the flag in the place of the state
		j.State = "PENDING"
	}
	return j
}

// Tasks gives the tasks of an array that have records of their own; waiting tasks may share one.
func (l Login) Tasks(ctx context.Context, array cluster.JobID) ([]UserTask, error) {
	text, err := l.run(ctx, "scontrol", "show", "job", "--oneliner", array.String())
	if err != nil {
		return nil, err
	}
	var out []UserTask
	for line := range strings.Lines(text) {
		words := shown(line)
		task, err := strconv.ParseInt(words["ArrayTaskId"], 10, 32)
		record, wrong := strconv.ParseInt(words["JobId"], 10, 64)
		if err != nil || wrong != nil {
			continue
		}
		out = append(out, UserTask{ID: cluster.TaskID(array.ID, int32(task)), Record: record, UserJob: userJob(words)})
	}
	return out, nil
}

// CancelWaiting cancels those of the given jobs that have not started.
func (l Login) CancelWaiting(ctx context.Context, ids []cluster.JobID) error {
	args := []string{"--state=PENDING"}
	for _, id := range ids {
		args = append(args, id.String())
	}
	_, err := l.run(ctx, "scancel", args...)
	if err != nil && strings.HasSuffix(err.Error(), "signal: "+syscall.SIGINT.String()) {
		// Jobs are cancelled because of an interrupt. A second one may reach the command before
		// it has its own group.
		_, err = l.run(ctx, "scancel", args...)
	}
	return err
}

// Signal sends a signal to the steps of a job, as fairlease's notice does.
func (l Login) Signal(ctx context.Context, id cluster.JobID, signal string) error {
	_, err := l.run(ctx, "scancel", "--signal="+signal, id.String())
	return err
}

// Requeue requeues a running job.
func (l Login) Requeue(ctx context.Context, id cluster.JobID) error {
	_, err := l.run(ctx, "scontrol", "requeue", id.String())
	return err
}

// StartNow ends the time for which Slurm keeps a requeued job from starting.
func (l Login) StartNow(ctx context.Context, id cluster.JobID) error {
	_, err := l.run(ctx, "scontrol", "update", "JobId="+id.String(), "StartTime=now")
	return err
}

// Cancel cancels a job.
func (l Login) Cancel(ctx context.Context, id cluster.JobID) error {
	_, err := l.run(ctx, "scancel", id.String())
	return err
}

// loginLimit is the timeout of one Slurm command.
const loginLimit = 30 * time.Second

// run runs one Slurm command and gives its output.
func (l Login) run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), l.Env...), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's interrupt is for this program
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end in time: %w", program, ctx.Err())
	case !errors.As(err, &exit):
		return "", fmt.Errorf("cannot run Slurm's command %s: %w", program, err)
	}
	text := strings.TrimPrefix(strings.Join(strings.Fields(complaint.String()), " "), program+": error: ")
	e := &Error{Doing: program, Err: errors.New(orSay(text, err.Error()))}
	e.Code, e.Unknown = complaintCode(text)
	return "", e
}
