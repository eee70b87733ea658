package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Bad nodes are host lists by reason, however many they are and whatever the reason says.
func TestBadNodes(t *testing.T) {
	var many, odd []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("n%d (down)", 200-i))
		odd = append(odd, fmt.Sprintf("rack%d-gpu%d (drain: see (ticket) 7)", i%7, 3*i))
	}
	if d := cmp.Diff([]string{"n[1-200]: down", "k2,w1: drain (no power)", "v1: fail"}, view.BadNodes(append(many, "v1 (fail)", "w1 (drain (no power))", "k2 (drain (no power))"))); d != "" {
		t.Error(d)
	}
	if got := view.BadNodes(odd); len(got) != 1 || len(got[0]) > 300 || !strings.HasSuffix(got[0], "… (200 nodes): drain: see (ticket) 7") {
		t.Errorf("%q", got)
	}
	if got := view.BadNodes(nil); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
