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
	// Share is its target fraction of the time on each model (X).
	Share []float64
	// Due and Time are, by model, the time that it should have run since its shares were first
	// set, and the time that it did run (t).
	Due, Time []cluster.Span
	First     cluster.Instant // time of arrival
}

// Grant is a row that runs on a model in the next round.
type Grant struct{ Row, Model int } // indices

// entry is a row on a model, with its priority.
type entry struct {
	Grant
	unserved bool
	priority float64 // X/f; X if it was not served yet
}

// Gavel chooses the rows that run in the next round, of length span, after Gavel's Algorithm 1
// (§5). It repeatedly takes the row and model with a share that has the highest priority X/f and
// fits; rows with a common job never run together. f is the fraction of the time in which X was
// available, so X/f is Due/Time, also for shares that change and for later jobs. While all GPUs
// of a model are in use, this orders like the paper's f, the fraction of all time given on that
// model. Rows not yet served on a model go first there, by share, age and id.
//
// If the shares leave no GPU idle, Algorithm 1 alone may lose time for good: the first rows of a
// round can take the last GPUs of a model from rows with shares nowhere else. So it first runs
// for rows that are owed some of the round on a model. Then rows without a place get one if
// others can move for them, each to a model where it is owed some. Then it runs for the remaining
// GPUs. No row falls behind its shares by more than a few rounds.
//
// The grants come larger gangs first, in the order of placement.
func Gavel(gpus []int, rows []Row, span cluster.Span) []Grant {
	m := newMatch(gpus, rows, span)
	turns := order(rows, len(gpus))
	m.greedy(turns, true)
	vain := 0 // the smallest gang without a place after a search; larger ones need no search
	for _, e := range turns {
		if !m.free(e.Row) || !m.due(e.Row, e.Model) {
			continue
		}
		if gang := rows[e.Row].Gang; vain == 0 || gang < vain {
			m.seen, vain = make([]bool, len(gpus)), gang
		}
		if m.choose(e.Row) {
			vain = 0
		}
	}
	m.greedy(turns, false)
	return m.grants()
}

// order gives all rows and models with a share, highest priority first.
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

// match is the set of chosen rows.
type match struct {
	rows []Row
	span cluster.Span
	left []int // GPUs by model
	on   []int // model by row; or none
	jobs map[cluster.JobKey]bool
	seen []bool // models that a search already tries to free
}

func newMatch(gpus []int, rows []Row, span cluster.Span) *match {
	m := &match{rows: rows, span: span, left: slices.Clone(gpus), on: make([]int, len(rows)), jobs: map[cluster.JobKey]bool{}}
	for i := range m.on {
		m.on[i] = none
	}
	return m
}

// greedy chooses in the order of priorities; with due only rows that are owed time.
func (m *match) greedy(turns []entry, due bool) {
	for _, e := range turns {
		if m.free(e.Row) && m.rows[e.Row].Gang <= m.left[e.Model] && (!due || m.due(e.Row, e.Model)) {
			m.take(e.Row, e.Model)
		}
	}
}

// grants gives the chosen rows, larger gangs first.
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

// free tells whether a row can still be chosen.
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

// choose takes a row if it is due on a model with enough GPUs, or where a chosen row can make
// space by moving to another model where it is due, and so on.
func (m *match) choose(row int) bool {
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
			if m.choose(other) {
				m.take(row, j)
				return true
			}
			m.left[j] -= m.rows[other].Gang
		}
	}
	return false
}

// After gives a row after its shares were in force for span. Its lists are new.
func (r Row) After(span cluster.Span) Row {
	r.Due, r.Time = slices.Clone(r.Due), slices.Clone(r.Time)
	for j, x := range r.Share {
		r.Due[j] += cluster.Span(x * float64(span))
	}
	return r
}
