package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Postgres is a private PostgreSQL on a unix socket with an empty database fairlease. Committed
// data survives the server, killed or not, but not the machine (fsync=off).
type Postgres struct {
	Dir string // data, log and socket

	owner    *syscall.Credential // nil: this process's own user
	env      []string            // more of the server's environment
	lifeline *lifeline
}

// StartPostgres makes and starts a server below dir, which must be new or empty; "" makes a temporary one. Down removes it. It ends
// with this process, however that ends. As root it runs as user postgres, else as oneself.
func StartPostgres(ctx context.Context, dir string) (*Postgres, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "fl-pg-")
		if err != nil {
			return nil, fmt.Errorf("making a folder for PostgreSQL: %w", err)
		}
		dir = made
	}
	return newPostgres(ctx, dir, true)
}

// PostgresUp is StartPostgres for a named server that outlives this process, until PostgresDown.
func PostgresUp(ctx context.Context, name string) (*Postgres, error) {
	dir, err := postgresDir(name)
	if err != nil {
		return nil, err
	}
	if (&Postgres{Dir: dir}).pid() != 0 {
		return nil, fmt.Errorf("PostgreSQL %s is up already: take it down first, or choose another name", name)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clearing away the dead PostgreSQL %s: %w", name, err)
	}
	return newPostgres(ctx, dir, false)
}

// PostgresDown ends a named server and removes its files; one that is not there is no error.
func PostgresDown(name string) error {
	dir, err := postgresDir(name)
	if err != nil {
		return err
	}
	return (&Postgres{Dir: dir}).Down()
}

func postgresDir(name string) (string, error) {
	if !plain.MatchString(name) {
		return "", fmt.Errorf("name %q: use lower case letters, digits, - and _, a letter first", name)
	}
	return filepath.Join(os.TempDir(), "fairlease-pg-"+name), nil
}

func newPostgres(ctx context.Context, dir string, attached bool) (*Postgres, error) {
	if len(filepath.Join(dir, ".s.PGSQL.5432.lock")) > 107 {
		return nil, fmt.Errorf("%s is too long for a unix socket's path: choose a shorter folder", dir)
	}
	p := &Postgres{Dir: dir}
	if err := p.own(); err != nil {
		return nil, err
	}
	if err := p.init(ctx); err != nil {
		return nil, errors.Join(err, p.Down())
	}
	if attached {
		if err := p.watch(); err != nil {
			return nil, errors.Join(err, p.Down())
		}
	}
	if err := p.Start(ctx); err != nil {
		return nil, errors.Join(err, p.Down())
	}
	if err := p.tool(ctx, "createdb", "--host="+dir, "--username=postgres", "fairlease"); err != nil {
		return nil, errors.Join(err, p.Down())
	}
	return p, nil
}

// own makes the folder and gives it to the user that the server runs as.
func (p *Postgres) own() error {
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return fmt.Errorf("making a folder for PostgreSQL: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root and there is no user postgres: run `apt-get install postgresql`: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return fmt.Errorf("user postgres has id %q: %w", account.Uid, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return fmt.Errorf("user postgres has group %q: %w", account.Gid, err)
	}
	p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.Dir, int(uid), int(gid)); err != nil {
		return fmt.Errorf("giving PostgreSQL its folder: %w", err)
	}
	return os.Chmod(p.Dir, 0o755) // a temporary folder is its maker's alone
}

func (p *Postgres) init(ctx context.Context) error {
	err := p.tool(ctx, "initdb", "--pgdata="+p.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("listen_addresses = ''\nunix_socket_directories = '%s'\nfsync = off\n"+
		"full_page_writes = off\nshared_buffers = 32MB\nmax_connections = 300\nautovacuum_naptime = 10s\n", p.Dir)
	return p.set(settings)
}

// set appends to postgresql.conf.
func (p *Postgres) set(settings string) error {
	f, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(settings)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing PostgreSQL's settings: %w", err)
	}
	return nil
}

// Standby makes and starts a server that follows this one, asynchronously, until Promote. It has its clock and its life.
func (p *Postgres) Standby(ctx context.Context) (*Postgres, error) {
	dir, err := os.MkdirTemp("", "fl-pg-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for PostgreSQL: %w", err)
	}
	s := &Postgres{Dir: dir, env: p.env}
	err = s.own()
	if err == nil {
		err = s.tool(ctx, "pg_basebackup", "--host="+p.Dir, "--username=postgres", "--pgdata="+s.data(), "--checkpoint=fast", "--write-recovery-conf", "--no-sync")
	}
	if err == nil {
		err = s.set(fmt.Sprintf("unix_socket_directories = '%s'\n", dir))
	}
	if err == nil {
		err = s.watch()
	}
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Down())
	}
	return s, nil
}

// Deaf ends a standby's replication: commits of its primary from now on are lost with that.
func (p *Postgres) Deaf(ctx context.Context) error {
	for _, command := range []string{"alter system set primary_conninfo = ''", "select pg_reload_conf()"} {
		if err := p.tool(ctx, "psql", "--host="+p.Dir, "--username=postgres", "--quiet", "--command="+command); err != nil {
			return err
		}
	}
	return poll(ctx, 20*time.Second, func() error {
		// Fails while there is a receiver.
		return p.tool(ctx, "psql", "--host="+p.Dir, "--username=postgres", "--quiet", "--command=select 1 / (count(*) = 0)::int from pg_stat_wal_receiver", "--set=ON_ERROR_STOP=1")
	})
}

// Promote makes a standby a primary.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.tool(ctx, "pg_ctl", "promote", "--pgdata="+p.data(), "--silent", "--wait")
}

