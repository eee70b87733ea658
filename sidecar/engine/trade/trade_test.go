package trade

import (
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

var two = []string{"fast", "slow"}

func share(fast, slow cluster.MicroGPU) []cluster.MicroGPU {
	return []cluster.MicroGPU{fast * gpu, slow * gpu}
}

// bounded makes a user of whose speedup bounds are known.
func bounded(name string, gpus []cluster.MicroGPU, low, high float64) Party {
	p := user(name, gpus, 1, 1)
	p.Speed[0] = Speed{low, high}
	return p
}

// one decides and expects one new trade.
func one(t *testing.T, parties []Party) Trade {
	t.Helper()
	o := Decide(two, parties, nil, Rules{Least: 1000})
	if len(o.New) != 1 {
		t.Fatalf("%d trades, want 1: %+v", len(o.New), o.New)
	}
	return o.New[0]
}

// taken is what is undone of a trade.
func taken(id int64, at int, fast, slow cluster.MicroGPU, why Why, all bool) Undone {
	return Undone{ID: id, At: at, FastGPUs: fast, SlowGPUs: slow, Why: why, All: all}
}

func TestPrice(t *testing.T) {
	for _, c := range []struct {
		name    string
		parties []Party
		price   float64
	}{
		{"two: the mean", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1)}, 3},
		{"three: the next bid", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1), user("c", share(0, 1), 3.5, 1)}, 3.5},
		{"the next bid is the same", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1), user("c", share(0, 1), 4, 1)}, 4},
		{"who has no slow GPUs does not bid", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1), user("c", share(0, 0), 3.5, 1)}, 3},
		{"a bid below what is asked is none", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1), user("c", share(0, 1), 1.5, 1)}, 3},
		{"a bid of as much as is asked is none", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1), user("c", share(0, 1), 2, 1)}, 3},
		{"nobody bids against itself", []Party{
			user("a", share(1, 0), 2, 1), {Name{Tenant: "b", Kind: "x"}, share(0, 9), 9 * gpu, []Speed{{4, 4}, {1, 1}}, nil}, {Name{Tenant: "b", Kind: "y"}, share(0, 1), gpu, []Speed{{3.5, 3.5}, {1, 1}}, nil},
		}, 3},
		{"the unit of speeds does not matter", []Party{user("a", share(1, 0), 200, 100), user("b", share(0, 9), 0.4, 0.1)}, 3},
		{"bounds: least of what is got, most of what is given", []Party{bounded("a", share(1, 0), 1, 2), bounded("b", share(0, 9), 4, 10)}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := one(t, c.parties); got.Price != c.price || got.FastTo.Tenant != "b" || got.SlowTo.Tenant != "a" {
				t.Errorf("got %+v, want a price of %v", got, c.price)
			}
		})
	}
}

// A trade is one if it is as large as the least, and if its parties differ by more than the edge.
func TestBoundsOfTrades(t *testing.T) {
	for _, c := range []struct {
		name    string
		parties []Party
		rules   Rules
		trades  int
	}{
		{"of just the least", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1)}, Rules{Least: gpu}, 1},
		{"of a millionth less", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 4, 1)}, Rules{Least: gpu + 1}, 0},
		{"they differ by just the edge", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 2.5, 1)}, Rules{Edge: 0.25}, 0},
		{"they differ by more", []Party{user("a", share(1, 0), 2, 1), user("b", share(0, 9), 2.6, 1)}, Rules{Edge: 0.25}, 1},
		{"a negative entitlement makes no room", []Party{{Name{Tenant: "a"}, share(4, -20), 4 * gpu, []Speed{{2, 2}, {1, 1}}, nil}, user("b", share(0, 20), 5, 1)}, Rules{}, 0},
		{"speeds are too small to be measurements", []Party{user("a", share(1, 0), 2e-13, 1e-13), user("b", share(0, 9), 4, 1)}, Rules{}, 0},
		{"there are no parties", nil, Rules{}, 0},
	} {
		if o := Decide(two, c.parties, nil, c.rules); len(o.New) != c.trades {
			t.Errorf("%s: trades %+v, want %d", c.name, o.New, c.trades)
		}
	}
}

