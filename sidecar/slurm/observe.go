package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// seen is the state that is kept from look to look.
type seen struct {
	last  cluster.Observation // the last result, without Now and Attempts
	given bool                // last has been returned
	// changed is true if something differs from last. It stays true until a look succeeds, so
	// that a failed look hides nothing.
	changed bool
	gone    bool // jobs have ended that may concern no GPU node, which alone is no change
	// lookedAt is when a look last succeeded, changedAt when one last found a change.
	lookedAt, changedAt cluster.Instant

	boot       cluster.Instant
	clock      cluster.Instant // slurmctld's, at the last query
	statsSince int64           // start of slurmctld's statistics
	cluster    string
	clusterID  int64  // 0 = unknown
	release    string // of Slurm: "26.05.5"

	nodes, partitions, reservations, jobs listing

	gpuNodes map[string]cluster.Node
	switches switches
	unread   []cluster.Node // those whose records make no sense, with their names and partitions where these are known
	records  map[int64]*record
	versions versions
	states   uint64          // hash of the list of states that matches the records; 0 = none
	fullAt   cluster.Instant // when the full job list was last known to be correct
	// touched are the records that our actions changed, and the moments until which they are read
	// again at every look.
	touched map[int64]cluster.Instant

	accountsDue cluster.Instant
	strangers   map[string]bool // accounts not found since the last read

	conf        configured
	members     map[string]membership // by user
	groups      map[string]membership // known = this host knows the group
	groupsDue   cluster.Instant       // the next question about them
	groupsPause cluster.Instant       // no question before

	configured bool            // Slurm's configuration has been read
	enforces   bool            // Slurm holds jobs to limits
	safe       bool            // and to their whole time limits
	asked      []string        // names of the licences that waiting jobs ask for, sorted
	confDue    cluster.Instant // next try to read the configuration, after a failure; 0 = none

	factors  map[int64]int64 // site factors of others, by record
	factored map[int64]bool  // records whose site factor was queried
}

// configured is what Slurm's configuration says.
type configured struct {
	minJobAge     cluster.Span  // 0 = unknown
	plansLicenses bool          // see PlansLicenses
	grace         time.Duration // of suspended jobs; see graceOf
}

// forget makes the next look read every list in full.
func (s *seen) forget() {
	s.nodes, s.partitions, s.reservations, s.jobs = listing{}, listing{}, listing{}, listing{}
	s.fullAt = 0
}

// rewind makes everything due that was due by a clock of this host that has gone back.
func (s *seen) rewind() {
	s.forget()
	s.accountsDue, s.groupsDue, s.groupsPause, s.confDue = 0, 0, 0, min(s.confDue, 1)
	s.lookedAt, s.changedAt = 0, 0
}

// listing records how new a list is.
type listing struct {
	ask int64 // the update_time for the next query; 0 = never read
}

// read records that a list with that last_update was read after the server's clock showed
// serverNow. Slurm's update times are whole seconds: more may happen in a second until it is
// over. A list that is newer than the time that reading it may have taken was changed by a clock that was ahead: later changes would
// count as older.
func (l *listing) read(lastUpdate, serverNow int64) {
	const late = 10 // seconds
	switch l.ask = lastUpdate; {
	case lastUpdate > serverNow+late:
		l.ask = 0
	case lastUpdate > 0 && lastUpdate < serverNow:
		l.ask++
	}
}

// blink is how far slurmctld's clock, which has whole seconds here, may be behind ours.
const blink = 2 * cluster.Second

