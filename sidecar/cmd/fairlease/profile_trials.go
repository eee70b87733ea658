package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// trial is one GPU model, and the job that measures it.
type trial struct {
	Model     string        `json:"model"`
	Partition string        `json:"partition,omitempty"`
	Job       string        `json:"job,omitempty"`
	State     string        `json:"state"` // skipped, refused (by sbatch), submitted, or Slurm's
	Nodes     string        `json:"nodes,omitempty"`
	Profile   *trialProfile `json:"profile,omitempty"` // nil = not measured
	Note      string        `json:"note,omitempty"`    // why, or what else is to be said

	nodes, perNode int // GPUs of the gang
	id             cluster.JobID
	over           bool
	began          cluster.Instant // when it was submitted
	ended          cluster.Instant
	exit, output   string
	tenant         string // as far as it is known
}

// trialProfile is what was measured.
type trialProfile struct {
	Rate    float64         `json:"rate"` // steps a second of the whole gang
	Speedup float64         `json:"speedup"`
	Samples int             `json:"samples"`
	Spread  float64         `json:"spread"`
	At      cluster.Instant `json:"at"`
}

// submitted gives the trials that have a job.
func submitted(trials []*trial) []*trial {
	return slices.DeleteFunc(slices.Clone(trials), func(x *trial) bool { return x.Job == "" })
}

// unfinished gives the trials whose jobs are not over.
func unfinished(trials []*trial) []*trial {
	return slices.DeleteFunc(submitted(trials), func(x *trial) bool { return x.over })
}

// trials makes one of each GPU model of the partitions, and says of which have no idle GPUs.
func (o *profiling) trials(nodes []slurm.UserNode) ([]*trial, error) {
	in := map[string][]slurm.UserNode{} // by model
	for _, n := range nodes {
		if slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(o.partitions, p) }) {
			for _, g := range n.GPUs {
				in[g.Model] = append(in[g.Model], n)
			}
		}
	}
	if len(in) == 0 {
		return nil, &failure.Error{Code: failure.No, What: "no node of partition " + strings.Join(o.partitions, ", ") + " has GPUs", Next: "name others with --partition; sinfo has them"}
	}
	models := slices.Compact(slices.Sorted(slices.Values(o.models)))
	if len(models) == 0 {
		models = slices.Sorted(maps.Keys(in))
	}
	var out []*trial
	for _, m := range models {
		if in[m] == nil {
			return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("--models: no node of partition %s has a GPU model %q", strings.Join(o.partitions, ", "), m),
				Next: "there are " + strings.Join(slices.Sorted(maps.Keys(in)), ", ")}
		}
		x := &trial{Model: m}
		if m == untypedModel && len(in) > 1 {
			x.State, x.Note = "skipped", "its nodes name no GPU model, so Slurm cannot be asked for it"
		} else {
			o.fit(x, in[m])
		}
		out = append(out, x)
	}
	return out, nil
}

// untypedModel is the model of GPUs of which Slurm knows none.
const untypedModel = "gpu"

// fit finds the first partition with idle GPUs for the gang of a trial; else, if it may wait, the first that
// could have them.
func (o *profiling) fit(x *trial, nodes []slurm.UserNode) {
	free, whole := make([]int, len(nodes)), make([]int, len(nodes)) // GPUs of the model, by node
	idle, all := 0, 0
	for i := range nodes {
		if n := &nodes[i]; n.Bad == "" {
			whole[i] = countOf(n.GPUs, x.Model)
			if n.Busy == "" {
				free[i] = countOf(n.Idle, x.Model)
			}
		}
		idle, all = idle+free[i], all+whole[i]
	}
	for _, gpus := range [][]int{free, whole} {
		for _, part := range o.partitions {
			var on []int
			for i := range nodes {
				if slices.Contains(nodes[i].Partitions, part) {
					on = append(on, gpus[i])
				}
			}
			if n, each := spread(o.gpus, on); n > 0 {
				x.Partition, x.nodes, x.perNode = part, n, each
				return
			}
		}
		if !o.idle {
			x.State, x.Note = "skipped", fmt.Sprintf("%d of %d GPUs are idle; --wait-for-idle waits for more", idle, all)
			if idle >= o.gpus {
				x.Note = fmt.Sprintf("%d of %d GPUs are idle, but not %d of them together; --wait-for-idle waits for that", idle, all, o.gpus)
			}
			return
		}
	}
	x.State, x.Note = "skipped", fmt.Sprintf("its nodes cannot hold %d GPUs, evenly spread", o.gpus)
}

// countOf gives how many GPUs of a model there are.
func countOf(gpus []cluster.GPUs, model string) int {
	for _, g := range gpus {
		if g.Model == model {
			return g.Count
		}
	}
	return 0
}

// spread gives on how many nodes a gang fits, as few as can be, and how many GPUs it has on each:
// the same on all. on is the GPUs of each node. 0 = it does not fit.
func spread(gang int, on []int) (nodes, each int) {
	for nodes = 1; nodes <= min(gang, len(on)); nodes++ {
		if gang%nodes != 0 {
			continue
		}
		room := 0
		for _, n := range on {
			if n >= gang/nodes {
				room++
			}
		}
		if room >= nodes {
			return nodes, gang / nodes
		}
	}
	return 0, 0
}

// sbatch gives the arguments by which a trial is submitted.
func (o *profiling) sbatch(x *trial) []string {
	gres := fmt.Sprintf("--gres=gpu:%s:%d", x.Model, x.perNode)
	if x.Model == untypedModel {
		gres = fmt.Sprintf("--gres=gpu:%d", x.perNode)
	}
	args := []string{"--job-name=profile-" + o.kind, "--comment=kind=" + o.kind + ",gpus=idle", fmt.Sprintf("--time=%d", o.minutes),
		"--partition=" + x.Partition, fmt.Sprintf("--nodes=%d", x.nodes), gres}
	if o.account != "" {
		args = append(args, "--account="+o.account)
	}
	return append(append(args, o.script), o.args...)
}
