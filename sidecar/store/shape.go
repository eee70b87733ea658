package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

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

// numbers reads the field of structs, into every step-th number of out.
func (f field) numbers(of []unsafe.Pointer, out []int64, step int) {
	switch {
	case f.part:
		for r, at := range of {
			part := *(*int64)(unsafe.Add(at, f.offset))
			if part == int64(cluster.WholeGPU) {
				part = 0
			}
			out[r*step] = part
		}
		return
	case f.unit == 1:
		for r, at := range of {
			out[r*step] = *(*int64)(unsafe.Add(at, f.offset)) % int64(cluster.WholeGPU)
		}
		return
	case f.unit > 1:
		for r, at := range of {
			out[r*step] = *(*int64)(unsafe.Add(at, f.offset)) / int64(f.unit)
		}
		return
	}
	switch f.kind {
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		numbersOf[int64](of, f.offset, out, step)
	case reflect.Int:
		numbersOf[int](of, f.offset, out, step)
	case reflect.Int32:
		numbersOf[int32](of, f.offset, out, step)
	case reflect.Uint32:
		numbersOf[uint32](of, f.offset, out, step)
	case reflect.Int16:
		numbersOf[int16](of, f.offset, out, step)
	case reflect.Uint16:
		numbersOf[uint16](of, f.offset, out, step)
	case reflect.Int8:
		numbersOf[int8](of, f.offset, out, step)
	case reflect.Bool, reflect.Uint8:
		numbersOf[uint8](of, f.offset, out, step)
	default:
		panic("a column is no number") // shapeOf admits only these
	}
}

// numbersOf reads numbers of a type, which are so many bytes into structs.
func numbersOf[T int | int64 | int32 | int16 | int8 | uint32 | uint16 | uint8](of []unsafe.Pointer, offset uintptr, out []int64, step int) {
	for r, at := range of {
		out[r*step] = int64(*(*T)(unsafe.Add(at, offset)))
	}
}

var shapes sync.Map // by type

// shapeOf gives the shape of structs of a type, without the named fields.
func shapeOf(t reflect.Type, without ...string) *shape {
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

// row is a struct as numbers: one a column. Rows are not changed, so that the sheets of many rounds share them.
type row struct {
	key   int64
	cells []int64
	sum   uint64 // a checksum
	// like is a copy of the struct, which tells that the next one is the same; nil = there is none. It does not belong to the row's content.
	like unsafe.Pointer
}

// add sets the checksum.
func (r *row) add() {
	const prime = 0x9e3779b97f4a7c15
	sum := uint64(r.key)*prime + 1
	for _, x := range r.cells {
		sum = (sum ^ uint64(x)) * prime
		sum ^= sum >> 29
	}
	r.sum = sum
}

// newRows gives n rows with cells of zeros, and all these cells.
func newRows(n, columns int) ([]row, []int64) {
	rows, all := make([]row, n), make([]int64, n*columns)
	for i := range rows {
		rows[i].cells = all[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return rows, all
}

// fill makes rows of structs of the shape's type, without keys.
func (s *shape) fill(w *words, structs []unsafe.Pointer, out []*row) error {
	n := len(s.columns)
	for from := 0; from < len(structs); from += rowsAtOnce {
		some := structs[from:min(from+rowsAtOnce, len(structs))]
		rows, all := newRows(len(some), n)
		for c, place := range s.places {
			switch s.columns[c].kind {
			case textKind:
				for r, at := range some {
					all[r*n+c] = w.shared(*(*string)(unsafe.Add(at, place.offset)))
				}
			case jsonKind:
				for r, at := range some {
					if *(*unsafe.Pointer)(unsafe.Add(at, place.offset)) == nil { // of a list, a map or a pointer
						continue
					}
					if err := s.json(w, c, at, &all[r*n+c]); err != nil {
						return err
					}
				}
			default:
				place.numbers(some, all[c:], n)
			}
		}
		for r := range rows {
			out[from+r] = &rows[r]
		}
	}
	return nil
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
