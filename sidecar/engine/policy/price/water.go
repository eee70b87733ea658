package price

import (
	"cmp"
	"math"
	"slices"
)

// Entity is a group of jobs, or of entities, that share what is due to it (Gavel §4.3, at any depth).
type Entity struct {
	Weight float64  // > 0
	FIFO   bool     // the first of its members first; else all of them by weight
	Jobs   []int    // their numbers; none if it consists of entities
	Of     []Entity // none if it consists of jobs
}

// Pour gives what each job has once every entity has had Weight·tau of water: within an entity the members by
// weight or first come first, none above its cap. The other members of the same entity have the rest of one that is at its cap, then those one level up.
func Pour(entities []Entity, weight, caps []float64, tau float64) []float64 {
	w := newWater(entities, weight, caps, nil)
	w.settle()
	w.pour(tau)
	return w.level[:len(weight)]
}

// water says how high each job stands when every entity has had Weight·tau of water. A
// job's cap is what it can hold: the rest of its entity shares what does not fit. That is
// Gavel's redistribution of the weights of bottlenecked jobs. A job's floor is what it has at any
// tau: the rest of its entity has less for it, until each would have as much by weight.
//
// Slices are by member: the jobs, then the entities, each before its own members.
type water struct {
	basins []basin
	floors bool      // some job has a floor
	weight []float64 // within the member's entity
	floor  []float64
	cap    []float64
	full   []bool    // stands at its cap for good
	level  []float64 // written by pour
	rate   []float64 // how fast level rises with tau; written by pour
}

// basin is an entity of the water.
type basin struct {
	at      int // its own number as a member
	top     bool
	fifo    bool
	members []int
	turns   []turn  // of a fair one, by height
	still   float64 // floors of the members that do not rise at first
}

// turn is the height, level over weight, at which a member begins to rise from its floor, or ends at its cap.
type turn struct {
	high   float64
	member int
	begins bool
	rest   float64 // the weight of those that rise below that height
}

// newWater makes the water of entities; no floors = all 0.
func newWater(entities []Entity, weight, caps, floors []float64) *water {
	w := &water{weight: slices.Clone(weight), cap: slices.Clone(caps), floor: slices.Clone(floors)}
	if w.floors = floors != nil; !w.floors {
		w.floor = make([]float64, len(weight))
	}
	for i := range entities {
		w.add(&entities[i], true)
	}
	n := len(w.weight)
	w.full, w.level, w.rate = make([]bool, n), make([]float64, n), make([]float64, n)
	return w
}

// add adds an entity with its members, and gives its number.
func (w *water) add(e *Entity, top bool) int {
	at, i := len(w.weight), len(w.basins)
	w.weight, w.cap, w.floor = append(w.weight, e.Weight), append(w.cap, 0), append(w.floor, 0)
	w.basins = append(w.basins, basin{at: at, top: top, fifo: e.FIFO})
	members := slices.Clone(e.Jobs)
	for j := range e.Of {
		members = append(members, w.add(&e.Of[j], false))
	}
	w.basins[i].members = members
	return at
}

// settle takes over new caps, and gives the tau at which all stand at theirs.
func (w *water) settle() float64 {
	highest := 0.0
	for i := range slices.Backward(w.basins) {
		g := &w.basins[i]
		low, high, full := 0.0, 0.0, true
		for _, m := range g.members {
			if w.full[m] || w.floor[m] > w.cap[m] {
				w.floor[m] = w.cap[m]
			}
			low, high, full = low+w.floor[m], high+w.cap[m], full && w.full[m]
		}
		w.floor[g.at], w.cap[g.at], w.full[g.at] = low, high, full
		if g.top {
			highest = max(highest, high/w.weight[g.at])
		}
		if !g.fifo {
			w.line(g)
		}
	}
	return highest * (1 + 1e-12) // all reach their caps in spite of rounding
}

