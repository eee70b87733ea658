package outlook

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// WhatIf is what fairlease whatif is asked, as text: exactly one of Submit, Drain and a Change.
type WhatIf struct {
	Submit         string
	Drain, At, For string
	Change
	Now     time.Time
	Workers int
	Date    func(time.Time) string
	History func(ctx context.Context, since, until cluster.Instant) []cluster.Attempt // as for Ask
}

// Answer answers, from the newest round or from the journal since a time.
func (w *WhatIf) Answer(ctx context.Context, p *view.Page, s *store.Store, cfg *config.Config, since time.Time) error {
	changes := len(w.Weights) > 0 || w.Add != "" || w.Preset != "" || w.Term != ""
	switch {
	case w.Submit != "" && (w.Drain != "" || changes), w.Drain != "" && changes:
		return failure.Usage("--submit, --drain and other settings exclude each other: ask one at a time")
	case w.Drain == "" && (w.At != "" || w.For != ""):
		return failure.Usage("--at and --for are of a drain: give --drain")
	case w.Repetitions < 0 || w.Repetitions > 100:
		return failure.Usage("--repetitions: write 0 to 100")
	case w.Submit != "":
		return w.submit(ctx, p, s, cfg)
	case w.Drain != "":
		return w.drain(ctx, p, s, cfg)
	}
	past, err := s.Rounds.Past(ctx, since, time.Time{})
	if err != nil {
		return err
	}
	r, err := w.Replay(ctx, &past, cfg, w.Date)
	if err != nil {
		return err
	}
	return r.Write(p, w.Date)
}

func (w *WhatIf) submit(ctx context.Context, p *view.Page, s *store.Store, cfg *config.Config) error {
	x, err := ParseSubmission(w.Submit)
	if err != nil {
		return err
	}
	q, err := Ask(ctx, s, cfg, w.Workers, w.History)
	if err != nil {
		return err
	}
	choices, err := Submit(ctx, q, &x)
	if err != nil {
		return err
	}
	return WriteSubmission(p, &x, choices)
}

func (w *WhatIf) drain(ctx context.Context, p *view.Page, s *store.Store, cfg *config.Config) error {
	nodes, err := hostlist.Expand(w.Drain)
	if err != nil {
		return failure.Usage("--drain: %v", err)
	}
	d := Drain{Nodes: nodes, From: cluster.InstantOf(w.Now)}
	if w.At != "" {
		at, err := operate.ParseFuture(w.At, w.Now)
		if err != nil {
			return failure.Usage("--at %v", err)
		}
		d.From = cluster.InstantOf(at)
	}
	if w.For != "" {
		length, err := config.ParseDuration(w.For)
		if err != nil || length <= 0 {
			return failure.Usage("--for %q: write how long the drain lasts, as in 10h", w.For)
		}
		d.Until = d.From.Add(length.Span())
	}
	q, err := Ask(ctx, s, cfg, w.Workers, w.History)
	if err != nil {
		return err
	}
	list, err := Drained(ctx, q, &d)
	if err != nil {
		return err
	}
	return WriteHurts(p, list)
}
