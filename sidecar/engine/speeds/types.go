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
}

// typeOf returns the type of a case.
func (x *Speeds) typeOf(i int) *jobType {
	if x.types.of[i] == 0 {
		x.types.of[i] = x.types.number(x, runs{x.Kinds[i], x.found.Can[i].GPUs})
	}
	return &x.types.list[x.types.of[i]-1]
}

// number returns 1 + the index of a type.
func (t *types) number(x *Speeds, of runs) int32 {
	at, known := t.at[of]
	if !known {
		t.list = append(t.list, jobType{runs: of, known: x.Book.Speedups(of.kind, max(of.gang, 1), x.in.Pools)})
		at = int32(len(t.list))
		t.at[of] = at
	}
	return at
}

// Speedups returns, by pool, a job's speed relative to the reference model; 1 = unknown.
func (x *Speeds) Speedups(i int) []profile.Speedup { return x.typeOf(i).known }

// Priced returns, by pool, a job's speed as prices of trades may count it; nil = as Speedups.
func (x *Speeds) Priced(i int) []profile.Speedup {
	t := x.typeOf(i)
	if t.sure == nil {
		sure := profile.Priced(x.Book, t.kind, max(t.gang, 1), x.in.Pools, t.known)
		t.sure = &sure
	}
	return *t.sure
}
