package top

import (
	"context"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Site is what Source asks; an ask.Site is one.
type Site interface {
	Pulse(ctx context.Context) (round int64, lead *store.Leader, err error)
	Status(ctx context.Context) (*view.Status, error)
	Tenants(ctx context.Context) (list []store.Tenant, whole bool, err error)
	Leases(ctx context.Context, all bool, limit int) ([]store.Lease, error)
	Waiting(ctx context.Context, limit int) ([]store.Waiting, error)
	Explain(ctx context.Context, id cluster.JobID) (*view.Explanation, error)
}

// Picture is the state of a site at a moment. It is never changed.
type Picture struct {
	Status  *view.Status
	Tenants []store.Tenant
	Jobs    []view.Live
	Cut     bool // there are more jobs
}

const (
	// pace is the minimum time between two questions to a site.
	pace = time.Second
	// patience is the time in which a site must answer.
	patience = 10 * time.Second
	// maxRows is the maximum number of leases, and of waiting jobs, that are read.
	maxRows = 2000
)

// Source asks a site, one question at a time and at most one a second. Use New.
type Source struct {
	open  func(context.Context) (Site, error)
	site  Site
	turns chan struct{}
	last  time.Time // when the last question was answered
}

// New gives the source of a site. It calls open until that succeeds.
func New(open func(context.Context) (Site, error)) *Source {
	return &Source{open: open, turns: make(chan struct{}, 1)}
}

// ask waits for its turn, and puts a question.
func (s *Source) ask(ctx context.Context, question func(context.Context) error) error {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turns }()
	wait := time.NewTimer(time.Until(s.last.Add(pace)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.last = time.Now() }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.site == nil {
		site, err := s.open(ctx)
		if err != nil {
			return err
		}
		s.site = site
	}
	return question(ctx)
}

// Look gives the present state; was is the last one, or nil. Lists are read anew only if there is a new round.
func (s *Source) Look(ctx context.Context, was *Picture) (p *Picture, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		round, lead, err := s.site.Pulse(ctx)
		if err != nil {
			return err
		}
		if was != nil && was.Status.Round == round {
			status := *was.Status
			status.Leader, status.Alive = lead, view.Lives(lead)
			p = &Picture{&status, was.Tenants, was.Jobs, was.Cut}
			return nil
		}
		p, err = s.read(ctx)
		return err
	})
	return p, err
}

func (s *Source) read(ctx context.Context) (*Picture, error) {
	status, err := s.site.Status(ctx)
	if err != nil {
		return nil, err
	}
	tenants, _, err := s.site.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := s.site.Leases(ctx, false, maxRows)
	if err != nil {
		return nil, err
	}
	waiting, err := s.site.Waiting(ctx, maxRows)
	if err != nil {
		return nil, err
	}
	jobs := view.LiveJobs(leases, waiting)
	slices.SortFunc(jobs, func(a, b view.Live) int { return byTime(&a, &b) })
	return &Picture{status, tenants, jobs, len(leases) == maxRows || len(waiting) == maxRows}, nil
}

// Explain explains a job.
func (s *Source) Explain(ctx context.Context, id string) (x *view.Explanation, err error) {
	job, err := cluster.ParseJobID(id)
	if err != nil {
		return nil, err
	}
	err = s.ask(ctx, func(ctx context.Context) error {
		x, err = s.site.Explain(ctx, job)
		return err
	})
	return x, err
}
