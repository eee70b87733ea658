package remark

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

const began = cluster.Instant(1_800_000_000_000)

// site is some nodes of GPUs with jobs on them, whose GPUs do what their scripts say.
type site struct {
	t       *testing.T
	now     cluster.Instant
	judge   Judge
	random  *rand.Rand
	noise   float64 // standard deviation of the logarithm of each value
	holders []gpu.Holder
	does    map[cluster.JobKey]func(k int, g *gpu.GPU) // k counts the job's GPUs
	steps   map[cluster.JobID]cluster.Progress
	news    []gpu.Remark
}

func newSite(t *testing.T, seed uint64) *site {
	return &site{t: t, now: began, judge: Judge{MaxGap: 90 * cluster.Second}, random: rand.New(rand.NewPCG(seed, 7)), noise: 0.05,
		does: map[cluster.JobKey]func(int, *gpu.GPU){}, steps: map[cluster.JobID]cluster.Progress{}}
}

// hold starts a job on nodes of gpus each.
func (s *site) hold(key int64, gpus int, does func(int, *gpu.GPU), nodes ...string) {
	h := gpu.Holder{Key: cluster.JobKey(key), ID: cluster.JobID{ID: key}, Record: key, User: "ann", Typed: true, Start: s.now, Running: true,
		Type: cluster.JobType{User: "ann", Command: "train #", GPUs: gpus * len(nodes)}}
	var index []int
	for i := range gpus {
		index = append(index, i)
	}
	for _, n := range nodes {
		h.Holds = append(h.Holds, cluster.Holding{Node: n, Model: "h100", Size: cluster.Whole(gpus), Index: index})
	}
	s.holders = append(s.holders, h)
	s.does[h.Key] = does
}

func (s *site) end(key int64) {
	s.holders = slices.DeleteFunc(s.holders, func(h gpu.Holder) bool { return h.Key == cluster.JobKey(key) })
}

// works is a GPU at a level of its usual work.
func works(level float64) func(int, *gpu.GPU) {
	return func(_ int, g *gpu.GPU) {
		v := &g.Values
		v[gpu.Util], v[gpu.Tensor], v[gpu.DRAM], v[gpu.PCIeRX], v[gpu.Power], v[gpu.Clock] = 0.97, 0.4*level, 0.5*level, 4e9*level, 100+500*level, 1.98e9
	}
}

// spins is a GPU that waits for another process.
func spins(_ int, g *gpu.GPU) {
	v := &g.Values
	v[gpu.Util], v[gpu.Tensor], v[gpu.DRAM], v[gpu.PCIeRX], v[gpu.Power], v[gpu.Clock] = 1, 0, 0.002, 1e6, 160, 1.98e9
}

func idles(_ int, g *gpu.GPU) {
	v := &g.Values
	v[gpu.Util], v[gpu.Tensor], v[gpu.DRAM], v[gpu.PCIeRX], v[gpu.Power], v[gpu.Clock] = 0, 0, 0, 0, 70, 3e8
	g.Idle = true
}

// passes makes looks 30 s apart.
func (s *site) passes(time cluster.Span) {
	for range time / (30 * cluster.Second) {
		s.now = s.now.Add(30 * cluster.Second)
		r := gpu.Report{At: s.now}
		for i := range s.holders {
			h, k := &s.holders[i], 0
			for _, hold := range h.Holds {
				for _, index := range hold.Index {
					g := gpu.GPU{Node: hold.Node, Row: gpu.Row{Index: index}, State: gpu.Fresh}
					for m := range g.Values {
						g.Values[m] = math.NaN()
					}
					s.does[h.Key](k, &g)
					for m := range g.Values {
						g.Values[m] *= math.Exp(s.noise * s.random.NormFloat64())
					}
					r.GPUs = append(r.GPUs, g)
					k++
				}
			}
		}
		slices.SortFunc(r.GPUs, func(a, b gpu.GPU) int {
			if a.Node != b.Node {
				return strings.Compare(a.Node, b.Node)
			}
			return a.Index - b.Index
		})
		s.judge.Look(&r, s.holders, s.steps)
		s.news = append(s.news, s.judge.News()...)
	}
}

