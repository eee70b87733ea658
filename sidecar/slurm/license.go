package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A site may have a licence for gates in slurm.conf (Licenses=fairlease:1000000). Then each
// waiting job requests one, and all of them are in a reservation that expires by itself. A job
// with a lease no longer requests it.

// PlansLicenses tells whether Slurm's scheduler stops at the first job that lacks a licence
// (bf_licenses). It would stop at the first gate, so begin times must be used.
func PlansLicenses(conf map[string]string) bool {
	return slices.Contains(strings.Split(conf[ConfScheduler], ","), "bf_licenses")
}

// lookLicense reads how many licences for gates exist, and how many are reserved.
func (c *Client) lookLicense(ctx context.Context) error {
	if c.cfg.License == "" || c.seen.plansLicenses {
		return nil
	}
	var seen cluster.License
	_, err := c.list(ctx, c.path("licenses/"), "licenses", 0, func(r *reader) error {
		var l cluster.License
		r.object(func(name string) {
			switch name {
			case "LicenseName":
				l.Name = r.text()
			case "Total":
				l.Total = bounded(r.number().n, mostThings)
			case "Reserved":
				l.Reserved = bounded(r.number().n, mostThings)
			default:
				r.skip()
			}
		})
		if l.Name == c.cfg.License {
			seen = l
		}
		return nil
	}, func() { seen = cluster.License{} })
	if err != nil {
		return err
	}
	if seen != c.seen.last.License {
		c.seen.last.License, c.seen.changed = seen, true
	}
	return nil
}

// lock makes or extends the reservation of all licences for gates. No REST version before 26.05's
// can reserve licences, so it uses scontrol, once per half gate.ttl. The reservation is root's,
// so that no job may request it.
func (c *Client) lock(ctx context.Context, a cluster.Action) error {
	c.seen.reservations.ask = 0
	change := func(there bool) error {
		args := []string{"create", "reservation", "ReservationName=" + a.Reservation, "StartTime=now", "Users=root", "Flags=ANY_NODES"}
		if there {
			args = []string{"update", "reservation", "ReservationName=" + a.Reservation}
		}
		_, err := c.scontrol(ctx, append(args, "Licenses="+a.Licenses, "EndTime="+scontrolTime(a.Until))...)
		return err
	}
	there := c.knowsReservation(a.Reservation)
	err := change(there)
	switch code := codeOf(err); {
	case there && code == codeUnknownResv, !there && (code == codeResvStarted || code == codeDuplicateResv):
		err = change(!there)
	}
	if err != nil {
		return fmt.Errorf("keeping the licences %s for gates: %w", a.Licenses, err)
	}
	return nil
}

// locked gives the licences of a job with a shut gate.
func (c *Client) locked(a cluster.Action) string {
	ours := c.cfg.License + ":1"
	if a.Licenses == "" {
		return ours
	}
	return a.Licenses + "," + ours
}

// licensed adds the new licences to a change of a job.
func (c *Client) licensed(a cluster.Action, ch change) change {
	switch {
	case a.Lock:
		ch["licenses"] = c.locked(a)
	case a.Unlock:
		ch["licenses"] = a.Licenses
	}
	if rec := c.seen.records[a.Record]; (a.Lock || a.Unlock) && rec != nil && len(rec.jobs) > 0 && rec.jobs[0].Stranded {
		ch["hold"] = false
	}
	return ch
}

// putOff tells whether a job's begin time is still in the future, as after a recent requeue.
func (c *Client) putOff(id int64) bool {
	rec := c.seen.records[id]
	return rec == nil || len(rec.jobs) == 0 || rec.jobs[0].Eligible > c.now()
}
