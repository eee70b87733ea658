// Command fairlease-lab simulates as fairlease does, with the schedulers of papers besides (package papers). It is not installed.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ())
	stop()
	os.Exit(code)
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer, env []string) int {
	var file string
	root := &cobra.Command{Use: "fairlease-lab", Short: "simulate schedulers of papers beside fairlease", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringVarP(&file, "config", "c", "", "configuration `FILE` (default: as fairlease)")
	root.AddCommand(simulate.Command(simulate.Program{
		Config: func() (*config.Config, error) { return config.Load(file, env) },
		Session: func(workers int) *session.Session {
			s := &session.Session{Out: out, Errors: errs, Workers: workers}
			if f, ok := errs.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
				s.Terminal = f
			}
			return s
		},
	}))
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own arguments
	root.SetOut(out)
	root.SetErr(errs)
	if err := root.ExecuteContext(ctx); err != nil {
		return failure.Report(errs, err, "see fairlease-lab simulate --help")
	}
	return failure.OK
}
