package failure_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/failure"
)

// An error is worded by what happened and by the cause at its bottom, not by the layers between.
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
