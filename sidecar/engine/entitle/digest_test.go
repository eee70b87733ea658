package entitle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A request's digest is that of its bids in any order, and another one when any part of it changes.
func TestDigest(t *testing.T) {
	terms := func(change func(*cluster.Terms)) digest {
		x := cluster.Terms{Speeds: []float64{1, 2}, Basis: []cluster.Source{cluster.Observed, cluster.Declared}}
		change(&x)
		return digestOfTerms(&x)
	}
	same := func(*cluster.Terms) {}
	bid := func(name string, numbers ...int64) digest {
		d := terms(same)
		d.text(name)
		for _, n := range numbers {
			d.number(n)
		}
		return d
	}
	request := func(change func(*cluster.AllocationRequest)) string {
		q := cluster.AllocationRequest{Policy: "gavel:las", Pools: []cluster.GPUs{{Model: "k80", Count: 4}}, Prices: []float64{1},
			Cells: []cluster.CellGPUs{{Tenant: "ml", GPUs: []int{2}, Lots: []cluster.CellLot{{Chain: "c", Type: "t", GPUs: 1, Cells: 2}}}}}
		change(&q)
		return digestOf(&q, 3, []digest{bid("ml/1", 4), bid("ml/2", 4)})
	}
	was, of := request(func(*cluster.AllocationRequest) {}), digestOf(&cluster.AllocationRequest{}, 0, []digest{bid("a"), bid("b"), bid("c")})
	if again := digestOf(&cluster.AllocationRequest{}, 0, []digest{bid("c"), bid("a"), bid("b")}); again != of {
		t.Errorf("%s in one order, %s in another", of, again)
	}
	seen := map[string]string{was: "the request", of: "three bids"}
	check := func(what, sum string) {
		if other, known := seen[sum]; known {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[sum] = what
	}
	for k, change := range []func(*cluster.AllocationRequest){
		func(q *cluster.AllocationRequest) { q.Policy = "gavel:ftf" },
		func(q *cluster.AllocationRequest) { q.MostKinds = 1 },
		func(q *cluster.AllocationRequest) { q.Pools[0].Model = "v100" },
		func(q *cluster.AllocationRequest) { q.Pools[0].Count++ },
		func(q *cluster.AllocationRequest) { q.Prices[0] = 2 },
		func(q *cluster.AllocationRequest) { q.Prices = nil },
		func(q *cluster.AllocationRequest) { q.Cells[0].Tenant = "nlp" },
		func(q *cluster.AllocationRequest) { q.Cells[0].GPUs, q.Cells[0].Base = nil, []int{2} },
		func(q *cluster.AllocationRequest) { q.Cells[0].Lots[0].Chain = "t" },
		func(q *cluster.AllocationRequest) { q.Cells[0].Lots[0].Cells++ },
		func(q *cluster.AllocationRequest) { q.Cells = nil },
	} {
		check(fmt.Sprint("change ", k), request(change))
	}
	for k, bids := range [][]digest{
		nil, {bid("a"), bid("b")}, {bid("a"), bid("a"), bid("b"), bid("b"), bid("c")}, {bid("a"), bid("b"), bid("d")}, {bid("a", 0), bid("b"), bid("c")},
		{bid("ab"), bid(""), bid("c")}, {bid("a\x00"), bid("b"), bid("c")}, {bid("a", 1, 2), bid("b"), bid("c")}, {bid("a", 2, 1), bid("b"), bid("c")},
		{bid("a", 1), bid("b", 2), bid("c")}, {bid("a", 2), bid("b", 1), bid("c")},
	} {
		check(fmt.Sprint("bids ", k), digestOf(&cluster.AllocationRequest{}, 0, bids))
	}
	sums := []digest{terms(same), terms(func(x *cluster.Terms) { x.Speeds[1] = 3 }), terms(func(x *cluster.Terms) { x.Speeds[0] = 0 }),
		terms(func(x *cluster.Terms) { x.Basis[0] = cluster.Estimated }), terms(func(x *cluster.Terms) { x.Basis[0] = "" })}
	for k := range sums {
		if slices.Contains(sums[:k], sums[k]) {
			t.Errorf("terms %d have the digest of others", k)
		}
	}
	if terms(func(x *cluster.Terms) { x.Speeds[0] = 5 }) != sums[0] {
		t.Error("a new report on a known speed does not wait for the next epoch")
	}
}
