package store

import (
	"bytes"
	"strings"
	"testing"
)

func TestDelta(t *testing.T) {
	t.Parallel()
	const old = `{"at":100,"jobs":[{"key":1,"due":10},{"key":2,"due":20},{"key":3,"due":30}],"nodes":[{"name":"gpu0001"},{"name":"gpu0002"}]}`
	for _, c := range []struct {
		name, text string
		longest    int // bytes of the delta
	}{
		{"the same", old, 6 * 3},
		{"other numbers", `{"at":99,"jobs":[{"key":1,"due":11},{"key":2,"due":9},{"key":3,"due":300000}],"nodes":[{"name":"gpu0001"},{"name":"gpu0002"}]}`, 32},
		{"one is gone", `{"at":100,"jobs":[{"key":1,"due":10},{"key":3,"due":31}],"nodes":[{"name":"gpu0001"},{"name":"gpu0002"}]}`, 25},
		{"one is new", `{"at":100,"jobs":[{"key":1,"due":10},{"key":2,"due":20},{"key":3,"due":30},{"key":4,"due":0}],"nodes":[{"name":"gpu0001"},{"name":"gpu0002"}]}`, 70},
		{"another order", `{"at":100,"jobs":[{"key":3,"due":30},{"key":1,"due":10},{"key":2,"due":20}],"nodes":[{"name":"gpu0001"},{"name":"gpu0002"}]}`, 150},
		{"zeros in front are no number", `{"at":100,"jobs":[],"nodes":[{"name":"gpu0002"},{"name":"gpu00020"},{"name":"gpu2"}]}`, 100},
		{"a sign", `{"at":-100,"jobs":[{"key":1,"due":-10}]}`, 60},
		{"numbers that are too long", `{"at":10000000000000000001,"jobs":[{"key":1,"due":999999999999999999}]}`, 80},
		{"nothing", "", 2},
		{"something else", "{[,{,{[{0{{", 40},
	} {
		o := newOriginal([]byte(old))
		delta := o.delta([]byte(c.text))
		got, err := o.apply(delta, int64(len(c.text)))
		if err != nil || string(got) != c.text {
			t.Errorf("%s: got %q (%v)", c.name, got, err)
		}
		if len(delta) > c.longest {
			t.Errorf("%s: the delta has %d bytes", c.name, len(delta))
		}
		if joined := bytes.Join(cut([]byte(c.text)), nil); string(joined) != c.text {
			t.Errorf("%s: cut into pieces that join to %q", c.name, joined)
		}
	}
}

func FuzzDelta(f *testing.F) {
	f.Add(`{"jobs":[{"key":1,"due":10},{"key":2,"due":20}]}`, `{"jobs":[{"key":1,"due":9},{"key":2,"due":2000}]}`)
	f.Add(`[{"a":00},{"a":18446744073709551615}]`, `[{"a":0},{"a":999999999999999999}]`)
	f.Add("", "[{,{")
	f.Fuzz(func(t *testing.T, old, text string) {
		o := newOriginal([]byte(old))
		got, err := o.apply(o.delta([]byte(text)), int64(len(text)))
		if err != nil || string(got) != text {
			t.Errorf("%q after %q became %q (%v)", text, old, got, err)
		}
	})
}

// FuzzApply decodes arbitrary deltas, as from a broken disk: at most an error, and no more memory
// than allowed.
func FuzzApply(f *testing.F) {
	old := `{"jobs":[{"key":1,"due":10},{"key":2,"due":20}]}`
	o := newOriginal([]byte(old))
	f.Add([]byte{})
	f.Add(o.delta([]byte(strings.ReplaceAll(old, "20", "21"))))
	f.Fuzz(func(t *testing.T, delta []byte) {
		if text, err := o.apply(delta, 1000); err == nil && len(text) != 1000 {
			t.Errorf("it has %d bytes", len(text))
		}
	})
}
