package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A sheet is a list of structs as columns of numbers, one row each. A text is stored as its
// number in words, and so is the JSON of lists and optional fields. All jobs' rows change a
// little in every round, and most changes are predictable: columns of numbers encode them in few
// bytes and little time.
type sheet struct {
	columns []column
	keys    []int64
	cells   [][]int64 // by column, then row
	memory  []int64   // of keys and cells; nil = they are not of a stock
}

// stock is memory of sheets that are no longer needed. Sheets of all jobs would otherwise be half of all garbage.
type stock struct{ free [][]int64 }

// sheet gives a sheet of n rows. Its keys and cells are undefined.
func (m *stock) sheet(columns []column, n int) *sheet {
	size := n * (len(columns) + 1)
	at := slices.IndexFunc(m.free, func(memory []int64) bool { return cap(memory) >= size && cap(memory)/4 <= size })
	var memory []int64
	if at < 0 {
		memory = make([]int64, size, size+size/8)
	} else {
		memory, m.free = m.free[at][:size], slices.Delete(m.free, at, at+1)
	}
	out := &sheet{columns: columns, cells: make([][]int64, len(columns)), memory: memory}
	for c := range out.cells {
		out.cells[c], memory = memory[:n:n], memory[n:]
	}
	out.keys = memory[:n:n]
	return out
}

// mostSpare is how many sheets' memory a stock keeps.
const mostSpare = 8

// back takes back the memory of sheets that nobody needs any more.
func (m *stock) back(sheets ...*sheet) {
	for _, s := range sheets {
		if s != nil && s.memory != nil && len(m.free) < mostSpare {
			m.free = append(m.free, s.memory)
		}
	}
}

// column is a field of the structs: its kind and its name in JSON.
type column struct {
	kind byte
	name string
}

const (
	numberKind = 'n'
	floatKind  = 'f'
	textKind   = 't'
	jsonKind   = 'j'
)

// shape says how structs of a type become rows.
type shape struct {
	of      reflect.Type
	columns []column
	fields  [][]int // by column: index of the field
	places  []field
	key     uintptr // where the key is, an int64
}

// field gives the location and type of a column's values in memory: reflection takes five times
// as long for all jobs.
type field struct {
	offset uintptr
	kind   reflect.Kind
	texts  bool             // a list of texts
	size   bool             // the devices of a size
	part   bool             // the part of each of a size's devices; 0 = whole GPUs
	unit   cluster.GPUCount // of a number of GPUs, which has two columns: WholeGPU for the whole ones, 1 for the millionths beyond; 0 = another field
}

// numbers reads the field of structs.
func (f field) numbers(of []unsafe.Pointer, out []int64) {
	switch {
	case f.part:
		for r, at := range of {
			if out[r] = *(*int64)(unsafe.Add(at, f.offset)); out[r] == int64(cluster.WholeGPU) {
				out[r] = 0
			}
		}
		return
	case f.unit == 1:
		for r, at := range of {
			out[r] = *(*int64)(unsafe.Add(at, f.offset)) % int64(cluster.WholeGPU)
		}
		return
	case f.unit > 1:
		for r, at := range of {
			out[r] = *(*int64)(unsafe.Add(at, f.offset)) / int64(f.unit)
		}
		return
	}
	switch f.kind {
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		numbersOf[int64](of, f.offset, out)
	case reflect.Int:
		numbersOf[int](of, f.offset, out)
	case reflect.Int32:
		numbersOf[int32](of, f.offset, out)
	case reflect.Uint32:
		numbersOf[uint32](of, f.offset, out)
	case reflect.Int16:
		numbersOf[int16](of, f.offset, out)
	case reflect.Uint16:
		numbersOf[uint16](of, f.offset, out)
	case reflect.Int8:
		numbersOf[int8](of, f.offset, out)
	case reflect.Bool, reflect.Uint8:
		numbersOf[uint8](of, f.offset, out)
	default:
		panic("a column is no number") // shapeOf admits only these
	}
}

// numbersOf reads numbers of a type, which are so many bytes into structs.
func numbersOf[T int | int64 | int32 | int16 | int8 | uint32 | uint16 | uint8](of []unsafe.Pointer, offset uintptr, out []int64) {
	for r, at := range of {
		out[r] = int64(*(*T)(unsafe.Add(at, offset)))
	}
}

var shapes sync.Map // by type

