package policy

import (
	"fmt"
)

// Fault is an invalid number in a problem, with its place.
type Fault struct {
	Job   int64  // 0 if it concerns no single job
	Model string // empty if it concerns no single model
	What  string
}

func (f *Fault) Error() string {
	at := ""
	if f.Job != 0 {
		at += fmt.Sprintf(" job %d:", f.Job)
	}
	if f.Model != "" {
		at += fmt.Sprintf(" model %s:", f.Model)
	}
	return "problem:" + at + " " + f.What
}

// The valid ranges of numbers: outside them they are mistakes, and arithmetic fails.
const (
	least = 1e-9
	most  = 1e12
)

// needs lists the inputs of a policy besides throughputs.
type needs struct{ steps, prices, entities bool }

// check finds the first invalid number.
func (p *Problem) check(n needs, slo bool) error {
	if len(p.Models) == 0 {
		return &Fault{What: "there is no GPU model"}
	}
	for _, m := range p.Models {
		if !positive(m.GPUs) || m.GPUs > 1e9 {
			return &Fault{Model: m.Name, What: fmt.Sprintf("%v GPUs; it takes a number above 0", m.GPUs)}
		}
		if m.Together != nil && !(*m.Together >= 0 && *m.Together <= m.GPUs) {
			return &Fault{Model: m.Name, What: fmt.Sprintf("%v of %v GPUs together", *m.Together, m.GPUs)}
		}
		if n.prices && !positive(m.Price) {
			return &Fault{Model: m.Name, What: fmt.Sprintf("price %v; this policy needs one above 0", m.Price)}
		}
	}
	for i, e := range p.Entities {
		if n.entities && !positive(e.Weight) {
			return &Fault{What: fmt.Sprintf("entity %s (%d): weight %v; it takes a number above 0", e.Name, i, e.Weight)}
		}
	}
	for m := range p.Jobs {
		if what, model := p.faulty(m, n, slo); what != "" {
			return &Fault{Job: p.Jobs[m].ID, Model: model, What: what}
		}
	}
	for _, q := range p.Pairs {
		if q.A < 0 || q.B <= q.A || q.B >= len(p.Jobs) {
			return &Fault{What: fmt.Sprintf("a pair of jobs %d and %d of %d", q.A, q.B, len(p.Jobs))}
		}
		if what, model := p.odd(q); what != "" {
			return &Fault{Job: p.Jobs[q.A].ID, Model: model, What: fmt.Sprintf("with job %d: %s", p.Jobs[q.B].ID, what)}
		}
	}
	return nil
}

// faulty says what is wrong with a job, and on which model.
func (p *Problem) faulty(m int, n needs, slo bool) (what, model string) {
	j, k := &p.Jobs[m], len(p.Models)
	switch {
	case m > 0 && j.ID <= p.Jobs[m-1].ID:
		return fmt.Sprintf("comes after job %d; jobs are sorted by ID", p.Jobs[m-1].ID), ""
	case j.Gang <= 0 || j.Gang > 1e6:
		return fmt.Sprintf("gang of %d GPUs", j.Gang), ""
	case !positive(j.Weight) || j.Weight > 1e9:
		return fmt.Sprintf("weight %v; it takes a number above 0", j.Weight), ""
	case len(j.Speed) != k || j.Apart != nil && len(j.Apart) != k:
		return fmt.Sprintf("%d throughputs and %d apart for %d models", len(j.Speed), len(j.Apart), k), ""
	case !sound(j.Elapsed) || !sound(j.ElapsedAlone) || !sound(j.Steps) || !sound(j.Within):
		return fmt.Sprintf("steps %v, elapsed %v, alone %v, within %v: each takes 0 or more", j.Steps, j.Elapsed, j.ElapsedAlone, j.Within), ""
	case j.Steps == 0 && (n.steps || slo && j.Within > 0):
		return "0 steps remain; this policy needs them", ""
	case n.entities && (j.Entity < 0 || j.Entity >= len(p.Entities)):
		return fmt.Sprintf("entity %d of %d", j.Entity, len(p.Entities)), ""
	}
	for i := range p.Models {
		switch {
		case !sound(j.Speed[i]):
			return fmt.Sprintf("throughput %v; it takes 0 or more", j.Speed[i]), p.Models[i].Name
		case j.Apart != nil && !sound(j.Apart[i]):
			return fmt.Sprintf("throughput %v apart; it takes 0 or more", j.Apart[i]), p.Models[i].Name
		case j.Apart != nil && j.Apart[i] > 0 && j.Speed[i] == 0:
			return fmt.Sprintf("throughput %v apart, but none together", j.Apart[i]), p.Models[i].Name
		}
	}
	return "", ""
}

// odd says what is wrong with a pair, and on which model.
func (p *Problem) odd(q Pair) (what, model string) {
	a, b, k := &p.Jobs[q.A], &p.Jobs[q.B], len(p.Models)
	switch {
	case a.Gang != b.Gang:
		return fmt.Sprintf("gangs of %d and %d GPUs", a.Gang, b.Gang), ""
	case len(q.SpeedA) != k || len(q.SpeedB) != k:
		return fmt.Sprintf("%d and %d throughputs for %d models", len(q.SpeedA), len(q.SpeedB), k), ""
	}
	for i := range p.Models {
		x, y := q.SpeedA[i], q.SpeedB[i]
		switch {
		case !sound(x) || !sound(y):
			return fmt.Sprintf("throughputs %v and %v; each takes 0 or more", x, y), p.Models[i].Name
		case x > 0 && a.Speed[i] == 0 || y > 0 && b.Speed[i] == 0:
			return fmt.Sprintf("throughputs %v and %v, but alone %v and %v", x, y, a.Speed[i], b.Speed[i]), p.Models[i].Name
		}
	}
	return "", ""
}

func positive(x float64) bool { return x >= least && x <= most }

func sound(x float64) bool { return x == 0 || positive(x) }
