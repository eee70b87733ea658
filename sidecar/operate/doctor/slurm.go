package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// checkSlurm compares Slurm's configuration with the needs of fairlease.
func checkSlurm(f *findings, cfg *config.Config, s *Slurm) {
	if s.SetupErr != nil {
		f.add(Fail, "connection", failure.Cause(s.SetupErr), "Slurm cannot be reached", "correct the keys under slurm in the configuration")
		return
	}
	if s.Err != nil {
		f.add(Fail, "connection", failure.Cause(s.Err), "rounds pause while Slurm is away", connectionNext(cfg, s.Err))
		checkToken(f, s.Facts.Token)
		return
	}
	facts := &s.Facts
	checkRelease(f, cfg, facts)
	checkToken(f, facts.Token)
	checkRights(f, facts)
	named := cfg.Named() // without those that have a finding of their own
	delete(named.Partitions, "partitions")
	delete(named.Accounts, "tenants.weights")
	checkNames(f, named, facts, s.Sighting)
	checkCapacity(f, facts)
	if facts.ConfError != "" {
		f.add(Fail, "scontrol", facts.ConfError, "changes that the REST API lacks go through scontrol; slurm.conf was not checked either",
			"set slurm.scontrol to a command that works for the daemon's user")
	} else {
		conf(facts.Conf).check(f, cfg, facts)
	}
	if s.LookErr != nil {
		f.add(Fail, "look", failure.Cause(s.LookErr), "rounds pause while the cluster cannot be read", "see the message; slurmdbd must run for the account tree")
		return
	}
	if s.Sighting == nil {
		return
	}
	checkSighting(f, cfg, facts, s.Sighting, s.Deserted)
	checkGroups(f, cfg, s)
	checkLongest(f, facts.Release, s.Sighting.Partitions)
	checkLimits(f, cfg, facts, s.Sighting)
	if facts.ConfError == "" || !s.Sighting.Preemption.Unread { // else scontrol is the finding
		checkPreemption(f, cfg, s.Sighting)
	}
	checkPlugin(f, cfg, facts.Conf, &s.Plugin, facts.Operator, s.Sighting)
	for _, note := range s.Notes {
		if note == facts.Token {
			continue
		}
		f.add(Warn, "look", note, "it is left out of decisions", "")
	}
}

// checkRelease compares Slurm's release, and the versions of the API, with those that fairlease knows.
func checkRelease(f *findings, cfg *config.Config, facts *slurm.Facts) {
	found := fmt.Sprintf("Slurm %s, cluster %s, API %s of %s", facts.Release, facts.Cluster, facts.Speaks, strings.Join(facts.Offered, " "))
	if facts.ReadJobs != facts.Speaks {
		found += ", jobs in " + facts.ReadJobs
	}
	f.must(!slurm.NewerThanTested(facts.Release), Warn, "version", found, "this fairlease was tested on Slurm "+strings.Join(slurm.Tested, " and ")+", and knows nothing of later changes",
		"install the newest fairlease, or watch it in mode observe first")
	if facts.Dropped != "" {
		next := "install a newer fairlease before that"
		switch {
		case cfg.Slurm.APIVersion != "":
			next = "empty slurm.api_version: fairlease then takes the newest version that both sides know"
		case facts.Speaks != slurm.Newest():
			next = "let slurmrestd offer " + slurm.Newest() + ", too (its option -d, or SLURMRESTD_DATA_PARSER, leaves it out)"
		}
		f.add(Warn, "API", facts.Speaks+" is gone in Slurm "+facts.Dropped, "rounds pause from that upgrade on", next)
	}
	if facts.HidesExclusive {
		f.add(Warn, "--exclusive", "API "+facts.ReadJobs+" does not report it; sbatch's command line is read instead",
			"a job with #SBATCH --exclusive gets a grant for a part of a node, does not start, and loses the grant again",
			"let slurmrestd offer v0.0.44, too (up to Slurm 27.05), or have users write --exclusive on the command line")
	}
}

