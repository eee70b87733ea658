package policy

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

var ways = map[string]Ways{"las": {}, "las-blind": {Blind: true}, "las-fifo": {FIFO: true}}

// tenants is a problem of jobs alone: gangs, weights, users, models that some cannot use.
func tenants(t *rapid.T) Problem {
	p := drawn(t)
	p.Pairs = nil
	for i := range p.Models {
		p.Models[i].Together = nil
	}
	users := rapid.IntRange(0, 2).Draw(t, "users")
	for m := range p.Jobs {
		j := &p.Jobs[m]
		if j.Apart = nil; users > 0 {
			j.User = fmt.Sprint("u", rapid.IntRange(0, users).Draw(t, "user"))
		}
	}
	for e := range p.Entities {
		p.Entities[e].FIFO = false
	}
	return p
}

func nested(t *rapid.T, name string, p Problem) Shares {
	s, err := Nested(p, ways[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if why := infeasible(p, s) + s.Why; why != "" {
		t.Fatalf("%s: %s", name, why)
	}
	return s
}

// seen is the problem as a policy sees it, with the throughput of each job at level 1.
func seen(name string, p Problem) (Problem, *division, []float64) {
	if ways[name].Blind {
		p = blind(p)
	}
	d := newDivision(p, Options{Eligible: true}, false)
	return p, d, d.in.ones(false)
}

// heights gives the level of each job.
func heights(name string, p Problem, s Shares) []float64 {
	p, d, one := seen(name, p)
	out := achieved(p, s)
	for m := range out {
		if out[m] /= one[m]; d.in.top[m] == 0 {
			out[m] = 0
		}
	}
	return out
}

// only gives the problem of some of the jobs on a part of all GPUs.
func only(p Problem, part float64, in func(j *Job) bool) (out Problem) {
	out = p
	out.Models, out.Jobs = append([]Model(nil), p.Models...), nil
	for i := range out.Models {
		out.Models[i].GPUs *= part
	}
	for m := range p.Jobs {
		if in(&p.Jobs[m]) {
			out.Jobs = append(out.Jobs, p.Jobs[m])
		}
	}
	return out
}

func sumOf(levels []float64) (sum float64) {
	for _, l := range levels {
		sum += l
	}
	return sum
}

// A tenant has at least the normalised throughput that the policy gives it of its weighted share, by itself, with the jobs that it has; and so
// has a user of an equal part of that. Where its jobs are of one user and not in turn, that is no less than a part of all the GPUs of its share for each
// job, or one for each GPU that it asks for.
func TestEveryTenantHasItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := tenants(t)
		for name := range ways {
			_, d, _ := seen(name, p)
			levels := heights(name, p, nested(t, name, p))
			gpus, weights := 0.0, 0.0
			for _, m := range p.Models {
				gpus += m.GPUs
			}
			present := map[int]map[string]bool{}
			for m, j := range p.Jobs {
				if d.in.top[m] > 0 && present[j.Entity] == nil {
					present[j.Entity], weights = map[string]bool{}, weights+p.Entities[j.Entity].Weight
				}
				if d.in.top[m] > 0 {
					present[j.Entity][j.User] = true
				}
			}
			check := func(who string, part float64, in func(j *Job) bool) {
				had, demand, everywhere, users := 0.0, 0.0, true, map[string]bool{}
				for m := range p.Jobs {
					if j := &p.Jobs[m]; in(j) {
						had += levels[m]
						users[j.User] = true
						for _, v := range j.Speed {
							everywhere = everywhere && v > 0
						}
						demand += float64(j.Gang)
					}
				}
				alone := only(p, part, in)
				due := sumOf(heights(name, alone, nested(t, name, alone)))
				if had < due*(1-1e-6)-1e-6 {
					t.Fatalf("%s: %s has %v, and would have %v of its share", name, who, had, due)
				}
				if least := min(demand, gpus*part); everywhere && len(users) == 1 && !ways[name].FIFO && due < least*(1-1e-6)-1e-6 {
					t.Fatalf("%s: %s would have %v of its share by itself, and %v by an equal part for each job", name, who, due, least)
				}
			}
			for e, users := range present {
				part := p.Entities[e].Weight / weights
				check(fmt.Sprint("tenant ", e), part, func(j *Job) bool { return j.Entity == e })
				for u := range users {
					check(fmt.Sprint("user ", u, " of ", e), part/float64(len(users)), func(j *Job) bool { return j.Entity == e && j.User == u })
				}
			}
		}
	})
}

