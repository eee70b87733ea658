package store

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Thousands of jobs wait for the same reason, whose numbers change in each round: how far their tenant is behind, which tenant went first, when
// the next lease ends. So a frame has the usual reason of each kind of job once, and says of most statuses only that they are as usual.

// usual is the reason of most waiting jobs of a tenant that ask for so many GPUs of a model ("" = of any). Rank, rho and the jobs of their own tenant
// that go first are each job's own.
type usual struct {
	Key    int64          `json:"key"` // its place among all
	Tenant string         `json:"tenant"`
	Model  string         `json:"model"`
	GPUs   int64          `json:"gpus"`
	Reason cluster.Reason `json:"reason"`
}

// beside is a status beside the usual reason of its job's kind. If it is its own, Behind and OtherBehind are less those of the usual one; else
// the reason has only what is each job's own.
type beside struct {
	Own    bool              `json:"own,omitempty"`
	Status cluster.JobStatus `json:"status"`
}

var (
	usualShape  = shapeOf(reflect.TypeFor[usual]())
	besideShape = shapeOf(reflect.TypeFor[beside]())
)

// kind is that of a job: its tenant and model as words.
type kind struct{ tenant, model, gpus int64 }

// kindsOf gives the kind of jobs, in the order of their keys.
func kindsOf(jobs, records *sheet) func(key int64) kind {
	tenant, record := records.cell(textKind, "tenant"), records.follow()
	model, gpus, job := jobs.cell(textKind, "job.request.model"), jobs.cell(numberKind, "job.request.gpus"), jobs.follow()
	return func(key int64) kind {
		j := job(key)
		return kind{tenant(record(key)), model(j), gpus(j)}
	}
}

// places gives the places of kinds.
type places struct {
	of     map[kind]int
	recent [1 << 10]struct {
		kind
		place int
	}
}

// placesOf gives those of the rows of usual reasons.
func placesOf(usuals *sheet) *places {
	p := &places{of: make(map[kind]int, len(usuals.rows))}
	tenant, model, gpus := usuals.cell(textKind, "tenant"), usuals.cell(textKind, "model"), usuals.cell(numberKind, "gpus")
	for i, r := range usuals.rows {
		p.of[kind{tenant(r), model(r), gpus(r)}] = i
	}
	return p
}

// find gives the place of a kind; -1 = none.
func (p *places) find(k kind) int {
	at := &p.recent[uint64(k.tenant<<40^k.model<<20^k.gpus+1)*0x9e3779b97f4a7c15>>54]
	if at.kind != k || at.place == 0 {
		place, known := p.of[k]
		if !known {
			return -1
		}
		at.kind, at.place = k, place+1
	}
	return at.place - 1
}

// common gives the part of a reason that is the same for many jobs.
func common(r *cluster.Reason) cluster.Reason {
	out := *r
	out.Rank, out.Rho, out.Inside = 0, 0, nil
	return out
}

// alike tells whether two reasons are the same in what is the same for many jobs.
func alike(r, usual *cluster.Reason) bool {
	if r.Behind != usual.Behind || r.Code != usual.Code || r.Until != usual.Until || r.Free != usual.Free { // most others differ in these
		return false
	}
	x := common(r)
	x.Budget, x.Bound = like(x.Budget, usual.Budget), like(x.Bound, usual.Bound)
	return x == *usual
}

// reasons are the statuses of a round and the usual ones of their jobs' kinds.
type reasons struct {
	statuses []cluster.JobStatus
	usuals   []usual
	kinds    []int32 // by status: its place in usuals
}

// votes are how many more jobs of a kind have its usual reason than others (Boyer and Moore: it is that of most if more than half have one). Of eight
// jobs one votes.
type votes struct{ more, asked int }

const oneVotesOf = 8

func (v *votes) cast(r, usual *cluster.Reason) {
	v.asked++
	switch {
	case v.asked%oneVotesOf != 1:
	case v.more == 0:
		*usual, v.more = common(r), 1
	case alike(r, usual):
		v.more++
	default:
		v.more--
	}
}

// reasonsOf gives those of statuses. was are the usual reasons of the last round.
func reasonsOf(statuses []cluster.JobStatus, was, jobs, records *sheet, w *words) *reasons {
	x := &reasons{statuses: statuses, kinds: make([]int32, len(statuses))}
	tenant, model, gpus := was.cell(textKind, "tenant"), was.cell(textKind, "model"), was.cell(numberKind, "gpus")
	for _, r := range was.rows {
		x.usuals = append(x.usuals, usual{Key: r.key, Tenant: w.texts[tenant(r)], Model: w.texts[model(r)], GPUs: gpus(r)})
	}
	place, kindOf := placesOf(was), kindsOf(jobs, records)
	cast := slices.Repeat([]votes{{}}, len(x.usuals))
	for i := range statuses {
		kind := kindOf(int64(statuses[i].Job))
		at := place.find(kind)
		if at < 0 {
			at = len(x.usuals)
			place.of[kind] = at
			x.usuals, cast = append(x.usuals, usual{Key: int64(at), Tenant: w.texts[kind.tenant], Model: w.texts[kind.model], GPUs: kind.gpus}), append(cast, votes{})
		}
		x.kinds[i] = int32(at)
		cast[at].cast(&statuses[i].Reason, &x.usuals[at].Reason)
	}
	return x
}

// beside gives a status beside the usual reason.
func (x *reasons) beside(i int) beside {
	v := beside{Status: x.statuses[i]}
	usual, why := &x.usuals[x.kinds[i]].Reason, &v.Status.Reason
	if v.Own = !alike(why, usual); v.Own {
		why.Behind, why.OtherBehind = why.Behind-usual.Behind, why.OtherBehind-usual.OtherBehind
		return v
	}
	v.Status.Reason = cluster.Reason{Rank: why.Rank, Rho: why.Rho, Inside: why.Inside}
	return v
}