// Kinds of one tenant do not trade with each other, bounds that overlap are no difference, and
// no edge no trade.
func TestNoTrade(t *testing.T) {
	for name, parties := range map[string][]Party{
		"one tenant":       {{Name{Tenant: "a", Kind: "x"}, share(4, 0), 99 * gpu, []Speed{{2, 2}, {1, 1}}, nil}, {Name{Tenant: "a", Kind: "y"}, share(0, 20), 99 * gpu, []Speed{{5, 5}, {1, 1}}, nil}},
		"alone":            {user("a", share(4, 20), 5, 1)},
		"alike":            {user("a", share(4, 20), 5, 1), user("b", share(4, 20), 5, 1)},
		"within bounds":    {bounded("a", share(4, 20), 2, 3), bounded("b", share(4, 20), 2.9, 4)},
		"not by the edge":  {user("a", share(4, 20), 2, 1), user("b", share(4, 20), 2.01, 1)},
		"no slow GPUs":     {user("a", share(4, 0), 2, 1), user("b", share(4, 0), 5, 1)},
		"no demand":        {user("a", share(4, 20), 2, 1), {Name{Tenant: "b"}, share(4, 20), 0, []Speed{{5, 5}, {1, 1}}, nil}},
		"no use for more":  {{Name{Tenant: "a"}, share(4, 20), 24 * gpu, []Speed{{2, 2}, {1, 1}}, nil}, user("b", share(4, 20), 5, 1)},
		"not known":        {user("a", share(4, 20), 2, 0), user("b", share(4, 20), 5, 1)},
		"nothing is known": {user("a", share(4, 20)), user("b", share(4, 20), 5, 1)},
	} {
		if o := Decide(two, parties, nil, Rules{Least: 1000, Edge: 0.01}); len(o.New) > 0 {
			t.Errorf("%s: %+v", name, o.New)
		}
	}
}

// GPUs beyond a tenant's demand are worth nothing to it, whichever they are: it neither buys
// with them nor sells more than it can use of what it gets.
func TestTradesStopAtDemand(t *testing.T) {
	// a can use two GPUs more than its 4+4: at a price of 3 it sells one.
	a := Party{Name{Tenant: "a"}, share(4, 4), 10 * gpu, []Speed{{2, 2}, {1, 1}}, nil}
	b := Party{Name{Tenant: "b"}, share(0, 20), 20 * gpu, []Speed{{4, 4}, {1, 1}}, nil}
	if got := one(t, []Party{a, b}); got.FastGPUs != gpu || got.SlowGPUs != 3*gpu {
		t.Errorf("got %+v", got)
	}
	// b can use three GPUs: three of its slow ones buy one fast.
	a.Demand, b.Demand = 100*gpu, 3*gpu
	if got := one(t, []Party{a, b}); got.FastGPUs != gpu || got.SlowGPUs != 3*gpu {
		t.Errorf("got %+v", got)
	}
	// A fast GPU is worth less than a slow one: b needs room for more than it gives.
	a = Party{Name{Tenant: "a"}, share(9, 0), 9 * gpu, []Speed{{1, 1}, {4, 4}}, nil}
	b = Party{Name{Tenant: "b"}, share(0, 9), 10 * gpu, []Speed{{3, 3}, {4, 4}}, nil}
	if got := one(t, []Party{a, b}); got.FastGPUs != 2*gpu || got.SlowGPUs != gpu {
		t.Errorf("got %+v", got)
	}
}

