package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Daemon of the cluster; a slurmd is Slurmd(node).
type Daemon string

// The daemons besides slurmd, in the order in which they start.
const (
	Munged     Daemon = "munged"
	MariaDB    Daemon = "mariadbd"
	Slurmdbd   Daemon = "slurmdbd"
	Slurmctld  Daemon = "slurmctld"
	Backup     Daemon = "slurmctld-backup" // with Options.Backup
	Slurmrestd Daemon = "slurmrestd"
)

// Slurmd is the slurmd of a node.
func Slurmd(node string) Daemon { return Daemon("slurmd-" + node) }

func (d Daemon) node() (name string, ok bool) { return strings.CutPrefix(string(d), "slurmd-") }

// Daemons lists all daemons of the cluster in starting order.
func (c *Cluster) Daemons() []Daemon {
	all := []Daemon{Munged, MariaDB, Slurmdbd, Slurmctld, Slurmrestd}
	if c.Options.Backup {
		all = append(all, Backup)
	}
	for _, n := range c.Options.nodeNames() {
		all = append(all, Slurmd(n))
	}
	return all
}

// command starts the daemon in the background and leaves its process id in pidFile; it is a shell line for root.
func (c *Cluster) command(d Daemon) string {
	background := func(user, line string) string {
		return fmt.Sprintf("setsid setpriv --reuid=%[1]s --regid=%[1]s --init-groups %[2]s </dev/null >>/var/log/slurm/%[3]s.log 2>&1 & echo $! >%[4]s",
			user, line, d, inside(d.pidFile()))
	}
	switch d {
	case Munged:
		return "setpriv --reuid=munge --regid=munge --init-groups munged --force --num-threads=2"
	case MariaDB:
		return background("mysql", "mariadbd --defaults-file=/etc/slurm/my.cnf")
	case Slurmdbd:
		return "setpriv --reuid=slurm --regid=slurm --init-groups slurmdbd"
	case Slurmctld, Backup:
		line := "setpriv --reuid=slurm --regid=slurm --init-groups slurmctld"
		// After a kill early in a cluster's life state files are missing, which it takes only with -i. A clean stop removes the pid file.
		if _, err := os.Stat(c.host(d.pidFile())); err == nil || d == Backup {
			line += " -i"
		}
		if c.Options.Clock {
			line = "env " + strings.Join(clockIn("/run"), " ") + " " + line
		}
		if d == Backup {
			line = "unshare --uts sh -c 'hostname backup && exec " + line + " -f /etc/slurm/backup.conf'"
		}
		return line
	case Slurmrestd:
		if c.Options.JWT {
			return background(Operator, "env SLURM_JWT=daemon slurmrestd -a rest_auth/jwt unix:/run/slurmrestd/slurmrestd.sock")
		}
		return background(Operator, "slurmrestd -a rest_auth/local unix:/run/slurmrestd/slurmrestd.sock")
	}
	node, _ := d.node()
	return "slurmd -N " + node
}

// pidFile of a daemon, relative to /run.
func (d Daemon) pidFile() string {
	_, slurmd := d.node()
	switch {
	case d == Munged:
		return "munge/munged.pid"
	case d == Slurmctld, d == Backup, d == Slurmdbd, slurmd:
		return "slurm/" + string(d) + ".pid"
	}
	return "testcluster/" + string(d) + ".pid"
}

func inside(runFile string) string            { return "/run/" + runFile }
func (c *Cluster) host(runFile string) string { return filepath.Join(c.Dir, "run", runFile) }

// Start starts a stopped daemon and waits until it answers.
func (c *Cluster) Start(ctx context.Context, d Daemon) error {
	if err := c.launch(ctx, d); err != nil {
		return err
	}
	return c.await(ctx, d)
}

func (c *Cluster) launch(ctx context.Context, d Daemon) error {
	if pid := c.pid(d); pid != 0 {
		return fmt.Errorf("starting %s: it runs already (process %d inside)", d, pid)
	}
	line := c.box.enter("root")
	if d == Slurmrestd {
		// It refuses clients whose process id it cannot see, so it lives in this machine's process namespace.
		line = c.box.enterBy("root")
	}
	if _, err := c.runLine(ctx, line, "root", c.command(d), "sh"); err != nil {
		return fmt.Errorf("starting %s: %w\n%s", d, err, c.logTail(d))
	}
	return nil
}

