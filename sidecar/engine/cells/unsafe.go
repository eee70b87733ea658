package cells

import "fmt"

// Violation is a way in which a state breaks what it promises.
type Violation struct {
	What          string
	Chain, Type   string
	Cell          string // VC, node or lease that it is about
	Needed, There int
}

func (v Violation) Error() string {
	return fmt.Sprintf("%s: chain %s, type %s, %s (needed %d, there %d)", v.What, v.Chain, v.Type, v.Cell, v.Needed, v.There)
}

// Unsafe evaluates the safety condition, invariant (2), with what each VC has lost: nil if
// every cell that some VC has free can be had.
func (s *Layout) Unsafe() []Violation {
	var out []Violation
	for ci, c := range s.chains {
		for k, row := range c.tree.gaps(nil) {
			if row.needed > row.there {
				out = append(out, Violation{"more cells promised than can be had", c.name, c.tree.levels[k].name, "", row.needed, row.there})
			}
			for _, v := range s.vcs {
				if a := &v.accounts[ci][k]; a.unbound() < 0 {
					out = append(out, Violation{"more cells bound than reserved", c.name, c.tree.levels[k].name, v.name, a.bound, a.reserved - a.lost})
				}
			}
		}
	}
	return out
}
