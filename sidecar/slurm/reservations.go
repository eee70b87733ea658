package slurm

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// reservationFlags: IGNORE_JOBS, since the nodes are busy when it is made. FLEX, or its end would
// kill the jobs in it. NO_HOLD_JOBS_AFTER_END, or its end would hold a job that still waits for
// it. OVERLAP, so that one node can be handed over twice in a row.
var reservationFlags = []string{"IGNORE_JOBS", "FLEX", "NO_HOLD_JOBS_AFTER_END", "OVERLAP"}

// reserve makes the reservation, or changes an existing one. It may have changed since the last
// look, so the other request is tried too.
func (c reservations) reserve(ctx context.Context, a cluster.Action) error {
	c.seen.reservations.ask = 0
	reserve := c.reserveByREST
	if !c.speech.version.reserves() {
		reserve = c.reserveByScontrol
	}
	there := c.knowsReservation(a.Reservation)
	err := reserve(ctx, a, !there)
	switch code := codeOf(err); {
	case there && code == codeUnknownResv, !there && (code == codeResvStarted || code == codeDuplicateResv):
		return reserve(ctx, a, there)
	}
	return err
}

func (c reservations) reserveByREST(ctx context.Context, a cluster.Action, create bool) error {
	body := map[string]any{
		"name":      a.Reservation,
		"accounts":  a.Accounts,
		"node_list": a.Nodes,
		"end_time":  beginAt(a.Until),
	}
	if create { // changing the start time of a started reservation is refused
		body["start_time"] = beginNow(c.now())
		body["flags"] = reservationFlags
	}
	return c.rest.put(ctx, http.MethodPost, c.path("reservation"), body, nil)
}

func (c reservations) reserveByScontrol(ctx context.Context, a cluster.Action, create bool) error {
	args := []string{
		"update", "reservation",
		"ReservationName=" + a.Reservation,
		"Accounts=" + strings.Join(a.Accounts, ","),
		"Nodes=" + strings.Join(a.Nodes, ","),
		"EndTime=" + scontrolTime(a.Until),
	}
	if create {
		args[0] = "create"
		args = append(args, "StartTime=now", "Flags="+strings.Join(reservationFlags, ","))
	}
	_, err := c.scontrol(ctx, args...)
	return err
}

func (c reservations) knowsReservation(name string) bool {
	for _, r := range c.seen.last.Reservations {
		if r.Name == name {
			return true
		}
	}
	return false
}

// release removes a running job from its reservation, so that the reservation can be deleted
// while the job continues.
func (c reservations) release(ctx context.Context, a cluster.Action) error {
	ch := gates(c).licensed(a, change{"reservation": ""})
	if c.cfg.SiteFactor != 0 {
		ch["site_factor"] = siteFactor(a.SiteFactor)
	}
	err := c.update(ctx, a.Record, ch)
	var moved skip
	if err != nil && !errors.As(err, &moved) {
		return err
	}
	err = c.deleteReservation(ctx, a.Reservation)
	if codeOf(err) == codeResvInUse {
		return nil // by another beneficiary, whose release deletes it
	}
	return err
}

// unreserve deletes a reservation after taking it from all jobs that name it.
func (c reservations) unreserve(ctx context.Context, a cluster.Action) error {
	for _, id := range slices.Sorted(maps.Keys(c.seen.records)) {
		if c.seen.records[id].resv != a.Reservation {
			continue
		}
		c.touch(id)
		err := c.update(ctx, id, change{"reservation": ""})
		var moved skip
		if err != nil && !errors.As(err, &moved) {
			return err
		}
	}
	return c.deleteReservation(ctx, a.Reservation)
}

func (c reservations) deleteReservation(ctx context.Context, name string) error {
	c.seen.reservations.ask = 0
	var err error
	if c.speech.version.reserves() {
		err = c.rest.put(ctx, http.MethodDelete, c.path("reservation/%s", url.PathEscape(name)), nil, nil)
	} else {
		_, err = c.scontrol(ctx, "delete", "reservation="+name)
	}
	if codeOf(err) == codeUnknownResv {
		return nil // gone already
	}
	return err
}
