package ask

import (
	"context"
	"math"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// readStatus reads the state of all tenants or, for a user who may not read whole rounds, of its
// own tenants.
func readStatus(ctx context.Context, s *store.Store) (*view.Status, error) {
	st, err := readStanding(ctx, s)
	if err == nil {
		st.Standbys, err = s.Daemons.Standbys(ctx)
	}
	if err == nil {
		st.GPUs, st.Unseen, err = s.GPUs.Looks(ctx)
	}
	if err == nil {
		st.Budgets, err = s.Tenants.Budgets(ctx, "")
	}
	if err == nil {
		st.Objectives, err = s.Tenants.Objectives(ctx)
	}
	if err == nil {
		st.Remarks, err = s.GPUs.Remarks(ctx, 0, math.MaxInt32)
	}
	if err == nil {
		var all []store.JobForecast
		all, err = s.Forecasts.List(ctx, 0)
		st.Soon = view.Soonest(all)
	}
	return st, err
}

func readStanding(ctx context.Context, s *store.Store) (*view.Status, error) {
	lead, err := s.Leader(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.Tenants.ReadsAll(ctx)
	if err != nil {
		return nil, err
	}
	if !all {
		mine, err := readOwn(ctx, s)
		return view.OwnStatusOf(lead, &mine), err
	}
	snap, plan, err := s.Rounds.Last(ctx)
	if err != nil {
		return nil, err
	}
	worth, err := s.Tenants.Effective(ctx, "")
	return view.StatusOf(lead, &snap, &plan, worth), err
}

func readOwn(ctx context.Context, s *store.Store) (out view.Own, err error) {
	if out.Round, out.At, err = s.Rounds.Newest(ctx); err != nil || out.Round == 0 {
		return out, err
	}
	if out.Jobs, err = s.Jobs.Own(ctx); err != nil {
		return out, err
	}
	if out.Leases, err = s.Jobs.Leases(ctx, false, math.MaxInt32); err != nil {
		return out, err
	}
	if out.Overrides, err = s.Overrides.List(ctx, math.MaxInt32); err != nil {
		return out, err
	}
	out.Effective, err = s.Tenants.Effective(ctx, "")
	return out, err
}
