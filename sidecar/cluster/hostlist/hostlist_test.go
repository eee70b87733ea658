package hostlist_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

func TestExpand(t *testing.T) {
	for list, want := range map[string]string{
		"":                           "",
		" , ":                        "",
		"k1":                         "k1",
		"v[1-2,05],k1":               "v1 v2 v05 k1",
		"n[008-011]":                 "n008 n009 n010 n011",
		"n[8-11]":                    "n8 n9 n10 n11",
		"n[2,1]":                     "n2 n1",
		"rack[1-2]node[01-02]x":      "rack1node01x rack1node02x rack2node01x rack2node02x",
		"a[0-1][0-1][0-1]":           "a000 a001 a010 a011 a100 a101 a110 a111",
		"[1-2],x":                    "1 2 x",
		strings.Repeat("n", 255):     strings.Repeat("n", 255),
		strings.Repeat("[1]", 8)[:3]: "1",
	} {
		got, err := hostlist.Expand(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("Expand(%q) = %v, %v; want %s", list, got, err, want)
		}
	}
	if got, err := hostlist.Expand("n[000000-199999]"); err != nil || len(got) != hostlist.Max || got[0] != "n000000" || got[hostlist.Max-1] != "n199999" {
		t.Errorf("the longest list: %d names, %v", len(got), err)
	}
	for _, list := range []string{"v[1-2", "v[2-1]", "v[a]", "v[]", "v[1,]", "v[1-999999999]", "n[0-999999999]", "v[1-999][1-999]", "v[-1]", "n[1-199999],m[1-2]",
		"n[0-200000]", "n[9999999999999999999999]", "n[0-1099511627777]", strings.Repeat("[1]", 9), strings.Repeat("n", 256),
		"n[" + strings.Repeat("0", 300) + "]", strings.Repeat("n", 250) + "[000001-100000]", "[1-100000]" + strings.Repeat("n", 256)} {
		if got, err := hostlist.Expand(list); err == nil {
			t.Errorf("Expand(%.40q) = %d names; want an error", list, len(got))
		}
	}
}

func TestCompress(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"v1":              "v1",
		"v1 v2 v3":        "v[1-3]",
		"v1 v3 v4 w1":     "v[1,3-4],w1",
		"v08 v09 v10":     "v[08-10]",
		"v9 v10":          "v[9-10]",
		"login v1":        "login,v1",
		"a1b1 a1b2":       "a1b[1-2]",
		"n99999999999 n1": "n99999999999,n1",
	} {
		if got := hostlist.Compress(strings.Fields(in)); got != want {
			t.Errorf("%q is written %q, want %q", in, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	names := strings.Fields("v10 a v2 v02 v1 99999999999 b3x a1 b10x 7")
	slices.SortFunc(names, hostlist.Compare)
	if got := strings.Join(names, " "); got != "99999999999 7 a a1 b10x b3x v1 v02 v2 v10" {
		t.Error(got)
	}
}

// No list makes Expand use unbounded memory, and an expanded list reads back the same when
// compressed.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"v[1-2,05],k1", "rack[1-2]node[01-02]x", "n[0-999999999]", "n[009-011],n1,n01,n100,n099"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := hostlist.Expand(s)
		if err != nil {
			return
		}
		if len(names) > hostlist.Max {
			t.Fatalf("%d names", len(names))
		}
		for _, n := range names {
			if strings.ContainsAny(n, "[],\t\n\v\f\r \u0085\u00a0") || len(n) > 255 {
				return // not a valid name in Slurm
			}
		}
		again, err := hostlist.Expand(hostlist.Compress(names))
		if err != nil || strings.Join(again, " ") != strings.Join(names, " ") {
			t.Fatalf("%.200q is compressed to %.200q (%v)", names, hostlist.Compress(names), err)
		}
	})
}
