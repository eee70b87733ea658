package trade

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const gpu = cluster.WholeGPU

// exactly is a speed that is known.
func exactly(v float64) Speed { return Speed{v, v} }

// user makes a party with as many jobs as it may ever have GPUs.
func user(name string, gpus []cluster.MicroGPU, speeds ...float64) Party {
	p := Party{Name: Name{Tenant: name}, GPUs: gpus, Demand: math.MaxInt64 / 2}
	for _, v := range speeds {
		p.Speed = append(p.Speed, exactly(v))
	}
	return p
}

// throughput is what GPUs of each model are worth to a party, in the unit of its Speed.
func (p *Party) throughput(gpus []cluster.MicroGPU) float64 {
	sum := 0.0
	for m, n := range gpus {
		sum += p.Speed[m].Low * float64(n) / float64(gpu)
	}
	return sum
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(math.Abs(want), 1) {
		t.Errorf("%s: got %.9g, want %.9g", what, got, want)
	}
}

// Gandiva_fair §3.4, Table 3: 12 V100 and 60 K80. "User C trades 5 K80s for each 1 V100 from
// user A, where the 5x is determined by second price (the speedup of user B)". "User A has
// 40 K80s for an aggregate performance of 40 (compared to 25 earlier) while user C has 8 V100s
// for an aggregate performance of 50 (compared to 45 earlier)."
func TestGandivaFairTable3(t *testing.T) {
	share := []cluster.MicroGPU{4 * gpu, 20 * gpu}
	users := []Party{user("A", share, 1.25, 1), user("B", share, 5, 1), user("C", share, 6.25, 1)}
	o := Decide([]string{"V100", "K80"}, users, nil, Rules{})
	want := Trade{
		Fast: "V100", Slow: "K80", FastTo: Name{Tenant: "C"}, SlowTo: Name{Tenant: "A"},
		FastGPUs: 4 * gpu, SlowGPUs: 20 * gpu, Price: 5, FastToSpeedup: 6.25, SlowToSpeedup: 1.25,
		FastToGain: 5, SlowToGain: 15,
	}
	if len(o.New) != 1 || o.New[0] != want {
		t.Fatalf("got %+v, want %+v", o.New, want)
	}
	for i, c := range []struct{ v100, k80, before, after float64 }{{0, 40, 25, 40}, {4, 20, 40, 40}, {8, 0, 45, 50}} {
		near(t, "V100s of "+users[i].Tenant, float64(o.GPUs[i][0]), c.v100*1e6)
		near(t, "K80s of "+users[i].Tenant, float64(o.GPUs[i][1]), c.k80*1e6)
		near(t, "before, "+users[i].Tenant, users[i].throughput(share), c.before)
		near(t, "after, "+users[i].Tenant, users[i].throughput(o.GPUs[i]), c.after)
	}
}

