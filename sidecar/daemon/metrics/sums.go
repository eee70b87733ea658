package metrics

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// sums are the numbers of a round that remain true until the next one.
type sums struct {
	jobs    map[cluster.JobState]int
	leases  map[cluster.LeaseState]int
	gated   int
	aside   int
	tripped bool
	claims  int
	waits   cluster.Span // for the policy's answer
	tenants []cluster.TenantStatus
	books   []cluster.TenantPool
	pools   []cluster.PoolAccount
	bound   []bound // the longest bound first
	slow    cluster.NodeSpeeds
}

// bound is a tenant's job whose GPUs cannot be taken back soon.
type bound struct {
	account // of its tenant
	way     cluster.Way
	gpus    cluster.GPUCount
	since   cluster.Instant
}

// account names a tenant's account of a pool.
type account struct{ tenant, pool string }

// long is the time from which GPUs are bound for long.
const long = cluster.Hour

func sumsOf(p *cluster.Plan, waits cluster.Span) *sums {
	s := &sums{
		jobs:   map[cluster.JobState]int{cluster.Waiting: 0, cluster.Configuring: 0, cluster.Running: 0, cluster.Suspended: 0, cluster.Completing: 0},
		leases: map[cluster.LeaseState]int{cluster.Granted: 0, cluster.Active: 0, cluster.Noticed: 0, cluster.Ending: 0},
		claims: len(p.State.Claims), waits: waits, tripped: p.State.Breaker.Trip != nil, tenants: p.Tenants, books: p.State.Ledger.Tenants, pools: p.State.Ledger.Pools,
		slow: cluster.NodeSpeeds{Slow: p.State.NodeSpeeds.Slow, GPUs: p.State.NodeSpeeds.GPUs},
	}
	for i := range p.State.Records {
		r := &p.State.Records[i]
		if r.Done != 0 || r.State == cluster.Done {
			continue
		}
		s.jobs[r.State]++
		if r.Gate > p.At || r.Locked && r.State == cluster.Waiting {
			s.gated++
		}
		if r.Aside != "" {
			s.aside++
		}
	}
	for i := range p.State.Leases {
		s.leases[p.State.Leases[i].State]++
	}
	s.bound = boundOf(p)
	return s
}

// boundOf gives the jobs of tenants whose GPUs cannot be taken back soon, the longest bound first.
func boundOf(p *cluster.Plan) []bound {
	var out []bound
	for i, k := 0, 0; i < len(p.Bound); i++ { // both by key
		b := &p.Bound[i]
		for k < len(p.State.Records) && p.State.Records[k].Key < b.Job {
			k++
		}
		if k < len(p.State.Records) && p.State.Records[k].Key == b.Job && p.State.Records[k].Tenant != "" {
			out = append(out, bound{account{p.State.Records[k].Tenant, b.Pool}, b.Way, b.GPUs, b.Since})
		}
	}
	slices.SortStableFunc(out, func(a, b bound) int { return cmp.Compare(a.since, b.since) })
	return out
}

// inSeconds gives GPU time in GPU-seconds.
func inSeconds(t cluster.GPUTime) float64 { return float64(t) / 1000 }

// gpus gives a number of GPUs that may be a fraction.
func gpus[N cluster.MicroGPU | cluster.GPUCount](n N) float64 {
	return float64(n) / float64(cluster.WholeGPU)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fairlease_"+name, help, labels, nil)
}

