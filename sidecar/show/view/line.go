package view

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Line shows the state of something that the user waits for: one line that is overwritten on a
// terminal; elsewhere each change is a new line.
type Line struct {
	Out      io.Writer
	Terminal bool

	last string
	said string
}

// Set changes the text of the line.
func (l *Line) Set(text string) {
	if text == l.last {
		return
	}
	l.last = text
	if l.Terminal {
		fmt.Fprintf(l.Out, "\r\x1b[K%s", text[:min(len(text), 79)])
	} else {
		fmt.Fprintln(l.Out, text)
	}
}

// Say writes a message once, in addition to the state.
func (l *Line) Say(text string) {
	if text == l.said {
		return
	}
	l.said = text
	l.End()
	fmt.Fprintf(l.Out, "fairlease: %s\n", text)
}

// End removes the line from a terminal.
func (l *Line) End() {
	if l.Terminal && l.last != "" {
		fmt.Fprint(l.Out, "\r\x1b[K")
		l.last = ""
	}
}

// Bar shows progress on a terminal, if it takes longer than two seconds.
type Bar struct {
	out         io.Writer // nil = nowhere
	begun, last time.Time
	shown       bool
}

// NewBar begins a bar on a terminal; a nil out shows nothing.
func NewBar(out io.Writer, now time.Time) *Bar { return &Bar{out: out, begun: now} }

// Set shows how many of the jobs have ended.
func (b *Bar) Set(over, of int, now time.Time) {
	if b.out == nil || now.Sub(b.begun) < 2*time.Second || now.Sub(b.last) < 200*time.Millisecond || of == 0 {
		return
	}
	b.last, b.shown = now, true
	fmt.Fprintf(b.out, "\r%s", barLine(over, of, now.Sub(b.begun)))
}

// End removes the bar.
func (b *Bar) End() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

const barWidth = 30

// barLine is a line that fits 80 columns.
func barLine(over, of int, gone time.Duration) string {
	full := min(over*barWidth/of, barWidth)
	line := bytes.Repeat([]byte{'.'}, barWidth)
	copy(line, bytes.Repeat([]byte{'#'}, full))
	rest := "?"
	if over > 0 {
		rest = cluster.SpanOf(gone * time.Duration(of-over) / time.Duration(over)).String()
	}
	return fmt.Sprintf("[%s] %3d %%  %d of %d jobs, %s left   ", line, min(100*over/of, 100), over, of, rest)
}
