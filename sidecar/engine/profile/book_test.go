package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// observe puts an average into the book as if it had been heard.
func observe(b *Book, kind cluster.Kind, model string, rate float64, samples int, spread float64) {
	b.put(&cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Source: cluster.Observed, Samples: samples, Spread: spread, At: began})
}

func TestWhatIsBelieved(t *testing.T) {
	b := New(Default(), nil, nil)
	say := func(rate float64, source cluster.Source) {
		t.Helper()
		if p, ok := b.Rate("ml/a", "v100", 1); !ok || p.Rate != rate || p.Source != source || p.Kind != "ml/a" {
			t.Errorf("%+v, want %g, %s", p, rate, source)
		}
	}
	if p, ok := b.Rate("ml/a", "v100", 1); ok {
		t.Errorf("an empty book knows %+v", p)
	}
	observe(b, "ml/a", "v100", 1, 2, 0.1)
	say(1, cluster.Observed)
	declare(t, b, "ml/a", "", 1, map[string]float64{"v100": 2})
	say(2, cluster.Declared)
	declare(t, b, "a", "", 1, map[string]float64{"v100": 3})
	say(3, cluster.Declared)
	must(t, b.Declare(cluster.Profile{Kind: "ml/a", Model: "v100", Gang: 1, Rate: 4, Basis: File}))
	say(4, cluster.Declared)
	declare(t, b, "ml/a", "", 1, map[string]float64{"v100": 5})
	say(4, cluster.Declared) // a job's word does not replace the administrator's
	observe(b, "ml/a", "v100", 6, 3, 0.1)
	say(6, cluster.Observed)
	b.Withdraw(File)
	observe(b, "ml/a", "v100", 7, 1, 0)
	say(7, cluster.Observed)
}

func TestDeclarationsThatCannotBe(t *testing.T) {
	b := New(Default(), nil, nil)
	for _, x := range []struct {
		p    cluster.Profile
		want string
	}{
		{cluster.Profile{Kind: "ml/a", Model: "v100", Gang: 1, Rate: math.NaN()}, "NaN steps a second cannot be"},
		{cluster.Profile{Kind: "ml/a", Model: "v100", Gang: 1, Rate: -1}, "-1 steps a second cannot be"},
		{cluster.Profile{Kind: "ml/a", Model: "v100", Gang: 1, Rate: math.Inf(1)}, "+Inf steps a second cannot be"},
		{cluster.Profile{Kind: "ml/a", Model: "v100", Gang: 1, Rate: 1e-300}, "cannot be"},
		{cluster.Profile{Kind: "ml/a", Model: "v100", Gang: -1, Rate: 1}, "a gang of -1 GPUs cannot be"},
		{cluster.Profile{Kind: "ml/a", Gang: 1, Rate: 1}, "no GPU model is named"},
		{cluster.Profile{Kind: "ml/ä", Model: "v100", Gang: 1, Rate: 1}, "is no kind"},
		{cluster.Profile{Kind: "a", Model: "v100", Gang: 1, Rate: 1, Basis: "job 7"}, "only the administrator"},
	} {
		if err := b.Declare(x.p); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: error %v, want %q", x.p, err, x.want)
		}
	}
	if len(b.Entries()) > 0 {
		t.Errorf("left in the book: %+v", b.Entries())
	}
}

