package failure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// An error shows what happened and its innermost cause, without the layers between.
func TestErrorsSayTheirCause(t *testing.T) {
	refused := &pgconn.PgError{Message: "permission denied for table rounds", Code: "42501"}
	dial := &net.OpError{Op: "dial", Net: "unix", Err: errors.New("no such file")}
	for _, c := range []struct {
		err  *failure.Error
		want string
	}{
		{&failure.Error{What: "no round was made"}, "no round was made"},
		{&failure.Error{What: "no round was made", Err: errors.New("x")}, "no round was made: x"},
		{&failure.Error{What: "the journal could not be read", Err: fmt.Errorf("read the newest round: %w", refused)},
			"the journal could not be read: PostgreSQL says: permission denied for table rounds"},
		{&failure.Error{What: "Slurm does not answer", Err: fmt.Errorf("look: %w", dial)}, "Slurm does not answer: dial unix: no such file"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if c.err.Err != nil && !errors.Is(c.err, c.err.Err) {
			t.Errorf("%q hides its cause", c.want)
		}
	}
}

func TestWorded(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {context.Canceled, false}, {failure.Quiet(failure.No), true}, {failure.Usage("--task %d", 3), true},
		{fmt.Errorf("while writing: %w", failure.Unwritten("x", errors.New("no"))), true},
	} {
		if got := failure.Worded(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// A report says what happened, why and what to do next, and gives the exit code.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{failure.Quiet(failure.Absent), failure.Absent, ""},
		{fmt.Errorf("look: %w", context.Canceled), failure.No, "fairlease: interrupted\n"},
		{errors.New("unknown flag: --foo"), failure.Misuse, "fairlease: unknown flag: --foo\nnext: see x --help\n"},
		{failure.Usage("--task %d", 3), failure.Misuse, "fairlease: --task 3\nnext: see x --help\n"},
		{&failure.Error{Code: failure.No, What: "no"}, failure.No, "fairlease: no\n"},
		{&failure.Error{Code: failure.Absent, What: "no", Err: errors.New("a\nb\n"), Next: "wait"}, failure.Absent, "fairlease: no\n  a\n  b\nnext: wait\n"},
	} {
		var out bytes.Buffer
		if code := failure.Report(&out, c.err, "see x --help"); code != c.code || out.String() != c.want {
			t.Errorf("%v: exit code %d, %q; want %d, %q", c.err, code, &out, c.code, c.want)
		}
	}
}
