package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
	"github.com/fairlease/fairlease/sidecar/config"
)

// ParseFuture reads a moment in the future.
func ParseFuture(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, fmt.Errorf("is missing: write when the override ends, as in 2h or 2030-01-31T18:00")
	}
	if d, err := config.ParseDuration(strings.TrimPrefix(text, "now+")); err == nil {
		if d <= 0 {
			return time.Time{}, fmt.Errorf("%s is now: give an end to come", text)
		}
		return now.Add(d.Span().Duration()), nil
	}
	if at, ok := parseDate(text, now.Location()); ok {
		if !at.After(now) {
			return time.Time{}, fmt.Errorf("%s is past: give an end to come", text)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2h, 1-12:00:00, 2030-01-31 or 2030-01-31T18:00", text)
}

// parseDate reads a date in one of the supported forms.
func parseDate(text string, zone *time.Location) (time.Time, bool) {
	if at, err := time.ParseInLocation(time.RFC3339, text, zone); err == nil {
		return at, true
	}
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if reading, err := time.Parse(form, text); err == nil {
			return localtime.First(reading, zone), true
		}
	}
	return time.Time{}, false
}

// ParsePast reads a past moment, or a duration before now; "" = the zero time.
func ParsePast(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := config.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d.Span().Duration()), nil
	}
	if at, ok := parseDate(text, now.Location()); ok {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2h or 7d (ago), 2030-01-31 or 2030-01-31T18:00", text)
}
