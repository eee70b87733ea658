package share

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/tickets"
)

// turns gives the parts that jobs have, or would have, of a GPU on which they take turns.
type turns struct {
	in   *round.Facts
	rule *tickets.Rule
}

func turnsOf(x *contest) turns {
	return turns{x.f.In, tickets.RuleOf(x.f.In.Settings, x.f.In.Snapshot.Tenants)}
}

func (t *turns) jobs(cases []int) []tickets.Job {
	out := make([]tickets.Job, len(cases))
	for k, i := range cases {
		out[k] = tickets.Job{Tenant: t.in.Records[i].Tenant, User: t.in.Records[i].User}
	}
	return out
}

// parts gives what each case has of a GPU of a pool beside the others, as it counts in accounts.
func (t *turns) parts(pool int, cases []int) []cluster.MicroGPU {
	s, worth := t.in.Settings.Slices, t.in.Worths().Of(pool)
	out, unequal := make([]cluster.MicroGPU, len(cases)), t.rule.Turns(t.jobs(cases), s.Part()*cluster.MicroGPU(len(cases)))
	for k := range out {
		if out[k] = worth / cluster.MicroGPU(s.Most()); unequal != nil {
			out[k] = unequal[k].Part.At(worth)
		}
	}
	return out
}

// time gives the part of the time that the first of the cases has on their GPU.
func (t *turns) time(cases ...int) float64 {
	if times := t.rule.Times(t.jobs(cases)); times != nil {
		return times[0].Float()
	}
	return 1 / float64(len(cases))
}
