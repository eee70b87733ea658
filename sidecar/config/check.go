package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// checker collects the problems of a whole configuration.
type checker struct {
	c        *Config
	problems Problems
}

// must notes a problem with key unless ok.
func (k *checker) must(ok bool, key, format string, args ...any) {
	if ok {
		return
	}
	origin := k.c.from.origins[key]
	k.problems = append(k.problems, Problem{Place: origin.String(), Key: key, Text: fmt.Sprintf(format, args...), line: origin.line})
}

// oneOf notes a problem with key unless value is in the list.
func (k *checker) oneOf(key, value string, list ...string) {
	k.must(slices.Contains(list, value), key, "%q is not known; write one of %s", value, strings.Join(list, ", "))
}

// where words a key with its value and origin, for problems that concern two keys.
func (k *checker) where(key string, value any) string {
	return fmt.Sprintf("%s (%v, %v)", key, value, k.c.from.origins[key])
}

func (c *Config) check() Problems {
	k := &checker{c: c}
	k.manage()
	k.budgets()
	k.objectives()
	k.cells()
	k.times()
	k.fairness()
	k.signals()
	k.telemetry()
	k.forecast()
	k.notices()
	k.connections()
	k.web()
	return k.problems.sorted()
}

func (k *checker) manage() {
	c := k.c
	k.oneOf("mode", string(c.Mode), string(loop.Observe), string(loop.Canary), string(loop.Act))
	k.optOut()
	k.oneOf("preemption", string(c.Preemption), string(loop.PreemptionObserve), string(loop.PreemptionKnown))
	k.must(len(c.Partitions) > 0, "partitions", "no partition is managed; list the partitions whose GPU jobs fairlease leases")
	for _, p := range c.Canary {
		k.must(slices.Contains(c.Partitions, p), "canary", "%q is not managed; add it to %s or remove it here", p, k.where("partitions", c.Partitions))
	}
	k.must(c.Mode != loop.Canary || len(c.Canary) > 0 || !c.CanaryJobs.all(), "canary", "mode canary acts on the partitions listed here, and none is listed; add one, or select jobs (canary_jobs), or set mode: observe")
	k.must(c.CanaryJobs.Percent >= 1 && c.CanaryJobs.Percent <= 100, "canary_jobs.percent", "must be 1 to 100 percent, got %v", c.CanaryJobs.Percent)
	for _, l := range []struct {
		key  string
		list []string
	}{{"partitions", c.Partitions}, {"canary", c.Canary}, {"canary_jobs.accounts", c.CanaryJobs.Accounts}, {"canary_jobs.users", c.CanaryJobs.Users}, {"qos", c.QOS}, {"exclude.accounts", c.Exclude.Accounts},
		{"exclude.users", c.Exclude.Users}, {"exclude.qos", c.Exclude.QOS}, {"jobs.urgent_qos", c.Jobs.UrgentQOS}, {"cells.strict_qos", c.Cells.StrictQOS},
		{"preemptible.qos", c.Preemptible.QOS}, {"preemptible.partitions", c.Preemptible.Partitions}} {
		k.must(!slices.Contains(l.list, ""), l.key, "contains an empty name; remove it")
	}
	for _, p := range c.Partitions {
		k.must(!strings.ContainsAny(p, "/\x00") && p != "." && p != "..", "partitions", "%q cannot be a partition's name", p)
	}
	k.must(c.Tenants.Level >= 1, "tenants.level", "must be at least 1 (the children of root), got %d", c.Tenants.Level)
	for _, name := range sortedKeys(c.Tenants.Weights) {
		w := c.Tenants.Weights[name]
		k.must(w >= 0 && w <= 1e12, "tenants.weights", "%s: a weight must be 0 (idle GPUs only) to 1e12, got %d", name, w)
	}
}