// connectionNext says what to do where slurmrestd does not answer as it should.
func connectionNext(cfg *config.Config, err error) string {
	var refused *slurm.Error
	switch at := cfg.Slurm.Address; {
	case errors.Is(err, fs.ErrNotExist) && cfg.Slurm.TokenFile != "" && !exists(cfg.Slurm.TokenFile):
		return "write a token to " + cfg.Slurm.TokenFile + " (scontrol token), or correct slurm.token_file"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return "start slurmrestd (systemctl enable --now fairlease-slurmrestd), or correct slurm.address (" + at + ")"
	case errors.Is(err, fs.ErrPermission):
		return "run this as the daemon's user (runuser -u fairlease -- fairlease doctor), which must be able to open " + at + " and slurm.token_file"
	case errors.As(err, &refused) && refused.Code == slurm.CodeAuthentication && cfg.Slurm.TokenFile == "":
		return "start munged here and on slurmctld's host, with the same key (systemctl status munge; munge -n | unmunge); their clocks must agree"
	case errors.As(err, &refused) && (refused.HTTP == http.StatusUnauthorized || refused.HTTP == http.StatusNetworkAuthenticationRequired):
		if cfg.Slurm.TokenFile == "" {
			return "the slurmrestd at " + at + " is another user's, or wants tokens: name the socket of fairlease-slurmrestd (unix:///run/fairlease-slurmrestd/socket) in slurm.address, or set slurm.user and slurm.token_file"
		}
		return "check slurm.user, and that slurm.token_file has a token of that user, made with the key that slurmctld has (jwt_key in slurm.conf and slurmdbd.conf)"
	}
	return "check that slurmctld, slurmrestd and munged run: scontrol ping, systemctl status slurmctld munge"
}

func checkToken(f *findings, warning string) {
	if warning != "" {
		f.add(Warn, "token", warning, "Slurm refuses an expired token, and rounds pause",
			"renew the file in time, as by a timer with scontrol token username=USER lifespan=SECONDS; fairlease reads it again when it changes")
	}
}

func checkRights(f *findings, facts *slurm.Facts) {
	denied := facts.RestDenied
	if facts.ConfError == "" { // else scontrol does not work at all
		denied = strings.TrimSpace(denied + " " + facts.ScontrolDenied)
	}
	switch {
	case denied != "":
		f.add(Fail, "rights", denied, "gates, grants and requeues are refused",
			fmt.Sprintf("sacctmgr modify user %s set adminlevel=operator (the users as whom slurmrestd and slurm.scontrol run)", cmp.Or(facts.Operator, "NAME")))
	case facts.Rights == "Operator" || facts.Rights == "Administrator":
		f.ok("rights", "%s is %s", facts.Operator, facts.Rights)
	default:
		f.ok("rights", "an operator's requests are allowed, through the REST API and scontrol")
	}
}

func checkCapacity(f *findings, facts *slurm.Facts) {
	models, untyped := map[string]int{}, []string{}
	for i := range facts.Nodes {
		for _, g := range facts.Nodes[i].GPUs {
			models[g.Model] += g.Count
			if g.Model == "" || g.Model == "gpu" {
				untyped = append(untyped, facts.Nodes[i].Name)
			}
		}
	}
	f.must(len(facts.Nodes) > 0, Fail, "GPUs", fmt.Sprintf("%d nodes with %s", len(facts.Nodes), view.Counts(models)),
		"there is nothing to lease", "set GresTypes=gpu and the nodes' Gres in slurm.conf, and gres.conf")
	if len(facts.Unread) > 0 {
		var names []string
		for i := range facts.Unread {
			names = append(names, cmp.Or(facts.Unread[i].Name, "(no name)"))
		}
		f.add(Warn, "nodes", "their records make no sense: "+view.Some(names, 10), "their GPUs are no capacity, and none of them is leased", mendNodes)
	}
	if len(untyped) > 0 {
		f.add(Warn, "GPU models", "no model is named on "+hostlist.Compress(untyped), "all GPUs there count as one pool", "name them: Gres=gpu:h100:8, and Type= in gres.conf")
	}
}

// conf is slurm.conf, as scontrol shows it.
type conf map[string]string

// has tells whether a comma-separated value contains a word, or word=….
func (c conf) has(key, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(c[key], func(r rune) bool { return r == ',' || r == ' ' }), func(w string) bool {
		name, _, _ := strings.Cut(w, "=")
		return strings.EqualFold(w, word) || strings.EqualFold(name, word)
	})
}

// seconds reads "30 sec".
func (c conf) seconds(key string) (cluster.Span, bool) {
	word, _, _ := strings.Cut(c[key], " ")
	n, err := strconv.Atoi(word)
	return cluster.Span(n) * cluster.Second, err == nil
}

