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

// Algorithm1 picks who runs in the next round, as Gavel §5 has it: of all rows and models
// with a share the one with the highest priority X/f that fits, and so on; rows with a job in
// common never together. f is the part of the time in which X was to be had, so X/f is
// Due/Time, which holds for shares that change and for jobs that come later as well; while the GPUs of
// a model are all in use it orders as the paper's f, the part of all time given on that
// model. Who had nothing on a model is first there, by share, age and id.
//
// Where shares leave no GPU idle it may lose time for good, for the first rows of a round
// can take the last GPUs of a model from those that have a share nowhere else.
//
// The grants come larger gangs first, as they are to be placed.
func Algorithm1(gpus []int, rows []Row) []Grant {
	m := newMatch(gpus, rows, 0)
	m.greedy(order(rows, len(gpus)), false)
	return m.grants()
}

// Gavel is Algorithm1 for rows that are owed some of the next round, of span, on a model;
// then those that found no room get some if others can move for them, each to a model where it is
// owed some; then Algorithm1 for what is left. No row falls behind its shares by more than
// a few rounds.
func Gavel(gpus []int, rows []Row, span cluster.Span) []Grant {
	m := newMatch(gpus, rows, span)
	turns := order(rows, len(gpus))
	m.greedy(turns, true)
	for _, e := range turns {
		if m.free(e.Row) && m.due(e.Row, e.Model) {
			m.seen = make([]bool, len(gpus))
			m.seat(e.Row)
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

// Pass books a round, of span: what each row should have had, and what those with a
// grant had. The rows are new ones.
func Pass(rows []Row, grants []Grant, span cluster.Span) []Row {
	out := slices.Clone(rows)
	for i := range out {
		r := &out[i]
		r.Due, r.Time = slices.Clone(r.Due), slices.Clone(r.Time)
		for j, x := range r.Share {
			r.Due[j] += cluster.Span(x * float64(span))
		}
	}
	for _, g := range grants {
		out[g.Row].Time[g.Model] += span
	}
	return out
}

// Renew gives a row other shares. What it is owed by the old ones stays; what it was ahead
// of them, on GPUs that stood idle, is forgiven down to one round of span.
func Renew(r Row, share []float64, span cluster.Span) Row {
	r.Share, r.Due, r.Time = share, slices.Clone(r.Due), slices.Clone(r.Time)
	for j := range r.Due {
		owed := r.Due[j] - r.Time[j]
		r.Due[j], r.Time[j] = max(owed, 0), min(max(-owed, 0), span)
	}
	return r
}
