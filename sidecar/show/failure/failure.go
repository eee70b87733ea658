// Package failure holds errors in words for the user: what happened, why, and what to do next.
// Every command of fairlease ends with one of them or with nil. The error's code is the program's
// exit code.
package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Exit codes of the program.
const (
	OK     = 0
	No     = 1 // failure, or a negative answer: a finding, a difference, an empty result
	Misuse = 2 // the command line or the configuration is wrong
	Absent = 3 // Slurm or PostgreSQL cannot be reached
)

// SeeHelp as the next step refers to the help of the given command.
const SeeHelp = "see --help"

// Error is an error in words for the user.
type Error struct {
	Code int    // exit code
	What string // the event
	Err  error  // why; nil if What is sufficient
	Next string // next step; may be empty
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + Cause(e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Usage says that a command line is wrong, and refers to the command's help.
func Usage(format string, args ...any) error {
	return &Error{Code: Misuse, What: fmt.Sprintf(format, args...), Next: SeeHelp}
}

// Quiet is an exit code without a message: the output is sufficient.
type Quiet int

func (q Quiet) Error() string { return fmt.Sprintf("exit code %d", int(q)) }

// Worded tells whether an error is complete: it is worded, or quiet.
func Worded(err error) bool {
	var e *Error
	var q Quiet
	return errors.As(err, &e) || errors.As(err, &q)
}

// Unwritten says that a file or folder cannot be written.
func Unwritten(path string, err error) error {
	return &Error{Code: No, What: path + " cannot be written", Err: err, Next: "choose a place that you may write to"}
}

// Cause gives the innermost error, which is the actionable one. The layers above it say what was
// being done, which is in Error.What.
func Cause(err error) string {
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

// Report prints a command's error and gives the exit code. An error without words is one of the
// command line; help says how to see the command's help.
func Report(out io.Writer, err error, help string) int {
	var q Quiet
	var e *Error
	switch {
	case errors.As(err, &q):
		return int(q)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(out, "fairlease: interrupted")
		return No
	case !errors.As(err, &e):
		e = &Error{Code: Misuse, What: err.Error(), Next: SeeHelp}
	}
	fmt.Fprintf(out, "fairlease: %s\n", e.What)
	if e.Err != nil {
		for line := range strings.Lines(Cause(e.Err)) {
			fmt.Fprintf(out, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	switch e.Next {
	case "":
	case SeeHelp:
		fmt.Fprintf(out, "next: %s\n", help)
	default:
		fmt.Fprintf(out, "next: %s\n", e.Next)
	}
	return e.Code
}
