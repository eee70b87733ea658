package lease

import "testing"

// asked keeps the last ask for GPUs.
type asked struct {
	Board
	last Ask
}

func (b *asked) Fit(a Ask) (Placement, bool) {
	b.last = a
	return Placement{}, false
}

// A running job that is placed again in its pool takes any nodes, unless its move to its fewest nodes would pay.
func TestOnlyMovesThatPayNeedTheFewestNodes(t *testing.T) {
	t.Parallel()
	for _, better := range [][]Better{nil, {{Pool: 1}}, {{Pool: 0}}} {
		b := &asked{}
		c := &chooser{in: Input{Candidates: []Candidate{{Running: true, Pools: []int{0, 1}, Shape: 3, Better: better}}}, board: b}
		for pool := range 2 {
			fit(c, 0, Ask{Shape: 3, Pool: pool})
			if want := pool == 0 && better != nil && better[0].Pool == 0; b.last.Together != want {
				t.Errorf("moves to %v pay: in pool %d it takes its fewest nodes only: %v, want %v", better, pool, b.last.Together, want)
			}
		}
	}
}
