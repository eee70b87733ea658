package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// JournalFailed words an error of the journal, unless it is worded already.
func JournalFailed(err error) error {
	if err == nil || failure.Worded(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return &failure.Error{Code: failure.No, What: "the journal could not be read or written", Err: err, Next: OrRole(err, "")}
}

// OrRole says what to do about an error: get a role with the missing right, or otherwise.
func OrRole(err error, otherwise string) string {
	if errors.Is(err, store.ErrDenied) {
		return "ask an administrator for a role that may do that (see ROLES in fairlease(1))"
	}
	return otherwise
}

// SlurmAway says that Slurm cannot be reached.
func SlurmAway(c *config.Config, err error) error {
	return &failure.Error{Code: failure.Absent, What: "Slurm does not answer at " + c.Slurm.Address, Err: err,
		Next: "check that slurmrestd and slurmctld run, and that slurm.address in the configuration is right; `fairlease doctor` checks more"}
}

// RoundFailed words the error of a round.
func RoundFailed(cfg *config.Config, err error) error {
	switch {
	case failure.Worded(err) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, daemon.ErrCells), errors.Is(err, daemon.ErrCluster), errors.Is(err, daemon.ErrDropped):
		return Mismatch(err)
	case errors.Is(err, daemon.ErrClock):
		return &failure.Error{Code: failure.No, What: "no round was made", Err: err}
	case errors.Is(err, loop.ErrJournal):
		return JournalFailed(err)
	case strings.HasPrefix(err.Error(), "look at the cluster"):
		return SlurmAway(cfg, err)
	}
	return &failure.Error{Code: failure.No, What: "no round could be made", Err: err}
}

// Mismatch words the error of cells or of a journal that do not belong to this Slurm, and of a configuration that
// was probably cut. It returns other errors unchanged.
func Mismatch(err error) error {
	if errors.Is(err, daemon.ErrCluster) {
		var other *store.AnotherError
		if errors.As(err, &other) {
			err = other
		}
		return &failure.Error{Code: failure.Misuse, What: daemon.ErrCluster.Error(), Err: err,
			Next: "give every cluster a schema of its own (database.schema, then fairlease migrate), or correct slurm.address; if this is the same cluster, renamed or installed again: fairlease repair cluster"}
	}
	var wrong config.Problems
	if errors.Is(err, daemon.ErrDropped) && errors.As(err, &wrong) {
		return &failure.Error{Code: failure.Misuse, What: daemon.ErrDropped.Error(), Err: wrong,
			Next: "restore the file (an empty list, or the default, is a value, too); if it is meant as it is: fairlease config accept"}
	}
	if !errors.Is(err, daemon.ErrCells) || !errors.As(err, &wrong) {
		return err
	}
	return &failure.Error{Code: failure.Misuse, What: daemon.ErrCells.Error(), Err: wrong, Next: "correct the file, or Slurm; then run `fairlease cells check`"}
}

// NoWindow words why the journal does not cover a window.
func NoWindow(err error, date func(time.Time) string) error {
	var w *store.WindowError
	switch {
	case errors.Is(err, store.ErrNone):
		return &failure.Error{Code: failure.No, What: "the journal has no round yet, so there is nothing to compare",
			Next: "run the daemon in mode observe for some days: systemctl start fairlease, or fairlease serve"}
	case errors.As(err, &w) && w.Pruned:
		return &failure.Error{Code: failure.No, What: "the journal does not go back that far", Err: fmt.Errorf("snapshots of rounds before %s are pruned", date(w.Oldest)),
			Next: "leave --since out, or choose that time or a later one; database.keep_rounds sets how long they are kept"}
	case errors.As(err, &w):
		return &failure.Error{Code: failure.No, What: "the window has fewer than two rounds", Err: fmt.Errorf("the journal covers %s to %s", date(w.Oldest), date(w.Newest)),
			Next: "choose --since and --until within that"}
	}
	return err
}
