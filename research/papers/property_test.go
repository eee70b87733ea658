package papers_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// conserving lists the schedulers that leave no GPU idle on which a waiting job fits.
var conserving = map[string]bool{"tiresias-l": true, "quota-lend": true, "themis": true, "gandiva-fair": true, "allox": true, "shockwave": true}

// chaos is a random cluster under random load.
type chaos struct {
	*rapid.T
	*simtest.Scheduled
	name  string
	mixed bool
	nodes []cluster.Node
	down  map[string]bool
	ids   []cluster.JobID
	twin  baseline.Scheduler
}

func newChaos(rt *rapid.T, t *testing.T, name string) *chaos {
	c := &chaos{T: rt, name: name, down: map[string]bool{}, mixed: rapid.Bool().Draw(rt, "mixed") && !slices.Contains(baseline.Heterogeneous(), name)}
	size := rapid.SampledFrom([]int{2, 4, 8}).Draw(rt, "size")
	v100 := rapid.IntRange(1, 3).Draw(rt, "v100")
	if name == "lucid" && rapid.Bool().Draw(rt, "profiler") { // it needs twenty nodes
		v100 += 18
	}
	c.nodes = append(simtest.V100s(v100, size), simtest.Nodes("o", "k80", rapid.IntRange(0, 2).Draw(rt, "k80"), 4)...)
	tenants := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(rt, "tenants")]
	o := baseline.Options{Mixed: c.mixed, Grid: rapid.Bool().Draw(rt, "grid")}
	pairs := sim.Beside{}
	for _, gpus := range []int{1, 2, 3, 4, 8} {
		task := sim.Task{GPUs: gpus}
		pairs[task] = sim.Speeds{task: {"v100": {Speed: 700_000}, "k80": {Speed: 400_000}}}
	}
	o.Beside = func(j, other *cluster.Job, model string, _ bool) (float64, float64) {
		own, its := c.Together(pairs, j.ID, other.ID, model)
		return float64(own) / float64(sim.Reference), float64(its) / float64(sim.Reference)
	}
	c.twin = simtest.Baseline(t, name, o)
	o.Brief, o.Share = true, func(host, guest cluster.JobID) { c.Share(host, guest) }
	s := simtest.Baseline(t, name, o)
	c.Scheduled = simtest.Compare(t, s, c.nodes, tenants...)
	c.Loop.Decide = func(snap cluster.Snapshot) cluster.Plan {
		plan := s.Decide(snap)
		if a, b := c.encode(plan), c.encode(c.twin.Decide(snap)); !bytes.Equal(a, b) {
			c.Fatalf("one snapshot, two plans of %d and %d bytes", len(a), len(b))
		}
		return plan
	}
	c.Mixed, c.Beside = c.mixed, pairs
	visiting(t, c.Scheduled)
	c.Settings.Notice = rapid.SampledFrom([]cluster.Span{0, 1}).Draw(rt, "notice") * minute
	c.Completing = rapid.SampledFrom([]cluster.Span{0, 3, 25}).Draw(rt, "completing") * second
	for _, tenant := range tenants {
		c.SetShares(tenant, rapid.SampledFrom([]int64{1, 1, 3}).Draw(rt, "shares"))
	}
	c.Check = func(r loop.Report) { c.safe(&r) }
	return c
}

func (c *chaos) encode(p cluster.Plan) []byte {
	b, err := json.Marshal(p)
	if err != nil {
		c.Fatal(err)
	}
	return b
}

// stir makes a random event.
func (c *chaos) stir() {
	switch rapid.IntRange(0, 8).Draw(c.T, "event") {
	case 0, 1, 2, 3:
		c.submit()
	case 4:
		c.Cancel(rapid.SampledFrom(c.ids).Draw(c.T, "cancel"))
	case 5:
		c.Requeue(rapid.SampledFrom(c.ids).Draw(c.T, "requeue"))
	case 6:
		n := rapid.SampledFrom(c.nodes).Draw(c.T, "node").Name
		bad := rapid.SampledFrom([]string{"", "down"}).Draw(c.T, "bad")
		c.SetNode(n, bad)
		c.down[n] = bad != ""
	}
}

