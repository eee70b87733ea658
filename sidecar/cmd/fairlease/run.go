package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/session"
)

// Run is the whole program: it parses and executes args and returns the exit code. env is a list
// of KEY=value. It ends soon after ctx does.
func Run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, env []string) int {
	p := &program{out: out, err: errs, env: env, clock: time.Now, poll: 2 * time.Second}
	return p.run(ctx, args, in)
}

func (p *program) run(ctx context.Context, args []string, in io.Reader) int {
	p.in = in
	root := rootCommand(p)
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own arguments
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return failure.OK
	}
	help := "see fairlease help"
	if c.HasParent() {
		help = "see " + c.CommandPath() + " --help"
	}
	return failure.Report(p.err, err, help)
}

// program is one run.
type program struct {
	in       io.Reader
	out, err io.Writer
	env      []string
	clock    func() time.Time
	poll     time.Duration // between two looks at running jobs

	file string // --config
}

func (p *program) getenv(name string) string {
	for _, kv := range slices.Backward(p.env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// config reads the effective configuration.
func (p *program) config() (*config.Config, error) {
	if p.file == inForce {
		return p.given()
	}
	c, err := config.Load(p.file, p.env)
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

// reach reads the configuration for a command that needs some sections only: mistakes elsewhere in the file are told, and do not matter. Users who may
// not read the site's file have the defaults.
func (p *program) reach(sections ...string) (*config.Config, error) {
	if p.file == inForce {
		return p.given()
	}
	c, err := reachQuietly(p, sections...)
	switch {
	case err == nil:
	case c == nil:
		return nil, p.badConfig(err)
	default:
		fmt.Fprintf(p.err, "fairlease: the configuration file has a mistake, so it is not in force as it is: %s\n", config.Fault(err))
	}
	return c, nil
}

// reachQuietly is reach without a word: the error is that of the file, and c is nil if it cannot be used.
func reachQuietly(p *program, sections ...string) (*config.Config, error) {
	c, err := config.Reach(p.file, p.env, sections...)
	if errors.Is(err, fs.ErrPermission) && p.file == "" {
		return config.Parse("", nil, p.env)
	}
	return c, err
}

// siteKeys tell where a command finds the state of the site.
var siteKeys = []string{"database", "web", "slurm.jwt"}

// given reads the configuration that a daemon has in force.
func (p *program) given() (*config.Config, error) {
	var t config.Texts
	err := json.NewDecoder(p.in).Decode(&t)
	var c *config.Config
	if err == nil {
		c, err = t.Load(p.env)
	}
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "the configuration on the standard input cannot be used", Err: err, Next: "name a file: --config FILE"}
	}
	return c, nil
}

// configInForce is config for commands that compute with what is in force. It says where the file differs from that.
func (p *program) configInForce() (*config.Config, error) {
	c, err := p.config()
	if err != nil || p.file == inForce {
		return c, err
	}
	if keys := c.Differs(); len(keys) > 0 {
		fmt.Fprintf(p.err, "fairlease: computed with %s, but the daemon of this host has other values in force of %s; fairlease config accept shows whether a change waits\n", p.configFile(), view.Some(keys, 5))
	}
	return c, nil
}

// configFile names the file that config reads; "" = none.
func (p *program) configFile() string {
	for _, path := range []string{p.file, p.getenv("FAIRLEASE_CONFIG")} {
		if path != "" {
			return path
		}
	}
	if _, err := os.Stat(config.DefaultPath); err != nil {
		return ""
	}
	return config.DefaultPath
}

func (p *program) badConfig(err error) error {
	return &failure.Error{Code: failure.Misuse, What: "the configuration cannot be used", Err: err,
		Next: "correct the file; etc/fairlease.yaml explains every key"}
}

func (p *program) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// colours tells whether the output is a terminal and colours are not disabled.
func (p *program) colours() bool {
	f, ok := p.out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// paint colours text for a terminal.
func (p *program) paint(text, how string) string { return p.page(view.Form{}).Paint(text, how) }

// terminal is the standard error if it is a terminal; else nil.
func (p *program) terminal() io.Writer {
	if f, ok := p.err.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

func (p *program) zone() *time.Location {
	if z, err := time.LoadLocation(p.getenv("TZ")); err == nil && p.getenv("TZ") != "" {
		return z
	}
	return time.Local
}

func (p *program) now() cluster.Instant { return cluster.InstantOf(p.clock()) }

// session gives the environment of experiments.
func (p *program) session(workers int) *session.Session {
	return &session.Session{Out: p.out, Errors: p.err, Terminal: p.terminal(), Workers: workers}
}
