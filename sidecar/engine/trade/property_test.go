package trade

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// anyMarket draws models, and parties of some tenants; what each is due is some share of
// the models' GPUs.
func anyMarket(t *rapid.T) (models []string, parties []Party, rules Rules) {
	for m := range rapid.IntRange(1, 4).Draw(t, "models") {
		models = append(models, fmt.Sprint("model ", m))
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "parties") {
		p := Party{Name: Name{Tenant: fmt.Sprint("tenant ", i)}}
		if i > 0 && rapid.IntRange(0, 5).Draw(t, "second kind") == 0 {
			p.Name = Name{Tenant: parties[i-1].Tenant, Kind: fmt.Sprint("kind ", i)}
		}
		parties = append(parties, anyParty(t, p.Name, len(models)))
	}
	rules = Rules{
		Least: rapid.SampledFrom([]cluster.MicroGPU{0, 1000, gpu / 8}).Draw(t, "least"),
		Edge:  rapid.SampledFrom([]float64{0, 0.01, 0.3}).Draw(t, "edge"),
	}
	return models, parties, rules
}

func anyParty(t *rapid.T, name Name, models int) Party {
	p := Party{Name: name}
	held := cluster.MicroGPU(0)
	for range models {
		p.GPUs = append(p.GPUs, cluster.MicroGPU(rapid.OneOf(
			rapid.Map(rapid.Int64Range(0, 8), func(n int64) int64 { return n * int64(gpu) }), rapid.Int64Range(0, int64(8*gpu)),
		).Draw(t, "GPUs")))
		held += p.GPUs[len(p.GPUs)-1]
	}
	p.Demand = max(held+cluster.MicroGPU(rapid.IntRange(-8, 40).Draw(t, "more"))*gpu, 0)
	p.Speed = anySpeeds(t, models)
	return p
}

func anySpeeds(t *rapid.T, models int) (speeds []Speed) {
	for range models {
		v := exactly(rapid.OneOf(
			rapid.Float64Range(0.5, 8), rapid.Map(rapid.IntRange(1, 4), func(n int) float64 { return float64(n) }),
			rapid.SampledFrom([]float64{0, 1e-9, 1e9}),
		).Draw(t, "speed"))
		if rapid.Bool().Draw(t, "bounded") {
			v.High *= rapid.Float64Range(1, 1.5).Draw(t, "spread")
		}
		speeds = append(speeds, v)
	}
	return speeds
}

// worth is what GPUs are worth to a party that uses the best of them, with the least
// that its jobs can do there, or the middle.
func (p *Party) worth(gpus []cluster.MicroGPU, middle bool) float64 {
	q := Party{GPUs: gpus, Demand: p.Demand, Speed: p.relative(len(gpus))}
	own, _ := q.usable(len(gpus))
	sum := 0.0
	for m, n := range own {
		if v := q.Speed[m]; middle {
			sum += v.middle() * float64(n)
		} else {
			sum += v.Low * float64(n)
		}
	}
	return sum
}

// legal fails where GPUs appear or vanish, or somebody is below the throughput of its share: with the least that its jobs can do, or of trades
// that were made at other bounds with the middle.
func legal(t *rapid.T, what string, models []string, parties []Party, gpus [][]cluster.MicroGPU, middle bool) {
	for m, model := range models {
		before, after := cluster.MicroGPU(0), cluster.MicroGPU(0)
		for i := range parties {
			before += parties[i].GPUs[m]
			after += gpus[i][m]
			if gpus[i][m] < 0 {
				t.Fatalf("%s: %v has %d of %s", what, parties[i].Name, gpus[i][m], model)
			}
		}
		if before != after {
			t.Fatalf("%s: there were %d of %s, there are %d", what, before, model, after)
		}
	}
	for i := range parties {
		if before, after := parties[i].worth(parties[i].GPUs, middle), parties[i].worth(gpus[i], middle); after < before*(1-1e-9) {
			t.Fatalf("%s: %v falls from %v to %v", what, parties[i].Name, before, after)
		}
	}
}

// settled fails where with these trades in force one is left that would gain.
func settled(t *rapid.T, models []string, parties []Party, inForce []Trade, rules Rules) {
	b := newBook(models, parties, rules)
	b.replay(inForce)
	least := float64(b.rules.Least)
	for fast := range models {
		for slow := fast + 1; slow < len(models); slow++ {
			for to := range b.parties {
				for from := range b.parties {
					bid, ask := b.parties[to].bid(fast, slow), b.parties[from].ask(fast, slow)
					// Below that no whole millionth is between the two.
					if b.parties[to].Tenant == b.parties[from].Tenant || ask <= 0 || bid <= ask*(1+rules.Edge) || least*(bid-ask) < 2 {
						continue
					}
					q := min(float64(b.own[from][fast]), float64(b.own[to][slow])/bid)
					if bid > 1 {
						q = min(q, float64(b.room[from])/(bid-1))
					}
					if ask < 1 {
						q = min(q, float64(b.room[to])/(1-ask))
					}
					if q > least+1 && q*ask > least+1 {
						t.Fatalf("%v bids %v and %v asks %v for a %s in %s: %v are left to trade", b.parties[to].Name, bid, b.parties[from].Name, ask, models[fast], models[slow], q)
					}
				}
			}
		}
	}
}

