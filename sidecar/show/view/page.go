// Package view turns values into output for people and programs: tables, sentences and JSON. Its
// input is the snapshot and the plan of a round, and the journal's lists; its output goes to a
// Page.
//
// Each view is a value computed from these (CellsOf, StatusOf, Explain). The value marshals to
// the command's JSON, and its Write makes the text. The package reads no clock, file, database or
// network: the Page has the time.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// Page is the output of a view, with its form and time.
type Page struct {
	Out io.Writer
	Form
	Colours bool           // Out is a terminal that shows colours
	Zone    *time.Location // of times; nil = UTC
	Now     cluster.Instant
	// Every is the time between two forecasts of the daemon; 0 = unknown, or there are none.
	Every cluster.Span
	// Counters says why no GPU is watched; "" = unknown.
	Counters string
}

// Form is the form of lists: by default a table for people.
type Form struct {
	JSON     bool // all numbers, as JSON
	Parsable bool // columns separated by |
	NoHeader bool
}

// ForPeople tells whether a list may have sentences around it.
func (f Form) ForPeople() bool { return !f.JSON && !f.Parsable && !f.NoHeader }

// Span gives a length of time: for people, or as Slurm writes it, which programs read.
func Span(f Form, s cluster.Span) string {
	if f.Parsable {
		return s.Slurm()
	}
	return s.String()
}

// Printf writes formatted text.
func (p *Page) Printf(format string, args ...any) { fmt.Fprintf(p.Out, format, args...) }

// Encode writes a value as JSON.
func (p *Page) Encode(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := p.Out.Write(Unstate(text.Bytes()))
	return err
}

// Paint colours text: bold, dim, red, green or yellow.
func (p *Page) Paint(text, how string) string {
	if !p.Colours {
		return text
	}
	return painted(text, how)
}

// AsOf writes the round of a list, and its time; round 0 = none.
func (p *Page) AsOf(round int64, at cluster.Instant) {
	if !p.ForPeople() {
		return
	}
	if round == 0 {
		p.Printf("no round has been recorded yet\n")
		return
	}
	p.Printf("\n%s\n", p.Paint(fmt.Sprintf("as of round %d at %s", round, p.Time(at)), "dim"))
}

// Time gives a moment, and its distance from now.
func (p *Page) Time(t cluster.Instant) string { return p.words(nil).Time(t) }

// words makes sentences relative to now.
func (p *Page) words(job func(cluster.JobKey) string) explain.Words { return p.wordsAt(p.Now, job) }

// wordsAt makes sentences relative to another moment.
func (p *Page) wordsAt(now cluster.Instant, job func(cluster.JobKey) string) explain.Words {
	return explain.Words{Now: now, Zone: p.Zone, Job: job}
}

var paints = map[string]string{"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

func painted(text, how string) string {
	if paints[how] == "" || text == "" {
		return text
	}
	return "\x1b[" + paints[how] + "m" + text + "\x1b[0m"
}