func (c *chaos) submit() {
	gpus := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4, 8}).Draw(c.T, "gpus")
	tenant := rapid.SampledFrom([]string{"x", "x", "y", "z"}).Draw(c.T, "tenant")
	work := sim.Work{User: "u", Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus),
		Runs: cluster.Span(rapid.IntRange(1, 120).Draw(c.T, "minutes")) * minute, Saves: sim.Always,
		NoRequeue: rapid.IntRange(0, 7).Draw(c.T, "norequeue") == 0}
	if c.Settings.Notice > 0 { // without a notice jobs cannot save, and two that displace each other make no progress
		work.Saves = sim.AtEnd
	}
	if rapid.IntRange(0, 4).Draw(c.T, "spread") == 0 {
		work.Request.Nodes, work.Request.PerNode = 0, 0
	}
	if rapid.IntRange(0, 3).Draw(c.T, "typed") == 0 {
		work.Request.Model = rapid.SampledFrom([]string{"v100", "k80"}).Draw(c.T, "model")
	}
	c.ids = append(c.ids, c.Virtual.Submit(work))
}

// safe checks the invariants of every round.
func (c *chaos) safe(r *loop.Report) {
	p := &r.Plan
	request := map[cluster.JobKey]cluster.Request{}
	for i := range p.State.Records {
		request[p.State.Records[i].Key] = c.Job(p.State.Records[i].ID).Request
	}
	leased, dealt, holders := map[string]int{}, map[string]bool{}, map[cluster.JobKey]bool{}
	for _, l := range p.State.Leases {
		if holders[l.Job] {
			c.Fatalf("job %d is leased twice", l.Job)
		}
		holders[l.Job] = true
		total := 0
		for _, h := range l.Nodes {
			total += h.Size.Devices
			if h.Model != l.Nodes[0].Model && !c.mixed {
				c.Fatalf("job %d has a lease on two models: %+v", l.Job, l.Nodes)
			}
			// If a job does not set its GPUs per node, Slurm deals them.
			dealt[h.Node] = dealt[h.Node] || request[l.Job].PerNode == 0
			if l.State != cluster.Ending { // its GPUs are handed over
				leased[h.Node] += h.Size.Devices
			}
		}
		if total != l.Size.Devices || total != request[l.Job].Size.Devices {
			c.Fatalf("job %d: a gang of %d has a lease of %d GPUs on %d", l.Job, request[l.Job].Size.Devices, l.Size.Devices, total)
		}
	}
	for _, n := range c.nodes {
		if leased[n.Name] > n.GPUs[0].Count && !dealt[n.Name] {
			c.Fatalf("%d GPUs leased on %s, which has %d: %+v", leased[n.Name], n.Name, n.GPUs[0].Count, p.State.Leases)
		}
	}
	acted := map[cluster.JobKey]bool{}
	for i, a := range p.Actions {
		if a.Job != 0 && a.Verb != cluster.Release { // a job with a notice may still need cleanup actions
			if acted[a.Job] {
				c.Fatalf("more than one action for job %d: %+v", a.Job, p.Actions)
			}
			acted[a.Job] = true
		}
		if !r.Outcomes[i].OK {
			c.Fatalf("%+v failed: %s", a, r.Outcomes[i].Error)
		}
	}
	if len(p.Actions) == 0 && conserving[c.name] {
		c.busy(p)
	}
}

