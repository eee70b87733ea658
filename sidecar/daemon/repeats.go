package daemon

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// repeatAfter is how long a line that says the same as an earlier one is held back.
const repeatAfter = time.Minute

// mostLines bounds the lines that are remembered. Beyond, all are forgotten, and may come again too early.
const mostLines = 10_000

// repeats is a log in JSON that writes lines which say the same at most once a minute: the first at once, and a minute later
// the newest of those since, with their number. Times, durations, rounds and counts are not what a line says. It is safe for
// concurrent use.
type repeats struct {
	out io.Writer
	now func() time.Time

	lock  sync.Mutex
	seed  maphash.Seed
	lines map[uint64]*repeated
	swept time.Time
}

// repeated is a line that was written, and those like it since.
type repeated struct {
	at   time.Time
	n    int
	last []byte
}

func newRepeats(out io.Writer, now func() time.Time) *repeats {
	return &repeats{out: out, now: now, seed: maphash.MakeSeed(), lines: map[uint64]*repeated{}}
}

// volatile matches the fields of a line that differ although it says the same.
var volatile = regexp.MustCompile(`,?"(time|took_ms|round|failures|skipped|until|age_ms|count|first_jobs)":("[^"]*"|[0-9.]+)`)

// Lines that answer an administrator, or say that the daemon's part has changed, always come at once.
const (
	saysTaken   = "configuration taken over"
	saysRefused = "the new configuration is not taken over, the old one stays"
	saysRestart = "these changes need a restart: systemctl restart fairlease"
	saysStarted = "started"
	saysStopped = "stopped; running jobs run on, gates lapse by themselves"
	saysLeads   = "leadership acquired"
	saysWaits   = "waiting: "
	saysAgain   = "rounds succeed again"
)

// answers matches these lines.
var answers = regexp.MustCompile(`"message":"(` + strings.Join([]string{saysTaken, saysRefused, saysRestart, saysStarted, saysStopped, saysLeads, saysWaits, saysAgain}, "|") + `)`)

// Write takes one line, as zerolog gives them.
func (r *repeats) Write(line []byte) (int, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.now()
	if err := r.sweep(now); err != nil {
		return 0, err
	}
	if answers.Match(line) {
		return r.out.Write(line)
	}
	key := maphash.Bytes(r.seed, volatile.ReplaceAll(line, nil))
	if was := r.lines[key]; was != nil && now.Sub(was.at) < repeatAfter {
		was.n++
		was.last = append(was.last[:0], line...)
		return len(line), nil
	}
	if len(r.lines) >= mostLines {
		clear(r.lines)
	}
	r.lines[key] = &repeated{at: now}
	return r.out.Write(line)
}

// sweep writes the lines that were held back for long enough.
func (r *repeats) sweep(now time.Time) error {
	if since := now.Sub(r.swept); since >= 0 && since < repeatAfter/4 {
		return nil
	}
	r.swept = now
	var late []*repeated
	for key, was := range r.lines {
		switch {
		case now.Sub(was.at) < repeatAfter && !now.Before(was.at):
		case was.n == 0:
			delete(r.lines, key)
		default:
			late = append(late, was)
		}
	}
	slices.SortFunc(late, func(a, b *repeated) int { return bytes.Compare(a.last, b.last) })
	for _, was := range late {
		line := bytes.TrimRight(was.last, "}\n")
		if was.n > 1 {
			line = fmt.Appendf(line, `,"times":%d`, was.n)
		}
		was.at, was.n = now, 0
		if _, err := r.out.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}
