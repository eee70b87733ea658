package cells

import (
	"fmt"
	"slices"
	"testing"
)

// Where a request makes its VC's own leases opportunistic it takes what is lent to others
// first: on its own the VC would have found these cells idle. So no more of its own leases suffer than there.
func TestWhatIsLentGoesBeforeOnesOwn(t *testing.T) {
	d := Description{Types: []Type{{Name: "node", Child: "gpu", Split: 4, Node: true}, {Name: "gpu", Model: "v100"}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 5}}}, {Name: "b", Cells: []Quota{{Type: "node", Cells: 5}}}}}
	for i := range 10 {
		name := fmt.Sprintf("n%02d", i)
		d.Tops = append(d.Tops, Top{Name: name, Type: "node", Nodes: []string{name}})
	}
	s, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key int, vc string, nodes, priority int) Request {
		return Request{Job: key, VC: vc, Nodes: nodes, GPUs: 4, Priority: priority}
	}
	for key := range 3 {
		if _, err := s.Request(ask(key+1, "a", 1, key+1)); err != nil {
			t.Fatal(err)
		}
	}
	for key := range 7 {
		if _, err := s.Lend(ask(key+11, "b", 1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	// Of five nodes three are taken: two of the three have to go for one of four, the last.
	grant, err := s.Request(ask(20, "a", 4, 9))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2}; !slices.Equal(grant.Demoted, want) {
		t.Errorf("%v lose their cells, want %v", grant.Demoted, want)
	}
	if len(grant.Recall) != 4 || grant.Recall[0] < 11 {
		t.Errorf("%v are recalled, want four of b's", grant.Recall)
	}
	if wrong := s.check(); len(wrong) > 0 {
		t.Error(wrong)
	}
}
