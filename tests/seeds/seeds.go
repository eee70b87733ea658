// Package seeds draws the random instances of properties that are too slow for as many draws as rapid makes.
package seeds

import (
	"flag"
	"iter"
	"os"
	"testing"

	_ "pgregory.net/rapid" // its flags
)

// Of gives the seeds of n random instances: 0, 1, … n-1, the same in every run. Any value of -rapid.seed but 0 and 1 gives
// other seeds, the same ones for the same value. The flag -rapid.checks, by default 100, scales n: 1,000 makes 10n of it.
func Of(t testing.TB, n int) iter.Seq[uint64] {
	t.Helper()
	seed, checks := flagged[uint64](t, "rapid.seed"), flagged[int](t, "rapid.checks")
	return func(yield func(uint64) bool) {
		for i := range uint64(max(n*checks/100, 1)) {
			if !yield(first(seed) + i) {
				return
			}
		}
	}
}

// Full reports whether the environment variable FAIRLEASE_FULL is set: then tests run all their cases, as in make test.
// Without it, as in make check, a slow test may run fewer.
func Full() bool { return os.Getenv("FAIRLEASE_FULL") != "" }

// first gives the first of the seeds that are made of a seed: those of different seeds are far apart.
func first(seed uint64) uint64 {
	return (max(seed, 1) - 1) * 0x9e37_79b9_7f4a_7c15
}

// flagged gives the value of a flag.
func flagged[T any](t testing.TB, name string) (v T) {
	t.Helper()
	if f := flag.Lookup(name); f != nil {
		v, ok := f.Value.(flag.Getter).Get().(T)
		if ok {
			return v
		}
	}
	t.Errorf("rapid has no flag %s of this type", name)
	return v
}
