package gpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// fleet is some nodes of 4 GPUs with jobs on them, and a watch over them.
type fleet struct {
	t       testing.TB
	memory  memory
	nodes   []Node
	holders []Holder
	watch   Watch
	now     cluster.Instant
	report  Report
}

func newFleet(t testing.TB, names ...string) *fleet { return fleetOf(t, nil, names...) }

// sources makes, by name, the sources that must tell the same: a table in memory, and fake exporters behind HTTP.
var sources = map[string]func(testing.TB, *memory) Source{
	"memory": func(_ testing.TB, m *memory) Source { return m },
	"exporters": func(t testing.TB, m *memory) Source {
		s := httptest.NewServer(m)
		t.Cleanup(s.Close)
		source, err := NewExporters(s.URL+"/{node}/metrics", DefaultTable(), Web{}, ExporterLimits)
		if err != nil {
			t.Fatal(err)
		}
		return source
	},
}

func fleetOf(t testing.TB, source func(testing.TB, *memory) Source, names ...string) *fleet {
	if source == nil {
		source = sources["memory"]
	}
	f, gpus := &fleet{t: t, now: began}, map[string]int{}
	for _, name := range names {
		gpus[name], f.nodes = 4, append(f.nodes, Node{Name: name})
	}
	f.memory.Fleet = gputest.NewFleet(gputest.V49, gpus)
	f.watch = Watch{Source: source(t, &f.memory), Tracker: Tracker{MaxAge: 2 * cluster.Minute}, Book: Book{TellAfter: 30 * cluster.Minute, MaxGap: 90 * cluster.Second}}
	f.looks(2)
	f.watch.Book.Settle()
	return f
}

// hold gives a job GPUs of a node from now on.
func (f *fleet) hold(key int64, model, node string, index ...int) {
	f.holders = append(f.holders, Holder{Key: cluster.JobKey(key), ID: cluster.JobID{ID: key}, Record: key, User: "ann", Type: cluster.JobType{User: "ann", Command: "train", GPUs: len(index)}, Typed: true,
		Start: f.now, Running: true, Holds: []cluster.Holding{{Node: node, Model: model, Size: cluster.Whole(len(index)), Index: index}}})
}

func (f *fleet) end(key int64, outcome string) {
	f.holders = slices.DeleteFunc(f.holders, func(h Holder) bool { return h.Key == cluster.JobKey(key) })
	f.watch.Book.End(f.now, []Ended{{cluster.JobKey(key), outcome}})
}

func (f *fleet) device(node string, i int) *gputest.Device { return &f.memory.Nodes[node].Devices[i] }

// looks makes looks 30 s apart.
func (f *fleet) looks(n int) {
	f.t.Helper()
	for range n {
		f.now = f.now.Add(30 * cluster.Second)
		f.memory.Step(30)
		r, ok := f.watch.Look(f.t.Context(), f.nodes, f.holders, func() cluster.Instant { return f.now })
		if !ok {
			f.t.Fatal("no look")
		}
		f.report = r
	}
}

func TestJobsUse(t *testing.T) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) { testJobsUse(t, fleetOf(t, source, "a", "b")) })
	}
}

func testJobsUse(t *testing.T, f *fleet) {
	f.hold(7, "h100", "a", 1, 2)
	busy(f.device("a", 1))
	busy(f.device("a", 2))
	f.device("a", 2).Tensor = 0.2
	f.device("a", 2).Used = 30 << 30
	f.looks(4)
	if len(f.report.Uses) != 1 {
		t.Fatalf("uses are %+v", f.report.Uses)
	}
	u := f.report.Uses[0]
	if u.Job.ID != 7 || u.Model != "h100" || u.GPUs != 2 || u.Tensor.Count != 4 || !near(u.Tensor.Value, 0.3) || !near(u.Util.Value, 0.97) || u.SM.Count != 0 || !near(u.Power.Value, 600) ||
		u.Memory != 30<<30 || u.Idle != 0 || u.At != f.now || u.From != began.Add(90*cluster.Second) {
		t.Errorf("use is %+v", u)
	}
	h := f.watch.Book.Hours()
	if len(h) != 1 || h[0].Held != 4*2*30_000 || h[0].Seen != h[0].Held || h[0].Idle != 0 || !near(h[0].Tensor.Sum/float64(h[0].Tensor.Time), 0.3) {
		t.Errorf("hours are %+v", h)
	}
	if m := f.report.Memory; len(m) != 1 || m[0].Bytes != 30<<30 || m[0].Type.Command != "train" {
		t.Errorf("memory is %+v", m)
	}
	if s := f.report.Sizes; len(s) != 1 || s[0] != (cluster.GPUMemory{Model: "h100", Bytes: 80 << 30}) {
		t.Errorf("sizes are %+v", s)
	}
}

// A job has no means while one of its GPUs is not fresh, or is shared. The idle time of its other GPUs still counts.
func TestOnlyFreshUnsharedGPUsSpeak(t *testing.T) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) { testOnlyFreshUnsharedGPUsSpeak(t, source) })
	}
}

