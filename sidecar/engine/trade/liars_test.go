package trade

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// witness is a party with true speeds. It shows other bounds from round to round: those of an honest one contain the truth, a liar's are
// anything.
type witness struct {
	Party
	truth []float64
	lies  bool
}

func (w *witness) shows(t *rapid.T) Party {
	p := w.Party
	p.Speed = make([]Speed, len(w.truth))
	for m, is := range w.truth {
		if w.lies {
			is *= rapid.Float64Range(0.05, 20).Draw(t, "lie")
		}
		p.Speed[m] = Speed{is / rapid.Float64Range(1, 2).Draw(t, "below"), is * rapid.Float64Range(1, 2).Draw(t, "above")}
	}
	return p
}

// worth is what GPUs are worth to it in truth.
func (w *witness) worth(gpus []cluster.MicroGPU) float64 {
	p := Party{Demand: w.Demand}
	for _, is := range w.truth {
		p.Speed = append(p.Speed, exactly(is))
	}
	return p.worth(gpus, false) * p.slowest()
}

func (p *Party) slowest() float64 {
	least := p.Speed[0].Low
	for _, v := range p.Speed {
		least = min(least, v.Low)
	}
	return least
}

// Property: whatever liars show, and however bounds move from round to round while trades are in force: nobody whose bounds contain its true speeds
// has less throughput by these than its share. Trades are made that need it.
func TestLiarsCostNobodyElse(t *testing.T) {
	made, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		models := []string{"V100", "P100", "K80"}[:rapid.IntRange(2, 3).Draw(t, "models")]
		var all []witness
		for i := range rapid.IntRange(2, 6).Draw(t, "parties") {
			w := witness{Party: anyParty(t, Name{Tenant: fmt.Sprint("tenant ", i)}, len(models)), lies: i > 0 && rapid.IntRange(0, 2).Draw(t, "lies") == 0}
			for range models {
				w.truth = append(w.truth, rapid.Float64Range(0.5, 8).Draw(t, "truth"))
			}
			sum := cluster.MicroGPU(0)
			for _, gpus := range w.GPUs {
				sum += gpus
			}
			w.Demand = max(w.Demand, sum)
			all = append(all, w)
		}
		var held []Trade
		for range 4 {
			parties := make([]Party, len(all))
			for i := range all {
				parties[i] = all[i].shows(t)
			}
			o := Decide(models, parties, held, Rules{Least: 1000, Edge: 0.05})
			made, kept = made+len(o.New), kept+len(o.Kept)
			for i := range all {
				w := &all[i]
				if before, after := w.worth(w.GPUs), w.worth(o.GPUs[i]); !w.lies && after < before*(1-1e-5)-1e-3 {
					t.Fatalf("%v falls from %v to %v after %+v and %+v", w.Name, before, after, o.Kept, o.New)
				}
			}
			held = append(o.Kept, o.New...)
		}
	})
	if made < 100 || kept < 100 {
		t.Errorf("%d trades were made, and %d kept", made, kept)
	}
}

// A trade in force stays while its price is on the right side of the middle of both bounds, and is undone beyond it.
func TestTradesStayWithinTheMiddle(t *testing.T) {
	bounds := func(name string, low, high float64, k80s cluster.MicroGPU) Party {
		return Party{Name{Tenant: name}, share(4, k80s), 100 * gpu, []Speed{{low, high}, {1, 1}}, nil}
	}
	o := Decide(two, []Party{bounds("a", 1, 2, 8), bounds("b", 4, 9, 8)}, nil, rules55)
	if len(o.New) != 1 || o.New[0].Price != 3 {
		t.Fatalf("got %+v", o.New)
	}
	for _, x := range []struct {
		a, b Party
		stay bool
	}{
		{bounds("a", 1, 6, 8), bounds("b", 2, 9, 8), true},    // middles 2.4 and 4.2
		{bounds("a", 2, 6, 8), bounds("b", 2, 9, 8), false},   // 3.5
		{bounds("a", 1, 2, 8), bounds("b", 1, 8.5, 8), false}, // 2.9
	} {
		if again := Decide(two, []Party{x.a, x.b}, o.New, rules55); (len(again.Kept) == 1) != x.stay || x.stay && (again.Kept[0].FastToGain <= 0 || again.Kept[0].SlowToGain <= 0) {
			t.Errorf("bounds %v and %v: kept %+v, undone %+v", x.a.Speed, x.b.Speed, again.Kept, again.Undone)
		}
	}
}
