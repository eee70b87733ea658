package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
)

// pass lets simulated time pass, and waits until all goroutines are idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// until lets simulated time pass until is holds, at most a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	synctest.Wait()
	for end := time.Now().Add(time.Minute); !is(); pass(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain until %s", what)
		}
	}
}

// live is a virtual cluster whose simulated time is the bubble's.
type live struct {
	mu      sync.Mutex
	v       *sim.Virtual
	looks   []time.Time
	ahead   time.Duration // the controller's clock
	off     time.Duration // this host's clock, in looks
	away    error         // error of Observe
	slow    time.Duration // duration of Observe
	tier    int           // of another partition on all nodes, whose jobs preempt those of gpu; 0 = there is none
	before  func(context.Context, []cluster.Action)
	applied []cluster.Action
	members []cluster.Member
}

func newLive() *live {
	return &live{v: sim.NewVirtual(cluster.InstantOf(time.Now()), simtest.Nodes("v", "v100", 2, 4), []cluster.Account{
		{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}, {Name: "vision", Parent: "root", Shares: 1}})}
}

func (l *live) submit(tenant string, n, gpus int) []cluster.JobID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []cluster.JobID
	for range n {
		ids = append(ids, l.v.Submit(sim.Work{User: tenant + "_user", Account: tenant, Partition: "gpu",
			Request: simtest.Gang(gpus), Runs: 10 * cluster.Hour}))
	}
	return ids
}

func (l *live) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	l.mu.Lock()
	l.looks = append(l.looks, time.Now())
	slow := l.slow
	l.mu.Unlock()
	time.Sleep(slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != nil {
		return cluster.Observation{}, l.away
	}
	l.v.Advance(cluster.InstantOf(time.Now()))
	seen, err := l.v.Observe(ctx, since)
	seen.Members = l.members
	seen.Clock = seen.Now.Add(cluster.SpanOf(l.ahead))
	seen.Now = seen.Now.Add(cluster.SpanOf(l.off))
	if l.tier > 0 {
		seen.Preemption, seen.Unchanged = cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}, false
		seen.Partitions = []cluster.Partition{{Name: "gpu", Nodes: []string{"v1"}, Preempt: cluster.PartitionPreemption{Mode: "REQUEUE"}},
			{Name: "high", Nodes: []string{"v1"}, Preempt: cluster.PartitionPreemption{Mode: "OFF", Tier: l.tier}}}
	}
	return seen, err
}

func (l *live) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		before(ctx, actions)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return make([]cluster.Outcome, len(actions))
	}
	l.applied = append(l.applied, actions...)
	return l.v.Apply(ctx, actions)
}

func (l *live) rounds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.looks)
}

func (l *live) verbs(verb cluster.Verb) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range l.applied {
		if a.Verb == verb {
			n++
		}
	}
	return n
}

// shared is the leadership and the journal of all daemons of a test.
type shared struct {
	mu        sync.Mutex
	resumed   cluster.GoAhead
	now       *sitting
	of        cluster.Identity
	gone      error // error of every method
	pruned    int
	ahead     time.Duration // its clock
	audits    []cluster.Audit
	newest    cluster.Instant // of the newest round
	notices   pile
	unsent    rows
	attends   map[string]time.Time // until when a daemon counts as running
	terms     int64
	turns     int64 // of the leader
	told      int64 // turns that a sign of life has told
	memory    *sim.Memory
	record    []tune.Change // newest first
	forecasts []*forecast.Forecast
	gauged    []store.Look
	book      spending.Book
	spends    int // how often the book was written
	counts    objective.Counts
	proposed  []store.Setting
	acts      []string // "ROUND KEY: VALUE (WHY)", where a value differs from the one before, or from the default
	values    map[string]string
}

const takeover = 15 * time.Second

type sitting struct {
	*shared
	term  int64
	name  string
	lost  chan struct{}
	heard time.Time
	desk  *desk
	over  bool
}

// desk is the store, as seen by one daemon.
type desk struct {
	*shared
	name   string
	cutOff bool // its daemon's connection is down
}

func newShared() *shared { return &shared{memory: sim.NewMemory()} }

