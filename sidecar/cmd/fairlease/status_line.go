package main

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// statusLine is one line that is written over on a terminal; elsewhere each change is a line.
type statusLine struct {
	out      io.Writer
	terminal bool
	last     string
	said     string
}

func (p *program) statusLine() *statusLine {
	f, ok := p.err.(*os.File)
	return &statusLine{out: p.err, terminal: ok && isatty.IsTerminal(f.Fd())}
}

func (s *statusLine) set(text string) {
	if text == s.last {
		return
	}
	s.last = text
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s", text[:min(len(text), 79)])
	} else {
		fmt.Fprintln(s.out, text)
	}
}

// say says what is no state, once.
func (s *statusLine) say(text string) {
	if text == s.said {
		return
	}
	s.said = text
	s.end()
	fmt.Fprintf(s.out, "fairlease: %s\n", text)
}

func (s *statusLine) end() {
	if s.terminal && s.last != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.last = ""
	}
}
