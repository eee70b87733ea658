package top

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

const help = `fairlease top shows tenants, jobs with a lease and waiting jobs, and looks for a new round again and again.

Tenants: DUE, WANTS, HAS and LENT are in GPUs; BEHIND is how long the tenant would need its whole due to catch up; RHO near 1 means that it has received what it was due.
Jobs: TIME is the time left of a lease, or the time that a job has waited. WHY is the right by which a job holds its GPUs and its nodes, or what it waits for.

up, down, pgup, pgdown, home, end    move
enter     explain the marked job
s         sort by time, GPUs, tenant, user, or waiting jobs first
/         show only tenants and users with these letters, or jobs whose id begins with them; esc shows all
?         this help
q         quit, or leave this page
`

// minWidth and minHeight are the smallest size of a terminal that has room for a frame.
const minWidth, minHeight = 40, 12

// View gives the frame.
func (s *Screen) View() tea.View {
	lines := s.frame()
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.size.Width, "")
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// frame gives the lines of a frame, at most as many as the terminal has.
func (s *Screen) frame() []string {
	switch {
	case s.size.Height == 0:
		return nil
	case s.size.Width < minWidth || s.size.Height < minHeight:
		return []string{fmt.Sprintf("needs %d x %d", minWidth, minHeight)}
	case s.reading != nil:
		lines := s.textLines()
		top := min(s.reading.top, len(lines)-1)
		return s.filled(lines[top:min(top+s.size.Height-1, len(lines))], "q back  up/down move")
	}
	page := s.Page()
	var out []string
	if s.away != nil {
		out = append(out, page.Paint(fmt.Sprintf("no answer since %s; asking again: %s", page.Time(s.away.since), flat(s.away.why.Error())), "red"))
	}
	if s.picture == nil {
		if s.away == nil {
			out = append(out, "asking ...")
		}
		return s.filled(out, "q quit")
	}
	const rows = 6 // of tenants, in a third of the screen at most
	summary := s.picture.Status.Summary(page)
	if room := max(s.size.Height/4, 4); len(summary) > room {
		summary = append(summary[:room-1], fmt.Sprintf("and %s: fairlease status", view.Plural(len(summary)-room+1, "more line")))
	}
	out = append(out, summary...)
	tenants := s.tenants()
	table := lines(page, view.ShortTenantTable(tenants))
	shown := min(len(table), 1+min(rows, max(s.size.Height/5, 2)))
	out = append(append(out, ""), table[:shown]...)
	if more := len(table) - shown; more > 0 {
		out[len(out)-1] = fmt.Sprintf("and %s; / selects", view.Plural(more+1, "more tenant"))
	}
	jobs := s.jobs()
	out = append(append(out, ""), s.list(page, jobs, s.size.Height-len(out)-2)...)
	foot := fmt.Sprintf("q quit  ? help  s sort (%s)  / filter  enter explain", orders[s.order].name)
	switch {
	case s.typing:
		foot = "filter: " + s.filter + "_  (enter: keep, esc: all)"
	case s.filter != "":
		foot += "  esc all (" + s.filter + ")"
	}
	return s.filled(out, foot)
}

// tenants gives those that the filter selects: by name, or by the users of their jobs.
func (s *Screen) tenants() []store.Tenant {
	return slices.DeleteFunc(slices.Clone(s.picture.Tenants), func(t store.Tenant) bool {
		return !strings.Contains(t.Tenant, s.filter) && !slices.ContainsFunc(s.picture.Jobs, func(j view.Live) bool {
			return j.Tenant == t.Tenant && strings.Contains(j.User, s.filter)
		})
	})
}

// list gives the head and the rows of jobs around the marked one, in a number of lines.
func (s *Screen) list(page *view.Page, jobs []view.Live, room int) []string {
	at := s.at(jobs)
	rows := max(room-2, 1) // without the head and the last line
	top := max(min(at-rows/2, len(jobs)-rows), 0)
	end := min(top+rows, len(jobs))
	out := lines(page, view.LiveTable(page.Form, jobs[top:end], page.Now))
	for i := range out {
		mark := "  "
		if i-1 == at-top && len(jobs) > 0 {
			mark = "> "
		}
		out[i] = mark + out[i]
	}
	of := view.Plural(len(jobs), "job")
	if end-top < len(jobs) {
		of = fmt.Sprintf("%d to %d of %s", top+1, end, of)
	}
	if s.picture.Cut {
		of += fmt.Sprintf(", the first %d of each kind", maxRows)
	}
	return append(out, page.Paint(of, "dim"))
}

// filled puts the footer into the last line.
func (s *Screen) filled(lines []string, foot string) []string {
	out := slices.Clone(lines[:min(len(lines), s.size.Height-1)])
	for len(out) < s.size.Height-1 {
		out = append(out, "")
	}
	return append(out, s.Page().Paint(foot, "bold"))
}

// textLines gives the lines of a text in the width of the terminal.
func (s *Screen) textLines() []string {
	return strings.Split(strings.TrimRight(ansi.Wrap(s.reading.words, s.size.Width, " "), "\n"), "\n")
}

// lines gives a table as lines.
func lines(page *view.Page, t *view.Table) []string {
	var out bytes.Buffer
	p := *page
	p.Out = &out
	p.Table(t)
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// flat puts a text on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// Write writes a picture once, with all tenants and jobs.
func (p *Picture) Write(page *view.Page) {
	for _, line := range p.Status.Summary(page) {
		page.Printf("%s\n", line)
	}
	page.Printf("\n")
	page.Table(view.ShortTenantTable(p.Tenants))
	page.Printf("\n")
	page.Table(view.LiveTable(page.Form, p.Jobs, page.Now))
}
