package e2e

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Finish-time fairness: all jobs have the same work to do on their faster model, by gang, and would be done at the same time with an equal
// share each. No tenant's jobs are slower than with equal shares, and none is served much better than another.
func finishesAlike(r *rig) {
	r.shut()
	jobs := r.enterMixed()
	r.govern()
	r.terms(2)
	c := r.terms(12)
	r.halt()
	c.paysDues(r)
	lowest, highest := 100.0, 0.0
	for tenant, ids := range jobs {
		speedup := float64(speedups[tenant])
		// 24 jobs share 8 GPUs of each model.
		level := (c.sum(ids, "k80") + speedup*c.sum(ids, "v100")) / c.span / float64(len(ids)) / (8 * (1 + speedup) / 24)
		r.t.Logf("the jobs of %s are %.2f times as fast as with equal shares", tenant, level)
		lowest, highest = min(lowest, level), max(highest, level)
	}
	if lowest < 0.95 || highest > 1.5*lowest { // hand-overs cost a little
		r.t.Errorf("by tenant jobs are %.2f to %.2f times as fast as with equal shares", lowest, highest)
	}
	r.served(jobs)
}

// First come, first served, each on its fastest model.
func firstComeFirst(r *rig) { queues(r, false) }

// The job with the least work left first, on its fastest model.
func shortestFirst(r *rig) { queues(r, true) }

// queues lets 24 jobs of one GPU queue for 16 GPUs. Every other one gains from a v100. The first ones in the order of the policy run all the
// time on their fastest model, and when some of them end, the next ones do. The jobs are submitted in this order, or backwards with the
// shortest last.
func queues(r *rig, shortest bool) {
	const n, gpus = 24, 16
	r.shut()
	ids, kinds, fastest := make([]string, n), [2]string{"lstm", "vae"}, [2]string{"v100", "k80"}
	for rank := range n {
		limit := 60
		if shortest {
			rank = n - 1 - rank
			limit = 30 + 2*rank
		}
		ids[rank] = r.enter([2]string{"nlp", "vision"}[rank%2], kinds[rank%2], 1, "-t", fmt.Sprint(limit))
	}
	r.govern()
	r.terms(2)
	check := func(c course, first int) {
		r.t.Helper()
		var percent []int
		for rank := first; rank < n; rank++ {
			ran := c.ran[ids[rank]]
			all, its := 100*(ran["v100"]+ran["k80"])/c.span, 100*ran[fastest[rank%2]]/c.span
			percent = append(percent, int(all))
			if served := rank < first+gpus; served && its < 80 || !served && all > 15 {
				r.t.Errorf("job %d, with jobs %d to %d first in line, ran for %.0f %% of the time, for %.0f %% on its fastest model", rank, first, first+gpus-1, all, its)
			}
		}
		r.t.Logf("jobs %d to %d ran for these percents of the time: %v", first, n-1, percent)
	}
	check(r.terms(4), 0)
	const end = 4
	if out, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, ids[:end]...)...); err != nil {
		r.t.Fatal(out, err)
	}
	r.terms(2)
	check(r.terms(4), end)
	r.halt()
	r.keepsAll(ids[end:])
}

// The steps that cost least are done: those of jobs that gain most from a v100, at three times the price of a k80. The GPUs that the policy
// leaves idle are lent to whoever waits.
func cheapestAlone(r *rig) {
	r.settings.Prices = []cluster.Price{{Model: "k80", Price: 1}, {Model: "v100", Price: 3}}
	r.shut()
	jobs := r.enterMixed()
	r.govern()
	r.terms(2)
	c := r.terms(8)
	r.halt()
	all := 0.0
	for tenant, ids := range jobs {
		k80, v100 := c.sum(ids, "k80")/c.span, c.sum(ids, "v100")/c.span
		r.t.Logf("%s had %.2f k80 and %.2f v100", tenant, k80, v100)
		if all += k80 + v100; tenant == "nlp" && v100 < 7 || tenant != "nlp" && v100 > 1 {
			r.t.Errorf("%s had %.2f of 8 v100, which do steps at the least cost with the jobs of nlp", tenant, v100)
		}
		r.keepsAll(ids)
	}
	if all < 14 {
		r.t.Errorf("of 16 GPUs %.2f were in use, though others waited", all)
	}
}