// shapeOf gives the shape of structs of a type, without the named fields; key is the index of the
// key field.
func shapeOf(t reflect.Type, key []int, without ...string) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	type leaf struct {
		column
		field []int
		place field
	}
	var leaves []leaf
	var walk func(t reflect.Type, at []int, offset uintptr, name string)
	walk = func(t reflect.Type, at []int, offset uintptr, name string) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "-" || name == "" && slices.Contains(without, tag) {
				continue
			}
			here, called := append(slices.Clone(at), i), name+tag
			if f.Type == reflect.TypeFor[cluster.GPUCount]() {
				at := offset + f.Offset
				leaves = append(leaves, leaf{column{numberKind, called}, here, field{offset: at, unit: cluster.CountOf(1)}}, leaf{column{numberKind, called + "_part"}, here, field{offset: at, unit: 1}})
				continue
			}
			var kind byte = jsonKind
			switch f.Type.Kind() {
			case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
				kind = numberKind
			case reflect.Float64:
				kind = floatKind
			case reflect.String:
				kind = textKind
			case reflect.Struct:
				if f.Type == reflect.TypeFor[cluster.Size]() {
					at := offset + f.Offset
					leaves = append(leaves, leaf{column{numberKind, called}, here, field{offset: at + unsafe.Offsetof(cluster.Size{}.Devices), kind: reflect.Int, size: true}},
						leaf{column{numberKind, called + "_part"}, here, field{offset: at + unsafe.Offsetof(cluster.Size{}.Part), kind: reflect.Int64, part: true}})
					continue
				}
				walk(f.Type, here, offset+f.Offset, called+".")
				continue
			}
			leaves = append(leaves, leaf{column{kind, called}, here, field{offset: offset + f.Offset, kind: f.Type.Kind(), texts: f.Type == reflect.TypeFor[[]string]()}})
		}
	}
	walk(t, nil, 0, "")
	s := &shape{of: t}
	for of, n := t, 0; n < len(key); n++ {
		f := of.Field(key[n])
		s.key, of = s.key+f.Offset, f.Type
	}
	for _, l := range leaves {
		s.columns, s.fields, s.places = append(s.columns, l.column), append(s.fields, l.field), append(s.places, l.place)
	}
	shapes.Store(t, s)
	return s
}

// words numbers texts; 0 is the empty one.
type words struct {
	texts   []string
	of      map[string]int64
	recent  [1 << 12]recentWord // by their address: many structs share a text
	written []byte              // buffer
}

type recentWord struct {
	text   string
	number int64
}

// shared gives the number of a text that other structs may have too, at the same address.
func (w *words) shared(text string) int64 {
	if text == "" {
		return 0
	}
	at := unsafe.StringData(text)
	last := &w.recent[uint64(uintptr(unsafe.Pointer(at)))*0x9e3779b97f4a7c15>>52]
	if len(last.text) != len(text) || unsafe.StringData(last.text) != at {
		*last = recentWord{text, w.number(text)}
	}
	return last.number
}

// leave forgets where texts were: they may be parts of large buffers.
func (w *words) leave() { clear(w.recent[:]) }

func newWords() *words { return &words{texts: []string{""}, of: map[string]int64{"": 0}} }

func (w *words) number(text string) int64 {
	n, ok := w.of[text]
	if !ok {
		n = int64(len(w.texts))
		text = strings.Clone(text) // it may be part of a large buffer
		w.texts, w.of[text] = append(w.texts, text), n
	}
	return n
}

// forget keeps only the first n.
func (w *words) forget(n int) {
	for _, text := range w.texts[n:] {
		delete(w.of, text)
	}
	w.texts = w.texts[:n]
}

// rowsAtOnce is how many structs are read at once, column by column: they fit into the processor's cache.
const rowsAtOnce = 64

// fill makes a sheet of structs of the shape's type.
func (s *shape) fill(w *words, rows []unsafe.Pointer, m *stock) (*sheet, error) {
	out := m.sheet(s.columns, len(rows))
	for from := 0; from < len(rows); from += rowsAtOnce {
		some := rows[from:min(from+rowsAtOnce, len(rows))]
		numbersOf[int64](some, s.key, out.keys[from:])
		for c, place := range s.places {
			cells := out.cells[c][from:]
			switch s.columns[c].kind {
			case textKind:
				for r, at := range some {
					cells[r] = w.shared(*(*string)(unsafe.Add(at, place.offset)))
				}
			case jsonKind:
				for r, at := range some {
					if cells[r] = 0; *(*unsafe.Pointer)(unsafe.Add(at, place.offset)) == nil { // of a list, a map or a pointer
						continue
					}
					if err := s.json(w, c, at, &cells[r]); err != nil {
						return nil, err
					}
				}
			default:
				place.numbers(some, cells)
			}
		}
	}
	return out, nil
}

