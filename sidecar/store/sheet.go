package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A sheet is a list of structs as rows of numbers. A text is stored as its number in words, and so is the JSON of lists and optional fields. Few
// rows change from round to round: sheets share the others, and a difference is of those that changed. Most of their changes are predictable.
type sheet struct {
	columns []column
	rows    []*row
}

// structs are those that a sheet is made of.
type structs struct {
	n   int
	key func(i int) int64
	// same tells whether a struct is known to be as its row is; a struct that only may be so is read. nil = none is known to be.
	same func(i int, was *row) bool
	// read gives structs to be read. Their rows keep them if same needs them.
	read  func(all []int) []unsafe.Pointer
	keeps bool
}

// copies gives copies of structs, some at once.
func copies[T any](all []int, of func(i int) T) []unsafe.Pointer {
	out := make([]unsafe.Pointer, len(all))
	for from := 0; from < len(all); from += rowsAtOnce {
		some := all[from:min(from+rowsAtOnce, len(all))]
		list := make([]T, len(some))
		for k, i := range some {
			list[k] = of(i)
			out[from+k] = unsafe.Pointer(&list[k])
		}
	}
	return out
}

// match gives the row of each key: -1 = there is none. Both are mostly in the order of keys.
func (t *sheet) match(in *structs) []int32 {
	out, i := make([]int32, in.n), 0
	for j := range out {
		key := in.key(j)
		for i < len(t.rows) && t.rows[i].key < key {
			i++
		}
		if out[j] = -1; i < len(t.rows) && t.rows[i].key == key {
			out[j], i = int32(i), i+1
		}
	}
	return out
}

// step is a sheet and the one after it.
type step struct {
	was, now *sheet
	from     []int32 // by row of now: the row of was with its key; -1 = none
}

// of gives the step to the sheet of structs.
func (t *sheet) of(s *shape, w *words, in *structs) (step, error) {
	now, from := &sheet{t.columns, make([]*row, in.n)}, t.match(in)
	var read []int
	for i := range now.rows {
		if k := from[i]; k >= 0 && in.same != nil && in.same(i, t.rows[k]) {
			now.rows[i] = t.rows[k]
		} else {
			read = append(read, i)
		}
	}
	at := in.read(read)
	made := make([]*row, len(read))
	if err := s.fill(w, at, made); err != nil {
		return step{}, err
	}
	for k, i := range read {
		r := made[k]
		if was := from[i]; was >= 0 && slices.Equal(t.rows[was].cells, r.cells) {
			r = t.rows[was]
		} else {
			r.key = in.key(i)
			r.add()
		}
		if now.rows[i] = r; in.keeps {
			r.like = at[k]
		}
	}
	return step{t, now, from}, nil
}

// tell writes the sheet's rows into structs; row gives each. Columns of removed fields are
// skipped.
func (t *sheet) tell(s *shape, w *words, row func(int) reflect.Value) error {
	fields := make([]int, len(t.columns))
	for c, col := range t.columns {
		fields[c] = slices.Index(s.columns, col)
	}
	for r, cells := range t.rows {
		of := row(r)
		for c, x := range cells.cells {
			at := fields[c]
			if x == 0 || at < 0 {
				continue
			}
			f := of.FieldByIndex(s.fields[at])
			switch col := t.columns[c]; col.kind {
			case floatKind:
				f.SetFloat(math.Float64frombits(uint64(x)))
			case textKind, jsonKind:
				if x < 0 || x >= int64(len(w.texts)) {
					return errFrame
				}
				if col.kind == textKind {
					f.SetString(w.texts[x])
				} else if err := json.Unmarshal([]byte(w.texts[x]), f.Addr().Interface()); err != nil {
					return fmt.Errorf("reading the JSON of %s: %w", col.name, err)
				}
			default:
				switch place := s.places[at]; {
				case place.size:
					size := f.Addr().Interface().(*cluster.Size)
					size.Devices, size.Part = int(x), cmp.Or(size.Part, cluster.WholeGPU)
				case place.part:
					f.Addr().Interface().(*cluster.Size).Part = cluster.MicroGPU(x)
				case place.unit > 0:
					f.SetInt(f.Int() + x*int64(place.unit))
				case f.CanInt():
					f.SetInt(x)
				case f.CanUint():
					f.SetUint(uint64(x))
				default:
					f.SetBool(true)
				}
			}
		}
	}
	return t.sizes(s, row)
}

