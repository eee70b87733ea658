package slownodes

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// site is a site of nodes n1 to n6 with eight GPUs each, whose rounds are decided by Next alone.
type site struct {
	t      *testing.T
	snap   *cluster.Snapshot
	rates  map[cluster.JobKey]float64
	steps  map[cluster.JobKey]float64
	events []string
}

func newSite(t *testing.T) *site {
	s := roundtest.Snapshot()
	s.Nodes, s.Settings.SlowNodePercent = nil, 85
	for i := range 6 {
		s.Nodes = append(s.Nodes, cluster.Node{Name: fmt.Sprintf("n%d", i+1), GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}})
	}
	return &site{t: t, snap: s, rates: map[cluster.JobKey]float64{}, steps: map[cluster.JobKey]float64{}}
}

// start starts a job of a user on a node at a rate of steps per second.
func (w *site) start(user, node string, rate float64) *cluster.Case {
	key := w.snap.NextKey
	w.snap.NextKey++
	c := roundtest.On(roundtest.Job(int64(key), "bio", 2, cluster.Running), node, "v100", 2)
	c.Job.User, c.Record.User, c.Job.Name, c.Job.Start = user, user, "train", w.snap.Now
	c.Record.Key, c.Record.ID = key, c.Job.ID
	w.snap.Cases, w.rates[key] = append(w.snap.Cases, c), rate
	return &w.snap.Cases[len(w.snap.Cases)-1]
}

// run lets the jobs run and report for some time.
func (w *site) run(span cluster.Span) {
	for end := w.snap.Now.Add(span); w.snap.Now < end; {
		w.snap.Now = w.snap.Now.Add(every)
		w.snap.Progress = nil
		for i := range w.snap.Cases {
			c := &w.snap.Cases[i]
			key := c.Record.Key
			w.steps[key] += w.rates[key] * every.Duration().Seconds()
			w.snap.Progress = append(w.snap.Progress, cluster.Progress{Job: c.Job.ID, Steps: w.steps[key], At: w.snap.Now})
		}
		w.next()
	}
}

// next makes a round, whose input must stay as it was.
func (w *site) next() {
	before, err := json.Marshal(w.snap.NodeSpeeds)
	if err != nil {
		w.t.Fatal(err)
	}
	facts, _ := roundtest.Facts(w.snap)
	speeds, events := Next(facts)
	if after, err := json.Marshal(w.snap.NodeSpeeds); err != nil || string(after) != string(before) {
		w.t.Fatalf("the round changed its input: %s, was %s (%v)", after, before, err)
	}
	w.snap.NodeSpeeds, w.snap.Ledger.At = speeds, w.snap.Now
	for _, e := range events {
		if e.Kind != cluster.EventSlowNode && e.Kind != cluster.EventSlowGPU {
			w.t.Errorf("the event is %q", e.Kind)
		}
		w.events = append(w.events, e.Text)
	}
}

// end ends all jobs.
func (w *site) end() {
	w.snap.Cases, w.snap.Progress = nil, nil
	w.snap.Now = w.snap.Now.Add(every)
	w.next()
}

// usual starts jobs of users at one step a second on nodes.
func (w *site) usual(users string, nodes ...string) {
	for user := range strings.FieldsSeq(users) {
		for _, node := range nodes {
			w.start(user, node, 1)
		}
	}
}

func (w *site) slow() string {
	var out []string
	for _, n := range w.snap.NodeSpeeds.Slow {
		out = append(out, fmt.Sprintf("%s %d %%, %d jobs of %d users", n.Node, n.Percent, n.Jobs, n.Users))
	}
	for _, g := range w.snap.NodeSpeeds.GPUs {
		out = append(out, fmt.Sprintf("%s.%d %d %%, %d jobs of %d users", g.Node, g.Index, g.Percent, g.Jobs, g.Users))
	}
	return strings.Join(out, "; ")
}

func TestSlowNodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(w *site)
		want  string
	}{
		{"nobody runs", func(*site) {}, ""},
		{"all are alike", func(w *site) { w.usual("alice bob", "n1", "n1", "n2", "n3", "n4") }, ""},
		{"jobs of two users are slow on n1", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			w.start("alice", "n1", 0.7)
			w.start("bob", "n1", 0.5)
			w.start("bob", "n1", 0.5)
		}, "n1 70 %, 3 jobs of 2 users"},
		{"one user alone", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			for range 8 {
				w.start("alice", "n1", 0.1)
			}
		}, ""},
		{"one user against another one", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			for range 8 {
				w.start("alice", "n1", 0.001)
			}
			w.start("bob", "n1", 1)
		}, ""},
		{"one user who makes its jobs elsewhere look fast", func(w *site) {
			for _, node := range []string{"n2", "n3", "n4"} {
				w.start("alice", node, 1000)
			}
			w.usual("alice", "n1", "n1", "n1")
			w.usual("bob", "n1", "n2", "n3", "n4")
		}, ""},
		{"two of three users", func(w *site) {
			w.usual("alice bob carol", "n2", "n3", "n4")
			w.start("alice", "n1", 0.6)
			w.start("bob", "n1", 0.7)
			w.start("carol", "n1", 1)
		}, "n1 70 %, 3 jobs of 3 users"},
		{"two jobs are too few", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			w.start("alice", "n1", 0.6)
			w.start("bob", "n1", 0.6)
		}, ""},
		{"one other node is not enough", func(w *site) {
			w.usual("alice bob", "n2", "n2", "n2")
			w.start("alice", "n1", 0.6)
			w.start("bob", "n1", 0.6)
			w.start("bob", "n1", 0.6)
		}, ""},
		{"less than the bound", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			w.start("alice", "n1", 0.9)
			w.start("bob", "n1", 0.9)
			w.start("bob", "n1", 0.9)
		}, ""},
		{"within the noise of the types", func(w *site) {
			for _, user := range []string{"alice", "bob"} {
				for i, node := range []string{"n2", "n3", "n4", "n5"} {
					w.start(user, node, []float64{0.6, 0.9, 1.2, 1.8}[i])
				}
				w.start(user, "n1", 0.6)
				w.start(user, "n1", 0.6)
			}
		}, ""},
		{"two slow nodes of six", func(w *site) {
			w.usual("alice bob", "n3", "n4", "n5", "n6", "n3", "n4")
			for _, user := range []string{"alice", "bob"} {
				for _, node := range []string{"n1", "n2"} {
					w.start(user, node, 0.5)
					w.start(user, node, 0.5)
				}
			}
		}, "n1 50 %, 4 jobs of 2 users; n2 50 %, 4 jobs of 2 users"},
		{"types are not mixed", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			for _, user := range []string{"alice", "bob"} {
				w.start(user, "n1", 0.5).Job.Name = "another"
				w.start(user, "n1", 0.5).Job.Holds[0].Size = cluster.Whole(1)
			}
		}, ""},
		{"jobs on several nodes, on parts of GPUs and in turns do not count", func(w *site) {
			w.usual("alice bob", "n2", "n3", "n4")
			for _, user := range []string{"alice", "bob"} {
				several := w.start(user, "n1", 0.5)
				several.Job.Holds = append(several.Job.Holds, cluster.Holding{Node: "n2", Model: "v100", Size: cluster.Whole(2)})
				w.start(user, "n1", 0.5).Job.Holds[0].Size.Part = cluster.WholeGPU / 2
				w.start(user, "n1", 0.5).Record.Slice = &cluster.Slice{}
				w.start(user, "n1", 0.5).Job.Paused = true
			}
		}, ""},
		{"it is off", func(w *site) {
			w.snap.Settings.SlowNodePercent = 0
			w.usual("alice bob", "n2", "n3", "n4")
			w.start("alice", "n1", 0.5)
			w.start("bob", "n1", 0.5)
			w.start("bob", "n1", 0.5)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSite(t)
			c.begin(w)
			w.run(cluster.Hour)
			if got := w.slow(); got != c.want {
				t.Errorf("slow: %q, want %q", got, c.want)
			}
			if c.want == "" && len(w.events) > 0 {
				t.Errorf("events: %q", w.events)
			}
		})
	}
}

