package cluster

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const durationForms = `write it like 10s, 15m, 1h30m, 14d or, as Slurm does, 15 (minutes), 15:00, 1:30:00, 1-12:00:00`

// ParseSpan reads Go's form (10s, 1h30m), days (14d) and Slurm's forms: minutes, minutes:seconds,
// hours:minutes:seconds, days-hours, days-hours:minutes and days-hours:minutes:seconds. Spans
// above 0 and below one millisecond, and negative ones, are errors.
func ParseSpan(text string) (Span, error) {
	s, ok := parseSlurmTime(text)
	if !ok {
		s, ok = parseGoTime(text)
	}
	if !ok {
		return 0, fmt.Errorf("%q is no length of time: %s", text, durationForms)
	}
	return s, nil
}

func parseGoTime(text string) (Span, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, ok := ParseCount(days, math.MaxInt64/int64(Day))
		return Span(n) * Day, ok
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 0 && d < time.Millisecond {
		return 0, false
	}
	return SpanOf(d), true
}

// mostDays keeps the sum of a Slurm time's parts within 64 bits.
const mostDays = 10_000_000

func parseSlurmTime(text string) (Span, bool) {
	days, rest, dashed := strings.Cut(text, "-")
	if !dashed {
		days, rest = "0", text
	}
	units := [][]Span{{Minute}, {Minute, Second}, {Hour, Minute, Second}}
	if dashed {
		units = [][]Span{{Hour}, {Hour, Minute}, {Hour, Minute, Second}}
	}
	parts := strings.Split(rest, ":")
	n, ok := ParseCount(days, mostDays)
	if !ok || len(parts) > len(units) {
		return 0, false
	}
	sum := Span(n) * Day
	for i, unit := range units[len(parts)-1] {
		n, ok := ParseCount(parts[i], mostDays)
		if !ok {
			return 0, false
		}
		sum += Span(n) * unit
	}
	return sum, true
}

// ParseCount reads a number of digits alone, at most most.
func ParseCount(text string, most int64) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= most
}
