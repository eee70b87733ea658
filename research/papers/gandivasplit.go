package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stride"
)

// newGandivaSplit makes Gandiva_fair as in the paper, where jobs live on servers. Algorithm 2
// places a job, by tickets per model, which users trade. Split stride chooses the jobs that run
// there (§3.1). Each quantum, one job may migrate to another model where it gains, and jobs may
// leave servers with a high load (§3.5). A job has its entitlement only on its server; unused
// GPUs of a server are lent, though.
func newGandivaSplit(o baseline.Options) rule {
	policy := "gandiva-fair"
	if o.Speed == nil {
		policy = "gandiva-fair:no-trade"
	}
	s := &servers{bidders: bidders{policy: policy, told: o}}
	return (&rota{turn: s.turn}).choose
}

// Thresholds of Gandiva_fair's migrations: a tenth of a GPU's tickets, and a tenth of a job's
// throughput.
const (
	loadThreshold = cluster.WholeGPU / 10
	rateThreshold = 0.1
)

// servers is the state that Gandiva_fair keeps between quanta.
type servers struct {
	bidders
	homes  map[cluster.JobKey][]cluster.Holding
	passes map[cluster.JobKey]stride.Pass
	nodes  map[server]stride.Pass // of the aggregates
}

// server is the GPUs of a model on a node.
type server struct{ node, model string }

// turn gives the jobs that run in the next quantum.
func (s *servers) turn(r *round) map[cluster.JobKey]spot {
	list, _ := s.divide(r)
	order := poolsBySpeed(list, r.Pools)
	state := stride.State{Models: len(order), Users: make([]stride.User, len(r.Field.In.Tenants))}
	for t := range state.Users {
		state.Users[t].Tickets = make([]cluster.MicroGPU, len(order))
	}
	var names []server
	at := map[server]int{}
	for m, p := range order {
		for i := range r.Snapshot.Nodes {
			for _, g := range r.Snapshot.Nodes[i].GPUs {
				if name := (server{r.Snapshot.Nodes[i].Name, g.Model}); g.Model == r.Field.In.Pools[p] && r.Site.Good(name.node) {
					at[name] = len(names)
					names, state.Servers = append(names, name), append(state.Servers, stride.Server{Model: m, GPUs: g.Count})
				}
			}
		}
	}
	stayed := s.place(r, list, order, &state, at)
	return s.split(r, &state, names, stayed)
}

// place gives every job a home: existing homes stay, the others are placed one by one; then some
// jobs migrate. It returns the jobs that stayed.
func (s *servers) place(r *round, list []bidder, order []int, state *stride.State, at map[server]int) (stayed map[cluster.JobKey]bool) {
	var queue []stride.Queued
	stayed = map[cluster.JobKey]bool{}
	for i := range list {
		speed, may := make([]float64, len(order)), make([]bool, len(order))
		tenant := slices.Index(r.Field.In.Tenants, list[i].Tenant)
		for m, p := range order {
			speed[m], may[m] = list[i].Speeds[p], list[i].Speeds[p] > 0
			state.Users[tenant].Tickets[m] += cluster.MicroGPU(list[i].due[p] * float64(cluster.WholeGPU))
		}
		if s.told.Speed == nil {
			speed = nil
		}
		for _, k := range list[i].jobs {
			key := r.Field.In.Records[r.Jobs[k].Case].Key
			var on []stride.Part
			for _, h := range s.homes[key] {
				if n, ok := at[server{h.Node, h.Model}]; ok {
					on = append(on, stride.Part{Node: n, GPUs: h.Size.Devices})
				}
			}
			if stayed[key] = len(on) > 0 && len(on) == len(s.homes[key]); stayed[key] {
				state.Jobs = append(state.Jobs, stride.Placed{Key: key, User: tenant, On: on, Speed: speed, May: may})
			} else {
				queue = append(queue, stride.Queued{Key: key, User: tenant, GPUs: r.Jobs[k].GPUs, Speed: speed, May: may})
			}
		}
	}
	for c, ok := state.Place(queue); ok; c, ok = state.Place(queue) {
		q := queue[c.Job]
		state.Jobs = append(state.Jobs, stride.Placed{Key: q.Key, User: q.User, On: c.On, Speed: q.Speed, May: q.May})
		queue = slices.Delete(queue, c.Job, c.Job+1)
	}
	move := func(c stride.Choice) {
		state.Jobs[c.Job].On = c.On
		stayed[state.Jobs[c.Job].Key] = false
	}
	if c, ok := state.Better(rateThreshold); ok {
		move(c)
	}
	for range state.Servers {
		c, ok := state.Balance(loadThreshold)
		if !ok {
			break
		}
		move(c)
	}
	slices.SortFunc(state.Jobs, func(a, b stride.Placed) int { return cmp.Compare(a.Key, b.Key) })
	return stayed
}

// split gives the turn of split stride, and saves homes and passes. A new or migrated job starts
// at the smallest pass there.
func (s *servers) split(r *round, state *stride.State, names []server, stayed map[cluster.JobKey]bool) map[cluster.JobKey]spot {
	all := stride.Split{}
	for n, name := range names {
		all.Nodes = append(all.Nodes, stride.Node{Name: name.node, GPUs: state.Servers[n].GPUs, Pass: s.nodes[name]})
	}
	s.homes = map[cluster.JobKey][]cluster.Holding{}
	strides := state.Strides()
	for _, came := range []bool{false, true} { // new jobs join present ones
		for i := range state.Jobs {
			j := &state.Jobs[i]
			if stayed[j.Key] == came {
				continue
			}
			job := stride.Job{Key: j.Key, Pass: stride.Never, Stride: max(strides[i], stride.One)}
			for _, p := range j.On {
				job.GPUs += p.GPUs
				s.homes[j.Key] = append(s.homes[j.Key], cluster.Holding{Node: names[p.Node].node, Model: names[p.Node].model, Size: cluster.Whole(p.GPUs)})
			}
			switch node := &all.Nodes[j.On[0].Node]; {
			case came && len(j.On) > 1:
				all = all.WithLarge(stride.Large{Job: job, On: j.On})
			case came:
				all = all.WithSmall(j.On[0].Node, job)
			case len(j.On) > 1:
				job.Pass = s.passes[j.Key]
				all.Large = append(all.Large, stride.Large{Job: job, On: j.On})
			default:
				job.Pass = s.passes[j.Key]
				node.Jobs = append(node.Jobs, job)
			}
		}
	}
	turn := all.Next()
	spots := map[cluster.JobKey]spot{}
	run := func(key cluster.JobKey) {
		to := spot{pool: slices.Index(r.Field.In.Pools, s.homes[key][0].Model)}
		for _, h := range s.homes[key] {
			to.nodes = append(to.nodes, h.Node)
		}
		spots[key] = to
	}
	for _, i := range turn.Large {
		run(all.Large[i].Key)
	}
	for n, jobs := range turn.Small {
		for _, i := range jobs {
			run(all.Nodes[n].Jobs[i].Key)
		}
	}
	all = all.After(turn, r.Settings.Term, r.Settings.Term)
	s.passes, s.nodes = map[cluster.JobKey]stride.Pass{}, map[server]stride.Pass{}
	for _, l := range all.Large {
		s.passes[l.Key] = l.Pass
	}
	for n := range all.Nodes {
		s.nodes[names[n]] = all.Nodes[n].Pass
		for _, j := range all.Nodes[n].Jobs {
			s.passes[j.Key] = j.Pass
		}
	}
	return spots
}
