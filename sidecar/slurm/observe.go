package slurm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// seen is what is kept from look to look.
type seen struct {
	last  cluster.Sighting // as last given, less Now and Attempts
	given bool             // last has been given out
	// changed is true when something differs from last; it stays true
	// until a look succeeds, so that a failed look hides nothing.
	changed bool

	boot       cluster.Instant
	statsSince int64 // since when slurmctld counts its statistics
	cluster    string
	release    string // of Slurm: "26.05.5"

	nodes, partitions, reservations, jobs listing

	gpuNodes map[string]cluster.Node
	records  map[int64]*record
	fullAt   cluster.Instant // when the full job list was last known to be true
	// touched are the records that our actions changed, and until when they are
	// read anew at every look.
	touched map[int64]cluster.Instant

	accountsDue cluster.Instant
	strangers   map[string]bool // accounts looked for in vain since the last reading

	minJobAge cluster.Span // 0 = not known
}

// forget makes the next look read every list in full.
func (s *seen) forget() {
	s.nodes, s.partitions, s.reservations, s.jobs = listing{}, listing{}, listing{}, listing{}
	s.fullAt = 0
}

// listing remembers how new a list is.
type listing struct {
	ask int64 // the update_time to ask with next; 0 = never read
}

// read notes that a list with that last_update was read after the server's clock
// showed serverNow. Slurm's update times are whole seconds: only if that
// second was over before can nothing more have happened in it.
func (l *listing) read(lastUpdate, serverNow int64) {
	l.ask = lastUpdate
	if lastUpdate > 0 && lastUpdate < serverNow {
		l.ask++
	}
}

// Observe looks at the cluster; see loop.Cluster. Between two full reads of the job list
// (Config.FullEvery) only records whose state changed, or that we changed, are read anew.
//
// The sighting's slices are shared with later ones: they must not be written to.
func (c *Client) Observe(ctx context.Context, since cluster.Instant) (cluster.Sighting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = notes{}
	now := c.now()
	err := c.look(ctx, now)
	if isPlain404(err) { // an upgrade took our API version away
		c.speech = nil
		err = c.look(ctx, now)
	}
	if err != nil {
		return cluster.Sighting{}, err
	}
	s := &c.seen
	s.last.Jobs = s.assemble(now)
	s.last.Cluster, s.last.Boot = s.cluster, s.boot
	out := s.last
	out.Now = now
	if since > 0 && now.Sub(since) > c.minJobAge(ctx)/2 {
		if out.Attempts, err = c.attempts(ctx, since); err != nil {
			return cluster.Sighting{}, err
		}
	}
	out.Unchanged = s.given && !s.changed && len(out.Attempts) == 0
	s.given, s.changed = true, false
	return out, nil
}

// look brings everything up to date.
func (c *Client) look(ctx context.Context, now cluster.Instant) error {
	if err := c.talk(ctx); err != nil {
		return err
	}
	server, err := c.lookController(ctx)
	if err != nil {
		return err
	}
	if err := c.lookNodes(ctx, server); err != nil {
		return err
	}
	if err := c.lookPartitions(ctx, server); err != nil {
		return err
	}
	if err := c.lookReservations(ctx, server); err != nil {
		return err
	}
	if err := c.lookJobs(ctx, now, server); err != nil {
		return err
	}
	return c.lookAccounts(ctx, now)
}

// lookController asks for slurmctld's last start and its clock. After a restart
// everything is read anew: ids may have come round again.
func (c *Client) lookController(ctx context.Context) (serverNow int64, err error) {
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
	s.cluster, s.release = cmp.Or(rep.cluster, s.cluster), rep.release
	if since != s.statsSince || s.boot == 0 {
		s.statsSince = since
		c.lookBoot(ctx, instant(since))
	}
	return serverNow, nil
}

