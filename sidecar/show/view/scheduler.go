package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// SchedulerStatus is the state of a virtual cluster's own scheduler.
type SchedulerStatus struct {
	VC string `json:"vc"`
	// Since is when it began to order the jobs, or to fail for the reason Why; nil = it has not answered lately.
	Since *time.Time `json:"since,omitempty"`
	Named int        `json:"named"` // jobs in its last answer
	// Why says why the built-in order decides; "" = the scheduler does.
	Why     string                      `json:"built_in_why,omitempty"`
	Dropped []cluster.DroppedPlacements `json:"dropped,omitempty"`
}

// schedulersOf gives the state of the virtual clusters' own schedulers.
func schedulersOf(snap *cluster.Snapshot, plan *cluster.Plan) (out []SchedulerStatus) {
	if snap.Cells == nil {
		return nil
	}
	for i := range snap.Cells.VCs {
		v := &snap.Cells.VCs[i]
		if v.Scheduler == nil {
			continue
		}
		st := SchedulerStatus{VC: v.Name}
		_, st.Why = snap.OrderOf(v)
		for _, o := range snap.VCOrders {
			if o.VC != v.Name {
				continue
			}
			if st.Named = len(o.Turns); st.Why == o.Why { // else the answer is too old
				since := o.Since.Time()
				st.Since = &since
			}
		}
		if plan.Cells != nil {
			for _, x := range plan.Cells.Dropped {
				if x.VC == v.Name {
					st.Dropped = append(st.Dropped, x)
				}
			}
		}
		out = append(out, st)
	}
	return out
}

func (s *SchedulerStatus) words(p *Page) string {
	since := ""
	if s.Since != nil {
		since = " since " + p.Time(cluster.InstantOf(*s.Since))
	}
	if s.Why != "" {
		return p.Paint(fmt.Sprintf("virtual cluster %s: the built-in order decides%s in place of its own scheduler: %s", s.VC, since, s.Why), "yellow")
	}
	parts := []string{fmt.Sprintf("virtual cluster %s: its own scheduler orders its jobs%s; its last answer names %s", s.VC, since, Plural(s.Named, "job"))}
	for _, x := range s.Dropped {
		parts = append(parts, fmt.Sprintf("%s not carried out: %s", Plural(x.Jobs, "placement"), x.Why))
	}
	return strings.Join(parts, "; ")
}