// Chance makes hardly any node slow, however much the speeds of a type vary; a node that is slow is found where they vary little.
func TestChanceMakesNoNodeSlow(t *testing.T) {
	const nodes, each, users, sites = 100, 5, 30, 400
	for spread, least := range map[float64]float64{0.05: 0.8, 0.2: 0, 0.4: 0} {
		r := rand.New(rand.NewPCG(1, 2)) // the same whichever spread comes first
		wrong, found := 0, 0
		for range sites {
			var runs []cluster.NodeRun
			for i := range nodes * each {
				n, rate := r.IntN(nodes), math.Exp(spread*r.NormFloat64())
				if n == 0 {
					rate *= 0.6
				}
				user := fmt.Sprintf("u%d", r.IntN(users))
				runs = append(runs, cluster.NodeRun{Job: cluster.JobKey(i + 1), Node: fmt.Sprint(n), Model: "v100", User: user, Kind: cluster.Kind(fmt.Sprintf("bio/%s.%d", user, r.IntN(2))),
					Gang: 1, Did: rate * 3600, Ran: cluster.Hour})
			}
			slow, _, _ := judge(compare(runs), &cluster.NodeSpeeds{}, 0.85, roundtest.Now)
			for _, n := range slow {
				if n.Node == "0" {
					found++
				} else {
					wrong++
				}
			}
		}
		if wrong > sites*nodes/1000 || float64(found) < least*sites {
			t.Errorf("spread %v: %d of %d sound nodes are slow, and the slow one of %d sites in %d", spread, wrong, sites*(nodes-1), sites, found)
		}
	}
}

// slowSite is a site with a slow node n1, by ended jobs.
func slowSite(t *testing.T) *site {
	w := newSite(t)
	w.usual("alice bob", "n2", "n3", "n4")
	for range 4 {
		w.start("alice", "n1", 0.5)
		w.start("bob", "n1", 0.5)
	}
	w.run(cluster.Hour)
	w.end()
	const told = "n1 is slow: 8 jobs of 2 users ran on the v100 GPUs of n1 at 50 % of their usual speed on other nodes. " +
		`Gangs avoid it where others are free. If it is at fault, drain it: scontrol update nodename=n1 state=drain reason="slow: 50 % of the usual speed"`
	if len(w.events) != 1 || w.events[0] != told {
		t.Fatalf("events: %q, want once %q", w.events, told)
	}
	return w
}

func TestItIsSlowUntilJobsShowOtherwise(t *testing.T) {
	w := slowSite(t)
	for rate, want := range map[float64]string{0.9: "n1", 1: ""} {
		x := *w
		snap := *w.snap
		x.snap, x.events = &snap, nil
		for range 3 { // the newest attempts count
			x.start("alice", "n1", rate)
			x.start("bob", "n1", rate)
			x.run(cluster.Hour)
			x.end()
		}
		if got, _, _ := strings.Cut(x.slow(), " "); got != want {
			t.Errorf("at %v of the usual speed the slow node is %q, want %q", rate, got, want)
		}
		if want == "" && !slices.Equal(x.events, []string{"n1 is no longer slow: 8 jobs of 2 users run there as fast as on other nodes"}) {
			t.Errorf("events: %q", x.events)
		}
	}
}

func TestItIsSlowNoLongerWithoutJobs(t *testing.T) {
	w := slowSite(t)
	w.snap.Now = w.snap.Now.Add(oldest)
	if w.next(); w.slow() == "" {
		t.Fatal("the jobs are forgotten early")
	}
	w.snap.Now = w.snap.Now.Add(cluster.Hour)
	w.next()
	if w.slow() != "" || w.snap.NodeSpeeds.Runs != nil || len(w.events) != 2 || w.events[1] != "n1 is no longer slow: too few jobs that ran there can be compared now" {
		t.Errorf("slow: %q, %d attempts, events: %q", w.slow(), len(w.snap.NodeSpeeds.Runs), w.events)
	}
}

