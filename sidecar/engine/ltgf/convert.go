package ltgf

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Sides are the two sides of a trade of fast GPUs for slow ones (Gandiva_fair §3.4), and its amounts, which are its price.
//
// Balances go with traded entitlements, at the price. If a side gives a third of its entitlement in a pool, a third
// of its accounts there moves to the other side, which gives it as much in the other pool for it: a tenant that sells
// all its slow GPUs is repaid, or repays, in fast ones. So the accounts of each pool keep their sum, and those of each side their
// value at the price.
type Sides struct {
	FastTo, SlowTo Side // one gets fast GPUs, the other one slow ones
	Fast, Slow     cluster.MicroGPU
}

// Side is the accounts of one side in the pools of the two models, and how far ahead it may be there (Ahead).
type Side struct {
	Fast, Slow           *cluster.TenantPool
	FastAhead, SlowAhead cluster.GPUTime
}

// Given is the part of an entitlement that a side gives: GPUs of its entitlement before.
type Given struct{ GPUs, Of cluster.MicroGPU }

func (g Given) of(time cluster.GPUTime) cluster.GPUTime {
	if g.GPUs <= 0 || g.Of <= 0 {
		return 0
	}
	return ofPart(time, cluster.GPUTime(g.GPUs), cluster.GPUTime(g.Of))
}

// Convert moves the balances of a new trade: slow is what FastTo gives, fast what SlowTo gives. It returns what it moved.
func (s *Sides) Convert(slow, fast Given) cluster.Moved {
	var moved cluster.Moved
	for _, l := range s.FastTo.Slow.Lots {
		moved.Debts = append(moved.Debts, cluster.MovedLot{Start: l.Start, MovedTime: s.pair(slow.of(l.Time), 0)})
	}
	for _, l := range s.SlowTo.Fast.Lots {
		at, same := slices.BinarySearchFunc(moved.Debts, l.Start, func(m cluster.MovedLot, at cluster.Instant) int { return cmp.Compare(m.Start, at) })
		if !same {
			moved.Debts = slices.Insert(moved.Debts, at, cluster.MovedLot{Start: l.Start})
		}
		more := s.pair(0, fast.of(l.Time))
		moved.Debts[at].Slow += more.Slow
		moved.Debts[at].Fast += more.Fast
	}
	moved.Debts = slices.DeleteFunc(moved.Debts, func(m cluster.MovedLot) bool { return m.Slow == 0 && m.Fast == 0 })
	moved.Deficit = s.within(s.pair(slow.of(s.FastTo.Slow.Deficit), fast.of(s.SlowTo.Fast.Deficit)))
	s.move(moved.Deficit)
	for _, m := range moved.Debts {
		s.moveDebt(m)
	}
	return moved
}

// Revert moves back as much of what a trade moved as ended of it: GPUs of the slow GPUs that it had. It returns the rest.
// So a trade and its end leave all accounts as they were, whatever other trades do. ConvertLeads follows.
func (s *Sides) Revert(moved cluster.Moved, ended Given) cluster.Moved {
	back := cluster.MovedTime{Slow: -ended.of(moved.Deficit.Slow), Fast: -ended.of(moved.Deficit.Fast)}
	s.move(back)
	rest := cluster.Moved{Deficit: cluster.MovedTime{Slow: moved.Deficit.Slow + back.Slow, Fast: moved.Deficit.Fast + back.Fast}}
	for _, m := range moved.Debts {
		back := cluster.MovedLot{Start: m.Start, MovedTime: cluster.MovedTime{Slow: -ended.of(m.Slow), Fast: -ended.of(m.Fast)}}
		s.moveDebt(back)
		if m.Slow, m.Fast = m.Slow+back.Slow, m.Fast+back.Fast; m.Slow != 0 || m.Fast != 0 {
			rest.Debts = append(rest.Debts, m)
		}
	}
	return rest
}

// ConvertLeads converts the lead by which a side exceeds what it may be ahead by now that a trade has ended: it built it up with traded
// GPUs. The other side takes it over, and is given as much in the other pool. Settle would forgive it. It returns the amounts.
func (s *Sides) ConvertLeads() cluster.MovedTime {
	beyond := max(s.SlowTo.slowLead(), s.slow(s.FastTo.fastLead()), 0)
	if beyond == 0 {
		beyond = min(-s.FastTo.slowLead(), -s.slow(s.SlowTo.fastLead()), 0)
	}
	m := s.within(s.pair(beyond, 0))
	s.move(m)
	return m
}

