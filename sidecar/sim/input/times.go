package input

import (
	"cmp"

	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// Times are durations of a shadow; "" = the daemon's.
type Times struct {
	Interval, Term                string
	CostSave, CostLoad, ColdStart string
}

// Into sets the times of a setup.
func (t *Times) Into(s *experiment.Setup) error {
	if err := cmp.Or(Length("--interval", t.Interval, &s.Settings.Interval), Length("--term", t.Term, &s.Settings.Term),
		Length("--cost-save", t.CostSave, &s.Costs.Save), Length("--cost-load", t.CostLoad, &s.Costs.Load)); err != nil {
		return err
	}
	s.Costs.ColdStart = max(s.Settings.StartCost-s.Costs.Load, 0)
	if err := Length("--cost-start", t.ColdStart, &s.Costs.ColdStart); err != nil {
		return err
	}
	s.Settings.StartCost = s.Costs.Start()
	return nil
}
