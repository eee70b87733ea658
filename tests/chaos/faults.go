package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// kind is a manner of failing. strike begins it and gives what heals it; that is called once the fault has lasted for its time.
type kind struct {
	name        string
	of          string // the part that fails: two faults at once are of two parts
	least, most time.Duration
	goesOn      bool // rounds must go on while it lasts
	strike      func(ctx context.Context, c *campaign, who int, hold time.Duration) (heal func(context.Context) error, err error)
}

// kinds is everything that fails.
var kinds = []kind{
	{"the leading sidecar is killed", "sidecar", 0, 4 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		active.Signal(syscall.SIGKILL)
		return nothing, nil // systemd starts it again
	}},
	{"the leading sidecar hangs for more than three gate.ttl", "sidecar", 3*ttl + time.Second, 3*ttl + 6*time.Second, true, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		active.Signal(syscall.SIGSTOP)
		return func(context.Context) error { active.Signal(syscall.SIGCONT); return nil }, nil
	}},
	{"the leading sidecar hangs for a moment", "sidecar", 2 * time.Second, 12 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		active.Signal(syscall.SIGSTOP)
		return func(context.Context) error { active.Signal(syscall.SIGCONT); return nil }, nil
	}},
	{"the standby crashes", "sidecar", 5 * time.Second, 15 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		_, standby := c.leading(ctx)
		standby.Signal(syscall.SIGKILL)
		return nothing, nil
	}},
	{"both sidecars are killed and stay away", "sidecar", 5 * time.Second, 2 * ttl, false, func(_ context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		for _, x := range c.sidecars {
			x.Stop(syscall.SIGKILL)
		}
		return func(context.Context) error { return errors.Join(c.sidecars[0].Start(), c.sidecars[1].Start()) }, nil
	}},
	{"the leading sidecar is restarted", "sidecar", 0, 3 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		active.Stop(syscall.SIGTERM)
		return func(context.Context) error { return active.Start() }, nil
	}},
	{"the leading sidecar's configuration is emptied or cut", "sidecar", 15 * time.Second, 20 * time.Second, true, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		return c.spoilt(active, who)
	}},

	{"slurmctld is killed", "slurmctld", time.Second, 12 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		c.forgets(time.Now())
		return c.killed(ctx, testcluster.Slurmctld)
	}},
	{"slurmctld hangs", "slurmctld", 4 * time.Second, 25 * time.Second, false, hangs(testcluster.Slurmctld)},
	{"slurmctld is restarted", "slurmctld", 0, 3 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		if err := c.Stop(ctx, testcluster.Slurmctld); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return c.Start(ctx, testcluster.Slurmctld) }, nil
	}},
	{"a cold start of slurmctld, which loses all jobs", "slurmctld", 3 * time.Second, 12 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		// A cold start shows nothing without jobs that have run for some seconds.
		until(ctx, 40*time.Second, func() bool {
			out, err := c.Exec(ctx, "root", "squeue", "-h", "-t", "R", "-o", "%M")
			return err == nil && slices.ContainsFunc(strings.Fields(out), func(ran string) bool { return ran >= "0:04" })
		})
		from := time.Now()
		if err := c.Stop(ctx, testcluster.Slurmctld); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return c.coldStart(ctx, from) }, nil
	}},
	{"slurmctld is reconfigured", "slurmctld", 0, 2 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return nothing, c.Reconfigure(ctx)
	}},
	{"a slurmd is killed", "slurmd", 2 * time.Second, 15 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return c.killed(ctx, testcluster.Slurmd(c.node(who)))
	}},
	{"a slurmd hangs", "slurmd", 5 * time.Second, 30 * time.Second, false, func(ctx context.Context, c *campaign, who int, hold time.Duration) (func(context.Context) error, error) {
		return hangs(testcluster.Slurmd(c.node(who)))(ctx, c, who, hold)
	}},
	{"slurmrestd is killed", "slurmrestd", time.Second, 10 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return c.killed(ctx, testcluster.Slurmrestd)
	}},
	{"slurmrestd hangs", "slurmrestd", 3 * time.Second, 15 * time.Second, false, hangs(testcluster.Slurmrestd)},
	{"slurmdbd is killed", "slurmdbd", 15 * time.Second, 20 * time.Second, true, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return c.killed(ctx, testcluster.Slurmdbd)
	}},
	{"slurmdbd hangs", "slurmdbd", 15 * time.Second, 25 * time.Second, true, hangs(testcluster.Slurmdbd)},
	{"MariaDB is killed", "slurmdbd", 15 * time.Second, 20 * time.Second, true, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		heal, err := c.killed(ctx, testcluster.MariaDB)
		return c.withRecords(heal), err
	}},
	// slurmctld of Slurm 26.05 itself does not answer a request for a reservation until slurmdbd has answered it.
	{"MariaDB hangs", "slurmdbd", 15 * time.Second, 25 * time.Second, false, func(ctx context.Context, c *campaign, who int, hold time.Duration) (func(context.Context) error, error) {
		heal, err := hangs(testcluster.MariaDB)(ctx, c, who, hold)
		return c.withRecords(heal), err
	}},

	{"PostgreSQL is killed", "postgres", time.Second, 15 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return c.db.Start, c.db.Kill(ctx)
	}},
	{"PostgreSQL hangs", "postgres", 3 * time.Second, 25 * time.Second, false, func(_ context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return func(context.Context) error { return c.db.Thaw() }, c.db.Freeze()
	}},
	{"PostgreSQL is read-only", "postgres", 3 * time.Second, 20 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		set := func(to string) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.order(ctx, "alter system set default_transaction_read_only = "+to, "select pg_reload_conf()")
			}
		}
		return set("off"), set("on")(ctx)
	}},
	{"PostgreSQL's clock is set back, and the leading sidecar crashes", "postgres", 30 * time.Second, 35 * time.Second, true, clockSet("-1 hour")},
	{"PostgreSQL's clock is set ahead, and the leading sidecar crashes", "postgres", 30 * time.Second, 35 * time.Second, true, clockSet("1 hour")},
	{"PostgreSQL gets a dump back", "postgres", 5 * time.Second, 20 * time.Second, false, dumped},
	{"PostgreSQL's disk is full", "postgres", 3 * time.Second, 20 * time.Second, false, full},

	{"slurmrestd " + errorsIn200, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(errorsIn200)},
	{"slurmrestd " + doneRefused, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(doneRefused)},
	{"slurmrestd " + cutOff, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(cutOff)},
	{"slurmrestd " + lostAnswer, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(lostAnswer)},
	{"slurmrestd " + denied511, "proxy", 3 * time.Second, 10 * time.Second, false, spoils(denied511)},
	{"slurmrestd " + slowAnswer, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(slowAnswer)},
	{"slurmrestd " + brokenJSON, "proxy", 3 * time.Second, 15 * time.Second, false, spoils(brokenJSON)},

	{"a node is drained", "node", 5 * time.Second, 20 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return c.set(ctx, who, "drain")
	}},
	{"a node is set down", "node", 3 * time.Second, 10 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return c.set(ctx, who, "down")
	}},
	{"a node is rebooted", "node", 2 * time.Second, 10 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		node := c.node(who)
		return func(ctx context.Context) error { return c.Boot(ctx, node) }, c.Crash(ctx, node)
	}},

	{"an agent requeues jobs", "agent", time.Second, 4 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return nothing, c.agent(ctx, who)
	}},

	{"an account is added", "accounts", 0, 3 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return nothing, c.addAccount(ctx, who)
	}},
	{"an account moves in the tree", "accounts", 5 * time.Second, 15 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return c.moveAccount(ctx)
	}},
	{"an account is renamed", "accounts", 0, 3 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return nothing, errors.Join(c.addAccount(ctx, who), c.deleteAccount(ctx))
	}},
	{"an account's limit is set", "accounts", 5 * time.Second, 20 * time.Second, false, func(ctx context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		return c.limit(ctx, who)
	}},
	{"a partition forbids an account", "accounts", 5 * time.Second, 20 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		list := func(accounts string) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.users.command(ctx, "root", "scontrol", "update", "PartitionName=gpu", "DenyAccounts="+accounts)
			}
		}
		return list(""), list("guests")(ctx)
	}},
	{"an account is deleted", "accounts", 0, 3 * time.Second, false, func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return nothing, c.deleteAccount(ctx)
	}},
}

