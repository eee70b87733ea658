package localtime_test

import (
	"testing"
	"time"
	_ "time/tzdata" // for hosts without zones

	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
)

func TestDate(t *testing.T) {
	for _, x := range []struct {
		zone                       string
		year, month, day, hour, mn int
		want                       string
	}{
		{"UTC", 2026, 3, 29, 2, 30, "2026-03-29T02:30:00Z"},
		{"Europe/Berlin", 2026, 3, 28, 2, 30, "2026-03-28T02:30:00+01:00"},
		{"Europe/Berlin", 2026, 3, 29, 2, 0, "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", 2026, 3, 29, 2, 30, "2026-03-29T03:00:00+02:00"}, // skipped
		{"Europe/Berlin", 2026, 3, 29, 3, 0, "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", 2026, 10, 25, 2, 0, "2026-10-25T02:00:00+02:00"}, // the first of two
		{"Europe/Berlin", 2026, 10, 25, 3, 0, "2026-10-25T03:00:00+01:00"},
		{"Africa/Cairo", 2026, 4, 24, 0, 0, "2026-04-24T01:00:00+03:00"},
		{"Asia/Beirut", 2026, 3, 29, 0, 0, "2026-03-29T01:00:00+03:00"},
		{"America/Santiago", 2026, 9, 6, 0, 0, "2026-09-06T01:00:00-03:00"},
		{"America/Santiago", 2026, 4, 4, 23, 30, "2026-04-04T23:30:00-03:00"},
		{"America/Santiago", 2026, 4, 5, 0, 0, "2026-04-05T00:00:00-04:00"}, // an hour after midnight is set back
		{"Australia/Lord_Howe", 2026, 10, 4, 2, 15, "2026-10-04T02:30:00+11:00"},
		{"Australia/Lord_Howe", 2026, 10, 4, 2, 45, "2026-10-04T02:45:00+11:00"},
		{"America/St_Johns", 2010, 11, 7, 0, 0, "2010-11-07T00:00:00-02:30"}, // a minute later it is the sixth again
		{"Pacific/Apia", 2011, 12, 30, 12, 0, "2011-12-31T00:00:00+14:00"},   // a day that the islands never had
		{"Europe/Berlin", 2040, 12, 31, 22, 0, "2040-12-31T22:00:00+01:00"},  // the last day of a leap year
		{"Europe/Berlin", 2026, 14, 0, 25, 0, "2027-02-01T01:00:00+01:00"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		if at := localtime.Date(x.year, time.Month(x.month), x.day, x.hour, x.mn, zone).Format(time.RFC3339); at != x.want {
			t.Errorf("%d-%d-%d %d:%d in %s is %s, want %s", x.year, x.month, x.day, x.hour, x.mn, x.zone, at, x.want)
		}
	}
}

func TestReached(t *testing.T) {
	for _, x := range []struct{ zone, at, want string }{
		{"Europe/Berlin", "2026-03-29T03:10:00+02:00", "2026-03-29T03:10:00"},
		{"Europe/Berlin", "2026-10-25T02:10:00+01:00", "2026-10-25T02:59:59.999999999"},
		{"Europe/Berlin", "2026-10-25T03:10:00+01:00", "2026-10-25T03:10:00"},
		{"America/St_Johns", "2010-11-06T23:30:00-03:30", "2010-11-07T00:00:59.999999999"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := localtime.Reached(at.In(zone)).Format("2006-01-02T15:04:05.999999999"); got != x.want {
			t.Errorf("up to %s clocks in %s have shown %s, want %s", x.at, x.zone, got, x.want)
		}
	}
}
