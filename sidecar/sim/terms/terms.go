// Package terms replays a window of the journal with several terms of leases, measures what really happened in it, and
// lets package tune decide: ASTRAEA §5.1.3 on a site's own jobs. The replay is that of package backtest, with all its
// assumptions; virtual clusters count as shares in it.
package terms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
)

// watchedFor is the minimum time since a takeover for what happened since to be measured.
const watchedFor = 12 * cluster.Hour

// Order is what tune journal is asked for.
type Order struct {
	Now   time.Time
	Last  string // length of the window; "" = the configuration's
	Apply bool   // take a better term over
	By    string
	// Run runs the replays.
	Run func(context.Context, []experiment.Setup) ([]experiment.Result, error)
}

// Report is the result of tune journal, and its JSON.
type Report struct {
	Study    *tune.Study `json:"study"`
	Verdicts []string    `json:"verdicts"` // of each trial, among all
	Decision tune.Change `json:"decision"`
	Rule     string      `json:"rule"`
}

// Look studies the window of the journal that ends now, and decides. It records the decision only if the order says
// so and there is something to record.
func Look(ctx context.Context, s *store.Store, c *config.Config, o *Order) (*Report, error) {
	last := c.Tune.Last.Span()
	if err := input.Length("--last", o.Last, &last); err != nil {
		return nil, err
	}
	if err := allowed(c, o.Apply); err != nil {
		return nil, err
	}
	now := cluster.InstantOf(o.Now)
	record, err := s.Terms.Tunings(ctx, now.Add(-c.Tune.Rest.Span()).Time(), tune.MostChanges)
	if err != nil {
		return nil, err
	}
	n := tune.Night{Now: now, File: c.Lease.Term.Span(), Rule: c.Tune.Rule(), Take: o.Apply, By: o.By, Record: record}
	n.Study, err = study(ctx, s, c, now, last, n.InForce(), o.Run)
	if err != nil {
		return nil, err
	}
	if w := n.Watched(); w != nil && now.Sub(w.At) >= watchedFor {
		if n.Study.Since, err = happened(ctx, s, w.At, now); err != nil {
			return nil, err
		}
	}
	out := &Report{Study: &n.Study, Decision: n.Decide(), Rule: score.StandardRule().String()}
	_, out.Verdicts = tune.Verdicts(n.Study.Trials)
	if d := &out.Decision; o.Apply && d.Kind != tune.Kept {
		if d.ID, err = s.Terms.Add(ctx, *d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// allowed refuses a takeover that nobody would watch.
func allowed(c *config.Config, apply bool) error {
	switch {
	case apply && c.Tune.At == "":
		return &failure.Error{Code: failure.No, What: "no term is taken over, since no night would watch it: tune.at is empty",
			Next: "set tune.at in the configuration, or write the term there: lease.term"}
	case apply && c.Mode == loop.Observe:
		return &failure.Error{Code: failure.No, What: "no term is taken over in mode observe, since nothing that happens would tell of it",
			Next: "write the term into the configuration: lease.term"}
	}
	return nil
}

// past reads a window of the journal as both worlds of a backtest.
func past(ctx context.Context, s *store.Store, from, to cluster.Instant) (*backtest.Window, score.Scores, error) {
	p, err := s.Rounds.Past(ctx, from.Time(), to.Time())
	var short *store.WindowError
	if errors.Is(err, store.ErrNone) || errors.As(err, &short) {
		return nil, score.Scores{}, &failure.Error{Code: failure.No, What: "the journal does not cover that time", Err: err, Next: "name a shorter one with --last, or let the daemon run for some days"}
	}
	if err != nil {
		return nil, score.Scores{}, err
	}
	w := backtest.Of(&p, fmt.Sprintf("%s to %s", p.Begin.Plan.At, p.End.Plan.At))
	was, err := w.Score()
	if err != nil {
		return nil, score.Scores{}, &failure.Error{Code: failure.No, What: "the journal contradicts itself", Err: err, Next: "try a shorter window: --last"}
	}
	p.Jobs, w.Was.Jobs = nil, nil // the replays need the memory
	return &w, was, nil
}

// happened measures what happened between two moments; nil = the journal does not have that.
func happened(ctx context.Context, s *store.Store, from, to cluster.Instant) (*tune.Measure, error) {
	_, was, err := past(ctx, s, from, to)
	var missing *failure.Error
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := measure(&was)
	return &m, nil
}

// study replays a window with every candidate, the configured term and the one in force.
func study(ctx context.Context, s *store.Store, c *config.Config, now cluster.Instant, last, inForce cluster.Span,
	run func(context.Context, []experiment.Setup) ([]experiment.Result, error)) (tune.Study, error) {
	w, was, err := past(ctx, s, now.Add(-last), now)
	if err != nil {
		return tune.Study{}, err
	}
	if w.Jobs.Compared == 0 {
		return tune.Study{}, &failure.Error{Code: failure.No, What: "no job with GPUs ran or waited in that window", Err: errors.New(w.Setup.Load.Name), Next: "name a longer one: --last"}
	}
	all := append(c.Tune.Rule().Terms, c.Lease.Term.Span(), inForce)
	slices.Sort(all)
	all = slices.Compact(all)
	var setups []experiment.Setup
	for _, term := range all {
		if err := assume(w, c, term); err != nil {
			return tune.Study{}, err
		}
		setups = append(setups, w.Setups()...)
	}
	results, err := run(ctx, setups)
	if err != nil {
		return tune.Study{}, err
	}
	if ctx.Err() != nil {
		return tune.Study{}, &failure.Error{Code: failure.No, What: "interrupted", Err: ctx.Err(), Next: "a shorter window takes less time: --last"}
	}
	out := tune.Study{Was: measure(&was)}
	for i, term := range all {
		would := backtest.Join(results[2*i].Scores, results[2*i+1].Scores)
		would.From, would.To = was.From, was.To
		out.Trials = append(out.Trials, tune.Trial{Term: term, Measure: measure(&would)})
	}
	return out, nil
}

// assume sets the settings of a replay: the configuration's, with a term, as fairlease shadow does.
func assume(w *backtest.Window, c *config.Config, term cluster.Span) error {
	w.Setup.Settings, w.Setup.Seed = c.Settings(), 1
	w.Setup.Settings.Term = term
	if err := (&input.Times{}).Into(&w.Setup); err != nil {
		return err
	}
	w.Setup.Settings = experiment.Fit(w.Setup.Settings)
	if err := (&input.Saving{Saves: notes.AssumedSaves, By: "kind"}).Into(&w.Setup); err != nil {
		return err
	}
	w.Assume(w.Setup.Saves)
	return w.Setup.Check()
}

// measure gives what counts of the scores.
func measure(s *score.Scores) tune.Measure {
	return tune.Measure{From: s.From, To: s.To, Jobs: s.Jobs.Finished, Losses: s.Loss.Jobs + s.Loss.Unfinished, Unfair: s.Periods[0].Ratio(),
		Wait: s.Wait.Mean, Completion: s.Completion.Mean, Overhead: s.Overhead.OfRun, CutShort: s.CutShort}
}

// Write writes the report: what was, what each term would have done, and the decision.
func (r *Report) Write(p *view.Page) error {
	t := &view.Table{Head: []string{">TERM", ">UNFAIR_%", ">LOSS_JOBS", ">MEAN_WAIT_H", ">MEAN_JCT_H", ">OVERHEAD_%", ">FINISHED", "VERDICT"}}
	row := func(term string, m *tune.Measure, verdict string) {
		t.Add(term, fmt.Sprintf("%.2f", 100*m.Unfair), fmt.Sprint(m.Losses), fmt.Sprintf("%.3f", m.Wait/3600), fmt.Sprintf("%.3f", m.Completion/3600),
			fmt.Sprintf("%.2f", 100*m.Overhead), fmt.Sprint(m.Jobs), verdict)
	}
	for i := range r.Study.Trials {
		x := &r.Study.Trials[i]
		row(config.Duration(x.Term).String(), &x.Measure, r.Verdicts[i])
	}
	row("(was)", &r.Study.Was, "what happened")
	if s := r.Study.Since; s != nil {
		row("(since)", s, "what has happened since the takeover")
	}
	if p.ForPeople() {
		zone := cmp.Or(p.Zone, time.UTC)
		date := func(t cluster.Instant) string { return t.Time().In(zone).Format(time.DateTime) }
		p.Printf("The jobs of %s to %s, replayed with each term:\n\n", date(r.Study.Was.From), date(r.Study.Was.To))
	}
	if err := p.List(t, r); err != nil || !p.ForPeople() {
		return err
	}
	p.Printf("\n%s\n", view.Wrapped(strings.ToUpper(r.Rule[:1])+r.Rule[1:]+". The term moves by one candidate at a time."))
	words := r.Decision.Words()
	p.Printf("\n%s\n", p.Paint(view.Wrapped(strings.ToUpper(words[:1])+words[1:]+"."), "bold"))
	switch {
	case r.Decision.ID > 0:
		p.Printf("This takes effect in the next round. fairlease tune undo ends it.\n")
	case r.Decision.Kind != tune.Kept:
		p.Printf("Nothing was changed; --apply does it.\n")
	}
	return nil
}

// Undo puts the configuration's term back in force, and writes that.
func Undo(ctx context.Context, p *view.Page, s *store.Store, c *config.Config, by, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return failure.Usage("the end of a takeover needs a reason: add --reason 'why'")
	}
	newest, err := s.Terms.Tuning(ctx)
	if err != nil {
		return err
	}
	rule, file := c.Tune.Rule(), c.Lease.Term.Span()
	if holds, _ := rule.Holds(file, newest); !holds {
		return &failure.Error{Code: failure.No, What: "no term is in place of lease.term", Next: "fairlease tune list shows what was decided"}
	}
	change := tune.Change{Kind: tune.Undone, File: file, Before: newest.Term, Term: file, By: by, Why: strings.TrimSpace(reason)}
	if _, err := s.Terms.Add(ctx, change); err != nil {
		return err
	}
	p.Printf("%s; this takes effect in the next round\n", change.Words())
	return nil
}

// List writes the record of the term, newest first.
func List(p *view.Page, record []tune.Change) error {
	t := &view.Table{Head: []string{">ID", "WHEN", "KIND", ">BEFORE", ">TERM", ">ROUND", "BY", "WHY"}}
	for i := range record {
		x := &record[i]
		t.Add(fmt.Sprint(x.ID), p.Time(x.At), string(x.Kind), config.Duration(x.Before).String(), config.Duration(x.Term).String(), fmt.Sprint(x.Round), x.By, x.Why)
	}
	return p.List(t, record)
}