// await returns when the daemon answers, or an error with the end of its log.
func (c *Cluster) await(ctx context.Context, d Daemon) error {
	start := time.Now()
	err := poll(ctx, 60*time.Second, func() error {
		err := c.answers(ctx, d)
		if err != nil && time.Since(start) > time.Second && c.pid(d) == 0 {
			return final{fmt.Errorf("it ended: %w", err)}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w\n%s", d, err, c.logTail(d))
	}
	return nil
}

// answers is nil when the daemon does its work.
func (c *Cluster) answers(ctx context.Context, d Daemon) error {
	dial := func(runFile string) error {
		conn, err := net.DialTimeout("unix", c.host(runFile), time.Second)
		if err == nil {
			conn.Close()
		}
		return err
	}
	switch d {
	case Munged:
		return dial("munge/munge.socket.2")
	case MariaDB:
		return dial("mysqld/mysqld.sock")
	case Slurmrestd:
		return dial("slurmrestd/slurmrestd.sock")
	case Slurmdbd:
		_, err := c.Exec(ctx, "root", "sacctmgr", "-n", "list", "cluster")
		return err
	case Slurmctld, Backup:
		out, err := c.Exec(ctx, "root", "scontrol", "ping") // it fails where one of several does not answer
		if c.Options.Backup && err != nil && out != "" {
			err = nil
		}
		host := map[Daemon]string{Slurmctld: "fairlease", Backup: "backup"}[d]
		if err == nil && !strings.Contains(out, "at "+host+" is UP") {
			err = errors.New(strings.TrimSpace(out))
		}
		return err
	}
	node, _ := d.node()
	state, err := c.NodeState(ctx, node)
	if err == nil && (strings.Contains(state, "DOWN") || strings.Contains(state, "UNKNOWN") || strings.Contains(state, "*") || strings.Contains(state, "NOT_RESPONDING")) {
		err = fmt.Errorf("node %s is %s", node, state)
	}
	return err
}

// Stop ends a daemon with SIGTERM and waits until it is gone.
func (c *Cluster) Stop(ctx context.Context, d Daemon) error { return c.end(ctx, d, syscall.SIGTERM) }

// Kill ends a daemon with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(ctx context.Context, d Daemon) error { return c.end(ctx, d, syscall.SIGKILL) }

// Freeze makes a daemon hang with SIGSTOP until Thaw.
func (c *Cluster) Freeze(ctx context.Context, d Daemon) error {
	if err := c.signal(ctx, d, syscall.SIGSTOP); err != nil {
		return err
	}
	// Its threads run on until one of them has seen the signal, and on a busy machine that takes a while.
	process := fmt.Sprintf("/proc/%d", c.pid(d))
	if d != Slurmrestd {
		process = fmt.Sprintf("/proc/%d/root%s", c.box.pid, process)
	}
	for end := time.Now().Add(10 * time.Second); !stopped(process); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s runs on although it was told to stop", d)
		}
	}
	return nil
}

// stopped tells whether all threads of a process in /proc are stopped.
func stopped(process string) bool {
	threads, _ := filepath.Glob(process + "/task/*/stat")
	return len(threads) > 0 && !slices.ContainsFunc(threads, func(path string) bool {
		text, err := os.ReadFile(path) // of one that has ended there is none
		_, state, _ := strings.Cut(string(text), ") ")
		return err == nil && !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z")
	})
}

// Thaw wakes a frozen daemon.
func (c *Cluster) Thaw(ctx context.Context, d Daemon) error {
	return c.signal(ctx, d, syscall.SIGCONT)
}

// Crash has a node fail: its slurmd and all that runs on it end at once.
func (c *Cluster) Crash(ctx context.Context, node string) error {
	if err := c.Kill(ctx, Slurmd(node)); err != nil {
		return err
	}
	// Each step's daemon listens on a socket that is named after the node.
	const script = `end() { local child; for child in $(cat /proc/"$1"/task/*/children); do end "$child"; done; kill -KILL "$1"; }
ss -xlpH | grep -F "/var/spool/slurmd-$1/" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u | while read -r pid; do end "$pid"; done
true`
	_, err := c.Exec(ctx, "root", "bash", "-c", script, "bash", node)
	return err
}