// Certified instances of trading between tenants, after OEF §2.4 and Gandiva_fair's Table 3:
// the trades with their prices, and what everybody has in the end. Markets are 1000
// times theirs, since a millionth of their single GPU is too coarse for six digits.
func TestCertifiedTrades(t *testing.T) {
	f, err := os.Open("../policy/testdata/oracles/oef.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Instances []struct {
			ID     string
			Mode   string
			W      [][]float64 // tenants by models, the slowest first
			M      []float64   // GPUs of each model
			X      [][]float64
			Trades []struct {
				Fast  int     `json:"seller_of_slow"` // from 1
				Slow  int     `json:"buyer_of_slow"`
				Price float64 `json:"price"`
				Moved float64 `json:"fast_moved"`
			}
		}
	}
	if err := json.NewDecoder(z).Decode(&file); err != nil {
		t.Fatal(err)
	}
	const scale = 1000 * float64(gpu)
	seen := 0
	for _, in := range file.Instances {
		if in.Mode != "trading" {
			continue
		}
		seen++
		t.Run(in.ID, func(t *testing.T) {
			// Models are slowest first there, newest first here.
			k := len(in.M)
			models := make([]string, k)
			for m := range models {
				models[m] = fmt.Sprint("model ", m)
			}
			var users []Party
			for l, w := range in.W {
				gpus, speeds := make([]cluster.MicroGPU, k), make([]float64, k)
				for m := range in.M {
					gpus[k-1-m] = cluster.MicroGPU(math.Round(in.M[m] * scale / float64(len(in.W))))
					speeds[k-1-m] = w[m]
				}
				users = append(users, user(fmt.Sprint(l+1), gpus, speeds...))
			}
			o := Decide(models, users, nil, Rules{Least: gpu / 100})
			for l := range in.X {
				for m := range in.X[l] {
					near(t, fmt.Sprintf("tenant %d, model %d", l+1, m), float64(o.GPUs[l][k-1-m])/scale, in.X[l][m])
				}
			}
			if len(o.New) != len(in.Trades) {
				t.Fatalf("%d trades, want %d: %+v", len(o.New), len(in.Trades), o.New)
			}
			for i, tr := range in.Trades {
				got := o.New[i]
				if got.FastTo.Tenant != fmt.Sprint(tr.Fast) || got.SlowTo.Tenant != fmt.Sprint(tr.Slow) {
					t.Errorf("trade %d is between %s and %s, want %d and %d", i, got.FastTo.Tenant, got.SlowTo.Tenant, tr.Fast, tr.Slow)
				}
				near(t, "price", got.Price, tr.Price)
				near(t, "fast GPUs", float64(got.FastGPUs)/scale, tr.Moved)
			}
		})
	}
	if seen == 0 {
		t.Fatal("the file holds no instance of trading")
	}
}

// fleet55 is the cluster of Gandiva_fair §5.4 and §5.5, and its four users: "User1 submits 150
// 1-GPU jobs running ResNet50, User2 … 2-GPU jobs running ResNet50, User3 … 4-GPU jobs running
// ResNet50 …, and User4 submits 150 1-GPU jobs running SuperResolution".
var fleet55 = []string{"V100", "P100", "K80"}

// users55 gives the users, each due an equal share, with Table 1's speedups. The paper prints none of
// jobs on several GPUs, so those of users 2 and 3 are as ResNet-50's on one.
func users55(names ...string) []Party {
	resnet := []float64{5.14, 3.34, 1}
	speeds := map[string][]float64{"user1": resnet, "user2": resnet, "user3": resnet, "user4": {1.87, 1.73, 1}}
	n := cluster.MicroGPU(len(names))
	var users []Party
	for _, name := range names {
		users = append(users, user(name, []cluster.MicroGPU{12 * gpu / n, 24 * gpu / n, 64 * gpu / n}, speeds[name]...))
	}
	return users
}

// rules55 are those of a daemon: no trades of less than a thousandth of a GPU, nor
// for a hundredth of speedup.
var rules55 = Rules{Least: gpu / 1000, Edge: 0.01}

// gains gives what a market is worth to each party over its share without trading.
func gains(users []Party, gpus [][]cluster.MicroGPU) map[string]float64 {
	by := map[string]float64{}
	for i := range users {
		by[users[i].Tenant] = users[i].throughput(gpus[i]) / users[i].throughput(users[i].GPUs)
	}
	return by
}

// Gandiva_fair §5.5: "User1 and User4 gain about 30% higher efficiency due to automated trading", and nobody loses. With
// Table 1's speedups users 1 to 3 value all models alike, so the price leaves user 1 nothing: the two gain 30 % on average, user 4 alone has it.
func TestGandivaFairFigure8(t *testing.T) {
	users := users55("user1", "user2", "user3", "user4")
	gain := gains(users, Decide(fleet55, users, nil, rules55).GPUs)
	for name, x := range gain {
		if x < 1 || name != "user4" && x > 1.02 {
			t.Errorf("%s has %.3f of its share's throughput, want 1 to 1.02", name, x)
		}
	}
	if mean := (gain["user1"] + gain["user4"]) / 2; mean < 1.27 || mean > 1.33 {
		t.Errorf("users 1 and 4 have %.3f of their shares' throughput on average, want about 1.3", mean)
	}
}