func (c conf) check(f *findings, cfg *config.Config, facts *slurm.Facts) {
	is := func(key string) string { return key + "=" + cmp.Or(c[key], "(not set)") }
	f.must(c[slurm.ConfSelectType] == "select/cons_tres", Fail, "SelectType", is(slurm.ConfSelectType),
		"without cons_tres Slurm does not place single GPUs", "set SelectType=select/cons_tres")
	checkTRES(f, c, facts)
	checkKillWait(f, c, cfg)
	if delay, ok := parameter(c[slurm.ConfScheduler], "requeue_delay"); ok {
		n, err := strconv.Atoi(delay)
		f.must(err == nil && n >= 30, Warn, "requeue_delay", "requeue_delay="+delay, "a requeued job may come back before its GPUs are handed over",
			"remove requeue_delay from SchedulerParameters (120 s is the default)")
	} else {
		f.ok("requeue_delay", "not set: 120 s")
	}
	f.must(c.has(slurm.ConfPriorityFlags, "ACCRUE_ALWAYS"), Warn, "PriorityFlags", is(slurm.ConfPriorityFlags),
		"a job that waits for a lease, or was requeued, counts as young in Slurm's age factor", "add ACCRUE_ALWAYS to PriorityFlags")
	f.must(c[slurm.ConfJobFileAppend] == "1", Warn, "JobFileAppend", is(slurm.ConfJobFileAppend),
		"a job's output is truncated when its next lease begins, unless it was submitted with --open-mode=append", "set JobFileAppend=1")
	f.must(c[slurm.ConfJobRequeue] != "0", Warn, "JobRequeue", is(slurm.ConfJobRequeue),
		"jobs keep their GPUs until they end, unless submitted with --requeue", "set JobRequeue=1, or mark_requeue=yes in fairlease-plugin.conf")
	checkGate(f, c, cfg)
	f.must(c.hasPlugin(), Warn, "submit plugin", is(slurm.ConfJobSubmit),
		"new jobs are gated at the next round, up to one interval after submission; Slurm may start them on idle GPUs before",
		"install fairlease-slurm-plugin and set JobSubmitPlugins=fairlease (\"The plugins\" in docs/install.md), or use contrib/job_submit.lua")
	if refuse := refusing(cfg); refuse != nil && !c.hasPlugin() {
		f.add(Warn, "budgets", "at_end: refuse, for "+view.Some(refuse, 5)+", but there is no submit plugin",
			"jobs that may use more than is left are accepted, and get only idle GPUs once the budget is used up",
			"install fairlease-slurm-plugin (\"The plugins\" in docs/install.md), or write at_end: idle-only")
	}
	if age, ok := c.seconds(slurm.ConfMinJobAge); ok {
		least := max(3*cfg.Interval.Span(), cluster.Minute)
		f.must(age >= least, Warn, "MinJobAge", is(slurm.ConfMinJobAge), "Slurm may forget ended jobs before a round sees their end",
			fmt.Sprintf("set MinJobAge to %d or more", least/cluster.Second))
	}
	checkWays(f, cfg, c)
}

// checkGate says which gate is in use, and why.
func checkGate(f *findings, c conf, cfg *config.Config) {
	const line = "add Licenses=fairlease:1000000 to slurm.conf (gate.license), if you can"
	many := "each waiting job's begin time moves every few minutes: one change in Slurm per job, and its accrued age starts again"
	total := ""
	for item := range strings.SplitSeq(c[slurm.ConfLicenses], ",") {
		if name, count, _ := strings.Cut(item, ":"); name == cfg.Gate.License && name != "" {
			total = cmp.Or(count, "1")
		}
	}
	expedites := c.has(slurm.ConfController, "enable_expedited_requeue") && cfg.OptOut.Of(cluster.WayExpedite) == loop.Charge
	switch {
	case cfg.Gate.License == "":
		f.add(Warn, "gate", "begin times (gate.license is empty)", many, line)
	case total == "":
		f.add(Warn, "gate", "begin times (slurm.conf has no licence "+cfg.Gate.License+")", many, line)
	case slurm.PlansLicenses(c):
		f.add(Warn, "gate", "begin times (SchedulerParameters has bf_licenses)", many,
			"remove bf_licenses if nothing else needs it: with it Slurm's scheduler would stop at the first gated job")
	default:
		n, err := strconv.ParseInt(total, 10, 64)
		expedites = false
		f.must(err == nil && n >= 100_000, Warn, "gate", "the licence "+cfg.Gate.License+" (Slurm has "+total+")",
			"each waiting and each running job uses one, so at most this many jobs have gates, or can run where fairlease is down for longer than gate.ttl", "raise it in Licenses of slurm.conf; 1000000 costs nothing")
	}
	if expedites {
		f.add(Warn, "expedited jobs", "SlurmctldParameters has enable_expedited_requeue, and gates are begin times",
			"a job with --requeue=expedite that others requeue starts again within seconds, without a lease; it is then stopped like others",
			"use the licence gate, which running jobs keep (docs/gates.md), set opt_out.expedite: override here and in fairlease-plugin.conf, or take enable_expedited_requeue out of SlurmctldParameters")
	}
}