// Observe looks at the cluster; see loop.Cluster. Between two full reads of the job list
// (Config.FullEvery), it only reads records whose state changed, or that we changed.
//
// The sighting's slices are shared with later ones: do not modify them.
func (c *Client) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = notes{}
	now, err := site{c.link}.look(ctx)
	if isPlain404(err) { // an upgrade removed our API version
		c.speech = nil
		now, err = site{c.link}.look(ctx)
	}
	if err != nil {
		return cluster.Observation{}, err
	}
	if warning := c.rest.token.warning(now.Time()); warning != "" {
		c.notes.add("%s", warning)
	}
	s := &c.seen
	queue{c.link}.lookFactors(ctx, now)
	s.last.Jobs = s.number(s.factor(s.assemble(now)))
	if limits := &s.last.Limits; limits.Read == 0 || len(limits.Associations)+len(limits.QOS) > 0 { // 0: the last known ones may hold
		if s.changed || s.gone || !s.given {
			replace(&s.last.Limits.Others, s.others(), &s.changed)
			s.gone = false
		}
	}
	s.last.Cluster, s.last.ClusterID, s.last.Boot = s.cluster, s.clusterID, s.boot
	out := s.last
	out.Now, out.Clock = now, s.clock
	// If all looks since then found no change, nothing was missed until the last of them.
	from := since
	if s.changedAt <= since {
		from = max(since, s.lookedAt)
	}
	if long := since > 0 && now.Sub(from) > (accounting{c.link}).minJobAge(ctx)/2; long || since > 0 && s.boot.Add(blink) > since {
		asking, cancel := ctx, context.CancelFunc(func() {})
		if !long { // do not wait for a slurmdbd that hangs
			asking, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		}
		out.Attempts, err = history{c.link}.attempts(asking, since, 0)
		cancel()
		switch {
		case err != nil && long:
			return cluster.Observation{}, err
		case err != nil:
			c.notes.add("slurmctld was started at %s, and slurmdbd does not tell which jobs had ended by then: %v", s.boot, err)
		}
	}
	out.Unchanged = s.given && !s.changed && len(out.Attempts) == 0
	if !out.Unchanged {
		s.changedAt = now
	}
	s.given, s.changed, s.lookedAt = true, false, now
	return out, nil
}

// look updates everything, and gives the moment that it describes: just before the query for
// jobs. Earlier queries may have waited for a restarting slurmctld, and jobs may have ended
// meanwhile. So time is charged no further than that moment.
func (c site) look(ctx context.Context) (now cluster.Instant, err error) {
	if err := c.talk(ctx); err != nil {
		return 0, err
	}
	if s := &c.seen; c.now().Add(blink) < max(s.lookedAt, s.fullAt) {
		s.rewind()
	}
	server, err := c.lookController(ctx)
	if err != nil {
		return 0, err
	}
	asked := c.now()
	if err := c.lookNodes(ctx, server); err != nil {
		return 0, err
	}
	if err := c.lookPartitions(ctx, server); err != nil {
		return 0, err
	}
	if err := c.lookReservations(ctx, server); err != nil {
		return 0, err
	}
	now = c.now()
	if c.seen.clock > 0 {
		c.seen.clock = c.seen.clock.Add(now.Sub(asked))
	}
	if err := (queue(c)).lookJobs(ctx, now, server); err != nil {
		return 0, err
	}
	if err := c.lookLicenses(ctx); err != nil {
		return 0, err
	}
	queue(c).lookGroups(ctx, now)
	return now, accounting(c).lookAccounts(ctx, now)
}

// lookController reads slurmctld's last start and its clock. After a restart everything is read
// again, because ids may have been reused.
func (c site) lookController(ctx context.Context) (serverNow int64, err error) {
	var since int64
	rep, err := c.rest.get(ctx, c.cfg.Timeout, c.path("diag"), func(r *reader, name string) bool {
		if name != "statistics" {
			return false
		}
		r.object(func(name string) {
			switch name {
			case "req_time":
				serverNow = r.number().n
			case "req_time_start":
				since = r.number().n
			default:
				r.skip()
			}
		})
		return true
	})
	if err != nil {
		return 0, fmt.Errorf("asking slurmctld how it is: %w", err)
	}
	s := &c.seen
	if instant(serverNow).Add(blink) < s.clock {
		s.forget() // nothing would be newer than those lists
	}
	s.cluster, s.release, s.clock = cmp.Or(rep.cluster, s.cluster), rep.release, instant(serverNow)
	if since != s.statsSince || s.boot == 0 || s.confDue != 0 && c.now() >= s.confDue {
		s.statsSince = since
		c.lookBoot(ctx, instant(since))
	}
	return serverNow, nil
}