// lookBoot finds out whether slurmctld was restarted. Its statistics begin anew at
// every start, but also at midnight and by sdiag --reset; its configuration tells.
func (c *Client) lookBoot(ctx context.Context, statsSince cluster.Instant) {
	s := &c.seen
	boot := statsSince
	if conf, err := c.conf(ctx); err == nil {
		s.minJobAge = minJobAge(conf)
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

func (c *Client) lookNodes(ctx context.Context, server int64) error {
	var all []cluster.Node
	read := func(update int64) (reply, error) {
		return c.list(ctx, c.path("nodes/"), "nodes", update, func(r *reader) error {
			if n := r.node(); r.junk == "" && len(n.GPUs) > 0 {
				all = append(all, n)
			}
			return nil
		}, func() { all = nil })
	}
	rep, err := read(c.seen.nodes.ask)
	if c.seen.nodes.ask > 0 && codeOf(err) == codeUnspecified {
		// Slurm 24.11 stumbles over its own partitions when the nodes are newer
		// than update_time and the partitions are not.
		rep, err = read(0)
	}
	if err != nil || rep.same {
		return err
	}
	s := &c.seen
	s.nodes.read(rep.lastUpdate, server)
	byName(all, func(n cluster.Node) string { return n.Name })
	if reflect.DeepEqual(all, s.last.Nodes) {
		return nil
	}
	gpuNodes := make(map[string]cluster.Node, len(all))
	for _, n := range all {
		gpuNodes[n.Name] = n
	}
	if !maps.EqualFunc(gpuNodes, s.gpuNodes, func(a, b cluster.Node) bool { return slices.Equal(a.GPUs, b.GPUs) }) {
		s.jobs, s.fullAt = listing{}, 0 // what jobs hold is told by node
	}
	s.last.Nodes, s.gpuNodes, s.changed = all, gpuNodes, true
	return nil
}

func (c *Client) lookPartitions(ctx context.Context, server int64) error {
	var all []cluster.Partition
	rep, err := c.list(ctx, c.path("partitions/"), "partitions", c.seen.partitions.ask, func(r *reader) error {
		if p := r.partition(); r.junk == "" {
			all = append(all, p)
		}
		return nil
	}, func() { all = nil })
	if err != nil || rep.same {
		return err
	}
	c.seen.partitions.read(rep.lastUpdate, server)
	byName(all, func(p cluster.Partition) string { return p.Name })
	replace(&c.seen.last.Partitions, all, &c.seen.changed)
	return nil
}

func (c *Client) lookReservations(ctx context.Context, server int64) error {
	var all []cluster.Reservation
	rep, err := c.list(ctx, c.path("reservations/"), "reservations", c.seen.reservations.ask, func(r *reader) error {
		if v := r.reservation(); r.junk == "" {
			all = append(all, v)
		}
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

// replace puts what was read in the place of what was known, and notes whether it differs.
func replace[T any](known *[]T, read []T, changed *bool) {
	if !reflect.DeepEqual(*known, read) {
		*known, *changed = read, true
	}
}

// lookAccounts reads the account tree when it is due or a job names an
// unknown account. Once it was read, slurmdbd may be away: the tree is kept.
func (c *Client) lookAccounts(ctx context.Context, now cluster.Instant) error {
	s := &c.seen
	stranger := s.stranger()
	if now < s.accountsDue && stranger == "" {
		return nil
	}
	if len(s.last.Accounts) > 0 { // a slurmdbd that hangs is not waited for
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	accounts, err := c.accounts(ctx)
	switch {
	case err == nil:
		s.accountsDue = now.Add(cluster.SpanOf(c.cfg.AccountsEvery))
		s.strangers = map[string]bool{}
		replace(&s.last.Accounts, accounts, &s.changed)
	case len(s.last.Accounts) == 0:
		return err
	default:
		s.accountsDue = now.Add(30 * cluster.Second)
		c.notes.add("the account tree could not be renewed, the last one is used: %v", err)
	}
	for name := s.stranger(); name != ""; name = s.stranger() {
		s.strangers[name] = true
	}
	return nil
}

// stranger gives an account that a job names but neither the tree nor a look for it knows.
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

// accounts reads the lines of the association tree that stand for accounts.
func (c *Client) accounts(ctx context.Context) ([]cluster.Account, error) {
	var all []cluster.Account
	_, err := c.list(ctx, c.dbPath("associations/"), "associations", 0, func(r *reader) error {
		a := r.association()
		if r.junk == "" && a.user == "" && a.partition == "" && a.account != "" && (a.cluster == "" || a.cluster == c.seen.cluster) {
			all = append(all, a.translate())
		}
		return nil
	}, func() { all = nil })
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("slurmdbd knows no account of cluster %q; add the tenants' accounts with sacctmgr", c.seen.cluster)
	}
	byName(all, func(a cluster.Account) string { return a.Name })
	return all, err
}

// minJobAge is how long Slurm lists a finished job.
func (c *Client) minJobAge(ctx context.Context) cluster.Span {
	if c.seen.minJobAge == 0 {
		conf, err := c.conf(ctx)
		if err != nil {
			c.notes.add("MinJobAge could not be read and is taken for Slurm's default, %v: %v", usualMinJobAge, err)
			return usualMinJobAge
		}
		c.seen.minJobAge = minJobAge(conf)
	}
	return c.seen.minJobAge
}
