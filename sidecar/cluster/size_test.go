package cluster_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const half = cluster.WholeGPU / 2

func TestSizeInJSON(t *testing.T) {
	for size, want := range map[cluster.Size]string{
		{}: `0`, cluster.Whole(0): `0`, cluster.Whole(8): `8`, cluster.Whole(99_999_999_999): `99999999999`, {1, half}: `{"devices":1,"part":500000}`, {4, 1}: `{"devices":4,"part":1}`,
	} {
		text, err := json.Marshal(size)
		if err != nil || string(text) != want {
			t.Errorf("%v is written %s, %v; want %s", size, text, err, want)
		}
		var back cluster.Size
		if err := json.Unmarshal(text, &back); err != nil || back != size {
			t.Errorf("%s is read as %v, %v; want %v", text, back, err, size)
		}
	}
	for _, text := range []string{`1.5`, `"8"`, `[]`, `true`, `99999999999999999999`, `{}`, `{"devices":1}`, `{"part":500000}`, `{"devices":0,"part":500000}`,
		`{"devices":-1,"part":500000}`, `{"devices":1,"part":0}`, `{"devices":1,"part":-1}`, `{"devices":1,"part":1000001}`, `{"devices":2147483648,"part":1}`, `{"devices":1,"part":0.5}`} {
		size := cluster.Whole(3)
		if err := json.Unmarshal([]byte(text), &size); err == nil || size != cluster.Whole(3) {
			t.Errorf("%s is read as %v, %v; want an error, and the size as it was", text, size, err)
		}
	}
	for _, text := range []string{`8`, ` 8 `, `{"part":1000000,"devices":8}`} {
		var size cluster.Size
		if err := json.Unmarshal([]byte(text), &size); err != nil || size != cluster.Whole(8) {
			t.Errorf("%s is read as %v, %v; want 8", text, size, err)
		}
	}
}

// FuzzSize reads any text. It is an error, or a size that is written and read again as the same.
func FuzzSize(f *testing.F) {
	for _, text := range []string{`8`, `0`, `-0`, `null`, `{"devices":1,"part":500000}`, `{"devices":8,"part":1000000}`, `{"Devices":1,"part":1,"part":2}`, `1e2`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var size, back cluster.Size
		if json.Unmarshal([]byte(text), &size) != nil {
			if size != (cluster.Size{}) {
				t.Fatalf("%q is an error, and leaves %v", text, size)
			}
			return
		}
		if size.Part < 0 || size.Part > cluster.WholeGPU || (size.Devices == 0) != (size.Part == 0) {
			t.Fatalf("%q is read as %#v", text, size)
		}
		out, err := json.Marshal(size)
		if err != nil || json.Unmarshal(out, &back) != nil || back != size {
			t.Fatalf("%q is read as %#v, written %s and read as %#v: %v", text, size, out, back, err)
		}
	})
}

func TestSizeCounts(t *testing.T) {
	for _, c := range []struct {
		size   cluster.Size
		amount cluster.MicroGPU
		whole  bool
		time   cluster.GPUTime // over 3 ms
		words  string
	}{
		{cluster.Size{}, 0, true, 0, "0"},
		{cluster.Whole(8), 8 * cluster.WholeGPU, true, 24, "8"},
		{cluster.Size{1, half}, half, false, 1, "1 × 0.5"},
		{cluster.Size{2, half}, cluster.WholeGPU, false, 3, "2 × 0.5"},
		{cluster.Size{3, 333_333}, 999_999, false, 2, "3 × 0.333333"},
	} {
		if c.size.Amount() != c.amount || c.size.IsWhole() != c.whole || c.size.Over(3) != c.time || c.size.Over(-3) != -c.time || c.size.String() != c.words {
			t.Errorf("%#v is %d, whole %v, %d and %d in 3 ms, %q; want %+v", c.size, c.size.Amount(), c.size.IsWhole(), c.size.Over(3), c.size.Over(-3), c.size, c)
		}
	}
}

// The GPU time of a size is exact, rounded towards zero, and saturates.
func TestSizeOverIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := cluster.Size{Devices: rapid.IntRange(1, math.MaxInt32).Draw(t, "devices"), Part: cluster.MicroGPU(rapid.Int64Range(1, int64(cluster.WholeGPU)).Draw(t, "part"))}
		span := cluster.Span(rapid.Int64Range(-1<<62, 1<<62).Draw(t, "span") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		want := new(big.Int).Mul(big.NewInt(int64(size.Devices)), big.NewInt(int64(size.Part)))
		want.Mul(want, big.NewInt(int64(span))).Quo(want, big.NewInt(int64(cluster.WholeGPU)))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64 * int64(want.Sign()))
		}
		if got := size.Over(span); int64(got) != want.Int64() {
			t.Fatalf("%v over %d is %d, want %d", size, span, got, want)
		}
	})
}