// optOut checks the treatment of each way out. An option can be taken away only where a job does without it.
func (k *checker) optOut() {
	walk(reflect.ValueOf(&k.c.OptOut).Elem(), "opt_out", func(key string, v reflect.Value) {
		switch word, canOverride := v.String(), key == "opt_out.no_requeue" || key == "opt_out.contiguous"; {
		case key == "opt_out.expedite": // such jobs have leases
			k.oneOf(key, word, string(loop.Charge), string(loop.Refuse), string(loop.Override))
		case word == string(loop.Override) && !canOverride:
			k.must(false, key, "override is for no_requeue, contiguous and expedite, whose options can be taken away; write charge, leave or refuse")
		case canOverride:
			k.oneOf(key, word, string(loop.Charge), string(loop.LeaveAlone), string(loop.Refuse), string(loop.Override))
		default:
			k.oneOf(key, word, string(loop.Charge), string(loop.LeaveAlone), string(loop.Refuse))
		}
	})
}

func (k *checker) cells() {
	c := &k.c.Cells
	k.must(k.c.Preset != preset.Hived || c.File != "", "cells.file", "preset hived needs a file that describes virtual clusters; `fairlease cells init` writes one")
	k.must(k.c.Preset == preset.Hived || k.c.market() || c.File == "", "cells.file", "%q describes virtual clusters, which %s does not use: nothing would be guaranteed; set preset: hived or one that divides GPU models, or remove it", c.File, k.where("preset", k.c.Preset))
	k.oneOf("cells.chooser", c.Chooser, cellChoosers...)
	wrong := c.Levels.wrong()
	k.must(wrong == "", "cells.levels", "%s", wrong)
}

func (k *checker) models() {
	m := &k.c.Models
	k.oneOf("models.chooser", m.Chooser, append(slices.Clone(cluster.Mechanisms), preset.Paper)...)
	k.listens("models.progress.listen", m.Progress.Listen)
	k.must(m.Progress.WebConfig == "" || strings.HasPrefix(m.Progress.WebConfig, "/"), "models.progress.web_config", "must be an absolute path, got %q", m.Progress.WebConfig)
	k.must(m.Progress.Every >= Duration(cluster.Second), "models.progress.every", "%v between two reports of a job is too short; write at least 1s", m.Progress.Every)
	k.must(m.DivideEvery >= k.c.Interval || !k.c.market(), "models.divide_every", "%v is shorter than %s; lengthen it", m.DivideEvery, k.where("interval", k.c.Interval))
	k.must(m.Speedups.History >= 0 && m.Speedups.History.Span() <= 365*cluster.Day, "models.speedups.history", "%v: write a time from 0s (no history is read) to 365d, like 30d", m.Speedups.History)
	k.must(m.MostKinds >= 1 && m.MostKinds <= 400, "models.most_kinds", "%d types of jobs of a tenant: write a number from 1 to 400", m.MostKinds)
	k.must(m.Reference == strings.TrimSpace(m.Reference) && !strings.ContainsAny(m.Reference, " ,:="), "models.reference", "%q is no GPU model; write it as Slurm names it, for instance k80, or nothing", m.Reference)
	for _, model := range sortedKeys(m.Prices) {
		price := m.Prices[model]
		k.must(price > 0 && price < 1e9, "models.prices", "%s: a price per GPU and hour must be above 0 and below 1e9, got %v", model, price)
	}
	if len(m.Worth) > 0 {
		k.must(!k.c.market(), "models.worth", "%s divides GPU models by the speedups of jobs on their devices, which say what a device is worth; remove models.worth, or choose preset %s", k.where("preset", k.c.Preset), preset.Astraea)
		k.must(k.c.Cells.File == "", "models.worth", "the cells of %s are whole devices; remove models.worth or cells.file", k.where("cells.file", k.c.Cells.File))
	}
	if row, _ := preset.Of(k.c.Preset); row.Prices {
		k.must(len(m.Prices) > 0, "models.prices", "%s weighs throughput against cost and needs prices; write the cost per hour of a GPU of each model", k.where("preset", k.c.Preset))
	}
}

