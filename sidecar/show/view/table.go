package view

import (
	"strings"
	"unicode/utf8"
)

// Table is columns of text. Heads that begin with > mark numeric columns, which are
// right-aligned.
type Table struct {
	Head []string
	Tint func(row, column int) string // colour as in Page.Paint, or ""; nil = none
	// None says why a list without rows is empty: people see it in place of the head.
	None string
	rows [][]string
}

// Add adds a row, with a cell for each head.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// widest is the maximum width for alignment; longer cells overflow.
const widest = 60

// delimiters takes what ends a cell or a row out of texts for programs: people choose reasons and names, Slurm words notes.
var delimiters = strings.NewReplacer("|", " ", "\r\n", " ", "\r", " ", "\n", " ")

// List writes a table, or its content as JSON.
func (p *Page) List(t *Table, all any) error {
	if p.JSON {
		return p.Encode(all)
	}
	p.Table(t)
	return nil
}

// Table writes a table, for people or for programs.
func (p *Page) Table(t *Table) {
	head := make([]string, len(t.Head))
	for i, h := range t.Head {
		head[i] = strings.TrimPrefix(h, ">")
	}
	if p.Parsable {
		if !p.NoHeader {
			p.Printf("%s\n", strings.Join(head, "|"))
		}
		for _, row := range t.rows {
			line := make([]string, len(row))
			for i, cell := range row {
				line[i] = delimiters.Replace(cell)
			}
			p.Printf("%s\n", strings.Join(line, "|"))
		}
		return
	}
	if len(t.rows) == 0 && t.None != "" && p.ForPeople() {
		p.Printf("%s\n", t.None)
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
	line := func(cells []string, tint func(int) string) {
		var b strings.Builder
		for i, cell := range cells {
			space := strings.Repeat(" ", max(width[i]-utf8.RuneCountInString(cell), 0))
			if p.Colours {
				cell = painted(cell, tint(i))
			}
			switch {
			case strings.HasPrefix(t.Head[i], ">"):
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
		p.Printf("%s\n", strings.TrimRight(b.String(), " "))
	}
	if !p.NoHeader {
		line(head, func(int) string { return "bold" })
	}
	for i, row := range t.rows {
		line(row, func(column int) string {
			if t.Tint == nil {
				return ""
			}
			return t.Tint(i, column)
		})
	}
}