// list is the statuses. One that says the same beside the usual reason is as it was.
func (x *reasons) list() *structs {
	return &structs{len(x.statuses), func(i int) int64 { return int64(x.statuses[i].Job) },
		func(i int, row *row) bool {
			if row.like == nil {
				return false
			}
			was, v := (*beside)(row.like), &x.statuses[i]
			why := &v.Reason
			if !was.Own { // the usual case, without a copy
				inside := like(why.Inside, was.Status.Reason.Inside)
				return was.Status.Rho == v.Rho && was.Status.Reason.Rho == why.Rho && was.Status.Reason.Rank == why.Rank && was.Status.Reason.Inside == inside &&
					alike(why, &x.usuals[x.kinds[i]].Reason)
			}
			now := x.beside(i)
			why = &now.Status.Reason
			why.Inside, why.Budget, why.Bound = like(why.Inside, was.Status.Reason.Inside), like(why.Budget, was.Status.Reason.Budget), like(why.Bound, was.Status.Reason.Bound)
			return *was == now
		},
		func(all []int) []unsafe.Pointer {
			return copies(all, func(i int) beside {
				v := x.beside(i)
				why := &v.Status.Reason
				why.Inside, why.Budget, why.Bound = copyOf(why.Inside), copyOf(why.Budget), copyOf(why.Bound)
				return v
			})
		}, true}
}

// usualList is the usual reasons.
func (x *reasons) usualList() *structs {
	return &structs{len(x.usuals), func(i int) int64 { return x.usuals[i].Key }, nil, func(all []int) []unsafe.Pointer { return pointersTo(x.usuals, all) }, false}
}

// statusesOf gives the statuses of a scene.
func statusesOf(s *scene) ([]cluster.JobStatus, error) {
	if len(s.statuses.rows) == 0 {
		return nil, nil
	}
	var all []beside
	var usuals []usual
	if err := s.statuses.tell(besideShape, s.words, listOfRows(&all, s.statuses)); err != nil {
		return nil, err
	}
	if err := s.usuals.tell(usualShape, s.words, listOfRows(&usuals, s.usuals)); err != nil {
		return nil, err
	}
	out := make([]cluster.JobStatus, len(all))
	place, kindOf := placesOf(s.usuals), kindsOf(s.jobs, s.records)
	for i := range all {
		out[i] = all[i].Status
		at := place.find(kindOf(s.statuses.rows[i].key))
		if at < 0 {
			return nil, errFrame
		}
		why, usual := &out[i].Reason, usuals[at].Reason
		if all[i].Own {
			why.Behind, why.OtherBehind = why.Behind+usual.Behind, why.OtherBehind+usual.OtherBehind
			continue
		}
		usual.Rank, usual.Rho, usual.Inside = why.Rank, why.Rho, why.Inside
		*why = usual
	}
	return out, nil
}

// like gives was if it points to the same as now, else now.
func like[T comparable](now, was *T) *T {
	if now != nil && was != nil && *now == *was {
		return was
	}
	return now
}

// copyOf points to a copy.
func copyOf[T any](x *T) *T {
	if x == nil {
		return nil
	}
	out := *x
	return &out
}

// judging predicts statuses from their jobs, and from the records of these at a moment.
func judging(jobs, records *sheet, at cluster.Instant) *foresight {
	number := func(name string) func(*row) int64 { return records.cell(numberKind, name) }
	alloc, due, carry, rate, since := number("alloc"), number("due"), number("due_carry"), number("due_rate"), number("due_since")
	extra, extraDue := number("extra.alloc"), number("extra.due")
	group := func(*sheet) func(*row) int64 {
		tenant, record := records.cell(textKind, "tenant"), records.follow()
		return func(r *row) int64 { return tenant(record(r.key)) } // those behind a job that comes or goes change their ranks
	}
	return &foresight{group, func(b *block) foretold {
		rhos, owners, kinds := make([]int64, len(b.keys)), make([]int64, len(b.keys)), make([]int64, len(b.keys))
		record, kindOf := records.follow(), kindsOf(jobs, records)
		for r, key := range b.keys {
			k := kindOf(key)
			owners[r], kinds[r] = k.tenant, k.tenant<<40^k.gpus<<20^k.model
			if x := record(key); x != nil {
				owner := cluster.Record{Alloc: cluster.GPUTime(alloc(x)), Due: cluster.GPUTime(due(x)), DueCarry: max(carry(x), 0), DueRate: cluster.MicroGPU(rate(x)), DueSince: cluster.Instant(since(x)),
					Extra: cluster.Extra{Alloc: cluster.GPUTime(extra(x)), Due: cluster.GPUTime(extraDue(x))}}
				rhos[r] = int64(cluster.RhoOf(owner.Work(at)))
			}
		}
		return foretold{formulas: map[string][]int64{"status.rho": rhos, "status.reason.rho": rhos}, groups: [][]int64{owners, kinds, b.column(textKind, "status.reason.code")}, ordered: []string{"status.reason.rank"}}
	}}
}

// repeating predicts that the usual reasons of a tenant change alike, as do those of a model.
var repeating = foresight{tell: func(b *block) foretold {
	tenant, pool := b.column(textKind, "tenant"), b.column(textKind, "reason.pool")
	both := slices.Clone(tenant)
	for i := range both {
		both[i] = both[i]<<20 ^ pool[i]
	}
	return foretold{groups: [][]int64{tenant, pool, both}}
}}