// lookConf reads Slurm's configuration, and keeps what matters to later looks.
func (c site) lookConf(ctx context.Context) (map[string]string, error) {
	conf, err := c.conf(ctx)
	s := &c.seen
	if err != nil {
		s.confDue = c.now().Add(cluster.SpanOf(c.cfg.AccountsEvery))
		s.last.Preemption.Unread = !s.configured
		return nil, err
	}
	s.confDue, s.conf = 0, configured{minJobAge(conf), PlansLicenses(conf), graceOf(conf[ConfPreemptParameters])}
	s.configured, s.enforces, s.safe = true, EnforcesLimits(conf), enforcesSafe(conf)
	s.preempts(conf)
	s.switches.due, s.nodes = true, listing{} // it may be another one
	return conf, nil
}

// lookBoot finds out whether slurmctld was restarted. Its statistics restart with it, but also at
// midnight and by sdiag --reset; its configuration shows the start.
func (c site) lookBoot(ctx context.Context, statsSince cluster.Instant) {
	s := &c.seen
	boot := statsSince
	if conf, err := c.lookConf(ctx); err == nil {
		t, err := time.ParseInLocation("2006-01-02T15:04:05", conf[confBoot], time.UTC)
		if b := cluster.InstantOf(t); err == nil && (b <= statsSince || statsSince == 0) {
			boot = b
		}
	}
	if boot != s.boot {
		s.boot, s.changed = boot, true
		s.forget()
		s.records = nil
	}
}

func (c site) lookNodes(ctx context.Context, server int64) error {
	var all, unread []cluster.Node
	read := func(update int64) (reply, error) {
		return c.list(ctx, c.path("nodes/"), "nodes", update, func(r *reader) error {
			switch n := readNode(r); {
			case r.err != nil:
				return r.err
			case r.junk != "":
				unread = append(unread, n)
			case len(n.GPUs) > 0:
				all = append(all, n)
			}
			return nil
		}, func() { all, unread = nil, nil })
	}
	rep, err := read(c.seen.nodes.ask)
	if c.seen.nodes.ask > 0 && codeOf(err) == codeUnspecified {
		// Slurm 24.11 fails on its own partitions when the nodes are newer than update_time and
		// the partitions are not.
		rep, err = read(0)
	}
	if err != nil || rep.same {
		return err
	}
	if len(all) == 0 && len(unread) > 1 { // the format of GPUs is another than the known one
		return fmt.Errorf("reading Slurm's nodes: %d records make no sense (%s), and no other node has GPUs", len(unread), c.notes.lines[len(c.notes.lines)-1])
	}
	s := &c.seen
	s.unread = unread
	s.nodes.read(rep.lastUpdate, server)
	byName(all, func(n cluster.Node) string { return n.Name })
	lookSwitches(ctx, c.link, all)
	if reflect.DeepEqual(all, s.last.Nodes) {
		return nil
	}
	gpuNodes := make(map[string]cluster.Node, len(all))
	for _, n := range all {
		gpuNodes[n.Name] = n
	}
	if !maps.EqualFunc(gpuNodes, s.gpuNodes, func(a, b cluster.Node) bool { return slices.Equal(a.GPUs, b.GPUs) }) {
		s.jobs, s.fullAt = listing{}, 0 // the allocation of jobs depends on the nodes
	}
	s.last.Nodes, s.gpuNodes, s.changed = all, gpuNodes, true
	return nil
}

func (c site) lookPartitions(ctx context.Context, server int64) error {
	var all []cluster.Partition
	rep, err := c.list(ctx, c.path("partitions/"), "partitions", c.seen.partitions.ask, func(r *reader) error {
		if p := readPartition(r); r.junk == "" {
			all = append(all, p)
		}
		return nil
	}, func() { all = nil })
	var e *Error
	switch {
	case errors.As(err, &e) && strings.HasPrefix(e.From, "slurmdb_") && len(all)+len(c.seen.last.Partitions) > 0:
		// slurmctld's own list is complete. Only slurmdbd's list of TRES is missing, which we do
		// not use here.
		c.notes.add("slurmdbd does not answer, the partitions are slurmctld's alone: %v", err)
		if len(all) == 0 {
			return nil
		}
	case err != nil || rep.same:
		return err
	default:
		c.seen.partitions.read(rep.lastUpdate, server)
	}
	byName(all, func(p cluster.Partition) string { return p.Name })
	c.lookPartitionPreemption(ctx, all)
	replace(&c.seen.last.Partitions, all, &c.seen.changed)
	return nil
}

