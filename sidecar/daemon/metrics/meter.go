// Package metrics measures the daemon for Prometheus: what its rounds do and how long their phases take, what tenants are due
// and receive, and whether the daemon is well. No metric has a label for a job or a user: `fairlease explain` and the journal's
// views tell about these.
//
//	daemon ──► Meter ──► /metrics, /livez, /readyz
package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// The phases of a round.
const (
	Observe = "observe" // the look at the cluster
	Decide  = "decide"  // the engine
	Commit  = "commit"  // the journal
	Act     = "act"     // the actions on Slurm
)

// Role is what a daemon does while it is well.
type Role string

// The roles of a daemon.
const (
	Leader  Role = "leader"
	Standby Role = "standby"
)

// patience is how long a daemon is ready without a round that succeeds, at least. Three intervals are the bound of a longer one.
const patience = time.Minute

// Meter has the metrics of a daemon. It is safe for concurrent use. All methods of a nil Meter that record do nothing.
type Meter struct {
	registry *prometheus.Registry
	now      func() time.Time

	rounds   *prometheus.CounterVec
	skipped  prometheus.Counter
	duration prometheus.Histogram
	phases   *prometheus.HistogramVec
	actions  *prometheus.CounterVec
	reclaims *prometheus.CounterVec
	ended    *prometheus.CounterVec
	lost     prometheus.Counter
	left     prometheus.Counter
	slurm    slurmCalls
	goals    goals

	mu      sync.Mutex
	health  health
	last    *sums // of the last round that was decided; nil = none was
	noise   []cluster.Noise
	journal int64 // bytes; 0 = not measured yet
	budgets spending.Book
	kept    []forecast.Coverage // by kind
	alarms  alarms
	nodes   map[string]int // nodes by the state of their GPUs' counters; nil = nobody looks
}

// slurmCalls are requests to Slurm and their durations.
type slurmCalls struct {
	calls *prometheus.CounterVec
	slow  *prometheus.HistogramVec
}

// goals are the events of objectives, the bad ones of these, and the targets.
type goals struct {
	events, bad *prometheus.CounterVec
	targets     *prometheus.GaugeVec
}

// health is the result of the last beat of the daemon's clock.
type health struct {
	role  Role      // "" = no beat succeeded yet
	at    time.Time // of the last beat that succeeded
	until time.Time // it is ready until then
	note  string    // about the standby's leader
	wrong string    // of the last beat; "" = it succeeded
}

// seconds are the bounds of histograms of durations, from a millisecond to the longest turn.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// New gives the meter of a daemon of a version. now is the clock.
func New(version string, now func() time.Time) *Meter {
	m := &Meter{registry: prometheus.NewRegistry(), now: now}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "fairlease", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "fairlease", Name: name, Help: help, Buckets: seconds}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.rounds = counters("rounds_total", "Rounds of the daemon by result: done, quiet (nothing had changed) or failed.", "result")
	m.skipped = counters("beats_skipped_total", "Beats of the clock without a round, because the one before took longer than the interval.").WithLabelValues()
	m.duration = histograms("round_duration_seconds", "Duration of rounds that succeeded.").WithLabelValues().(prometheus.Histogram)
	m.phases = histograms("round_phase_duration_seconds", "Duration of the phases of a round: observe, decide, commit, act.", "phase")
	m.actions = counters("actions_total", "Changes of Slurm's state by verb and result: done, failed, skipped, or suppressed (observed partitions).", "verb", "result")
	m.reclaims = counters("reclaims_total", "Requeues of jobs whose leases ended, by result: done or failed.", "result")
	m.ended = counters("leases_ended_total", "Leases that ended, by cause.", "cause")
	m.lost = counters("work_lost_gpu_seconds_total", "GPU time that stops destroyed: known and bounded losses.").WithLabelValues()
	m.left = counters("events_left_out_total", "Events that users caused beyond 20 a user and hour: counted, and not written down.").WithLabelValues()
	m.slurm.calls = counters("slurm_calls_total", "Requests to Slurm by kind and result: ok or failed.", "call", "result")
	m.goals.events = counters("objective_events_total", "Events of an objective: jobs that should have a first lease (first_lease), GPU-seconds (gpus), beats of the clock (rounds).", "objective", "account")
	m.goals.bad = counters("objective_bad_events_total", "Bad events of an objective: first leases that were late, GPU-seconds idle while jobs waited, beats without a round in time.", "objective", "account")
	m.goals.targets = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "fairlease", Name: "objective_target_ratio", Help: "Part of the events of an objective that should be good."}, []string{"objective"})
	m.registry.MustRegister(m.goals.targets)
	m.slurm.slow = histograms("slurm_call_duration_seconds", "Duration of requests to Slurm by kind.", "call")
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "fairlease", Name: "build_info", Help: "1; the version of the daemon is a label.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(info, present{m}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, result := range []string{"done", "quiet", "failed"} {
		m.rounds.WithLabelValues(result)
	}
	for _, result := range []string{"done", "failed"} {
		m.reclaims.WithLabelValues(result)
	}
	return m
}