func (d *desk) Acquire(_ context.Context, above int64) (*Leadership, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone != nil {
		return nil, d.gone
	}
	if d.cutOff {
		return nil, errors.New("no connection")
	}
	if s := d.now; s != nil {
		if time.Since(s.heard) < takeover {
			return nil, fmt.Errorf("%w: %s", ErrTaken, s.name)
		}
		s.over = true
	}
	d.terms = max(d.terms, above) + 1
	d.now = &sitting{shared: d.shared, desk: d, term: d.terms, name: d.name, lost: make(chan struct{}), heard: time.Now()}
	s := d.now
	return &Leadership{Lead: s, Term: s.term, Clock: s.Clock, Journal: paper{s}, GPUs: s, Terms: s, Budgets: s, Objectives: s, Records: s, Notices: &s.notices, Syslog: &s.unsent, Audit: s.Audit, Forecast: s.Forecast}, nil
}

func (d *desk) Claim(_ context.Context, is cluster.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == (cluster.Identity{}) {
		d.of = is
	}
	if !d.of.Is(is) {
		return fmt.Errorf("%w: %v, not %v", ErrCluster, d.of, is)
	}
	return nil
}

func (d *desk) Known(ctx context.Context) (of cluster.Identity, records []cluster.Record, at cluster.Instant, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.memory.Open(ctx)
	return d.of, m.Records, d.newest, errors.Join(err, d.gone)
}

func (d *desk) Turns(ctx context.Context) (term, turns, round int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.memory.Open(ctx)
	return d.terms, d.told, m.Round, errors.Join(err, d.gone)
}

func (d *desk) Attend(_ context.Context, silence time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attends == nil {
		d.attends = map[string]time.Time{}
	}
	if delete(d.attends, d.name); silence > 0 {
		d.attends[d.name] = time.Now().Add(silence)
	}
	return d.gone
}

func (d *desk) Size(context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 1 << 20, d.gone
}

func (d *desk) Prune(context.Context, time.Duration, time.Duration) (int, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pruned++
	return 1, 3, d.gone
}

func (s *sitting) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone != nil:
		return s.gone
	case s.desk.cutOff:
		return errors.New("no connection")
	case s.over:
		select {
		case <-s.lost:
		default:
			close(s.lost)
		}
		return errors.New("the lead was lost")
	}
	s.heard, s.told = time.Now(), s.turns
	return nil
}

func (s *sitting) Turned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
}

func (s *sitting) Keep(context.Context) error { return s.alive() }

func (s *sitting) Resign(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == s {
		s.now = nil
	}
	s.over = true
	return nil
}

func (s *sitting) Lost() <-chan struct{} { return s.lost }

func (s *sitting) Sure() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Add(takeover)
}

func (s *sitting) Clock(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead), nil
}

func (s *sitting) Audit(_ context.Context, a cluster.Audit) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audits = append(s.audits, a)
	return nil
}

func (s *sitting) Propose(settings []store.Setting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proposed = settings
}

func (s *sitting) Resumed(_ context.Context, trip int64) (cluster.GoAhead, error) {
	if err := s.alive(); err != nil {
		return cluster.GoAhead{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed.Round != trip {
		return cluster.GoAhead{}, nil
	}
	return s.resumed, nil
}

func (s *sitting) Record(_ context.Context, round int64) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordProposed(round)
	return nil
}

// recordProposed does what the query record_settings does.
func (s *shared) recordProposed(round int64) {
	if s.values == nil {
		s.values = map[string]string{}
	}
	for _, x := range s.proposed {
		was, known := s.values[x.Key]
		if !known && x.Default != nil {
			was = *x.Default
		}
		if was != x.Value {
			s.values[x.Key] = x.Value
			s.acts = append(s.acts, fmt.Sprintf("%d %s: %s (%s)", round, x.Key, x.Value, x.Why))
		}
	}
	s.proposed = nil
}

func (s *sitting) Look(_ context.Context, l *store.Look) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gauged = append(s.gauged, *l)
	return nil
}

