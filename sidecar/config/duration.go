package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Duration is a length of time as people write it in the file.
type Duration cluster.Span

// Span gives the duration in milliseconds.
func (d Duration) Span() cluster.Span { return cluster.Span(d) }

const durationForms = `write it like 10s, 15m, 1h30m, 14d or, as Slurm does, 15 (minutes), 15:00, 1:30:00, 1-12:00:00`

// ParseDuration reads Go's form (10s, 1h30m), days (14d) and Slurm's: minutes,
// minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
// days-hours:minutes:seconds. Less than a millisecond and negative spans are refused.
func ParseDuration(text string) (Duration, error) {
	s, ok := parseSlurmTime(text)
	if !ok {
		s, ok = parseGoTime(text)
	}
	if !ok {
		return 0, fmt.Errorf("%q is no length of time: %s", text, durationForms)
	}
	return Duration(s), nil
}

func parseGoTime(text string) (cluster.Span, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, ok := parseCount(days, math.MaxInt64/int64(cluster.Day))
		return cluster.Span(n) * cluster.Day, ok
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 0 && d < time.Millisecond {
		return 0, false
	}
	return cluster.SpanOf(d), true
}

// mostDays keeps the sum of a Slurm time's parts within 64 bits.
const mostDays = 10_000_000

func parseSlurmTime(text string) (cluster.Span, bool) {
	days, rest, dashed := strings.Cut(text, "-")
	if !dashed {
		days, rest = "0", text
	}
	units := [][]cluster.Span{{cluster.Minute}, {cluster.Minute, cluster.Second}, {cluster.Hour, cluster.Minute, cluster.Second}}
	if dashed {
		units = [][]cluster.Span{{cluster.Hour}, {cluster.Hour, cluster.Minute}, {cluster.Hour, cluster.Minute, cluster.Second}}
	}
	parts := strings.Split(rest, ":")
	n, ok := parseCount(days, mostDays)
	if !ok || len(parts) > len(units) {
		return 0, false
	}
	sum := cluster.Span(n) * cluster.Day
	for i, unit := range units[len(parts)-1] {
		n, ok := parseCount(parts[i], mostDays)
		if !ok {
			return 0, false
		}
		sum += cluster.Span(n) * unit
	}
	return sum, true
}

// parseCount reads a plain number up to most: digits alone.
func parseCount(text string, most int64) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= most
}

// String writes the duration in the shortest form that ParseDuration reads back.
func (d Duration) String() string {
	s := cluster.Span(d)
	switch {
	case s == 0:
		return "0s"
	case s%cluster.Day == 0:
		return fmt.Sprintf("%dd", s/cluster.Day)
	}
	text := s.Duration().String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// Percent is a whole number of hundredths, written 50 or "50 %".
type Percent int

// UnmarshalText reads 50, 50% and 50 %.
func (p *Percent) UnmarshalText(text []byte) error {
	n, ok := parseCount(strings.TrimSpace(strings.TrimSuffix(string(text), "%")), math.MaxInt32)
	if !ok {
		return fmt.Errorf("%q is no percentage: write a whole number like 50", text)
	}
	*p = Percent(n)
	return nil
}

func (p Percent) String() string { return strconv.Itoa(int(p)) }

// Factor is a number in thousandths, written 2, 1.5 or 0.125.
type Factor int64

// UnmarshalText reads a decimal number with at most three digits after the point.
func (f *Factor) UnmarshalText(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	n, ok := parseCount(whole, math.MaxInt32)
	m, fine := parseCount((part + "000")[:max(3, len(part))], 999)
	if !ok || !fine || len(part) > 3 {
		return fmt.Errorf("%q is no factor: write a number like 2 or 1.5, with at most three digits after the point", text)
	}
	*f = Factor(n*1000 + m)
	return nil
}

func (f Factor) String() string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", f/1000, f%1000), "0"), ".")
}