// Phase records the duration of a phase of a round.
func (m *Meter) Phase(phase string, took time.Duration) {
	if m != nil {
		m.phases.WithLabelValues(phase).Observe(took.Seconds())
	}
}

// Call records a request to Slurm. err is its error; nil = it succeeded.
func (m *Meter) Call(call string, took time.Duration, err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.slurm.calls.WithLabelValues(call, result).Inc()
	m.slurm.slow.WithLabelValues(call).Observe(took.Seconds())
}

// Skipped records beats of the clock without a round.
func (m *Meter) Skipped(beats int64) {
	if m != nil {
		add(m.skipped, float64(beats))
	}
}

// Journal records the size of the journal in bytes.
func (m *Meter) Journal(bytes int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.journal = bytes
}

// LeftOut counts events outside of rounds that are beyond a user's limit.
func (m *Meter) LeftOut(n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	add(m.left, float64(n))
}

// Restored records that the journal was found to have lost rounds.
func (m *Meter) Restored() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alarms.younger = m.now()
}

// alarms is news for administrators.
type alarms struct {
	younger time.Time // when the journal was last found to have lost rounds; zero = never
	waits   bool      // a configuration waits to be accepted
	notices struct{ waiting, dead int }
}

// Waits records whether a configuration waits to be accepted.
func (m *Meter) Waits(waits bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alarms.waits = waits
}

// Notices records how many notices wait although they were tried or overdue, and how many were given up within a week.
func (m *Meter) Notices(waiting, dead int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alarms.notices.waiting, m.alarms.notices.dead = waiting, dead
}

// Budgets records what tenants have used of their budgets.
func (m *Meter) Budgets(b spending.Book) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budgets = slices.Clone(b)
}

// Objectives counts events of objectives, and records the targets.
func (m *Meter) Objectives(counts objective.Counts, targets objective.Targets) {
	if m == nil {
		return
	}
	for _, c := range counts {
		add(m.goals.events.WithLabelValues(string(c.Objective), c.Tenant), c.Total)
		add(m.goals.bad.WithLabelValues(string(c.Objective), c.Tenant), c.Bad)
	}
	for name, percent := range targets.Percent {
		m.goals.targets.WithLabelValues(string(name)).Set(percent / 100)
	}
}

// Forecast records how many statements of earlier forecasts kept their word, by kind.
func (m *Meter) Forecast(kept []forecast.Coverage) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(slices.Clone(kept), func(c forecast.Coverage) bool { return c.By != "" })
}

// Nodes records how many nodes are in each state of their GPUs' counters, at the newest look.
func (m *Meter) Nodes(states map[string]int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = states
}

