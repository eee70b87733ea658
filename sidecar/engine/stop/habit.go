package stop

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The bounds of what is kept: habits of all, and of one user. The oldest evidence goes first.
const (
	maxHabits   = 10_000
	maxOfUser   = 500
	maxModels   = 16
	recentStart = 20               // starts over which the mean of the start costs runs
	longStart   = 2 * cluster.Hour // nothing that takes longer is a start
)

// Habits is the habits of all types of jobs during one round. What is put in is not changed: the first change copies it.
type Habits struct {
	list   []cluster.Habit
	index  map[cluster.JobType]int32
	owned  bool // list is a copy
	added  bool
	sorted int // of list: the first so many are sorted
}

// Reset begins a round with the habits of the last one.
func (b *Habits) Reset(list []cluster.Habit) {
	same := !b.added && len(list) == len(b.list) && (len(list) == 0 || &list[0] == &b.list[0])
	b.list, b.owned, b.added, b.sorted = list, false, false, len(list)
	if same && b.index != nil {
		return
	}
	if b.index == nil {
		b.index = make(map[cluster.JobType]int32, len(list))
	}
	clear(b.index)
	for i := range list {
		b.index[list[i].Type] = int32(i)
	}
}

// Len gives the number of habits.
func (b *Habits) Len() int { return len(b.list) }

// Find gives the index of a type's habit, or -1. It is good until Entries is called.
func (b *Habits) Find(t cluster.JobType) int32 {
	if i, ok := b.index[t]; ok {
		return i
	}
	return -1
}

// At gives a habit by its index; nil for -1.
func (b *Habits) At(i int32) *cluster.Habit {
	if i < 0 {
		return nil
	}
	return &b.list[i]
}

// change gives a type's habit to be changed by evidence of that time.
func (b *Habits) change(t cluster.JobType, at cluster.Instant) *cluster.Habit {
	if !b.owned {
		b.list, b.owned = slices.Clone(b.list), true
	}
	i, ok := b.index[t]
	if !ok {
		i = int32(len(b.list))
		b.index[t], b.added = i, true
		b.list = append(b.list, cluster.Habit{Type: t})
	}
	h := &b.list[i]
	h.At = max(h.At, at)
	return h
}

// Judged counts how an attempt after a requeue began, or all of a completed job. Where it resumed, redone is the work
// that it did again, and noticed tells whether a notice came before the requeue.
func (b *Habits) Judged(t cluster.JobType, at cluster.Instant, r cluster.Resumption, redone cluster.Span, noticed bool) {
	h := b.change(t, at)
	h.Last, h.LastAt = r, at
	switch {
	case r == cluster.Restarted:
		h.Restarted++
		return
	case redone > tolerance:
	case noticed:
		h.OnNotice++
	default:
		h.OnTerm++
	}
	h.Resumed++
	h.Redone = max(h.Redone, redone)
}

// Completed counts a job that completed without a requeue.
func (b *Habits) Completed(t cluster.JobType, at cluster.Instant, ran cluster.Span) {
	h := b.change(t, at)
	if h.Completed == 0 {
		h.Shortest = ran
	}
	h.Completed++
	h.Shortest, h.Longest = min(h.Shortest, ran), max(h.Longest, ran)
}

// Saved counts a reported save so long after the one before it.
func (b *Habits) Saved(t cluster.JobType, at cluster.Instant, gap cluster.Span) {
	h := b.change(t, at)
	h.Reports++
	h.Every, h.SavedAt = Longest(h.Every, gap), at
}

// Longest gives the longest of recent gaps: a shorter one lowers it by an eighth of the difference.
func Longest(every, gap cluster.Span) cluster.Span {
	if gap >= every {
		return gap
	}
	return every - (every-gap)/8
}

// Began notes the time from a start on a model to the first progress.
func (b *Habits) Began(t cluster.JobType, at cluster.Instant, model string, took cluster.Span) {
	if took <= 0 || took > longStart || model == "" {
		return
	}
	h := b.change(t, at)
	i, ok := slices.BinarySearchFunc(h.Starts, model, func(s cluster.StartCost, m string) int { return cmp.Compare(s.Model, m) })
	if !ok && len(h.Starts) == maxModels {
		return
	}
	h.Starts = slices.Clone(h.Starts)
	if !ok {
		h.Starts = slices.Insert(h.Starts, i, cluster.StartCost{Model: model})
	}
	s := &h.Starts[i]
	s.Samples++
	s.Mean += (took - s.Mean) / cluster.Span(min(s.Samples, recentStart))
}

// Begin gives what a start costs a job of a habit on a model; otherwise where that is not known. h may be nil.
func Begin(h *cluster.Habit, model string, otherwise cluster.Span) cluster.Span {
	if h != nil {
		for i := range h.Starts {
			if h.Starts[i].Model == model {
				return h.Starts[i].Mean
			}
		}
	}
	return otherwise
}

// Entries gives the habits to remember, by type. It ends the round.
func (b *Habits) Entries() []cluster.Habit {
	if !b.added {
		return b.list
	}
	b.list = inOrder(b.list, b.sorted)
	kept := b.list[:0]
	for from := 0; from < len(b.list); {
		to := from + 1
		for to < len(b.list) && b.list[to].Type.User == b.list[from].Type.User {
			to++
		}
		kept = append(kept, newest(b.list[from:to], maxOfUser)...)
		from = to
	}
	clear(b.list[len(kept):])
	b.list = newest(kept, maxHabits)
	return b.list
}

// inOrder sorts a list by type whose first so many are sorted: those behind them were added in this round.
func inOrder(list []cluster.Habit, sorted int) []cluster.Habit {
	fresh := slices.Clone(list[sorted:])
	slices.SortFunc(fresh, func(x, y cluster.Habit) int { return x.Type.Compare(y.Type) })
	old, at := sorted-1, len(list)-1
	for k := len(fresh) - 1; k >= 0; at-- {
		if old >= 0 && list[old].Type.Compare(fresh[k].Type) > 0 {
			list[at] = list[old]
			old--
		} else {
			list[at] = fresh[k]
			k--
		}
	}
	return list
}

// newest keeps at most so many habits, by type: where there are more, those with the newest evidence, and a
// twentieth fewer, so that it need not be done in every round.
func newest(list []cluster.Habit, most int) []cluster.Habit {
	if len(list) <= most {
		return list
	}
	most -= most / 20
	slices.SortFunc(list, func(x, y cluster.Habit) int { return cmp.Or(cmp.Compare(y.At, x.At), x.Type.Compare(y.Type)) })
	list = list[:most]
	slices.SortFunc(list, func(x, y cluster.Habit) int { return x.Type.Compare(y.Type) })
	return list
}
