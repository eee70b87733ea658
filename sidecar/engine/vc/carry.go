package vc

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// carryOut applies a decision to the leases and claims.
func carryOut(v *decision) {
	goes := make(map[int]bool, len(v.recalls))
	for _, r := range v.recalls {
		goes[r.of] = true
		v.g.end(r)
	}
	for _, i := range v.demoted {
		if v.g.turn.f.Hand.Leases[i] != nil && !goes[i] {
			v.g.turn.f.Hand.Leases[i].Class, v.g.turn.f.Hand.Leases[i].Parts = cluster.Opportunistic, v.g.state.Leases.Parts(i)
		}
	}
	for _, i := range v.promoted {
		v.g.turn.f.Hand.Leases[i].Class, v.g.turn.f.Hand.Leases[i].Parts = cluster.Guaranteed, v.g.state.Leases.Parts(i)
	}
	for _, i := range v.renewed {
		v.g.turn.f.Renew(i, v.g.turn.f.NextEnd(i))
	}
	for k := range v.granted {
		v.g.grant(&v.granted[k])
	}
}

// end recalls one lease. A guaranteed lease whose renewal is being decided ends with its term. Any other
// lease ends after the recall notice.
func (v *ground) end(r cellRecall) {
	l, st, mark := v.turn.f.Hand.Leases[r.of], &v.turn.f.In.Cases[r.of], &v.turn.f.Hand.Marks[r.of]
	switch {
	case l == nil || l.State != cluster.Granted && !st.Runs, v.turn.f.In.Configures(r.of): // it cleans up, or begins
		return
	case l.State == cluster.Granted:
		v.turn.f.RevokeGrant(r.of, round.Recalled)
	case l.State == cluster.Ending:
		mark.Beneficiary = r.beneficiary
	case l.Class != cluster.Opportunistic && v.turn.f.Ending(r.of) && l.Why == "": // its term is over anyway
		mark.Beneficiary = r.beneficiary
	default:
		if l.Class == cluster.Opportunistic && l.Why != round.Recalled && v.touch == cluster.FullControl {
			v.turn.recalledFrom(l.Pool)
		}
		l.End, l.Why, mark.Beneficiary, mark.Stoppable = min(l.End, v.turn.f.In.Now.Add(v.turn.f.In.Settings.RecallNotice)), round.Recalled, r.beneficiary, true
	}
}

// trim removes GPUs from the last nodes of a gang whose request does not divide evenly between nodes, and reports
// whether there were any.
func trim(parts []cells.Part, gpus int) bool {
	for _, p := range parts {
		gpus -= bits.OnesCount64(p.GPUs)
	}
	trims := gpus < 0
	for k := len(parts) - 1; k >= 0 && gpus < 0; k-- {
		for p := &parts[k]; gpus < 0 && bits.OnesCount64(p.GPUs) > 1; gpus++ {
			p.GPUs &^= 1 << (63 - bits.LeadingZeros64(p.GPUs))
		}
	}
	return trims
}

// grant makes a lease, or a claim while the jobs that hold the GPUs have not left, or the job itself has not left its
// present ones.
func (v *ground) grant(g *cellGrant) {
	mark := &v.turn.f.Hand.Marks[g.of]
	nodes := g.nodes
	if r := &v.turn.f.In.Snapshot.Cases[g.of].Job.Request; !r.Exclusive && trim(g.parts, r.Size.Devices) || nodes == nil {
		nodes = v.holdings(g.parts, v.turn.f.Shape(g.of))
	}
	pool, at := nodes[0].Model, v.turn.f.In.Now
	for _, i := range g.recall {
		if l := v.turn.f.Hand.Leases[i]; l != nil && l.State != cluster.Ending {
			at = max(at, l.End)
		}
	}
	if g.moves && v.turn.f.Hand.Leases[g.of] != nil {
		at = max(at, v.turn.f.Hand.Leases[g.of].End)
	}
	if at > v.turn.f.In.Now || g.moves {
		cl := cluster.Claim{Job: v.turn.f.In.Records[g.of].Key, Pool: pool, Nodes: nodes, At: at, Made: v.turn.f.In.Now, Parts: g.parts}
		if old := v.claims[g.of]; old != nil {
			cl.Made = old.Made
		}
		if old := v.moving[g.of]; old != nil {
			cl.Made = old.Made
			if v.turn.f.Hand.Leases[g.of] == nil { // the claim lapses if the job does not come
				cl.At = old.At
			}
		}
		v.turn.f.Hand.Claims, mark.Claimed = append(v.turn.f.Hand.Claims, cl), true
		return
	}
	v.turn.f.Grant(g.of, pool, nodes, v.turn.f.Stops.Boundary(g.of, v.turn.f.In.Now))
	v.turn.f.Hand.Leases[g.of].Class, v.turn.f.Hand.Leases[g.of].Parts = g.class, g.parts
}

// safePlan is the plan when promises to VCs do not add up. All leases and claims stay as they are, and
// nothing is granted. It returns the reasons it was given.
func safePlan(v *ground, unsafe ...string) []string {
	for i, l := range v.turn.f.Hand.Leases {
		if l != nil && v.turn.f.In.Cases[i].Ours(v.touch) && l.State != cluster.Granted && l.State != cluster.Ending && v.turn.f.Ending(i) {
			v.turn.f.Renew(i, v.turn.f.NextEnd(i))
		}
	}
	for i := range v.turn.f.In.Cases {
		if cl := v.claims[i]; cl != nil {
			v.turn.f.Hand.Claims, v.turn.f.Hand.Marks[i].Claimed = append(v.turn.f.Hand.Claims, *cl), true
		}
	}
	v.turn.f.Hand.Events = append(v.turn.f.Hand.Events, cluster.Event{Kind: cluster.EventCellsUnsafe,
		Text: "promises to virtual clusters do not add up, nothing is granted: " + strings.Join(unsafe, "; ")})
	return unsafe
}

// commons grants nodes that are in no cell, by weighted shares, as on a cluster without cells.
func commons(v *ground, in *lease.Input) {
	if !slices.ContainsFunc(v.turn.f.In.Snapshot.Nodes, func(n cluster.Node) bool { _, in := v.state.Cells.Place(n.Name); return !in && len(n.GPUs) > 0 }) {
		return
	}
	in.Candidates = slices.Clone(in.Candidates) // rebuilt below
	for _, t := range v.turn.f.In.Snapshot.Cells.Tops {
		v.turn.f.Closed = append(v.turn.f.Closed, t.Nodes...)
	}
	rest := slices.DeleteFunc(v.turn.f.Candidates(v.touch), func(k lease.Candidate) bool {
		return k.Running && v.inside[k.Case] || !k.Running && v.turn.f.Hand.Leases[k.Case] != nil || v.turn.f.Hand.Marks[k.Case].Claimed
	})
	of := lease.Input{Now: v.turn.f.In.Now, Settings: v.turn.f.In.Settings}
	of.Candidates, of.Tenants = v.turn.f.Line(rest)
	of.Trials = v.turn.f.Market.Trials(v.turn.f.Taken(), of.Candidates)
	known := len(v.turn.f.Hand.Claims)
	v.turn.c.common = v.turn.c.Commons(v.turn.f, &of, v.turn.c.common, v.touch, &v.turn.out)
	for _, cl := range v.turn.f.Hand.Claims[known:] {
		v.turn.f.Hand.Marks[v.turn.f.In.Find(cl.Job)].Claimed = true
	}
	v.turn.f.Closed = v.turn.f.Closed[:0]
}
