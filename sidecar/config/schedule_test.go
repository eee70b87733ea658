package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
)

const nights = `
lease: {term: 15m, min: 5m}
schedules:
  - name: night
    at: "0 20 * * 1-5"
    for: 12h
    zone: Europe/Berlin
    set:
      lease: {term: 1h}
      reclaim: {max: 20}
  - name: weekend
    at: 0 0 * * 6
    for: 2d
    zone: Europe/Berlin
    set: {preset: gandiva-fair, lease: {term: 2h}}
`

// The settings are those of the first schedule of the file that is in force.
func TestSchedules(t *testing.T) {
	c, err := config.Parse("f.yaml", []byte(nights), nil)
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 10, day, hour, minute, 0, 0, berlin) } // the 19th is a Monday
	for _, x := range []struct {
		at     time.Time
		name   string // "" = none
		until  time.Time
		term   cluster.Span
		preset string
	}{
		{at(19, 19, 59), "", time.Time{}, 15 * cluster.Minute, "astraea"},
		{at(19, 20, 0), "night", at(20, 8, 0), cluster.Hour, "astraea"},
		{at(20, 7, 59), "night", at(20, 8, 0), cluster.Hour, "astraea"},
		{at(20, 8, 0), "", time.Time{}, 15 * cluster.Minute, "astraea"},
		{at(24, 1, 0), "night", at(24, 8, 0), cluster.Hour, "astraea"}, // Saturday: the night of Friday is first in the file
		{at(24, 8, 0), "weekend", at(24, 0, 0).Add(48 * time.Hour), 2 * cluster.Hour, "gandiva-fair"},
		{at(25, 22, 59), "weekend", at(24, 0, 0).Add(48 * time.Hour), 2 * cluster.Hour, "gandiva-fair"}, // clocks go back on the 25th
		{at(26, 0, 0), "", time.Time{}, 15 * cluster.Minute, "astraea"},
	} {
		with, schedule := c.InForce(x.at)
		if s := with.Settings(); s.Term != x.term || s.Preset != x.preset || s.MinLease != 5*cluster.Minute {
			t.Errorf("%s: term %s, preset %s, min %s, want %s, %s and 5m", x.at, s.Term, s.Preset, s.MinLease, x.term, x.preset)
		}
		switch {
		case x.name == "" && schedule != nil, x.name != "" && (schedule == nil || schedule.Name != x.name):
			t.Errorf("%s: in force is %+v, want %q", x.at, schedule, x.name)
		case schedule != nil && schedule.Until != cluster.InstantOf(x.until):
			t.Errorf("%s: %s until %s, want %s", x.at, schedule.Name, schedule.Until, x.until)
		}
	}
	_, night := c.InForce(at(19, 20, 0))
	if night.Sets != "lease.term 1h, reclaim.max 20" {
		t.Errorf("night sets %q", night.Sets)
	}
}

// A schedule begins when its time comes: at the end of the hour that clocks skip, and once in the hour that they show twice.
func TestSchedulesWhenClocksChange(t *testing.T) {
	for _, x := range []struct{ at, zone, begins, again string }{ // begins, and not again at the other time
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-24T01:00:00+03:00", "2026-04-24T02:00:00+03:00"},
		{"0 0 * * *", "Asia/Beirut", "2026-03-29T01:00:00+03:00", "2026-03-29T02:00:00+03:00"},
		{"0 0 * * *", "America/Santiago", "2026-09-06T01:00:00-03:00", "2026-09-06T02:00:00-03:00"},
		{"45 2 * * *", "Australia/Lord_Howe", "2026-10-04T02:45:00+11:00", "2026-10-04T03:15:00+11:00"},
	} {
		c, err := config.Parse("f.yaml", []byte("tune: {at: '"+x.at+"', zone: "+x.zone+"}\nschedules: [{name: s, at: '"+x.at+"', for: 20m, zone: "+x.zone+", set: {users: equal}}]"), nil)
		if err != nil {
			t.Fatal(err)
		}
		begin, err := time.Parse(time.RFC3339, x.begins)
		if err != nil {
			t.Fatal(err)
		}
		again, err := time.Parse(time.RFC3339, x.again)
		if err != nil {
			t.Fatal(err)
		}
		for at, want := range map[time.Time]bool{
			begin.Add(-time.Second): false, begin: true, begin.Add(20*time.Minute - 1): true, begin.Add(20 * time.Minute): false, again: false,
		} {
			_, schedule := c.InForce(at)
			if (schedule != nil) != want || schedule != nil && schedule.Until != cluster.InstantOf(begin.Add(20*time.Minute)) {
				t.Errorf("%s in %s at %s: in force is %+v, want %t", x.at, x.zone, at, schedule, want)
			}
			if c.Tune.Due(at) != at.Equal(begin) {
				t.Errorf("%s in %s at %s: tuning is due: %t", x.at, x.zone, at, c.Tune.Due(at))
			}
		}
	}
}

