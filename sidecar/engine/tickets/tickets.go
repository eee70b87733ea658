// Package tickets divides a GPU between the jobs that take turns on it. It is the one source of the part that each job has: turns, accounts, forecasts
// and explanations follow it.
//
// Gandiva_fair (§4.1) gives each user tickets, which its jobs divide equally, and serves jobs on a GPU in proportion to their tickets. Here the time of a
// GPU is divided like the GPUs of a pool (docs/SEMANTICS.md §1 and §3), between those that have jobs on it:
//
//	accounts, then tenants   by weight
//	users of a tenant        equally, with users: equal
//	jobs                     equally
//
// The shortest turn on a GPU is a quantum, and the others are longer. No job is suspended for longer than Longest by that, or the quanta of the others if
// these are longer: a light job has more than its part where that is too small. A heavier tenant is ahead by so much less in its accounts, and gets it back
// there, as all that it leaves to others.
package tickets

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Longest is for how long a job is suspended at most since turns are not equal. Connections and heartbeats of jobs bear minutes.
const Longest = 5 * cluster.Minute

// alike is by how much less than another part a part may be and count as equal to it: weights are products of shares, and rounded.
const alike = cluster.WholeGPU / 1000

// Job is a job that takes turns.
type Job struct{ Tenant, User string }

// Rule knows whose jobs have which part.
type Rule struct {
	quantum cluster.Span
	blind   bool // all jobs count alike
	users   bool // users of a tenant count alike
	tenants map[string]*cluster.Tenant
	weights map[string]int64 // of accounts, by their path, and of tenants
}

// RuleOf gives the rule of a site. Where a policy divides GPU models, all jobs count alike, as in its division.
func RuleOf(s *cluster.Settings, tenants []cluster.Tenant) *Rule {
	r := &Rule{blind: s.Slices == nil || s.Divides(), users: s.Users == cluster.UsersEqual}
	if !r.blind {
		r.quantum = s.Slices.Quantum
		r.tenants, r.weights = weigh(tenants)
	}
	return r
}

// Turns gives the turns of the jobs on a GPU, which hold this part of it together; nil = all are equal: a quantum.
func (r *Rule) Turns(jobs []Job, all cluster.MicroGPU) []cluster.Turn {
	times := r.Times(jobs)
	if times == nil {
		return nil
	}
	out, cycle, shortest := make([]cluster.Turn, len(jobs)), cluster.Span(0), slices.Min(times)
	rest := all
	for k, t := range times {
		out[k] = cluster.Turn{Part: all.At(t), Lasts: cluster.Span(cluster.MulDiv(int64(r.quantum), int64(t), int64(shortest)))}
		cycle, rest = cycle+out[k].Lasts, rest-out[k].Part
	}
	out[0].Part += rest
	for k := range out {
		out[k].Away = cycle - out[k].Lasts
	}
	return out
}

// Times gives the part of the time of a GPU that each of the jobs there has, in millionths, in all a whole GPU; nil = all are equal.
func (r *Rule) Times(jobs []Job) []cluster.MicroGPU {
	if len(jobs) < 2 || r.blind {
		return nil
	}
	paths, all := make([][]step, len(jobs)), make([]int, len(jobs))
	for k := range jobs {
		paths[k], all[k] = r.path(jobs[k]), k
	}
	out := make([]cluster.MicroGPU, len(jobs))
	divide(out, paths, all, 0, cluster.WholeGPU, least(r.quantum, len(jobs)))
	if slices.Max(out)-slices.Min(out) <= alike {
		return nil
	}
	return out
}

// step is one of those that divide a GPU, with its weight among others on the same level.
type step struct {
	name   string
	weight int64
}

// path gives the steps from root to a job.
func (r *Rule) path(j Job) []step {
	var out []step
	if t := r.tenants[j.Tenant]; t != nil {
		for d := range t.Above {
			at := pathOf(t.Above[:d+1])
			out = append(out, step{at, r.weights[at]})
		}
	}
	out = append(out, step{j.Tenant, r.weights[j.Tenant]})
	if r.users {
		out = append(out, step{j.User, 1})
	}
	return out
}

// pathOf gives the path of an account, which is no tenant's name.
func pathOf(above []string) string { return "/" + strings.Join(above, "/") }

// weigh gives tenants by name, and the weights of tenants and of the accounts above them. A tenant whose budget is used up has none, unless that holds for
// all with a weight.
func weigh(tenants []cluster.Tenant) (byName map[string]*cluster.Tenant, weights map[string]int64) {
	byName, weights = make(map[string]*cluster.Tenant, len(tenants)), make(map[string]int64, len(tenants))
	funded := cluster.Funded(tenants)
	for i := range tenants {
		t := &tenants[i]
		if byName[t.Name] = t; funded && t.Budget.Since != 0 {
			continue
		}
		weights[t.Name] = t.Weight
		for d := range t.Above {
			weights[pathOf(t.Above[:d+1])] += t.Weight
		}
	}
	return byName, weights
}

// least gives the least part of the time of a GPU that each of its jobs has.
func least(quantum cluster.Span, jobs int) cluster.MicroGPU {
	away := max(Longest, quantum*cluster.Span(jobs-1))
	return cluster.MicroGPU(cluster.MulDiv(int64(cluster.WholeGPU), int64(quantum), int64(quantum+away)))
}

// divide divides a part of a GPU between jobs whose paths are the same up to a depth. Each job has the least part or more. A light one has
// that from those first with which it shares most of its path: nobody gains by jobs that have little weight.
func divide(out []cluster.MicroGPU, paths [][]step, jobs []int, depth int, part, least cluster.MicroGPU) {
	if len(jobs) == 1 {
		out[jobs[0]] = part
		return
	}
	var groups []group
	for _, k := range jobs {
		s, g := step{weight: 1}, -1
		if depth < len(paths[k]) {
			s = paths[k][depth]
			g = slices.IndexFunc(groups, func(g group) bool { return g.step == s })
		}
		if g < 0 {
			g, groups = len(groups), append(groups, group{step: s})
		}
		groups[g].jobs = append(groups[g].jobs, k)
	}
	if !slices.ContainsFunc(groups, func(g group) bool { return g.weight > 0 }) {
		for g := range groups {
			groups[g].weight = 1
		}
	}
	for g, share := range shares(groups, part, least) {
		divide(out, paths, groups[g].jobs, depth+1, share, least)
	}
}

// group is the jobs that have a step in common.
type group struct {
	step
	jobs []int
}

// shares divides a part of a GPU between groups by weight, but none has less than the least part for each of its jobs.
func shares(groups []group, part, least cluster.MicroGPU) []cluster.MicroGPU {
	out := make([]cluster.MicroGPU, len(groups))
	for low := true; low; { // those that have too little have the least part, and the others have less by that
		left, weight, last := part, int64(0), 0
		for g := range groups {
			if left -= out[g]; out[g] == 0 {
				weight, last = weight+groups[g].weight, g
			}
		}
		by := make([]cluster.MicroGPU, len(groups))
		rest := left
		low = false
		for g := range groups {
			if out[g] > 0 {
				continue
			}
			by[g] = cluster.MicroGPU(cluster.MulDiv(int64(left), groups[g].weight, weight))
			if g == last {
				by[g] = rest
			}
			rest -= by[g]
			if bound := least * cluster.MicroGPU(len(groups[g].jobs)); by[g] < bound {
				out[g], low = bound, true
			}
		}
		for g := range groups {
			if !low && out[g] == 0 {
				out[g] = by[g]
			}
		}
	}
	return out
}
