package cells_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/cells"
)

// A gang of hundreds of nodes fits into racks, nodes and halves in more ways than are kept. It is granted where large cells first have room
// for it, refused for sure where not even the best cells of each level together have, and in between the refusal says that not all
// ways were weighed. None of them takes long.
func TestTooManyWays(t *testing.T) {
	const racks, in = 120, 8
	d := cells.Description{
		Types: []cells.Type{{Name: "rack", Child: "node", Split: in}, {Name: "node", Child: "half", Split: 2, Node: true}, {Name: "half", Child: "gpu", Split: 4}, {Name: "gpu", Model: "v100"}},
		VCs:   []cells.VC{{Name: "a", Cells: []cells.Quota{{Type: "rack", Cells: 30}, {Type: "node", Cells: 150}, {Type: "half", Cells: 200}}}},
	}
	for r := range racks {
		top := cells.Top{Name: fmt.Sprintf("r%03d", r), Type: "rack"}
		for n := range in {
			top.Nodes = append(top.Nodes, fmt.Sprintf("r%03dn%d", r, n))
		}
		d.Tops = append(d.Tops, top)
	}
	s, err := cells.New(d)
	if err != nil {
		t.Fatal(err)
	}
	// A number between 0 and 7 for each node.
	drawn := func(node string) int {
		return (7*int(node[3]) + 3*int(node[2]) + 5*int(node[5]) + int(node[3])*int(node[5])) % 8
	}
	few := func(node string, _ int) bool { return strings.HasPrefix(node, "r007n") && node != "r007n3" }
	half := func(node string, _ int) bool { return drawn(node)%2 == 0 }
	some := func(node string, gpus int) bool { return gpus <= 1+drawn(node) }
	for _, c := range []struct {
		name        string
		nodes, gpus int
		admits      func(string, int) bool
		there       int // 0 = it is granted
		cut         bool
	}{
		{"few nodes admit it", 8, 4, few, 7, false},
		{"half of the nodes admit it", 480, 4, half, 0, false},
		{"one too many", 481, 4, half, 480, false},
		{"each admits some", 2900, 1, some, 0, false},
		{"perhaps too many", 3000, 1, some, 2969, true},
		{"surely too many", 3500, 1, some, 2969, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Request(cells.Request{Job: 1, VC: "a", Nodes: c.nodes, GPUs: c.gpus, Level: "half", Apart: c.gpus > 1, Admits: c.admits})
			if err == nil {
				s.Release(1)
			}
			var no cells.Refusal
			if errors.As(err, &no) != (c.there > 0) || no.There != c.there || no.Cut != c.cut || strings.Contains(no.Error(), "too many ways") != c.cut {
				t.Errorf("it is told %+v (%v)", no, err)
			}
		})
	}
}