// The smallest sensible spans: Slurm itself needs about two seconds from a requeue to the next
// start.
const (
	leastInterval = Duration(cluster.Second)
	leastTerm     = Duration(10 * cluster.Second)
)

// mostMinTerms is the longest minimum lease that sites may let jobs ask for, in terms: others wait as long for their turn.
const mostMinTerms = 4

func (k *checker) times() {
	c := k.c
	l := &c.Lease
	k.must(c.Interval >= leastInterval, "interval", "%v is too short; write at least %v", c.Interval, leastInterval)
	k.must(l.Term >= leastTerm, "lease.term", "%v is too short; write at least %v", l.Term, leastTerm)
	k.must(l.Term.Span()%cluster.Second == 0, "lease.term", "%v is not a whole number of seconds; Slurm counts in seconds", l.Term)
	if c.Interval > l.Term {
		k.must(false, "interval", "%v between two rounds is longer than %s; a number without a unit means minutes", c.Interval, k.where("lease.term", l.Term))
		return // the other checks would repeat this
	}
	k.must(l.Min <= l.Term, "lease.min", "%v is longer than %s; shorten one or lengthen the other", l.Min, k.where("lease.term", l.Term))
	k.must(l.MinTerms >= 0 && l.MinTerms <= mostMinTerms, "lease.min_terms", "must be 0 (jobs cannot ask for a minimum lease) to %d terms, got %d", mostMinTerms, l.MinTerms)
	k.must(l.Notice <= l.Min, "lease.notice", "%v is longer than %s: the notice would come before the minimum lease ends; shorten it or lengthen lease.min", l.Notice, k.where("lease.min", l.Min))
	k.must(l.Notice == 0 || l.Notice >= c.Interval, "lease.notice", "%v is shorter than %s, so no round may fall between notice and end; lengthen it, or write 0s for no notice", l.Notice, k.where("interval", c.Interval))
	if l.NoticeMax > 0 {
		k.must(l.NoticeMin <= l.Notice && l.Notice <= l.NoticeMax, "lease.notice_max", "lease.notice (%v) must lie between lease.notice_min (%v) and lease.notice_max (%v)", l.Notice, l.NoticeMin, l.NoticeMax)
		k.must(l.NoticeMin >= c.Interval, "lease.notice_min", "%v is shorter than %s, so no round may fall between notice and end; lengthen it", l.NoticeMin, k.where("interval", c.Interval))
		k.must(l.NoticeMax <= l.Min, "lease.notice_max", "%v is longer than %s: the notice would come before the minimum lease ends; shorten it or lengthen lease.min", l.NoticeMax, k.where("lease.min", l.Min))
	} else {
		k.must(l.NoticeMin == 0, "lease.notice_min", "%v has no effect without lease.notice_max; set both or neither", l.NoticeMin)
	}
	k.must(l.NoticeAtOnce >= 0, "lease.notice_concurrent", "must be 0 (no limit) or more jobs, got %d", l.NoticeAtOnce)
	k.must(l.NoticeAtOnce == 0 || l.Notice > 0, "lease.notice_concurrent", "jobs cannot take turns without a notice; set lease.notice")
	k.must(l.GrantTimeout >= c.Interval, "lease.grant_timeout", "%v is shorter than %s: every grant would expire before the next round; lengthen it", l.GrantTimeout, k.where("interval", c.Interval))
	k.must(c.Gate.TTL > 3*c.Interval, "gate.ttl", "%v is not longer than three times %s: gates would lapse between rounds; lengthen it", c.Gate.TTL, k.where("interval", c.Interval))
	k.must(!strings.ContainsAny(c.Gate.License, ",;:|@= \t\n\"'"), "gate.license", "%q is not the name of a licence; write the name before the colon in Licenses= of slurm.conf, or \"\" for begin times", c.Gate.License)
	k.must(c.Gate.BeginTimes >= 0, "gate.begin_times", "must be 0 (gates never last longer) or more jobs, got %d", c.Gate.BeginTimes)
	k.must(c.Gate.SiteFactor >= 0 && c.Gate.SiteFactor < 1<<30, "gate.site_factor", "must be 0 (do not change priorities) to %[2]d, got %[1]d", c.Gate.SiteFactor, 1<<30-1)
	k.must(c.Recall.Notice <= l.Notice, "recall.notice", "%v is longer than %s; shorten it", c.Recall.Notice, k.where("lease.notice", l.Notice))
	k.must(c.Config.AcceptAbove <= 100, "config.accept_above", "must be 0 to 100 percent, got %v", c.Config.AcceptAbove)
	k.must(c.Stop.Overhead < 50, "stop.overhead", "must be 0 to 49 percent, got %v: with more, jobs that restart from the beginning might never end", c.Stop.Overhead)
	k.must(c.Stop.Total < 50, "stop.total", "must be 1 to 49 percent, or 0 for no limit beyond each job's own, got %v", c.Stop.Total)
	for _, x := range []struct {
		key   string
		limit int
	}{{"stop.per_hour", int(c.Stop.PerHour)}, {"stop.per_hour_tenant", int(c.Stop.PerHourTenant)}, {"stop.per_hour_user", int(c.Stop.PerHourUser)}} {
		k.must(x.limit <= 1000, x.key, "must be 0 (no limit) to 1000 percent of the GPUs within an hour, got %d", x.limit)
	}
	k.must(c.Bind.Horizon >= 0 && c.Bind.Horizon <= 1000, "bind.horizon", "must be 0 to 1000 terms, got %d", c.Bind.Horizon)
	k.must(c.Bind.Max <= 100, "bind.max", "must be 0 to 100 percent, got %v", c.Bind.Max)
	for i, r := range c.Saves {
		_, err := cluster.ParseSaving(r.Saves)
		k.must(err == nil, "saves", "rule %d: %v", i+1, err)
		k.must(r.Partition != "" || r.QOS != "", "saves", "rule %d matches every job; name a partition or a qos", i+1)
	}
	k.must(c.Reclaim.Max >= 0, "reclaim.max", "must be 0 (no limit) or more, got %d", c.Reclaim.Max)
}

