package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Cluster is one running Slurm.
type Cluster struct {
	Name    string
	Dir     string // its run-time files on this machine
	Options Options

	box *sandbox
}

// Up boots a cluster and returns when every node is idle. A dead cluster of the same name is cleared away first; a living
// one is an error.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cluster options: %w", err)
	}
	if err := requirements(); err != nil {
		return nil, err
	}
	tree, lock, err := ensureBase(ctx, o.Cache, o.Suite, o.Progress)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	c, err := create(ctx, o, tree, lock)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := c.boot(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("booting cluster %s: %w", c.Name, err), c.Down())
	}
	fmt.Fprintf(o.Progress, "cluster %s: Slurm of Debian %s with %d nodes is up after %.1f s\n", c.Name, o.Suite, len(o.nodeNames()), time.Since(start).Seconds())
	return c, nil
}

// requirements that no package of the tree can fill.
func requirements() error {
	if os.Geteuid() != 0 {
		return errors.New("a test cluster needs root (it makes namespaces and mounts): run as root")
	}
	for _, tool := range []string{"unshare", "nsenter", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed: run `apt-get install util-linux bash`, then try again", tool)
		}
	}
	return nil
}

// create makes the cluster's folder and namespaces, alone on this machine while it does.
func create(ctx context.Context, o Options, tree string, lock *os.File) (*Cluster, error) {
	alone, err := lockFile(ctx, filepath.Join(o.Cache, "clusters.lock"), syscall.LOCK_EX, o.Progress)
	if err != nil {
		return nil, err
	}
	defer alone.Close()
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of clusters: %w", err)
	}
	if o.Name == "" {
		for i := 1; ; i++ {
			o.Name = fmt.Sprintf("t%d", i)
			if _, err := os.Lstat(filepath.Join(o.Dir, o.Name)); err != nil {
				break
			}
		}
	}
	dir := filepath.Join(o.Dir, o.Name)
	if len(filepath.Join(dir, "run/slurmrestd/slurmrestd.sock")) > 107 {
		return nil, fmt.Errorf("%s is too long for a unix socket's path: choose a shorter folder", dir)
	}
	if _, err := findSandbox(dir); err == nil {
		return nil, fmt.Errorf("cluster %s is up already: take it down first, or choose another name", o.Name)
	}
	if err := clearDead(dir); err != nil {
		return nil, fmt.Errorf("clearing away the dead cluster %s: %w", o.Name, err)
	}
	if o.Freezer && !HasFreezer() {
		return nil, ErrNoFreezer
	}
	box, err := startSandbox(ctx, dir, tree, lock, o.mostGPUs(), o.Attached, o.Freezer)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: o.Name, Dir: dir, Options: o, box: box}
	record, err := json.MarshalIndent(o, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "options.json"), record, 0o644)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("recording the cluster's options: %w", err), c.Down())
	}
	return c, nil
}

// ErrNoFreezer tells that this machine cannot have a cluster with Options.Freezer.
var ErrNoFreezer = errors.New("suspended jobs can be frozen only where the machine has the freezer of cgroup v1")

