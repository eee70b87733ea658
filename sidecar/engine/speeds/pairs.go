package speeds

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Pairs are the speeds of jobs that share a GPU, alone and beside each other.
type Pairs struct {
	in    *round.Facts
	book  *profile.Book                   // nil = nothing is known
	all   []cluster.Kind                  // by case; nil = they are worked out when asked for
	kinds map[cluster.JobKey]cluster.Kind // those that were asked for
	parts map[couple]float64              // see part: those that were asked for
}

// couple is a kind beside another one on GPUs of a model.
type couple struct {
	kind, with cluster.Kind
	model      string
}

// listen learns from the reports of jobs that share GPUs, and of gangs, where no policy divides GPU models and nothing else is learnt.
func listen(x *Speeds) *profile.Book {
	x.book = profile.New(profile.Default(), x.in.Snapshot.Profiles, x.in.Snapshot.Paces)
	x.Pairs.book = x.book
	if len(x.in.Snapshot.Progress) > 0 {
		heard := reports(x)
		for _, r := range x.in.Snapshot.Progress {
			if i, ok := heard[r.Job]; ok {
				x.hear(i, r)
			}
		}
	}
	x.book.Forget(func(key cluster.JobKey) bool {
		i := x.in.Find(key)
		return i < 0 || !x.in.Cases[i].Live
	})
	return x.book
}

// kind returns the kind of a case.
func (p *Pairs) kind(i int) cluster.Kind {
	if p.all != nil {
		return p.all[i]
	}
	c := &p.in.Snapshot.Cases[i]
	kind, ok := p.kinds[c.Record.Key]
	if !ok {
		if kind = kindOf(p.in, &c.Job, c.Record.Tenant); p.kinds == nil {
			p.kinds = map[cluster.JobKey]cluster.Kind{}
		}
		p.kinds[c.Record.Key] = kind
	}
	return kind
}

// partner returns the kind of the job that runs at the same time as a job on its GPU; "" = none does.
func (p *Pairs) partner(i int) cluster.Kind {
	if s := p.in.Records[i].Slice; s != nil && s.Pair != nil && s.Pair.Beside {
		if k := p.in.Find(s.Pair.With); k >= 0 {
			return p.kind(k)
		}
	}
	return ""
}

// Beside returns the parts of their speed alone that two jobs of one GPU have beside each other on a model; false = it is not known.
func (p *Pairs) Beside(i, k int, model string) (own, other float64, known bool) {
	if p.book == nil {
		return 0, 0, false
	}
	a, b := p.kind(i), p.kind(k)
	own, other = p.part(couple{a, b, model}), p.part(couple{b, a, model})
	return own, other, own > 0 && other > 0
}

// Type names the type of a case's job for pairs: its kind, of one user where jobs of one user alone share GPUs.
func (p *Pairs) Type(i int) string {
	if p.in.Settings.Across == cluster.SameUser {
		return string(p.kind(i)) + "@" + p.in.Records[i].User
	}
	return string(p.kind(i))
}

// part returns the part of its speed alone that a kind has; 0 = it is not known.
func (p *Pairs) part(of couple) float64 {
	part, ok := p.parts[of]
	if ok {
		return part
	}
	alone, known := p.book.Rate(of.kind, of.model, 1)
	if both, ok := p.book.Beside(of.kind, of.with, of.model, 1); known && ok && alone.Rate > 0 {
		part = min(both.Rate/alone.Rate, 1)
	}
	if p.parts == nil {
		p.parts = map[couple]float64{}
	}
	p.parts[of] = part
	return part
}
