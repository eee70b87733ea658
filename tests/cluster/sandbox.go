package testcluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed sandbox.sh
var sandboxScript string

// A sandbox is the namespaces of one cluster, alive while its process 1 lives.
type sandbox struct {
	dir      string
	folder   *os.File // dir as it was when this sandbox was made or found: a later cluster may have a folder of the same name
	pid      int      // process 1, as this machine numbers it
	started  string   // its start time, so that a later process with the same number is not taken for it
	lifeline *lifeline
}

// The outer shell outlives process 1 and the owner; it ends slurmrestd, the one daemon outside the process namespace (see
// Cluster.launch), and takes the files and the group of the freezer away.
const outerScript = `unshare --mount --pid --fork --kill-child=KILL --net --uts --ipc -- bash "$1/sandbox.sh" "$@"
pid=$(cat "$1/run/testcluster/slurmrestd.pid" 2>/dev/null) && [ "$(readlink "/proc/$pid/ns/mnt")" = "$(cat "$1/run/namespace")" ] && kill -KILL "$pid"
[ "$5" = - ] || find "$5" -depth -type d -exec rmdir {} +
rm -rf -- "$1"`

// startSandbox makes dir and the namespaces over the tree. The lock on the tree is passed on to the sandbox, and so is one on dir,
// which tells others when the outer shell is through with it.
func startSandbox(ctx context.Context, dir, tree string, lock *os.File, gpus int, attached, freezer bool) (*sandbox, error) {
	for _, sub := range []string{"scratch", "run", "conf", "home", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("making the cluster's folders: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sandbox.sh"), []byte(sandboxScript), 0o644); err != nil {
		return nil, fmt.Errorf("writing the cluster's start script: %w", err)
	}
	complaints, err := os.Create(filepath.Join(dir, "sandbox.log"))
	if err != nil {
		return nil, fmt.Errorf("making the cluster's log: %w", err)
	}
	defer complaints.Close()

	holder, err := lockFile(ctx, dir, syscall.LOCK_EX, io.Discard)
	if err != nil {
		return nil, err
	}
	defer holder.Close()

	life := "detached"
	cmd := exec.Command("/bin/sh", "-c", outerScript, "sh", dir, tree, strconv.Itoa(gpus))
	cmd.Stdout, cmd.Stderr = complaints, complaints
	cmd.ExtraFiles = []*os.File{lock, holder}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the owner
	s := &sandbox{dir: dir}
	if s.folder, err = os.Open(dir); err != nil {
		return nil, fmt.Errorf("opening the cluster's folder: %w", err)
	}
	if attached {
		life = "attached"
		line, reader, err := newLifeline()
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		cmd.Stdin, s.lifeline = reader, line
	}
	group := "-"
	if freezer {
		group = filepath.Join(machineFreezer, "fairlease-"+filepath.Base(dir))
	}
	cmd.Args = append(cmd.Args, life, group)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the cluster's namespaces: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()

	err = poll(ctx, 20*time.Second, func() error {
		select {
		case <-ended:
			return final{fmt.Errorf("the namespaces could not be made:\n%s", tail(contents(complaints), 10))}
		default:
		}
		s.pid, s.started, err = readSupervisor(dir)
		return err
	})
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the session that it leads; it may have ended
		holder.Close()
		return nil, errors.Join(fmt.Errorf("starting the cluster's namespaces: %w", err), s.clear())
	}
	return s, nil
}

// findSandbox returns the living sandbox of dir, or why nothing lives there.
func findSandbox(dir string) (*sandbox, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	pid, started, err := readSupervisor(dir)
	if err != nil {
		folder.Close()
		return nil, err
	}
	return &sandbox{dir: dir, folder: folder, pid: pid, started: started}, nil
}

// clearDead takes away the folder of a sandbox that lives no more, if there is one.
func clearDead(dir string) error {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return (&sandbox{dir: dir, folder: folder}).clear()
}

func readSupervisor(dir string) (pid int, started string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "run", "supervisor"))
	if err != nil {
		return 0, "", err
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, "", fmt.Errorf("reading the supervisor's process id: %w", err)
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return 0, "", err
	}
	if !bytes.Contains(args, []byte(dir+"/sandbox.sh\x00")) {
		return 0, "", fmt.Errorf("process %d is not the supervisor of %s", pid, dir)
	}
	started, err = startTime(pid)
	return pid, started, err
}

