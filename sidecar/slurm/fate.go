package slurm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// A slurmctld that hangs carries out pending requests when it continues, however late; REST has
// no expiry for a request. So few changes are in flight while there is no answer, and none is
// sent long after its decision.
const (
	// lostMax is the number of unanswered changes after which the rest of a plan is dropped.
	lostMax = 3
	// planLife is how long after its look a plan's changes are still sent. The rest is dropped.
	planLife = time.Minute
)

// courier decides whether the changes of a plan may still be sent. It is safe for concurrent use.
type courier struct {
	until time.Time
	lost  atomic.Int32 // unanswered changes
}

// stopped says why no more is sent; "" = continue. The next round looks first, and acts on what
// is still needed.
func (c *courier) stopped() string {
	switch {
	case c.lost.Load() >= lostMax:
		return "dropped: Slurm did not answer to changes of this round; the next one looks first"
	case time.Now().After(c.until):
		return "dropped: the plan is more than a minute old; the next round looks first"
	}
	return ""
}

// heard records the result of a change.
func (c *courier) heard(err error) {
	if unanswered(err) {
		c.lost.Add(1)
	}
}

// unanswered tells whether slurmctld appears not to have answered a request.
func unanswered(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Unheard || e.Unknown && !refused(e.Code))
}

// looked checks in the job's record whether a change was made that slurmctld refused. Some
// refusals, such as 2015 for a job whose partition has changed, come after the change. It returns
// nil if all of it was made, else the error, with Unknown set unless none of it was made.
func (c *link) looked(ctx context.Context, record int64, ch change, err error) error {
	var e *Error
	if !errors.As(err, &e) || !refused(e.Code) || !e.Unknown {
		return err
	}
	all, readErr := c.readRecord(ctx, record)
	at := slices.IndexFunc(all, func(w wireJob) bool { return w.id == record })
	if readErr != nil || at < 0 {
		return err
	}
	made, missed := 0, 0
	for field := range ch {
		if done, told := c.shows(&all[at], field, ch); !told {
			continue
		} else if done {
			made++
		} else {
			missed++
		}
	}
	switch {
	case made > 0 && missed == 0:
		return nil
	case made == 0 && missed > 0:
		e.Unknown = false
	}
	return err
}

// shows tells whether a record shows the change of a field, and whether records show that field.
func (c *link) shows(w *wireJob, field string, ch change) (done, told bool) {
	switch field {
	case "begin_time":
		want, ok := ch[field].(map[string]any)["number"].(int64)
		if now := int64(c.now()) / 1000; want <= now {
			return w.eligible <= now, ok
		}
		return w.eligible == want, ok
	case "required_nodes":
		want, ok := ch[field].([]string)
		have, err := hostlist.Expand(w.required)
		want, wrong := hostlist.Expand(strings.Join(without(want), ","))
		return err == nil && wrong == nil && slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(want))), ok
	case "reservation":
		return w.resv == ch[field], true
	}
	return false, false
}

// without drops the empty name that clears a node list.
func without(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return strings.TrimSpace(n) == "" })
}
