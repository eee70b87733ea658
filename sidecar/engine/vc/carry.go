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
		v.end(r)
	}
	for _, i := range v.demoted {
		if v.Leases[i] != nil && !goes[i] {
			v.Leases[i].Class, v.Leases[i].Parts = cluster.Opportunistic, v.state.Parts(i)
		}
	}
	for _, i := range v.promoted {
		v.Leases[i].Class, v.Leases[i].Parts = cluster.Guaranteed, v.state.Parts(i)
	}
	for _, i := range v.renewed {
		v.Renew(i, v.NextEnd(i))
	}
	for k := range v.granted {
		v.grant(&v.granted[k])
	}
}

// end recalls one lease. A guaranteed lease whose renewal is being decided ends with its term. Any other
// lease ends after the recall notice.
func (v *ground) end(r cellRecall) {
	l, st := v.Leases[r.of], &v.Jobs[r.of]
	switch {
	case l == nil || l.State != cluster.Granted && !st.Runs, v.Configures(r.of): // it cleans up, or begins
		return
	case l.State == cluster.Granted:
		v.RevokeGrant(r.of, round.Recalled)
	case l.State == cluster.Ending:
		st.Beneficiary = r.beneficiary
	case l.Class != cluster.Opportunistic && v.Ending(r.of) && l.Why == "": // its term is over anyway
		st.Beneficiary = r.beneficiary
	default:
		if l.Class == cluster.Opportunistic && l.Why != round.Recalled && v.touch == cluster.FullControl {
			v.recalledFrom(l.Pool)
		}
		l.End, l.Why, st.Beneficiary, st.Stoppable = min(l.End, v.Now.Add(v.Settings.RecallNotice)), round.Recalled, r.beneficiary, true
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
	st := &v.Jobs[g.of]
	nodes := g.nodes
	if r := &v.Snapshot.Cases[g.of].Job.Request; !r.Exclusive && trim(g.parts, r.GPUs) || nodes == nil {
		nodes = v.holdings(g.parts, st.Shape)
	}
	pool, at := nodes[0].Model, v.Now
	for _, i := range g.recall {
		if l := v.Leases[i]; l != nil && l.State != cluster.Ending {
			at = max(at, l.End)
		}
	}
	if g.moves && v.Leases[g.of] != nil {
		at = max(at, v.Leases[g.of].End)
	}
	if at > v.Now || g.moves {
		cl := cluster.Claim{Job: v.Records[g.of].Key, Pool: pool, Nodes: nodes, At: at, Made: v.Now, Parts: g.parts}
		if old := v.claims[g.of]; old != nil {
			cl.Made = old.Made
		}
		if old := v.moving[g.of]; old != nil {
			cl.Made = old.Made
			if v.Leases[g.of] == nil { // the claim lapses if the job does not come
				cl.At = old.At
			}
		}
		v.Claims, st.Claimed = append(v.Claims, cl), true
		return
	}
	v.Grant(g.of, pool, nodes, v.Stops.Boundary(g.of, v.Now))
	v.Leases[g.of].Class, v.Leases[g.of].Parts = g.class, g.parts
}

// safePlan is the plan when promises to VCs do not add up. All leases and claims stay as they are, and
// nothing is granted. It returns the reasons it was given.
func safePlan(v *ground, unsafe ...string) []string {
	for i, l := range v.Leases {
		if l != nil && v.Jobs[i].Ours(v.touch) && l.State != cluster.Granted && l.State != cluster.Ending && v.Ending(i) {
			v.Renew(i, v.NextEnd(i))
		}
	}
	for i := range v.Jobs {
		if cl := v.claims[i]; cl != nil {
			v.Claims, v.Jobs[i].Claimed = append(v.Claims, *cl), true
		}
	}
	v.Events = append(v.Events, cluster.Event{Kind: cluster.EventCellsUnsafe,
		Text: "promises to virtual clusters do not add up, nothing is granted: " + strings.Join(unsafe, "; ")})
	return unsafe
}

// commons grants nodes that are in no cell, by weighted shares, as on a cluster without cells.
func commons(v *ground, in *lease.Input) {
	if !slices.ContainsFunc(v.Snapshot.Nodes, func(n cluster.Node) bool { _, in := v.state.Place(n.Name); return !in && len(n.GPUs) > 0 }) {
		return
	}
	in.Candidates = slices.Clone(in.Candidates) // rebuilt below
	for _, t := range v.Snapshot.Cells.Tops {
		v.Closed = append(v.Closed, t.Nodes...)
	}
	rest := slices.DeleteFunc(v.Candidates(v.touch), func(k lease.Candidate) bool {
		return k.Running && v.inside[k.Case] || !k.Running && v.Leases[k.Case] != nil || v.Jobs[k.Case].Claimed
	})
	of := lease.Input{Now: v.Now, Settings: v.Settings}
	of.Candidates, of.Tenants = v.Line(rest)
	of.Trials = v.Market.Trials(of.Candidates)
	known := len(v.Claims)
	v.common = v.Commons(v.Field, &of, v.common, v.touch, &v.out)
	for _, cl := range v.Claims[known:] {
		v.Jobs[v.Find(cl.Job)].Claimed = true
	}
	v.Closed = v.Closed[:0]
}
