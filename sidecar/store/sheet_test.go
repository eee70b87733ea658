package store

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// sheetOf gives a sheet of keys and cells, which are by row.
func sheetOf(columns []column, keys []int64, cells [][]int64) *sheet {
	out := &sheet{columns: columns}
	for i, key := range keys {
		r := &row{key: key, cells: cells[i]}
		r.add()
		out.rows = append(out.rows, r)
	}
	return out
}

// after gives the step from a sheet to another one. Rows that are equal are the same.
func (t *sheet) after(was *sheet) step {
	from := was.match(&structs{n: len(t.rows), key: func(i int) int64 { return t.rows[i].key }})
	now := &sheet{t.columns, slices.Clone(t.rows)}
	for i, k := range from {
		if k >= 0 && slices.Equal(was.rows[k].cells, now.rows[i].cells) {
			now.rows[i] = was.rows[k]
		}
	}
	return step{was, now, from}
}

// TestRanksAreTold encodes ranks of two tenants, where one loses its first job: all others of it
// move up, and that takes a few bytes.
func TestRanksAreTold(t *testing.T) {
	t.Parallel()
	const n = 5000
	columns := []column{{numberKind, "tenant"}, {numberKind, "rank"}}
	keys, before, after := make([]int64, n), make([][]int64, n), make([][]int64, n)
	for i := range n {
		rank := int64(0)
		if keys[i] = int64(i + 1); i%3 > 0 {
			rank = int64(i*7919%n + 1)
		}
		before[i] = []int64{int64(i % 2), rank}
		if after[i] = before[i]; i%2 == 1 && rank > 0 {
			after[i] = []int64{1, rank - 1}
		}
	}
	was, now := sheetOf(columns, keys, before), sheetOf(columns, keys, after)
	tell := &foresight{tell: func(b *block) foretold {
		return foretold{groups: [][]int64{b.column(numberKind, "tenant")}, ordered: []string{"rank"}}
	}, group: func(s *sheet) func(*row) int64 {
		tenant, rank := s.cell(numberKind, "tenant"), s.cell(numberKind, "rank")
		return func(r *row) int64 { return tenant(r)<<1 + min(rank(r), 1) }
	}}
	x := now.after(was)
	told := x.append(nil, tell, new(habits))
	if len(told) > 20 {
		t.Errorf("it takes %d bytes to tell that ranks move up", len(told))
	}
	r := &reader{left: told}
	if got := r.sheet(was, tell); r.broken || len(r.left) > 0 || !got.equal(now) {
		t.Errorf("the ranks are told as others; broken %v, %d bytes left", r.broken, len(r.left))
	}
}

// equal tells whether two sheets have the same rows.
func (t *sheet) equal(o *sheet) bool {
	return t.digest() == o.digest() && slices.EqualFunc(t.rows, o.rows, func(a, b *row) bool { return a.key == b.key && a.sum == b.sum && slices.Equal(a.cells, b.cells) })
}

// Any sheet can come after any other, in whatever order their rows are.
func TestSheetsFollowSheets(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	columns := []column{{numberKind, "a"}, {numberKind, "b"}}
	drawn := func() *sheet {
		n := random.IntN(30)
		keys, cells := make([]int64, n), make([][]int64, n)
		for i := range keys {
			keys[i], cells[i] = int64(random.IntN(40)), []int64{int64(random.IntN(3)), int64(random.IntN(2))}
		}
		if random.IntN(3) > 0 {
			slices.Sort(keys)
		}
		return sheetOf(columns, keys, cells)
	}
	groups := &foresight{func(s *sheet) func(*row) int64 { return s.cell(numberKind, "a") }, func(b *block) foretold { return foretold{groups: [][]int64{b.column(numberKind, "b")}} }}
	was := drawn()
	for round := range 3000 {
		now := drawn()
		x := now.after(was)
		told := x.append(nil, groups, new(habits))
		r := &reader{left: told}
		if got := r.sheet(was, groups); r.broken || len(r.left) > 0 || !got.equal(now) {
			t.Fatalf("round %d: %d bytes; broken %v, %d bytes left", round, len(told), r.broken, len(r.left))
		}
		was = now
	}
}