// watchScript waits for its owner's end, then ends the server by its process id and removes its files.
const watchScript = `read -r _
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && grep -qsF -- "$1/data" "/proc/$pid/cmdline"; then
	kill -QUIT "$pid"
	while [ -e "/proc/$pid" ]; do sleep 0.1; done
fi
rm -rf -- "$1"`

func (p *Postgres) watch() error {
	line, reader, err := newLifeline()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd := exec.Command("/bin/sh", "-c", watchScript, "sh", p.Dir)
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		line.close()
		return fmt.Errorf("starting PostgreSQL's watcher: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	p.lifeline = line
	return nil
}

// DSN is the address of the empty database, for pgx and psql; its user may do anything.
func (p *Postgres) DSN() string {
	return "postgres:///fairlease?host=" + url.QueryEscape(p.Dir) + "&user=postgres"
}

// Start starts a stopped or killed server and waits until it answers.
func (p *Postgres) Start(ctx context.Context) error {
	err := p.tool(ctx, "pg_ctl", "start", "--pgdata="+p.data(), "--log="+filepath.Join(p.Dir, "log"), "--silent", "--wait")
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(p.Dir, "log"))
		return fmt.Errorf("%w\nits log ends:\n%s", err, tail(string(log), 8))
	}
	return nil
}

// Stop ends the server and the sessions that it has.
func (p *Postgres) Stop(ctx context.Context) error {
	return p.tool(ctx, "pg_ctl", "stop", "--pgdata="+p.data(), "--mode=fast", "--silent", "--wait")
}

// Kill ends the server with SIGKILL and waits until it and its sessions are gone.
func (p *Postgres) Kill(ctx context.Context) error {
	pid := p.pid()
	if pid == 0 {
		return errors.New("killing PostgreSQL: it does not run")
	}
	sessions, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil {
		return fmt.Errorf("killing PostgreSQL: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing PostgreSQL: %w", err)
	}
	err = poll(ctx, 10*time.Second, func() error {
		for _, session := range strings.Fields(string(sessions)) {
			if args, err := os.ReadFile("/proc/" + session + "/cmdline"); err == nil && len(args) > 0 {
				return fmt.Errorf("PostgreSQL's process %s has not ended", session)
			}
		}
		if p.pid() != 0 {
			return errors.New("PostgreSQL has not ended")
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Where nobody reaps it soon, a dead server's number is still taken, and the next one would believe it alive.
	for _, lock := range []string{filepath.Join(p.data(), "postmaster.pid"), filepath.Join(p.Dir, ".s.PGSQL.5432.lock")} {
		if err := os.Remove(lock); err != nil {
			return fmt.Errorf("killing PostgreSQL: %w", err)
		}
	}
	return nil
}

// Freeze has the server and its sessions hang.
func (p *Postgres) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw wakes a frozen server.
func (p *Postgres) Thaw() error { return p.signal(syscall.SIGCONT) }

// signal sends the server and its sessions a signal.
func (p *Postgres) signal(s syscall.Signal) error {
	pid := p.pid()
	if pid == 0 {
		return fmt.Errorf("sending PostgreSQL a signal (%v): it does not run", s)
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("sending PostgreSQL a signal (%v): %w", s, err)
	}
	sessions, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	for _, session := range strings.Fields(string(sessions)) {
		if n, bad := strconv.Atoi(session); bad == nil {
			_ = syscall.Kill(n, s) // it may have ended just now
		}
	}
	if err != nil {
		return fmt.Errorf("sending PostgreSQL's sessions a signal (%v): %w", s, err)
	}
	return nil
}

// Down ends the server and removes its files.
func (p *Postgres) Down() error {
	if pid := p.pid(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending PostgreSQL: %w", err)
		}
	}
	p.lifeline.close()
	err := poll(context.Background(), 10*time.Second, func() error {
		if p.pid() != 0 {
			return errors.New("PostgreSQL has not ended")
		}
		return os.RemoveAll(p.Dir)
	})
	if err != nil {
		return fmt.Errorf("taking PostgreSQL down: %w", err)
	}
	return nil
}

// pid of the server, 0 when it does not run.
func (p *Postgres) pid() int {
	text, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(args), p.data()) {
		return 0
	}
	return pid
}

func (p *Postgres) data() string { return filepath.Join(p.Dir, "data") }

// tool runs one of PostgreSQL's programs as the server's user.
func (p *Postgres) tool(ctx context.Context, name string, args ...string) error {
	path, err := PostgresTool(name)
	if err != nil {
		return err
	}
	output, err := os.CreateTemp("", "fl-pg-tool-") // no pipe: a started server would hold it open
	if err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	defer os.Remove(output.Name())
	defer output.Close()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = p.Dir
	cmd.Stdout, cmd.Stderr = output, output
	if name == "pg_ctl" && args[0] == "start" {
		cmd.Env = append(os.Environ(), p.env...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Setsid: true}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w: %s", name, err, tail(contents(output), 8))
	}
	return nil
}

// PostgresTool finds a program of the newest installed PostgreSQL; Debian keeps the server's out of PATH.
func PostgresTool(name string) (string, error) {
	found, newest := "", 0
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, folder := range folders {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		if _, missing := os.Stat(filepath.Join(folder, name)); err == nil && missing == nil && version > newest {
			found, newest = filepath.Join(folder, name), version
		}
	}
	if found != "" {
		return found, nil
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("PostgreSQL's %s is not installed: run `apt-get install postgresql`", name)
	}
	return path, err
}