func (k *checker) fairness() {
	c := k.c
	k.oneOf("preset", c.Preset, append(preset.Names(), preset.Papers()...)...)
	row, _ := preset.Of(c.Preset)
	k.must(lp.Available || !row.Solver, "preset", "%s needs the solver COIN-OR CLP, and this fairlease was built without it (CGO_ENABLED=0); install one built by `make build`, or choose another preset", c.Preset)
	k.models()
	k.must(c.Fairness.RhoSelect == 16 || c.Fairness.RhoSelect == 8, "fairness.rho_select", "must be 16 (quota) or 8 (at most the demand), got %d", c.Fairness.RhoSelect)
	k.must(c.Fairness.Window >= c.Lease.Term, "fairness.window", "%v is shorter than %s; lengthen it", c.Fairness.Window, k.where("lease.term", c.Lease.Term))
	k.must(c.Burst.Max == 0 || c.Burst.Max >= 1000, "burst.max", "must be 1 or more, or 0 for no limit, got %v", c.Burst.Max)
	k.must(c.Repay.Floor <= 100, "repay.floor", "must be 0 to 100 percent, got %v", c.Repay.Floor)
	k.must(c.Placing.Compact.MaxCost <= 100, "compact.max_cost", "must be 0 to 100 percent, got %v", c.Placing.Compact.MaxCost)
	below := c.Placing.SlowNodes.Below
	k.must(below == 0 || below >= 50 && below <= 95, "slow_nodes.below", "must be 50 to 95 percent, or 0 for off, got %v", below)
	k.oneOf("sharing.across", c.Placing.Sharing.Across, anyUser, string(cluster.SameTenant), string(cluster.SameUser))
	k.slices()
	k.oneOf("users", c.Users, "job", string(cluster.UsersEqual))
	k.oneOf("jobs.order", c.Jobs.Order, "rho", string(cluster.ByAttained), string(cluster.ByExpected))
	k.must(c.Jobs.NewShare <= 100, "jobs.new_share", "must be 0 to 100 percent, got %v", c.Jobs.NewShare)
	k.must(c.Jobs.LongTerms >= 0, "jobs.long_terms", "must be 0 (off) or more terms, got %d", c.Jobs.LongTerms)
	for _, qos := range sortedKeys(c.Jobs.Weights) {
		k.must(c.Jobs.Weights[qos] > 0, "jobs.weights", "%s: a job's weight must be above 0", qos)
	}
}

