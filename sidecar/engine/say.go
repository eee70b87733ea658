package engine

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/why"
)

// say turns the difference between the leases and what was seen into actions,
// and gives every job its verdict.
func (h *hall) say() cluster.Plan {
	p := cluster.Plan{Round: h.Snapshot.Round, At: h.Now}
	p.Tenants = why.Standings(h.Books, h.page.standing)
	h.page.standing = p.Tenants
	h.Moves = h.market.Moves()
	p.Actions = actions.List(h.Books)
	p.Ended, p.Losses = h.Ended, budget.Losses(h.Books)
	p.Events = h.Events
	p.Next = h.next()
	p.Verdicts = why.Verdicts(h.Books, h.page.verdicts)
	h.page.verdicts = p.Verdicts
	profiles, paces := h.speeds.Profiles()
	p.Memory = cluster.Memory{
		Round: h.Snapshot.Round, NextKey: h.Snapshot.NextKey, Ledger: h.Ledger,
		Records: h.remembered(), Leases: h.lasting(), Claims: h.Claims, Lost: h.lost, Lent: h.lent, Parties: entitle.Accounts(h.Books), Division: h.Snapshot.Division,
		Profiles: profiles, Paces: paces, Habits: h.stops.Habits(),
	}
	p.Cells, p.Question = h.cells, h.question
	return p
}

// keepDone is how long a finished job is remembered, so that its id coming
// round again, or a late word of the history, is not taken for it.
const keepDone = cluster.Hour

// remembered drops from the records those that are forgotten. It is the last step.
func (h *hall) remembered() []cluster.Record {
	kept := 0
	for i := range h.Records {
		if h.forgotten(i) {
			continue
		}
		if kept < i {
			h.Records[kept] = h.Records[i]
		}
		kept++
	}
	clear(h.Records[kept:])
	return h.Records[:kept]
}

func (h *hall) forgotten(i int) bool {
	done := h.Records[i].Done
	return done != 0 && h.Now.Sub(done) >= keepDone
}

// lasting gives the leases to remember: of jobs that we only watch just what is
// really so.
func (h *hall) lasting() []cluster.Lease {
	n := 0
	for _, l := range h.Leases {
		if l != nil {
			n++
		}
	}
	out := slices.Grow(h.page.leases[:0], n)
	for i, in := range h.Leases {
		if in == nil {
			continue
		}
		l := *in
		if h.Jobs[i].Touch == cluster.Watch {
			switch l.State {
			case cluster.Granted, cluster.Ending:
				continue
			case cluster.Noticed:
				l.State, l.NoticedAt = cluster.Active, 0
			}
		}
		out = append(out, l)
	}
	h.page.leases = out
	return out
}

// StopOf gives when a job may be stopped, as of a round; see budget.Report.
func StopOf(s *cluster.Snapshot, plan *cluster.Plan, key cluster.JobKey) (cluster.StopReport, bool) {
	return budget.Report(s, plan, key)
}