// reports makes a job's steps go on at a rate, with a report at every look for some time.
func (s *site) reports(id int64, rate float64, time cluster.Span) {
	for range time / (30 * cluster.Second) {
		s.passes(30 * cluster.Second)
		p := s.steps[cluster.JobID{ID: id}]
		s.steps[cluster.JobID{ID: id}] = cluster.Progress{Job: cluster.JobID{ID: id}, Steps: p.Steps + 30*rate*math.Exp(s.noise*s.random.NormFloat64()), At: s.now}
	}
}

// want fails unless exactly these remarks stand, each given by its kind and a part of its text.
func (s *site) want(what string, parts ...string) {
	s.t.Helper()
	got := s.judge.Remarks()
	ok := len(got) == len(parts)
	for i := range min(len(got), len(parts)) {
		kind, text, _ := strings.Cut(parts[i], ": ")
		ok = ok && got[i].Kind == kind && strings.Contains(got[i].Text, text)
	}
	if !ok {
		s.t.Errorf("%s: remarks are %+v, want %q", what, got, parts)
	}
}

// settled is a site where ten jobs have shown what is usual for their type.
func settled(t *testing.T, seed uint64) *site {
	s := newSite(t, seed)
	for i := range int64(jobs.least) {
		s.hold(100+i, 2, works(1+0.02*float64(i%3)), fmt.Sprintf("s%02d", i))
	}
	s.passes(cluster.Hour)
	for i := range int64(jobs.least) {
		s.end(100 + i)
	}
	s.passes(cluster.Minute)
	return s
}

func TestDriftFromTheTypesBaseline(t *testing.T) {
	s := settled(t, 1)
	s.hold(7, 2, works(0.55), "a")
	s.passes(warmUp + (lasting-1)*block)
	s.want("before it lasts")
	s.passes(2 * block)
	s.want("after that", "drift: its tensor activity has been 2")
	s.passes(cluster.Hour)
	if len(s.news) != 1 || s.news[0].Job != 7 || !strings.Contains(s.news[0].Text, "(of 10 jobs of its type on h100)") {
		t.Errorf("news are %+v", s.news)
	}
	s.does[7] = works(1)
	s.passes(2 * block)
	s.want("as usual again")
	s.does[7] = works(0.5)
	s.passes(6 * block)
	s.want("again", "drift: ")
	if len(s.news) != 2 {
		t.Errorf("news are %+v", s.news)
	}
}

// A baseline stays within a type and a model.
func TestDriftOfOthersIsNone(t *testing.T) {
	for name, change := range map[string]func(h *gpu.Holder){
		"another model":   func(h *gpu.Holder) { h.Holds[0].Model = "a100" },
		"another command": func(h *gpu.Holder) { h.Type.Command = "serve" },
		"another user":    func(h *gpu.Holder) { h.Type.User = "bob" },
		"no type":         func(h *gpu.Holder) { h.Typed = false },
	} {
		s := settled(t, 2)
		s.hold(7, 2, works(0.5), "a")
		change(&s.holders[0])
		s.passes(cluster.Hour)
		s.want(name)
	}
}

func TestDriftFromTheJobsOwnPast(t *testing.T) {
	s := newSite(t, 3)
	s.hold(7, 2, works(1), "a")
	s.passes(3 * cluster.Hour)
	s.does[7] = works(0.6)
	s.passes(6 * block)
	s.want("slower than it was", "drift: (of the job itself)")
}

// The baseline follows a lasting change of a type, job by job, so that its remarks end.
func TestBaselineFollows(t *testing.T) {
	s := settled(t, 4)
	n := 0
	for ; n < 100; n++ {
		s.hold(7, 2, works(0.6), "a")
		s.passes(cluster.Hour)
		if len(s.judge.Remarks()) == 0 {
			break
		}
		s.end(7)
		s.passes(cluster.Minute)
	}
	if n != jobs.patience {
		t.Errorf("%d jobs were remarked, want %d", n, jobs.patience)
	}
}

func TestStepsCountBeforeCounters(t *testing.T) {
	s := newSite(t, 5)
	s.hold(7, 2, works(1), "a")
	s.reports(7, 10, 3*cluster.Hour)
	s.does[7] = works(0.5)
	s.reports(7, 10, cluster.Hour)
	s.want("the same steps/s with less activity")
	s.reports(7, 5, 6*block)
	s.want("fewer steps/s", "drift: its speed has been ")
	s.reports(7, 10, 2*block)
	s.want("as before")
	s.steps[cluster.JobID{ID: 7}] = cluster.Progress{At: s.now} // it resumed from a save
	s.reports(7, 10, cluster.Hour)
	s.want("after steps that went back")
}