// Round records what a round did. err is its error; nil = it succeeded. A round that failed has no phases of its own here, and
// its actions, if there are any, are counted.
func (m *Meter) Round(r *loop.Report, err error, took time.Duration) {
	if m == nil {
		return
	}
	switch {
	case err != nil:
		m.rounds.WithLabelValues("failed").Inc()
	case r.Quiet:
		m.rounds.WithLabelValues("quiet").Inc()
	default:
		m.rounds.WithLabelValues("done").Inc()
	}
	if err == nil {
		m.duration.Observe(took.Seconds())
	}
	if r.Quiet || err != nil && len(r.Outcomes) == 0 {
		return
	}
	for i := range r.Outcomes {
		result := resultOf(&r.Plan.Actions[i], &r.Outcomes[i])
		m.actions.WithLabelValues(string(r.Plan.Actions[i].Verb), result).Inc()
		if r.Plan.Actions[i].Verb == cluster.Reclaim && (result == "done" || result == "failed") {
			m.reclaims.WithLabelValues(result).Inc()
		}
	}
	for i := range r.Plan.Ended {
		m.ended.WithLabelValues(r.Plan.Ended[i].Why).Inc()
	}
	for i := range r.Plan.Losses {
		add(m.lost, inSeconds(r.Plan.Losses[i].Time))
	}
	sums := sumsOf(&r.Plan, r.Waits)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil { // else an earlier process, or another daemon, may have counted them
		add(m.left, float64(leftOut(m.noise, r.Plan.State.Noise)))
	}
	m.last, m.noise = sums, r.Plan.State.Noise
}

// leftOut gives how many events have been left out since another round; was and is are sorted by user.
func leftOut(was, is []cluster.Noise) (n int) {
	for _, x := range is {
		n += x.Left
		if k, ok := slices.BinarySearchFunc(was, x.User, func(y cluster.Noise, user string) int { return strings.Compare(y.User, user) }); ok && was[k].Since == x.Since {
			n -= was[k].Left
		}
	}
	return n
}

// add adds to a counter. One that would shrink stays: Prometheus' panics, and no figure is worth a round.
func add(c prometheus.Counter, by float64) { c.Add(max(by, 0)) }

func resultOf(a *cluster.Action, o *cluster.Outcome) string {
	switch {
	case a.Suppressed:
		return "suppressed"
	case o.OK:
		return "done"
	case o.Skipped:
		return "skipped"
	}
	return "failed"
}

// Well records a beat that succeeded, of a daemon with a role. note says more about a standby. The daemon is ready for three
// intervals, or a minute if that is longer.
func (m *Meter) Well(role Role, note string, interval time.Duration) {
	if m == nil {
		return
	}
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.health = health{role: role, at: now, until: now.Add(max(3*interval, patience)), note: note}
	if role == Standby {
		m.last, m.journal, m.nodes, m.budgets, m.kept = nil, 0, nil, nil, nil // the leader tells about the cluster
	}
}

// Ill records a beat that failed. The daemon remains ready for a while after the last beat that succeeded.
func (m *Meter) Ill(err error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.health.wrong = err.Error()
}

// Ready tells whether rounds succeed or another daemon leads, with a line of text that says so or what is wrong.
func (m *Meter) Ready() (text string, ready bool) {
	now := m.now()
	m.mu.Lock()
	h := m.health
	m.mu.Unlock()
	switch {
	case h.role == "" && h.wrong == "":
		return "no round yet", false
	case h.role == "":
		return "no round yet: " + h.wrong, false
	case now.After(h.until):
		text = fmt.Sprintf("no round for %s", cluster.SpanOf(now.Sub(h.at)))
		if h.wrong != "" {
			text += ": " + h.wrong
		}
		return text, false
	case h.role == Standby:
		return "standby: " + h.note, true
	}
	return fmt.Sprintf("leader: last round %s ago", cluster.SpanOf(now.Sub(h.at))), true
}
