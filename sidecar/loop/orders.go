package loop

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Scheduler is a virtual cluster's own scheduler, with the view of one round. Ask waits for its answer, for a bounded time; VC, At and Since are unset.
type Scheduler struct {
	VC  string
	Ask func() cluster.VCOrder
}

// orders are the answers of virtual clusters' own schedulers. A slow one delays neither rounds nor others.
type orders struct {
	commands map[string][]string // by VC: what is asked there
	last     []cluster.VCOrder   // by VC; replaced, never modified
	pending  map[string]chan ordered
}

// ordered is the answer of a scheduler.
type ordered struct {
	cluster.VCOrder
	broke string // panic and place; "" = none
}

// keep forgets the answers, also those under way, of programs that are no longer a virtual cluster's scheduler.
func (o *orders) keep(c *cluster.Cells) {
	was := o.commands
	o.commands = map[string][]string{}
	if c != nil {
		for i := range c.VCs {
			if s := c.VCs[i].Scheduler; s != nil {
				o.commands[c.VCs[i].Name] = s.Command
			}
		}
	}
	gone := func(vc string) bool { return !slices.Equal(was[vc], o.commands[vc]) }
	maps.DeleteFunc(o.pending, func(vc string, _ chan ordered) bool { return gone(vc) })
	if goes := func(x cluster.VCOrder) bool { return gone(x.VC) }; slices.ContainsFunc(o.last, goes) {
		o.last = slices.DeleteFunc(slices.Clone(o.last), goes)
	}
}

// ask asks the schedulers that owe no answer, with views of a moment.
func (o *orders) ask(all []Scheduler, at cluster.Instant) {
	if o.pending == nil {
		o.pending = map[string]chan ordered{}
	}
	for _, s := range all {
		if o.pending[s.VC] == nil {
			answer := make(chan ordered, 1)
			o.pending[s.VC] = answer
			go func() { answer <- s.answer(at) }()
		}
	}
}

// answer asks a scheduler. A panic is a failure.
func (s *Scheduler) answer(at cluster.Instant) (x ordered) {
	defer func() {
		if cause := recover(); cause != nil {
			x.Why, x.broke = fmt.Sprintf("fairlease broke down as it asked: %v", cause), fmt.Sprintf("the scheduler of %s: %v\n%s", s.VC, cause, debug.Stack())
		}
		x.VC, x.At, x.Since = s.VC, at, at
	}()
	return ordered{VCOrder: s.Ask()}
}

// hear takes the answers that have come, and reports whether one differs from that before, and the panic in one.
func (o *orders) hear() (news bool, broke string) {
	for _, vc := range slices.Sorted(maps.Keys(o.pending)) {
		select {
		case x := <-o.pending[vc]:
			delete(o.pending, vc)
			broke = cmp.Or(broke, x.broke)
			at, known := slices.BinarySearchFunc(o.last, vc, func(x cluster.VCOrder, vc string) int { return cmp.Compare(x.VC, vc) })
			now := slices.Clone(o.last)
			if !known {
				now = slices.Insert(now, at, x.VCOrder)
			} else if was := o.last[at]; was.Why == x.Why {
				x.Since = was.Since
			}
			news = news || !known || x.Why != o.last[at].Why || !reflect.DeepEqual(x.Turns, o.last[at].Turns)
			now[at], o.last = x.VCOrder, now
		default:
		}
	}
	return news, broke
}
