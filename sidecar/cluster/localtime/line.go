package localtime

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Line is a cron line in a time zone. Each time of day that it names comes once a day, as Date has it: at the end of the gap
// if clocks skip it, and the first time if they show it twice.
type Line struct {
	readings cron.Schedule // of the clocks
	zone     *time.Location
}

// ParseLine reads minute, hour, day of the month, month and day of the week. Intervals (@every) and zones in the line are errors.
func ParseLine(line string, zone *time.Location) (*Line, error) {
	if strings.Contains(line, "TZ=") {
		return nil, errors.New("a line has no zone")
	}
	parsed, err := cron.ParseStandard(line)
	if err != nil {
		return nil, err
	}
	readings, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("an interval has no times")
	}
	readings.Location = time.UTC
	return &Line{readings, zone}, nil
}

// Comes reports whether a time of the line comes in the next years.
func (l *Line) Comes(now time.Time) bool { return !l.readings.Next(Reached(now.In(l.zone))).IsZero() }

// Last returns the newest time of the line up to t that is less than a length before t; false = there is none.
func (l *Line) Last(t time.Time, length time.Duration) (time.Time, bool) {
	reached := Reached(t.In(l.zone))
	most := length + 2*widest              // clocks may have been changed since
	for back := time.Minute; ; back *= 2 { // first near t: there may be many
		back = min(back, most)
		var last time.Time
		for next := l.readings.Next(reached.Add(-back)); !next.IsZero() && !next.After(reached); next = l.readings.Next(next) {
			last = next
		}
		if !last.IsZero() {
			at := First(last, l.zone)
			return at, t.Sub(at) < length
		}
		if back == most {
			return time.Time{}, false
		}
	}
}
