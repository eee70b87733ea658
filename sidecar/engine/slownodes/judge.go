package slownodes

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// sum is what attempts say together.
type sum struct {
	jobs, users int
	ratio       float64 // the median of the users' voices
}

func sumOf(list []said) sum {
	users, jobs := map[string][]float64{}, map[cluster.JobKey]bool{}
	for _, x := range list {
		users[x.run.User] = append(users[x.run.User], x.off)
		jobs[x.run.Job] = true
	}
	if len(users) == 0 {
		return sum{}
	}
	voices := make([]float64, 0, len(users))
	for _, offs := range users { // sorted by voice
		voices = append(voices, voice(offs))
	}
	return sum{len(jobs), len(users), math.Exp(voice(voices))}
}

// enough reports whether so many jobs and users say something.
func (s sum) enough() bool { return s.jobs >= leastJobs && s.users >= leastUsers }

// slow reports whether they say that something is slower than a bound, and sound whether they say that it is not.
func (s sum) slow(bound float64) bool  { return s.enough() && s.ratio < bound }
func (s sum) sound(bound float64) bool { return s.enough() && s.ratio >= bound }

// voice gives the median; of two middle values the higher one.
func voice(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// node gives the record of a slow node, or of that of a slow GPU.
func (s sum) node(at where, since cluster.Instant) cluster.SlowNode {
	return cluster.SlowNode{Node: at.node, Model: at.model, Percent: int(math.Round(100 * s.ratio)), Jobs: s.jobs, Users: s.users, Since: since}
}

// judge finds the slow nodes and GPUs. was are those of the last round.
func judge(of map[where][]said, was *cluster.NodeSpeeds, bound float64, now cluster.Instant) (slow []cluster.SlowNode, gpus []cluster.SlowGPU, events []cluster.Event) {
	leave := (1 + bound) / 2 // for what is slow already
	for at, list := range of {
		// sorted below
		since, limit := now, bound
		if k := slices.IndexFunc(was.Slow, func(n cluster.SlowNode) bool { return n.Node == at.node && n.Model == at.model }); k >= 0 {
			since, limit = was.Slow[k].Since, leave
		}
		all := sumOf(list)
		found, rest := gpusOf(list, func(gpu int) float64 {
			if findGPU(was.GPUs, at, gpu) >= 0 {
				return leave
			}
			return bound
		})
		if all.slow(limit) && (len(found) == 0 || !sumOf(rest).sound(limit)) {
			slow = append(slow, all.node(at, since))
			continue
		}
		for _, x := range found {
			since := now
			if k := findGPU(was.GPUs, at, x.gpu); k >= 0 {
				since = was.GPUs[k].Since
			}
			gpus = append(gpus, cluster.SlowGPU{SlowNode: x.node(at, since), Index: x.gpu})
		}
	}
	byNode := func(x, y *cluster.SlowNode) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Model, y.Model))
	}
	slices.SortFunc(slow, func(x, y cluster.SlowNode) int { return byNode(&x, &y) })
	slices.SortFunc(gpus, func(x, y cluster.SlowGPU) int {
		return cmp.Or(byNode(&x.SlowNode, &y.SlowNode), cmp.Compare(x.Index, y.Index))
	})
	return slow, gpus, tell(of, was, &cluster.NodeSpeeds{Slow: slow, GPUs: gpus})
}

// findGPU gives the index of a GPU in a list; -1 = it is not there.
func findGPU(list []cluster.SlowGPU, at where, gpu int) int {
	return slices.IndexFunc(list, func(g cluster.SlowGPU) bool { return g.Index == gpu && g.Node == at.node && g.Model == at.model })
}

// tell gives the events about what has become slow, or is no longer. Everybody may read them: they name no jobs and no users.
func tell(of map[where][]said, was, now *cluster.NodeSpeeds) (events []cluster.Event) {
	say := func(kind, node, format string, a ...any) {
		events = append(events, cluster.Event{Kind: kind, Node: node, Text: fmt.Sprintf(format, a...)})
	}
	isSlow := func(list []cluster.SlowNode, n *cluster.SlowNode) bool {
		return slices.ContainsFunc(list, func(x cluster.SlowNode) bool { return x.Node == n.Node && x.Model == n.Model })
	}
	for k := range now.Slow {
		if n := &now.Slow[k]; !isSlow(was.Slow, n) {
			say(cluster.EventSlowNode, n.Node, "%s is slow: %s. Gangs avoid it where others are free. If it is at fault, drain it: %s", n.Node, n.Says(), n.Drain())
		}
	}
	for k := range now.GPUs {
		if g := &now.GPUs[k]; findGPU(was.GPUs, whereOf(&g.SlowNode), g.Index) < 0 {
			say(cluster.EventSlowGPU, g.Node, "GPU %d of %s is slow: %s. Gangs avoid the node while no job holds that GPU, where others are free. If it is at fault, drain the node: %s",
				g.Index, g.Node, g.Says(), g.Drain())
		}
	}
	for k := range was.Slow {
		if n := &was.Slow[k]; !isSlow(now.Slow, n) {
			text := why(of[whereOf(n)])
			if slices.ContainsFunc(now.GPUs, func(g cluster.SlowGPU) bool { return g.Node == n.Node && g.Model == n.Model }) {
				text = "jobs without its slow GPUs run there as fast as on other nodes"
			}
			say(cluster.EventSlowNode, n.Node, "%s is no longer slow: %s", n.Node, text)
		}
	}
	for k := range was.GPUs {
		g := &was.GPUs[k]
		if findGPU(now.GPUs, whereOf(&g.SlowNode), g.Index) >= 0 {
			continue
		}
		text := why(with(of[whereOf(&g.SlowNode)], g.Index))
		if isSlow(now.Slow, &g.SlowNode) {
			text = "the whole node is"
		}
		say(cluster.EventSlowGPU, g.Node, "GPU %d of %s is no longer slow: %s", g.Index, g.Node, text)
	}
	return events
}

func whereOf(n *cluster.SlowNode) where { return where{n.Node, n.Model} }

// why says why a node or GPU is no longer slow.
func why(list []said) string {
	s := sumOf(list)
	if !s.enough() {
		return "too few jobs that ran there can be compared now"
	}
	return fmt.Sprintf("%d jobs of %d users run there as fast as on other nodes", s.jobs, s.users)
}