// The trade with the largest gain is made first.
func TestLargestGainFirst(t *testing.T) {
	parties := []Party{
		user("a", []cluster.MicroGPU{gpu, 4 * gpu, 8 * gpu}, 2, 1.5, 1),
		user("b", []cluster.MicroGPU{0, 4 * gpu, 8 * gpu}, 4, 3.5, 1),
	}
	o := Decide([]string{"V100", "P100", "K80"}, parties, nil, Rules{Least: 1000})
	if len(o.New) == 0 || o.New[0].Fast != "P100" || o.New[0].Slow != "K80" {
		t.Fatalf("got %+v; the P100s are worth most", o.New)
	}
	for i := 1; i < len(o.New); i++ {
		if g, before := o.New[i].FastToGain+o.New[i].SlowToGain, o.New[i-1].FastToGain+o.New[i-1].SlowToGain; g > before {
			t.Errorf("trade %d gains %v, the one before %v", i, g, before)
		}
	}
}

func TestUndo(t *testing.T) {
	a, b, c := user("a", share(4, 0), 1, 1), user("b", share(0, 20), 6, 1), user("c", share(0, 4), 4, 1)
	first := Decide(two, []Party{a, b, c}, nil, Rules{Least: 1000})
	if len(first.New) != 1 || first.New[0].Price != 4 {
		t.Fatalf("got %+v", first.New)
	}
	held := append(first.New,
		Trade{ID: 2, Fast: "fast", Slow: "slow", FastTo: c.Name, SlowTo: a.Name, FastGPUs: gpu, SlowGPUs: 2 * gpu, Price: 2})
	held[0].ID, held[0].FastGPUs, held[0].SlowGPUs = 1, 3*gpu, 12*gpu
	for _, k := range []struct {
		name    string
		parties []Party
		undone  []Undone
	}{
		{"nothing", []Party{a, b, c}, nil},
		{"the newest first", []Party{user("a", share(3, 0), 1, 1), b, c}, []Undone{taken(2, 1, gpu, 2*gpu, Entitlement, true)}},
		{"in part", []Party{user("a", share(2, 0), 1, 1), b, c}, []Undone{taken(1, 0, gpu, 4*gpu, Entitlement, false), taken(2, 1, gpu, 2*gpu, Entitlement, true)}},
		{"of the slow ones", []Party{a, user("b", share(0, 6), 6, 1), c}, []Undone{taken(1, 0, 3*gpu/2, 6*gpu, Entitlement, false)}},
		{"the buyer has left", []Party{a, c}, []Undone{taken(1, 0, 3*gpu, 12*gpu, Left, true)}},
		{"the seller has left", []Party{b, c}, []Undone{taken(1, 0, 3*gpu, 12*gpu, Left, true), taken(2, 1, gpu, 2*gpu, Left, true)}},
		{"it lost its speedup", []Party{a, user("b", share(0, 20), 3.9, 1), c}, []Undone{taken(1, 0, 3*gpu, 12*gpu, Speedups, true)}},
		{"it still gains", []Party{a, user("b", share(0, 20), 4, 1), c}, nil},
		{"the seller is fast", []Party{user("a", share(4, 0), 4.1, 1), b, c}, []Undone{taken(1, 0, 3*gpu, 12*gpu, Speedups, true), taken(2, 1, gpu, 2*gpu, Speedups, true)}},
		{"no use for it", []Party{{Name{Tenant: "a"}, share(4, 0), 7 * gpu, []Speed{{1, 1}, {1, 1}}, nil}, b, c}, []Undone{taken(1, 0, 2*gpu, 8*gpu, Demand, false), taken(2, 1, gpu, 2*gpu, Demand, true)}},
		{"nothing is known", []Party{a, user("b", share(0, 20)), c}, []Undone{taken(1, 0, 3*gpu, 12*gpu, Speedups, true)}},
	} {
		t.Run(k.name, func(t *testing.T) {
			if o := Decide(two, k.parties, held, Rules{Least: 1000}); !slices.Equal(o.Undone, k.undone) {
				t.Errorf("got %+v, want %+v", o.Undone, k.undone)
			}
		})
	}
	if o := Decide([]string{"fast"}, []Party{a, b, c}, held, Rules{}); len(o.Undone) != 2 || o.Undone[0].Why != Left {
		t.Errorf("the model has left: %+v", o.Undone)
	}
}

