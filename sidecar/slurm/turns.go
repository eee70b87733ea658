package slurm

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// turn suspends or resumes jobs, with one call for many. Slurm sends a suspended job SIGTSTP and stops it after its grace
// (PreemptParameters=suspend_grace_time): beginnings after ends wait for that, so that partners do not run at once.
func (b *batch) turn(ctx context.Context, verb cluster.Verb, actions []cluster.Action, out []cluster.Outcome) {
	if verb == cluster.Resume && b.suspended {
		select {
		case <-ctx.Done():
		case <-time.After(b.client.seen.conf.grace):
		}
	}
	const most = 200 // jobs in one command line
	for from := 0; from < len(actions); from += most {
		to := min(from+most, len(actions))
		b.turnSome(ctx, verb, actions[from:to], out[from:to])
	}
}

func (b *batch) turnSome(ctx context.Context, verb cluster.Verb, actions []cluster.Action, out []cluster.Outcome) {
	var ids []string
	for i := range actions {
		if !actions[i].Suppressed {
			ids = append(ids, actions[i].ID.String())
		}
	}
	why, now, began := b.courier.stopped(), b.client.now(), time.Now()
	var err error
	switch {
	case ctx.Err() != nil:
		err = skip("stopped before its turn")
	case why != "":
		err = skip(why)
	case len(ids) > 0:
		_, err = b.client.scontrol(ctx, string(verb), strings.Join(ids, ","))
		b.courier.heard(err)
		b.suspended = b.suspended || verb == cluster.Suspend
	}
	var refused *Error
	if errors.As(err, &refused) && !refused.Unknown && len(ids) > 1 { // one of them has ended, or its owner was faster
		for i := range actions {
			b.turnSome(ctx, verb, actions[i:i+1], out[i:i+1])
		}
		return
	}
	if refused != nil && !refused.Unknown {
		err = skip(refused.Error())
	}
	took := cluster.SpanOf(time.Since(began))
	for i := range actions {
		if actions[i].Suppressed {
			out[i] = outcomeOf(skip("suppressed"), now, 0)
		} else {
			out[i] = outcomeOf(moot(err), now, took)
		}
	}
}

// graceOf reads how long Slurm lets a suspended job go on from PreemptParameters.
func graceOf(parameters string) time.Duration {
	seconds := 2 // Slurm's own
	for word := range strings.SplitSeq(parameters, ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(word), "suspend_grace_time="); ok {
			if n, err := strconv.Atoi(value); err == nil {
				seconds = min(max(n, 0), longestGrace)
			}
		}
	}
	return time.Duration(seconds) * time.Second
}

// longestGrace is the longest that beginnings of turns wait for, in seconds.
const longestGrace = 30