func TestStall(t *testing.T) {
	for name, does := range map[string]func(int, *gpu.GPU){"spins": spins, "idles": idles} {
		s := newSite(t, 6)
		s.hold(7, 4, works(1), "a")
		s.passes(30 * cluster.Minute)
		s.does[7] = does
		s.passes(stallAfter)
		s.want(name + " for less than that")
		s.passes(cluster.Minute)
		s.want(name, "stall: has stood still since "+clock(began.Add(30*cluster.Minute+30*cluster.Second)))
		s.passes(cluster.Hour)
		if len(s.news) != 1 {
			t.Errorf("%s: news are %+v", name, s.news)
		}
		s.does[7] = works(1)
		s.passes(cluster.Minute)
		s.want(name + " no more")
	}
}

func TestNoStall(t *testing.T) {
	half := func(s *site) { s.passes(cluster.Hour) }
	for name, script := range map[string]func(s *site){
		"has never worked": func(s *site) { s.does[7] = idles; half(s) },
		"worked too short": func(s *site) { s.passes(2 * cluster.Minute); s.does[7] = idles; half(s) },
		"computes on the CPU and reports steps": func(s *site) {
			half(s)
			s.does[7] = idles
			s.reports(7, 1, cluster.Hour)
		},
		"one GPU works": func(s *site) {
			half(s)
			s.does[7] = func(k int, g *gpu.GPU) {
				spins(k, g)
				if k == 0 {
					works(1)(k, g)
				}
			}
			half(s)
		},
		"saves and goes on": func(s *site) {
			for range 10 {
				s.does[7] = works(1)
				s.passes(20 * cluster.Minute)
				s.does[7] = idles
				s.passes(stallAfter - cluster.Minute)
			}
		},
		"suspended": func(s *site) { half(s); s.does[7] = idles; s.holders[0].Running = false; half(s) },
	} {
		s := newSite(t, 8)
		s.hold(7, 4, works(1), "a")
		script(s)
		if slices.ContainsFunc(s.news, func(r gpu.Remark) bool { return r.Kind == Stall }) {
			t.Errorf("%s: %+v", name, s.news)
		}
	}
}

// A job that stood still and went on is known to do so.
func TestStallsThatEndAreExpected(t *testing.T) {
	s := newSite(t, 9)
	s.hold(7, 4, works(1), "a")
	for range 5 {
		s.does[7] = works(1)
		s.passes(20 * cluster.Minute)
		s.does[7] = idles
		s.passes(25 * cluster.Minute)
	}
	if len(s.news) != 1 {
		t.Errorf("%d remarks on the same habit: %+v", len(s.news), s.news)
	}
	s.passes(cluster.Hour)
	s.want("for longer than ever", "stall: ")
}

// unseen makes one GPU stale.
func unseen(does func(int, *gpu.GPU)) func(int, *gpu.GPU) {
	return func(k int, g *gpu.GPU) {
		if does(k, g); k == 5 {
			g.State = gpu.Stale
		}
	}
}

func slow(which func(k int) bool, change func(v *gpu.Values)) func(int, *gpu.GPU) {
	return func(k int, g *gpu.GPU) {
		works(1)(k, g)
		if which(k) {
			change(&g.Values)
		}
	}
}