// The metrics of the present. An account is a tenant, a model is a pool of GPUs.
var (
	leader      = desc("leader", "1 if this daemon leads, 0 if it stands by or is not ready.")
	ready       = desc("ready", "1 if rounds succeed or another daemon leads: the answer of /readyz.")
	age         = desc("round_age_seconds", "Time since the daemon's last round, or, of a standby, since it last saw the leader.")
	jobs        = desc("jobs", "Jobs by state.", "state")
	gated       = desc("gated_jobs", "Waiting jobs that a gate of fairlease keeps from starting.")
	aside       = desc("jobs_aside", "Jobs that are set aside since their records cannot be read or decided on.")
	tripped     = desc("breaker_tripped", "1 while the breaker has tripped, and fairlease only observes until an operator resumes; else 0.")
	leases      = desc("leases", "Leases in force by state.", "state")
	claims      = desc("claims", "Waiting gangs that GPUs are kept for.")
	journal     = desc("journal_size_bytes", "Size of the journal's tables in PostgreSQL, with their indexes, measured every minute.")
	restored    = desc("journal_restored_time_seconds", "When the daemon last found that the journal had lost rounds, in seconds since 1970; 0 = it never did.")
	waits       = desc("config_waits", "1 while a configuration waits to be accepted (config.accept_above); else 0.")
	notices     = desc("notices", "Notices to users that need attention: waiting (tried in vain, or overdue) and dead (given up within a week).", "state")
	telemetry   = desc("telemetry_nodes", "Nodes by how well the counters of their GPUs are seen: fresh, stale, broken, unknown, silent.", "state")
	keptWord    = desc("forecast_kept_ratio", "Part of the statements of earlier forecasts that kept their word, by kind, on the scale of intervals for 8 of 10: 0.8 is as promised. Kinds: waiting_start, waiting_end, running_end.", "statement")
	stated      = desc("forecast_statements", "Statements of earlier forecasts whose word can be judged, by kind.", "statement")
	policyWaits = desc("policy_wait_seconds", "Time since the policy was asked how to divide the GPUs; 0 = it has answered.")

	holds       = desc("account_gpus", "GPUs of an account now: held; due; demanded; borrowed (held beyond the due); lent (due, held by others).", "account", "model", "kind")
	boundGPUs   = desc("account_bound_gpus", "GPUs of an account that cannot be taken back within an hour or two terms, by the way in which its jobs keep them: now; long (for more than an hour); beyond (of these, beyond the account's due). See the view bound_gpus.", "account", "model", "way", "kind")
	waiting     = desc("account_waiting_jobs", "Waiting jobs of an account.", "account", "model")
	rho         = desc("account_rho_ratio", "GPU time received over GPU time due in the window of fairness: 1 is fair (ASTRAEA eq. 12). Absent while nothing was due.", "account", "model")
	owed        = desc("account_owed_gpu_seconds", "GPU time due that others used while the account wanted it; negative if the account used others'.", "account", "model")
	deficit     = desc("account_deficit_gpu_seconds", "GPU time that the next terms give in addition; negative if the account received too much.", "account", "model")
	received    = desc("account_gpu_seconds_total", "GPU time that an account received.", "account", "model")
	due         = desc("account_due_gpu_seconds_total", "GPU time that an account was due.", "account", "model")
	budgetUsed  = desc("account_budget_used_ratio", "Part of an account's budget that is used in the present period: 1 is all. Absent without a budget.", "account")
	budgetIdle  = desc("account_budget_idle_only", "1 while the account gets idle GPUs only, since its budget is used up; else 0.", "account")
	poolGPUs    = desc("gpus", "GPUs of a model.", "model")
	poolBad     = desc("gpus_bad", "GPUs of a model that cannot be used now.", "model")
	slowNode    = desc("slow_node_ratio", "Speed of jobs on the GPUs of a slow node over their usual speed on other nodes. Absent for other nodes.", "node", "model")
	slowGPU     = desc("slow_gpu_ratio", "Speed of jobs with a slow GPU of a node over their usual speed on other nodes. Absent for other GPUs.", "node", "model", "gpu")
	poolSeconds = desc("gpu_seconds_total", "GPU time of a model by use: tenants, untouchable (charged to nobody), overhead (starts, ends and destroyed work), idle, bad.", "model", "use")
)

// present collects the metrics of the present.
type present struct{ meter *Meter }

// Describe implements prometheus.Collector. It describes nothing, so that the collector's metrics may be absent.
func (present) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (p present) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	_, well := p.meter.Ready()
	now := p.meter.now()
	p.meter.mu.Lock()
	health, last, bytes, nodes, budgets, kept, news := p.meter.health, p.meter.last, p.meter.journal, p.meter.nodes, p.meter.budgets, p.meter.kept, p.meter.alarms
	p.meter.mu.Unlock()
	gauge(ready, oneIf(well))
	gauge(waits, oneIf(news.waits))
	gauge(notices, float64(news.notices.waiting), "waiting")
	gauge(notices, float64(news.notices.dead), "dead")
	gauge(leader, oneIf(well && health.role == Leader))
	if health.role != "" {
		gauge(age, now.Sub(health.at).Seconds())
	}
	if bytes > 0 {
		gauge(journal, float64(bytes))
	}
	if news.younger.IsZero() {
		gauge(restored, 0)
	} else {
		gauge(restored, float64(news.younger.Unix()))
	}
	for state, n := range nodes {
		gauge(telemetry, float64(n), state)
	}
	for i := range budgets {
		b := &budgets[i]
		gauge(budgetUsed, b.Percent()/100, b.Tenant)
		gauge(budgetIdle, oneIf(b.State().Since > 0), b.Tenant)
	}
	for i := range kept {
		gauge(keptWord, kept[i].Percent/100, kept[i].Kind)
		gauge(stated, float64(kept[i].Statements), kept[i].Kind)
	}
	if last != nil {
		last.collect(out, gauge)
		last.collectBound(cluster.InstantOf(now), gauge)
	}
}