// The bounds of a turn: shorter ones cost more in switches, and in longer ones connections of a suspended job time out.
const leastQuantum, longestQuantum = Duration(30 * cluster.Second), Duration(5 * cluster.Minute)

func (k *checker) slices() {
	c, s := k.c, &k.c.Placing.Sharing
	k.oneOf("sharing.slices", s.Slices, off, on)
	k.oneOf("sharing.pairs", s.Pairs, off, on)
	k.must(s.Pairs == off || s.Slices == on, "sharing.pairs", "needs %s: turns show whether jobs do more at the same time; write slices: on", k.where("sharing.slices", s.Slices))
	k.must(s.Jobs == 2 || s.Jobs == 3, "sharing.jobs", "must be 2 or 3, got %d", s.Jobs)
	k.must(s.Jobs == 2 || s.Pairs == off, "sharing.jobs", "%s lets two jobs of a GPU run at the same time, and three do not; write jobs: 2, or pairs: off", k.where("sharing.pairs", s.Pairs))
	k.must(s.Quantum >= leastQuantum && s.Quantum <= longestQuantum, "sharing.quantum", "must be %v to %v, got %v", leastQuantum, longestQuantum, s.Quantum)
	for _, model := range sortedKeys(s.Memory) {
		_, err := cluster.ParseMemory(s.Memory[model])
		k.must(err == nil, "sharing.memory", "%s: %v", model, err)
	}
	if s.Slices == on {
		k.must(s.Quantum >= 2*c.Interval, "sharing.quantum", "%v is shorter than two rounds (%s): a turn would end late; lengthen it", s.Quantum, k.where("interval", c.Interval))
		k.must(c.Cells.File == "", "sharing.slices", "jobs of virtual clusters (%s) take no turns on GPUs; write off", k.where("cells.file", c.Cells.File))
	}
}

func trimSIG(s string) string { return strings.TrimPrefix(strings.ToUpper(s), "SIG") }

func (k *checker) signals() {
	k.signal("lease.signal", k.c.Lease.Signal)
	k.oneOf("lease.signal_to", k.c.Lease.SignalTo, "steps", "batch", "all")
	for i, r := range k.c.Lease.Signals {
		k.signal("lease.signals", r.Signal)
		if r.Signal != "none" {
			k.oneOf("lease.signals", r.To, "steps", "batch", "all")
		}
		k.must(r.Partition != "" || r.QOS != "" || r.Account != "", "lease.signals",
			"rule %d matches every job; name a partition, a qos or an account, or set lease.signal", i+1)
	}
}

func (k *checker) signal(key, name string) {
	k.must(name == cluster.NoSignal || slices.Contains(cluster.NoticeSignals, trimSIG(name)), key,
		"%q cannot be sent as notice; write one of %s, %s", name, cluster.NoSignal, strings.Join(cluster.NoticeSignals, ", "))
}

