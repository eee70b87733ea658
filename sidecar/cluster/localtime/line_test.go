package localtime_test

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
	"github.com/fairlease/fairlease/tests/seeds"
)

// times lists the times of a line from a moment until another.
func times(t *testing.T, line string, zone *time.Location, from, until time.Time) (out []string) {
	t.Helper()
	l, err := localtime.ParseLine(line, zone)
	if err != nil {
		t.Fatal(err)
	}
	for at := until.Add(-1); ; {
		last, ok := l.Last(at, at.Sub(from)+1)
		if !ok {
			slices.Reverse(out)
			return out
		}
		out, at = append(out, last.Format("01-02T15:04Z07:00")), last.Add(-1)
	}
}

func TestLine(t *testing.T) {
	for _, x := range []struct{ zone, line, from, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28", "03-28T02:30+01:00 03-29T03:00+02:00 03-30T02:30+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24", "10-24T02:30+02:00 10-25T02:30+02:00 10-26T02:30+01:00"},
		{"Europe/Berlin", "30 2 * * 0", "2026-03-28", "03-29T03:00+02:00"}, // Sunday
		{"Europe/Berlin", "0,30 2,3 29 3 *", "2026-03-28", "03-29T03:00+02:00 03-29T03:30+02:00"},
		{"Africa/Cairo", "0 0 * * *", "2026-04-23", "04-23T00:00+02:00 04-24T01:00+03:00 04-25T00:00+03:00"},
		{"Asia/Beirut", "0 0 * * *", "2026-03-28", "03-28T00:00+02:00 03-29T01:00+03:00 03-30T00:00+03:00"},
		{"America/Santiago", "0 0 * * *", "2026-09-05", "09-05T00:00-04:00 09-06T01:00-03:00 09-07T00:00-03:00"},
		{"America/Santiago", "0 0 * * *", "2026-04-04", "04-04T00:00-03:00 04-05T00:00-04:00 04-06T00:00-04:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "10-03T02:15+10:30 10-04T02:30+11:00 10-05T02:15+11:00"},
		{"Australia/Lord_Howe", "45 2 * * *", "2026-10-03", "10-03T02:45+10:30 10-04T02:45+11:00 10-05T02:45+11:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04", "04-04T01:45+11:00 04-05T01:45+11:00 04-06T01:45+10:30"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation(time.DateOnly, x.from, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(times(t, x.line, zone, from, from.Add(71*time.Hour)), " "); got != x.want {
			t.Errorf("%s in %s comes at %s, want %s", x.line, x.zone, got, x.want)
		}
	}
	for _, line := range []string{"", "20:00", "@every 1h", "CRON_TZ=UTC 0 20 * * *", "TZ=UTC 0 20 * * *"} {
		if _, err := localtime.ParseLine(line, time.UTC); err == nil {
			t.Errorf("%q is a line", line)
		}
	}
}

// In all zones and at all changes of clocks, a line's times are those at which the clocks first show one of its readings, or
// first show more: found by looking at the clocks each minute.
func TestLinesAtAllChanges(t *testing.T) {
	names := zones(t)
	n := 60
	if seeds.Full() {
		n = len(names)
	}
	rand.New(rand.NewPCG(1, 35)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] }) //nolint:gosec // a test
	changes := 0
	for _, name := range names[:n] {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(2, uint64(len(name)))) //nolint:gosec // a test
		for after := time.Date(1980, 1, 2, 0, 0, 0, 0, time.UTC).In(zone); after.Year() <= 2030; after = after.Add(12 * time.Hour) {
			at, _ := after.ZoneBounds()
			if after.Sub(at) >= 12*time.Hour {
				continue
			}
			changes++
			shown := localtime.Reached(at.Add(time.Duration(random.IntN(240)-120) * time.Minute))
			line := fmt.Sprintf("%d %d * * *", shown.Minute(), shown.Hour())
			if random.IntN(3) == 0 {
				line = fmt.Sprintf("%d-59/%d %d-23/%d * * %d-6", random.IntN(60), 1+random.IntN(40), random.IntN(4), 1+random.IntN(3), random.IntN(2))
			}
			from, until := at.Add(-3*time.Hour), at.Add(4*time.Hour)
			if got, want := times(t, line, zone, from, until), byTheClock(t, line, from, until); !slices.Equal(got, want) {
				t.Errorf("%s in %s comes at %v, want %v", line, name, got, want)
			}
		}
	}
	if changes < 20*n {
		t.Errorf("clocks were changed %d times in %d zones", changes, n)
	}
}

// byTheClock lists the times of a line by looking at the clocks each minute.
func byTheClock(t *testing.T, line string, from, until time.Time) (out []string) {
	t.Helper()
	parsed, err := cron.ParseStandard(line)
	spec, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		t.Fatal(err)
	}
	spec.Location = time.UTC
	var most time.Time
	for at := from.Add(-4 * time.Hour); at.Before(until); at = at.Add(time.Minute) {
		_, offset := at.Zone()
		shown := at.UTC().Add(time.Duration(offset) * time.Second)
		if !shown.After(most) {
			continue
		}
		if next := spec.Next(most); !most.IsZero() && !next.After(shown) && !at.Before(from) {
			out = append(out, at.Format("01-02T15:04Z07:00"))
		}
		most = shown
	}
	return out
}

// zones lists the time zones of Go's copy of the database, else of the host's.
func zones(t *testing.T) (out []string) {
	t.Helper()
	if z, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")); err == nil { //nolint:staticcheck // where the test runs
		defer z.Close()
		seen := map[uint32]bool{} // by their rules, which many share
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/") && !seen[f.CRC32] {
				out, seen[f.CRC32] = append(out, f.Name), true
			}
		}
		return out
	}
	list, err := os.ReadFile("/usr/share/zoneinfo/tzdata.zi")
	if err != nil {
		t.Skip("neither Go nor the host lists the zones")
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 2 && (f[0] == "Z") {
			out = append(out, f[1])
		} else if len(f) > 2 && f[0] == "L" {
			out = append(out, f[2])
		}
	}
	return out
}