func (s *sitting) Memory(context.Context) ([]cluster.MemoryUse, []cluster.GPUMemory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.gauged); n > 0 {
		return s.gauged[n-1].Report.Memory, s.gauged[n-1].Report.Sizes, s.gone
	}
	return nil, nil, s.gone
}

func (s *sitting) Baselines(context.Context) ([]remark.Baseline, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.gauged); n > 0 {
		return s.gauged[n-1].Usual, s.gone
	}
	return nil, s.gone
}

func (s *sitting) Tuning(context.Context) (*tune.Change, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := tune.Newest(s.record); c != nil {
		newest := *c
		newest.Study = nil
		return &newest, nil
	}
	return nil, nil
}

func (s *sitting) Tunings(_ context.Context, since time.Time, limit int) ([]tune.Change, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := tune.Newest(s.record)
	return slices.DeleteFunc(slices.Clone(s.record[:min(limit, len(s.record))]), func(c tune.Change) bool {
		return c.At.Time().Before(since) && (newest == nil || c.ID != newest.ID)
	}), nil
}

func (s *sitting) Tune(_ context.Context, c tune.Change) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.add(c)
	return nil
}

func (s *sitting) Forecast(_ context.Context, f *forecast.Forecast) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forecasts = append(s.forecasts, f)
	return nil
}

func (s *sitting) Accounts(context.Context) (spending.Book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.book), s.gone
}

// OpenAccount opens an account in the first minutes of its period: all that was received was before.
func (s *sitting) OpenAccount(ctx context.Context, b spending.Budget, at cluster.Instant) (spending.Account, error) {
	a := spending.Account{Budget: b, Base: map[string]cluster.GPUTime{}}
	a.Start, a.End = b.Period(at)
	m, err := s.memory.Open(ctx)
	for _, t := range m.Ledger.Tenants {
		if t.Tenant == b.Tenant {
			a.Base[t.Pool] += t.Alloc
		}
	}
	return a, errors.Join(err, s.alive())
}

func (s *sitting) Count(_ context.Context, counts objective.Counts, _ objective.Targets) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counts {
		s.counts.Add(c.Objective, c.Tenant, c.Total, c.Bad)
	}
	return nil
}

func (s *sitting) Spend(_ context.Context, b spending.Book) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book, s.spends = slices.Clone(b), s.spends+1
	return nil
}

func (s *sitting) Told(_ context.Context, id, round int64) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.record {
		if c := &s.record[i]; c.ID == id && c.Round == 0 {
			c.Round = round
		}
	}
	return nil
}

// add records a change, as the database does.
func (s *shared) add(c tune.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ID, c.At = int64(len(s.record)+1), cluster.InstantOf(time.Now())
	s.record = slices.Insert(s.record, 0, c)
}

// paper is a journal that only the leading daemon can write to.
type paper struct{ s *sitting }

func (p paper) Open(ctx context.Context) (cluster.State, error) {
	if err := p.s.alive(); err != nil {
		return cluster.State{}, err
	}
	return p.s.memory.Open(ctx)
}

func (p paper) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	if err := p.s.alive(); err != nil {
		return err
	}
	m, err := p.s.memory.Open(ctx)
	if err != nil {
		return err
	}
	if m.Round < plan.Round-1 {
		return fmt.Errorf("%w: its newest round is %d", store.ErrYounger, m.Round)
	}
	p.s.mu.Lock()
	p.s.newest = plan.At
	p.s.recordProposed(plan.Round)
	p.s.mu.Unlock()
	return p.s.memory.Commit(ctx, snap, plan)
}

func (p paper) Settle(ctx context.Context, plan cluster.Plan, outcomes []cluster.Outcome) error {
	if err := p.s.alive(); err != nil {
		return err
	}
	return p.s.memory.Settle(ctx, plan, outcomes)
}

func (p paper) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	if err := p.s.alive(); err != nil {
		return nil, err
	}
	return p.s.memory.Overrides(ctx, now)
}

func (p paper) Enrol(ctx context.Context, members []cluster.Member) error {
	if err := p.s.alive(); err != nil {
		return err
	}
	return p.s.memory.Enrol(ctx, members)
}