// Two tenants have virtual clusters and all have a part of the rest. Each gets its own cells for itself, and of the rest what the policy promises
// it; inside, each type of its jobs gets what the policy gives it. Every job is served, and none is lost.
func dividesCells(r *rig) {
	d := &cluster.Cells{Types: []cluster.CellType{{Name: "v100", Model: "v100"}, {Name: "v100-node", Child: "v100", Split: 4, Node: true},
		{Name: "k80", Model: "k80"}, {Name: "k80-node", Child: "k80", Split: 4, Node: true}}}
	for _, n := range []string{"k1", "k2", "v1"} {
		d.Tops = append(d.Tops, cluster.TopCell{Name: n, Type: map[byte]string{'k': "k80-node", 'v': "v100-node"}[n[0]], Nodes: []string{n}})
	}
	d.VCs = []cluster.VC{{Name: "nlp", Cells: []cluster.CellQuota{{Type: "k80-node", Cells: 1}, {Type: "v100-node", Cells: 1}}},
		{Name: "vision", Cells: []cluster.CellQuota{{Type: "k80-node", Cells: 1}}}}
	r.rules.Cells, r.settings.Chooser = d, cluster.CellsByShare
	r.shut()
	jobs, kinds := map[string][]string{}, map[string][]string{}
	for _, x := range []struct {
		tenant string
		gangs  []int // of each type, for more GPUs than the tenant is due
	}{{"nlp", []int{1, 1, 2, 4}}, {"vision", []int{1, 1, 2}}, {"speech", []int{1, 2}}} {
		for _, gang := range x.gangs {
			for _, kind := range []string{"bert", "lstm", "vae"} {
				id := r.enter(x.tenant, kind, gang)
				jobs[x.tenant], kinds[x.tenant+"/"+kind] = append(jobs[x.tenant], id), append(kinds[x.tenant+"/"+kind], id)
			}
		}
	}
	r.govern()
	r.terms(2)
	c := r.terms(12)
	r.halt()
	c.paysDues(r)
	for tenant, cells := range map[string]map[string]float64{"nlp": {"k80": 4, "v100": 4}, "vision": {"k80": 4}} {
		for model, gpus := range cells {
			had := c.sum(jobs[tenant], model) / c.span
			r.t.Logf("%s had %.2f %s, and %.0f in its cells", tenant, had, model, gpus)
			if had < 0.88*gpus {
				r.t.Errorf("%s had %.2f %s of the %.0f in its cells", tenant, had, model, gpus)
			}
		}
	}
	kindOf := map[string]string{} // by party of a preset that divides between jobs
	for rec := range c.after.State.All() {
		for kind, ids := range kinds {
			if slices.Contains(ids, rec.ID.String()) {
				kindOf[fmt.Sprintf("%s/%010d", rec.Tenant, rec.Key)] = kind
			}
		}
	}
	due := map[string]map[string]float64{}
	for kind := range kinds {
		due[kind] = map[string]float64{}
	}
	for _, row := range c.after.State.Parties {
		if of := due[cmp.Or(kindOf[row.Party], row.Party)]; of != nil { // else it is the account of a tenant
			of[row.Pool] += float64(row.Entitlement) / float64(cluster.WholeGPU)
		}
	}
	off := float64(r.off(3)) / 1000 / c.span
	for kind, ids := range kinds {
		for model, want := range due[kind] {
			had := c.sum(ids, model) / c.span
			r.t.Logf("%s had %.2f %s of %.2f", kind, had, model, want)
			if math.Abs(had-want) > off {
				r.t.Errorf("%s had %.2f %s and was due %.2f: too far apart", kind, had, model, want)
			}
		}
	}
	if p := c.after; p.Cells == nil || p.Cells.Unsafe != nil {
		r.t.Errorf("the cells are not safe: %+v", p.Cells)
	}
	r.served(jobs)
}
