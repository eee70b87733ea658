package notice_test

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
)

func TestQuietHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ quiet, at, end string }{
		{"22:00-07:00", "2026-03-02T21:59:59+01:00", ""},
		{"22:00-07:00", "2026-03-02T22:00:00+01:00", "2026-03-03T07:00:00+01:00"},
		{"22:00-07:00", "2026-03-03T00:00:00+01:00", "2026-03-03T07:00:00+01:00"},
		{"22:00-07:00", "2026-03-03T06:59:59+01:00", "2026-03-03T07:00:00+01:00"},
		{"22:00-07:00", "2026-03-03T07:00:00+01:00", ""},
		{"12:00-13:30", "2026-03-02T11:59:00+01:00", ""},
		{"12:00-13:30", "2026-03-02T13:29:00+01:00", "2026-03-02T13:30:00+01:00"},
		{"12:00-13:30", "2026-03-02T13:30:00+01:00", ""},
		{"22:00-07:00", "2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"}, // clocks are set
		{"23:00-02:30", "2026-03-28T23:30:00+01:00", "2026-03-29T03:00:00+02:00"}, // 02:30 is skipped
		{"", "2026-03-02T23:00:00+01:00", ""},
	} {
		q, err := notice.ParseQuiet(c.quiet)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.at)
		end, quiet := q.End(at.In(berlin))
		want, _ := time.Parse(time.RFC3339, c.end)
		if quiet != (c.end != "") || quiet && !end.Equal(want) {
			t.Errorf("%s at %s: until %v (%v), want %s", c.quiet, c.at, end, quiet, c.end)
		}
	}
	for _, text := range []string{"22-7", "24:00-07:00", "7:00-8:00", "08:00-08:00", "22:00", " 22:00-07:00", "22:60-07:00"} {
		if _, err := notice.ParseQuiet(text); err == nil {
			t.Errorf("%q is taken for quiet hours", text)
		}
	}
}
