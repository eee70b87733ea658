package speeds

import "github.com/fairlease/fairlease/sidecar/engine/profile"

// types numbers the conditions of a round's jobs, so that the book is asked once for each.
type types struct {
	list []jobType
	of   []int32 // by case: 1 + its type; 0 = not asked yet
	at   map[runs]int32
}

// jobType is what the book says of a kind at a gang size.
type jobType struct {
	runs
	known []profile.Speedup  // by pool
	sure  *[]profile.Speedup // as known, for prices; nil = not asked yet
	base  *base              // nil = not asked yet
}

// base is the rates of a type, in steps/s, on the pool where it is slowest and on the reference model; 0 = unknown.
type base struct{ slowest, reference float64 }

// typeOf returns the type of a case.
func (x *Speeds) typeOf(i int) *jobType {
	if x.types.of[i] == 0 {
		of := runs{x.Kinds[i], x.Books.Jobs[i].Is.GPUs}
		at, known := x.types.at[of]
		if !known {
			x.types.list = append(x.types.list, jobType{runs: of, known: x.Book.Speedups(of.kind, max(of.gang, 1), x.Books.In.Pools)})
			at = int32(len(x.types.list))
			x.types.at[of] = at
		}
		x.types.of[i] = at
	}
	return &x.types.list[x.types.of[i]-1]
}

// Speedups returns, by pool, a job's speed relative to the reference model; 1 = unknown.
func (x *Speeds) Speedups(i int) []profile.Speedup { return x.typeOf(i).known }

// Priced returns, by pool, a job's speed as prices of trades may count it; nil = as Speedups.
func (x *Speeds) Priced(i int) []profile.Speedup {
	t := x.typeOf(i)
	if t.sure == nil {
		sure := profile.Priced(x.Book, t.kind, max(t.gang, 1), x.Books.In.Pools)
		t.sure = &sure
	}
	return *t.sure
}

// baseOf returns the rates of a job's type, for the GPUs that the job wants: it may hold fewer than it asked for.
func baseOf(x *Speeds, i int) base {
	t, gang := x.typeOf(i), max(x.Books.Wants(i), 1)
	if gang != max(t.gang, 1) {
		return t.rates(x.Book, gang)
	}
	if t.base == nil {
		b := t.rates(x.Book, gang)
		t.base = &b
	}
	return *t.base
}

// rates returns the rates of a type for gangs of a size.
func (t *jobType) rates(book *profile.Book, gang int) (b base) {
	for _, s := range t.known {
		if r, ok := book.Rate(t.kind, s.Model, gang); ok && r.Rate > 0 && !r.Relative && (b.slowest == 0 || r.Rate < b.slowest) {
			b = base{r.Rate, r.Rate / s.Value}
		}
	}
	return b
}
