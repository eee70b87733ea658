// Package localtime converts between moments and what the clocks of a zone show, also on the days on which clocks are
// changed: then a time of day may be skipped, or shown twice. A reading of the clocks is a time.Time in UTC with the same
// date and time of day.
package localtime

import "time"

// widest exceeds the distance of the clocks of any zone from UTC, and each change of clocks.
const widest = 25 * time.Hour

// First returns the moment at which the clocks of a zone show a reading for the first time. If they skip it, it is the
// moment at which they show a later one: the end of the gap. A later reading never gives an earlier moment.
func First(reading time.Time, zone *time.Location) time.Time {
	var first time.Time
	at := reading.Add(widest).In(zone) // the clocks show more
	for end := at; ; {                 // backwards: the end that ZoneBounds gives is wrong on the last day of a leap year
		start, _ := at.ZoneBounds()
		_, offset := at.Zone()
		t := reading.Add(-time.Duration(offset) * time.Second)
		if t.Before(start) {
			t = start
		}
		if first.IsZero() || t.Before(end) { // no clocks but those of a made-up zone are further from UTC than end
			first = t.In(zone)
		}
		if start.IsZero() || start.Before(reading.Add(-widest)) {
			return first
		}
		end, at = start, start.Add(-1)
	}
}

// Date returns the moment of a date and a time of day in a zone as First does; what exceeds its unit carries over, as in time.Date.
func Date(year int, month time.Month, day, hour, minute int, zone *time.Location) time.Time {
	return First(time.Date(year, month, day, hour, minute, 0, 0, time.UTC), zone)
}

// Reached returns the latest reading that the clocks of a moment's zone have shown up to that moment: what they show, or
// more if they were set back less than that ago. A reading is Reached if and only if its First is at the moment or before.
func Reached(t time.Time) time.Time {
	reached := shown(t)
	for at := t; ; {
		start, _ := at.ZoneBounds()
		if start.IsZero() || t.Sub(start) > widest {
			return reached
		}
		at = start.Add(-1)
		if last := shown(at); last.After(reached) {
			reached = last
		}
	}
}

// shown gives what the clocks of a moment's zone show.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