// json gives the number of the JSON of a struct's field.
func (s *shape) json(w *words, c int, of unsafe.Pointer, number *int64) (err error) {
	plain := false
	if s.places[c].texts {
		w.written, plain = appendTexts(w.written[:0], *(*[]string)(unsafe.Add(of, s.places[c].offset)))
	}
	if !plain {
		if w.written, err = json.Marshal(reflect.NewAt(s.of, of).Elem().FieldByIndex(s.fields[c]).Interface()); err != nil {
			return fmt.Errorf("writing %s as JSON: %w", s.columns[c].name, err)
		}
	}
	var known bool
	if *number, known = w.of[string(w.written)]; !known {
		*number = w.number(string(w.written))
	}
	return nil
}

// appendTexts appends a list of texts like encoding/json. It returns false unless all are
// printable ASCII without escapes.
func appendTexts(out []byte, texts []string) ([]byte, bool) {
	out = append(out, '[')
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '"')
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return out, false
			}
		}
		out = append(append(out, text...), '"')
	}
	return append(out, ']'), true
}

// tell writes the sheet's rows into structs; row gives each. Columns of removed fields are
// skipped.
func (t *sheet) tell(s *shape, w *words, row func(int) reflect.Value) error {
	for c, col := range t.columns {
		at := slices.Index(s.columns, col)
		if at < 0 {
			continue
		}
		for r, x := range t.cells[c] {
			if x == 0 {
				continue
			}
			f := row(r).FieldByIndex(s.fields[at])
			switch col.kind {
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
		for r, x := range t.cells[c] {
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

// column gives the cells of a numeric or text column by name; zeros if it is missing.
func (t *sheet) column(kind byte, name string) []int64 {
	if c := slices.Index(t.columns, column{kind, name}); c >= 0 {
		return t.cells[c]
	}
	return make([]int64, len(t.keys))
}

// digest is a checksum of the sheet.
func (t *sheet) digest(sum uint64) uint64 {
	const prime = 0x9e3779b97f4a7c15
	for _, cells := range append(t.cells, t.keys) {
		for _, x := range cells {
			sum = (sum ^ uint64(x)) * prime
			sum ^= sum >> 29
		}
	}
	return sum
}

// foretold is what is predictable in a sheet's columns: formulas by column, and groups of rows
// whose numbers change by the same amount.
type foretold struct {
	formulas map[string][]int64
	groups   [][]int64
	ordered  []string // columns whose numbers are ranks
}

// guess is the predictor of a column's changed numbers. With asBefore alone a round of 50,000 waiting jobs takes 236 kB instead of 13, without
// byFormula and the odd groups 46.
type guess byte

const (
	asBefore  guess = iota // each is unchanged
	byValue                // equal numbers stay equal
	byFormula              // formula of foretold
	byGroup                // a group changes by the same amount: byGroup+2n for the n-th group; byGroup+2n+1: as byValue in it

	// Neighbours in a group change by the same amount, like ranks when one comes or goes:
	// byOrder+n for the n-th group. Zeros stay.
	byOrder guess = 128
)

// memo caches the last output for each input. A collision makes a wrong guess, no more.
type memo struct {
	keys, values [1 << 12]int64
	known        [1 << 12]bool
}

func (m *memo) at(key int64) (value *int64, known *bool) {
	i := uint64(key) * 0x9e3779b97f4a7c15 >> 52
	if m.keys[i] != key {
		m.keys[i], m.values[i], m.known[i] = key, 0, false
	}
	return &m.values[i], &m.known[i]
}

// each predicts a column: before is its old value; put receives each guess and returns the true
// value. All guesses but byOrder process rows in their order.
func (g guess) each(before []int64, told *foretold, column string, put func(row int, guessed int64) int64) {
	switch {
	case g == byFormula:
		for r, p := range told.formulas[column] {
			put(r, p)
		}
	case g >= byOrder:
		group := told.groups[g-byOrder]
		var rows []int
		for r, was := range before {
			if was == 0 {
				put(r, 0)
			} else {
				rows = append(rows, r)
			}
		}
		slices.SortFunc(rows, func(a, b int) int {
			return cmp.Or(cmp.Compare(group[a], group[b]), cmp.Compare(before[a], before[b]), cmp.Compare(a, b))
		})
		var d int64
		for i, r := range rows {
			if i > 0 && group[r] != group[rows[i-1]] {
				d = 0
			}
			d = put(r, before[r]+d) - before[r]
		}
	case g == byValue || g >= byGroup && (g-byGroup)%2 == 1:
		var m memo
		var group []int64
		if g != byValue {
			group = told.groups[(g-byGroup)/2]
		}
		for r, was := range before {
			key, p := was, was
			if group != nil {
				key ^= group[r] * 0x2545f4914f6cdd1d
			}
			last, known := m.at(key)
			if *known {
				p = *last
			}
			*last, *known = put(r, p), true
		}
	case g >= byGroup:
		var m memo
		group := told.groups[(g-byGroup)/2]
		for r, was := range before {
			d, _ := m.at(group[r])
			*d = put(r, was+*d) - was
		}
	default:
		for r, was := range before {
			put(r, was)
		}
	}
}

// wrong appends the wrong guesses as pairs, and counts them: how many right ones were before it, and the truth less the guess.
func (g guess) wrong(out []byte, before, now []int64, told *foretold, column string) ([]byte, int) {
	count, gap := 0, 0
	g.each(before, told, column, func(r int, p int64) int64 {
		x := now[r]
		if gap++; p != x {
			out = appendNumbers(out, uint64(gap-1), zigzag(x-p))
			count, gap = count+1, 0
		}
		return x
	})
	return out, count
}

// misses counts the wrong guesses.
func (g guess) misses(before, now []int64, told *foretold, column string) (n int) {
	g.each(before, told, column, func(r int, p int64) int64 {
		if p != now[r] {
			n++
		}
		return now[r]
	})
	return n
}

// fewMisses are so few that no better guess is searched.
const fewMisses = 8

// better gives a guess with fewer misses than a column's last one had; that itself if there is none.
func (g guess) better(misses int, before, now []int64, told *foretold, column string) guess {
	found, least := g, misses
	try := func(o guess) {
		if o == g {
			return
		}
		if n := o.misses(before, now, told, column); n < least {
			found, least = o, n
		}
	}
	if try(asBefore); found.good(least) {
		return found
	}
	try(byValue)
	if told.formulas[column] != nil {
		try(byFormula)
	}
	for i := range 2 * len(told.groups) {
		try(byGroup + guess(i))
	}
	if g >= byOrder { // takes longest, and tells most of what orders can tell
		return found
	}
	const many = 200 // the result would take longer
	for i := range told.groups {
		if least > many && slices.Contains(told.ordered, column) {
			try(byOrder + guess(i))
		}
	}
	return found
}

// habits are the guesses that were best for the columns of a difference between sheets.
type habits []guess

// of gives the guess of a column that was best when it changed last.
func (h *habits) of(c int) guess {
	for len(*h) <= c {
		*h = append(*h, asBefore)
	}
	return (*h)[c]
}

// good tells whether a guess with so many misses is good enough, so that no better one is searched.
func (g guess) good(misses int) bool {
	const hardly = 2
	return misses <= hardly || g == asBefore && misses <= fewMisses
}

// The difference between two sheets of the same columns:
//
//	keys     count { kept gone added }
//	added    by column: the difference to the added row before; the keys as the last column
//	changed  { gap of columns, guess, count, { gap of rows, truth - guess } }, and the gap past the last column;
//	         rows are in the order of the guesses
//
// All are varints; a column without an entry is unchanged.

// run counts the next rows that are kept, then gone, then added.
type run struct{ kept, gone, added int }

// moved gives a column's cells in the new rows, in memory for so many (nil = in its own); add fills the added ones. If no
// row moves, the result is was.
func moved(was []int64, runs []run, memory []int64, add func(at int, added []int64)) []int64 {
	if len(runs) == 0 || len(runs) == 1 && runs[0].gone == 0 && runs[0].added == 0 {
		return was
	}
	out := memory[:0]
	if memory == nil {
		n := 0
		for _, x := range runs {
			n += x.kept + x.added
		}
		out = make([]int64, 0, n)
	}
	for _, x := range runs {
		out = append(out, was[:x.kept]...)
		was = was[x.kept+x.gone:]
		out = out[:len(out)+x.added]
		add(len(out)-x.added, out[len(out)-x.added:])
	}
	return out
}

// sheetDelta appends the difference. tell predicts columns; it receives the rows of now with the
// old values.
func sheetDelta(out []byte, was, now *sheet, tell func(*sheet) foretold, h *habits, m *stock) []byte {
	var runs []run
	for i, j := 0, 0; i < len(was.keys) || j < len(now.keys); {
		var x run
		for i < len(was.keys) && j < len(now.keys) && was.keys[i] == now.keys[j] {
			i, j, x.kept = i+1, j+1, x.kept+1
		}
		for i < len(was.keys) && (j == len(now.keys) || was.keys[i] < now.keys[j]) {
			i, x.gone = i+1, x.gone+1
		}
		for j < len(now.keys) && (i == len(was.keys) || now.keys[j] < was.keys[i]) {
			j, x.added = j+1, x.added+1
		}
		runs = append(runs, x)
	}
	out = appendNumbers(out, uint64(len(runs)))
	for _, x := range runs {
		out = appendNumbers(out, uint64(x.kept), uint64(x.gone), uint64(x.added))
	}
	before := m.sheet(now.columns, len(now.keys))
	defer m.back(before)
	for c := range now.cells {
		before.cells[c] = moved(was.cells[c], runs, before.cells[c], func(at int, added []int64) {
			last := int64(0)
			for i := range added {
				added[i] = now.cells[c][at+i]
				out = appendNumbers(out, zigzag(added[i]-last))
				last = added[i]
			}
		})
	}
	moved(was.keys, runs, before.keys, func(at int, added []int64) {
		last := int64(0)
		for i := range added {
			out = appendNumbers(out, zigzag(now.keys[at+i]-last))
			last = now.keys[at+i]
		}
	})
	copy(before.keys, now.keys)
	told := tell(before)
	next := 0
	var misses []byte
	for c, col := range now.columns {
		if slices.Equal(before.cells[c], now.cells[c]) {
			continue
		}
		g := h.of(c)
		var count int
		if misses, count = g.wrong(misses[:0], before.cells[c], now.cells[c], &told, col.name); !g.good(count) {
			if found := g.better(count, before.cells[c], now.cells[c], &told, col.name); found != g {
				misses, count = found.wrong(misses[:0], before.cells[c], now.cells[c], &told, col.name)
				g, (*h)[c] = found, found
			}
		}
		out = appendNumbers(out, uint64(c-next), uint64(g), uint64(count))
		out = append(out, misses...)
		next = c + 1
	}
	return appendNumbers(out, uint64(len(now.columns)-next))
}

// sheet decodes the difference to was, which stays unchanged, and gives the new sheet.
func (r *reader) sheet(was *sheet, tell func(*sheet) foretold) *sheet {
	now := &sheet{columns: was.columns, cells: make([][]int64, len(was.columns))}
	var runs []run
	added, next := 0, 0
	for range min(r.number(), uint64(len(r.left))) {
		kept, gone, more := r.number(), r.number(), r.number()
		left := uint64(len(was.keys) - next)
		if kept > left || gone > left-kept || more > uint64(len(r.left)) {
			return r.fail(now)
		}
		runs = append(runs, run{int(kept), int(gone), int(more)})
		next += int(kept + gone)
		added += int(more)
	}
	if next != len(was.keys) || added > len(r.left)/(len(was.columns)+1) {
		return r.fail(now)
	}
	fill := func(_ int, added []int64) {
		last := int64(0)
		for i := range added {
			last += unzigzag(r.number())
			added[i] = last
		}
	}
	for c := range was.cells {
		now.cells[c] = moved(was.cells[c], runs, nil, fill)
	}
	now.keys = moved(was.keys, runs, nil, fill)
	before := &sheet{columns: now.columns, keys: now.keys, cells: slices.Clone(now.cells)}
	told := tell(before)
	for c := 0; ; c++ {
		gap := r.number()
		if gap >= uint64(len(now.columns)-c) {
			if gap > uint64(len(now.columns)-c) {
				return r.fail(now)
			}
			return now
		}
		c += int(gap)
		g, count := guess(min(r.number(), 255)), r.number()
		if r.broken || g == byFormula && told.formulas[now.columns[c].name] == nil || g >= byGroup && g < byOrder && int(g-byGroup)/2 >= len(told.groups) ||
			g >= byOrder && int(g-byOrder) >= len(told.groups) {
			return r.fail(now)
		}
		miss := func() int {
			if count == 0 {
				return -1
			}
			count--
			return int(min(r.number(), math.MaxInt32))
		}
		at, asked := miss(), 0
		cells := make([]int64, len(now.keys))
		now.cells[c] = cells
		g.each(before.cells[c], &told, now.columns[c].name, func(row int, p int64) int64 {
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
			return r.fail(now)
		}
	}
}
