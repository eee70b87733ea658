package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
)

// gauges looks at the GPUs in a loop of its own. Rounds hand it the jobs that hold GPUs, and take its newest report:
// neither waits for the other.
type gauges struct {
	source func(*config.GPUCounters) (gpu.Source, error) // makes the source of counters
	to     *reporter

	report atomic.Pointer[gpu.Report] // of the newest look; nil = none

	mu    sync.Mutex
	round inRound // of the newest round

	// Of the loop alone:
	watch *gpu.Watch         // nil = off
	of    config.GPUCounters // the section that its source was made for
	lead  *Leadership        // that it was filled from
	judge remark.Judge
	wrote cluster.Instant // when a look was last written down
	noise noises

	// Of rounds alone:
	handed *gpu.Report     // the report that rounds have
	rests  []cluster.JobID // jobs whose idleness counted then
}

// inRound is the part of a round that a look at the GPUs needs.
type inRound struct {
	nodes   []gpu.Node
	holders []gpu.Holder
	ended   []gpu.Ended                        // since the last look
	reports map[cluster.JobID]cluster.Progress // the newest of each holder
	claims  claims
}

// claims is what is known of the speeds of kinds, and the kinds of the holders. It is empty where no policy divides
// GPU models.
type claims struct {
	settings    profile.Settings
	profiles    []cluster.Profile
	declared    []cluster.Profile
	completions []cluster.Completion
	usages      []cluster.Usage
	kinds       map[cluster.JobKey]cluster.Kind
}

const (
	// writeEvery is the time between two looks that are written down. All looks count.
	writeEvery = cluster.Minute
	// handEvery is the time between two reports that rounds get: each makes the journal's next snapshot longer.
	handEvery = 5 * cluster.Minute
)

// run makes looks until ctx ends. Their times vary a little, so that the daemons of several clusters do not ask a
// server at the same time for ever.
func (g *gauges) run(ctx context.Context, inForce func() *config.Config, leads func() *Leadership) {
	for {
		every := inForce().Telemetry.GPU.Every.Span().Duration()
		select {
		case <-ctx.Done():
			return
		case <-time.After(every - every/10 + rand.N(every/5)):
		}
		if err := g.look(ctx, inForce(), leads()); err == nil || ctx.Err() == nil {
			g.to.about("gpus", err)
		}
	}
}

// look looks at all GPUs once, if the configuration says where and this daemon leads. A panic is an error.
func (g *gauges) look(ctx context.Context, c *config.Config, lead *Leadership) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err, g.watch = loop.BreakdownOf(cause), nil
		}
	}()
	if !c.Telemetry.GPU.On() || lead == nil {
		g.watch = nil
		g.report.Store(nil)
		return nil
	}
	if err := g.prepare(ctx, c, lead); err != nil {
		return err
	}
	now := func() cluster.Instant { return cluster.InstantOf(time.Now()) }
	in := g.take()
	if len(in.nodes) == 0 {
		return nil // no round yet
	}
	g.watch.Book.End(now(), in.ended)
	report, ok := g.watch.Look(ctx, in.nodes, in.holders, now)
	if !ok {
		return nil
	}
	g.report.Store(&report)
	g.to.nodes(&report)
	g.judge.Look(&report, in.holders, in.reports)
	g.judge.Accuse(report.At, in.claims.contradicted(), in.claims.kinds)
	g.watch.Book.Add(g.judge.News()...)
	if since := report.At.Sub(g.wrote); since >= 0 && since < writeEvery { // less than 0: the clock has gone back
		return nil
	}
	acting, cancel := acting(ctx, lead)
	defer cancel()
	told := g.noise.limit(report.At, g.watch.Book.Remarks())
	if err := lead.GPUs.Look(acting, &store.Look{Report: &report, Owners: gpu.Owners(in.holders), Hours: g.watch.Book.Hours(), Remarks: told.rows,
		Stand: g.judge.Remarks(), Usual: g.judge.Baselines()}); err != nil {
		return err
	}
	g.watch.Book.Settle()
	g.wrote, g.noise = report.At, told.is
	g.to.meter.LeftOut(told.left)
	for _, r := range told.lines {
		line := g.to.log.Info().Str("event", r.Kind)
		if r.Job != 0 {
			line.Stringer("job", r.ID)
		}
		line.Msg(r.Text)
	}
	return nil
}

// prepare makes a watch for a configuration, and fills it with what the journal knows of memory.
func (g *gauges) prepare(ctx context.Context, c *config.Config, lead *Leadership) error {
	section := &c.Telemetry.GPU
	if g.watch == nil || g.lead != lead || !section.Same(&g.of) {
		source, err := g.source(section)
		if err != nil {
			return err
		}
		memory, sizes, err := lead.GPUs.Memory(ctx)
		if err != nil {
			return err
		}
		usual, err := lead.GPUs.Baselines(ctx)
		if err != nil {
			return err
		}
		g.watch, g.of, g.lead, g.wrote = &gpu.Watch{Source: source}, *section, lead, 0
		g.watch.Book.Recall(memory, sizes)
		g.judge = remark.Judge{}
		g.judge.Recall(usual)
	}
	g.watch.Tracker.MaxAge = section.MaxAge.Span()
	g.watch.Book.TellAfter, g.watch.Book.MaxGap = c.Idle.TellAfter.Span(), 3*section.Every.Span()
	g.judge.MaxGap = g.watch.Book.MaxGap
	return nil
}