func testOnlyFreshUnsharedGPUsSpeak(t *testing.T, source func(testing.TB, *memory) Source) {
	for name, spoil := range map[string]func(f *fleet){
		"silent":     func(f *fleet) { f.memory.Silent["b"] = errors.New("no answer") },
		"gone":       func(f *fleet) { f.memory.Nodes["b"].Devices = f.memory.Nodes["b"].Devices[:1] },
		"shared":     func(f *fleet) { f.device("b", 3).Jobs = []string{"7", "8"} },
		"held twice": func(f *fleet) { f.hold(8, "h100", "b", 3) },
		"broken":     func(f *fleet) { d := f.device("b", 3); d.Util, d.Engine = 1, 0 },
		"no index":   func(f *fleet) { f.holders[0].Holds[1].Index = nil },
	} {
		f := fleetOf(t, source, "a", "b")
		f.hold(7, "h100", "a", 0, 1)
		f.holders[0].Holds = append(f.holders[0].Holds, cluster.Holding{Node: "b", Model: "h100", Size: cluster.Whole(1), Index: []int{3}})
		f.looks(1)
		if n := f.report.Uses[0].Util.Count; n != 1 {
			t.Fatalf("%d samples before", n)
		}
		spoil(f)
		f.looks(4)
		u := f.report.Uses[0]
		if u.Job.ID != 7 || u.Util.Count != 1 || u.Idle != 2 {
			t.Errorf("%s: use is %+v", name, u)
		}
		if h := f.watch.Book.Hours()[0]; h.Seen >= h.Held || h.Idle > h.Seen {
			t.Errorf("%s: hour is %+v", name, h)
		}
	}
}

func TestHoldsIdleIsToldOnce(t *testing.T) {
	f := newFleet(t, "a")
	f.hold(7, "h100", "a", 0, 1, 2, 3)
	busy(f.device("a", 0))
	f.looks(59)
	if r := f.watch.Book.Remarks(); len(r) != 0 {
		t.Fatalf("told early: %+v", r)
	}
	f.looks(1)
	r := f.watch.Book.Remarks()
	if len(r) != 1 || r[0].Kind != HoldsIdle || r[0].Job != 7 || r[0].User != "ann" || r[0].Text != "has held 3 idle GPUs for 30 min" {
		t.Fatalf("remarks are %+v", r)
	}
	f.watch.Book.Settle()
	f.memory.Silent["a"] = errors.New("down")
	f.looks(2)
	delete(f.memory.Silent, "a")
	f.looks(60)
	if r := f.watch.Book.Remarks(); len(r) != 0 {
		t.Errorf("told again: %+v", r)
	}
	busy(f.device("a", 1))
	f.looks(1)
	rest(f.device("a", 1))
	f.looks(62)
	if r := f.watch.Book.Remarks(); len(r) != 1 {
		t.Errorf("a new spell of idleness: %+v", r)
	}
}

// Where the exporter numbers GPUs in another order than Slurm, nothing of the node counts.
func TestOtherOrderOfGPUs(t *testing.T) {
	f := newFleet(t, "a")
	f.hold(7, "h100", "a", 0)
	f.hold(8, "h100", "a", 1)
	f.device("a", 0).Jobs, f.device("a", 1).Jobs = []string{"7"}, []string{"8"}
	f.looks(1)
	if n := f.report.Nodes[0]; n.State != Fresh {
		t.Fatalf("the node is %+v", n)
	}
	f.device("a", 0).Jobs = []string{"9"} // a job that is over: the file is late
	f.looks(1)
	if n := f.report.Nodes[0]; n.State != Fresh {
		t.Fatalf("the node is %+v", n)
	}
	samples := f.report.Uses[0].Util.Count
	f.device("a", 0).Jobs, f.device("a", 1).Jobs = []string{"8"}, []string{"7"}
	f.looks(2)
	if n := f.report.Nodes[0]; n.State != Broken || !strings.Contains(n.Why, "GPU 0 has job 8, Slurm says job 7") {
		t.Errorf("the node is %+v", n)
	}
	if u := f.report.Uses[0]; u.Util.Count != samples || u.Idle != 0 {
		t.Errorf("use is %+v", u)
	}
}

func TestRequeueBeginsAnew(t *testing.T) {
	f := newFleet(t, "a")
	f.hold(7, "h100", "a", 0)
	f.looks(5)
	f.holders[0].Running = false
	f.looks(3)
	f.holders[0].Start, f.holders[0].Running = f.now, true
	f.looks(2)
	if u := f.report.Uses; len(u) != 1 || u[0].Util.Count != 2 || u[0].Start != f.holders[0].Start || u[0].IdleSince != f.holders[0].Start {
		t.Errorf("uses are %+v", u)
	}
	if h := f.watch.Book.Hours()[0]; h.Held != 7*30_000 {
		t.Errorf("held %d, want 7 looks of 30 s", h.Held)
	}
}