// parameter finds a word=value in SchedulerParameters.
func parameter(text, word string) (string, bool) {
	for part := range strings.SplitSeq(text, ",") {
		if name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name == word {
			return value, true
		}
	}
	return "", false
}

func checkTRES(f *findings, c conf, facts *slurm.Facts) {
	const key = slurm.ConfTRES
	var gpus []string
	for tres := range strings.SplitSeq(c[key], ",") {
		if strings.HasPrefix(tres, "gres/gpu") {
			gpus = append(gpus, tres)
		}
	}
	f.must(c.has(key, "gres/gpu"), Fail, key, cmp.Or(strings.Join(gpus, ","), "no GPUs in it"), "Slurm does not report how many GPUs jobs request or hold", "add gres/gpu to AccountingStorageTRES and restart slurmctld")
	var missing []string
	for i := range facts.Nodes {
		for _, g := range facts.Nodes[i].GPUs {
			if typed := "gres/gpu:" + g.Model; g.Model != "" && g.Model != "gpu" && !c.has(key, typed) && !slices.Contains(missing, typed) {
				missing = append(missing, typed)
			}
		}
	}
	if len(missing) > 0 {
		f.add(Warn, key, "without "+strings.Join(missing, ","), "Slurm's accounting does not distinguish GPU models", "add them to AccountingStorageTRES")
	}
	for _, part := range []string{"shard", "mps"} {
		if gres := "gres/" + part; c.has(slurm.ConfGresTypes, part) && !c.has(key, gres) {
			f.add(Warn, key, "without "+gres, "Slurm's accounting does not show parts of GPUs: runs that fairlease did not see are at nobody's charge", "add "+gres+" to AccountingStorageTRES")
		}
	}
}

// checkKillWait compares KillWait with the notice and the grant timeout. It is all the time of a job
// that ignored the notice, and the maximum duration of a hand-over.
func checkKillWait(f *findings, c conf, cfg *config.Config) {
	wait, ok := c.seconds(slurm.ConfKillWait)
	if !ok {
		return
	}
	found := fmt.Sprintf("KillWait=%v, lease.notice=%v", config.Duration(wait), cfg.Lease.Notice)
	notice := cfg.Lease.Notice
	if cfg.Recall.FirstLease {
		notice = cfg.Recall.Notice // the shorter one
		found += fmt.Sprintf(", recall.notice=%v", notice)
	}
	const check = "KillWait"
	switch {
	case wait >= cfg.Lease.GrantTimeout.Span():
		f.add(Fail, check, found+fmt.Sprintf(", lease.grant_timeout=%v", cfg.Lease.GrantTimeout),
			"a job that ignores SIGTERM keeps its GPUs for KillWait, and the next job's grant expires before it can start", "lengthen lease.grant_timeout beyond KillWait")
	case wait+notice.Span() < 30*cluster.Second:
		f.add(Warn, check, found, "jobs have less than 30 s to save; scripts that do not get the notice have only KillWait", "lengthen KillWait or the notices")
	case wait < 30*cluster.Second && cfg.Lease.SignalTo == "steps":
		f.add(Warn, check, found, "scripts without srun do not get the notice (lease.signal_to: steps) and have only KillWait to save", "lengthen KillWait to what a save takes")
	default:
		f.ok(check, "%s", found)
	}
}