// schemaName matches the names that PostgreSQL accepts without quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func (k *checker) connections() {
	s := &k.c.Slurm
	k.slurmrestd("slurm.address", s.Address, "", s.TokenFile != "")
	k.must((s.User == "") == (s.TokenFile == ""), "slurm.token_file", "slurm.user and slurm.token_file go together; set both or neither")
	if s.JWT != JWTAuto && s.JWT != JWTNone {
		k.slurmrestd("slurm.jwt", s.JWT, "auto, none, ", true)
	}
	k.must((s.TLS.CertFile == "") == (s.TLS.KeyFile == ""), "slurm.tls.cert_file", "slurm.tls.cert_file and slurm.tls.key_file go together; set both or neither")
	k.must(s.APIVersion == "" || strings.HasPrefix(s.APIVersion, "v0.0."), "slurm.api_version", "%q is not a version; write one like v0.0.44, or nothing for the newest", s.APIVersion)
	k.must(len(s.Scontrol) > 0, "slurm.scontrol", "is empty; write the command, as in scontrol or [sudo, -u, slurm, scontrol]")
	for _, d := range []struct {
		key   string
		value Duration
	}{{"slurm.timeout", s.Timeout}, {"slurm.list_timeout", s.ListTimeout}, {"slurm.full_every", s.FullEvery}, {"slurm.accounts_every", s.AccountsEvery},
		{"database.keep_rounds", k.c.Database.KeepRounds}, {"database.keep", k.c.Database.Keep}} {
		k.must(d.value >= leastInterval, d.key, "%v is too short; write at least %v", d.value, leastInterval)
	}
	k.must(schemaName.MatchString(k.c.Database.Schema) && !strings.HasPrefix(k.c.Database.Schema, "pg_") && k.c.Database.Schema != "public" && k.c.Database.Schema != "information_schema",
		"database.schema", "%q cannot be used; choose a schema for this journal alone, of lower-case letters, digits and _, such as fairlease_alpha", k.c.Database.Schema)
	k.must(k.c.Database.Keep >= k.c.Fairness.Window, "database.keep", "%v is shorter than %s; lengthen it", k.c.Database.Keep, k.where("fairness.window", k.c.Fairness.Window))
	k.must(s.Retries >= 0, "slurm.retries", "must be 0 (no retry) or more, got %d", s.Retries)
	k.must(s.SmallList >= 0, "slurm.small_list", "must be 0 (never) or more jobs, got %d", s.SmallList)
	k.must(s.Singles > 0, "slurm.singles", "must be 1 or more jobs, got %d", s.Singles)
	k.must(s.ArrayCap > 0, "slurm.array_cap", "must be 1 or more tasks, got %d", s.ArrayCap)
	k.must(strings.HasPrefix(k.c.Files.Heartbeats, "/"), "files.heartbeats", "must be an absolute path, got %q", k.c.Files.Heartbeats)
	k.must(strings.HasPrefix(k.c.Files.State, "/"), "files.state", "must be an absolute path, got %q", k.c.Files.State)
	k.oneOf("log.level", k.c.Output.Log.Level, "debug", "info", "warn", "error")
	k.oneOf("log.format", k.c.Output.Log.Format, "auto", "json", "console")
	_, _, err := SyslogPlace(k.c.Output.Audit.Syslog)
	k.must(err == nil, "audit.syslog", "%v", err)
	k.listens("metrics.listen", k.c.Output.Metrics.Listen)
	k.must(k.c.Output.Metrics.WebConfig == "" || strings.HasPrefix(k.c.Output.Metrics.WebConfig, "/"), "metrics.web_config", "must be an absolute path, got %q", k.c.Output.Metrics.WebConfig)
}

// slurmrestd checks an address of slurmrestd, to which tokens may be sent. others are the words that the key also takes.
func (k *checker) slurmrestd(key, address, others string, tokens bool) {
	u, err := url.Parse(address)
	ok := err == nil && (u.Scheme == "unix" && strings.HasPrefix(u.Path, "/") && u.Host == "" || (u.Scheme == "http" || u.Scheme == "https") && u.Host != "")
	k.must(ok, key, "%q is not an address; write %sunix:///path/of/the/socket, http://host:port or https://host:port", address, others)
	k.must(!ok || u.Scheme != "http" || !tokens || loopback(u.Hostname()), key, "the token would cross the network in clear; use https, or a unix socket")
}