func TestStraggler(t *testing.T) {
	throttled := func(v *gpu.Values) { v[gpu.Clock], v[gpu.Power] = 1.1e9, 300 }
	starved := func(v *gpu.Values) { v[gpu.DRAM] = 0.1 }
	third := func(k int) bool { return k == 3 }
	for name, c := range map[string]struct {
		gpus  int
		nodes []string
		does  func(int, *gpu.GPU)
		want  []string
	}{
		"throttled":        {8, []string{"a"}, slow(third, throttled), []string{"straggler: GPU 3 of a is far from the job's other 7 GPUs since"}},
		"starved":          {4, []string{"a"}, slow(third, starved), []string{"straggler: memory activity 10 %, median 50 %"}},
		"on a second node": {4, []string{"a", "b"}, slow(func(k int) bool { return k == 5 }, throttled), []string{"straggler: GPU 1 of b"}},
		"a node":           {4, []string{"a", "b", "c", "d"}, slow(func(k int) bool { return k/4 == 1 }, throttled), []string{"straggler: the 4 GPUs of b are far from the job's other 12 GPUs"}},
		"one of two nodes": {4, []string{"a", "b"}, slow(func(k int) bool { return k/4 == 1 }, throttled), nil},
		"structure in one counter": {8, []string{"a"}, func(k int, g *gpu.GPU) {
			works(1)(k, g)
			if g.Values[gpu.SM] = 0.5; k == 1 || k == 5 {
				g.Values[gpu.SM] = 0.1
			}
			if k == 3 {
				g.Values[gpu.DRAM] = 0.1
			}
		}, []string{"straggler: memory activity 10 %"}},
		"two nodes' ranks":  {4, []string{"a", "b", "c", "d"}, slow(func(k int) bool { return k == 1 || k == 9 }, throttled), nil},
		"half of the GPUs":  {8, []string{"a"}, slow(func(k int) bool { return k%2 == 0 }, starved), nil},
		"stages of a model": {8, []string{"a"}, func(k int, g *gpu.GPU) { works(0.3+0.1*float64(k))(k, g) }, nil},
		"three GPUs":        {3, []string{"a"}, slow(func(k int) bool { return k == 1 }, throttled), nil},
		"slightly slower":   {8, []string{"a"}, slow(third, func(v *gpu.Values) { v[gpu.Clock], v[gpu.Power] = 1.7e9, 520 }), nil},
		"all alike":         {8, []string{"a"}, works(1), nil},
		"one idles": {8, []string{"a"}, func(k int, g *gpu.GPU) {
			if works(1)(k, g); k == 3 {
				idles(k, g)
			}
		}, nil},
	} {
		s := newSite(t, 10)
		s.hold(7, c.gpus, c.does, c.nodes...)
		s.passes(lasting*block - cluster.Minute)
		s.want(name + ", before it lasts")
		s.passes(2 * block)
		s.want(name, c.want...)
		s.passes(cluster.Hour)
		if len(s.news) != len(c.want) {
			t.Errorf("%s: news are %+v", name, s.news)
		}
		s.does[7] = works(1)
		s.passes(2 * block)
		s.want(name + ", at its end")
	}
}

// Nothing is concluded from GPUs that are not fresh, that are shared, or that are not seen for a while. Remarks on them
// end, and are no news again afterwards.
func TestOnlyFreshUnsharedGPUsCount(t *testing.T) {
	for name, spoil := range map[string]func(g *gpu.GPU){
		"stale":   func(g *gpu.GPU) { g.State = gpu.Stale },
		"broken":  func(g *gpu.GPU) { g.State = gpu.Broken },
		"unknown": func(g *gpu.GPU) { g.State = gpu.Unknown },
		"shared":  func(g *gpu.GPU) { g.Shared = true },
		"MIG":     func(g *gpu.GPU) { g.Instance = "3" },
		"renamed": func(g *gpu.GPU) { g.Node += "x" },
	} {
		for kind, bad := range map[string]func(int, *gpu.GPU){
			Drift: works(0.5), Stall: spins, Straggler: slow(func(k int) bool { return k == 3 }, func(v *gpu.Values) { v[gpu.Clock] = 1e9 }),
		} {
			s := newSite(t, 11)
			s.hold(7, 8, works(1), "a")
			s.passes(3 * cluster.Hour)
			s.does[7] = bad
			s.passes(30 * cluster.Minute)
			if r := s.judge.Remarks(); len(r) != 1 || r[0].Kind != kind {
				t.Fatalf("%s: %+v", kind, r)
			}
			s.does[7] = func(k int, g *gpu.GPU) { bad(k, g); spoil(g) }
			s.passes(3 * cluster.Minute)
			s.want(name + " " + kind)
			s.passes(cluster.Hour)
			s.want(name + " " + kind)
			s.does[7] = bad
			s.passes(cluster.Hour)
			if r := s.judge.Remarks(); len(r) != 1 || len(s.news) != 1 {
				t.Errorf("%s %s: %+v, news %+v", name, kind, r, s.news)
			}
		}
	}
	// One GPU of the job is enough, where the job as a whole is judged.
	for kind, bad := range map[string]func(int, *gpu.GPU){Drift: works(0.5), Stall: spins} {
		s := newSite(t, 15)
		s.hold(7, 8, works(1), "a")
		s.passes(3 * cluster.Hour)
		s.does[7] = bad
		s.passes(30 * cluster.Minute)
		s.does[7] = unseen(bad)
		s.passes(3 * cluster.Minute)
		s.want("without one GPU, " + kind)
	}
	s := newSite(t, 12)
	s.hold(7, 8, slow(func(k int) bool { return k == 3 }, func(v *gpu.Values) { v[gpu.Clock] = 1e9 }), "a")
	s.hold(8, 8, works(1), "a") // by Slurm, both hold them
	s.passes(cluster.Hour)
	s.want("held twice")
}