// sizes fails if a row has parts of GPUs that no job can have.
func (t *sheet) sizes(s *shape, row func(int) reflect.Value) error {
	for c, col := range t.columns {
		at := slices.Index(s.columns, col)
		if at < 0 || !s.places[at].part {
			continue
		}
		for r := range t.rows {
			x := t.rows[r].cells[c]
			if x == 0 {
				continue
			}
			if err := row(r).FieldByIndex(s.fields[at]).Interface().(cluster.Size).Check(); err != nil {
				return fmt.Errorf("reading %s: %w", strings.TrimSuffix(col.name, "_part"), err)
			}
		}
	}
	return nil
}

// digest is a checksum of the rows.
func (t *sheet) digest() (sum uint64) {
	for _, r := range t.rows {
		sum += r.sum
	}
	return sum
}

// follow gives the rows of keys in their order; nil = missing.
func (t *sheet) follow() func(int64) *row {
	i := 0
	return func(key int64) *row {
		for i < len(t.rows) && t.rows[i].key < key {
			i++
		}
		if i < len(t.rows) && t.rows[i].key == key {
			return t.rows[i]
		}
		return nil
	}
}

// cell gives how to read a numeric or text column of rows by its name: zeros if it is missing, or there is no row.
func (t *sheet) cell(kind byte, name string) func(*row) int64 {
	c := slices.Index(t.columns, column{kind, name})
	return func(r *row) int64 {
		if r == nil || c < 0 {
			return 0
		}
		return r.cells[c]
	}
}

// block is some rows, by column.
type block struct {
	columns []column
	keys    []int64
	cells   [][]int64 // by column, then row
}

func blockOf(columns []column, rows []*row) *block {
	n := len(rows)
	all := make([]int64, n*(len(columns)+1))
	b := &block{columns: columns, keys: all[:n:n], cells: make([][]int64, len(columns))}
	for c := range b.cells {
		b.cells[c] = all[(c+1)*n : (c+2)*n : (c+2)*n]
	}
	for from := 0; from < n; from += rowsAtOnce {
		var cells [rowsAtOnce][]int64
		some := cells[:min(rowsAtOnce, n-from)]
		for r := range some {
			b.keys[from+r], some[r] = rows[from+r].key, rows[from+r].cells
		}
		for c, column := range b.cells {
			column = column[from:]
			for r := range some {
				column[r] = some[r][c]
			}
		}
	}
	return b
}

// column gives the cells of a numeric or text column by name; zeros if it is missing.
func (b *block) column(kind byte, name string) []int64 {
	if c := slices.Index(b.columns, column{kind, name}); c >= 0 {
		return b.cells[c]
	}
	return make([]int64, len(b.keys))
}

// The difference between two sheets of the same columns:
//
//	runs     count { kept gone added }
//	marks    count { gap of groups }, count { gap of kept rows }
//	added    of 512 at once the keys, then by column: the difference to the added row before
//	changed  { gap of columns, guess, count, { gap of rows, truth - guess } }, and the gap past the last column;
//	         rows are in the order of the guesses
//
// All are varints; a column without an entry is unchanged. Of the kept rows those may have changed that are marked, or whose group is.

// run counts the next rows that are kept, then those that are gone, then those that are new.
type run struct{ kept, gone, added int }

// foresight predicts changes: group gives groups of a sheet's rows that change together (nil = there are none), and tell columns of rows from what
// they were.
type foresight struct {
	group func(*sheet) func(*row) int64
	tell  func(*block) foretold
}

// marks are the groups and rows that are marked, by the group of each kept row; see the format.
type marks struct {
	of     []int32 // by kept row: its group, numbered as they come
	groups []bool
}

// marksOf gives the groups of kept rows.
func (f *foresight) marksOf(was *sheet, kept []*row) *marks {
	m := &marks{}
	if f.group == nil {
		return m
	}
	group, numbers := f.group(was), map[int64]int32{}
	m.of = make([]int32, len(kept))
	var recent memo // a map for all rows takes longest
	for i, r := range kept {
		g := group(r)
		number, known := recent.at(g)
		if !*known {
			n, there := numbers[g]
			if !there {
				n = int32(len(numbers))
				numbers[g] = n
			}
			*number, *known = int64(n), true
		}
		m.of[i] = int32(*number)
	}
	m.groups = make([]bool, len(numbers))
	return m
}

