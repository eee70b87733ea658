package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Duration is a length of time as people write it in the file.
type Duration cluster.Span

// Span gives the duration in milliseconds.
func (d Duration) Span() cluster.Span { return cluster.Span(d) }

// ParseDuration is cluster.ParseSpan.
func ParseDuration(text string) (Duration, error) {
	s, err := cluster.ParseSpan(text)
	return Duration(s), err
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
	n, ok := cluster.ParseCount(strings.TrimSpace(strings.TrimSuffix(string(text), "%")), math.MaxInt32)
	if !ok {
		return fmt.Errorf("%q is no percentage: write a whole number like 50", text)
	}
	*p = Percent(n)
	return nil
}

func (p Percent) String() string { return strconv.Itoa(int(p)) }

// Worth is the part of a GPU that a device counts as.
type Worth cluster.MicroGPU

// UnmarshalText reads fractions like 1/7, and decimals like 0.5. Parts are kept in millionths.
func (w *Worth) UnmarshalText(text []byte) error {
	above, below, _ := strings.Cut(string(text), "/")
	if below == "" {
		below = "1"
	}
	a, wrong := strconv.ParseFloat(strings.TrimSpace(above), 64)
	b, alsoWrong := strconv.ParseFloat(strings.TrimSpace(below), 64)
	part := math.Round(a / b * float64(cluster.WholeGPU))
	if wrong != nil || alsoWrong != nil || !(part >= 1 && part <= float64(cluster.WholeGPU)) || strings.HasSuffix(string(text), "/") {
		return fmt.Errorf("%q is no part of a GPU: write a fraction like 1/7, or a number above 0 and at most 1 like 0.5", text)
	}
	*w = Worth(part)
	return nil
}

func (w Worth) String() string { return cluster.GPUCount(w).String() }

// MarshalYAML gives the number that UnmarshalText reads.
func (w Worth) MarshalYAML() (any, error) { return cluster.MicroGPU(w).Float(), nil }

// Limit is a percentage, or Auto; 0 = no limit.
type Limit int

// Auto is a Limit that follows from what was observed.
const Auto Limit = -1

// UnmarshalText reads auto, and what Percent reads.
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*l = Auto
		return nil
	}
	var p Percent
	if p.UnmarshalText(text) != nil {
		return fmt.Errorf("%q is no limit: write auto, a percentage like 25, or 0 for none", text)
	}
	*l = Limit(p)
	return nil
}

func (l Limit) String() string {
	if l == Auto {
		return "auto"
	}
	return Percent(l).String()
}

// AutoBound is a bound of the breaker that follows from the site; 0 = off.
const AutoBound = -1

// JobBound is the most of jobs, or of GPU hours, within an hour; or AutoBound.
type JobBound int

// UnmarshalText reads auto, off, and a whole number above 0.
func (b *JobBound) UnmarshalText(text []byte) error {
	switch n, ok := cluster.ParseCount(string(text), math.MaxInt32); {
	case string(text) == "auto":
		*b = AutoBound
	case string(text) == "off":
		*b = 0
	case ok && n > 0:
		*b = JobBound(n)
	default:
		return fmt.Errorf("%q is no bound: write auto, off, or a whole number above 0", text)
	}
	return nil
}

func (b JobBound) String() string { return boundWord(int64(b), strconv.Itoa(int(b))) }

// LatencyBound is how long slurmctld may take to answer; or AutoBound.
type LatencyBound Duration

// UnmarshalText reads auto, off, and a duration above 0.
func (b *LatencyBound) UnmarshalText(text []byte) error {
	switch d, err := ParseDuration(string(text)); {
	case string(text) == "auto":
		*b = AutoBound
	case string(text) == "off":
		*b = 0
	case err == nil && d > 0:
		*b = LatencyBound(d)
	default:
		return fmt.Errorf("%q is no bound: write auto, off, or a duration like 10s", text)
	}
	return nil
}

func (b LatencyBound) String() string { return boundWord(int64(b), Duration(b).String()) }

// boundWord words a bound; number is that of one that is neither auto nor off.
func boundWord(b int64, number string) string {
	switch b {
	case AutoBound:
		return "auto"
	case 0:
		return "off"
	}
	return number
}

// Factor is a number in thousandths, written 2, 1.5 or 0.125.
type Factor int64

// UnmarshalText reads a decimal number with at most three digits after the point.
func (f *Factor) UnmarshalText(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	n, ok := cluster.ParseCount(whole, math.MaxInt32)
	m, fine := cluster.ParseCount((part + "000")[:max(3, len(part))], 999)
	if !ok || !fine || len(part) > 3 {
		return fmt.Errorf("%q is no factor: write a number like 2 or 1.5, with at most three digits after the point", text)
	}
	*f = Factor(n*1000 + m)
	return nil
}

func (f Factor) String() string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", f/1000, f%1000), "0"), ".")
}
