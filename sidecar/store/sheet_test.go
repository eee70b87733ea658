package store

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestRanksAreTold encodes ranks of two tenants, where one loses its first job: all others of it
// move up, and that takes a few bytes.
func TestRanksAreTold(t *testing.T) {
	t.Parallel()
	const n = 5000
	columns := []column{{numberKind, "tenant"}, {numberKind, "rank"}}
	was := &sheet{columns: columns, keys: make([]int64, n), cells: [][]int64{make([]int64, n), make([]int64, n)}}
	for i := range n {
		was.keys[i] = int64(i + 1)
		was.cells[0][i] = int64(i % 2)
		if i%3 > 0 {
			was.cells[1][i] = int64(i*7919%n + 1)
		}
	}
	now := &sheet{columns: columns, keys: was.keys, cells: [][]int64{was.cells[0], slices.Clone(was.cells[1])}}
	for i, rank := range was.cells[1] {
		if was.cells[0][i] == 1 && rank > 700 {
			now.cells[1][i] = rank - 1
		}
	}
	tell := func(s *sheet) foretold {
		return foretold{groups: [][]int64{s.column(numberKind, "tenant")}, ordered: []string{"rank"}}
	}
	told := sheetDelta(nil, was, now, tell, new(habits), new(stock))
	if len(told) > 20 {
		t.Errorf("it takes %d bytes to tell that ranks move up", len(told))
	}
	r := &reader{left: told}
	got := r.sheet(was, tell)
	if r.broken || len(r.left) > 0 || !slices.Equal(got.cells[1], now.cells[1]) || !slices.Equal(got.cells[0], now.cells[0]) {
		t.Errorf("the ranks are told as others; broken %v, %d bytes left", r.broken, len(r.left))
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
	type row struct {
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
	rows := []row{
		{1, true, inner{-8, 0.25, "a"}, -1, -16, -32, 8, 16, 32, 1 << 63, []string{"x"}, cluster.Whole(8), cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}},
		{2, false, inner{8, -1, ""}, 1, 16, 32, 255, 65535, 1<<32 - 1, 1, nil, cluster.Whole(1), cluster.Size{Devices: 4, Part: 1}},
		{3, true, inner{0, 0, "a"}, 0, 0, 0, 0, 0, 0, 0, []string{}, cluster.Size{}, cluster.Size{}},
	}
	s := shapeOf(reflect.TypeFor[row](), []int{0})
	w := newWords()
	sheet, err := s.fill(w, pointersTo(rows), new(stock))
	if err != nil {
		t.Fatal(err)
	}
	if c := slices.Index(s.columns, column{numberKind, "size_part"}); c < 0 || slices.Max(sheet.cells[c]) != 0 {
		t.Errorf("whole GPUs have parts in column %d of %v", c, s.columns)
	}
	var got []row
	if err := sheet.tell(s, w, listOfRows(&got, sheet)); err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows %+v are told as %+v (%v)", rows, got, err)
	}
}

// The key of a sheet may be inside a struct of the structs.
func TestKeysInside(t *testing.T) {
	t.Parallel()
	cases := []cluster.Case{{Record: cluster.Record{Key: 7}}, {Record: cluster.Record{Key: 9}}}
	sheet, err := jobShape.fill(newWords(), pointersTo(cases), new(stock))
	if err != nil || !slices.Equal(sheet.keys, []int64{7, 9}) {
		t.Errorf("keys %v (%v)", sheet.keys, err)
	}
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
	type row struct {
		Key  int64            `json:"key"`
		Need cluster.GPUCount `json:"need"`
		Size cluster.Size     `json:"size"`
	}
	s := shapeOf(reflect.TypeFor[row](), []int{0})
	sheetOf := func(columns []column, cells ...int64) *sheet {
		out := &sheet{columns: columns, keys: []int64{1}}
		for _, x := range cells {
			out.cells = append(out.cells, []int64{x})
		}
		return out
	}
	rows := []row{{1, 4_500_000, cluster.Size{Devices: 1, Part: 125_000}}, {2, cluster.CountOf(8), cluster.Whole(8)}, {3, 1, cluster.Size{Devices: 2, Part: 1}}, {4, -500_000, cluster.Size{}}, {5, 0, cluster.Whole(1)}}
	w := newWords()
	written, err := s.fill(w, pointersTo(rows), new(stock))
	if err != nil {
		t.Fatal(err)
	}
	var got []row
	if err := written.tell(s, w, listOfRows(&got, written)); err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows %+v are told as %+v (%v)", rows, got, err)
	}
	key, need, size, part := column{numberKind, "key"}, column{numberKind, "need"}, column{numberKind, "size"}, column{numberKind, "size_part"}
	got = nil
	old := sheetOf([]column{key, need, size}, 1, 4, 8)
	if err := old.tell(s, w, listOfRows(&got, old)); err != nil || !reflect.DeepEqual(got, []row{{1, cluster.CountOf(4), cluster.Whole(8)}}) {
		t.Errorf("an old row is told as %+v (%v)", got, err)
	}
	for _, x := range [][2]int64{{0, 500_000}, {1, 1_000_001}, {1, -1}, {-1, 500_000}, {math.MaxInt32 + 1, 1}} {
		got = nil
		odd := sheetOf([]column{key, size, part}, 1, x[0], x[1])
		if err := odd.tell(s, w, listOfRows(&got, odd)); err == nil || !strings.Contains(err.Error(), "reading size:") {
			t.Errorf("%d devices with parts of %d are told as %+v (%v)", x[0], x[1], got, err)
		}
	}
}