// A contradicted claim stands on all jobs of its kind, and is news once.
func TestAccuse(t *testing.T) {
	s := newSite(t, 14)
	s.hold(7, 1, works(1), "a")
	s.hold(8, 1, works(1), "b")
	s.hold(9, 1, works(1), "c")
	of := map[cluster.JobKey]cluster.Kind{7: "t/k", 8: "t/k", 9: "t/other"}
	texts := map[cluster.Kind]string{"t/k": "claims too much"}
	for range 3 {
		s.passes(cluster.Minute)
		s.judge.Accuse(s.now, texts, of)
	}
	s.news = append(s.news, s.judge.News()...)
	s.want("both jobs", "misreport: claims too much", "misreport: claims too much")
	if len(s.news) != 1 || s.news[0].Job != 7 || s.news[0].User != "ann" || s.judge.Remarks()[0].Since != began.Add(cluster.Minute) {
		t.Errorf("news are %+v", s.news)
	}
	s.judge.Accuse(s.now, nil, of)
	s.want("no longer")
	s.judge.Accuse(s.now, texts, of)
	if n := len(s.judge.News()); n != 1 {
		t.Errorf("%d news of a new contradiction", n)
	}
}

// Noise within what is usual gives no remark, however it is drawn.
func TestNoiseIsNoRemark(t *testing.T) {
	for seed := range uint64(16) {
		s := settled(t, 100+seed)
		s.noise = 0.02 + 0.2*s.random.Float64()
		for i := range int64(4) {
			level := math.Exp(0.03 * s.random.NormFloat64())
			s.hold(i+1, 4, works(level), fmt.Sprintf("n%d", 2*i), fmt.Sprintf("n%d", 2*i+1))
			s.holders[i].Type.GPUs = 2 // of the type that has settled
		}
		s.passes(6 * cluster.Hour)
		if len(s.news) > 0 {
			t.Fatalf("seed %d, noise %.2f: %+v", seed, s.noise, s.news)
		}
	}
}

// A judge that recalls the baselines of another one makes the same remarks; the order of jobs does not matter.
func TestRecall(t *testing.T) {
	s := settled(t, 13)
	list := s.judge.Baselines()
	if len(list) != 3 || list[0].Jobs != jobs.least || list[0].Model != "h100" || list[0].Measure != "PCIe read rate" {
		t.Fatalf("baselines are %+v", list)
	}
	twin := newSite(t, 13)
	twin.now, twin.random = s.now, rand.New(rand.NewPCG(1, 1))
	s.random = rand.New(rand.NewPCG(1, 1))
	twin.judge.Recall(append(slices.Clone(list), Baseline{Measure: "of another version"}))
	for _, x := range []*site{s, twin} {
		x.hold(7, 2, works(0.5), "a")
		x.hold(8, 2, works(1), "b")
	}
	s.passes(cluster.Hour)
	twin.passes(cluster.Hour)
	if d := cmp.Diff(s.judge.Remarks(), twin.judge.Remarks()); d != "" || len(s.judge.Remarks()) != 1 {
		t.Errorf("%+v\n%s", s.judge.Remarks(), d)
	}
	if d := cmp.Diff(s.judge.Baselines(), twin.judge.Baselines()); d != "" {
		t.Error(d)
	}
}
