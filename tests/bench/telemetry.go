package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// texts is a source that parses an exposition for each node.
type texts struct {
	parser *gpu.Parser
	of     func(node int) []byte // nil = the node does not answer
}

// Read implements gpu.Source.
func (s *texts) Read(_ context.Context, nodes []gpu.Node) ([]gpu.Reading, error) {
	out := make([]gpu.Reading, len(nodes))
	for i := range nodes {
		text := s.of(i)
		if text == nil {
			out[i].Err = errors.New("no answer")
			continue
		}
		out[i].Rows, _, out[i].Err = s.parser.Parse(text)
	}
	return out, nil
}

// gauged is a watch over nodes of as many GPUs, with a job on each.
func gauged(nodes, gpus int, start cluster.Instant, source gpu.Source) (*gpu.Watch, []gpu.Node, []gpu.Holder) {
	var index []int
	for i := range gpus {
		index = append(index, i)
	}
	var list []gpu.Node
	var holders []gpu.Holder
	for i := range nodes {
		name := fmt.Sprintf("gpu%05d", i)
		list = append(list, gpu.Node{Name: name})
		holders = append(holders, gpu.Holder{Key: cluster.JobKey(i + 1), ID: cluster.JobID{ID: int64(i + 1)}, Record: int64(i + 1), Start: start, Running: true, Typed: true,
			Type: cluster.JobType{User: "ann", Command: fmt.Sprint("train ", i%1000), GPUs: gpus}, Holds: []cluster.Holding{{Node: name, Model: "h100", GPUs: gpus, Index: index}}})
	}
	return &gpu.Watch{Source: source, Tracker: gpu.Tracker{MaxAge: 2 * cluster.Minute}, Book: gpu.Book{TellAfter: 30 * cluster.Minute, MaxGap: 90 * cluster.Second}}, list, holders
}

// works and idles set what a GPU does for 30 s. An idle one has a context that does nothing.
func works(d *gputest.Device, random *rand.Rand) {
	d.Util, d.Engine, d.Tensor, d.DRAM, d.Power, d.Used = 0.01+0.99*random.Float64(), 0.9, 0.4, 0.5, 250+400*random.Float64(), 60<<30
	d.Energy += 30 * d.Power
}

func idles(d *gputest.Device, random *rand.Rand) {
	d.Util, d.Engine, d.Tensor, d.DRAM, d.Power = 0, 0, 0, 0, 70+50*random.Float64()
	d.Energy += 30 * d.Power
}

// telemetry measures one look at 10,000 nodes of 8 GPUs, and how much idle time is seen in a day on which jobs work and
// idle by turns and exporters are silent now and then.
func telemetry() error {
	const nodes, each = 10_000, 5
	random := rand.New(rand.NewPCG(1, 1))
	var recorded [3][]byte
	n := gputest.Node{Version: gputest.V49, Host: "gpu.cluster.example.org", Devices: make([]gputest.Device, 8)}
	for k := range recorded {
		for i := range n.Devices {
			n.Devices[i].Index = i
			works(&n.Devices[i], random)
		}
		recorded[k] = n.Text()
	}
	look := 0
	start := cluster.Instant(1_800_000_000_000)
	w, list, holders := gauged(nodes, 8, start, &texts{gpu.NewParser(gpu.DefaultTable()), func(int) []byte { return recorded[look%3] }})
	if err := resetPeak(); err != nil {
		return err
	}
	var cpu time.Duration
	for ; look <= each; look++ {
		begin := used()
		at := start.Add(cluster.Span(look+1) * 30 * cluster.Second)
		r, _ := w.Look(context.Background(), list, holders, func() cluster.Instant { return at })
		if len(r.GPUs) != 8*nodes {
			return fmt.Errorf("%d GPUs are seen", len(r.GPUs))
		}
		w.Book.Settle()
		if look > 0 { // the first one makes room
			cpu += used() - begin
		}
	}
	fmt.Printf("One look at 10,000 nodes of 8 GPUs, %d KiB of text a node (%s)\n", len(recorded[0])>>10, machine())
	figure("telemetry_10k_nodes_cpu_ms", cpu.Seconds()*1e3/each, "ms")
	figure("telemetry_10k_nodes_mib", peakMiB(), "MiB")
	seen, wrong := idleDay(random)
	figure("gpu_hours_idle_seen_pct", 100*seen, "%")
	figure("gpu_hours_idle_wrong_pct", 100*wrong, "%")
	return nil
}

// idleDay gives the part of the idle GPU time of a day that is seen, and the part of the seen time in which GPUs worked.
func idleDay(random *rand.Rand) (seen, wrong float64) {
	const nodes, gpus, step = 8, 4, 30 * cluster.Second
	type node struct {
		gputest.Node
		idle          bool
		phase, silent int // looks until it changes, and for which it does not answer
	}
	all := make([]node, nodes)
	for i := range all {
		all[i].Version, all[i].Devices = gputest.Version(i%3), make([]gputest.Device, gpus)
	}
	start := cluster.Instant(1_800_000_000_000)
	w, list, holders := gauged(nodes, gpus, start, &texts{gpu.NewParser(gpu.DefaultTable()), func(i int) []byte {
		if all[i].silent > 0 {
			return nil
		}
		return all[i].Text()
	}})
	var truth, found, mistaken cluster.GPUTime
	for at := start.Add(step); at.Sub(start) <= cluster.Day; at = at.Add(step) {
		for i := range all {
			x := &all[i]
			if x.phase--; x.phase < 0 {
				x.phase, x.idle = 10+random.IntN(300), random.IntN(2) == 0
			}
			if x.silent--; x.silent < 0 && random.IntN(3000) == 0 {
				x.silent = 1 + random.IntN(10)
			}
			for k := range x.Devices {
				x.Devices[k].Index = k
				if x.idle {
					idles(&x.Devices[k], random)
				} else {
					works(&x.Devices[k], random)
				}
			}
		}
		w.Look(context.Background(), list, holders, func() cluster.Instant { return at })
		for _, h := range w.Book.Hours() {
			if all[h.Job-1].idle {
				found += h.Idle
			} else {
				mistaken += h.Idle
			}
		}
		w.Book.Settle()
		for i := range all {
			if all[i].idle {
				truth += gpus * cluster.GPUTime(step)
			}
		}
	}
	return float64(found) / float64(truth), float64(mistaken) / float64(found+mistaken)
}
