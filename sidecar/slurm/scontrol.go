package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// scontrol runs one scontrol command as the configured user. It is expensive (about 10 ms) and
// used only where REST lacks the operation.
func (c *link) scontrol(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	line := append(append([]string(nil), c.cfg.Scontrol...), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "SLURM_TIME_FORMAT=standard", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	err := cmd.Run()
	c.cfg.Called("scontrol_"+args[0], time.Since(began), err)
	if err == nil {
		return out.String(), nil
	}
	e := &Error{Doing: "scontrol " + strings.Join(args, " ")}
	text := strings.Join(strings.Fields(complaint.String()+" "+out.String()), " ")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		e.Err, e.Unknown = fmt.Errorf("did not end in time: %w", ctx.Err()), true
	case !errors.As(err, &exit):
		e.Err = fmt.Errorf("cannot run %s: %w; see slurm.scontrol in fairlease.yaml", line[0], err)
	default:
		e.Code, e.Unknown = complaintCode(text)
		e.Err = errors.New(orSay(text, err.Error()))
	}
	return out.String(), e
}

// complaints are scontrol's messages for errors that we distinguish.
var complaints = []struct {
	words string
	code  int
}{
	{"Invalid job id specified", codeUnknownJob},
	{"Job/step already completing or completed", codeFinished},
	{"Job has already finished", codeJobFinished},
	{"no longer pending execution", codeNotPending},
	{"Requested operation is presently disabled", codeRequeueDisabled},
	{"Reservation is in use", codeResvInUse},
	{"Requested reservation is in use", codeResvInUse},
	{"Requested reservation is invalid", codeUnknownResv},
	{"Duplicate reservation name", codeDuplicateResv},
}

// complaintCode gives Slurm's code for scontrol's message (0 = unknown), and whether the change
// may have been made in spite of it.
func complaintCode(text string) (code int, unknown bool) {
	for _, c := range complaints {
		if strings.Contains(text, c.words) {
			return c.code, false
		}
	}
	lost := strings.Contains(text, "Unable to contact") || strings.Contains(text, "communication") ||
		strings.Contains(text, "timed out") || strings.Contains(text, "Unexpected message")
	return 0, lost
}