// listens checks an address to listen on; "" = none.
func (k *checker) listens(key, address string) {
	if address != "" {
		_, _, err := net.SplitHostPort(address)
		k.must(err == nil, key, "%q is not an address to listen on; write HOST:PORT, or :PORT for all addresses of the host", address)
	}
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// Warnings lists what is allowed but probably not intended, also while a schedule is in force.
func (c *Config) Warnings() []string {
	var out []string
	if c.Lease.Term%c.Interval != 0 {
		out = append(out, fmt.Sprintf("lease.term (%v) is not a multiple of interval (%v): leases end up to %v after their boundary; choose an interval that divides the term", c.Lease.Term, c.Interval, c.Interval))
	}
	for _, term := range c.Tune.Terms {
		if c.Tune.At != "" && term%c.Interval != 0 {
			out = append(out, fmt.Sprintf("tune.terms (%v) is not a multiple of interval (%v): leases of that term end up to %[2]v after their boundary; choose a multiple", term, c.Interval))
		}
	}
	if c.Mode == loop.Observe && len(c.Canary) > 0 {
		out = append(out, "canary lists partitions, but mode is observe: nothing is acted on; set mode: canary when you are ready")
	}
	if c.Mode == loop.Observe && c.Tune.At != "" && c.Tune.Apply {
		out = append(out, "tune.apply is true, but mode is observe: a better term is only proposed, since nothing that happens would tell of it")
	}
	for _, p := range append(c.NoEffect(), c.from.vcs.Untrusted()...) {
		out = append(out, fmt.Sprintf("%s (%s) %s", p.Key, p.Place, p.Text))
	}
	if c.from.vcs != nil && !c.market() && c.from.vcs.Cells.Tradable() {
		out = append(out, fmt.Sprintf("%s has tradable cells, but preset %s knows no speeds: no cell is traded; choose a preset that divides GPU models", c.from.vcs.Name, c.Preset))
	}
	if host := c.unsafeDatabase(); host != "" {
		out = append(out, fmt.Sprintf("database.url reaches PostgreSQL on %s over the network without sslmode=verify-full: another host can pass for it, read the password and change the journal; add sslmode=verify-full, and sslrootcert=FILE with the certificate authority's certificate", host))
	}
	if host, _, _ := net.SplitHostPort(c.Output.Metrics.Listen); c.Output.Metrics.Listen != "" && c.Output.Metrics.WebConfig == "" && !loopback(host) {
		out = append(out, fmt.Sprintf("metrics.listen (%s) can be reached from other hosts, and everybody there reads what each tenant has; name a file with TLS and users in metrics.web_config, or listen on 127.0.0.1", c.Output.Metrics.Listen))
	}
	out = append(out, c.openWeb()...)
	out = append(out, vainNotices(c)...)
	if len(c.Tenants.Weights) == 1 {
		out = append(out, fmt.Sprintf("tenants.weights names %[1]s alone: all other tenants have weight 0, and get idle GPUs only; name all tenants, or write weights: {} "+
			"and give %[1]s more beside the others by Slurm's shares (sacctmgr modify account %[1]s set fairshare=N; to try it: fairlease whatif --weights %[1]s=x3)", sortedKeys(c.Tenants.Weights)[0]))
	}
	if preset.TenantBlind(c.Preset) {
		out = append(out, fmt.Sprintf("preset %s ignores tenants and their weights: a tenant with more jobs gets more GPUs; gavel:las uses weights", c.Preset))
	}
	own := slices.Clone(out)
	for name, with := range c.Scheduled() {
		then := *with
		then.from.vcs = c.from.vcs
		for _, w := range then.Warnings() {
			if !slices.Contains(own, w) {
				out = append(out, fmt.Sprintf("while schedule %s is in force: %s", name, w))
			}
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