// Boot starts the slurmd of a node that crashed, as after a boot.
func (c *Cluster) Boot(ctx context.Context, node string) error {
	if _, err := c.Exec(ctx, "root", "slurmd", "-b", "-N", node); err != nil {
		return fmt.Errorf("booting node %s: %w", node, err)
	}
	err := poll(ctx, 20*time.Second, func() error {
		if c.pid(Slurmd(node)) == 0 {
			return errors.New("its slurmd does not run")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("booting node %s: %w\n%s", node, err, c.logTail(Slurmd(node)))
	}
	return c.await(ctx, Slurmd(node))
}

// Reconfigure has Slurm read its files again. slurmctld and each slurmd do that by a new process, for which this waits; for a
// slurmd, which may hang or be gone, only a little.
func (c *Cluster) Reconfigure(ctx context.Context) error {
	old := map[Daemon]int{}
	for _, d := range c.Daemons() {
		old[d] = c.pid(d)
	}
	if _, err := c.Exec(ctx, "root", "scontrol", "reconfigure"); err != nil {
		return err
	}
	anew := func(d Daemon) error {
		if pid := c.pid(d); pid == 0 || pid == old[d] {
			return fmt.Errorf("%s has not started itself again", d)
		}
		return nil
	}
	err := poll(ctx, 30*time.Second, func() error { return errors.Join(anew(Slurmctld), c.answers(ctx, Slurmctld)) })
	_ = poll(ctx, 5*time.Second, func() error {
		for _, d := range c.Daemons() {
			if _, slurmd := d.node(); slurmd && old[d] != 0 && anew(d) != nil {
				return anew(d)
			}
		}
		return nil
	})
	return err
}

// Restart stops a daemon and starts it again.
func (c *Cluster) Restart(ctx context.Context, d Daemon) error {
	if err := c.Stop(ctx, d); err != nil {
		return err
	}
	return c.Start(ctx, d)
}

func (c *Cluster) end(ctx context.Context, d Daemon, with syscall.Signal) error {
	if err := c.signal(ctx, d, with); err != nil {
		return err
	}
	return poll(ctx, 60*time.Second, func() error {
		if pid := c.pid(d); pid != 0 {
			return fmt.Errorf("%s (process %d inside) has not ended: %v", d, pid, with)
		}
		return nil
	})
}

func (c *Cluster) signal(ctx context.Context, d Daemon, signal syscall.Signal) error {
	pid := c.pid(d)
	var err error
	switch {
	case pid == 0:
		err = errors.New("it does not run")
	case d == Slurmrestd:
		err = syscall.Kill(pid, signal)
	default:
		_, err = c.Exec(ctx, "root", "kill", fmt.Sprintf("-%d", signal), strconv.Itoa(pid))
	}
	if err != nil {
		return fmt.Errorf("sending %s a signal (%v): %w", d, signal, err)
	}
	return nil
}

// pid of a daemon as its namespace numbers it, 0 when it does not run. Numbers come round again, so the process must also have the right name.
func (c *Cluster) pid(d Daemon) int {
	if d == Slurmrestd {
		return c.box.outsider()
	}
	text, err := os.ReadFile(c.host(d.pidFile()))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	process := fmt.Sprintf("/proc/%d/root/proc/%d", c.box.pid, pid)
	stat, err := os.ReadFile(process + "/stat")
	if err != nil {
		return 0
	}
	// "PID (NAME) STATE …"; while it starts, it may still be what leads to it.
	name, rest, _ := strings.Cut(string(stat), ") ")
	_, name, _ = strings.Cut(name, "(")
	program, _, _ := strings.Cut(string(d), "-")
	name = strings.TrimSuffix(name, "-wlm") // the file's name in Debian, under which a daemon starts itself again to reconfigure
	if strings.HasPrefix(rest, "Z") && !ends(process) || (name != program && name != "setpriv" && name != "setsid" && name != "sh") {
		return 0
	}
	return pid
}

// logTail is the end of a daemon's log, for errors.
func (c *Cluster) logTail(d Daemon) string {
	text, err := os.ReadFile(c.LogFile(d))
	if err != nil {
		return ""
	}
	return "its log ends:\n" + tail(string(text), 12)
}

// LogFile is where this machine sees a daemon's log.
func (c *Cluster) LogFile(d Daemon) string { return filepath.Join(c.Dir, "log", string(d)+".log") }

// Running lists the daemons that run now.
func (c *Cluster) Running() []Daemon {
	var running []Daemon
	for _, d := range c.Daemons() {
		if c.pid(d) != 0 {
			running = append(running, d)
		}
	}
	return running
}