// The memory that a type of job used stays known after its jobs. So does a failure with the memory full, unless a job
// completed.
func TestMemoryOfTypes(t *testing.T) {
	run := func(f *fleet, key int64, gib float64, outcome string) cluster.MemoryUse {
		f.hold(key, "h100", "a", 0)
		f.device("a", 0).Used = gib * (1 << 30)
		f.looks(2)
		f.end(key, outcome)
		f.device("a", 0).Used = 0
		f.looks(1)
		return f.report.Memory[0]
	}
	f := newFleet(t, "a")
	for i, c := range []struct {
		gib             float64
		outcome         string
		bytes           float64
		full, completed bool
	}{
		{10, "FAILED", 10, false, false},
		{79, "OUT_OF_MEMORY", 79, false, false}, // of the host
		{79, "CANCELLED", 79, false, false},
		{79, "FAILED", 79, true, false},
		{30, "COMPLETED", 79, false, true},
		{79, "FAILED", 79, false, true},
	} {
		if m := run(f, int64(i+1), c.gib, c.outcome); float64(m.Bytes) != c.bytes*(1<<30) || m.Full != c.full || m.Completed != c.completed {
			t.Errorf("%d: after %s with %g GiB: %+v", i, c.outcome, c.gib, m)
		}
	}
	g := newFleet(t, "a")
	g.watch.Book.Recall(f.report.Memory, f.report.Sizes)
	g.looks(1)
	if len(g.report.Memory) != 1 || g.report.Memory[0] != f.report.Memory[0] || g.report.Sizes[0] != f.report.Sizes[0] {
		t.Errorf("recalled %+v, %+v", g.report.Memory, g.report.Sizes)
	}
}

// day is a scripted day of 4 nodes of 4 GPUs: jobs that work, idle from the start, idle after a while, or idle by turns;
// exporters that are silent for some minutes, that repeat themselves, or whose counters break. It gives the part of the
// idle GPU time that was seen, and the part of the seen time in which GPUs were not idle.
func day(t *testing.T, seed uint64, faults bool) (seen, wrong float64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("n%02d", i))
	}
	f := newFleet(t, names...)
	for i, name := range names {
		f.memory.Nodes[name].Version = gputest.Version(i % 3)
		if i == 0 && faults {
			f.memory.Nodes[name].Version = gputest.V3 // its counters will break
		}
		f.hold(int64(i+1), "h100", name, 0, 1, 2, 3)
	}
	phase := make([]int, len(names)) // looks until the next change
	idle := make([]bool, len(names))
	until := make([]int, len(names)) // of a silence
	var truth, found, false_ cluster.GPUTime
	const look = 30_000 // GPU-milliseconds
	for range 24 * 60 * 2 {
		for i, name := range names {
			if phase[i]--; phase[i] < 0 {
				phase[i], idle[i] = 10+random.IntN(300), random.IntN(2) == 0
			}
			for k := range 4 {
				d := f.device(name, k)
				if idle[i] {
					rest(d)
					d.Power, d.Used = 70+random.Float64()*50, 40<<30 // a context without work
				} else {
					busy(d)
					d.Util, d.Power = 0.01+random.Float64()*0.99, 250+random.Float64()*400
					if i == 0 && faults && k == 0 {
						d.Util, d.Engine, d.Tensor, d.DRAM = 0.5, 0, 0, 0
					}
				}
			}
			if faults && until[i] == 0 && random.IntN(10_000) == 0 {
				until[i] = 1 + random.IntN(20)
				f.memory.Silent[name] = errors.New("no answer")
			} else if until[i] > 0 {
				if until[i]--; until[i] == 0 {
					delete(f.memory.Silent, name)
				}
			}
		}
		f.watch.Book.Settle()
		f.looks(1)
		now := map[cluster.JobKey]cluster.GPUTime{}
		for _, h := range f.watch.Book.Hours() {
			now[h.Job] += h.Idle
		}
		for i := range names {
			if i == 0 && faults && idle[i] {
				continue // one of its GPUs is broken from its first work on, and shows nothing
			}
			if idle[i] {
				truth += 4 * look
			}
			got := now[cluster.JobKey(i+1)]
			if idle[i] {
				found += got
			} else {
				false_ += got
			}
		}
	}
	return float64(found) / float64(truth), float64(false_) / float64(found+false_)
}

func TestIdleTimeOfADayIsSeen(t *testing.T) {
	for seed := range uint64(1) {
		seen, wrong := day(t, seed, false)
		if seen < 0.99 || wrong > 0.01 {
			t.Errorf("without faults %.2f %% of the idle time is seen, and %.2f %% of that is wrong", 100*seen, 100*wrong)
		}
		faulty, wrong := day(t, seed, true)
		if faulty < 0.97 || wrong > 0.01 || math.IsNaN(faulty) {
			t.Errorf("with faults %.2f %% of the idle time is seen, and %.2f %% of that is wrong", 100*faulty, 100*wrong)
		}
		t.Logf("seen %.3f %%, with faults %.3f %%", 100*seen, 100*faulty)
	}
}
