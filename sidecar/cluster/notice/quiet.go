package notice

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
)

// Quiet is a part of the day, in minutes from its beginning. It may span midnight. The zero value is none.
type Quiet struct{ from, until int }

var quietHours = regexp.MustCompile(`^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$`)

// ParseQuiet reads quiet hours such as 22:00-07:00; "" = none.
func ParseQuiet(text string) (Quiet, error) {
	if text == "" {
		return Quiet{}, nil
	}
	parts := quietHours.FindStringSubmatch(text)
	if parts == nil {
		return Quiet{}, fmt.Errorf("%q is no part of a day; write one like 22:00-07:00", text)
	}
	n := make([]int, len(parts))
	for i, part := range parts[1:] {
		n[i], _ = strconv.Atoi(part) // digits
	}
	q := Quiet{60*n[0] + n[1], 60*n[2] + n[3]}
	if q.from == q.until {
		return Quiet{}, fmt.Errorf("%s is a whole day; write kinds that are wanted, or none", text)
	}
	return q, nil
}

// End gives the end of the quiet hours that contain now; false = now is in none.
func (q Quiet) End(now time.Time) (time.Time, bool) {
	if q == (Quiet{}) {
		return time.Time{}, false
	}
	year, month, day := now.Date()
	at := 60*now.Hour() + now.Minute()
	switch {
	case q.from < q.until && (at < q.from || at >= q.until), at >= q.until && at < q.from:
		return time.Time{}, false
	case at >= q.until:
		day++
	}
	return localtime.Date(year, month, day, q.until/60, q.until%60, now.Location()), true
}