// startTime of a process in clock ticks since boot, as text.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

func (s *sandbox) alive() bool {
	started, err := startTime(s.pid)
	return err == nil && started == s.started
}

// machineFreezer is where a machine with cgroups of the first version has its freezer.
const machineFreezer = "/sys/fs/cgroup/freezer"

// HasFreezer tells whether this machine can have clusters with Options.Freezer.
func HasFreezer() bool {
	_, err := os.Stat(filepath.Join(machineFreezer, "release_agent"))
	return err == nil
}

// thaw lets suspended jobs go on that slurmd has frozen: the kernel ends none that is.
func (s *sandbox) thaw() {
	_ = filepath.WalkDir(fmt.Sprintf("/proc/%d/root%s", s.pid, machineFreezer), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "freezer.state" {
			_ = os.WriteFile(path, []byte("THAWED"), 0) // its job may have ended
		}
		return nil
	})
}

// stop ends process 1, with which the kernel ends everything else inside, and returns when the files are gone.
func (s *sandbox) stop() error {
	if s.alive() {
		s.thaw()
		if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending process %d of the cluster: %w", s.pid, err)
		}
	}
	s.lifeline.close()
	err := poll(context.Background(), 10*time.Second, func() error {
		if s.alive() {
			return fmt.Errorf("process %d lives on", s.pid)
		}
		return nil
	})
	if err == nil {
		err = s.clear()
	}
	if err != nil {
		return fmt.Errorf("taking the cluster down: %w", err)
	}
	return nil
}

// clear takes away what a dead sandbox has left, after its outer shell if that still lives. It leaves alone the folder of a cluster
// that has taken the name since.
func (s *sandbox) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer s.folder.Close()
	if err := lock(ctx, s.folder, syscall.LOCK_EX, io.Discard); err != nil {
		return err
	}
	mine, err := s.folder.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(s.dir); err != nil || !os.SameFile(mine, now) {
		return nil
	}
	if pid := s.outsider(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending slurmrestd: %w", err)
		}
	}
	return os.RemoveAll(s.dir)
}

// outsider is the process id of slurmrestd as this machine numbers it, 0 when it does not run.
func (s *sandbox) outsider() int {
	text, err := os.ReadFile(filepath.Join(s.dir, "run", Slurmrestd.pidFile()))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	process := fmt.Sprintf("/proc/%d", pid)
	lives, err := os.Readlink(process + "/ns/mnt")
	if err != nil { // ended, also when nobody has reaped it yet
		if ends(process) {
			return pid
		}
		return 0
	}
	ours, err := os.ReadFile(filepath.Join(s.dir, "run", "namespace"))
	if err != nil || lives != strings.TrimSpace(string(ours)) {
		return 0
	}
	return pid
}

// ends tells whether threads of a process whose first one has ended are still there: they may hold its files and
// listen on its sockets for a moment.
func ends(process string) bool {
	threads, err := os.ReadDir(process + "/task")
	return err == nil && len(threads) > 1
}

// enter is the command line that runs something as a user (of the cluster's tree) inside; its processes end with it.
func (s *sandbox) enter(user string) []string { return s.enterBy(user, "--pid") }

// enterBy is enter with other namespaces besides those for mounts, network and names.
func (s *sandbox) enterBy(user string, more ...string) []string {
	line := append([]string{"nsenter", "--target=" + strconv.Itoa(s.pid), "--mount", "--net", "--uts", "--ipc"}, more...)
	line = append(line, "--", "setpriv",
		"--reuid="+user, "--regid="+user, "--init-groups", "--reset-env", "--pdeathsig=KILL", "--")
	if user != "root" {
		line = append(line, "env", "--chdir=/home/"+user)
	}
	return line
}

// poll calls what until it returns nil or a final error, the context ends or the time is up; then it returns the last error.
func poll(ctx context.Context, limit time.Duration, what func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := what()
		var end final
		if err == nil || errors.As(err, &end) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (gave up: %w)", err, ctx.Err())
		case <-time.After(100 * time.Millisecond): // after it, not every: what may start programs, and sixteen clusters share two cores
		}
	}
}

// final marks an error that waiting does not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// contents of an open file, which may have been removed.
func contents(f *os.File) string {
	var out bytes.Buffer
	_, _ = out.ReadFrom(io.NewSectionReader(f, 0, 1<<20))
	return out.String()
}
