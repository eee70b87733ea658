package hostlist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// An unexpanded list contains the same nodes as the expanded one.
func TestASetHasWhatItsListNames(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%0*d", rapid.IntRange(0, 3).Draw(t, "width"), rapid.IntRange(0, 120).Draw(t, "number"))
	})
	part := rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"", "v", "v1", "gpu-"}).Draw(t, "head")
		for range rapid.IntRange(0, 2).Draw(t, "brackets") {
			var spans []string
			for range rapid.IntRange(1, 3).Draw(t, "spans") {
				a := number.Draw(t, "first")
				if rapid.Bool().Draw(t, "range") {
					a += "-" + number.Draw(t, "last")
				}
				spans = append(spans, a)
			}
			text += "[" + strings.Join(spans, ",") + "]" + rapid.SampledFrom([]string{"", "x", "0", "12"}).Draw(t, "tail")
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		list := strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "list"), ",")
		names, err := hostlist.Expand(list)
		parts, wrong := hostlist.Parts(list)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: spelled out: %v; in parts: %v", list, err, wrong)
		}
		if err != nil {
			return
		}
		set := hostlist.SetOf(parts)
		for _, name := range names {
			if !set.Has(name) {
				t.Fatalf("%q does not have %q", list, name)
			}
		}
		for range 20 {
			name := rapid.SampledFrom([]string{"", "v", "v1", "gpu-"}).Draw(t, "prefix") + number.Draw(t, "n") + rapid.SampledFrom([]string{"", "x", "0", "12", "x5", "123"}).Draw(t, "more")
			if set.Has(name) != slices.Contains(names, name) {
				t.Fatalf("%q has %q: %t", list, name, set.Has(name))
			}
		}
		if !hostlist.Same(parts, names) || !hostlist.Same(names, parts) || hostlist.Same(append(names, "more"), parts) {
			t.Fatalf("%q and %v", parts, names)
		}
	})
}

func TestPartsOfLongLists(t *testing.T) {
	for _, list := range []string{"v[1-2", "v[2-1]", "v[a]", "v[]", "v[1,]", "v[1-999999999]", "v[1-999][1-999]", "n[1-199999],m[1-2]", "n[0-200000]",
		"n[0-1099511627777]", strings.Repeat("[1]", 9), strings.Repeat("n", 256), strings.Repeat("n", 250) + "[000001-100000]"} {
		if parts, err := hostlist.Parts(list); err == nil {
			t.Errorf("%.40q: %d parts; want an error", list, len(parts))
		}
	}
	parts, err := hostlist.Parts("n[000000-199999]")
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v, %v", parts, err)
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = hostlist.Parts("n[000000-199999]") }); n > 20 {
		t.Errorf("200,000 names in a word of 16 letters take %v allocations", n)
	}
}

func TestReadableAndFew(t *testing.T) {
	parts, odd := hostlist.Readable("v[2-1],v[3-4],k1,n[0-999999],w[")
	if !slices.Equal(parts, []string{"v[3-4]", "k1"}) || !odd {
		t.Errorf("%q, %v", parts, odd)
	}
	if parts, odd = hostlist.Readable("v[3-4],k1"); len(parts) != 2 || odd {
		t.Errorf("%q, %v", parts, odd)
	}
	for part, want := range map[string]int{"v[1-2,5]": 3, "v1": 1, "v[1-4]": 0, "v[2-1]": 0, "n[0-999999999]": 0} {
		if got := hostlist.Few(part, 3); len(got) != want {
			t.Errorf("%s: %q", part, got)
		}
	}
}