// checkSighting checks the configuration against the cluster. deserted are the partitions whose groups have no user of a tenant.
func checkSighting(f *findings, cfg *config.Config, facts *slurm.Facts, seen *cluster.Observation, deserted []string) {
	known := map[string]*cluster.Partition{}
	for i := range seen.Partitions {
		known[seen.Partitions[i].Name] = &seen.Partitions[i]
	}
	gpus := map[string]int{}
	for i := range seen.Nodes {
		for _, p := range seen.Nodes[i].Partitions {
			for _, g := range seen.Nodes[i].GPUs {
				gpus[p] += g.Count
			}
		}
	}
	for _, p := range cfg.Partitions {
		switch part := known[p]; {
		case part == nil:
			f.add(Fail, "partition "+p, "Slurm has no such partition", "nothing in it is managed",
				"correct partitions in the configuration; those with GPUs are "+view.Some(slices.Sorted(maps.Keys(gpus)), 10))
		case gpus[p] == 0 && len(part.Nodes) == 0:
			f.add(Warn, "partition "+p, "has no nodes", "there is nothing to lease in it", "correct its Nodes in slurm.conf, or partitions in the configuration")
		case gpus[p] == 0 && unreadable(facts.Unread, part) != nil:
			f.add(Warn, "partition "+p, "the records of its nodes make no sense: "+hostlist.Compress(unreadable(facts.Unread, part)), "its GPUs are not known, so none of them is leased", mendNodes)
		case gpus[p] == 0:
			f.add(Warn, "partition "+p, "has no GPUs", "there is nothing to lease in it", "correct partitions in the configuration")
		default:
			found, do := barren(cfg, facts, seen, part)
			if found == "" && slices.Contains(deserted, p) {
				found = "AllowGroups=" + strings.Join(part.Rules.AllowGroups, ",") + " has no user of a tenant"
				do = "scontrol update PartitionName=" + p + " AllowGroups=ALL, or add users to the groups (getent group NAME, as slurmctld's host has it)"
			}
			if found != "" {
				f.add(Warn, "partition "+p, fmt.Sprintf("%d GPUs, but %s", gpus[p], found), "nothing in it will be leased until that changes", do)
				continue
			}
			if named := typedOut(facts, seen, part); named != "" {
				f.add(Warn, "partition "+p, fmt.Sprintf("%d GPUs, but its QOS %s lets no job name one of their models (%s)", gpus[p], part.Rules.QOS, named),
					"only jobs that name no model are leased GPUs in it: Slurm holds them to no such limit", "change these limits (sacctmgr modify qos "+part.Rules.QOS+" set …=gres/gpu:MODEL=-1), or limit gres/gpu")
				continue
			}
			f.ok("partition "+p, "%d GPUs", gpus[p])
		}
	}
	checkWithoutGPUs(f, cfg, seen, gpus)
	checkBesides(f, cfg, seen)
	if vcs := cfg.VCs(); vcs != nil {
		rules := cfg.Rules()
		wrong, remarks := vcs.Against(seen, &rules)
		for _, x := range wrong {
			f.add(Fail, "cells", x.String(), "the daemon does not start, or keeps its old file", "correct the file, or Slurm")
		}
		for _, r := range remarks {
			f.add(Warn, "cells", r, "what no virtual cluster has, or who has none, is served from what is left over", "correct the file, if that is not meant")
		}
		if wrong == nil {
			f.ok("cells", "%d virtual clusters on %d top cells of %s", len(vcs.Cells.VCs), len(vcs.Cells.Tops), vcs.Name)
		}
	}
	snap, err := loop.Remember(cluster.State{}, *seen, nil, cfg.Rules(), cfg.Settings())
	if err != nil {
		f.add(Fail, "look", err.Error(), "no round can be made", "see the message")
		return
	}
	checkWeights(f, cfg, &snap)
	checkPassOn(f, cfg, seen.Accounts)
	checkBudgets(f, cfg, &snap)
	checkModels(f, cfg, seen, &snap)
}

// mendNodes says what to do about nodes whose records make no sense.
const mendNodes = "look at their Gres in slurm.conf and at scontrol show node"

// unreadable gives the names of a partition's nodes among those whose records make no sense.
func unreadable(list []cluster.Node, p *cluster.Partition) []string {
	var out []string
	for i := range list {
		if n := &list[i]; n.Name != "" && (slices.Contains(n.Partitions, p.Name) || slices.Contains(p.Nodes, n.Name)) {
			out = append(out, n.Name)
		}
	}
	return out
}

