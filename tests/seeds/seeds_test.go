package seeds_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/tests/seeds"
)

// The flags of rapid choose the seeds, and how many there are.
func TestOf(t *testing.T) {
	under := func(seed, checks string) []uint64 {
		t.Helper()
		for name, value := range map[string]string{"rapid.seed": seed, "rapid.checks": checks} {
			f := flag.Lookup(name)
			if f == nil {
				t.Fatalf("there is no flag %s", name)
			}
			was := f.Value.String()
			t.Cleanup(func() { _ = flag.Set(name, was) })
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Collect(seeds.Of(t, 3))
	}
	for _, seed := range []string{"0", "1"} {
		if got := under(seed, "100"); !slices.Equal(got, []uint64{0, 1, 2}) {
			t.Errorf("seed %s gives %v, want 0, 1, 2", seed, got)
		}
	}
	if got := under("1", "10"); len(got) != 1 {
		t.Errorf("a tenth of three is %v, want one", got)
	}
	all := slices.Concat(under("1", "1000"), under("2", "1000"), under("3", "1000"), under("4294967295", "1000"))
	if slices.Sort(all); len(all) != 120 || len(slices.Compact(all)) != 120 {
		t.Errorf("four seeds give %d instances, %d of them different; want 120", len(all), len(slices.Compact(all)))
	}
}
