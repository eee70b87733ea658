package daemon

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// changes remembers the last message about each matter, so that a lasting problem is logged once
// and not in every round.
type changes struct {
	mu   sync.Mutex
	last map[string]string
}

// is tells whether the text is news about the matter.
func (c *changes) is(matter, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]string{}
	}
	was, known := c.last[matter]
	c.last[matter] = text
	return !known || was != text
}

// trouble is like is, for an error. Numbers in it are not news: times and counts change while the
// problem stays the same.
func (c *changes) trouble(matter string, err error) bool {
	return c.is(matter, strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error()))
}

func (c *changes) clear(matter string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, matter)
}

// reporter says what happens: in the log, where a lasting problem has one line, in the metrics, and to the service manager.
type reporter struct {
	log     zerolog.Logger
	meter   *metrics.Meter
	manager *Manager
	said    changes
}

// once logs a problem, if it is news.
func (to *reporter) once(matter string, err error) {
	if to.said.trouble(matter, err) {
		to.log.Warn().Str("error", brief(err.Error(), mostText)).Msg(matter)
	}
}

// about logs a problem, if it is news; nil = there is none any more.
func (to *reporter) about(matter string, err error) {
	if err != nil {
		to.once(matter, err)
	} else {
		to.said.clear(matter)
	}
}

// tell tells the service manager.
func (to *reporter) tell(words ...string) {
	if err := to.manager.tell(words...); err != nil {
		to.once("notify", err)
	}
}

// pause is the back-off after consecutive failures.
type pause struct {
	failures int
	since    time.Time
	until    time.Time
}

// longestPause is the maximum between two attempts; it is shorter if gates would expire
// meanwhile.
const longestPause = time.Minute

// fail notes a failure, and pauses rounds.
func (p *pause) fail(interval, ttl time.Duration) {
	if p.failures == 0 {
		p.since = time.Now()
	}
	p.failures++
	longest := max(min(longestPause, ttl/4), interval)
	rest := min(interval<<min(p.failures-1, 10), longest)
	p.until = time.Now().Add(rest - interval/2)
}

// failed logs a failed round, once for each kind of error. failures counts those in a row.
func (to *reporter) failed(err error, failures int) {
	if to.said.trouble("round", err) {
		to.log.Error().Str("error", brief(err.Error(), mostText)).Int("failures", failures).Msg("round failed; nothing is changed until one succeeds")
	}
	to.tell("STATUS=no rounds: " + firstLine(err.Error()))
}

// succeeds logs that rounds succeed again after a pause.
func (to *reporter) succeeds(p pause) {
	if p.failures > 0 {
		to.log.Info().Int("failures", p.failures).Dur("after_ms", time.Since(p.since)).Msg(saysAgain)
		to.said.clear("round")
	}
}

