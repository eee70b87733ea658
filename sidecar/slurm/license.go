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

// lookLicenses reads how many licences for gates exist and are reserved, and the counts of the licences that waiting jobs ask
// for. It comes after the jobs: a grant that starts between the two counts twice for one look, and never not at all. Without a
// licence for gates, and without jobs that ask for one, it asks nothing.
func (c site) lookLicenses(ctx context.Context) error {
	s := &c.seen
	gated := c.cfg.License != "" && !s.conf.plansLicenses
	if s.changed {
		s.asked = s.requested()
	}
	if !gated && len(s.asked) == 0 {
		replace(&s.last.Limits.Licenses, nil, &s.changed)
		return nil
	}
	var gate cluster.License
	var site []cluster.LicenseCount
	_, err := c.list(ctx, c.path("licenses/"), "licenses", 0, func(r *reader) error {
		l, reserved, ofNodes := readLicense(r)
		switch {
		case r.junk != "" || ofNodes:
		case l.Name == c.cfg.License:
			gate = cluster.License{Name: l.Name, Total: l.Total, Reserved: reserved}
		case slices.Contains(s.asked, l.Name):
			l.Reserved = s.reservedLicenses(l.Name)
			site = append(site, l)
		}
		return nil
	}, func() { gate, site = cluster.License{}, nil })
	if err != nil && gated {
		return err
	}
	if err != nil {
		c.notes.add("licences in use are not known: jobs that wait for them are found by grants that do not start: %v", err)
		site = nil
	}
	if gated && gate != s.last.License {
		s.last.License, s.changed = gate, true
	}
	slices.SortFunc(site, func(a, b cluster.LicenseCount) int { return strings.Compare(a.Name, b.Name) })
	replace(&s.last.Limits.Licenses, site, &s.changed)
	return nil
}

// readLicense reads a licence, how many of it are reserved now, and whether it is one of certain nodes only.
func readLicense(r *reader) (l cluster.LicenseCount, reserved int64, ofNodes bool) {
	r.object(func(name string) {
		switch name {
		case "LicenseName":
			l.Name = r.text()
		case "Total":
			l.Total = bounded(r.number().n, mostThings)
		case "Used":
			l.Used = bounded(r.number().n, mostThings)
		case "Reserved":
			reserved = bounded(r.number().n, mostThings)
		case "Remote":
			l.Remote = r.flag()
		case "LastDeficit":
			l.Deficit = bounded(r.number().n, mostThings)
		case "Nodes":
			ofNodes = r.text() != ""
		default:
			r.skip()
		}
	})
	return l, reserved, ofNodes
}

// requested gives the names of the licences that waiting jobs ask for, sorted.
func (s *seen) requested() []string {
	var names []string
	last := ""
	for _, rec := range s.records {
		if len(rec.jobs) == 0 || rec.jobs[0].Licenses == "" || rec.jobs[0].State != cluster.Waiting || rec.jobs[0].Licenses == last {
			continue
		}
		last = rec.jobs[0].Licenses
		needs, _ := cluster.ParseLicenses(last)
		for _, n := range needs {
			if !slices.Contains(names, n.Name) {
				names = append(names, n.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// reservedLicenses gives what reservations keep of a licence.
func (s *seen) reservedLicenses(name string) []cluster.ReservedLicenses {
	var out []cluster.ReservedLicenses
	for i := range s.last.Reservations {
		v := &s.last.Reservations[i]
		needs, _ := cluster.ParseLicenses(v.Licenses)
		for _, n := range needs {
			if n.Name == name {
				out = append(out, cluster.ReservedLicenses{Reservation: v.Name, Count: n.Count, Start: v.Start, End: v.End})
			}
		}
	}
	return out
}

// lock makes or extends the reservation of all licences for gates. No REST version before 26.05's
// can reserve licences, so it uses scontrol, once per half gate.ttl. The reservation is root's,
// so that no job may request it.
func (c gates) lock(ctx context.Context, a cluster.Action) error {
	c.seen.reservations.ask = 0
	change := func(there bool) error {
		args := []string{"create", "reservation", "ReservationName=" + a.Reservation, "StartTime=now", "Users=root", "Flags=ANY_NODES"}
		if there {
			args = []string{"update", "reservation", "ReservationName=" + a.Reservation}
		}
		_, err := c.scontrol(ctx, append(args, "Licenses="+a.Licenses, "EndTime="+scontrolTime(a.Until))...)
		return err
	}
	there := reservations(c).knowsReservation(a.Reservation)
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
func (c gates) locked(a cluster.Action) string {
	ours := c.cfg.License + ":1"
	if a.Licenses == "" {
		return ours
	}
	return a.Licenses + "," + ours
}

// licensed adds the new licences to a change of a job.
func (c gates) licensed(a cluster.Action, ch change) change {
	switch {
	case a.Lock:
		ch["licenses"] = c.locked(a)
	case a.Unlock:
		ch["licenses"] = a.Licenses
	}
	if rec := c.seen.records[a.Record]; rec != nil && len(rec.jobs) > 0 && rec.jobs[0].Stranded {
		ch["hold"] = false
	}
	return ch
}

// putOff tells whether a job's begin time is still in the future, as after a recent requeue.
func (c gates) putOff(id int64) bool {
	rec := c.seen.records[id]
	return rec == nil || len(rec.jobs) == 0 || rec.jobs[0].Eligible > c.now()
}
