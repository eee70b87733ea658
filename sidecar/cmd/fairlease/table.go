package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// listing is how a command that lists writes its lines.
type listing struct {
	json, parsable, bare bool
}

// flags adds the flags that all lists have.
func (l *listing) flags(c *cobra.Command) {
	c.Flags().BoolVar(&l.json, "json", false, "write JSON, with all numbers")
	c.Flags().BoolVarP(&l.parsable, "parsable", "P", false, "write columns separated by |, for programs")
	c.Flags().BoolVarP(&l.bare, "noheader", "n", false, "write no header line")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if l.json && l.parsable {
			return &failure.Error{Code: failure.Misuse, What: "--json and --parsable exclude each other", Next: "see " + c.CommandPath() + " --help"}
		}
		return nil
	}
}

// table is columns of text. Heads that begin with > are of numbers: set to the right.
type table struct {
	head []string
	rows [][]string
	tint func(row, column int) string // "", "bold", "dim", "red", "yellow", "green"; nil = none
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// widest is the longest cell that others are lined up with; longer ones stick out.
const widest = 60

// list writes the table, or all as JSON.
func (p *program) list(l listing, t *table, all any) error {
	if l.json {
		return p.json(all)
	}
	p.table(l, t)
	return nil
}

// remembered is a list of what the newest round remembers.
type remembered[T any] struct {
	of    func(*cluster.Snapshot, *cluster.Plan) ([]T, error)
	fits  func(x *T, name string) bool // the name is the command's argument
	none  string                       // says that nothing fits a name
	table func([]T, cluster.Instant) *table
}

// show writes the list, or what of it fits the command's argument.
func (r remembered[T]) show(c *cobra.Command, p *program, l listing, args []string) error {
	return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
		snap, plan, err := s.Last(c.Context())
		if err != nil {
			return err
		}
		if plan.Round == 0 {
			return &failure.Error{Code: failure.No, What: "no round has been written down yet", Next: "fairlease status tells whether a daemon makes rounds"}
		}
		all, err := r.of(&snap, &plan)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			all = slices.DeleteFunc(all, func(x T) bool { return !r.fits(&x, args[0]) })
			if len(all) == 0 {
				return &failure.Error{Code: failure.No, What: fmt.Sprintf(r.none, args[0]), Next: c.CommandPath() + " has all"}
			}
		}
		if err := p.list(l, r.table(all, p.now()), all); err != nil {
			return err
		}
		return p.asOf(c.Context(), l, s)
	})
}

func (p *program) json(v any) error {
	e := json.NewEncoder(p.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (p *program) table(l listing, t *table) {
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = strings.TrimPrefix(h, ">")
	}
	if l.parsable {
		if !l.bare {
			p.printf("%s\n", strings.Join(head, "|"))
		}
		for _, row := range t.rows {
			p.printf("%s\n", strings.Join(row, "|"))
		}
		return
	}
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, t.rows...) {
		for i, cell := range row {
			if n := utf8.RuneCountInString(cell); n <= widest {
				width[i] = max(width[i], n)
			}
		}
	}
	colour := p.colours()
	line := func(cells []string, tint func(int) string) {
		var b strings.Builder
		for i, cell := range cells {
			space := strings.Repeat(" ", max(width[i]-utf8.RuneCountInString(cell), 0))
			if colour {
				cell = painted(cell, tint(i))
			}
			switch {
			case strings.HasPrefix(t.head[i], ">"):
				b.WriteString(space + cell)
			case i == len(cells)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + space)
			}
			if i < len(cells)-1 {
				b.WriteString("  ")
			}
		}
		p.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
	if !l.bare {
		line(head, func(int) string { return "bold" })
	}
	for i, row := range t.rows {
		line(row, func(column int) string {
			if t.tint == nil {
				return ""
			}
			return t.tint(i, column)
		})
	}
}

var paints = map[string]string{"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

func painted(text, how string) string {
	if paints[how] == "" || text == "" {
		return text
	}
	return "\x1b[" + paints[how] + "m" + text + "\x1b[0m"
}

// paint colours text for a terminal.
func (p *program) paint(text, how string) string {
	if !p.colours() {
		return text
	}
	return painted(text, how)
}