// checkWithoutGPUs finds partitions in which jobs without GPUs may take all CPUs of a node with GPUs, so that these idle. gpus is
// the number of GPUs by partition.
func checkWithoutGPUs(f *findings, cfg *config.Config, seen *cluster.Observation, gpus map[string]int) {
	rules := cfg.Rules()
	word := rules.OptOut.Of(cluster.WayNoGPUs)
	fewest := map[string]int{} // CPUs of a node with GPUs, by partition
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		for _, p := range n.Partitions {
			if least, ok := fewest[p]; len(n.GPUs) > 0 && (!ok || n.CPUs < least) {
				fewest[p] = n.CPUs
			}
		}
	}
	var open []string
	for i := range seen.Partitions {
		p := &seen.Partitions[i]
		most, refused := p.Rules.CPUsPerNode, slices.Contains(cfg.Partitions, p.Name) && word == loop.Refuse
		if gpus[p.Name] == 0 || most > 0 && most < fewest[p.Name] || p.Rules.Closed != "" || refused || wantsGPUs(seen.Limits.QOS, p.Rules.QOS) {
			continue
		}
		if most > 0 {
			open = append(open, fmt.Sprintf("%s (MaxCPUsPerNode=%d, nodes have %d CPUs)", p.Name, most, fewest[p.Name]))
		} else {
			open = append(open, p.Name)
		}
	}
	if open == nil {
		f.ok("jobs without GPUs", "leave CPUs for the GPUs of their nodes")
		return
	}
	charged := "they are charged to the tenants of these jobs, which does not make them free"
	if word == loop.LeaveAlone {
		charged = "no tenant is charged for them (opt_out.no_gpus: leave)"
	}
	f.add(Warn, "jobs without GPUs", "may take all CPUs of nodes with GPUs in partition "+strings.Join(open, ", "), "the GPUs of such nodes idle; "+charged,
		"set MaxCPUsPerNode of partitions for CPU jobs to less than the CPUs of each node; for partitions of GPU jobs set opt_out.no_gpus: refuse here and in fairlease-plugin.conf, or a partition QOS with MinTRES=gres/gpu=1")
}

// checkBesides finds partitions that are not managed, but have nodes with GPUs of managed ones.
func checkBesides(f *findings, cfg *config.Config, seen *cluster.Observation) {
	const check = "partitions on the same nodes"
	shared := map[string]int{} // GPUs, by partition
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(cfg.Partitions, p) }) {
			continue
		}
		for _, p := range n.Partitions {
			for _, g := range n.GPUs {
				shared[p] += g.Count
			}
		}
	}
	var open []string
	for i := range seen.Partitions {
		p := &seen.Partitions[i]
		if shared[p.Name] > 0 && !slices.Contains(cfg.Partitions, p.Name) && p.Rules.Closed == "" && !forbidsGPUs(seen.Limits.QOS, p.Rules.QOS) {
			open = append(open, fmt.Sprintf("%s (%d GPUs)", p.Name, shared[p.Name]))
		}
	}
	if open == nil {
		f.ok(check, "all are managed, or leave GPUs alone")
		return
	}
	f.add(Warn, check, "not managed, on nodes with GPUs of managed ones: "+strings.Join(open, ", "),
		"jobs there take these GPUs without a lease, at nobody's charge, and keep them until they end",
		"add the partition to partitions here and in fairlease-plugin.conf, or give it a partition QOS with MaxTRESPerJob=gres/gpu=0")
}

// checkGroups finds managed partitions with groups that this host does not know: fairlease cannot tell which users are outside of them.
func checkGroups(f *findings, cfg *config.Config, s *Slurm) {
	var unknown []string
	lists := false
	for i := range s.Sighting.Partitions {
		p := &s.Sighting.Partitions[i]
		if !slices.Contains(cfg.Partitions, p.Name) {
			continue
		}
		for _, g := range p.Rules.AllowGroups {
			lists = true
			if slices.Contains(s.Groups, g) {
				unknown = append(unknown, fmt.Sprintf("%s (partition %s)", g, p.Name))
			}
		}
	}
	if lists {
		f.must(unknown == nil, Warn, "AllowGroups", "this host knows "+map[bool]string{true: "all groups", false: "no group " + view.Some(unknown, 5)}[unknown == nil],
			"jobs of users outside of these groups are granted GPUs, which idle until the grants are taken back",
			"have this host know the groups and users that slurmctld's host knows (getent group NAME), or correct AllowGroups in slurm.conf")
	}
}

