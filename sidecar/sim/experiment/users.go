package experiment

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// userDays counts the days on which users received less than their equal parts inside their tenants.
type userDays struct {
	users        map[userKey]*userDay
	rows         []*userDay // by row of the last ledger
	lacking, due cluster.GPUTime
	score.UserDays
}

type userKey struct{ tenant, user string }

// userDay is a user's present day.
type userDay struct {
	userKey
	day     int64
	now     cluster.UserTime    // of the day
	account cluster.UserAccount // at the last turn
}

// turn reads the accounts of users after a turn. GPU time since the last turn counts for the day of this
// one.
func (d *userDays) turn(ledger *cluster.Ledger) {
	if d.users == nil {
		d.users = map[userKey]*userDay{}
	}
	day := int64(ledger.At.Sub(Start) / cluster.Day)
	for i := range ledger.Users {
		u := &ledger.Users[i]
		key := userKey{u.Tenant, u.User}
		if i == len(d.rows) {
			d.rows = append(d.rows, nil)
		}
		x := d.rows[i]
		if x == nil || x.userKey != key {
			x = d.users[key]
		}
		if x == nil {
			x = &userDay{userKey: key, day: day, account: cluster.UserAccount{Since: u.Since}}
			d.users[key] = x
		}
		d.rows[i] = x
		if x.day != day {
			d.close(x)
			x.day, x.now = day, cluster.UserTime{}
		}
		was := x.account
		if u.Since != was.Since { // a new half window has begun
			x.now.Alloc += u.Before.Alloc - was.Alloc
			x.now.Due += u.Before.Due - was.Due
			was.Alloc, was.Due = 0, 0
		}
		x.now.Alloc += u.Alloc - was.Alloc
		x.now.Due += u.Due - was.Due
		x.account = cluster.UserAccount{Since: u.Since, Alloc: u.Alloc, Due: u.Due}
	}
}

// close counts a user's day.
func (d *userDays) close(x *userDay) {
	if x.now.Due > 0 {
		d.Days++
		d.due += x.now.Due
		d.lacking += max(x.now.Due-x.now.Alloc, 0)
		if cluster.RhoOf(x.now.Alloc, x.now.Due) < cluster.Fair-score.Standard().Tolerance {
			d.Unfair++
		}
	}
}

// result counts the last days, too. It ends the count.
func (d *userDays) result() score.UserDays {
	for _, x := range d.users {
		d.close(x)
	}
	if d.due > 0 {
		d.Lacking = float64(d.lacking) / float64(d.due)
	}
	return d.UserDays
}
