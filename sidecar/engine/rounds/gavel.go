package rounds

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Row is a job that runs by itself, or a pair of jobs on the same GPUs (Gavel's
// combinations). Models keep one order throughout.
type Row struct {
	Job  cluster.JobKey
	With cluster.JobKey // of a pair the other job; 0 = none
	Gang int            // GPUs (scale_factor)
	// Share is the part of the time that it should run on each model (X).
	Share []float64
	// Due and Time are, by model, the time that it should have run since its shares were
	// first set, and the time that it did run (t).
	Due, Time []cluster.Span
	First     cluster.Instant // when it came
}

// Grant is a row that runs on a model in the next round.
type Grant struct{ Row, Model int } // indices

// entry is a row on a model, with what decides its turn.
type entry struct {
	Grant
	unserved bool
	priority float64 // X/f; X of an unserved one
}

// Gavel picks who runs in the next round, of span, after Gavel's Algorithm 1 (§5): of all rows and models
// with a share the one with the highest priority X/f that fits, and so on; rows with a job in
// common never together. f is the part of the time in which X was to be had, so X/f is
// Due/Time, which holds for shares that change and for jobs that come later as well; while the GPUs of
// a model are all in use it orders as the paper's f, the part of all time given on that
// model. Who had nothing on a model is first there, by share, age and id.
//
// Where shares leave no GPU idle that alone may lose time for good, for the first rows of a round
// can take the last GPUs of a model from those that have a share nowhere else. So it is run first for rows that are
// owed some of the round on a model; then those that found no room get some if others can move for
// them, each to a model where it is owed some; then it is run for what is left. No row falls behind its shares
// by more than a few rounds.
//
// The grants come larger gangs first, as they are to be placed.
func Gavel(gpus []int, rows []Row, span cluster.Span) []Grant {
	m := newMatch(gpus, rows, span)
	turns := order(rows, len(gpus))
	m.greedy(turns, true)
	vain := 0 // the smallest gang of searches in vain; where they were, none for as large a one need go
	for _, e := range turns {
		if !m.free(e.Row) || !m.due(e.Row, e.Model) {
			continue
		}
		if gang := rows[e.Row].Gang; vain == 0 || gang < vain {
			m.seen, vain = make([]bool, len(gpus)), gang
		}
		if m.seat(e.Row) {
			vain = 0
		}
	}
	m.greedy(turns, false)
	return m.grants()
}

// order gives all rows and models with a share, the highest priority first.
func order(rows []Row, models int) []entry {
	var out []entry
	for i := range rows {
		r := &rows[i]
		if r.Gang < 1 {
			continue
		}
		for j := range models {
			if !(r.Share[j] > 0) {
				continue
			}
			e := entry{Grant: Grant{i, j}, unserved: r.Time[j] <= 0, priority: r.Share[j]}
			if !e.unserved {
				e.priority = float64(r.Due[j]) / float64(r.Time[j])
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int {
		if a.unserved != b.unserved {
			if a.unserved {
				return -1
			}
			return 1
		}
		x, y := &rows[a.Row], &rows[b.Row]
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(x.First, y.First), cmp.Compare(x.Job, y.Job), cmp.Compare(x.With, y.With), cmp.Compare(a.Model, b.Model))
	})
	return out
}

const none = -1

// match is who has been picked so far.
type match struct {
	rows []Row
	span cluster.Span
	left []int // GPUs by model
	on   []int // model by row; none
	jobs map[cluster.JobKey]bool
	seen []bool // models where a search makes room already
}

func newMatch(gpus []int, rows []Row, span cluster.Span) *match {
	m := &match{rows: rows, span: span, left: slices.Clone(gpus), on: make([]int, len(rows)), jobs: map[cluster.JobKey]bool{}}
	for i := range m.on {
		m.on[i] = none
	}
	return m
}

// greedy picks in the order of the turns; with due those only who are owed.
func (m *match) greedy(turns []entry, due bool) {
	for _, e := range turns {
		if m.free(e.Row) && m.rows[e.Row].Gang <= m.left[e.Model] && (!due || m.due(e.Row, e.Model)) {
			m.take(e.Row, e.Model)
		}
	}
}

// grants gives who was picked, larger gangs first.
func (m *match) grants() []Grant {
	var out []Grant
	for i, model := range m.on {
		if model != none {
			out = append(out, Grant{i, model})
		}
	}
	slices.SortStableFunc(out, func(a, b Grant) int { return cmp.Compare(m.rows[b.Row].Gang, m.rows[a.Row].Gang) })
	return out
}

// free tells whether a row can yet be picked.
func (m *match) free(row int) bool {
	r := &m.rows[row]
	return m.on[row] == none && !m.jobs[r.Job] && (r.With == 0 || !m.jobs[r.With])
}

func (m *match) take(row, model int) {
	r := &m.rows[row]
	m.on[row] = model
	m.left[model] -= r.Gang
	m.jobs[r.Job] = true
	if r.With != 0 {
		m.jobs[r.With] = true
	}
}

// due tells whether a row is owed some of the next round on a model.
func (m *match) due(row, model int) bool {
	r := &m.rows[row]
	return r.Share[model] > 0 && float64(r.Due[model]-r.Time[model])+r.Share[model]*float64(m.span) > 0
}

// seat picks a row if it is due on a model where there are GPUs for it, or where a row
// picked already makes room that can move to another model where it is due, and so on.
func (m *match) seat(row int) bool {
	gang := m.rows[row].Gang
	for j := range m.left {
		if !m.seen[j] && m.due(row, j) && gang <= m.left[j] {
			m.take(row, j)
			return true
		}
	}
	for j := range m.left {
		if m.seen[j] || !m.due(row, j) {
			continue
		}
		m.seen[j] = true
		for other, on := range m.on {
			if on != j || m.rows[other].Gang+m.left[j] < gang {
				continue
			}
			m.left[j] += m.rows[other].Gang
			if m.seat(other) {
				m.take(row, j)
				return true
			}
			m.left[j] -= m.rows[other].Gang
		}
	}
	return false
}

// After gives a row as it is when its shares have held for a while longer. Its lists are new ones.
func (r Row) After(span cluster.Span) Row {
	r.Due, r.Time = slices.Clone(r.Due), slices.Clone(r.Time)
	for j, x := range r.Share {
		r.Due[j] += cluster.Span(x * float64(span))
	}
	return r
}