// wantsGPUs tells whether a QOS refuses jobs without GPUs.
func wantsGPUs(all []cluster.QOS, name string) bool {
	return limitsGPUs(all, name, func(c cluster.Cap) bool { return c.Rule == cluster.MinTRESPerJob && c.Max > 0 })
}

// forbidsGPUs tells whether a QOS lets no job with GPUs start.
func forbidsGPUs(all []cluster.QOS, name string) bool {
	return limitsGPUs(all, name, func(c cluster.Cap) bool {
		return c.Max == 0 && (c.Rule == cluster.MaxTRESPerJob || c.Rule == cluster.MaxTRESPerUser || c.Rule == cluster.MaxTRESPerAccount || c.Rule == cluster.GrpTRES)
	})
}

// limitsGPUs tells whether a QOS has a limit on GPUs of all models that is as wanted.
func limitsGPUs(all []cluster.QOS, name string, wanted func(cluster.Cap) bool) bool {
	return name != "" && slices.ContainsFunc(all, func(q cluster.QOS) bool {
		return q.Name == name && slices.ContainsFunc(q.Caps, func(c cluster.Cap) bool { return c.TRES == "gres/gpu" && wanted(c) })
	})
}

// checkPreemption finds managed partitions whose jobs Slurm may stop by itself.
func checkPreemption(f *findings, cfg *config.Config, seen *cluster.Observation) {
	const check = "PreemptType"
	p, rules := &seen.Preemption, cfg.Rules()
	if p.None() {
		f.ok(check, "Slurm preempts no jobs")
		return
	}
	if p.Unread {
		f.add(Warn, check, "Slurm's configuration could not be read", "it is unknown whether Slurm preempts jobs by itself", "see the other findings, then run fairlease doctor again")
		return
	}
	const reconfigure = "; then scontrol reconfigure. "
	next := "remove GANG from PreemptMode in slurm.conf, or set OverSubscribe=NO for partition %[1]s" + reconfigure
	switch p.Type {
	case cluster.PreemptByTier:
		next = "set PreemptMode=OFF in the line of partition %[1]s in slurm.conf, or give all partitions that share its nodes the same PriorityTier" + reconfigure
	case cluster.PreemptByQOS:
		next = "take the QOS of managed jobs out of Preempt of all QOS (sacctmgr modify qos NAME set preempt-=QOS) and WITHIN out of PreemptMode; or keep QOS that are preempted " +
			"out of partition %[1]s (AllowQos), or out of fairlease (exclude.qos). PreemptMode of the partition does not count with " + cluster.PreemptByQOS + ". "
	}
	clean := true
	for _, name := range cfg.Partitions {
		why := p.Of(name, seen.Partitions, rules.ManagesQOS)
		if why == "" {
			continue
		}
		clean = false
		if found := "partition " + name + ": " + why; cfg.Preemption == loop.PreemptionKnown {
			f.ok(check, "%s; known to the site (preemption: known)", found)
		} else {
			f.add(Fail, check, found, "leases there would end early, without notice, and the GPUs would go to jobs that no tenant is due: the daemon only observes this partition",
				fmt.Sprintf(next, name)+"preemption: known acts on it all the same")
		}
	}
	if clean {
		f.ok(check, "%s, and no job of a managed partition is preempted", cmp.Or(p.Type, "PreemptMode="+p.Mode))
	}
}

// checkLongest finds partitions whose jobs may end decades from now. Slurm 24.11 searches for the
// start of a job in windows that double in 32 bits, and hangs while such jobs run. 26.05 does
// not; the versions between were not tested.
func checkLongest(f *findings, release string, partitions []cluster.Partition) {
	const most = 10 * 365 * cluster.Day
	major, _, _ := strings.Cut(release, ".")
	if n, err := strconv.Atoi(major); err != nil || n >= 26 {
		return
	}
	var open []string
	for i := range partitions {
		if longest := partitions[i].MaxTime; longest == 0 || longest > most {
			open = append(open, partitions[i].Name)
		}
	}
	if open == nil {
		f.ok("MaxTime", "at most ten years in all partitions")
		return
	}
	f.add(Warn, "MaxTime", "none, or more than ten years: partition "+strings.Join(open, ", "),
		"jobs whose ends are decades away (by far deadlines) keep slurmctld's backfill scheduler busy for ever while another job waits; slurmctld then answers no request",
		"set MaxTime of these partitions to at most some years")
}