// in tells whether the group of a kept row is marked.
func (m *marks) in(i int) bool { return m.of != nil && m.groups[m.of[i]] }

// vote marks the groups in which a tenth of the rows have changed.
func (m *marks) vote(was, now []*row) {
	more := make([]int, len(m.groups))
	for i, g := range m.of {
		if more[g]--; was[i] != now[i] {
			more[g] += 10
		}
	}
	for g := range more {
		m.groups[g] = more[g] > 0
	}
}

func countChanged(was, now []*row) (n int) {
	for i := range was {
		if was[i] != now[i] {
			n++
		}
	}
	return n
}

// appendGaps appends which of n are so.
func appendGaps(out []byte, n int, is func(int) bool) []byte {
	var gaps []uint64
	next := 0
	for i := range n {
		if is(i) {
			gaps, next = append(gaps, uint64(i-next)), i+1
		}
	}
	return appendNumbers(appendNumbers(out, uint64(len(gaps))), gaps...)
}

// gaps reads what appendGaps appends. It breaks at one that is not below n.
func (r *reader) gaps(n int, set func(int)) {
	next := uint64(0)
	for range min(r.number(), uint64(len(r.left))) {
		next += min(r.number(), uint64(n))
		if next >= uint64(n) {
			r.broken = true
			return
		}
		set(int(next))
		next++
	}
}

// parts gives the runs of a step, its kept rows as they were and as they are, and the rows that are new.
func (x *step) parts() (runs []run, kept, after, added []*row) {
	was, now := x.was.rows, x.now.rows
	kept, after = make([]*row, 0, len(was)), make([]*row, 0, len(was))
	for i, j := 0, 0; i < len(was) || j < len(now); {
		var n run
		for j < len(now) && int(x.from[j]) == i {
			kept, after = append(kept, was[i]), append(after, now[j])
			i, j, n.kept = i+1, j+1, n.kept+1
		}
		for j < len(now) && x.from[j] < 0 {
			added = append(added, now[j])
			j, n.added = j+1, n.added+1
		}
		next := len(was)
		if j < len(now) {
			next = int(x.from[j])
		}
		n.gone, i = next-i, next
		runs = append(runs, n)
	}
	return runs, kept, after, added
}

// addedAtOnce is how many new rows are told at once: with fewer a frame gets longer, with more it takes longer.
const addedAtOnce = 512

// appendAdded appends new rows: of some at once the keys, then each column, as the difference to the row before.
func appendAdded(out []byte, added []*row, columns int) []byte {
	first := &row{cells: make([]int64, columns)}
	for some := range slices.Chunk(added, addedAtOnce) {
		last := first
		for _, x := range some {
			out, last = appendNumbers(out, zigzag(x.key-last.key)), x
		}
		for c := range columns {
			last = first
			for _, x := range some {
				out, last = appendNumbers(out, zigzag(x.cells[c]-last.cells[c])), x
			}
		}
		first = last
	}
	return out
}

// added reads what appendAdded appends.
func (r *reader) added(added []*row, columns int) {
	first := &row{cells: make([]int64, columns)}
	for some := range slices.Chunk(added, addedAtOnce) {
		last := first
		for _, x := range some {
			x.key, last = last.key+unzigzag(r.number()), x
		}
		for c := range columns {
			last = first
			for _, x := range some {
				x.cells[c], last = last.cells[c]+unzigzag(r.number()), x
			}
		}
		first = last
	}
	for _, x := range added {
		x.add()
	}
}

// append appends the difference.
func (x *step) append(out []byte, ahead *foresight, h *habits) []byte {
	runs, kept, then, added := x.parts()
	out = appendNumbers(out, uint64(len(runs)))
	for _, n := range runs {
		out = appendNumbers(out, uint64(n.kept), uint64(n.gone), uint64(n.added))
	}
	m := &marks{}
	if n := countChanged(kept, then); n > fewMisses {
		m = ahead.marksOf(x.was, kept)
		m.vote(kept, then)
	}
	out = appendGaps(out, len(m.groups), func(g int) bool { return m.groups[g] })
	out = appendGaps(out, len(kept), func(i int) bool { return kept[i] != then[i] && !m.in(i) })
	var before, after []*row
	for i := range kept {
		if kept[i] != then[i] || m.in(i) {
			before, after = append(before, kept[i]), append(after, then[i])
		}
	}
	columns := x.now.columns
	out = appendAdded(out, added, len(columns))
	was, now := blockOf(columns, before), blockOf(columns, after)
	var told foretold
	if len(before) > 0 {
		told = ahead.tell(was)
	}
	next := 0
	var misses []byte
	for c, col := range columns {
		if slices.Equal(was.cells[c], now.cells[c]) {
			continue
		}
		g := h.of(c)
		var count int
		if misses, count = g.wrong(misses[:0], was.cells[c], now.cells[c], &told, col.name); !g.good(count) {
			if found := g.better(count, was.cells[c], now.cells[c], &told, col.name); found != g {
				misses, count = found.wrong(misses[:0], was.cells[c], now.cells[c], &told, col.name)
				g, (*h)[c] = found, found
			}
		}
		out = appendNumbers(out, uint64(c-next), uint64(g), uint64(count))
		out = append(out, misses...)
		next = c + 1
	}
	return appendNumbers(out, uint64(len(columns)-next))
}