// Whatever tenants have, want and say: no GPU is lost, trading lowers nobody, both sides of
// each trade gain, and in the end none is left that would. The same again changes nothing, and
// the order of the parties does not matter.
func TestTradingIsFairAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		models, parties, rules := anyMarket(t)
		o := Decide(models, parties, nil, rules)
		legal(t, "trading", models, parties, o.GPUs, false)
		settled(t, models, parties, o.New, rules)
		for _, tr := range o.New {
			if tr.FastToGain < -1e-12 || tr.SlowToGain < -1e-12 || tr.FastToGain+tr.SlowToGain <= 0 {
				t.Fatalf("one of the two loses: %+v", tr)
			}
			if tr.Price < tr.SlowToSpeedup || tr.Price > tr.FastToSpeedup || min(tr.FastGPUs, tr.SlowGPUs) < max(rules.Least, 1000) {
				t.Fatalf("not what was asked: %+v", tr)
			}
		}
		again := Decide(models, parties, o.New, rules)
		if len(again.New) > 0 || len(again.Undone) > 0 || !reflect.DeepEqual(again.Kept, o.New) || !reflect.DeepEqual(again.GPUs, o.GPUs) {
			t.Fatalf("the same market again has %d new trades and undoes %d, after %d", len(again.New), len(again.Undone), len(o.New))
		}
		order := rapid.Permutation(upTo(len(parties))).Draw(t, "order")
		shuffled := make([]Party, len(parties))
		for k, i := range order {
			shuffled[k] = parties[i]
		}
		other := Decide(models, shuffled, nil, rules)
		for k, i := range order {
			if !slices.Equal(other.GPUs[k], o.GPUs[i]) {
				t.Fatalf("%v has %v, and in another order %v", parties[i].Name, o.GPUs[i], other.GPUs[k])
			}
		}
		if !reflect.DeepEqual(other.New, o.New) {
			t.Fatalf("in another order of parties the trades are\n%+v\nnot\n%+v", other.New, o.New)
		}
	})
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Whatever happens to a market with trades in force, arrivals, departures, other shares, demands
// and speedups: the trades that stay, those and the new ones, lower nobody; what is taken back
// of a trade and what stays of it add up; and the next time nothing changes.
func TestUndoingIsFairAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		models, parties, rules := anyMarket(t)
		held := Decide(models, parties, nil, rules).New
		for round := range 3 {
			var next []Party
			for _, p := range parties {
				switch rapid.IntRange(0, 5).Draw(t, "event") {
				case 0: // it leaves
				case 1:
					next = append(next, anyParty(t, p.Name, len(models)))
				case 2:
					p.Speed = anySpeeds(t, len(models))
					next = append(next, p)
				default:
					next = append(next, p)
				}
			}
			next = append(next, anyParty(t, Name{Tenant: fmt.Sprint("new in round ", round)}, len(models)))
			parties = next
			b := newBook(models, parties, rules)
			kept, _ := b.replay(held)
			legal(t, "what stays", models, parties, b.due(parties), true)
			o := Decide(models, parties, held, rules)
			legal(t, "what stays and new trades", models, parties, o.GPUs, true)
			settled(t, models, parties, slices.Concat(o.Kept, o.New), rules)
			stay := map[int]Trade{}
			at := 0
			for i := range held {
				if k := slices.IndexFunc(o.Undone, func(u Undone) bool { return u.At == i && u.All }); k < 0 {
					stay[i] = kept[at]
					at++
				}
			}
			if at != len(kept) || !reflect.DeepEqual(kept, o.Kept) {
				t.Fatalf("%d trades stay, %d are not undone", len(kept), at)
			}
			for _, u := range o.Undone {
				if u.FastGPUs+stay[u.At].FastGPUs != held[u.At].FastGPUs || u.SlowGPUs+stay[u.At].SlowGPUs != held[u.At].SlowGPUs || u.Why == "" {
					t.Fatalf("of %+v %+v is undone and %+v stays", held[u.At], u, stay[u.At])
				}
			}
			held = append(slices.Clone(o.Kept), o.New...)
			again := Decide(models, parties, held, rules)
			if len(again.New) > 0 || len(again.Undone) > 0 || !reflect.DeepEqual(again.GPUs, o.GPUs) {
				t.Fatalf("the same market again has %d new trades and undoes %d, after %d", len(again.New), len(again.Undone), len(o.New))
			}
		}
		for i := range parties {
			parties[i].Speed = nil
		}
		if o := Decide(models, parties, held, rules); !reflect.DeepEqual(o.GPUs, newBook(models, parties, rules).due(parties)) || len(o.Undone) != len(held) {
			t.Fatalf("all is undone, and yet: %+v", o)
		}
	})
}
