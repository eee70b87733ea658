package cluster_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// exactly computes Accrue with unbounded integers.
func exactly(r cluster.MicroGPU, s cluster.Span, carry int64) (cluster.GPUTime, int64) {
	sum := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(int64(s)))
	q, rem := sum.Add(sum, big.NewInt(carry)).QuoRem(sum, big.NewInt(int64(cluster.WholeGPU)), new(big.Int))
	if !q.IsInt64() {
		return math.MaxInt64, 0
	}
	return cluster.GPUTime(q.Int64()), rem.Int64()
}

// Accrue is exact up to the largest result, and saturates beyond it.
func TestAccrueAtTheEdges(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		r     cluster.MicroGPU
		s     cluster.Span
		carry int64
	}{
		{0, 0, 0}, {0, most, 999_999}, {most, 0, 999_999}, {1, 1, 999_999}, {cluster.WholeGPU, most, 0},
		{cluster.WholeGPU, most, 999_999},     // the largest answer, with the largest carry
		{cluster.WholeGPU + 1, most, 0},       // just beyond it
		{2 * cluster.WholeGPU, most, 999_999}, // beyond 63 bits, within 64
		{2*cluster.WholeGPU + 1, most, 0},     // beyond 64 bits, where the division itself gives up
		{most, most, 999_999},
		{80_000 * cluster.WholeGPU, cluster.Span(3600*365) * cluster.Day, 1}, // the cluster and the years that GPUTime promises
	} {
		got, carry := cluster.Accrue(c.r, c.s, c.carry)
		if want, rest := exactly(c.r, c.s, c.carry); got != want || carry != rest {
			t.Errorf("%d for %d, carry %d: %d and %d, want %d and %d", c.r, c.s, c.carry, got, carry, want, rest)
		}
	}
}

func TestAccrueIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := cluster.MicroGPU(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate"))
		s := cluster.Span(rapid.Int64Range(0, math.MaxInt64).Draw(t, "span"))
		carry := rapid.Int64Range(0, 999_999).Draw(t, "carry")
		got, rest := cluster.Accrue(r, s, carry)
		if want, left := exactly(r, s, carry); got != want || rest != left {
			t.Fatalf("%d and %d, want %d and %d", got, rest, want, left)
		}
	})
}

func TestSpanInWords(t *testing.T) {
	const second, minute, hour = cluster.Second, cluster.Minute, cluster.Hour
	for s, want := range map[cluster.Span]string{
		0: "0 s", 999: "0 s", -999: "0 s", -1000: "-1 s", 19 * second: "19 s", 60 * second: "1 min", 71 * second: "1 min 11 s", 299 * second: "4 min 59 s",
		300 * second: "5 min", 432 * second: "7 min", hour - 1: "59 min", hour: "1 h", hour + 59*second: "1 h", 80*minute + 59*second: "1 h 20 min",
		cluster.Day: "1 d", cluster.Day + 59*minute: "1 d", 76*hour + 5*minute: "3 d 4 h", -76 * hour: "-3 d 4 h", math.MinInt64: "-106751991167 d 7 h",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d ms is written %s, want %s", s, got, want)
		}
	}
}

func TestSpanInWordsExactly(t *testing.T) {
	const second, minute, hour = cluster.Second, cluster.Minute, cluster.Hour
	for s, want := range map[cluster.Span]string{
		0: "0 s", 999: "999 ms", -1500: "-1 s 500 ms", 450 * second: "7 min 30 s", 5 * minute: "5 min", hour + second: "1 h 1 s", 90 * minute: "1 h 30 min",
		cluster.Day + 61*minute: "1 d 1 h 1 min", math.MinInt64: "-106751991167 d 7 h 12 min 55 s 807 ms",
	} {
		if got := s.Exact(); got != want {
			t.Errorf("%d ms is written %s, want %s", s, got, want)
		}
	}
	for _, x := range []struct {
		s, other cluster.Span
		want     string
	}{{450 * second, 449 * second, "7 min 30 s"}, {450 * second, 450 * second, "7 min"}, {450 * second, 8 * minute, "7 min"}} {
		if got := x.s.Beside(x.other); got != x.want {
			t.Errorf("%d ms beside %d ms is written %s, want %s", x.s, x.other, got, x.want)
		}
	}
}

func TestSpanForSlurm(t *testing.T) {
	for s, want := range map[cluster.Span]string{0: "00:00:00", 999: "00:00:00", -999: "00:00:00", -1000: "-00:00:01",
		cluster.Day + 61*cluster.Second: "1-00:01:01", -cluster.Day - 61*cluster.Second: "-1-00:01:01"} {
		if got := s.Slurm(); got != want {
			t.Errorf("%d ms is written %s, want %s", s, got, want)
		}
		if back, err := cluster.ParseSpan(want); s >= 0 && (err != nil || back != s/cluster.Second*cluster.Second) {
			t.Errorf("%s is read as %d ms, %v", want, back, err)
		}
	}
}

func TestGPUCountIsAPlainNumber(t *testing.T) {
	for n, want := range map[cluster.GPUCount]string{
		0: "0", cluster.CountOf(4): "4", cluster.CountOf(100): "100", 500_000: "0.5", 125_000: "0.125", 1: "0.000001", 10: "0.00001", 1_500_000: "1.5", -250_000: "-0.25", cluster.CountOf(-3): "-3",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808", 100_000 + 200_000: "0.3",
	} {
		text, err := json.Marshal(n)
		if err != nil || string(text) != want || n.String() != want {
			t.Errorf("%d is written %s and %s, %v; want %s", int64(n), text, n, err, want)
		}
		var back cluster.GPUCount
		if err := json.Unmarshal(text, &back); err != nil || back != n {
			t.Errorf("%s is read as %d, %v; want %d", text, int64(back), err, int64(n))
		}
	}
	for text, want := range map[string]cluster.GPUCount{"null": 7, "4.0": cluster.CountOf(4), "0.500": 500_000, "-0": 0} {
		n := cluster.GPUCount(7)
		if err := json.Unmarshal([]byte(text), &n); err != nil || n != want {
			t.Errorf("%s is read as %d, %v; want %d", text, int64(n), err, int64(want))
		}
	}
	for _, text := range []string{`"4"`, `1e2`, `0.0000001`, `9223372036855`, `[]`, `{}`, `true`, `{"devices":1,"part":500000}`} {
		n := cluster.GPUCount(7)
		if err := json.Unmarshal([]byte(text), &n); err == nil || n != 7 {
			t.Errorf("%s is read as %d, %v; want an error, and the number as it was", text, int64(n), err)
		}
	}
}

// FuzzGPUCount reads any text. It is an error, or a number that is written and read again as the same.
func FuzzGPUCount(f *testing.F) {
	for _, text := range []string{"4", "0.5", "-0.000001", "1e2", "12.", ".5", "1.+5", "--1", "9223372036854.775807"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n, back cluster.GPUCount
		if n.UnmarshalJSON([]byte(text)) != nil {
			if n != 0 {
				t.Fatalf("%q is an error, and leaves %d", text, int64(n))
			}
			return
		}
		out, err := json.Marshal(n)
		if err != nil || json.Unmarshal(out, &back) != nil || back != n {
			t.Fatalf("%q is read as %d, written %s and read as %d: %v", text, int64(n), out, int64(back), err)
		}
	})
}
