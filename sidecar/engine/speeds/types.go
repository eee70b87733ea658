package speeds

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// Types numbers the kinds of a round's jobs, and their types, which are kinds at a gang size. The book is asked once for each.
type Types struct {
	book    *profile.Book
	found   *eligible.Found
	pools   []string
	list    []jobType
	kinds   map[cluster.Kind]int32
	names   []cluster.Kind // by kind
	kind    []int32        // by case: 1 + its kind; 0 = a job of no tenant
	of      []int32        // by case: 1 + its type; 0 = not asked yet
	at      map[typeKey]int32
	reports []int8 // by kind: its jobs report progress, 1, or do not, -1; 0 = not asked yet
}

// typeKey is a kind at a gang size.
type typeKey struct{ kind, gang int32 }

// jobType is what the book says of a kind at a gang size.
type jobType struct {
	runs
	known []profile.Speedup  // by pool; nil = not asked yet
	sure  *[]profile.Speedup // as known, for prices; nil = not asked yet
}

func newTypes(book *profile.Book, found *eligible.Found, pools []string, cases int) Types {
	return Types{book: book, found: found, pools: pools, kinds: map[cluster.Kind]int32{}, kind: make([]int32, cases), of: make([]int32, cases), at: map[typeKey]int32{}}
}

// set sets the kind of a case.
func (t *Types) set(i int, kind cluster.Kind) {
	k, known := t.kinds[kind]
	if !known {
		k = int32(len(t.names))
		t.kinds[kind] = k
		t.names, t.reports = append(t.names, kind), append(t.reports, 0)
	}
	t.kind[i] = k + 1
}

// Of returns the number of the type of a case.
func (t *Types) Of(i int) int {
	if t.of[i] == 0 {
		t.of[i] = 1 + int32(t.At(i, t.found.Can[i].GPUs.Devices()))
	}
	return int(t.of[i]) - 1
}

// At returns the number of the type of a case's kind at a gang size.
func (t *Types) At(i, gang int) int {
	key := typeKey{t.kind[i] - 1, int32(gang)}
	at, known := t.at[key]
	if !known {
		name := cluster.Kind("")
		if key.kind >= 0 {
			name = t.names[key.kind]
		}
		at = int32(len(t.list))
		t.at[key], t.list = at, append(t.list, jobType{runs: runs{name, gang}})
	}
	return int(at)
}

// Speedups returns, by pool, the speed of a type relative to the reference model; 1 = unknown.
func (t *Types) Speedups(number int) []profile.Speedup {
	x := &t.list[number]
	if x.known == nil {
		x.known = t.book.Speedups(x.kind, max(x.gang, 1), t.pools)
	}
	return x.known
}

// Priced returns, by pool, the speed of a type as prices of trades may count it; nil = as Speedups.
func (t *Types) Priced(number int) []profile.Speedup {
	x := &t.list[number]
	if x.sure == nil {
		sure := profile.Priced(t.book, x.kind, max(x.gang, 1), t.pools, t.Speedups(number))
		x.sure = &sure
	}
	return *x.sure
}

// Reports reports whether jobs of a case's kind report progress.
func (t *Types) Reports(i int) bool {
	k := t.kind[i] - 1
	if k < 0 {
		return false
	}
	if t.reports[k] == 0 {
		t.reports[k] = -1
		if t.book.Reports(t.names[k]) {
			t.reports[k] = 1
		}
	}
	return t.reports[k] > 0
}