// boot turns an empty root into a running Slurm.
func (c *Cluster) boot(ctx context.Context) error {
	pluginDir, err := c.Exec(ctx, "root", "sh", "-c", "dirname /usr/lib/*/slurm-wlm/job_submit_lua.so")
	if err != nil {
		return err
	}
	for name, text := range c.Options.files(strings.TrimSpace(pluginDir)) {
		if err := os.WriteFile(filepath.Join(c.Dir, "conf", name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if _, err := c.run(ctx, "root", c.Options.prepareScript(), "sh"); err != nil {
		return fmt.Errorf("preparing the root: %w", err)
	}
	for _, d := range []Daemon{MariaDB, Munged} {
		if err := c.launch(ctx, d); err != nil {
			return err
		}
	}
	if err := c.installPlugin(ctx, strings.TrimSpace(pluginDir)); err != nil {
		return err
	}
	if c.Options.Clock {
		if err := c.installClock(ctx); err != nil {
			return err
		}
	}
	if c.Options.JWT {
		if err := c.installJWT(ctx, strings.TrimSpace(pluginDir)); err != nil {
			return err
		}
	}
	for _, d := range []Daemon{MariaDB, Munged} {
		if err := c.await(ctx, d); err != nil {
			return err
		}
	}
	// slurmdbd comes before the first slurmctld: that one fetches its cluster's id.
	if err := c.Start(ctx, Slurmdbd); err != nil {
		return err
	}
	if _, err := c.run(ctx, "root", c.Options.accountScript(), "sh"); err != nil {
		return fmt.Errorf("adding accounts: %w", err)
	}
	rest := c.Daemons()[3:]
	for _, d := range rest {
		if err := c.launch(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range rest {
		if err := c.await(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Open finds a living cluster by its name; dir and cache may be empty as in Options.
func Open(name, dir string) (*Cluster, error) {
	o, err := Options{Name: name, Dir: dir}.withDefaults()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, name)
	box, err := findSandbox(path)
	if err != nil {
		return nil, fmt.Errorf("no cluster %s runs below %s: %w", name, o.Dir, err)
	}
	record, err := os.ReadFile(filepath.Join(path, "options.json"))
	if err == nil {
		err = json.Unmarshal(record, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what cluster %s is: %w", name, err)
	}
	return &Cluster{Name: name, Dir: path, Options: o, box: box}, nil
}

// Down ends every process of the cluster and removes its files; what it held on disk, its mounts and its network go with it.
func (c *Cluster) Down() error {
	err := c.box.stop()
	os.Remove(filepath.Dir(c.Dir)) // succeeds for the last cluster only
	return err
}

// DownByName is Down for a cluster by name, which may be half dead; one that is not there is no error.
func DownByName(name, dir string) error {
	o, err := Options{Name: name, Dir: dir}.withDefaults()
	if err != nil {
		return err
	}
	path := filepath.Join(o.Dir, name)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	alone, err := lockFile(context.Background(), filepath.Join(o.Cache, "clusters.lock"), syscall.LOCK_EX, o.Progress)
	if err != nil {
		return err
	}
	defer alone.Close()
	box, err := findSandbox(path)
	if err != nil {
		if err := clearDead(path); err != nil {
			return fmt.Errorf("clearing away the dead cluster %s: %w", name, err)
		}
		os.Remove(o.Dir) // succeeds for the last cluster only
		return nil
	}
	return (&Cluster{Name: name, Dir: path, box: box}).Down()
}

// Alive tells whether the cluster's process 1 lives.
func (c *Cluster) Alive() bool { return c.box.alive() }

// RestSocket is slurmrestd's unix socket on this machine.
func (c *Cluster) RestSocket() string { return c.host("slurmrestd/slurmrestd.sock") }

// HeartbeatDir is where this machine puts the heartbeat files that the plugin looks at, one a partition.
func (c *Cluster) HeartbeatDir() string { return c.host("fairlease") }

// Home of a user on this machine; inside it is /home/USER.
func (c *Cluster) Home(user string) string { return filepath.Join(c.Dir, "home", user) }

// Scontrol is the command line of scontrol as the operator, for fairlease's configuration; it holds while the cluster is up.
func (c *Cluster) Scontrol() []string { return c.Command(Operator, "scontrol") }

// Command is the command line that runs argv as a user of the cluster, to be started by root on this machine.
func (c *Cluster) Command(user string, argv ...string) []string {
	return append(c.box.enter(user), argv...)
}

// Output of a command.
type Output struct{ Stdout, Stderr string }

// Run runs argv as a user with stdin; a failing command is an error that holds what it wrote to stderr.
func (c *Cluster) Run(ctx context.Context, user, stdin string, argv ...string) (Output, error) {
	return c.run(ctx, user, stdin, argv...)
}

// Exec is Run without input that returns standard output.
func (c *Cluster) Exec(ctx context.Context, user string, argv ...string) (string, error) {
	out, err := c.run(ctx, user, "", argv...)
	return out.Stdout, err
}

func (c *Cluster) run(ctx context.Context, user, stdin string, argv ...string) (Output, error) {
	return c.runLine(ctx, c.box.enter(user), user, stdin, argv...)
}

func (c *Cluster) runLine(ctx context.Context, line []string, user, stdin string, argv ...string) (Output, error) {
	line = append(line, argv...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	out := Output{stdout.String(), stderr.String()}
	if err != nil {
		return out, fmt.Errorf("%s (as %s): %w: %s", strings.Join(argv, " "), user, err, strings.TrimSpace(out.Stderr))
	}
	return out, nil
}