// lines is a log for tests.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with gives the lines with that message.
func (l *lines) with(message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for line := range strings.Lines(l.b.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err == nil && strings.Contains(fmt.Sprint(m["message"]), message) {
			out = append(out, m)
		}
	}
	return out
}

// rig is a daemon under test.
type rig struct {
	*Daemon
	log    *lines
	desk   *desk
	hangup chan os.Signal
	dir    string
	stop   context.CancelFunc
	ended  chan error
}

const short = "mode: act\ninterval: 1s\nlease: {term: 20s, min: 10s, notice: 5s, grant_timeout: 10s}\ngate: {ttl: 1m}\nreclaim: {threshold: 1s}\njobs: {order: rho}\nstop: {per_hour: 0}\n"

// settings makes a configuration whose files are in dir.
func settings(t *testing.T, dir, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("f.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Files.Heartbeats, c.Files.State = dir, filepath.Join(dir, "state.json")
	return c
}

// start starts a daemon, at most with one study; the test's end stops it.
func start(t *testing.T, name string, on *shared, c loop.Cluster, dir, text string, study ...func(context.Context) (tune.Study, error)) *rig {
	t.Helper()
	r := &rig{log: &lines{}, desk: &desk{shared: on, name: name}, hangup: make(chan os.Signal, 1), dir: dir, ended: make(chan error, 1)}
	r.Daemon = &Daemon{Cluster: c, Decide: simtest.Checked(t), Divide: engine.Divide, Audit: engine.Audit, Config: settings(t, dir, text), Hangup: r.hangup,
		Connect: func(context.Context) (Store, error) { return r.desk, on.gone },
		Reload:  func() (*config.Config, error) { return nil, errors.New("there is nothing to reload") },
		Log:     zerolog.New(r.log)}
	for _, s := range study {
		r.Study = s
	}
	return r.serve(t)
}

// startBeside starts a daemon that looks at its cluster before it relays heartbeats.
func startBeside(t *testing.T, name string, on *shared, c *live, dir, text string) *rig {
	t.Helper()
	r := &rig{log: &lines{}, desk: &desk{shared: on, name: name}, dir: dir, ended: make(chan error, 1)}
	r.Daemon = &Daemon{Cluster: c, Decide: simtest.Checked(t), Divide: engine.Divide, Config: settings(t, dir, text), Log: zerolog.New(r.log),
		Connect: func(context.Context) (Store, error) { return r.desk, on.gone },
		Probe:   func(ctx context.Context) (cluster.Observation, error) { return c.Observe(ctx, 0) }}
	return r.serve(t)
}

// startWith starts a daemon with a source of GPUs' counters.
func startWith(t *testing.T, on *shared, c loop.Cluster, dir, text string, open func(*config.GPUCounters) (gpu.Source, error)) *rig {
	t.Helper()
	r := &rig{log: &lines{}, desk: &desk{shared: on, name: "a"}, dir: dir, ended: make(chan error, 1)}
	r.Daemon = &Daemon{Cluster: c, Decide: simtest.Checked(t), Config: settings(t, dir, text), Counters: open, Log: zerolog.New(r.log),
		Connect: func(context.Context) (Store, error) { return r.desk, on.gone }}
	return r.serve(t)
}

// startAhead starts a daemon that makes forecasts.
func startAhead(t *testing.T, on *shared, c loop.Cluster, dir, text string, foresee func(context.Context) (*forecast.Forecast, error), meter *metrics.Meter) *rig {
	t.Helper()
	r := &rig{log: &lines{}, desk: &desk{shared: on, name: "a"}, dir: dir, ended: make(chan error, 1)}
	r.Daemon = &Daemon{Cluster: c, Decide: simtest.Checked(t), Config: settings(t, dir, text), Foresee: foresee, Meter: meter, Log: zerolog.New(r.log),
		Connect: func(context.Context) (Store, error) { return r.desk, on.gone }}
	return r.serve(t)
}

func (r *rig) serve(t *testing.T) *rig {
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() { r.ended <- r.Serve(ctx) }()
	return r
}

func (r *rig) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

func (r *rig) heartbeat(partition string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(r.dir, partition))
	return string(text), err == nil
}