// A schedule that begins anew before it is over lasts on.
func TestAScheduleThatBeginsAnew(t *testing.T) {
	c, err := config.Parse("f.yaml", []byte("schedules: [{name: day, at: '*/10 8-9 * * *', for: 3h, zone: UTC, set: {recall: {first_lease: false}}}]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, schedule := c.InForce(time.Date(2026, 10, 19, 10, 0, 0, 0, time.UTC))
	if want := cluster.InstantOf(time.Date(2026, 10, 19, 12, 50, 0, 0, time.UTC)); schedule == nil || schedule.Until != want {
		t.Errorf("in force is %+v, want until %s", schedule, want)
	}
	if with, schedule := c.InForce(time.Date(2026, 10, 19, 12, 50, 0, 0, time.UTC)); schedule != nil || with != c {
		t.Errorf("%+v is in force when it is over", schedule)
	}
}

// Each mistake in a schedule is reported with its line, also settings that do not go together while it is in force.
func TestWrongSchedules(t *testing.T) {
	for _, x := range []struct{ was, is, want string }{
		{"name: night", "name: weekend", `schedules[1].name: "weekend" is no name, or is there twice; give each schedule a name of its own`},
		{"name: night", `name: ""`, `schedules[0].name: "" is no name`},
		{`"0 20 * * 1-5"`, "20:00", `schedules[0].at: "20:00" is no time; write minute, hour, day of the month, month and day of the week, such as "0 20 * * 1-5" for 20:00 from Monday to Friday`},
		{`"0 20 * * 1-5"`, `"@every 1h"`, `schedules[0].at: "@every 1h" is no time`},
		{`"0 20 * * 1-5"`, `"CRON_TZ=UTC 0 20 * * *"`, `is no time`},
		{`"0 20 * * 1-5"`, `"0 0 30 2 *"`, `schedules[0].at: "0 0 30 2 *" never comes; correct the day or the month`},
		{"for: 12h", "for: 0s", "schedules[0].for: must be 1m to 31d, got 0s"},
		{"for: 12h", "for: 365d", "schedules[0].for: must be 1m to 31d, got 365d"},
		{"Europe/Berlin\n    set:\n", "Europe/Atlantis\n    set:\n", `schedules[0].zone: "Europe/Atlantis" is no time zone; write one like Europe/Berlin, or UTC`},
		{"{preset: gandiva-fair, lease: {term: 2h}}", "{}", "schedules[1].set: changes nothing; write the keys that hold for the time, such as {lease: {term: 1h}}"},
		{"reclaim: {max: 20}", "reclaim: {maximum: 20}", "f.yaml:10: schedules[0].set.reclaim.maximum: unknown key"},
		{"reclaim: {max: 20}", "slurm: {retries: 3}", "f.yaml:10: schedules[0].set.slurm.retries: cannot change by a schedule; these can: preset, lease,"},
		{"reclaim: {max: 20}", "mode: act", "f.yaml:10: schedules[0].set.mode: cannot change by a schedule"},
		{"{preset: gandiva-fair, lease: {term: 2h}}", "[a, b]", "schedules[1].set: keys are expected here, as in `mode: value`"},
		{"lease: {term: 1h}", "lease: {term: 2m}", "schedules[0].set.lease.min: 5m is longer than lease.term (2m, f.yaml:9); shorten one or lengthen the other (while schedule night is in force)"},
		{"reclaim: {max: 20}", "reclaim: {max: -1}", "schedules[0].set.reclaim.max: must be 0 (no limit) or more, got -1 (while schedule night is in force)"},
	} {
		text := strings.Replace(nights, x.was, x.is, 1)
		if text == nights {
			t.Fatalf("%q is not in the file", x.was)
		}
		if _, err := config.Parse("f.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q instead of %q: %v, want %s", x.is, x.was, err, x.want)
		}
	}
}