func (s *Side) slowLead() cluster.GPUTime { return -s.Slow.Deficit - s.SlowAhead }
func (s *Side) fastLead() cluster.GPUTime { return -s.Fast.Deficit - s.FastAhead }

// Age drops what has left the window from what a trade moved, as it has left the accounts; with a half-life it
// decays as they do. dt is the time since the last look.
func Age(moved cluster.Moved, now cluster.Instant, dt cluster.Span, s *cluster.Settings) cluster.Moved {
	var kept []cluster.MovedLot
	for _, m := range moved.Debts {
		switch {
		case s.HalfLife > 0:
			w := weight(dt, s.HalfLife)
			m.Slow, m.Fast = ofPart(m.Slow, cluster.GPUTime(w), weightOne), ofPart(m.Fast, cluster.GPUTime(w), weightOne)
		case s.Window > 0 && m.Start <= now-cluster.Instant(s.Window):
			continue
		}
		if m.Slow != 0 || m.Fast != 0 {
			kept = append(kept, m)
		}
	}
	moved.Debts = kept
	return moved
}

// pair gives the two amounts that move for an amount of slow GPU time from FastTo and one of fast GPU time from SlowTo.
func (s *Sides) pair(slow, fast cluster.GPUTime) cluster.MovedTime {
	return cluster.MovedTime{Slow: slow + s.slow(fast), Fast: cluster.GPUTime(Portion(int64(slow), int64(s.Fast), int64(s.Slow))) + fast}
}

// slow gives the slow GPU time that fast GPU time is worth at the price.
func (s *Sides) slow(fast cluster.GPUTime) cluster.GPUTime {
	return cluster.GPUTime(Portion(int64(fast), int64(s.Slow), int64(s.Fast)))
}

// within limits a move so that it puts neither side further ahead than it may be: Settle would forgive that.
func (s *Sides) within(m cluster.MovedTime) cluster.MovedTime {
	give, take, sign := &s.FastTo, &s.SlowTo, cluster.GPUTime(1)
	if m.Slow < 0 {
		give, take, sign = &s.SlowTo, &s.FastTo, -1
	}
	if room := max(min(-give.slowLead(), s.slow(-take.fastLead())), 0); sign*m.Slow > room {
		return s.pair(sign*room, 0)
	}
	return m
}

func (s *Sides) move(m cluster.MovedTime) {
	s.FastTo.Slow.Deficit -= m.Slow
	s.SlowTo.Slow.Deficit += m.Slow
	s.SlowTo.Fast.Deficit -= m.Fast
	s.FastTo.Fast.Deficit += m.Fast
}

func (s *Sides) moveDebt(m cluster.MovedLot) {
	shift(s.FastTo.Slow, m.Start, -m.Slow)
	shift(s.SlowTo.Slow, m.Start, m.Slow)
	shift(s.SlowTo.Fast, m.Start, -m.Fast)
	shift(s.FastTo.Fast, m.Start, m.Fast)
}

// shift changes a debt account by an amount of the age of start. Against lots of the other sign it goes to the one of that
// age first, and then to the oldest, so that moving the same amount back restores all ages.
func shift(t *cluster.TenantPool, start cluster.Instant, change cluster.GPUTime) {
	t.Owed += change
	for change != 0 && len(t.Lots) > 0 && (t.Lots[0].Time > 0) != (change > 0) {
		at, same := lotOf(t, start)
		if !same {
			at = 0
		}
		l := &t.Lots[at]
		if left := l.Time + change; left != 0 && (left > 0) == (l.Time > 0) {
			l.Time = left
			return
		}
		change += l.Time
		t.Lots = slices.Delete(t.Lots, at, at+1)
	}
	if change == 0 {
		return
	}
	at, same := lotOf(t, start)
	if !same {
		t.Lots = slices.Insert(t.Lots, at, cluster.Lot{Start: start})
	}
	t.Lots[at].Time += change
}

func lotOf(t *cluster.TenantPool, start cluster.Instant) (at int, same bool) {
	return slices.BinarySearchFunc(t.Lots, start, func(l cluster.Lot, at cluster.Instant) int { return cmp.Compare(l.Start, at) })
}