func (c site) lookReservations(ctx context.Context, server int64) error {
	var all []cluster.Reservation
	rep, err := c.list(ctx, c.path("reservations/"), "reservations", c.seen.reservations.ask, func(r *reader) error {
		v := readReservation(r)
		if r.junk != "" {
			return nil
		}
		if !keepsGPUs(c.seen.release) && slices.ContainsFunc(v.Parts, func(p cluster.ReservedPart) bool { return p.GPUs > 0 }) {
			v.Parts = nil
		}
		all = append(all, v)
		return nil
	}, func() { all = nil })
	if err != nil || rep.same {
		return err
	}
	c.seen.reservations.read(rep.lastUpdate, server)
	byName(all, func(v cluster.Reservation) string { return v.Name })
	replace(&c.seen.last.Reservations, all, &c.seen.changed)
	return nil
}

func byName[T any](list []T, name func(T) string) {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
}

// replace replaces known facts by those that were read, and records whether they differ.
func replace[T any](known *T, read T, changed *bool) {
	if !reflect.DeepEqual(*known, read) {
		*known, *changed = read, true
	}
}

// lookAccounts reads the account tree when it is due or a job names an unknown account. Once it
// was read, it is kept while slurmdbd is away.
func (c accounting) lookAccounts(ctx context.Context, now cluster.Instant) error {
	s := &c.seen
	if now < s.accountsDue && (s.given && !s.changed || s.stranger() == "") {
		return nil
	}
	if len(s.last.Accounts) > 0 { // do not wait for a slurmdbd that hangs
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	if !s.configured {
		_, _ = site(c).lookConf(ctx) // else no limit is known to hold; tried again when they are due
	}
	next := cluster.SpanOf(c.cfg.AccountsEvery)
	limits, preempting := s.last.Limits, s.last.Preemption
	accounts, members, read, err := c.accounts(ctx, &limits, &preempting)
	if err != nil {
		next = 30 * cluster.Second
		if len(s.last.Accounts) > 0 {
			c.notes.add("the account tree could not be renewed, the last one is used: %v", err)
			accounts, members = s.last.Accounts, s.last.Members
		} else {
			away := err
			if accounts, members, err = c.cachedAccounts(ctx); err != nil {
				return errors.Join(away, err)
			}
			c.notes.add("the account tree is slurmctld's copy: %v", away)
		}
	}
	if preempting.Type == cluster.PreemptByQOS && len(preempting.QOS) == 0 {
		next = 30 * cluster.Second
		c.notes.add("which QOS preempt others has not been read since the start: the last round's verdict on each partition holds")
	}
	s.accountsDue = now.Add(next)
	replace(&s.last.Accounts, accounts, &s.changed)
	replace(&s.last.Members, members, &s.changed)
	replace(&s.last.Limits.Associations, limits.Associations, &s.changed)
	replace(&s.last.Limits.QOS, limits.QOS, &s.changed)
	replace(&s.last.Preemption, preempting, &s.changed)
	s.last.Limits.Safe = limits.Safe
	switch limits := &s.last.Limits; {
	case !s.configured:
	case !s.enforces: // that is known without slurmdbd
		limits.Read = now
	case read && limits.Read == 0:
		limits.Read, s.changed = now, true // they replace the last known ones
	case read:
		limits.Read = now
	case limits.Read > 0:
		c.notes.add("the limits of accounts, users and QOS could not be renewed: those of %s hold", limits.Read)
	}
	if err == nil {
		s.strangers = map[string]bool{}
	}
	for name := s.stranger(); name != ""; name = s.stranger() {
		s.strangers[name] = true
	}
	return nil
}

// stranger gives an account that a job names and that is neither in the tree nor known to be
// missing.
func (s *seen) stranger() string {
	known := make(map[string]bool, len(s.last.Accounts))
	for _, a := range s.last.Accounts {
		known[a.Name] = true
	}
	for _, r := range s.records {
		if len(r.jobs) > 0 && r.jobs[0].Account != "" && !known[r.jobs[0].Account] && !s.strangers[r.jobs[0].Account] {
			return r.jobs[0].Account
		}
	}
	return ""
}

// accounts reads slurmdbd's association tree: the accounts, and the users of each account. It sets the limits to which Slurm
// holds jobs, and which QOS preempt others. It tells whether all limits were read.
func (c accounting) accounts(ctx context.Context, limits *cluster.Limits, preempting *cluster.Preemption) (accounts []cluster.Account, members []cluster.Member, read bool, err error) {
	t, unread := tree{cluster: c.seen.cluster}, unreadTRES{}
	_, err = c.list(ctx, c.dbPath("associations/"), "associations", 0, func(r *reader) error {
		t.add(r, readAssociation(r, unread))
		return nil
	}, t.empty)
	if accounts, members, err = t.sorted(err); err != nil {
		return accounts, members, false, err
	}
	byQOS := preempting.Type == cluster.PreemptByQOS
	limits.Associations = t.limited
	if !c.seen.enforces {
		limits.Associations, limits.QOS = nil, nil
		if !byQOS {
			return accounts, members, true, nil
		}
	}
	qos, all, err := c.lookQOS(ctx, unread)
	if err != nil {
		c.notes.add("the limits and preemption of QOS could not be read, the last ones are used: %v", err)
	} else if byQOS {
		preempting.QOS = c.preemptingQOS(ctx, all)
	}
	if !c.seen.enforces {
		return accounts, members, true, nil
	}
	if err == nil {
		limits.QOS = qos
	}
	c.lookMinutes(ctx, limits)
	c.noteUnread(unread)
	return accounts, members, err == nil, nil
}

// cachedAccounts reads the same from slurmctld, which caches it while slurmdbd is away.
func (c accounting) cachedAccounts(ctx context.Context) ([]cluster.Account, []cluster.Member, error) {
	t := tree{cluster: c.seen.cluster}
	_, err := c.rest.get(ctx, c.cfg.Timeout, c.path("shares"), func(r *reader, name string) bool {
		if name != "shares" || r.kind() != '{' {
			return false
		}
		t.empty()
		r.object(func(name string) {
			if name != "shares" {
				r.skip()
				return
			}
			r.array(func() {
				r.junk = ""
				t.add(r, readShare(r))
			})
		})
		return true
	})
	return t.sorted(err)
}

// tree is the accounts of a cluster and their users.
type tree struct {
	cluster string
	all     []cluster.Account
	members []cluster.Member
	limited []cluster.Association // those with limits
}

func (t *tree) empty() { t.all, t.members, t.limited = nil, nil, nil }

func (t *tree) add(r *reader, a association) {
	ours := r.junk == "" && a.account != "" && (a.cluster == "" || a.cluster == t.cluster)
	if list := a.caps.sorted(); ours && (len(list) > 0 || a.caps.others != 0) {
		t.limited = append(t.limited, cluster.Association{Account: a.account, User: a.user, Partition: a.partition, Caps: list, Unread: a.caps.others})
	}
	switch {
	case ours && a.user != "":
		t.members = append(t.members, cluster.Member{Tenant: a.account, User: a.user})
	case ours && a.partition == "":
		t.all = append(t.all, a.translate())
	}
}

// sorted gives both sorted, or the error of reading them.
func (t *tree) sorted(err error) ([]cluster.Account, []cluster.Member, error) {
	if err == nil && len(t.all) == 0 {
		err = fmt.Errorf("no account of cluster %q is known to Slurm; add the tenants' accounts with sacctmgr", t.cluster)
	}
	byName(t.all, func(a cluster.Account) string { return a.Name })
	slices.SortFunc(t.members, func(a, b cluster.Member) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User))
	})
	slices.SortFunc(t.limited, func(a, b cluster.Association) int { return a.Compare(&b) })
	return t.all, slices.Compact(t.members), err
}

// minJobAge is how long Slurm lists a finished job.
func (c accounting) minJobAge(ctx context.Context) cluster.Span {
	if c.seen.conf.minJobAge == 0 {
		conf, err := c.conf(ctx)
		if err != nil {
			c.notes.add("MinJobAge could not be read and is taken for Slurm's default, %v: %v", usualMinJobAge, err)
			return usualMinJobAge
		}
		c.seen.conf.minJobAge = minJobAge(conf)
	}
	return c.seen.conf.minJobAge
}
