package view

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/store"
)

// OverrideTable lists the orders of administrators.
func (p *Page) OverrideTable(orders []store.Override) *Table {
	w := p.words(nil)
	t := &Table{Head: []string{">ID", "OVERRIDE", "FOR", "NAME", "UNTIL", "BY", "ENDED_BY", "REASON"},
		None: "No override is in force; --all lists those that have ended, too."}
	for _, o := range orders {
		until, by := o.Until, ""
		if o.Ended != nil {
			until = *o.Ended
		}
		if o.EndedBy != nil {
			by = *o.EndedBy
		}
		t.Add(fmt.Sprint(o.ID), o.Kind, o.Scope, o.Name, clock(w, cluster.InstantOf(until)), o.By, by, o.Reason)
	}
	return t
}

// ReleaseTable lists the actions that return jobs to Slurm.
func (p *Page) ReleaseTable(actions []cluster.Action) *Table {
	t := &Table{Head: []string{"WHAT", "FOR", "BEGIN", "NODES"},
		None: "No job and no reservation is returned: fairlease keeps none."}
	for i := range actions {
		a := &actions[i]
		begin := "now"
		if a.Until > 0 {
			begin = p.Time(a.Until)
		}
		if a.Verb == cluster.Release || a.Verb == cluster.Unreserve {
			begin = ""
		}
		t.Add(string(a.Verb), Subject(a), begin, hostlist.Compress(a.NodeList))
	}
	return t
}