// A tenant that makes up kinds without end loses its own oldest ones, and nobody else any; nothing of what was observed.
func TestABookIsBounded(t *testing.T) {
	s := Default()
	s.Entries = 10
	kinds := func(b *Book) (got []string) {
		for _, e := range b.Entries() {
			got = append(got, string(e.Kind))
		}
		return got
	}
	word := func(i int) cluster.Profile {
		return cluster.Profile{Kind: cluster.Kind(fmt.Sprintf("ml/k%02d", i)), Model: "v100", Gang: 1, Rate: 1, At: at(float64(i)), Basis: "job 1"}
	}
	open := func() *Book {
		b := New(s, nil, nil)
		declare(t, b, "ref", "", 1, map[string]float64{"v100": 1})
		declare(t, b, "cv/a", "", 1, map[string]float64{"v100": 1})
		observe(b, "ml/a", "v100", 1, 5, 0.1)
		return b
	}
	b, once := open(), open()
	var words []cluster.Profile
	for i := range 100 {
		must(t, b.Declare(word(i)))
		words = append(words, word(99-i))
	}
	once.Hear(words)
	want := []string{"cv/a", "ml/a", "ml/k90", "ml/k91", "ml/k92", "ml/k93", "ml/k94", "ml/k95", "ml/k96", "ml/k97", "ml/k98", "ml/k99", "ref"}
	if got := kinds(b); !slices.Equal(got, want) {
		t.Errorf("entries of %v, want of %v", got, want)
	}
	if d := cmp.Diff(b.Entries(), once.Entries()); d != "" {
		t.Errorf("said all at once (-one by one +at once):\n%s", d)
	}
	// present declarations stay, whatever their age; earlier ones go first
	b.Hear([]cluster.Profile{word(3), word(2), word(95)})
	want = []string{"cv/a", "ml/a", "ml/k02", "ml/k03", "ml/k92", "ml/k93", "ml/k94", "ml/k95", "ml/k96", "ml/k97", "ml/k98", "ml/k99", "ref"}
	if got := kinds(b); !slices.Equal(got, want) {
		t.Errorf("then entries of %v, want of %v", got, want)
	}
	for i := range 20 { // observed ones have their own room
		observe(b, cluster.Kind(fmt.Sprintf("ml/o%02d", i)), "v100", 1, 1, 0)
	}
	if got := kinds(b); len(got) != 22 || !slices.Contains(got, "ml/o19") || !slices.Contains(got, "ml/k02") {
		t.Errorf("at last entries of %v", got)
	}
	if d := cmp.Diff(b.Entries(), New(s, b.Entries(), nil).Entries()); d != "" {
		t.Errorf("remembered otherwise:\n%s", d)
	}
}

// Rates that are said all at once make the book that they make one by one, as long as there is room.
func TestWordsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, once := New(Default(), nil, nil), New(Default(), nil, nil)
		for _, each := range []*Book{b, once} {
			if err := site(each); err != nil {
				t.Fatal(err)
			}
			if err := each.Declare(cluster.Profile{Kind: "x/a", Model: "v100", Gang: 1, Rate: 7, Basis: File}); err != nil {
				t.Fatal(err)
			}
		}
		var words []cluster.Profile
		for _, a := range acts("x", 10).Draw(t, "x") {
			if a.Say != nil && a.Say.With == "" {
				words = append(words, *a.Say)
				_ = b.Declare(*a.Say)
			}
		}
		once.Hear(words)
		if d := cmp.Diff(b.Entries(), once.Entries()) + cmp.Diff(answers(b, "x"), answers(once, "x")); d != "" {
			t.Fatalf("(-one by one +at once):\n%s", d)
		}
	})
}

func TestWhatIsRememberedComesBack(t *testing.T) {
	b := reported(t, run(), [2]float64{0, 0}, [2]float64{60, 600}, [2]float64{120, 1300})
	declare(t, b, "ref", "", 1, map[string]float64{"v100": 1})
	again := New(Default(), b.Entries(), b.Paces())
	if d := cmp.Diff(b.Entries(), again.Entries()) + cmp.Diff(b.Paces(), again.Paces()); d != "" {
		t.Error(d)
	}
	b.Forget(func(k cluster.JobKey) bool { return k == 1 })
	if len(b.Paces()) > 0 {
		t.Errorf("a job that is gone is remembered: %+v", b.Paces())
	}
}

