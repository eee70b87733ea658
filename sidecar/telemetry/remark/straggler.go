package remark

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// meanings are the counters by which GPUs of a job are compared, with the least value that is told from noise.
var meanings = [...]gpu.Meaning{gpu.Clock, gpu.SM, gpu.Tensor, gpu.DRAM, gpu.Power}

var leasts = [len(meanings)]float64{1e8, 0.02, 0.02, 0.02, 1}

const (
	leastGang = 4       // GPUs that can be compared
	scale     = 1.4826  // of the median absolute deviation, to the standard deviation
	lagging   = 6       // standard deviations beyond which a GPU is far from the others
	mostLag   = 1.0 / 3 // part of the GPUs that may lag; more of them are the job's own structure
)

// deviation is a GPU's, or node's, distance from the median of the job's GPUs.
type deviation struct {
	at            place
	gpus          int
	meaning       int
	value, median float64
}

// compare finds the GPU or node that is far from the others in this block, and was in those before.
func (j *Judge) compare(x *job) {
	found := x.block.furthest()
	if found == nil || found.at != x.lags {
		x.lag = streak{}
	}
	if found != nil {
		x.lags = found.at
		x.lag.next(true, found.value > found.median, x.block.from)
	}
	if x.lag.blocks >= lasting {
		j.stand(x, gpu.Remark{Kind: Straggler, Node: found.at.node, GPU: found.at.index, Since: x.lag.since, Text: found.words(len(x.block.gpus), x.lag.since)})
	} else {
		x.end(Straggler)
	}
}

// furthest gives the one GPU, or the one node, that is far from the median by any counter; nil = none, or several.
func (b *filling) furthest() *deviation {
	var places []place
	for _, at := range slices.SortedFunc(maps.Keys(b.gpus), func(a, b place) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.index, b.index)) }) {
		if 2*b.gpus[at][0].n > b.all || 2*b.gpus[at][len(meanings)-1].n > b.all { // else it idled, or was not seen
			places = append(places, at)
		}
	}
	if len(places) < leastGang {
		return nil
	}
	for k := range meanings {
		logs := make([]float64, len(places))
		for i, at := range places {
			logs[i] = math.Log(b.gpus[at][k].value())
		}
		middle := median(logs)
		if !(middle >= math.Log(leasts[k])) { // or some lack it
			continue
		}
		away := make([]float64, len(logs))
		for i := range logs {
			away[i] = math.Abs(logs[i] - middle)
		}
		limit := max(farAtLeast, lagging*scale*median(away))
		var off []int
		for i := range away {
			if away[i] > limit {
				off = append(off, i)
			}
		}
		if len(off) == 0 || float64(len(off)) > mostLag*float64(len(places)) {
			continue
		}
		d := &deviation{at: places[off[0]], gpus: len(off), meaning: k, median: math.Exp(middle)}
		sum, onNode, there := 0.0, 0, 0
		for i, at := range places {
			if at.node == d.at.node {
				there++
			}
			if away[i] > limit && at.node == d.at.node {
				onNode, sum = onNode+1, sum+logs[i]
			}
		}
		d.value = math.Exp(sum / float64(onNode))
		switch {
		case d.gpus == 1:
			return d
		case d.gpus == onNode && onNode == there: // all of the node's, and no other
			d.at.index = -1
			return d
		}
	}
	return nil
}

// median gives the median; NaN if any value is NaN.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list)) // NaN comes first
	if math.IsNaN(sorted[0]) {
		return math.NaN()
	}
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (d *deviation) words(all int, since cluster.Instant) string {
	name, value := "", func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	switch meanings[d.meaning] {
	case gpu.Clock:
		name, value = "SM clock", func(x float64) string { return fmt.Sprintf("%.0f MHz", x/1e6) }
	case gpu.Power:
		name, value = "power", func(x float64) string { return fmt.Sprintf("%.0f W", x) }
	case gpu.SM:
		name = "SM activity"
	case gpu.Tensor:
		name = "tensor activity"
	case gpu.DRAM:
		name = "memory activity"
	}
	which := fmt.Sprintf("GPU %d of %s is", d.at.index, d.at.node)
	if d.at.index < 0 {
		which = fmt.Sprintf("the %d GPUs of %s are", d.gpus, d.at.node)
	}
	return fmt.Sprintf("%s far from the job's other %d GPUs since %s: %s %s, median %s", which, all-d.gpus, clock(since), name, value(d.value), value(d.median))
}
