package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/cluster/kinds"
)

// attempts reads the accounting history between two moments (until 0 = now): one Attempt for each run that held GPUs,
// sorted by start and id.
func (c history) attempts(ctx context.Context, since, until cluster.Instant) ([]cluster.Attempt, error) {
	var out []cluster.Attempt
	path := c.dbPath("jobs?show_duplicates=true&skip_steps=true&disable_truncate_usage_time=true&start_time=%d", int64(since)/1000)
	if until > 0 {
		path += fmt.Sprintf("&end_time=%d", (int64(until)+999)/1000)
	}
	_, err := c.list(ctx, path, "jobs", 0, func(r *reader) error {
		if a, ok := c.attempt(r); ok && r.junk == "" {
			out = append(out, a)
		}
		return nil
	}, func() { out = nil })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b cluster.Attempt) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), a.ID.Compare(b.ID))
	})
	return out, nil
}

// mostHistory is the maximum number of attempts that History gives: the newest.
const mostHistory = 200_000

// History gives the attempts that held GPUs and ended between two moments, for those who learn from run times. It asks slurmdbd day by
// day, so that no answer is too large, and does not hold up Observe.
func (c *Client) History(ctx context.Context, since, until cluster.Instant) ([]cluster.Attempt, error) {
	var out []cluster.Attempt
	for to := until; to > since && len(out) < mostHistory; to = to.Add(-cluster.Day) {
		from := max(to.Add(-cluster.Day), since)
		list, err := history{c.link}.day(ctx, from, to)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// day gives the attempts that ended after from, up to to.
func (c history) day(ctx context.Context, from, to cluster.Instant) ([]cluster.Attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.talk(ctx); err != nil {
		return nil, err
	}
	all, err := c.attempts(ctx, from, to)
	return slices.DeleteFunc(all, func(a cluster.Attempt) bool { return a.End <= from || a.End > to }), err
}

// attempt reads one row; false if it never held GPUs.
func (c history) attempt(r *reader) (cluster.Attempt, bool) {
	var a cluster.Attempt
	var array int64
	var parts gres
	var task number
	var states []string
	var nodes, on string
	var from kinds.Command
	r.object(func(name string) {
		switch name {
		case "job_id":
			a.ID.ID = r.number().n
		case "array":
			array, task = readArrayOf(r)
		case "user":
			a.User = r.text()
		case "account":
			a.Account = r.text()
		case "cluster":
			on = r.text()
		case "name":
			a.Name = r.text()
		case "submit_line":
			from.Line = r.text()
		case "working_directory":
			from.Dir = r.text()
		case "comment":
			a.Kind = readDeclaredKind(r)
		case "nodes":
			nodes = r.text()
		case "state":
			states = readCurrentState(r)
		case "time":
			readTimes(r, &a)
		case "tres":
			a.GPUs, parts = readAllocated(r)
		default:
			r.skip()
		}
	})
	if r.junk == "" && r.err == nil && (a.ID.ID <= 0 || len(states) == 0) {
		r.junk = "a row without job_id or state"
		return a, false
	}
	if array > 0 && task.set && task.n >= 0 && task.n <= mostTask {
		a.ID = cluster.TaskID(array, int32(task.n))
	}
	a.Outcome, a.Work = attemptOutcome(states), from.Label()
	if on != "" && c.seen.cluster != "" && on != c.seen.cluster {
		return a, false
	}
	c.nameModels(&a, nodes, parts)
	return a, len(a.GPUs) > 0 && a.Start > 0
}

// attemptOutcome is how the attempt ended: slurmdbd shows a requeued one as PENDING with the flag
// REQUEUED.
func attemptOutcome(states []string) string {
	if slices.Contains(states, "REQUEUED") {
		return "REQUEUED"
	}
	if len(states) == 0 {
		return ""
	}
	return cmp.Or(outcome(states), states[0])
}

// readDeclaredKind reads the kind that the job's part of the comments declares.
func readDeclaredKind(r *reader) (kind string) {
	r.object(func(name string) {
		if name != "job" {
			r.skip()
			return
		}
		if h := cluster.ParseHints(cutText(r.text(), cluster.MaxComment), 0); h != nil {
			kind = h.Kind
		}
	})
	return kind
}

func readArrayOf(r *reader) (job int64, task number) {
	r.object(func(name string) {
		switch name {
		case "job_id":
			job = r.number().n
		case "task_id":
			task = r.number()
		default:
			r.skip()
		}
	})
	return job, task
}

func readCurrentState(r *reader) []string {
	if r.kind() != '{' {
		return r.list()
	}
	var out []string
	r.object(func(name string) {
		if name == "current" {
			out = r.list()
		} else {
			r.skip()
		}
	})
	return out
}

func readTimes(r *reader, a *cluster.Attempt) {
	r.object(func(name string) {
		switch name {
		case "submission":
			a.Submit = instant(r.seconds())
		case "start":
			a.Start = within(r.seconds())
		case "end":
			a.End = within(r.seconds())
		case "suspended":
			a.Suspend = span(r.seconds())
		default:
			r.skip()
		}
	})
}

// readAllocated reads tres.allocated: the GPUs by model. If the accounting does not know models, the
// model is "". Parts of a GPU, shards or of MPS, are counted apart.
func readAllocated(r *reader) (typed []cluster.ModelSize, parts gres) {
	var plain int
	r.object(func(name string) {
		if name != "allocated" {
			r.skip()
			return
		}
		r.array(func() {
			var kind, what string
			var n int
			r.object(func(name string) {
				switch name {
				case "type":
					kind = r.text()
				case "name":
					what = r.text()
				case "count":
					n = r.count()
				default:
					r.skip()
				}
			})
			switch model, isTyped := strings.CutPrefix(what, "gpu:"); {
			case kind != "gres" || n == 0:
			case what == "gpu":
				plain = n
			case what == "shard", what == "mps":
				parts = gres{name: what, count: n}
			case isTyped:
				typed = append(typed, cluster.ModelSize{Model: model, Size: cluster.Whole(n)})
			}
		})
	})
	for _, g := range typed {
		plain -= g.Size.Devices
	}
	if plain > 0 {
		typed = append(typed, cluster.ModelSize{Size: cluster.Whole(plain)})
	}
	return typed, parts
}

// nameModels derives what the accounting does not know from the attempt's nodes: models, and what parts are of a GPU. It
// sorts.
func (c history) nameModels(a *cluster.Attempt, nodes string, parts gres) {
	names, _ := hostlist.Expand(nodes)
	if len(names) == 1 && parts.count > 0 && c.seen.gpuNodes[names[0]].MPS == (parts.name == "mps") {
		for _, h := range withShards([]cluster.Holding{{}}, c.seen.gpuNodes[names[0]], parts) {
			if h.Size.Devices > 0 {
				a.GPUs = append(a.GPUs, cluster.ModelSize{Model: h.Model, Size: h.Size})
			}
		}
	}
	for i := range a.GPUs {
		if a.GPUs[i].Model != "" {
			continue
		}
		a.GPUs[i].Model = untyped
		for _, n := range names {
			if node, ok := c.seen.gpuNodes[n]; ok {
				a.GPUs[i].Model = onlyModel(node)
				break
			}
		}
	}
	slices.SortFunc(a.GPUs, func(a, b cluster.ModelSize) int { return strings.Compare(a.Model, b.Model) })
}
