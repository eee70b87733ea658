package place

import "math/bits"

// bitset is a set of small integers that is walked in order.
type bitset []uint64

// bitsets are sets with every member in exactly one.
type bitsets []bitset

// newBitsets makes k sets of integers below n.
func newBitsets(k, n int) bitsets {
	sets, words := make(bitsets, k), (n+63)/64
	all := make(bitset, k*words)
	for i := range sets {
		sets[i] = all[i*words : (i+1)*words]
	}
	return sets
}

// emptied takes everything out, and gives the sets.
func (sets bitsets) emptied() bitsets {
	for _, s := range sets {
		clear(s)
	}
	return sets
}

// all gives the words of all sets, which newBitsets put behind each other.
func (sets bitsets) all() bitset {
	if len(sets) == 0 {
		return nil
	}
	return sets[0][:len(sets)*len(sets[0])]
}

// atLeast reports whether the sets have at least n members together.
func (sets bitsets) atLeast(n int) bool {
	for _, s := range sets {
		for _, word := range s {
			n -= bits.OnesCount64(word)
		}
		if n <= 0 {
			return true
		}
	}
	return n <= 0
}

// move takes i from one set to another.
func (sets bitsets) move(i, from, to int) {
	if from != to {
		sets[from].clear(i)
		sets[to].set(i)
	}
}

func (s bitset) set(i int)   { s[i/64] |= 1 << (i % 64) }
func (s bitset) clear(i int) { s[i/64] &^= 1 << (i % 64) }

func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// count gives the number of members.
func (s bitset) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// next gives the first member ≥ i that is in only, too, or -1. An empty only has all.
func (s bitset) next(i int, only bitset) int { return s.nextOf(i, only, s, true) }

// nextOf is next of the members that are in bound, too, or of those that are not.
func (s bitset) nextOf(i int, only, bound bitset, in bool) int {
	not := ^uint64(0)
	if in {
		not = 0
	}
	for w := i / 64; w < len(s); w++ {
		word := s[w] & (bound[w] ^ not)
		if len(only) > 0 {
			word &= only[w]
		}
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}
