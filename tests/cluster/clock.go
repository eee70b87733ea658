package testcluster

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed preload/clock.c
var clockSource string

// compileClock is the command line that reads the source and makes the library at a path.
func compileClock(to string) []string {
	return []string{"gcc", "-O1", "-shared", "-fPIC", "-o", to, "-x", "c", "-"}
}

// clockIn gives the environment of a daemon whose clock the files in a folder move.
func clockIn(dir string) []string {
	return []string{"LD_PRELOAD=" + filepath.Join(dir, "clock.so"), "CLOCK_FILE=" + filepath.Join(dir, "clock")}
}

// moveClock writes by how much the daemons are ahead whose clock is in a folder. It overwrites in place, for they have mapped the file.
func moveClock(dir string, by time.Duration) error {
	f, err := os.OpenFile(filepath.Join(dir, "clock"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("moving a clock: %w", err)
	}
	defer f.Close()
	return binary.Write(f, binary.NativeEndian, int64(by/time.Second))
}

// installClock gives slurmctld a clock that MoveClock moves.
func (c *Cluster) installClock(ctx context.Context) error {
	if err := moveClock(c.host(""), 0); err != nil {
		return err
	}
	_, err := c.run(ctx, "root", clockSource, compileClock("/run/clock.so")...)
	return err
}

// MoveClock has slurmctld's clock differ by whole seconds from this machine's, if Options.Clock was set.
func (c *Cluster) MoveClock(by time.Duration) error { return moveClock(c.host(""), by) }

// PreloadClock restarts the server with a clock that MoveClock moves.
func (p *Postgres) PreloadClock(ctx context.Context) error {
	if err := moveClock(p.Dir, 0); err != nil {
		return err
	}
	line := compileClock(filepath.Join(p.Dir, "clock.so"))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdin = strings.NewReader(clockSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling PostgreSQL's clock: %w: %s", err, out)
	}
	if err := p.Stop(ctx); err != nil {
		return err
	}
	p.env = clockIn(p.Dir)
	return p.Start(ctx)
}

// MoveClock has the server's clock differ by whole seconds from this machine's, after PreloadClock.
func (p *Postgres) MoveClock(by time.Duration) error { return moveClock(p.Dir, by) }
