package place

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A property that fails must fail again: the same seed every time, unless
// -rapid.seed says otherwise.
func init() { _ = flag.Set("rapid.seed", "1") }

// checks checks a property with the cases of several seeds, one after another. The cases that matter are rare.
func checks(t *testing.T, seeds int, prop func(rt *rapid.T, k int)) {
	seed := flag.Lookup("rapid.seed")
	first, _ := strconv.Atoi(seed.Value.String())
	defer func() { _ = flag.Set("rapid.seed", strconv.Itoa(first)) }()
	for k := range seeds {
		if err := flag.Set("rapid.seed", strconv.Itoa(first+1_000_003*k)); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(rt *rapid.T) { prop(rt, k) })
	}
}
