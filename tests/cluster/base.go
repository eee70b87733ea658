package testcluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// packages of a base tree; make and gcc build the plugin against this Slurm's headers; jobs run python3; the last three are for an installed fairlease.
const packages = "munge,slurmctld,slurmd,slurmdbd,slurmrestd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin," +
	"libslurm-dev,mariadb-server,gcc,libc6-dev,make,procps,iproute2,python3,systemd,postgresql,coinor-libclp1"

//go:embed base.sh
var baseScript string

// mirrorVariable names an environment variable with a Debian mirror for those who cannot reach mmdebstrap's default.
const mirrorVariable = "FAIRLEASE_DEBIAN_MIRROR"

// ensureBase returns the tree of the suite, made first if the cache has none for today's recipe. Close the lock when the
// tree is no longer used: while anybody holds it, nobody prunes the tree.
func ensureBase(ctx context.Context, cache, suite string, progress io.Writer) (tree string, lock *os.File, err error) {
	recipe := sha256.Sum256([]byte(suite + packages + baseScript))
	home := filepath.Join(cache, "base")
	name := fmt.Sprintf("%s-%x", suite, recipe[:6])
	dir := filepath.Join(home, name)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", nil, fmt.Errorf("making the cache of base trees: %w", err)
	}
	suiteLock, err := lockFile(ctx, filepath.Join(home, suite+".lock"), syscall.LOCK_EX, progress)
	if err != nil {
		return "", nil, err
	}
	defer suiteLock.Close()
	if _, err := os.Stat(dir); err != nil {
		if err := buildBase(ctx, home, name, suite, progress); err != nil {
			return "", nil, err
		}
	}
	pruneBases(home, suite, name)
	lock, err = lockFile(ctx, dir, syscall.LOCK_SH, progress)
	return filepath.Join(dir, "tree"), lock, err
}

// buildBase makes the tree beside its place and moves it there when it is whole. The caller holds the suite's lock.
func buildBase(ctx context.Context, home, name, suite string, progress io.Writer) error {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return errors.New("mmdebstrap is not installed: run `apt-get install mmdebstrap`, then try again")
	}
	building, err := os.MkdirTemp(home, ".building-"+suite+"-")
	if err != nil {
		return fmt.Errorf("making a place for the %s tree: %w", suite, err)
	}
	defer os.RemoveAll(building)
	script := filepath.Join(building, "base.sh")
	if err := os.WriteFile(script, []byte(baseScript), 0o755); err != nil {
		return fmt.Errorf("writing the tree's script: %w", err)
	}
	args := []string{"--mode=root", "--variant=minbase", "--include=" + packages, "--customize-hook=" + script,
		// forky's and snapshots' Release files can be past their date.
		`--aptopt=Acquire::Check-Valid-Until "false"`, `--aptopt=Acquire::Retries "3"`,
		suite, filepath.Join(building, "tree")}
	if mirror := os.Getenv(mirrorVariable); mirror != "" {
		args = append(args, mirror)
	}
	fmt.Fprintf(progress, "making a Debian %s tree with Slurm (once, about half a minute)\n", suite)
	start := time.Now()
	var out bytes.Buffer
	// Its own mount namespace: whatever it mounts is gone when it ends, even by a kill.
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--", "mmdebstrap"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it unmounts before it ends
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return baseError(suite, out.String(), err)
	}
	if err := os.Chmod(building, 0o755); err != nil {
		return fmt.Errorf("opening the %s tree: %w", suite, err)
	}
	if err := os.Rename(building, filepath.Join(home, name)); err != nil {
		return fmt.Errorf("putting the %s tree in its place: %w", suite, err)
	}
	fmt.Fprintf(progress, "made it in %.0f s\n", time.Since(start).Seconds())
	return nil
}

var (
	lostPackage = regexp.MustCompile(`(?m)Unable to locate package (\S+)|Package '?([^' ]+)'? has no installation candidate`)
	lostMirror  = regexp.MustCompile(`(?m)^.*(Could not resolve|Unable to connect|Could not connect|Failed to fetch|Connection (failed|timed out)).*$`)
)

// baseError turns mmdebstrap's output into what happened and what to do.
func baseError(suite, out string, err error) error {
	if m := lostPackage.FindStringSubmatch(out); m != nil {
		return fmt.Errorf("making the %s tree: the mirror has no package %s: name another mirror in %s", suite, m[1]+m[2], mirrorVariable)
	}
	if m := lostMirror.FindString(out); m != "" {
		return fmt.Errorf("making the %s tree: the mirror does not answer (%s): check the network, or name another mirror in %s", suite, strings.TrimSpace(m), mirrorVariable)
	}
	return fmt.Errorf("making the %s tree: mmdebstrap: %w\n%s", suite, err, tail(out, 30))
}

// pruneBases removes half-made trees and, unless a cluster stands on them, those of older recipes. The caller holds the suite's lock.
func pruneBases(home, suite, keep string) {
	broken, _ := filepath.Glob(filepath.Join(home, ".building-"+suite+"-*"))
	old, _ := filepath.Glob(filepath.Join(home, suite+"-*"))
	for _, dir := range append(broken, old...) {
		if filepath.Base(dir) == keep {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}

// lockFile takes a lock on a file (made if need be) or a folder; the lock ends with the last copy of the file handle. It says so when it has to wait.
func lockFile(ctx context.Context, path string, how int, progress io.Writer) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := lock(ctx, f, how, progress); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lock locks an open file, waiting until it is free.
func lock(ctx context.Context, f *os.File, how int, progress io.Writer) error {
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !told {
			fmt.Fprintf(progress, "waiting for another process that holds %s\n", f.Name())
			told = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", f.Name(), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail is the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// EnsureBase makes the base tree of a suite now, so that a later Up need not.
func EnsureBase(ctx context.Context, suite string, progress io.Writer) error {
	o, err := Options{Suite: suite, Progress: progress}.withDefaults()
	if err != nil {
		return err
	}
	if err := requirements(); err != nil {
		return err
	}
	_, lock, err := ensureBase(ctx, o.Cache, o.Suite, o.Progress)
	if err != nil {
		return err
	}
	return lock.Close()
}