// Gandiva_fair §5.5: "around the four hour mark, the progress rate with trading dips and then
// increases. This is because one of the users has departed and some trades are undone (resulting
// in a dip in efficiency back to pre-trade levels) and then new trades take place".
func TestGandivaFairTradesAreUndoneOnDeparture(t *testing.T) {
	before := Decide(fleet55, users55("user1", "user2", "user3", "user4"), nil, rules55)
	users := users55("user2", "user3", "user4")
	o := Decide(fleet55, users, before.New, rules55)
	left := map[int]bool{}
	for _, u := range o.Undone {
		left[u.At] = u.Why == Left && u.All && u.FastGPUs == before.New[u.At].FastGPUs && u.SlowGPUs == before.New[u.At].SlowGPUs
	}
	for i, tr := range before.New {
		if with := tr.FastTo.Tenant == "user1" || tr.SlowTo.Tenant == "user1"; with != left[i] {
			t.Errorf("trade %d of %s with %s: undone because somebody has left: %v", i, tr.FastTo.Tenant, tr.SlowTo.Tenant, left[i])
		}
	}
	total := func(gpus [][]cluster.MicroGPU) (sum float64) {
		for i := range users {
			sum += users[i].throughput(gpus[i])
		}
		return sum
	}
	b := newBook(fleet55, users, rules55)
	b.replay(before.New)
	share, dip, after := total(newBook(fleet55, users, rules55).due(users)), total(b.due(users)), total(o.GPUs)
	if dip < share || after <= dip || len(o.New) == 0 {
		t.Errorf("throughput of shares %.2f, with the trades that stay %.2f, with %d new ones %.2f: they must rise", share, dip, len(o.New), after)
	}
	for name, gain := range gains(users, o.GPUs) {
		if gain < 1 {
			t.Errorf("%s has %.3f of its share's throughput", name, gain)
		}
	}
}

// Gandiva_fair §3.5: trades are undone on arrivals as well, when "a new user has arrived and the
// traded GPUs are needed for fair allocation".
func TestGandivaFairTradesAreUndoneOnArrival(t *testing.T) {
	share := []cluster.MicroGPU{4 * gpu, 20 * gpu}
	before := Decide([]string{"V100", "K80"}, []Party{user("A", share, 1.25, 1), user("B", share, 5, 1), user("C", share, 6.25, 1)}, nil, Rules{})
	// D comes: everybody is due 3 V100 and 15 K80.
	share = []cluster.MicroGPU{3 * gpu, 15 * gpu}
	users := []Party{user("A", share, 1.25, 1), user("B", share, 5, 1), user("C", share, 6.25, 1), user("D", share, 2, 1)}
	before.New[0].ID = 7
	o := Decide([]string{"V100", "K80"}, users, before.New, Rules{})
	if len(o.Undone) != 1 || o.Undone[0] != (Undone{ID: 7, FastGPUs: gpu, SlowGPUs: 5 * gpu, Why: Entitlement}) {
		t.Errorf("undone: %+v; want one V100 of the four, for five K80", o.Undone)
	}
	if len(o.Kept) != 1 || o.Kept[0].FastGPUs != 3*gpu || o.Kept[0].SlowGPUs != 15*gpu || o.Kept[0].FastToGain != 3.75 {
		t.Errorf("kept: %+v; want three V100 for fifteen K80", o.Kept)
	}
	// B, who is next, buys from D at the mean of 5 and 2: C has nothing left to bid with.
	if len(o.New) != 1 || o.New[0].FastTo.Tenant != "B" || o.New[0].SlowTo.Tenant != "D" || o.New[0].Price != 3.5 {
		t.Errorf("new: %+v; want B to buy from D at 3.5", o.New)
	}
}