// waits logs that another daemon has the lead.
func (to *reporter) waits(err error) {
	if to.said.is("leader", err.Error()) {
		to.log.Info().Msg(saysWaits + err.Error())
		to.tell("STATUS=waiting: " + firstLine(err.Error()))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// round logs one round: a line for the round, one for each action with its outcome, and the events. late is how many beats were
// skipped since the last line, and patience how long a policy may take to answer.
func (to *reporter) round(r *loop.Report, took time.Duration, late int64, patience cluster.Span) {
	to.answer(r, patience)
	to.recalled(r)
	to.meter.Skipped(late)
	if r.Quiet {
		to.log.Debug().Int("jobs", r.Jobs).Dur("took_ms", took).Int64("skipped", late).Msg("quiet round")
		return
	}
	names := map[cluster.JobKey]string{}
	for record := range r.Plan.State.All() {
		names[record.Key] = record.ID.String()
	}
	done, failed, suppressed := to.actions(r)
	for i := range r.Plan.Events {
		e := &r.Plan.Events[i]
		level := zerolog.InfoLevel
		if e.Kind == cluster.EventBreaker {
			level = zerolog.ErrorLevel
		}
		line := to.log.WithLevel(level).Int64("round", r.Plan.Round).Str("event", e.Kind)
		if e.Job != 0 {
			line.Str("job", names[e.Job])
		}
		if e.Node != "" {
			line.Str("node", e.Node)
		}
		line.Msg(brief(e.Text, mostText))
	}
	to.log.WithLevel(levelOf(done, failed, len(r.Plan.Ended))).Int64("round", r.Plan.Round).Int("jobs", r.Jobs).
		Int("aside", aside(&r.Plan)).Int("leases", len(r.Plan.State.Leases)).Int("ended", len(r.Plan.Ended)).Int("claims", len(r.Plan.State.Claims)).
		Int("actions", done).Int("failed", failed).Int("suppressed", suppressed).Int64("skipped", late).Dur("took_ms", took).Msg("round")
	to.tell(fmt.Sprintf("STATUS=round %d: %d jobs, %d leases, %d actions", r.Plan.Round, r.Jobs, len(r.Plan.State.Leases), done+failed))
}

// actions logs the actions of a round, and counts them.
func (to *reporter) actions(r *loop.Report) (done, failed, suppressed int) {
	folds := map[fold]*folded{}
	for i := range r.Outcomes {
		if f := foldOf(&r.Plan.Actions[i], &r.Outcomes[i]); f != (fold{}) {
			if folds[f] == nil {
				folds[f] = &folded{error: f.error, first: i}
			}
			folds[f].add(r.Plan.Actions[i].ID)
		}
	}
	for i := range r.Outcomes {
		a, o := &r.Plan.Actions[i], &r.Outcomes[i]
		switch {
		case a.Suppressed:
			suppressed++
		case o.OK:
			done++
		case !o.Skipped:
			failed++
		}
		switch f := folds[foldOf(a, o)]; {
		case f == nil || f.n == 1:
			to.action(r.Plan.Round, a, o, nil)
		case f.first == i:
			to.action(r.Plan.Round, a, o, f)
		}
	}
	return done, failed, suppressed
}

// fold is what actions of a round that were not carried out have in common if one line tells of all: a cause that all have,
// as a slurmctld that refuses gates, must not make a line for each job.
type fold struct {
	verb    cluster.Verb
	code    cluster.Code
	skipped bool
	error   string // with JOB for the job's ids
}

// foldOf gives none for an action that has a line of its own.
func foldOf(a *cluster.Action, o *cluster.Outcome) fold {
	if o.OK || a.Suppressed || o.Error == "" {
		return fold{}
	}
	text := o.Error
	if a.ID != (cluster.JobID{}) {
		text = anyJob(text, a.ID.String())
	}
	if a.Record != 0 {
		text = anyJob(text, strconv.FormatInt(a.Record, 10))
	}
	return fold{a.Verb, a.Reason.Code, o.Skipped, text}
}

// anyJob replaces a job's id by JOB, where it is no part of a longer number or word.
func anyJob(text, id string) string {
	var out strings.Builder
	inside := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for last := ' '; ; {
		before, after, found := strings.Cut(text, id)
		if out.WriteString(before); !found {
			return out.String()
		}
		if before != "" {
			last, _ = utf8.DecodeLastRuneInString(before)
		}
		if next, _ := utf8.DecodeRuneInString(after); inside(last) || inside(next) {
			out.WriteString(id)
		} else {
			out.WriteString("JOB")
		}
		last, text = rune(id[len(id)-1]), after
	}
}

// folded are the actions of one line.
type folded struct {
	error string
	first int // index of the first
	n     int
	jobs  []string // of the first few
}

// mostNamed is the maximum number of jobs that a line names.
const mostNamed = 5

func (f *folded) add(id cluster.JobID) {
	if f.n++; id != (cluster.JobID{}) && len(f.jobs) < mostNamed {
		f.jobs = append(f.jobs, id.String())
	}
}

// aside counts the jobs that are set aside.
func aside(p *cluster.Plan) int {
	n := 0
	for i := range p.State.Records {
		if r := &p.State.Records[i]; r.Aside != "" && r.Done == 0 {
			n++
		}
	}
	return n
}

// answer logs, once, a policy or a question to a scheduler that panicked, and a policy that has not answered for patience.
func (to *reporter) answer(r *loop.Report, patience cluster.Span) {
	if cause, where, _ := strings.Cut(r.Broke, "\n"); cause != "" && to.said.is("policy", cause) {
		to.log.Error().Str("error", cause).Str("stack", where).Msg("the policy or a scheduler failed: tenants get weighted shares, or the built-in order, until the job mix changes; please report it")
	} else if now := r.Plan.State.Allocation; now != nil && now.Why == "" {
		to.said.clear("policy")
	}
	if text := explain.Bound(r.Plan.State.Allocation); text != "" && to.said.is("bound", text) {
		to.log.Info().Str("policy", r.Plan.State.Allocation.Policy).Msg(text)
	}
	if r.Waits <= patience {
		to.said.clear("division")
		return
	}
	to.once("division", fmt.Errorf("the policy has not answered for more than %s: what was divided before holds, and what comes is divided by weight; "+
		"another preset may be faster (preset, models.divide_every)", patience))
}

// recalled logs, once, that limits hold which were read before the daemon started.
func (to *reporter) recalled(r *loop.Report) {
	switch limits := r.Recalled; {
	case r.Quiet:
	case limits == nil || len(limits.Associations)+len(limits.QOS) == 0:
		to.said.clear("limits")
	case to.said.is("limits", limits.Read.String()):
		to.log.Warn().Time("read", limits.Read.Time()).Dur("age_ms", r.Plan.At.Sub(limits.Read).Duration()).
			Msg("slurmdbd has given no limits since the start: the last known ones of accounts, users and QOS hold")
	}
}

// levelOf gives the log level of a round's line by its contents.
func levelOf(done, failed, ended int) zerolog.Level {
	switch {
	case failed > 0:
		return zerolog.WarnLevel
	case done > 0 || ended > 0:
		return zerolog.InfoLevel
	}
	return zerolog.DebugLevel
}

// action logs one action, or the first of many that one line tells of. Gates and recorded-only actions are frequent and rarely
// interesting.
func (to *reporter) action(round int64, a *cluster.Action, o *cluster.Outcome, f *folded) {
	level, outcome := zerolog.InfoLevel, "done"
	switch {
	case a.Suppressed:
		level, outcome = zerolog.DebugLevel, "suppressed"
	case o.Skipped:
		outcome = "skipped"
	case !o.OK:
		level, outcome = zerolog.WarnLevel, "failed"
	case a.Verb == cluster.Gate || a.Verb == cluster.Lock:
		level = zerolog.DebugLevel
	}
	line := to.log.WithLevel(level).Int64("round", round).Str("outcome", outcome).Str("because", string(a.Reason.Code))
	if f != nil {
		line.Int("count", f.n).Str("first_jobs", strings.Join(f.jobs, ", "))
	} else {
		about(line, a)
	}
	text := o.Error
	if f != nil {
		text = f.error
	}
	if text != "" && !a.Suppressed {
		line.Str("error", brief(text, mostText))
	}
	line.Dur("took_ms", o.Took.Duration()).Msg(string(a.Verb))
}

// about adds the job of an action and its parameters.
func about(line *zerolog.Event, a *cluster.Action) {
	if a.ID != (cluster.JobID{}) {
		line.Stringer("job", a.ID)
	}
	if len(a.Nodes) > 0 {
		line.Str("nodes", brief(hostlist.Compress(a.Nodes), mostText))
	}
	if a.Until != 0 {
		line.Time("until", a.Until.Time())
	}
	if a.Reservation != "" {
		line.Str("reservation", a.Reservation)
	}
	if a.Reason.Note != "" {
		line.Str("note", brief(a.Reason.Note, mostText))
	}
}

// notes logs what a look at the cluster omitted, when that changes.
func (to *reporter) notes(all []string) {
	if len(all) == 0 {
		to.said.clear("look")
		return
	}
	if to.said.is("look", strings.Join(all, "\n")) {
		for _, n := range all {
			to.log.Warn().Msg(brief(n, mostText))
		}
	}
}

// mostText is the maximum length of a text in a log line, in bytes.
const mostText = 500

// brief truncates a text to most bytes and adds its original length. A user's long comment must
// not make a log line long.
func brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}

// restored tells that the journal has got younger.
func (to *reporter) restored(r cluster.Restored) {
	to.log.Error().Int64("knew", r.Knew).Int64("found", r.Found).
		Msg("the journal got younger: a dump was restored, PostgreSQL failed over, or another database is in use; what ran since then is read from Slurm, and overrides given since then are lost")
	to.meter.Restored()
}

// cells logs remarks on the cells of a configuration, if they are news.
func (to *reporter) cells(remarks []string) {
	if to.said.is("cells", strings.Join(remarks, "\n")) {
		for _, x := range remarks {
			to.log.Warn().Msg("cells: " + x)
		}
	}
}