func TestSpeedups(t *testing.T) {
	b := New(Default(), nil, nil)
	observe(b, "ml/a", "k80", 10, 16, 0.2)
	observe(b, "ml/a", "v100", 40, 4, 0.2)
	declare(t, b, "ml/a", "", 1, map[string]float64{"tiny": 0})
	declare(t, b, "ml/wild", "", 1, map[string]float64{"k80": 1e-9, "v100": 1e9})
	models := []string{"k80", "p100", "tiny", "v100"}
	value := func(kind cluster.Kind) []float64 {
		var out []float64
		for _, s := range b.Speedups(kind, 1, models) {
			if s.Low > s.Value || s.High < s.Value {
				t.Errorf("%s on %s: %g is not between %g and %g", kind, s.Model, s.Value, s.Low, s.High)
			}
			out = append(out, s.Value)
		}
		return out
	}
	for kind, want := range map[cluster.Kind][]float64{
		"ml/a":    {1, 1, 0, 4},
		"ml/wild": {1, 1, 1, 100},
		"ml/new":  {1, 1, 1, 1},
	} {
		if got := value(kind); !slices.Equal(got, want) {
			t.Errorf("speedups of %s %v, want %v", kind, got, want)
		}
	}
	v100 := b.Speedups("ml/a", 1, models)[3]
	e := math.Exp(2 * math.Hypot(0.2/4, 0.2/2)) // two standard errors of both rates
	if math.Abs(v100.Low-4/e) > 1e-9 || math.Abs(v100.High-4*e) > 1e-9 {
		t.Errorf("between %g and %g, want %g and %g", v100.Low, v100.High, 4/e, 4*e)
	}
	declare(t, b, "ref", "", 1, map[string]float64{"k80": 1, "p100": 2, "v100": 4})
	if got := b.Speedups("ml/a", 1, models)[1]; got.Source != cluster.Estimated || math.Abs(got.Value-2) > 1e-9 {
		t.Errorf("with a reference: %+v, want an estimate of 2", got)
	}
	b.facts.settings.Estimate = false
	if got := b.Speedups("ml/a", 1, models)[1]; got.Source != "" || got.Value != 1 {
		t.Errorf("switched off: %+v, want 1, not known", got)
	}
}

func TestGangsOfAnotherSize(t *testing.T) {
	b := New(Default(), nil, nil)
	for gang, rate := range map[int]float64{1: 10, 4: 36, 8: 0} {
		declare(t, b, "ml/a", "", gang, map[string]float64{"v100": rate})
	}
	for gang, want := range map[int]float64{2: 20, 3: 27, 16: 144} {
		if p, ok := b.Rate("ml/a", "v100", gang); !ok || p.Rate != want || p.Source != cluster.Estimated {
			t.Errorf("%d GPUs: %+v, want an estimate of %g", gang, p, want)
		}
	}
	if p, _ := b.Rate("ml/a", "v100", 8); p.Rate != 0 || p.Source != cluster.Declared {
		t.Errorf("8 GPUs: %+v, want 0 as declared", p)
	}
}

