package sim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Jobs that take turns on a GPU have shards of it, and are suspended and resumed. Those that run there at the same time share its speed.

// oneGPU are Slurm's words for the one GPU that a job asks for and may take turns on; "" = it does not.
func oneGPU(j *cluster.Job) string {
	q := &j.Request
	if j.Hints == nil || !j.Hints.Share || q.Size != cluster.Whole(1) || q.MostNodes() != 1 || q.Exclusive || q.Loose() {
		return ""
	}
	if q.Model != "" {
		return "gres/gpu:" + q.Model + ":1"
	}
	return "gres/gpu:1"
}

// ask makes a waiting job ask for shards instead of its GPU, or for its GPU again.
func ask(v *Virtual, j *work, words string) error {
	if words == "" {
		return nil
	}
	j.job.Request = j.Request
	j.sliced, j.job.Ask = false, oneGPU(&j.job)
	text, shards := strings.CutPrefix(words, cluster.ShardWords)
	if !shards {
		return nil
	}
	n, err := strconv.Atoi(text)
	fewest := 0
	for i := range v.nodes {
		if k := v.nodes[i].Shards; k > 0 && (fewest == 0 || k < fewest) {
			fewest = k
		}
	}
	if err != nil || n < 1 || n >= fewest {
		return fmt.Errorf("job %s cannot ask for %s", j.job.ID, words)
	}
	j.job.Request = cluster.SliceOf(j.job.Request, n, cluster.WholeGPU*cluster.MicroGPU(n)/cluster.MicroGPU(fewest))
	j.sliced, j.job.Ask = true, ""
	return nil
}

// suspend stops a running job, which keeps what it holds.
func suspend(v *Virtual, j *work) error {
	if j.job.State != cluster.Running {
		return fmt.Errorf("job %s does not run", j.job.ID)
	}
	j.progress = j.pace.walk(j.progress, v.now)
	j.job.State, j.paused = cluster.Suspended, v.now
	v.plan(j)
	divide(v, j)
	v.changed = true
	return nil
}

// resume lets a job go on if it is suspended.
func resume(v *Virtual, j *work) {
	if j.job.State != cluster.Suspended {
		return
	}
	rest := v.now.Sub(j.paused)
	p := &j.progress
	p.at = p.at.Add(rest)
	if p.stage != working {
		p.until = p.until.Add(rest)
	}
	if p.save != 0 {
		p.save = p.save.Add(rest)
	}
	j.job.Suspend += rest
	j.job.State = cluster.Running
	v.plan(j)
	divide(v, j)
	v.changed = true
}

// divide gives those that run on the GPU of a sliced job their speeds: two as in Beside, or half of their own each; three a third.
func divide(v *Virtual, j *work) {
	if !j.sliced || len(j.job.Holds) == 0 {
		return
	}
	at := j.job.Holds[0]
	var on []*work
	for _, o := range v.list.jobs {
		if o.sliced && o.job.State == cluster.Running && o.job.Holds[0].Node == at.Node && o.job.Holds[0].Index[0] == at.Index[0] {
			on = append(on, o)
		}
	}
	for k, o := range on {
		o.progress = o.pace.walk(o.progress, v.now)
		o.pace.speed = speedOn(v, o, o.job.Holds)
		switch n := len(on); n {
		case 1:
		case 2:
			beside, _ := v.Beside.of(o.task(), on[1-k].task(), at.Model)
			o.pace.speed = cmp.Or(beside, o.pace.speed*cmp.Or(v.Beside.others(), Reference/2)/Reference)
		default:
			o.pace.speed /= Speed(n)
		}
		v.plan(o)
	}
}
