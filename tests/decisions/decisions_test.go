package decisions_test

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/decisions"
	"github.com/fairlease/fairlease/tests/seeds"
)

var rewrite = flag.Bool("rewrite", false, "record all decisions anew")

var tenants = []string{"nlp", "speech", "vision"}

// TestDecisions lets the product, set up in all ways, govern a small cluster on which everything happens that can; in full
// tests the product with every preset, and the schedulers of the simulator, too.
func TestDecisions(t *testing.T) {
	var names []string
	all, others := seeds.Full() || *rewrite, baseline.Names()[1:]
	if all {
		names = slices.Concat(baseline.Cellular(), baseline.Dividing(), baseline.Names(), baseline.Heterogeneous())
	}
	for name, v := range variants {
		if all || !slices.Contains(others, v.scheduler) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r decisions.Recording
			churn(t, &r, name)
			r.Compare(t, filepath.Join("testdata", strings.NewReplacer(":", "-", "+", "-and-", ", ", "-", " ", "-").Replace(name)+".txt"), *rewrite)
		})
	}
}

// variants are schedulers that are told more than they must be.
var variants = map[string]struct {
	scheduler string
	change    func(*simtest.World)
}{
	"astraea, as in the papers": {"astraea", func(w *simtest.World) {
		w.Settings = simtest.Paper(15 * cluster.Minute)
		w.Settings.Interval = cluster.Minute
	}},
	"astraea, observing":      {"astraea", func(w *simtest.World) { w.Rules.Mode = loop.Observe }},
	"astraea, by licence":     {"astraea", func(w *simtest.World) { w.License, w.Gate = 1000, 10*cluster.Minute }},
	"astraea, by begin times": {"astraea", func(w *simtest.World) { w.Gate = 10 * cluster.Minute }},
	"astraea, few stops": {"astraea", func(w *simtest.World) {
		w.Settings.MaxReclaims, w.Settings.LongTerms, w.Settings.StopTotalMilli = 2, 3, 20
	}},
	"astraea, few stops an hour": {"astraea", func(w *simtest.World) {
		w.Settings.StopsPerHour = cluster.StopsPerHour{Site: 15, Tenant: 30, User: 40}
	}},
	"astraea, by rho":          {"astraea", func(w *simtest.World) { w.Settings.JobOrder = cluster.ByRho }},
	"astraea, equal users":     {"astraea", func(w *simtest.World) { w.Settings.Users = cluster.UsersEqual }},
	"astraea, least attained":  {"astraea", func(w *simtest.World) { w.Settings.JobOrder = cluster.ByAttained }},
	"astraea, everything":      {"astraea", everything},
	"hived, everything":        {"hived", everything},
	"gandiva-fair, everything": {"fairlease:gandiva-fair", everything},
	"oef, everything":          {"fairlease:oef:coop", everything},
	"gavel, everything":        {"fairlease:gavel:las", everything},
	"themis, few stops":        {"themis", fewStops},
	"tiresias-l, few stops":    {"tiresias-l", fewStops},
	"allox, few stops":         {"allox", fewStops},
	"quota-lend, few stops":    {"quota-lend", fewStops},
}

// fewStops sets budgets for stops that jobs and pools spend.
func fewStops(w *simtest.World) {
	s := &w.Settings
	s.StopAllowance, s.StopOverheadMilli, s.StopTotalMilli = 5*cluster.Minute, 10, 20
}

// everything sets what sites can set.
func everything(w *simtest.World) {
	s := &w.Settings
	s.StopTotalMilli, s.RecallNotice, s.HalfLife = 100, 2*cluster.Minute, cluster.Day
	s.UrgentQOS, s.StrictQOS = []string{"urgent"}, []string{"strict"}
	s.JobWeights = []cluster.JobWeight{{QOS: "urgent", Milli: 3000}}
	s.Signals = []cluster.SignalRule{{QOS: "strict", Signal: "TERM", To: "batch"}}
	s.Saves = []cluster.SavingRule{{QOS: "urgent", Manner: cluster.SavesEvery, Every: 30 * cluster.Minute, Source: cluster.FromSite}}
	s.Kinds = []cluster.KindRule{{Name: "kind1", Kind: "ones"}}
	s.Prices = []cluster.Price{{Model: "v100", Price: 3}}
	s.SiteFactor = 1000
	w.ReportSaves, w.Reports, w.History = true, 5*cluster.Minute, true
	w.Rules.ExcludeUsers = []string{"nobody"}
	w.Speeds = sim.Speeds{}
	for k := range 3 {
		w.Speeds[sim.Task{Kind: fmt.Sprintf("kind%d", k)}] = map[string]sim.Rate{"k80": {Speed: sim.Reference / sim.Speed(2+k)}, "v100": {Speed: sim.Reference}}
	}
}