// sheet decodes the difference to was, which stays unchanged, and gives the new sheet.
func (r *reader) sheet(was *sheet, ahead *foresight) *sheet {
	now := &sheet{columns: was.columns}
	var added []*row
	kept, places := make([]*row, 0, len(was.rows)), make([]int32, 0, len(was.rows)) // as they were, and where they are; then of those that changed
	now.rows = make([]*row, 0, len(was.rows))
	next := 0
	for range min(r.number(), uint64(len(r.left))) {
		same, gone, more := r.number(), r.number(), r.number()
		left := uint64(len(was.rows) - next)
		if same > left || gone > left-same || more > uint64(len(r.left)/(len(was.columns)+1)-len(added)) {
			return r.fail(now)
		}
		for _, x := range was.rows[next : next+int(same)] {
			kept, places, now.rows = append(kept, x), append(places, int32(len(now.rows))), append(now.rows, x)
		}
		next += int(same + gone)
		rows, _ := newRows(int(more), len(was.columns))
		for i := range rows {
			now.rows, added = append(now.rows, &rows[i]), append(added, &rows[i])
		}
	}
	if next != len(was.rows) {
		return r.fail(now)
	}
	m := ahead.marksOf(was, kept)
	r.gaps(len(m.groups), func(g int) { m.groups[g] = true })
	marked := make([]bool, len(kept))
	r.gaps(len(kept), func(i int) { marked[i] = true })
	n := 0
	for i := range kept {
		if marked[i] || m.in(i) {
			kept[n], places[n], n = kept[i], places[i], n+1
		}
	}
	changed := kept[:n]
	r.added(added, len(was.columns))
	before := blockOf(was.columns, changed)
	after := *before
	after.cells = slices.Clone(before.cells)
	var told foretold
	if len(changed) > 0 {
		told = ahead.tell(before)
	}
	if !r.changes(before, &after, &told) {
		return r.fail(&sheet{columns: was.columns})
	}
	rows, all := newRows(len(changed), len(was.columns))
	for c := range after.cells {
		for i, x := range after.cells[c] {
			all[i*len(was.columns)+c] = x
		}
	}
	for i := range rows {
		rows[i].key = changed[i].key
		rows[i].add()
		now.rows[places[i]] = &rows[i]
	}
	return now
}

// changes decodes the columns of rows that have changed. It returns false if it cannot.
func (r *reader) changes(before, after *block, told *foretold) bool {
	for c := 0; ; c++ {
		gap := r.number()
		if gap >= uint64(len(before.columns)-c) {
			return gap == uint64(len(before.columns)-c) && !r.broken
		}
		c += int(gap)
		g, count := guess(min(r.number(), 255)), r.number()
		if r.broken || g == byFormula && told.formulas[before.columns[c].name] == nil || g >= byGroup && g < byOrder && int(g-byGroup)/2 >= len(told.groups) ||
			g >= byOrder && int(g-byOrder) >= len(told.groups) {
			return false
		}
		miss := func() int {
			if count == 0 {
				return -1
			}
			count--
			return int(min(r.number(), math.MaxInt32))
		}
		at, asked := miss(), 0
		cells := make([]int64, len(before.keys))
		after.cells[c] = cells
		g.each(before.cells[c], told, before.columns[c].name, func(row int, p int64) int64 {
			if asked == at {
				p += unzigzag(r.number())
				if at = miss(); at >= 0 {
					at += asked + 1
				}
			}
			asked++
			cells[row] = p
			return p
		})
		if at >= 0 {
			return false
		}
	}
}
