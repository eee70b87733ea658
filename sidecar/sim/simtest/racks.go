package simtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fairlease/fairlease/sidecar/engine/cells"
)

// Racks is the cluster of HiveD §5.3: 8 racks with nodes of 8 GPUs (1,024 for 65,536 GPUs),
// shared by 8 VCs with equal numbers of cells of each level from GPU to node.
func Racks(nodes int) cells.Description {
	d := cells.Description{Types: []cells.Type{
		{Name: "gpu", Model: "v100"},
		{Name: "pcie", Child: "gpu", Split: 2},
		{Name: "socket", Child: "pcie", Split: 2},
		{Name: "node", Child: "socket", Split: 2, Node: true},
		{Name: "rack", Child: "node", Split: nodes},
	}}
	for r := range 8 {
		t := cells.Top{Name: fmt.Sprintf("rack%d", r), Type: "rack"}
		for n := range nodes {
			t.Nodes = append(t.Nodes, fmt.Sprintf("r%dn%05d", r, n))
		}
		d.Tops = append(d.Tops, t)
		v := cells.VC{Name: vcName(r)}
		for _, level := range levels {
			v.Cells = append(v.Cells, cells.Quota{Type: level, Cells: nodes / 2})
		}
		d.VCs = append(d.VCs, v)
	}
	return d
}

var levels = []string{"gpu", "pcie", "socket", "node"}

func vcName(i int) string { return fmt.Sprintf("vc%d", i) }

// Mix is such a cluster in use, for measurements: requests at random levels 1 to 4, granted and
// released again, among opportunistic leases.
type Mix struct {
	State *cells.State
	N     int // requests per filling: 10,000, or the cluster's capacity
	rng   *rand.Rand
	names []string
	key   int
	lent  int // target number of GPUs under opportunistic leases
	guest map[int]int
	cells []cells.Cell
	keys  []int
	gone  []int
}

// NewMix makes a Mix of 8 racks of nodes, with a percentage of the GPUs lent.
func NewMix(nodes, percent int) (*Mix, error) {
	s, err := cells.New(Racks(nodes))
	if err != nil {
		return nil, err
	}
	m := &Mix{State: s, N: min(10_000, nodes*8), rng: rand.New(rand.NewPCG(1, 2)), lent: nodes * 64 * percent / 100, guest: map[int]int{}}
	for i := range 8 {
		m.names = append(m.names, vcName(i))
	}
	return m, m.lend()
}

// lend lends GPUs until the target is reached.
func (m *Mix) lend() error {
	for m.lent > 0 {
		m.key++
		n := 1 << m.rng.IntN(4)
		if _, err := m.State.Lend(cells.Request{Job: m.key, VC: "guest", Nodes: 1, GPUs: n}); err != nil {
			return err
		}
		m.guest[m.key] = n
		m.lent -= n
	}
	return nil
}

// Laps are the durations of a filling: binding N cells, returning them, granting N requests,
// releasing their leases.
type Laps struct{ Allocate, Free, Request, Release time.Duration }

// Fill fills the cluster twice, with cells only and with complete requests, and empties it in
// another order.
func (m *Mix) Fill() (Laps, error) {
	var l Laps
	var err error
	lap := func(spent *time.Duration, f func() error) {
		m.shuffle()
		begin := time.Now()
		if e := f(); err == nil {
			err = e
		}
		*spent = time.Since(begin)
	}
	lap(&l.Allocate, m.allocate)
	lap(&l.Free, m.free)
	lap(&l.Request, m.request)
	lap(&l.Release, m.release)
	if err == nil {
		err = m.restore()
	}
	return l, err
}

// allocate binds N cells and nothing else.
func (m *Mix) allocate() error {
	m.cells = m.cells[:0]
	for range m.N {
		c, err := m.State.Allocate(m.names[m.rng.IntN(8)], "", levels[m.rng.IntN(4)])
		if err != nil {
			return err
		}
		m.cells = append(m.cells, c)
	}
	return nil
}

// shuffle sets the order of release.
func (m *Mix) shuffle() {
	m.rng.Shuffle(len(m.cells), func(i, j int) { m.cells[i], m.cells[j] = m.cells[j], m.cells[i] })
	m.rng.Shuffle(len(m.keys), func(i, j int) { m.keys[i], m.keys[j] = m.keys[j], m.keys[i] })
}

// free returns the cells.
func (m *Mix) free() error {
	for _, c := range m.cells {
		if !m.State.Free(c) {
			return fmt.Errorf("%+v is not free to be given back", c)
		}
	}
	return nil
}

// request makes N complete requests.
func (m *Mix) request() error {
	m.keys = m.keys[:0]
	for range m.N {
		m.key++
		level := m.rng.IntN(4)
		g, err := m.State.Request(cells.Request{Job: m.key, VC: m.names[m.rng.IntN(8)], Level: levels[level], Nodes: 1, GPUs: 1 << level})
		if err != nil {
			return err
		}
		m.keys = append(m.keys, m.key)
		m.gone = append(m.gone, g.Recall...)
	}
	return nil
}

// release ends the leases.
func (m *Mix) release() error {
	for _, key := range m.keys {
		if !m.State.Release(key) {
			return fmt.Errorf("lease %d is not there", key)
		}
	}
	return nil
}

// restore replaces recalled opportunistic leases.
func (m *Mix) restore() error {
	for _, key := range m.gone {
		m.State.Release(key)
		m.lent += m.guest[key]
		delete(m.guest, key)
	}
	m.gone = m.gone[:0]
	return m.lend()
}