// churn lets a scheduler govern a cluster for nine hours in which jobs of all sorts come and are cancelled, requeued and
// held, nodes fail, and administrators give orders.
func churn(t *testing.T, r *decisions.Recording, name string) {
	variant, special := variants[name]
	if !special {
		variant.scheduler = name
	}
	settings := simtest.Product()
	settings.Interval = cluster.Minute
	nodes := append(simtest.Nodes("k", "k80", 3, 4), simtest.Nodes("v", "v100", 3, 8)...)
	nodes[3].Partitions = []string{"gpu", "others"}
	w := simtest.New(t, settings, nodes, tenants...)
	if special {
		variant.change(w)
	}
	journal := sim.NewMemory()
	w.Loop.Journal = journal
	s, err := baseline.New(variant.scheduler, baseline.Options{
		Runs:   func(j *cluster.Job) cluster.Span { return w.Left(j.ID) + cluster.Minute },
		Left:   func(j *cluster.Job) cluster.Span { return w.Left(j.ID) },
		Speed:  func(_ *cluster.Job, model string) float64 { return map[string]float64{"k80": 0.5, "v100": 1}[model] },
		Beside: func(_, _ *cluster.Job, _ string, _ bool) (float64, float64) { return 0.6, 0.7 },
		Share:  func(cluster.JobID, cluster.JobID) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Loop.Decide = r.Of(s.Decide)
	if s.Chooser != "" {
		w.Settings.Preset, w.Settings.Chooser, w.Settings.AffinityWait = "hived", s.Chooser, 10*cluster.Minute
		w.Rules.Cells = cellsOf(nodes)
	}
	if s.Divide != "" {
		w.Settings.Divide, w.Settings.DivideJobs, w.Settings.DivideEvery = s.Divide, preset.OfJobs(s.Divide), 60
	}
	d := &driver{World: w, rand: rand.New(rand.NewPCG(7, 13)), journal: journal}
	for at := range 54 {
		d.step(at)
		w.Run(10 * cluster.Minute)
	}
}

// cellsOf leaves the first node out. It gives a VC of a v100 node and a k80 node to each tenant but the last, which has half a v100 node.
func cellsOf(nodes []cluster.Node) *cluster.Cells {
	c := &cluster.Cells{Types: []cluster.CellType{{Name: "k80", Model: "k80"}, {Name: "v100", Model: "v100"},
		{Name: "k80.node", Child: "k80", Split: 4, Node: true}, {Name: "half", Child: "v100", Split: 4}, {Name: "v100.node", Child: "half", Split: 2, Node: true}}}
	for _, n := range nodes[1:] {
		c.Tops = append(c.Tops, cluster.TopCell{Name: n.Name, Type: n.GPUs[0].Model + ".node", Nodes: []string{n.Name}})
	}
	for _, name := range tenants[:2] {
		c.VCs = append(c.VCs, cluster.VC{Name: name, Cells: []cluster.CellQuota{{Type: "v100.node", Cells: 1}, {Type: "k80.node", Cells: 1}}})
	}
	c.VCs = append(c.VCs, cluster.VC{Name: tenants[2], Cells: []cluster.CellQuota{{Type: "half", Cells: 1}}})
	return c
}

// driver does to a world what users, administrators and hardware do.
type driver struct {
	*simtest.World
	rand    *rand.Rand
	journal *sim.Memory
	jobs    []cluster.JobID
}

// step does what happens before the ten minutes number at.
func (d *driver) step(at int) {
	for range d.rand.IntN(5) {
		d.submit()
	}
	switch at {
	case 8:
		d.SetNode("v02", "down")
	case 12:
		d.SetNode("v02", "")
	case 15:
		d.SetShares("nlp", 5)
	case 20:
		start := d.Now().Add(cluster.Hour)
		d.AddReservation(cluster.Reservation{Name: "maintenance", Nodes: []string{"k01", "v01"}, Start: start, End: start.Add(cluster.Hour)})
	case 25:
		d.order(cluster.Freeze, "user", "speech_user")
	case 30:
		d.order(cluster.Boost, "tenant", "vision")
	case 35:
		d.order(cluster.Exempt, "user", "vision_user")
	}
	if at < 6 {
		return
	}
	job := d.jobs[d.rand.IntN(len(d.jobs))]
	state := d.Job(job).State
	switch {
	case state == cluster.Done:
	case at%5 == 0:
		d.Cancel(job)
	case at%7 == 0 && state == cluster.Running:
		d.Requeue(job)
	case at%9 == 0 && state == cluster.Waiting:
		d.Hold(job, true)
	}
}

func (d *driver) order(kind cluster.OverrideKind, scope, name string) {
	d.journal.Override(cluster.Override{Kind: kind, Scope: scope, Name: name, Until: d.Now().Add(40 * cluster.Minute), Reason: "as ordered"})
}

// submit queues a job of a random sort.
func (d *driver) submit() {
	one := func(n int) bool { return d.rand.IntN(n) == 0 }
	tenant := tenants[d.rand.IntN(len(tenants))]
	gpus := []int{1, 1, 2, 2, 4, 8}[d.rand.IntN(6)]
	w := sim.Work{Name: fmt.Sprintf("kind%d", d.rand.IntN(3)), User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus),
		Runs: cluster.Span(3+d.rand.IntN(150)) * cluster.Minute, Command: "train.sh", NoRequeue: one(8), Interactive: one(20)}
	if gpus == 8 && one(3) {
		w.Request.Nodes, w.Request.PerNode = 2, 8
		w.Request.Size = cluster.Whole(16)
	} else if one(3) {
		w.Request.Nodes, w.Request.PerNode = 0, 0 // anywhere
	}
	if one(5) {
		w.Request.Model = []string{"k80", "v100"}[d.rand.IntN(2)]
	}
	if one(3) {
		w.Limit = w.Runs + cluster.Span(d.rand.IntN(60))*cluster.Minute
	}
	if one(3) {
		w.Saves, w.Command = sim.Never, cluster.Untyped
	}
	if one(4) {
		w.Comment = fmt.Sprintf("kind=%s steps=%d steps/s.k80=%d steps/s.v100=%d", w.Name, 1000*(1+d.rand.IntN(9)), 1+d.rand.IntN(2), 3+d.rand.IntN(3))
	}
	if one(3) {
		w.QOS = []string{"urgent", "strict"}[d.rand.IntN(2)]
	}
	if one(4) {
		w.Saves, w.Every = sim.Periodic, 20*cluster.Minute
	}
	if one(6) {
		w.Deadline = d.Now().Add(4 * cluster.Hour)
	}
	if one(15) {
		w.User = "nobody"
	}
	w.Kind = w.Name
	if one(10) {
		w.Begin = d.Now().Add(cluster.Span(20+d.rand.IntN(60)) * cluster.Minute)
	}
	if one(12) {
		d.jobs = append(d.jobs, d.SubmitArray(w, 3)...)
		return
	}
	d.jobs = append(d.jobs, d.Virtual.Submit(w))
}

// TestDecisionsOnSlurm decides anew on snapshots of real Slurms, each by itself.
func TestDecisionsOnSlurm(t *testing.T) {
	f, err := os.Open("testdata/slurm.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var r decisions.Recording
	decide := r.Of(engine.Decide)
	in := json.NewDecoder(text)
	in.DisallowUnknownFields() // a field with another name would be lost
	for in.More() {
		var s cluster.Snapshot
		if err := in.Decode(&s); err != nil {
			t.Fatal(err)
		}
		decide(s)
	}
	r.Compare(t, "testdata/slurm.txt", *rewrite)
}
