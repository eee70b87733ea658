package cells

import (
	"reflect"
	"testing"
)

// A rebuild from a plain state equals one from its description, and the plain state stays
// unchanged, whatever happens to the rebuilt one.
func TestAPlainStateStaysPlain(t *testing.T) {
	d := twoNodes()
	plain, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	untouched, _ := New(d)
	var r Record
	for round := range 3 {
		s, _ := plain.Rebuild(r)
		again, _, err := restored(d, r)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("round %d: %v: it differs from what is rebuilt from the description", round, err)
		}
		key := round + 1
		if _, err := s.Request(Request{Job: key, VC: d.VCs[0].Name, Nodes: 1, GPUs: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lend(Request{Job: 10 + key, VC: d.VCs[0].Name, Nodes: 1, GPUs: 1}); err != nil {
			t.Fatal(err)
		}
		s.SetBad(d.Tops[0].Nodes[0], 1<<round)
		if r = s.Leases.Export(); len(r.Leases) != 2*(round+1) || len(r.Bad) == 0 {
			t.Fatalf("round %d: %+v", round, r)
		}
		if !reflect.DeepEqual(plain, untouched) {
			t.Fatalf("round %d changed the plain state", round)
		}
	}
}
