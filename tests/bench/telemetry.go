package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
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
			Type: cluster.JobType{User: "ann", Command: fmt.Sprint("train ", i%1000), GPUs: gpus}, Holds: []cluster.Holding{{Node: name, Model: "h100", Size: cluster.Whole(gpus), Index: index}}})
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

// telemetry measures one look at many nodes, and how much idle time is seen in a day on which jobs work and
// idle by turns and exporters are silent now and then.
func telemetry() error {
	if err := looks(); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen, wrong := idleDay(random)
	figure("gpu_hours_idle_seen_pct", 100*seen, "%")
	figure("gpu_hours_idle_wrong_pct", 100*wrong, "%")
	false_, found := remarked(random)
	figure("job_days_remarked_wrongly_pct", 100*false_, "%")
	figure("faults_remarked_pct", 100*found, "%")
	return nil
}

// looks measures one look at 10,000 nodes of 8 GPUs.
func looks() error {
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
	debug.FreeOSMemory()
	if err := resetPeak(); err != nil {
		return err
	}
	judge := remark.Judge{MaxGap: 90 * cluster.Second}
	first := timing{}
	for ; look <= each; look++ {
		if look == 1 { // the first one allocates buffers
			first = meter()
		}
		at := start.Add(cluster.Span(look+1) * 30 * cluster.Second)
		r, _ := w.Look(context.Background(), list, holders, func() cluster.Instant { return at })
		if len(r.GPUs) != 8*nodes {
			return fmt.Errorf("%d GPUs are seen", len(r.GPUs))
		}
		w.Book.Settle()
		judge.Look(&r, holders, nil)
	}
	fmt.Printf("One look at 10,000 nodes of 8 GPUs, %d KiB of text a node (%s)\n", len(recorded[0])>>10, machine())
	timed("telemetry_10k_nodes_ms", meter().over(first, each))
	figure("telemetry_10k_nodes_mib", peakMiB(), "MiB")
	return nil
}

// remarked gives the part of healthy job-days with a remark, and the part of faults that are remarked within an hour. Ten
// jobs settle the baseline of a type first. Jobs of a type differ, their GPUs differ a little, and all activity has noise,
// from look to look and in waves; the sizes are drawn anew for each job.
func remarked(random *rand.Rand) (wrong, found float64) {
	const jobs, gpus, step, lead = 120, 8, 30 * cluster.Second, 10
	var index []int
	for i := range gpus {
		index = append(index, i)
	}
	counted := map[bool]float64{}
	for n := range jobs {
		start := cluster.Instant(1_800_000_000_000)
		judge := remark.Judge{MaxGap: 90 * cluster.Second}
		// run has a job of the type run for some time. After begin, a fault may change its GPUs.
		noise, wave, apart, between := 0.02+0.2*random.Float64(), 0.1*random.Float64(), 0.05*random.Float64(), 0.1*random.Float64()
		key := cluster.JobKey(0)
		run := func(time, begin cluster.Span, fault func(k int, v *gpu.Values)) (remarks int) {
			key++
			h := gpu.Holder{Key: key, ID: cluster.JobID{ID: int64(key)}, Start: start, Running: true, Typed: true, Type: cluster.JobType{User: "ann", Command: "train", GPUs: gpus},
				Holds: []cluster.Holding{{Node: "a", Model: "h100", Size: cluster.Whole(gpus), Index: index}}}
			r := gpu.Report{GPUs: make([]gpu.GPU, gpus)}
			level, phase := math.Exp(between*random.NormFloat64()), random.Float64()
			var own [gpus]float64
			for k := range own {
				own[k] = math.Exp(apart * random.NormFloat64())
			}
			for at := cluster.Span(0); at < time; at += step {
				start = start.Add(step)
				r.At = start
				now := level * math.Exp(wave*math.Sin(2*math.Pi*(phase+at.Duration().Hours()/3)))
				for k := range r.GPUs {
					g := &r.GPUs[k]
					*g = gpu.GPU{Node: "a", Row: gpu.Row{Index: k}, State: gpu.Fresh}
					x := now * own[k] * math.Exp(noise*random.NormFloat64())
					g.Values[gpu.Util], g.Values[gpu.SM], g.Values[gpu.Tensor], g.Values[gpu.DRAM] = 0.97, 0.5*x, 0.3*x, 0.4*x*math.Exp(noise*random.NormFloat64())
					g.Values[gpu.PCIeRX], g.Values[gpu.Power], g.Values[gpu.Clock] = 3e9*x*math.Exp(noise*random.NormFloat64()), 150+350*x, 1.9e9
					if at >= begin && fault != nil {
						fault(k, &g.Values)
					}
				}
				judge.Look(&r, []gpu.Holder{h}, nil)
				remarks += len(judge.News())
			}
			judge.Look(&gpu.Report{At: start}, nil, nil)
			return remarks
		}
		for range lead {
			run(2*cluster.Hour, 0, nil)
		}
		if run(cluster.Day, 0, nil) > 0 {
			counted[false]++
		}
		fault := [...]func(k int, v *gpu.Values){
			func(_ int, v *gpu.Values) {
				v[gpu.Tensor], v[gpu.DRAM], v[gpu.PCIeRX], v[gpu.SM] = v[gpu.Tensor]/2, v[gpu.DRAM]/2, v[gpu.PCIeRX]/2, v[gpu.SM]/2
			},
			func(_ int, v *gpu.Values) { v[gpu.Tensor], v[gpu.DRAM], v[gpu.PCIeRX] = 0, 0.001, 1e6 },
			func(k int, v *gpu.Values) {
				if k == 3 {
					v[gpu.Clock] = 1.1e9
				}
			},
		}[n%3]
		if run(2*cluster.Hour, cluster.Hour, fault) > 0 {
			counted[true]++
		}
	}
	return counted[false] / jobs, counted[true] / jobs
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