func TestADrainedNodeBeginsAnew(t *testing.T) {
	for name, lose := range map[string]func(s *cluster.Snapshot){
		"drained": func(s *cluster.Snapshot) { s.Nodes[0].Bad = "drained" },
		"gone":    func(s *cluster.Snapshot) { s.Nodes = s.Nodes[1:] },
	} {
		w := slowSite(t)
		w.snap.Nodes = slices.Clone(w.snap.Nodes)
		lose(w.snap)
		w.end()
		if w.slow() != "" || len(w.events) != 2 || slices.ContainsFunc(w.snap.NodeSpeeds.Runs, func(r cluster.NodeRun) bool { return r.Node == "n1" }) {
			t.Errorf("%s: slow: %q, events: %q", name, w.slow(), w.events)
		}
	}
}

// An attempt counts by its last two hours, without the time for which it was suspended or stood still, or went back to a save.
func TestSpeedOfAnAttempt(t *testing.T) {
	w := newSite(t)
	key := w.start("alice", "n1", 2).Record.Key
	rate := func() float64 {
		r := &w.snap.NodeSpeeds.Runs[0]
		return r.Did / r.Ran.Duration().Seconds()
	}
	is := func(what string, least, most float64) {
		t.Helper()
		if got := rate(); got < least || got > most {
			t.Errorf("%s: %v steps a second, want %v to %v", what, got, least, most)
		}
	}
	w.run(cluster.Hour)
	is("steadily", 2, 2)
	w.steps[key] = 10
	w.run(cluster.Hour)
	is("after it went back to a save", 2, 2)
	w.rates[key] = 0
	w.run(cluster.Hour)
	is("after it stood still", 1.9, 2) // as the sample in which it began to
	w.rates[key] = 2
	w.snap.Cases[0].Job.Suspend += 50 * cluster.Minute
	w.snap.Now = w.snap.Now.Add(50 * cluster.Minute)
	w.run(cluster.Hour)
	is("after it was suspended", 1.9, 2)
	w.rates[key] = 1
	w.run(6 * cluster.Hour)
	is("now at another speed", 1, 1.1)
	if r := &w.snap.NodeSpeeds.Runs[0]; r.Ran > recent {
		t.Errorf("it remembers %s", r.Ran)
	}
}

// A user that starts many short jobs, or reports nonsense, fills no memory.
func TestAttemptsAreLimited(t *testing.T) {
	w := newSite(t)
	for range 80 {
		for i := range 12 {
			c := w.start("alice", fmt.Sprintf("n%d", i%6+1), 1)
			c.Job.Name = fmt.Sprintf("kind%c", 'a'+w.snap.NextKey%26)
		}
		w.run(40 * cluster.Minute)
		w.end()
	}
	if n := len(w.snap.NodeSpeeds.Runs); n != mostUser {
		t.Errorf("%d attempts are kept, want %d", n, mostUser)
	}
	w = newSite(t)
	for range 10 {
		w.start("alice", "n1", 1)
		w.run(40 * cluster.Minute)
		w.end()
	}
	if n := len(w.snap.NodeSpeeds.Runs); n != mostAlike {
		t.Errorf("%d attempts of one type on one node are kept, want %d", n, mostAlike)
	}
	w = newSite(t)
	for i := range 40 {
		for k := range 6 {
			w.start("alice", fmt.Sprintf("n%d", k+1), 1).Job.Name = fmt.Sprintf("kind%c", 'a'+i%20)
		}
	}
	w.usual("bob", "n1", "n1", "n1", "n1", "n1", "n1")
	w.run(20 * cluster.Minute)
	if n := len(w.snap.NodeSpeeds.Runs); n != mostUser+mostAlike {
		t.Errorf("%d attempts that go on are kept, want %d", n, mostUser+mostAlike)
	}
	w = newSite(t)
	w.start("alice", "n1", 1e300)
	w.start("alice", "n2", 1)
	w.run(15 * cluster.Minute) // no sample
	w.end()
	if n := len(w.snap.NodeSpeeds.Runs); n != 0 {
		t.Errorf("%d attempts without a sample are kept", n)
	}
}
