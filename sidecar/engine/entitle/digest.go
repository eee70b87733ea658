package entitle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// digest is a sum of 128 bits over numbers and texts in their order.
type digest struct{ a, b uint64 }

// The constants of the digest are odd, with about as many ones as zeros (Steele and Vigna, 2021).
const (
	seedA, seedB = 0x9e3779b97f4a7c15, 0xd1342543de82ef95
	stirA, stirB = 0xaef17502108ef2d9, 0xdb4f0b9175ae2165
)

func newDigest() digest { return digest{seedA, seedB} }

// number adds a number.
func (d *digest) number(n int64) {
	d.a, d.b = stir(d.a^uint64(n), stirA), stir(d.b+uint64(n), stirB)
}

// stir spreads each bit of a word over all of it.
func stir(x, by uint64) uint64 {
	hi, lo := bits.Mul64(x, by)
	return hi ^ lo
}

// float adds a number with a fraction.
func (d *digest) float(x float64) { d.number(int64(math.Float64bits(x))) }

// text adds a text.
func (d *digest) text(s string) {
	d.number(int64(len(s)))
	for len(s) > 0 {
		var word [8]byte
		s = s[copy(word[:], s):]
		d.number(int64(binary.LittleEndian.Uint64(word[:])))
	}
}

// join adds a part that may come in any order.
func (d *digest) join(part digest) {
	part.number(0)
	part.number(0)
	d.a, d.b = d.a+part.a, d.b+part.b
}

func (d *digest) String() string { return fmt.Sprintf("%016x%016x", d.a, d.b) }

// digestOf identifies requests that need the same allocation. It changes when jobs or GPUs come or go, or when
// speeds become known. Elapsed time, and new reports on known speeds, wait for the next epoch.
func digestOf(q *cluster.AllocationRequest, epoch int64, bids []digest) string {
	d := newDigest()
	d.text(q.Policy)
	d.number(epoch)
	d.number(int64(q.MostKinds))
	d.number(int64(len(q.Pools)))
	for i := range q.Pools {
		d.text(q.Pools[i].Model)
		d.number(int64(q.Pools[i].Count))
	}
	d.number(int64(len(q.Cells)))
	for i := range q.Cells {
		c := &q.Cells[i]
		d.text(c.Tenant)
		for _, list := range [][]int{c.GPUs, c.Base} {
			d.number(int64(len(list)))
			for _, gpus := range list {
				d.number(int64(gpus))
			}
		}
		d.number(int64(len(c.Lots)))
		for _, l := range c.Lots {
			d.text(l.Chain)
			d.text(l.Type)
			d.number(int64(l.GPUs))
			d.number(int64(l.Cells))
		}
	}
	d.number(int64(len(q.Prices)))
	for _, price := range q.Prices {
		d.float(price)
	}
	d.number(int64(len(bids)))
	for _, bid := range bids {
		d.join(bid)
	}
	return d.String()
}

// digestOfTerms is that of speeds in a bid.
func digestOfTerms(t *cluster.Terms) digest {
	d := newDigest()
	for p, s := range t.Speeds {
		if d.text(string(t.Basis[p])); t.Basis[p] == cluster.Declared || s == 0 {
			d.float(s)
		}
	}
	return d
}
