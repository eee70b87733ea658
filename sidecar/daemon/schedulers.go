package daemon

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/scheduler"
)

// mostSchedulers is how many virtual clusters' own schedulers run at once.
const mostSchedulers = 16

// schedulers gives the virtual clusters' own schedulers, with the views of a round.
func schedulers(to *reporter) func(cluster.Snapshot, cluster.Plan) []loop.Scheduler {
	slots := make(chan struct{}, mostSchedulers)
	return func(s cluster.Snapshot, p cluster.Plan) []loop.Scheduler {
		var out []loop.Scheduler
		for _, v := range scheduler.Views(&s, &p) {
			for i := range s.Cells.VCs {
				if by := s.Cells.VCs[i].Scheduler; s.Cells.VCs[i].Name == v.VC {
					out = append(out, loop.Scheduler{VC: v.VC, Ask: func() cluster.VCOrder {
						slots <- struct{}{}
						defer func() { <-slots }()
						return order(to, by, &v)
					}})
				}
			}
		}
		return out
	}
}

// order asks a virtual cluster's own scheduler, and logs a failure at most once a minute.
func order(to *reporter, by *cluster.VCScheduler, v *scheduler.View) cluster.VCOrder {
	turns, said, err := scheduler.Ask(context.Background(), by, v)
	if err == nil {
		return cluster.VCOrder{Turns: turns}
	}
	if now := time.Now(); to.said.is("scheduler of "+v.VC, now.Truncate(repeatAfter).String()) {
		to.log.Warn().Str("vc", v.VC).Str("error", brief(err.Error(), mostText)).Str("stderr", brief(said, mostText)).
			Msg("the scheduler of a virtual cluster failed; the built-in order decides there")
	}
	return cluster.VCOrder{Why: brief(err.Error(), mostText)}
}
