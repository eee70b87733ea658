package stop

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
)

// The maximum numbers of habits, in total and per user. The oldest evidence is dropped first.
const (
	maxHabits   = 10_000
	maxOfUser   = 500
	maxModels   = 16
	recentStart = 20               // starts in the running mean of the start costs
	longStart   = 2 * cluster.Hour // longer times are no start
)

// Habits is the habits of all types of jobs during one round. Its input stays unchanged: the
// first change makes a copy.
type Habits struct {
	Version  int  // another one if a type's index may be another one
	Evidence int  // another one if some type may save or start in another way: see Resolve, Takes and Begin
	Brief    bool // the habits of a round are valid only until the round after the next one: their memory is then reused

	lists  [2][]cluster.Habit // memory of Brief
	list   []cluster.Habit
	index  map[cluster.JobType]int32
	owned  bool // list is a copy
	added  bool
	sorted int // length of the sorted prefix of list
}

// Reset begins a round with the last round's habits.
func (b *Habits) Reset(list []cluster.Habit) {
	same, added := len(list) == len(b.list) && (len(list) == 0 || &list[0] == &b.list[0]), b.added
	b.list, b.owned, b.added, b.sorted = list, false, false, len(list)
	if !same {
		b.Evidence++
	}
	if same && !added && b.index != nil {
		return
	}
	b.Version++
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

// Find gives the index of a type's habit, or -1. It is valid until Entries is called.
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

// change gives a type's habit for an update with evidence of that time.
func (b *Habits) change(t cluster.JobType, at cluster.Instant) *cluster.Habit {
	if !b.owned {
		b.list, b.owned = b.copied(), true
	}
	i, ok := b.index[t]
	if !ok {
		i = int32(len(b.list))
		b.index[t], b.added, b.Version = i, true, b.Version+1
		b.list = append(b.list, cluster.Habit{Type: t})
	}
	h := &b.list[i]
	h.At = max(h.At, at)
	return h
}

// copied gives a copy of the input.
func (b *Habits) copied() []cluster.Habit {
	if !b.Brief {
		return slices.Clone(b.list)
	}
	to := &b.lists[0]
	if len(*to) > 0 && len(b.list) > 0 && &(*to)[0] == &b.list[0] {
		to = &b.lists[1]
	}
	*to = append((*to)[:0], b.list...)
	return *to
}

// learn is change for evidence of how jobs save or start.
func (b *Habits) learn(t cluster.JobType, at cluster.Instant) *cluster.Habit {
	b.Evidence++
	return b.change(t, at)
}

// Judged counts how an attempt after a requeue began, or a whole completed job. If it resumed,
// redone is its repeated work; own tells whether the requeue was ours, and whether a notice preceded it. After a
// requeue by others nothing is known of when the job saves: it may have requeued itself right after a save.
func (b *Habits) Judged(t cluster.JobType, at cluster.Instant, r cluster.Resumption, redone cluster.Span, own *cluster.Conduct) {
	h := b.learn(t, at)
	h.Last, h.LastAt = r, at
	switch {
	case r == cluster.Restarted:
		h.Restarted++
		return
	case redone > tolerance || !own.Ours:
	case own.Noticed:
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

// Saved counts a reported save, gap after the previous one.
func (b *Habits) Saved(t cluster.JobType, at cluster.Instant, gap cluster.Span) {
	h := b.learn(t, at)
	h.Reports++
	h.Every, h.SavedAt = Longest(h.Every, gap), at
}

// Took records the reported duration of a save.
func (b *Habits) Took(t cluster.JobType, at cluster.Instant, took cluster.Span) {
	h := b.learn(t, at)
	h.Takes = Longest(h.Takes, took)
}

// Takes gives how long a save takes, as reported: by the job itself, else by jobs of its type; 0 = never.
func Takes(own *cluster.Conduct, habit *cluster.Habit) cluster.Span {
	switch {
	case own != nil && own.Takes > 0:
		return own.Takes
	case habit != nil:
		return habit.Takes
	}
	return 0
}

// Needed counts a job that ended after it had received a GPU time.
func (b *Habits) Needed(t cluster.JobType, at cluster.Instant, got cluster.GPUTime) {
	h := b.change(t, at)
	h.Needed = expect.Add(h.Needed, got)
}

// Constants of Brief: a job counts 1000, and a fiftieth less with each job after it.
const (
	oneJob      = 1000
	recentJobs  = 50
	enoughBrief = 4 * oneJob // about five jobs
)

// Briefly counts a job that ended, or that goes on, after it had run for a time. It is short if it ended within the
// interval. Types without a short job are not counted.
func (b *Habits) Briefly(t cluster.JobType, at cluster.Instant, ran cluster.Span, short bool) {
	was := b.At(b.Find(t))
	if !short && (was == nil || was.Brief == nil) {
		return
	}
	h, x := b.change(t, at), cluster.Brief{}
	if h.Brief != nil {
		x = *h.Brief
	}
	x.Jobs -= (x.Jobs + recentJobs - 1) / recentJobs
	x.Short -= (x.Short + recentJobs - 1) / recentJobs
	x.Jobs += oneJob
	if short {
		x.Short += oneJob
		x.Ran += (ran - x.Ran) * oneJob / cluster.Span(x.Short)
	}
	h.Brief = &x
}

// Short gives the mean run time of jobs of a habit if they are short: enough are known, and nine of ten ended within a
// round's interval. known = enough are known to tell. h may be nil.
func Short(h *cluster.Habit) (ran cluster.Span, short, known bool) {
	if h == nil || h.Brief == nil || h.Brief.Jobs < enoughBrief {
		return 0, false, false
	}
	return h.Brief.Ran, 10*int64(h.Brief.Short) >= 9*int64(h.Brief.Jobs), true
}

// Longest gives the longest of recent gaps: a shorter one lowers it by an eighth of the difference.
func Longest(every, gap cluster.Span) cluster.Span {
	if gap >= every {
		return gap
	}
	return every - (every-gap)/8
}

// Began records the time from a start on a model to the first progress.
func (b *Habits) Began(t cluster.JobType, at cluster.Instant, model string, took cluster.Span) {
	if took <= 0 || took > longStart || model == "" {
		return
	}
	h := b.learn(t, at)
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

// Begin gives the cost of a start for a job of a habit on a model; otherwise if unknown. h may be
// nil.
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

// Entries gives the habits for the memory, by type. It ends the round.
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
	if kept = newest(kept, maxHabits); len(kept) < len(b.list) {
		b.Evidence++
	}
	b.list = kept
	return b.list
}

// inOrder sorts a list by type whose prefix of length sorted is sorted: the rest was added in
// this round.
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

// newest keeps at most most habits, by type: beyond that, those with the newest evidence, and a
// twentieth fewer, so that it is not needed in every round.
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