// nodes logs which nodes are not seen well, when that changes.
func (to *reporter) nodes(r *gpu.Report) {
	bad, first, states := 0, "", map[string]int{}
	for i := range r.Nodes {
		states[string(r.Nodes[i].State)]++
		if n := &r.Nodes[i]; n.State != gpu.Fresh && n.State != gpu.Unknown {
			if bad++; bad == 1 {
				first = fmt.Sprintf("%s is %s: %s", n.Node, n.State, n.Why)
			}
		}
	}
	to.meter.Nodes(states)
	err := r.Incomplete
	if bad > 0 {
		err = errors.Join(err, fmt.Errorf("the GPUs of %d of %d nodes are not seen well (fairlease status); the first, %s", bad, len(r.Nodes), first))
	}
	to.about("telemetry", err)
}

// take gives the newest round. Its ended jobs are given once.
func (g *gauges) take() inRound {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := g.round
	g.round.ended = nil
	return in
}

// hold keeps what the looks need of a round.
func (g *gauges) hold(s *cluster.Snapshot) {
	now := inRound{holders: gpu.HoldersOf(s), reports: map[cluster.JobID]cluster.Progress{}, claims: claimsOf(s)}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; len(n.GPUs) > 0 {
			now.nodes = append(now.nodes, gpu.Node{Name: n.Name, Host: n.Host, Address: n.Address})
		}
	}
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Job.State == cluster.Done {
			now.ended = append(now.ended, gpu.Ended{Key: c.Record.Key, Outcome: c.Job.Outcome})
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now.ended = append(g.round.ended, now.ended...)
	for i := range now.holders {
		if r, ok := g.round.reports[now.holders[i].ID]; ok {
			now.reports[r.Job] = r
		}
	}
	for _, r := range s.Progress {
		if r.At > now.reports[r.Job].At {
			now.reports[r.Job] = r
		}
	}
	g.round = now
}

// claimsOf takes what a round knew of speeds.
func claimsOf(s *cluster.Snapshot) claims {
	if !s.Settings.Divides() || len(s.Usages) == 0 {
		return claims{}
	}
	set := profile.Default()
	set.Estimate, set.Reference = false, s.Settings.Reference
	c := claims{set, s.Profiles, s.Declared, s.Completions, s.Usages, map[cluster.JobKey]cluster.Kind{}}
	for i := range s.Cases {
		x := &s.Cases[i]
		declared := ""
		if x.Job.Hints != nil {
			declared = x.Job.Hints.Kind
		}
		if !x.Gone && x.Job.GPUsHeld() > 0 {
			c.kinds[x.Record.Key] = profile.KindOf(s.Settings.Kinds, x.Record.Tenant, x.Job.User, x.Job.Name, declared, x.Job.Work)
		}
	}
	return c
}

// contradicted says which kinds claim a speedup whose opposite their counters show.
func (c *claims) contradicted() map[cluster.Kind]string {
	if len(c.kinds) == 0 {
		return nil
	}
	book := profile.New(c.settings, c.profiles, nil)
	for _, p := range c.declared {
		p.Basis = profile.File
		_ = book.Declare(p) // problems were reported when the file was read
	}
	book.Consider(c.completions, c.usages)
	out := map[cluster.Kind]string{}
	for _, x := range profile.Contradictions(book) {
		out[x.Kind] = fmt.Sprintf("kind %s claims to run %.3g times as fast on %s as on %s (gang of %d), but by the %s of its jobs it does %.3g times as much work there (%d jobs)",
			x.Kind, x.Claimed, x.Model, x.Than, x.Gang, x.Counter, x.Shown, x.Jobs)
	}
	return out
}

// measure adds the newest report on the GPUs to an observation: at once when it changes whose idleness counts, which it does after
// idle, else now and then.
func (g *gauges) measure(seen *cluster.Observation, idle cluster.Span) {
	newest := g.report.Load()
	if newest == nil || seen.Now.Sub(newest.At) > handEvery {
		g.handed, g.rests = nil, nil // there is no longer one that could be believed
		return
	}
	rests := resting(newest, seen.Now, idle)
	if g.handed == nil || newest.At.Sub(g.handed.At) >= handEvery || !slices.Equal(rests, g.rests) {
		g.handed, g.rests = newest, rests
	}
	seen.Uses, seen.Sizes = g.handed.Uses, g.handed.Sizes
	seen.Memory = memoryOf(seen.Jobs, g.handed.Memory)
}

// resting lists the jobs with GPUs that have been idle for after; none if that does not matter.
func resting(r *gpu.Report, now cluster.Instant, after cluster.Span) []cluster.JobID {
	var out []cluster.JobID
	for i := range r.Uses {
		if u := &r.Uses[i]; after > 0 && u.Idle > 0 && now.Sub(u.IdleSince) >= after {
			out = append(out, u.Job)
		}
	}
	return out
}

// memoryOf gives the memory that the types of some jobs used.
func memoryOf(jobs []cluster.Job, all []cluster.MemoryUse) []cluster.MemoryUse {
	if len(all) == 0 {
		return nil
	}
	types := map[cluster.JobType]bool{}
	for i := range jobs {
		if t, ok := cluster.TypeOf(&jobs[i]); ok && jobs[i].State != cluster.Done {
			types[t] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(x cluster.MemoryUse) bool { return !types[x.Type] })
}