// On one model the GPUs are divided by halving, at each step: between tenants, then users, then jobs, and none has more
// than it can use. So a job's siblings have the rest that it cannot use.
func TestTheSiblingsHaveTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := tenants(t)
		p.Models = p.Models[:1]
		for m := range p.Jobs {
			p.Jobs[m].Speed = p.Jobs[m].Speed[:1]
		}
		for name, w := range ways {
			_, d, _ := seen(name, p)
			levels := heights(name, p, nested(t, name, p))
			type part struct {
				weight, cap float64
				jobs        []int
			}
			divide := func(gpus float64, parts []part) (out []float64) {
				low, high := 0.0, 1e9
				for range 200 {
					h, sum := (low+high)/2, 0.0
					out = out[:0]
					for _, x := range parts {
						out = append(out, min(h*x.weight, x.cap))
						sum += out[len(out)-1]
					}
					if sum > gpus {
						high = h
					} else {
						low = h
					}
				}
				return out
			}
			var all []part
			for e := range p.Entities {
				x := part{weight: p.Entities[e].Weight}
				for m, j := range p.Jobs {
					if j.Entity == e && d.in.top[m] > 0 {
						x.jobs, x.cap = append(x.jobs, m), x.cap+float64(j.Gang)
					}
				}
				all = append(all, x)
			}
			want := make([]float64, len(p.Jobs))
			for i, gpus := range divide(p.Models[0].GPUs, all) {
				var users []part
				at := map[string]int{}
				for _, m := range all[i].jobs {
					u := p.Jobs[m].User
					if _, ok := at[u]; !ok {
						at[u] = len(users)
						users = append(users, part{weight: 1})
					}
					x := &users[at[u]]
					x.jobs, x.cap = append(x.jobs, m), x.cap+float64(p.Jobs[m].Gang)
				}
				for u, gpus := range divide(gpus, users) {
					var jobs []part
					for _, m := range users[u].jobs {
						jobs = append(jobs, part{weight: p.Jobs[m].Weight, cap: float64(p.Jobs[m].Gang)})
					}
					got := divide(gpus, jobs)
					for k, m := range users[u].jobs {
						if want[m] = got[k]; w.FIFO {
							want[m] = min(gpus, jobs[k].cap)
							gpus -= want[m]
						}
					}
				}
			}
			for m := range want {
				if math.Abs(levels[m]-want[m]) > 1e-6*max(want[m], 1) {
					t.Fatalf("%s: levels %v, want %v", name, levels, want)
				}
			}
		}
	})
}

// Nobody can have more with nobody worse off.
func TestNestedIsEfficient(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := tenants(t)
		for name := range ways {
			if ways[name].Blind {
				efficient(t, name, blind(p), nested(t, name, p))
			} else {
				efficient(t, name, p, nested(t, name, p))
			}
		}
	})
}

// Without an answer of the program each tenant has its weighted share: its jobs divide that, and none has more than all the time.
func TestFixedSharesOfTenants(t *testing.T) {
	p := Problem{Models: gpus(8, 8), Jobs: jobs([]float64{1, 2}, []float64{1, 2}, []float64{1, 2}, []float64{1, 2}), Entities: []Entity{{Weight: 1}, {Weight: 1}}}
	for m, gang := range []int{1, 8, 8, 16} {
		p.Jobs[m].Gang, p.Jobs[m].Entity = gang, m/3
	}
	d := newDivision(p, Options{Eligible: true}, false)
	d.take(d.in.fixed(d.in.users()))
	got := make([]float64, 4)
	for m, row := range d.shares().Time {
		got[m] = (row[0] + row[1]) * float64(p.Jobs[m].Gang)
	}
	for m, want := range []float64{1, 3.5, 3.5, 8} {
		if math.Abs(got[m]-want) > 1e-6 {
			t.Fatalf("GPUs %v, want 1, 3.5, 3.5 and 8", got)
		}
	}
}

// With pairs no job does less than alone, and nobody has more GPUs.
func TestNestedPairs(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := tenants(rt)
		p.Pairs = pairsOf(rt, p.Jobs)
		alone := p
		alone.Pairs = nil
		for name := range ways {
			s, a := nested(rt, name, p), nested(rt, name, alone)
			for e, gpus := range gpusOf(p, s) {
				for i, n := range gpus {
					if least := gpusOf(alone, a)[e][i]; n > least+1e-5 {
						rt.Fatalf("%s: entity %d has %v GPUs of model %d with pairs, %v alone", name, e, n, i, least)
					}
				}
			}
			with, without := achieved(p, s), achieved(alone, a)
			for m := range with {
				if with[m] < (1-1e-6)*without[m]-1e-9 && name != "las-blind" { // that one does not know how fast they are
					rt.Fatalf("%s: job %d does %v with pairs, %v alone", name, m, with[m], without[m])
				}
			}
		}
	})
}

// gpusOf gives the GPUs of each model that the jobs of each entity have; of a pair of two, half each.
func gpusOf(p Problem, s Shares) [][]float64 {
	out := make([][]float64, len(p.Entities))
	for e := range out {
		out[e] = make([]float64, len(p.Models))
	}
	for m, j := range p.Jobs {
		for i, part := range s.Time[m] {
			out[j.Entity][i] += part * float64(j.Gang)
		}
	}
	for q, x := range p.Pairs {
		for i, part := range s.PairTime[q] {
			for _, m := range []int{x.A, x.B} {
				out[p.Jobs[m].Entity][i] += part / 2 * float64(p.Jobs[m].Gang)
			}
		}
	}
	return out
}