func nothing(context.Context) error { return nil }

// agent requeues up to three running jobs as an administrator's recovery agent does, and writes its text beside them. Incomplete: a
// request that slurmctld gets late must not revive a job that is over.
func (c *campaign) agent(ctx context.Context, who int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := c.Exec(ctx, "root", "squeue", "-a", "-h", "-t", "R", "-o", "%i")
	if err != nil {
		return nil // Slurm is away
	}
	ids := strings.Fields(out)
	for k := range min(3, len(ids)) {
		id := pickOf(ids, who+k)
		c.users.did(id, "requeue")
		// Slurm decides what becomes of it.
		_ = c.users.command(ctx, "root", "scontrol", "update", "jobid="+id, `AdminComment={"APS":{"restart":1}}`)
		_ = c.users.command(ctx, "root", "scontrol", "requeue", "Incomplete", id)
	}
	return nil
}

// clockSet dates signs of life of the leader as a PostgreSQL does whose clock was set, and kills the leader for good. Other times of the
// database stay right: no round is made with clocks that disagree.
func clockSet(by string) func(context.Context, *campaign, int, time.Duration) (func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		active, _ := c.leading(ctx)
		err := c.order(ctx, fmt.Sprintf(`create function chaos_clock() returns trigger language plpgsql as $$
			begin new.renewed_at = clock_timestamp() + interval '%s'; return new; end $$`, by),
			"create trigger chaos_clock before insert or update on leaders for each row execute function chaos_clock()",
			"update leaders set renewed_at = now() where ended_at is null")
		active.Stop(syscall.SIGKILL)
		return func(ctx context.Context) error {
			return errors.Join(c.order(ctx, "drop function if exists chaos_clock() cascade"), active.Start())
		}, err
	}
}

