package cluster

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Instant is a moment: milliseconds since the Unix epoch, UTC. Zero means "none".
type Instant int64

// Span is a length of time in milliseconds.
type Span int64

// GPUTime is GPUs times time, in GPU-milliseconds. A cluster of 80,000 GPUs
// fills 64 bits in 3,600 years.
type GPUTime int64

// MicroGPU is a number of GPUs in millionths: an entitlement at one moment.
type MicroGPU int64

// Units of Span and MicroGPU.
const (
	Millisecond Span = 1
	Second           = 1000 * Millisecond
	Minute           = 60 * Second
	Hour             = 60 * Minute
	Day              = 24 * Hour

	WholeGPU MicroGPU = 1_000_000
)

// InstantOf converts a time.Time; the zero time gives 0.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMilli())
}

// SpanOf converts a duration, cut to whole milliseconds.
func SpanOf(d time.Duration) Span { return Span(d.Milliseconds()) }

// Time gives the instant as a UTC time.Time; 0 gives the zero time.
func (t Instant) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Add gives the instant s later.
func (t Instant) Add(s Span) Instant { return t + Instant(s) }

// Sub gives the span from u to t.
func (t Instant) Sub(u Instant) Span { return Span(t - u) }

func (t Instant) String() string {
	if t == 0 {
		return "none"
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z")
}

// Duration gives the span as a time.Duration, at most the 292 years that one can hold.
func (s Span) Duration() time.Duration {
	const most = Span(math.MaxInt64 / time.Millisecond)
	return time.Duration(max(min(s, most), -most)) * time.Millisecond
}

// String writes the span for people, in its two largest units, cut to whole ones: "3 d 4 h", "1 h 20 min", "4 min 50 s", "19 s". From five
// minutes on, seconds do not count: "7 min". Settings take Exact, and two spans that are compared take Beside.
func (s Span) String() string {
	if s < 0 {
		if s > -Second {
			return "0 s"
		}
		return "-" + (-max(s, -math.MaxInt64)).String()
	}
	units := []struct {
		name string
		size Span
	}{{"d", Day}, {"h", Hour}, {"min", Minute}, {"s", Second}}
	if s >= 5*Minute {
		units = units[:3]
	}
	for i, u := range units {
		if s < u.size {
			continue
		}
		out := fmt.Sprintf("%d %s", s/u.size, u.name)
		if i+1 < len(units) && s%u.size >= units[i+1].size {
			out += fmt.Sprintf(" %d %s", s%u.size/units[i+1].size, units[i+1].name)
		}
		return out
	}
	return "0 s"
}

// Exact writes the span for people with nothing cut off: "7 min 30 s".
func (s Span) Exact() string {
	out, rest := "", max(s, -math.MaxInt64)
	for _, u := range []struct {
		name string
		size Span
	}{{"d", Day}, {"h", Hour}, {"min", Minute}, {"s", Second}, {"ms", 1}} {
		if n := rest / u.size; n != 0 {
			out += fmt.Sprintf(" %d %s", max(n, -n), u.name)
		}
		rest %= u.size
	}
	switch {
	case out == "":
		return "0 s"
	case s < 0:
		return "-" + out[1:]
	}
	return out[1:]
}

// Beside writes the span for people next to another one: exactly, if they differ but would read the same.
func (s Span) Beside(other Span) string {
	if s != other && s.String() == other.String() {
		return s.Exact()
	}
	return s.String()
}

// Slurm writes the span as Slurm writes times, cut to whole seconds: [D-]HH:MM:SS. Programs read it, and so does ParseSpan.
func (s Span) Slurm() string {
	sign := ""
	if s <= -Second {
		sign = "-"
	}
	s = max(s, -s)
	sec := int64(s / Second)
	day, rest := sec/86400, sec%86400
	clock := fmt.Sprintf("%02d:%02d:%02d", rest/3600, rest%3600/60, rest%60)
	if day > 0 {
		return fmt.Sprintf("%s%d-%s", sign, day, clock)
	}
	return sign + clock
}

// Hours gives the GPU time in GPU-hours, for people to read.
func (g GPUTime) Hours() float64 { return float64(g) / 3_600_000 }

// Times gives the GPU time of n GPUs over s.
func Times(n int, s Span) GPUTime { return GPUTime(n) * GPUTime(s) }

// Micro gives n whole GPUs.
func Micro(n int) MicroGPU { return MicroGPU(n) * WholeGPU }

// Devices gives the number of devices that hold so many GPUs.
func (m MicroGPU) Devices() int { return int((m + WholeGPU - 1) / WholeGPU) }

// At gives what a number of devices counts where each is worth a part of a GPU, rounded down.
func (m MicroGPU) At(worth MicroGPU) MicroGPU {
	if worth == WholeGPU {
		return m
	}
	return MicroGPU(MulDiv(int64(m), int64(worth), int64(WholeGPU)))
}

// Float gives the number of GPUs.
func (m MicroGPU) Float() float64 { return float64(m) / float64(WholeGPU) }

// Over gives the GPU time of some GPUs over a span, rounded towards zero. The result saturates if it does not fit.
func (m MicroGPU) Over(s Span) GPUTime {
	if m < 0 {
		return -(-m).Over(s)
	}
	if s < 0 {
		return -m.Over(-s)
	}
	if n := m / WholeGPU; n*WholeGPU == m && s < 1<<31 && n < 1<<31 {
		return GPUTime(n) * GPUTime(s)
	}
	return GPUTime(MulDiv(int64(m), int64(s), int64(WholeGPU)))
}

// Accrue integrates the rate r ≥ 0 over s ≥ 0. It returns whole GPU-milliseconds and the new
// carry, in millionths of a GPU-millisecond (0 ≤ carry < 1e6). The carry makes many small steps
// sum to the same as one long step: nothing is rounded away. If the integral does not fit, it
// returns the largest GPUTime and no carry.
func Accrue(r MicroGPU, s Span, carry int64) (GPUTime, int64) {
	hi, lo := bits.Mul64(uint64(r), uint64(s))
	lo, c := bits.Add64(lo, uint64(carry), 0)
	if hi+c >= uint64(WholeGPU) {
		return math.MaxInt64, 0
	}
	q, rem := bits.Div64(hi+c, lo, uint64(WholeGPU))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return GPUTime(q), int64(rem)
}

// MulDiv gives a*b/c rounded down, with a 128-bit product, for a, b ≥ 0 and c > 0. It returns the
// largest int64 if the quotient does not fit.
func MulDiv(a, b, c int64) int64 {
	const limit = 1<<63 - 1
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return limit
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	if q > limit {
		return limit
	}
	return int64(q)
}

// Rho is a fairness degree in millionths: GPU time received over GPU time due (ASTRAEA eq. 5, 12,
// 15). 1_000_000 is exactly fair.
type Rho int64

// The bounds of Rho. Infinite ranks last: GPU time was received and none was due.
const (
	Fair     Rho = 1_000_000
	Infinite Rho = 1<<63 - 1
)

// DueNothing is how far a claimant is behind that is due nothing: as far ahead as possible.
const DueNothing Span = -1 << 62

// RhoOf gives alloc/due in millionths: 0/0 is 0 (new: ranks first), x/0 is Infinite (ranks last).
func RhoOf(alloc, due GPUTime) Rho {
	switch {
	case alloc <= 0:
		return 0
	case due <= 0:
		return Infinite
	}
	return Rho(MulDiv(int64(alloc), int64(Fair), int64(due)))
}

func (r Rho) String() string {
	if r == Infinite {
		return "inf"
	}
	return fmt.Sprintf("%.3f", float64(r)/float64(Fair))
}

// GPUCount is a number of GPUs that people and other programs read: MicroGPU, written as the plain number that it is. 4 GPUs are 4, half a GPU is
// 0.5, in JSON, in text and in the database's numerics. Sums of it are exact. Convert it from and to MicroGPU.
type GPUCount MicroGPU

// CountOf gives n whole GPUs.
func CountOf(n int) GPUCount { return GPUCount(n) * GPUCount(WholeGPU) }

// Ceil gives the number in whole GPUs, rounded up.
func (n GPUCount) Ceil() int { return MicroGPU(n).Devices() }

// append writes the number with up to six decimals, without zeros at its end.
func (n GPUCount) append(out []byte) []byte {
	abs := uint64(n)
	if n < 0 {
		out, abs = append(out, '-'), -abs
	}
	out = strconv.AppendUint(out, abs/uint64(WholeGPU), 10)
	rest := abs % uint64(WholeGPU)
	if rest == 0 {
		return out
	}
	return bytes.TrimRight(fmt.Appendf(out, ".%06d", rest), "0")
}

func (n GPUCount) String() string { return string(n.append(nil)) }

// MarshalJSON writes the plain number: 4, 0.5.
func (n GPUCount) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

// UnmarshalJSON reads a number with up to six decimals. An error leaves the number as it was.
func (n *GPUCount) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	whole, part, _ := bytes.Cut(text, []byte("."))
	digits := slices.Concat(whole, part)
	for range 6 - len(part) {
		digits = append(digits, '0')
	}
	x, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || len(part) > 6 || bytes.ContainsAny(part, "+-") {
		return fmt.Errorf("%s is no number of GPUs: write a number with up to six decimals", text)
	}
	*n = GPUCount(x)
	return nil
}

// Scan reads a numeric or an integer of a database.
func (n *GPUCount) Scan(value any) error {
	switch x := value.(type) {
	case string:
		if whole, part, ok := strings.Cut(x, "."); ok && len(part) > 6 { // a quotient
			x = whole + "." + part[:6] + strings.TrimRight(part[6:], "0")
		}
		return n.UnmarshalJSON([]byte(x))
	case int64:
		*n = CountOf(int(x))
		return nil
	}
	return fmt.Errorf("%v is no number of GPUs", value)
}