// line sets the turns of a fair entity.
func (w *water) line(g *basin) {
	g.turns, g.still = g.turns[:0], 0
	rising, rest := 0, sum{}
	for _, m := range g.members {
		if w.floors && w.full[m] { // perhaps at a floor that is above the others
			g.still += w.cap[m]
			continue
		}
		g.turns = append(g.turns, turn{high: w.cap[m] / w.weight[m], member: m})
		if w.floors && w.floor[m] > 0 {
			g.turns = append(g.turns, turn{high: w.floor[m] / w.weight[m], member: m, begins: true})
			g.still += w.floor[m]
			continue
		}
		rising++
		rest.add(w.weight[m])
	}
	slices.SortFunc(g.turns, func(a, b turn) int {
		if a.begins != b.begins && a.high == b.high { // a floor may be the cap
			if a.begins {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.member, b.member))
	})
	if !w.floors { // all rise at first: the same without differences of sums
		weights := 0.0
		for i := range slices.Backward(g.turns) {
			weights += w.weight[g.turns[i].member]
			g.turns[i].rest = weights
		}
		return
	}
	for i := range g.turns {
		t := &g.turns[i]
		if t.rest = rest.value(); rising == 0 {
			t.rest = 0
		}
		if t.begins {
			rising++
			rest.add(w.weight[t.member])
		} else {
			rising--
			rest.add(-w.weight[t.member])
		}
	}
}

// sum is a sum whose rounding errors are added up, too: light members are not lost where heavy ones come and go.
type sum struct{ whole, lost float64 }

func (s *sum) add(x float64) {
	t := s.whole + x
	if math.Abs(s.whole) >= math.Abs(x) {
		s.lost += s.whole - t + x
	} else {
		s.lost += x - t + s.whole
	}
	s.whole = t
}

func (s *sum) value() float64 { return s.whole + s.lost }

// pour sets level and rate.
func (w *water) pour(tau float64) {
	for i := range w.basins {
		g := &w.basins[i]
		if e := g.at; g.top {
			w.stand(e, w.weight[e]*tau, w.weight[e])
		}
		if g.fifo {
			w.inTurn(g)
		} else {
			w.byWeight(g)
		}
	}
}

// stand sets the level of a member to which so much is due, and its rate to that at which more is, if it rises.
func (w *water) stand(m int, due, rate float64) {
	switch {
	case w.full[m] || due >= w.cap[m]:
		w.level[m], w.rate[m] = w.cap[m], 0
	case due <= w.floor[m]:
		w.level[m], w.rate[m] = w.floor[m], 0
	default:
		w.level[m], w.rate[m] = due, rate
	}
}

// ends sets the members of an entity that stands at its floor or its cap, and tells whether it does.
func (w *water) ends(g *basin) bool {
	level := w.level[g.at]
	at := w.floor
	switch {
	case level >= w.cap[g.at]:
		at = w.cap
	case level > w.floor[g.at]:
		return false
	}
	for _, m := range g.members {
		w.level[m], w.rate[m] = at[m], 0
	}
	return true
}

// inTurn pours over the members of an entity, the first of them first.
func (w *water) inTurn(g *basin) {
	if w.ends(g) {
		return
	}
	left := w.level[g.at] - w.floor[g.at]
	for _, m := range g.members {
		w.stand(m, w.floor[m]+left, w.rate[g.at])
		left = max(left-(w.cap[m]-w.floor[m]), 0)
	}
}

// byWeight pours over the members of an entity, all of them by weight.
func (w *water) byWeight(g *basin) {
	if w.ends(g) {
		return
	}
	left, high, slope := w.level[g.at]-g.still, math.Inf(1), 0.0
	for i := range g.turns {
		t := &g.turns[i]
		if left < t.high*t.rest {
			high, slope = left/t.rest, w.rate[g.at]/t.rest
			break
		}
		if t.begins {
			left += w.floor[t.member]
		} else {
			left -= w.cap[t.member]
		}
	}
	for _, m := range g.members {
		w.stand(m, w.weight[m]*high, w.weight[m]*slope)
	}
}