// checkBudgets finds budgets of accounts that are no tenants.
func checkBudgets(f *findings, cfg *config.Config, snap *cluster.Snapshot) {
	var unknown []string
	for _, b := range cfg.Spending() {
		if !slices.ContainsFunc(snap.Tenants, func(t cluster.Tenant) bool { return t.Name == b.Tenant }) {
			unknown = append(unknown, b.Tenant)
		}
	}
	switch {
	case unknown != nil:
		f.add(Warn, "budgets", "of accounts that are no tenants: "+strings.Join(unknown, ", "), "nothing is counted for them", "name accounts at the level of tenants.level")
	case len(cfg.Budgets) > 0:
		f.ok("budgets", "of %d tenants", len(cfg.Budgets))
	}
}

// checkPassOn names accounts at or above the level that have no shares of their own.
func checkPassOn(f *findings, cfg *config.Config, accounts []cluster.Account) {
	if len(cfg.Tenants.Weights) > 0 {
		return
	}
	rules := cfg.Rules()
	_, of := loop.Tenants(accounts, &rules)
	var found []string
	for i := range accounts {
		if name := accounts[i].Name; accounts[i].ViaParent && of(name) == name {
			found = append(found, name)
		}
	}
	if slices.Sort(found); found != nil {
		f.add(Warn, "fairshare=parent", fmt.Sprintf("%s at tenants.level or above: no shares to compare", view.Some(found, 5)),
			"each such account counts as much as the mean of its siblings with shares", "sacctmgr modify account NAME set fairshare=N, if that is not meant")
	}
}

// checkWeights compares the weights of the whole day, and those of schedules, with the tenants.
func checkWeights(f *findings, cfg *config.Config, snap *cluster.Snapshot) {
	shares := map[string]int64{}
	for i := range snap.Tenants {
		shares[snap.Tenants[i].Name] = snap.Tenants[i].Weight
	}
	checkNamed(f, "", &cfg.Tenants, shares)
	for name, with := range cfg.Scheduled() {
		if named := with.Tenants.Weights; len(named) > 0 && !maps.Equal(named, cfg.Tenants.Weights) {
			then := map[string]int64{}
			for tenant := range shares {
				then[tenant] = named[tenant]
			}
			checkNamed(f, fmt.Sprintf("while schedule %s is in force: ", name), &with.Tenants, then)
		}
	}
	var sum int64
	for _, weight := range shares {
		sum += weight
	}
	if sum == 0 {
		return
	}
	var words []string
	for i := range snap.Tenants {
		words = append(words, fmt.Sprintf("%s %.1f%%", snap.Tenants[i].Name, 100*float64(snap.Tenants[i].Weight)/float64(sum)))
	}
	const most = 8
	if len(words) > most {
		words = append(words[:most], fmt.Sprintf("and %d more", len(snap.Tenants)-most))
	}
	f.ok("tenants", "%s", strings.Join(words, ", "))
}

// checkNamed compares tenants.weights with the tenants and their weights in force; when tells the time of these.
func checkNamed(f *findings, when string, tenants *config.Tenants, weights map[string]int64) {
	var unknown []string
	for name := range tenants.Weights {
		if _, is := weights[name]; !is {
			unknown = append(unknown, name)
		}
	}
	if slices.Sort(unknown); unknown != nil {
		f.add(Warn, "tenants.weights", fmt.Sprintf("%sSlurm has no account %s at level %d of its tree", when, view.Some(unknown, 5), tenants.Level),
			"the weight holds for nobody; accounts that tenants.weights does not name get idle GPUs only", "correct the name (sacctmgr show account), or tenants.level")
	}
	var sum int64
	for _, weight := range weights {
		sum += weight
	}
	if sum == 0 {
		f.add(Fail, "tenants", fmt.Sprintf("%s%d, none with a weight above 0", when, len(weights)), "no tenant is due any GPU",
			"add accounts with shares (sacctmgr), or correct tenants.level or tenants.weights")
		return
	}
	var left []string // by tenants.weights, and perhaps by mistake
	for name := range weights {
		if _, named := tenants.Weights[name]; !named {
			left = append(left, name)
		}
	}
	if slices.Sort(left); left != nil && len(tenants.Weights) > 0 {
		f.add(Warn, "tenants.weights", when+"does not name "+view.Some(left, 5), "tenants that it does not name have weight 0, and get idle GPUs only",
			"name all tenants there, or write weights: {} and change Slurm's shares (sacctmgr modify account NAME set fairshare=N)")
	}
}