// dumped makes a dump of the journal, and restores it over the journal that the sidecars have written to meanwhile.
func dumped(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
	file := filepath.Join(c.dir, "journal.dump")
	tool := func(ctx context.Context, name string, args ...string) error {
		path, err := testcluster.PostgresTool(name)
		if err != nil {
			return err
		}
		if out, err := exec.CommandContext(ctx, path, append(args, "--dbname="+c.db.DSN())...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		return nil
	}
	heal := func(ctx context.Context) error {
		newest := func() (n int64, err error) {
			return ask[int64](ctx, c.site, "select coalesce(max(number), 0) from rounds")
		}
		before, err := newest()                             // 0 if an earlier try has dropped it
		dropped := until(ctx, 10*time.Second, func() bool { // a commit may be in its way ("deadlock detected")
			err = c.order(ctx, "drop schema if exists fairlease cascade")
			return err == nil
		})
		if !dropped {
			return err
		}
		if err := tool(ctx, "pg_restore", "--exit-on-error", "--single-transaction", file); err != nil {
			return err
		}
		if after, err := newest(); err != nil || after >= before {
			return err
		}
		c.mu.Lock()
		c.restores = append(c.restores, time.Now())
		c.mu.Unlock()
		return nil
	}
	return heal, tool(ctx, "pg_dump", "--format=custom", "--schema=fairlease", "--file="+file)
}

// hangs has a daemon stopped by a signal, and woken.
func hangs(d testcluster.Daemon) func(context.Context, *campaign, int, time.Duration) (func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return c.Thaw(ctx, d) }, c.Freeze(ctx, d)
	}
}

// spoils has slurmrestd's answers spoilt.
func spoils(how string) func(context.Context, *campaign, int, time.Duration) (func(context.Context) error, error) {
	return func(_ context.Context, c *campaign, who int, _ time.Duration) (func(context.Context) error, error) {
		c.proxy.turn(how, 1+who%9, uint64(who)) // one to nine of ten
		return func(context.Context) error { c.proxy.turn("", 0, 0); return nil }, nil
	}
}

// spoilt has a sidecar read a file again that is empty, or cut after its second line, or lacks its mode. It must go on with
// the one that it has.
func (c *campaign) spoilt(s *sidecar, who int) (func(context.Context) error, error) {
	whole, err := os.ReadFile(s.Config)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(whole), "\n")
	text := pickOf([]string{"", strings.Join(lines[:2], ""), strings.Join(lines[1:], "")}, who)
	count := func(message string) int {
		log, _ := os.ReadFile(s.Log)
		return strings.Count(string(log), message)
	}
	const refused, taken = "is not taken over, the old one stays", "configuration taken over"
	wasRefused, wasTaken := count(refused), count(taken)
	if err := os.WriteFile(s.Config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.Signal(syscall.SIGHUP)
	return func(context.Context) error {
		var wrong error
		if count(taken) > wasTaken {
			c.saw("sidecar %s took over the configuration %q", s.name, text)
		} else if count(refused) == wasRefused {
			wrong = fmt.Errorf("sidecar %s has not read the configuration %q", s.name, text)
		}
		err := os.WriteFile(s.Config, whole, 0o600)
		s.Signal(syscall.SIGHUP)
		return errors.Join(wrong, err)
	}, nil
}

