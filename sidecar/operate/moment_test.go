package operate_test

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/operate"
)

func TestAhead(t *testing.T) {
	zone := time.FixedZone("test", 3600)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"2h": "2026-05-01T14:00:00+01:00", "now+30": "2026-05-01T12:30:00+01:00", "1-12:00:00": "2026-05-03T00:00:00+01:00",
		"2026-05-02": "2026-05-02T00:00:00+01:00", "2026-05-02T08:30": "2026-05-02T08:30:00+01:00",
		"2026-05-02 08:30:15": "2026-05-02T08:30:15+01:00", "2026-05-02T08:30:00Z": "2026-05-02T08:30:00Z",
	} {
		if at, err := operate.ParseFuture(text, now); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("%q is %v (%v), want %s", text, at.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"", "0", "tomorrow", "2026-05-01", "2026-13-01", "-1h"} {
		if at, err := operate.ParseFuture(text, now); err == nil {
			t.Errorf("%q is %v", text, at)
		}
	}
}

// A time that clocks skip is the end of the gap; of two the first.
func TestTimesWhenClocksChange(t *testing.T) {
	for _, x := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-03-29T02:30", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25T02:30", "2026-10-25T02:30:00+02:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00"},
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := operate.ParseFuture(x.text, time.Date(2026, 1, 1, 0, 0, 0, 0, zone)); err != nil || at.Format(time.RFC3339) != x.want {
			t.Errorf("%q in %s is %s (%v), want %s", x.text, x.zone, at.Format(time.RFC3339), err, x.want)
		}
		if at, err := operate.ParsePast(x.text, time.Date(2027, 1, 1, 0, 0, 0, 0, zone)); err != nil || at.Format(time.RFC3339) != x.want {
			t.Errorf("%q in %s was %s (%v), want %s", x.text, x.zone, at.Format(time.RFC3339), err, x.want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"": "0001-01-01T00:00:00Z", "2h": "2026-05-01T10:00:00Z", "7d": "2026-04-24T12:00:00Z", "0": "2026-05-01T12:00:00Z",
		"2026-04-30": "2026-04-30T00:00:00Z", "2026-04-30T08:30": "2026-04-30T08:30:00Z"} {
		if at, err := operate.ParsePast(text, now); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("%q is %v (%v), want %s", text, at.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "2026-13-01"} {
		if at, err := operate.ParsePast(text, now); err == nil {
			t.Errorf("%q is %v", text, at)
		}
	}
}
