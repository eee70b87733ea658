package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Site describes a site whose rounds are measured: a virtual cluster of four GPU models under the loop, with more jobs than can run.
type Site struct {
	Nodes, Jobs, Tenants int
	// Gangs is how many further jobs want 32 GPUs on 4 nodes.
	Gangs int
	// Overrides is how many are in force: of jobs, users and tenants in turn.
	Overrides int
	// Unversioned jobs have no versions, and the lists of a round are kept: as with a real Slurm.
	Unversioned bool
	// Varied is a site as there are: jobs ask for amounts of memory and time limits of their own, each tenant has a limit of Slurm, a reservation
	// for maintenance is a week ahead, and some nodes are busy in each round, since a job completes there.
	Varied bool
}

// Live is such a site in the middle of a term: all that fit have started, and no lease ends for some minutes.
type Live struct {
	*sim.Virtual
	Loop *loop.Loop

	site   Site
	set    cluster.Settings
	random *rand.Rand
	jobs   []cluster.JobID // that have not ended
	held   map[cluster.JobID]bool
}

// calm is how long after the start of a term a Live is handed over.
const calm = 2 * cluster.Minute

// Open makes the site, and lets its jobs start.
func (x Site) Open() (*Live, error) {
	accounts := []cluster.Account{{Name: "root"}}
	for t := range x.Tenants {
		accounts = append(accounts, cluster.Account{Name: tenantName(t), Parent: "root", Shares: int64(1 + t%7)})
	}
	s := &Live{Virtual: sim.NewVirtual(Start, crowdNodes(x.Nodes), accounts), site: x, set: Product(), random: rand.New(rand.NewPCG(1, 1)), held: map[cluster.JobID]bool{}}
	s.Gate, s.License, s.Forget, s.Lend = s.set.GateTTL, 10_000_000, true, !x.Unversioned
	if x.Varied {
		s.vary()
	}
	for range x.Jobs {
		s.arrive(crowdSizes[s.random.IntN(len(crowdSizes))])
	}
	for range x.Gangs {
		s.arrive(32)
	}
	var seen loop.Cluster = s.Virtual
	if x.Varied {
		seen = &completing{Virtual: s.Virtual}
	}
	journal := sim.NewMemory()
	journal.Trust = s.Lend
	for _, o := range x.Orders() {
		journal.Override(o)
	}
	s.Loop = &loop.Loop{Cluster: seen, Journal: journal, Decide: (&engine.Decider{Brief: s.Lend}).Decide, Divide: engine.Divide, Brief: s.Lend,
		Configure: func() (loop.Rules, cluster.Settings) {
			return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, s.set
		}}
	for s.Now() < Start.Add(calm) {
		if _, err := s.Turn(0); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// vary reserves a tenth of the nodes for maintenance in a week, and limits each tenant to more GPUs than it is due.
func (s *Live) vary() {
	r := cluster.Reservation{Name: "maintenance", Start: Start.Add(7 * cluster.Day), End: Start.Add(8 * cluster.Day)}
	nodes := crowdNodes(s.site.Nodes)
	for i := range len(nodes) / 10 {
		r.Nodes = append(r.Nodes, nodes[i].Name)
	}
	s.AddReservation(r)
	var l cluster.Limits
	for t := range s.site.Tenants {
		l.Associations = append(l.Associations, cluster.Association{Account: tenantName(t),
			Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: int64(8 * s.site.Nodes * 3 / s.site.Tenants)}}})
	}
	s.SetLimits(l)
}

// completing shows one node in a hundred as busy, others in each look.
type completing struct {
	*sim.Virtual
	looks int
}

// Observe implements loop.Cluster.
func (c *completing) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := c.Virtual.Observe(ctx, since)
	c.looks++
	seen.Nodes, seen.NodesVersion = slices.Clone(seen.Nodes), 0
	for i := c.looks % 100; i < len(seen.Nodes); i += 100 {
		seen.Nodes[i].Busy = "completing"
	}
	return seen, err
}

// Orders gives the overrides: of jobs, users and tenants in turn.
func (x Site) Orders() []cluster.Override {
	out := make([]cluster.Override, x.Overrides)
	for i := range out {
		tenant := tenantName(i % x.Tenants)
		o := cluster.Override{ID: int64(1 + i), Kind: cluster.Boost, Scope: "job", Name: strconv.Itoa(1 + i%x.Jobs), Until: Start.Add(cluster.Day), Reason: "a deadline", By: "root"}
		switch i % 3 {
		case 1:
			o.Scope, o.Name = "user", fmt.Sprintf("%s_%d", tenant, i%20)
		case 2:
			o.Scope, o.Name = "tenant", tenant
		}
		out[i] = o
	}
	return out
}

// arrive submits a job of any tenant.
func (s *Live) arrive(gpus int) {
	t := tenantName(s.random.IntN(s.site.Tenants))
	w := sim.Work{Name: "train", User: fmt.Sprintf("%s_%d", t, s.random.IntN(20)), Account: t, Partition: "gpu", Runs: 100 * cluster.Hour, Request: crowdRequest(gpus)}
	if s.random.IntN(4) == 0 {
		w.Request.Model = crowdModels[s.random.IntN(4)]
	}
	if s.site.Varied {
		w.Request.MemoryMB += int64(s.random.IntN(64)) * 1024
		w.Limit = cluster.Span(60+s.random.IntN(2880)) * cluster.Minute
	}
	s.jobs = append(s.jobs, s.Submit(w))
}

// Turn changes so many jobs, and makes the turn of the loop ten seconds after the last: of ten changes four are arrivals, three ends and three
// are holds or releases of jobs that wait.
func (s *Live) Turn(changes int) (loop.Report, error) {
	for i := range changes {
		switch k := s.random.IntN(len(s.jobs)); {
		case i%10 < 4:
			s.arrive(crowdSizes[s.random.IntN(len(crowdSizes))])
		case i%10 < 7:
			s.Cancel(s.jobs[k])
			delete(s.held, s.jobs[k])
			s.jobs[k] = s.jobs[len(s.jobs)-1]
			s.jobs = s.jobs[:len(s.jobs)-1]
		default:
			for s.Job(s.jobs[k]).State != cluster.Waiting {
				k = s.random.IntN(len(s.jobs))
			}
			id := s.jobs[k]
			s.held[id] = !s.held[id]
			s.Hold(id, s.held[id])
		}
	}
	s.Advance(s.Now().Add(s.set.Interval))
	return s.Loop.Turn(context.Background())
}
