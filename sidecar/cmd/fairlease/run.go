package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/explain"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// What the program's exit code means.
const (
	exitOK     = 0
	exitNo     = 1 // it failed, or the answer is no: a finding, a difference, nothing there
	exitUsage  = 2 // the command line or the configuration is wrong
	exitAbsent = 3 // Slurm or PostgreSQL cannot be reached
)

// Run is the whole program: it parses args, does what they say and gives the exit
// code. env is a list of KEY=value. It ends soon after ctx does.
func Run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, env []string) int {
	p := &program{out: out, err: errs, env: env, clock: time.Now, poll: 2 * time.Second}
	return p.run(ctx, args, in)
}

func (p *program) run(ctx context.Context, args []string, in io.Reader) int {
	root := p.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	return p.complain(c, err)
}

// program is one run.
type program struct {
	out, err io.Writer
	env      []string
	clock    func() time.Time
	poll     time.Duration // between two looks at jobs that run

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

// config reads the configuration in force.
func (p *program) config() (*config.Config, error) {
	c, err := config.Load(p.file, p.env)
	if err != nil {
		return nil, p.badConfig(err)
	}
	return c, nil
}

// configFile names the file that config reads; "" where there is none.
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
	return &failure{code: exitUsage, what: "the configuration cannot be used", err: err,
		next: "correct the file; etc/fairlease.yaml explains every key"}
}

func (p *program) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// colours tells whether the output is for eyes: a terminal, and nobody minds.
func (p *program) colours() bool {
	f, ok := p.out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// words makes sentences as of now, in the local time zone.
func (p *program) words(now cluster.Instant, job func(cluster.JobKey) string) explain.Words {
	return explain.Words{Now: now, Zone: p.zone(), Job: job}
}

func (p *program) zone() *time.Location {
	if z, err := time.LoadLocation(p.getenv("TZ")); err == nil && p.getenv("TZ") != "" {
		return z
	}
	return time.Local
}

func (p *program) now() cluster.Instant { return cluster.InstantOf(p.clock()) }

// failure is an error as its user reads it: what happened, why, and what next.
type failure struct {
	code int
	what string
	err  error // why; nil where what says it all
	next string
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.what
	}
	return f.what + ": " + cause(f.err)
}

func (f *failure) Unwrap() error { return f.err }

// quiet is an exit code without a word: the output has said it.
type quiet int

func (q quiet) Error() string { return fmt.Sprintf("exit code %d", int(q)) }

// usage says that a command line is wrong, of which the command's help has more.
func usage(what string) error { return &failure{code: exitUsage, what: what, next: seeHelp} }

// seeHelp stands for: see the help of the command that was given.
const seeHelp = "see --help"

// complain tells the user about the error of a command and gives the exit code.
func (p *program) complain(c *cobra.Command, err error) int {
	var q quiet
	var f *failure
	switch {
	case errors.As(err, &q):
		return int(q)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(p.err, "fairlease: interrupted")
		return exitNo
	case !errors.As(err, &f):
		// cobra's own: the command line
		f = &failure{code: exitUsage, what: err.Error(), next: seeHelp}
	}
	fmt.Fprintf(p.err, "fairlease: %s\n", f.what)
	if f.err != nil {
		for line := range strings.Lines(cause(f.err)) {
			fmt.Fprintf(p.err, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	switch {
	case f.next == seeHelp && c.HasParent():
		fmt.Fprintf(p.err, "next: see %s --help\n", c.CommandPath())
	case f.next == seeHelp:
		fmt.Fprintf(p.err, "next: see fairlease help\n")
	case f.next != "":
		fmt.Fprintf(p.err, "next: %s\n", f.next)
	}
	return f.code
}

// cause gives what is at the bottom of an error, which is what people can act on;
// the layers above it say what was being done, and that has been said.
func cause(err error) string {
	var network *net.OpError
	var refused *pgconn.PgError
	var answer *slurm.Error
	switch {
	case errors.As(err, &network):
		return network.Error()
	case errors.As(err, &refused):
		return "PostgreSQL says: " + refused.Message
	case errors.As(err, &answer):
		return answer.Error()
	}
	return err.Error()
}