// limit sets one of the limits of the account that is hostile, and takes it off later.
func (c *campaign) limit(ctx context.Context, who int) (func(context.Context) error, error) {
	limit := pickOf([]string{"GrpTRES=gres/gpu=%d", "GrpJobs=%d", "MaxTRES=gres/gpu=%d"}, who)
	set := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.users.command(ctx, "root", "sacctmgr", "-iQ", "modify", "account", "nlp", "set", fmt.Sprintf(limit, n))
		}
	}
	return set(-1), set(1 + who%3)(ctx)
}

func (c *campaign) node(who int) string { return fmt.Sprintf("v%d", 1+who%nodes) }

// coldStart starts slurmctld without what it has saved of jobs, nodes and reservations; it stopped at a moment.
func (c *campaign) coldStart(ctx context.Context, stopped time.Time) error {
	if _, err := c.Exec(ctx, "root", "setpriv", "--reuid=slurm", "--regid=slurm", "--init-groups", "slurmctld", "-c"); err != nil {
		return err
	}
	answers := until(ctx, time.Minute, func() bool {
		_, err := c.Exec(ctx, "root", "squeue", "-h")
		return err == nil
	})
	c.mu.Lock()
	c.colds = append(c.colds, Span{stopped, time.Now()})
	c.mu.Unlock()
	if !answers {
		return errors.New("slurmctld does not answer after a cold start")
	}
	return nil
}

func (c *campaign) killed(ctx context.Context, d testcluster.Daemon) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return c.Start(ctx, d) }, c.Kill(ctx, d)
}

// withRecords heals MariaDB and waits until slurmdbd answers; it starts slurmdbd where that has
// ended, as it may without its database. slurmdbd may have lost reports from that time and just
// before.
func (c *campaign) withRecords(heal func(context.Context) error) func(context.Context) error {
	from := time.Now().Add(-unsaved)
	return func(ctx context.Context) error {
		if err := heal(ctx); err != nil {
			return err
		}
		answers := until(ctx, time.Minute, func() bool {
			if !slices.Contains(c.Running(), testcluster.Slurmdbd) {
				c.say("slurmdbd has ended by itself, and is started again")
				if err := c.Start(ctx, testcluster.Slurmdbd); err != nil {
					return false
				}
			}
			asked, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := c.Exec(asked, "root", "sacctmgr", "-n", "list", "cluster")
			return err == nil
		})
		c.mu.Lock()
		c.gaps = append(c.gaps, Span{from, time.Now()})
		c.mu.Unlock()
		if !answers {
			return errors.New("slurmdbd does not answer although MariaDB runs")
		}
		return nil
	}
}

// set gives a node a state, which an administrator ends later; a node that came back by itself is left as it is.
func (c *campaign) set(ctx context.Context, who int, state string) (func(context.Context) error, error) {
	node := c.node(who)
	resume := func(ctx context.Context) error {
		err := c.SetNode(ctx, node, "resume")
		if is, _ := c.NodeState(ctx, node); err != nil && is != "" && !strings.Contains(is, "DOWN") && !strings.Contains(is, "DRAIN") {
			return nil
		}
		return err
	}
	return resume, c.SetNode(ctx, node, state)
}

// full makes every insertion fail as it does when PostgreSQL cannot extend a file, with SQLSTATE 53100, while whatever fits into the pages
// that are there is still written: signs of life keep the lead, and no round can be committed. A disk without room for the write-ahead
// log ends the server instead, which is another fault here.
func full(ctx context.Context, c *campaign, _ int, _ time.Duration) (func(context.Context) error, error) {
	heal := func(ctx context.Context) error { return c.order(ctx, "drop function if exists chaos_full() cascade") }
	return heal, c.order(ctx, `create function chaos_full() returns trigger language plpgsql as $$
		begin raise exception 'could not extend file "base/16384/16385": No space left on device' using errcode = 'disk_full'; end $$`,
		`do $$ declare t record; begin
			for t in select c.oid::regclass as name from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition loop
				execute format('create trigger chaos_full before insert on %s for each statement execute function chaos_full()', t.name);
			end loop; end $$`)
}