func TestSuspectedMisreports(t *testing.T) {
	b := New(Default(), nil, nil)
	for _, x := range []struct {
		kind       cluster.Kind
		said, seen [2]float64 // k80, v100
		samples    int
	}{
		{"ml/honest", [2]float64{10, 40}, [2]float64{10.5, 39}, 10},
		{"ml/inflates", [2]float64{10, 60}, [2]float64{10, 40}, 10},
		{"ml/units", [2]float64{320, 1280}, [2]float64{10, 40}, 10},
		{"ml/early", [2]float64{10, 90}, [2]float64{10, 40}, 2},
		{"ml/cannot", [2]float64{10, 0}, [2]float64{10, 40}, 10},
	} {
		declare(t, b, x.kind, "", 1, map[string]float64{"k80": x.said[0], "v100": x.said[1]})
		observe(b, x.kind, "k80", x.seen[0], x.samples, 0.05)
		observe(b, x.kind, "v100", x.seen[1], x.samples, 0.05)
	}
	var got []string
	for _, m := range b.Misreports() {
		got = append(got, fmt.Sprintf("%s %s/%s %g for %g", m.Kind, m.Model, m.Than, m.Said, m.Seen))
	}
	want := []string{
		"ml/cannot v100/ 0 for 40", "ml/cannot v100/k80 0 for 4",
		"ml/inflates v100/ 60 for 40", "ml/inflates v100/k80 6 for 4",
		"ml/units k80/ 320 for 10", "ml/units v100/ 1280 for 40",
	}
	if !slices.Equal(got, want) {
		t.Errorf("suspected:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatToTryNext(t *testing.T) {
	b := New(Default(), nil, nil)
	declare(t, b, "ref", "", 1, map[string]float64{"k80": 1, "v100": 4})
	observe(b, "ml/a", "k80", 10, 5, 0)
	observe(b, "ml/b", "v100", 10, 5, 0)
	trials := []Trial{
		{Key: 1, Kind: "ml/a", Model: "k80", Gang: 1, Idle: true},                                                                                // known
		{Key: 2, Kind: "ml/a", Model: "v100", Gang: 1, From: "k80", Move: cluster.Minute, Term: cluster.Hour, Idle: true},                        // faster there
		{Key: 3, Kind: "ml/b", Model: "k80", Gang: 1, From: "v100", Move: cluster.Minute, Term: cluster.Hour, Idle: true},                        // loses 3/4 of an hour
		{Key: 4, Kind: "ml/b", Model: "k80", Gang: 1, Move: cluster.Minute / 2, Term: cluster.Hour, Idle: true},                                  // waits: only starts
		{Key: 5, Kind: "ml/c", Model: "v100", Gang: 1, Move: cluster.Minute, Term: cluster.Hour},                                                 // others give way
		{Key: 6, Kind: "ml/d", Model: "v100", Gang: 1, Move: cluster.Minute, Term: cluster.Hour, Idle: true},                                     // as dear as job 2's, known nowhere
		{Key: 7, Kind: "ml/d", Model: "v100", Gang: 0}, {Key: 8, Kind: "ml/d", Model: "k80", Gang: 1, Move: -1, Term: -cluster.Hour, Idle: true}, // no time at all
	}
	var got []string
	for _, c := range b.Explore(trials) {
		got = append(got, fmt.Sprintf("job %d: %s", trials[c.Trial].Key, cluster.Span(c.GPUs)))
	}
	want := []string{"job 8: 0 s", "job 4: 30 s", "job 6: 1 min", "job 2: 1 min", "job 5: 1 h 1 min"}
	if !slices.Equal(got, want) {
		t.Errorf("in this order: %q, want %q", got, want)
	}
}

// The known entries of a low-rank matrix determine the rest.
func TestAMatrixIsCompleted(t *testing.T) {
	truth := func(i, j int) float64 {
		return 0.5 + 0.3*math.Sin(float64(i))*math.Cos(float64(j)) + 0.15*math.Cos(float64(2*i))*math.Sin(float64(3*j))
	}
	m := make([][]float64, 30)
	for i := range m {
		m[i] = make([]float64, 40)
		for j := range m[i] {
			m[i][j] = truth(i, j)
			if (7*i+5*j)%10 < 3 {
				m[i][j] = math.NaN()
			}
		}
	}
	complete(m)
	worst, sum := 0.0, 0.0
	for i := range m {
		for j := range m[i] {
			e := math.Abs(m[i][j] - truth(i, j))
			worst, sum = max(worst, e), sum+e
		}
	}
	t.Logf("3 of 10 entries unknown, rank 2: off by %.4f at most, %.5f on average over all", worst, sum/1200)
	if !(worst < 0.1) {
		t.Errorf("off by %.3f, want less than 0.1", worst)
	}
	complete(nil)
	empty := [][]float64{{math.NaN(), 1}, {math.NaN(), 0}}
	complete(empty)
	if d := cmp.Diff([][]float64{{0, 1}, {0, 0}}, empty); d != "" {
		t.Errorf("a column of which nothing is known: %s", d)
	}
}

// act is something that a tenant does to the book.
type act struct {
	Run    Run
	Report cluster.Progress
	Say    *cluster.Profile
}

func acts(tenant string, keys int64) *rapid.Generator[[]act] {
	odd := rapid.OneOf(rapid.Float64Range(0, 1e4), rapid.SampledFrom([]float64{0, -1, 1e9, 1e-9, 1e16, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}))
	return rapid.Custom(func(t *rapid.T) []act {
		var out []act
		for range rapid.IntRange(0, 40).Draw(t, "acts") {
			kind := cluster.KindOf(tenant, rapid.SampledFrom([]string{"a", "b", "ref", "c", ""}).Draw(t, "kind"))
			with := rapid.SampledFrom([]cluster.Kind{"", "", "ref", "ref2", "x/a", "y/b"}).Draw(t, "with")
			model := rapid.SampledFrom([]string{"k80", "p100", "v100"}).Draw(t, "model")
			gang := rapid.IntRange(0, 2).Draw(t, "gang")
			if rapid.Bool().Draw(t, "says") {
				out = append(out, act{Say: &cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Rate: odd.Draw(t, "rate"), Basis: "job 1"}})
				continue
			}
			out = append(out, act{
				Run:    Run{Key: cluster.JobKey(keys + rapid.Int64Range(0, 2).Draw(t, "job")), Kind: kind, With: with, Model: model, Gang: gang, Since: at(float64(rapid.IntRange(0, 50).Draw(t, "since")))},
				Report: cluster.Progress{Steps: odd.Draw(t, "steps"), Total: odd.Draw(t, "total"), At: at(float64(rapid.IntRange(-100, 1000).Draw(t, "at")))}})
		}
		return out
	})
}

// site declares references that are known everywhere.
func site(b *Book) error {
	for k, kind := range []cluster.Kind{"ref", "ref2", "ref3"} {
		for m, model := range []string{"k80", "p100", "v100"} {
			for _, with := range []cluster.Kind{"", "ref", "ref2"} {
				rate := float64((k+1)*(m+1)) * (1 - 0.1*float64(len(with)))
				if err := b.Declare(cluster.Profile{Kind: kind, With: with, Model: model, Gang: 1, Rate: rate, Basis: File}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// answers gives all that can be asked of a tenant's kinds.
func answers(b *Book, tenant string) []any {
	var out []any
	for _, name := range []string{"a", "b", "c", "ref"} {
		kind := cluster.KindOf(tenant, name)
		for gang := 1; gang <= 2; gang++ {
			out = append(out, b.Speedups(kind, gang, []string{"k80", "p100", "v100"}))
			for _, with := range []cluster.Kind{"", "ref", "x/a", "y/b"} {
				p, ok := b.Beside(kind, with, "v100", gang)
				out = append(out, p, ok)
			}
		}
	}
	return out
}

// perform does acts; with asks, it is asked in between, which must change nothing.
func perform(b *Book, as []act, asks bool) {
	for _, a := range as {
		if asks {
			answers(b, "x")
			answers(b, "y")
		}
		if a.Say != nil {
			_ = b.Declare(*a.Say)
		} else {
			_, _ = b.Report(a.Run, a.Report)
		}
	}
}

// Whatever a tenant declares, the beliefs about other tenants' kinds stay the same: what it measured, alone, compares models
// for others (fleet), and without that nothing changes. Everything is finite and in its bounds; and equal calls make equal books.
func TestNobodysNumbersBendAnothers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := acts("x", 10).Draw(t, "x"), acts("y", 20).Draw(t, "y")
		b, alone, twin := New(Default(), nil, nil), New(Default(), nil, nil), New(Default(), nil, nil)
		for _, each := range []*Book{b, alone, twin} {
			if err := site(each); err != nil {
				t.Fatal(err)
			}
		}
		perform(b, x, true)
		perform(b, y, true)
		perform(twin, x, false)
		perform(twin, y, false)
		perform(alone, slices.DeleteFunc(slices.Clone(x), func(a act) bool { return a.Say != nil }), false)
		perform(alone, y, false)
		if d := cmp.Diff(answers(alone, "y"), answers(b, "y")); d != "" {
			t.Fatalf("y is believed to run otherwise for what x said:\n%s", d)
		}
		if d := cmp.Diff(b.Entries(), twin.Entries()) + cmp.Diff(b.Paces(), twin.Paces()) + cmp.Diff(answers(b, "x"), answers(twin, "x")); d != "" {
			t.Fatalf("equal calls made unequal books:\n%s", d)
		}
		for _, e := range b.Entries() {
			if err := check(&e); err != nil || !(e.Spread < 100) {
				t.Fatalf("in the book: %+v: %v", e, err)
			}
		}
		for _, a := range answers(b, "x") {
			if p, ok := a.(cluster.Profile); ok && cluster.CheckRate(p.Rate) != nil {
				t.Fatalf("an answer: %+v", p)
			}
			if s, ok := a.([]Speedup); ok {
				for _, each := range s {
					if !(each.Value >= 0 && each.Value <= 100 && each.Low <= each.Value && each.High >= each.Value) {
						t.Fatalf("a speedup: %+v", each)
					}
				}
			}
		}
		b.Misreports()
		again := New(Default(), b.Entries(), b.Paces())
		if d := cmp.Diff(b.Entries(), again.Entries()) + cmp.Diff(answers(b, "x"), answers(again, "x")) + cmp.Diff(answers(b, "y"), answers(again, "y")); d != "" {
			t.Fatalf("what was remembered does not come back:\n%s", d)
		}
	})
}
