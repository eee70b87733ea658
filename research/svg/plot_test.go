package svg

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/sim/report"
)

func TestTicksByHand(t *testing.T) {
	for _, c := range []struct {
		x    axis
		n    int
		want string
	}{
		{axis{hi: 100}, 5, "0 20 40 60 80 100"},
		{axis{hi: 14.3}, 8, "0 2 4 6 8 10 12 14"},
		{axis{hi: 1.5}, 5, "0.0 0.5 1.0 1.5"},
		{axis{hi: 0.04}, 5, "0.00 0.01 0.02 0.03 0.04"},
		{axis{hi: 30_000}, 5, "0 10k 20k 30k"},
		{axis{hi: 20_000}, 5, "0 5000 10k 15k 20k"},
		{axis{lo: 1, hi: 1e6, log: true}, 5, "1 10 100 1000 10k 100k 1M"},
		{axis{lo: 0.1, hi: 10, log: true}, 5, "0.1 1 10"},
	} {
		_, texts := c.x.marks(c.n)
		if got := strings.Join(texts, " "); got != c.want {
			t.Errorf("axis from %v to %v: %s, want %s", c.x.lo, c.x.hi, got, c.want)
		}
	}
}

func TestScaleByHand(t *testing.T) {
	linear, log := axis{hi: 4, a: 100, b: 300}, axis{lo: 1, hi: 1e4, log: true, a: 0, b: 400}
	for v, want := range map[float64]float64{0: 100, 1: 150, 4: 300, 9: 300, -1: 100} {
		if got := linear.at(v); got != want {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	for v, want := range map[float64]float64{1: 0, 100: 200, 1e4: 400, 0: 0, 1e9: 400} {
		if got := log.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v on a log scale, want %v", v, got, want)
		}
	}
}

func TestShapesByHand(t *testing.T) {
	nan := math.NaN()
	for got, want := range map[string]string{
		polyline([]float64{0, 1, 2, 3, 4}, []float64{1, 2, nan, 3, 4.55}): "M0 1L1 2M3 3L4 4.6",
		px(-0.01) + " " + px(12.345):                                      "0 12.3",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTicksAreSensible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 8).Draw(t, "n")
		top := report.NiceTop(math.Pow(10, rapid.Float64Range(-3, 9).Draw(t, "magnitude")), n)
		x := axis{hi: top, a: 50, b: 350}
		values, texts := x.marks(n)
		if len(values) < 2 || len(values) > n+1 || values[len(values)-1] != top && math.Abs(values[len(values)-1]/top-1) > 1e-9 {
			t.Fatalf("axis to %v in %d steps: ticks %v", top, n, values)
		}
		sorted := slices.Clone(texts)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(texts) {
			t.Fatalf("axis to %v: two ticks read the same: %v", top, texts)
		}
		for i, v := range values {
			if x.at(v) < 50 || x.at(v) > 350 || i > 0 && x.at(v) <= x.at(values[i-1]) {
				t.Fatalf("axis to %v: tick %v is at %v", top, v, x.at(v))
			}
		}
	})
}

// extent gives the area of a text, with the widest letters.
func extent(t *rapid.T, m mark) (x1, y1, x2, y2 float64) {
	x, err1 := strconv.ParseFloat(m.X, 64)
	y, err2 := strconv.ParseFloat(m.Y, 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("mark %+v", m)
	}
	width := float64(len([]rune(m.Text))) * letter
	switch {
	case strings.HasSuffix(m.Class, "end"):
		x -= width
	case strings.HasSuffix(m.Class, "mid"):
		x -= width / 2
	}
	return x, y - 9, x + width, y + 2
}

// For any numbers, every text of a frame is within the plot and no two overlap.
func TestTextsDoNotOverlap(t *testing.T) {
	const rounded = 0.1 // of a pixel
	rapid.Check(t, func(t *rapid.T) {
		top := func(name string) float64 {
			return report.NiceTop(math.Pow(10, rapid.Float64Range(-2, 8).Draw(t, name)), 5)
		}
		x := axis{label: "GPUs in the cluster", hi: top("x")}
		p := newPlot(x, axis{label: "mean delay, h", hi: top("y")})
		var texts []mark
		for _, m := range p.Marks {
			if m.Text != "" {
				texts = append(texts, m)
			}
		}
		for i, m := range texts {
			x1, y1, x2, y2 := extent(t, m)
			if x1 < -rounded || y1 < 0 || x2 > p.W+rounded || y2 > p.H {
				t.Fatalf("%q at %v %v to %v %v is not within %v × %v", m.Text, x1, y1, x2, y2, p.W, p.H)
			}
			for _, o := range texts[:i] {
				u1, v1, u2, v2 := extent(t, o)
				if x1 < u2 && u1 < x2 && y1 < v2 && v1 < y2 {
					t.Fatalf("%q and %q overlap", m.Text, o.Text)
				}
			}
		}
	})
}