// collectBound gives the GPUs that cannot be taken back soon. Within a tenant's due, jobs that have been bound for longer come first.
func (s *sums) collectBound(now cluster.Instant, gauge func(*prometheus.Desc, float64, ...string)) {
	type key struct {
		account
		way cluster.Way
	}
	type sum struct {
		now, long cluster.GPUCount
		beyond    cluster.MicroGPU
	}
	all, due := map[key]*sum{}, map[account]cluster.MicroGPU{}
	for i := range s.tenants {
		due[account{s.tenants[i].Tenant, s.tenants[i].Pool}] = s.tenants[i].Entitlement
	}
	for i := range s.bound {
		b := &s.bound[i]
		x := all[key{b.account, b.way}]
		if x == nil {
			x = &sum{}
			all[key{b.account, b.way}] = x
		}
		x.now += b.gpus
		if now.Sub(b.since) > long {
			whole, left := cluster.MicroGPU(b.gpus), due[b.account]
			within := min(whole, left)
			due[b.account] = left - within
			x.long, x.beyond = x.long+b.gpus, x.beyond+whole-within
		}
	}
	for k, x := range all {
		gauge(boundGPUs, gpus(x.now), k.tenant, k.pool, string(k.way), "now")
		gauge(boundGPUs, gpus(x.long), k.tenant, k.pool, string(k.way), "long")
		gauge(boundGPUs, gpus(x.beyond), k.tenant, k.pool, string(k.way), "beyond")
	}
}

func (s *sums) collect(out chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string)) {
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	for state, n := range s.jobs {
		gauge(jobs, float64(n), string(state))
	}
	for state, n := range s.leases {
		gauge(leases, float64(n), string(state))
	}
	gauge(gated, float64(s.gated))
	gauge(aside, float64(s.aside))
	gauge(tripped, map[bool]float64{true: 1}[s.tripped])
	gauge(claims, float64(s.claims))
	gauge(policyWaits, float64(s.waits)/float64(cluster.Second))
	for i := range s.tenants {
		t := &s.tenants[i]
		gauge(holds, gpus(t.Holds), t.Tenant, t.Pool, "held")
		gauge(holds, gpus(t.Entitlement), t.Tenant, t.Pool, "due")
		gauge(holds, gpus(t.Demand), t.Tenant, t.Pool, "demanded")
		gauge(holds, gpus(t.Borrowed), t.Tenant, t.Pool, "borrowed")
		gauge(holds, gpus(t.Lent), t.Tenant, t.Pool, "lent")
		gauge(waiting, float64(t.Waiting), t.Tenant, t.Pool)
		gauge(owed, inSeconds(t.Owed), t.Tenant, t.Pool)
		gauge(deficit, inSeconds(t.Deficit), t.Tenant, t.Pool)
	}
	wasDue := map[[2]string]bool{} // in the window, by tenant and pool
	for i := range s.books {
		t := &s.books[i]
		counter(received, inSeconds(t.Alloc), t.Tenant, t.Pool)
		counter(due, inSeconds(t.Due), t.Tenant, t.Pool)
		wasDue[[2]string{t.Tenant, t.Pool}] = slices.ContainsFunc(t.Buckets, func(b cluster.Bucket) bool { return b.Due > 0 })
	}
	for i := range s.tenants {
		if t := &s.tenants[i]; wasDue[[2]string{t.Tenant, t.Pool}] {
			gauge(rho, float64(t.Rho)/float64(cluster.Fair), t.Tenant, t.Pool)
		}
	}
	for i := range s.slow.Slow {
		n := &s.slow.Slow[i]
		gauge(slowNode, float64(n.Percent)/100, n.Node, n.Model)
	}
	for i := range s.slow.GPUs {
		g := &s.slow.GPUs[i]
		gauge(slowGPU, float64(g.Percent)/100, g.Node, g.Model, strconv.Itoa(g.Index))
	}
	for i := range s.pools {
		p := &s.pools[i]
		gauge(poolGPUs, float64(p.GPUs)/float64(cluster.CountOf(1)), p.Pool)
		gauge(poolBad, float64(p.BadGPUs)/float64(cluster.CountOf(1)), p.Pool)
		counter(poolSeconds, inSeconds(p.Tenants), p.Pool, "tenants")
		counter(poolSeconds, inSeconds(p.Untouchable), p.Pool, "untouchable")
		counter(poolSeconds, inSeconds(p.Overhead), p.Pool, "overhead")
		counter(poolSeconds, inSeconds(p.Idle), p.Pool, "idle")
		counter(poolSeconds, inSeconds(p.Bad), p.Pool, "bad")
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
