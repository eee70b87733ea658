package cells

import "math/bits"

// none is the key of what cannot be chosen.
const none = ^uint64(0)

// heap keeps the least key of each of many groups of equal size: a tournament
// in an array, the winner of a group at its root.
type heap struct {
	width int // members of a group, rounded up to a power of two
	keys  []uint64
}

func newHeap(groups, members int) heap {
	width := 1 << bits.Len(uint(max(members, 1)-1))
	h := heap{width, make([]uint64, 2*groups*width)}
	for i := range h.keys {
		h.keys[i] = none
	}
	return h
}

// least gives the least key of group g.
func (h *heap) least(g int) uint64 { return h.keys[2*g*h.width+1] }

// set gives member i of group g its key, and tells whether the least of the group changed.
func (h *heap) set(g, i int, key uint64) bool {
	t := h.keys[2*g*h.width : 2*(g+1)*h.width]
	i += h.width
	if t[i] == key {
		return false
	}
	t[i] = key
	for i > 1 {
		i /= 2
		m := min(t[2*i], t[2*i+1])
		if t[i] == m {
			return false
		}
		t[i] = m
	}
	return true
}