// busy checks that no waiting job fits on one node's idle GPUs while no lease is about to change
// hands. It excepts nodes of the job's last failed grant, which go to other jobs first.
func (c *chaos) busy(p *cluster.Plan) {
	idle := map[string]int{}
	for _, n := range c.nodes {
		idle[n.Name] = n.GPUs[0].Count
	}
	for _, id := range c.ids {
		j := c.Job(id)
		for _, h := range j.Holds {
			if idle[h.Node] -= h.Size.Devices; j.State == cluster.Completing {
				return
			}
		}
	}
	holders := map[cluster.JobKey]bool{}
	for _, l := range p.State.Leases {
		if holders[l.Job] = true; l.State != cluster.Active {
			return
		}
	}
	for _, v := range p.Statuses {
		if holders[v.Job] || v.Reason.Code != cluster.ReasonBehind {
			continue
		}
		for rec := range p.State.All() {
			j := c.Job(rec.ID)
			for _, n := range c.nodes {
				fits := !c.down[n.Name] && !slices.Contains(rec.AvoidNodes, n.Name) && idle[n.Name] >= j.Request.Size.Devices && (j.Request.Model == "" || j.Request.Model == n.GPUs[0].Model)
				if rec.Key == v.Job && fits {
					c.Fatalf("job %s waits though %s has %d idle GPUs", j.ID, n.Name, idle[n.Name])
				}
			}
		}
	}
}

// balanced checks the accounts to the GPU-millisecond.
func (c *chaos) balanced() {
	l := &c.Last.State.Ledger
	for _, p := range l.Pools {
		if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity || p.Idle < 0 || p.Bad < 0 || p.Overhead < 0 {
			c.Fatalf("pool %s: the books do not balance: %+v", p.Pool, p)
		}
		var tenants cluster.GPUTime
		for _, t := range l.Tenants {
			if t.Pool == p.Pool {
				tenants += t.Alloc
			}
		}
		if tenants != p.Tenants {
			c.Fatalf("pool %s: tenants have %d GPU-ms, the pool says %d", p.Pool, tenants, p.Tenants)
		}
	}
}

func TestProperties(t *testing.T) {
	for _, name := range append(baseline.Names()[1:], "fifo:random", "fifo:settled", "fifo:fastest", "las:interior", "gavel:las", "gavel:las-blind", "gavel:las+ss", "gandiva:packing") { // the engine has its own
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c := newChaos(rt, t, name)
				c.submit()
				for range rapid.IntRange(1, 30).Draw(rt, "steps") {
					c.stir()
					c.Run(cluster.Span(rapid.IntRange(1, 600).Draw(rt, "seconds")) * second)
					c.balanced()
				}
				c.served()
			})
		})
	}
}

// served checks that every runnable job ends at last.
func (c *chaos) served() {
	for _, n := range c.nodes {
		c.SetNode(n.Name, "")
	}
	clear(c.down)
	c.Run(minute) // jobs that were too big for the remaining nodes fit again
	waits := c.unserved()
	for days := 0; len(waits) > 0; days++ {
		if days > 20 { // 30 jobs of two hours one after the other, several times over
			c.Fatalf("not served at last: %+v", waits)
		}
		c.Run(cluster.Day)
		c.balanced()
		waits = c.unserved()
	}
}

// unserved gives the unfinished jobs, without those that cannot run.
func (c *chaos) unserved() []cluster.JobStatus {
	return slices.DeleteFunc(slices.Clone(c.Last.Statuses), func(v cluster.JobStatus) bool {
		switch v.Reason.Code {
		case cluster.ReasonTooBig, cluster.ReasonUntouched, cluster.ReasonDone:
			return true
		}
		return false
	})
}

// Schedulers that ask for run times are those that Untold leaves out.
func TestUntold(t *testing.T) {
	for _, name := range baseline.Names()[1:] {
		asked := false
		w := simtest.Compare(t, simtest.Baseline(t, name, baseline.Options{Runs: func(*cluster.Job) cluster.Span {
			asked = true
			return hour
		}}), simtest.V100s(1, 2), "a")
		w.Submit("a", 3, 1, hour)
		w.Run(20 * minute)
		if asked == slices.Contains(baseline.Untold(), name) {
			t.Errorf("%s asks for run times: %v", name, asked)
		}
	}
}

func TestAnUnknownNameIsAnError(t *testing.T) {
	if _, err := baseline.New("lottery", baseline.Options{}); err == nil {
		t.Error("there is no scheduler lottery, but no error either")
	}
	for _, name := range []string{"astraea", "fifo:random", "gavel:las"} {
		if _, err := baseline.New(name, baseline.Options{Mixed: true}); err == nil {
			t.Errorf("%s cannot mix models, but there is no error", name)
		}
	}
}