// Whatever a tenant says of its speedups: what it says of itself is only believed about
// itself, so the others lose nothing, and nothing is lost.
func TestNonsense(t *testing.T) {
	for _, v := range []float64{math.NaN(), 0, -1, 1e9, 1e-9, math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324} {
		for _, slow := range []float64{1, 0, 1e-9, math.NaN()} {
			users := []Party{user("a", share(4, 20), 1.25, 1), user("liar", share(4, 20), v, slow), user("c", share(4, 20), 6.25, 1)}
			held := []Trade{
				{Fast: "fast", Slow: "slow", FastTo: users[1].Name, SlowTo: users[0].Name, FastGPUs: 2 * gpu, SlowGPUs: 8 * gpu, Price: v},
				{Fast: "fast", Slow: "slow", FastTo: users[2].Name, SlowTo: users[1].Name, FastGPUs: math.MaxInt64, SlowGPUs: math.MaxInt64, Price: 1},
				{Fast: "slow", Slow: "slow", FastTo: users[2].Name, SlowTo: users[2].Name, FastGPUs: gpu, SlowGPUs: gpu},
				{Fast: "fast", Slow: "slow", FastTo: users[2].Name, SlowTo: users[0].Name, FastGPUs: -gpu, SlowGPUs: -5 * gpu},
			}
			o := Decide(two, users, held, Rules{Least: 1000, Edge: v})
			for m := range two {
				if sum := o.GPUs[0][m] + o.GPUs[1][m] + o.GPUs[2][m]; sum != []cluster.MicroGPU{12 * gpu, 60 * gpu}[m] {
					t.Errorf("%v over %v: %d GPUs of %s", v, slow, sum, two[m])
				}
			}
			for _, i := range []int{0, 2} {
				if got, want := users[i].throughput(o.GPUs[i]), users[i].throughput(users[i].GPUs); got < want {
					t.Errorf("%v over %v: %s falls from %v to %v", v, slow, users[i].Tenant, want, got)
				}
			}
		}
	}
	if o := Decide(nil, []Party{{}}, []Trade{{}}, Rules{}); len(o.New) > 0 || len(o.Undone) != 1 {
		t.Errorf("no models: %+v", o)
	}
	if o := Decide([]string{"only"}, []Party{user("a", share(1, 1), 1), user("b", nil, 9)}, nil, Rules{}); len(o.New) > 0 || o.GPUs[0][0] != gpu || o.GPUs[1][0] != 0 {
		t.Errorf("one model: %+v", o)
	}
}

// A trade that rests on a side's declaration is made again once that side has been measured: a false declaration does not
// fix the price. A trade between measured sides stays.
func TestAMeasurementEndsADeclaredPrice(t *testing.T) {
	two := []string{"fast", "slow"}
	parties := func(declared bool, v float64) []Party {
		liar := user("liar", share(4, 20), v, 1)
		liar.Declared = []bool{declared, false}
		return []Party{user("a", share(4, 20), 1.25, 1), liar}
	}
	first := Decide(two, parties(true, 4), nil, Rules{})
	if len(first.New) != 1 || !first.New[0].FastToDeclared || first.New[0].SlowToDeclared {
		t.Fatalf("traded: %+v", first.New)
	}
	if again := Decide(two, parties(true, 4), first.New, Rules{}); len(again.Undone) > 0 {
		t.Errorf("undone while nothing was measured: %+v", again.Undone)
	}
	honest := Decide(two, parties(false, 5), nil, Rules{})
	after := Decide(two, parties(false, 5), first.New, Rules{})
	if len(after.Undone) != 1 || after.Undone[0].Why != Speedups || !slices.EqualFunc(after.GPUs, honest.GPUs, slices.Equal) {
		t.Errorf("after a measurement: undone %+v, GPUs %v, want %v", after.Undone, after.GPUs, honest.GPUs)
	}
	if stays := Decide(two, parties(false, 5.1), after.New, Rules{}); len(stays.Undone) > 0 {
		t.Errorf("a measured trade is undone: %+v", stays.Undone)
	}
}
