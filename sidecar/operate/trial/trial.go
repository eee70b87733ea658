package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Trial is one GPU model, and the job that measures it.
type Trial struct {
	Model     string `json:"model"`
	Partition string `json:"partition,omitempty"`
	Job       string `json:"job,omitempty"`
	State     string `json:"state"` // skipped, refused (by sbatch), submitted, or Slurm's
	Nodes     string `json:"nodes,omitempty"`
	Profile   *Speed `json:"profile,omitempty"` // nil = not measured
	Note      string `json:"note,omitempty"`    // the reason, or a remark

	ID    cluster.JobID   `json:"-"` // of Job
	Began cluster.Instant `json:"-"` // when it was submitted

	nodes, perNode int // GPUs of the gang
	over           bool
	ended          cluster.Instant
	exit, output   string
	tenant         string // if known
}

// Speed is a measured speed.
type Speed struct {
	Rate    float64         `json:"rate"` // steps/s of the whole gang
	Speedup float64         `json:"speedup"`
	Samples int             `json:"samples"`
	Spread  float64         `json:"spread"`
	At      cluster.Instant `json:"at,omitzero"`
}

// submitted gives the trials that have a job.
func submitted(trials []*Trial) []*Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(x *Trial) bool { return x.Job == "" })
}

// unfinished gives the trials with live jobs.
func unfinished(trials []*Trial) []*Trial {
	return slices.DeleteFunc(submitted(trials), func(x *Trial) bool { return x.over })
}

// Trials makes a trial for each GPU model of the partitions, and notes which models have no idle
// GPUs.
func (o *Request) Trials(nodes []slurm.UserNode) ([]*Trial, error) {
	in := map[string][]slurm.UserNode{} // by model
	for _, n := range nodes {
		if slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(o.Partitions, p) }) {
			for _, g := range n.GPUs {
				in[g.Model] = append(in[g.Model], n)
			}
		}
	}
	if len(in) == 0 {
		return nil, &failure.Error{Code: failure.No, What: "no node of partition " + strings.Join(o.Partitions, ", ") + " has GPUs", Next: "choose others with --partition; sinfo lists them"}
	}
	models := slices.Compact(slices.Sorted(slices.Values(o.Models)))
	if len(models) == 0 {
		models = slices.Sorted(maps.Keys(in))
	}
	var out []*Trial
	for _, m := range models {
		if in[m] == nil {
			return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("--models: no node of partition %s has a GPU model %q", strings.Join(o.Partitions, ", "), m),
				Next: "there are " + strings.Join(slices.Sorted(maps.Keys(in)), ", ")}
		}
		x := &Trial{Model: m}
		if m == Untyped && len(in) > 1 {
			x.State, x.Note = "skipped", "its nodes name no GPU model, so a job cannot request it"
		} else {
			o.fit(x, in[m])
		}
		out = append(out, x)
	}
	return out, nil
}

// Untyped is the model of GPUs without a type in Slurm.
const Untyped = "gpu"

// fit finds the first partition with idle GPUs for the gang of a trial; else, if waiting is
// allowed, the first with enough GPUs.
func (o *Request) fit(x *Trial, nodes []slurm.UserNode) {
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
		for _, part := range o.Partitions {
			var on []int
			for i := range nodes {
				if slices.Contains(nodes[i].Partitions, part) {
					on = append(on, gpus[i])
				}
			}
			if n, each := spread(o.GPUs, on); n > 0 {
				x.Partition, x.nodes, x.perNode = part, n, each
				return
			}
		}
		if !o.Idle {
			x.State, x.Note = "skipped", fmt.Sprintf("%d of %d GPUs are idle; --wait-for-idle waits for more", idle, all)
			if idle >= o.GPUs {
				x.Note = fmt.Sprintf("%d of %d GPUs are idle, but not %d of them together; --wait-for-idle waits for that", idle, all, o.GPUs)
			}
			return
		}
	}
	x.State, x.Note = "skipped", fmt.Sprintf("its nodes cannot hold %d GPUs, evenly spread", o.GPUs)
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

// spread gives the minimum number of nodes for a gang, and the number of its GPUs on each, equal
// on all. on is the GPUs of each node. 0 = it does not fit.
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

// Sbatch gives the arguments of sbatch for a trial.
func (o *Request) Sbatch(x *Trial) []string {
	gres := fmt.Sprintf("--gres=gpu:%s:%d", x.Model, x.perNode)
	if x.Model == Untyped {
		gres = fmt.Sprintf("--gres=gpu:%d", x.perNode)
	}
	args := []string{"--job-name=profile-" + o.Kind, "--comment=kind=" + o.Kind + ",gpus=idle", fmt.Sprintf("--time=%d", o.Minutes),
		"--partition=" + x.Partition, fmt.Sprintf("--nodes=%d", x.nodes), gres}
	if o.Account != "" {
		args = append(args, "--account="+o.Account)
	}
	return append(append(args, o.Script), o.Args...)
}
