package testcluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sbatch submits a script as a user and returns the job's id.
func (c *Cluster) Sbatch(ctx context.Context, user, script string, args ...string) (string, error) {
	out, err := c.run(ctx, user, script, append([]string{"sbatch", "--parsable"}, args...)...)
	return strings.TrimSpace(out.Stdout), err
}

// Job is what scontrol shows of one job, by scontrol's own names (JobState, Reason, EligibleTime, ReqNodeList, …).
type Job map[string]string

// Job looks a job up as root.
func (c *Cluster) Job(ctx context.Context, id string) (Job, error) {
	out, err := c.Exec(ctx, "root", "scontrol", "--oneliner", "--details", "show", "job", id)
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(out, "\n")
	return parseJob(first), nil
}

func parseJob(line string) Job {
	job := Job{}
	for _, word := range strings.Fields(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			if _, known := job[key]; !known {
				job[key] = value
			}
		}
	}
	return job
}

// WaitJob waits until the job fulfils the condition and returns it as it is then; limit bounds the wait.
func (c *Cluster) WaitJob(ctx context.Context, id string, limit time.Duration, condition func(Job) bool) (Job, error) {
	var job Job
	err := poll(ctx, limit, func() (err error) {
		if job, err = c.Job(ctx, id); err != nil {
			return err
		}
		if !condition(job) {
			return fmt.Errorf("job %s is %s (%s)", id, job["JobState"], job["Reason"])
		}
		return nil
	})
	if err != nil {
		return job, fmt.Errorf("waiting for job %s: %w", id, err)
	}
	return job, nil
}

// InState is a condition for WaitJob: the job is in one of the states, as RUNNING or COMPLETED.
func InState(states ...string) func(Job) bool {
	return func(j Job) bool {
		for _, s := range states {
			if j["JobState"] == s {
				return true
			}
		}
		return false
	}
}

// NodeState as scontrol writes it, as IDLE+DRAIN.
func (c *Cluster) NodeState(ctx context.Context, node string) (string, error) {
	out, err := c.Exec(ctx, "root", "scontrol", "--oneliner", "show", "node", node)
	if err != nil {
		return "", err
	}
	return parseJob(out)["State"], nil
}

// SetNode gives a node a state (drain, down, resume) as root.
func (c *Cluster) SetNode(ctx context.Context, node, state string) error {
	_, err := c.Exec(ctx, "root", "scontrol", "update", "NodeName="+node, "State="+state, "Reason=test")
	return err
}

// Maintenance reserves nodes for maintenance, from a start as scontrol reads it (now+10minutes) for so many minutes.
func (c *Cluster) Maintenance(ctx context.Context, name, nodes, start string, minutes int) error {
	_, err := c.Exec(ctx, "root", "scontrol", "create", "reservation", "ReservationName="+name, "Nodes="+nodes,
		"StartTime="+start, fmt.Sprintf("Duration=%d", minutes), "Users=root", "Flags=MAINT,IGNORE_JOBS")
	return err
}

// GPUsOf gives the GPUs of a list of trackable resources, as sacct prints it.
func GPUsOf(tres string) int {
	for one := range strings.SplitSeq(tres, ",") {
		if n, ok := strings.CutPrefix(one, "gres/gpu="); ok {
			gpus, _ := strconv.Atoi(n)
			return gpus
		}
	}
	return 0
}