// TestFillReadsEveryKind fills a sheet from fields of all sizes, some in a nested struct.
func TestFillReadsEveryKind(t *testing.T) {
	t.Parallel()
	type inner struct {
		Small int8    `json:"small"`
		Share float64 `json:"share"`
		Name  string  `json:"name"`
	}
	type kinds struct {
		Key  int64        `json:"key"`
		Yes  bool         `json:"yes"`
		In   inner        `json:"in"`
		I    int          `json:"i"`
		I16  int16        `json:"i16"`
		I32  int32        `json:"i32"`
		U8   uint8        `json:"u8"`
		U16  uint16       `json:"u16"`
		U32  uint32       `json:"u32"`
		U64  uint64       `json:"u64"`
		List []string     `json:"list"`
		Size cluster.Size `json:"size"`
		Half cluster.Size `json:"half"`
	}
	rows := []kinds{
		{1, true, inner{-8, 0.25, "a"}, -1, -16, -32, 8, 16, 32, 1 << 63, []string{"x"}, cluster.Whole(8), cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}},
		{2, false, inner{8, -1, ""}, 1, 16, 32, 255, 65535, 1<<32 - 1, 1, nil, cluster.Whole(1), cluster.Size{Devices: 4, Part: 1}},
		{3, true, inner{0, 0, "a"}, 0, 0, 0, 0, 0, 0, 0, []string{}, cluster.Size{}, cluster.Size{}},
	}
	s := shapeOf(reflect.TypeFor[kinds]())
	w := newWords()
	sheet := filled(t, s, w, rows)
	if c := slices.Index(s.columns, column{numberKind, "size_part"}); c < 0 || sheet.rows[0].cells[c] != 0 || sheet.rows[2].cells[c] != 0 {
		t.Errorf("whole GPUs have parts in column %d of %v", c, s.columns)
	}
	var got []kinds
	if err := sheet.tell(s, w, listOfRows(&got, sheet)); err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows %+v are told as %+v (%v)", rows, got, err)
	}
}

// filled gives the sheet of a list.
func filled[T any](t *testing.T, s *shape, w *words, list []T) *sheet {
	t.Helper()
	x, err := (&sheet{columns: s.columns}).of(s, w, &structs{len(list), func(i int) int64 { return int64(i) }, nil,
		func(all []int) []unsafe.Pointer { return pointersTo(list, all) }, false})
	if err != nil {
		t.Fatal(err)
	}
	return x.now
}

// appendTexts gives the same as encoding/json for lists without escapes.
func TestListsOfTextsAreJSON(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{}, {""}, {"gpu"}, {"gpu", "a b~"}} {
		want, err := json.Marshal(list)
		got, plain := appendTexts(nil, list)
		if err != nil || !plain || string(got) != string(want) {
			t.Errorf("%q is written as %s, %t; want %s", list, got, plain, want)
		}
	}
	for _, text := range []string{"\"", "\\", "<", ">", "&", "\n", "\x7f", "ü", "\xff"} {
		if got, plain := appendTexts(nil, []string{"gpu", text}); plain {
			t.Errorf("%q is written as %s, though it is escaped", text, got)
		}
	}
}

// Numbers of GPUs are columns of whole ones, as in older frames, and of the millionths beyond. Parts that no job can have are an error.
func TestSheetsWithParts(t *testing.T) {
	t.Parallel()
	type sizes struct {
		Key  int64            `json:"key"`
		Need cluster.GPUCount `json:"need"`
		Size cluster.Size     `json:"size"`
	}
	s := shapeOf(reflect.TypeFor[sizes]())
	one := func(columns []column, cells ...int64) *sheet { return sheetOf(columns, []int64{1}, [][]int64{cells}) }
	rows := []sizes{{1, 4_500_000, cluster.Size{Devices: 1, Part: 125_000}}, {2, cluster.CountOf(8), cluster.Whole(8)}, {3, 1, cluster.Size{Devices: 2, Part: 1}}, {4, -500_000, cluster.Size{}}, {5, 0, cluster.Whole(1)}}
	w := newWords()
	written := filled(t, s, w, rows)
	var got []sizes
	if err := written.tell(s, w, listOfRows(&got, written)); err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows %+v are told as %+v (%v)", rows, got, err)
	}
	key, need, size, part := column{numberKind, "key"}, column{numberKind, "need"}, column{numberKind, "size"}, column{numberKind, "size_part"}
	got = nil
	old := one([]column{key, need, size}, 1, 4, 8)
	if err := old.tell(s, w, listOfRows(&got, old)); err != nil || !reflect.DeepEqual(got, []sizes{{1, cluster.CountOf(4), cluster.Whole(8)}}) {
		t.Errorf("an old row is told as %+v (%v)", got, err)
	}
	for _, x := range [][2]int64{{0, 500_000}, {1, 1_000_001}, {1, -1}, {-1, 500_000}, {math.MaxInt32 + 1, 1}} {
		got = nil
		odd := one([]column{key, size, part}, 1, x[0], x[1])
		if err := odd.tell(s, w, listOfRows(&got, odd)); err == nil || !strings.Contains(err.Error(), "reading size:") {
			t.Errorf("%d devices with parts of %d are told as %+v (%v)", x[0], x[1], got, err)
		}
	}
}
