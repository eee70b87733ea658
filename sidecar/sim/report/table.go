package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Table writes the scores for a terminal: a block for each trace and size of cluster, a line for
// each scheduler. The heads have names and units, and "*" marks the best of those that end their jobs. The tenants that an
// audit found to wait longer follow. The error is w's.
func Table(w io.Writer, runs []score.Scores) error {
	var b bytes.Buffer
	for _, g := range groups(runs) {
		fmt.Fprintf(&b, "%s on %s\n", plain(g.Trace), g.Size())
		for _, line := range g.Saves() {
			b.WriteString(plain(line) + "\n")
		}
		for _, p := range parts(g.Runs) {
			b.WriteString("\n")
			block(&b, p, g.Runs)
		}
		for _, s := range g.Runs {
			if s.CutShort {
				fmt.Fprintf(&b, "\n%s was cut short after %s of simulated time: its scores are not to be compared\n", plain(s.Scheduler), s.To.Sub(s.From))
			}
			auditLines(&b, s)
			kindLines(&b, s)
		}
		b.WriteString("\n")
		if len(g.Runs) > 1 {
			b.WriteString("* the best; rho: GPU time received over GPU time due; sharing loss: jobs that received less than they were due\n")
			verdicts(&b, g.Runs)
			b.WriteString("\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// block writes one part of the table with aligned columns.
func block(b *bytes.Buffer, p part, runs []score.Scores) {
	rows := [][]string{{strings.ToLower(p.Name)}, {""}}
	for _, m := range p.Measures {
		rows[0] = append(rows[0], m.Name+" ") // space for the mark
		rows[1] = append(rows[1], m.Unit+" ")
	}
	for _, s := range runs {
		row := []string{shorten(plain(s.Scheduler), 24)}
		for _, m := range p.Measures {
			text, mark := m.Text(s), " "
			if m.leads(s, runs) {
				mark = "*"
			}
			row = append(row, text+mark)
		}
		rows = append(rows, row)
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// auditLines names the tenants that wait longer than in a cluster of their own.
func auditLines(b *bytes.Buffer, s score.Scores) {
	if s.Audit == nil {
		return
	}
	fmt.Fprintf(b, "\n%s against a private cluster for each tenant:\n", plain(s.Scheduler))
	longer := false
	for _, a := range s.Audit {
		if !a.Longer {
			continue
		}
		longer = true
		fmt.Fprintf(b, "  %s waits longer: %.1f h instead of %.1f h%s over %d jobs%s; %d of them wait longer, by %.1f h in all\n",
			plain(a.Tenant), a.Shared, a.Private, enlarged(a), a.Jobs, leftOut(a), a.Worse, a.Lost)
		for _, j := range a.Worst[:min(3, len(a.Worst))] {
			fmt.Fprintf(b, "    job %s of %s, %d GPUs: %.1f h instead of %.1f h%s\n", plain(j.Job), plain(j.User), j.GPUs, j.Shared, j.Private, soFar(j))
		}
	}
	if !longer {
		b.WriteString("  no tenant waits longer\n")
	}
}

// enlarged says how a private cluster exceeds the tenant's share.
func enlarged(a score.Audited) string {
	if float64(a.GPUs) < a.Share+1 {
		return ""
	}
	return fmt.Sprintf(" on %d GPUs, which its gangs need though its share is %.1f,", a.GPUs, a.Share)
}

func leftOut(a score.Audited) string {
	if a.LeftOut == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more had no end there)", a.LeftOut)
}

func soFar(j score.Anomaly) string {
	if !j.Unfinished {
		return ""
	}
	return " so far, unfinished"
}

// plain makes a name safe for a terminal.
func plain(name string) string { return strings.Map(printable, name) }

// printable replaces control and direction marks.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// shorten keeps both ends of a name that is longer than n letters: names of one site often differ
// at the end.
func shorten(name string, n int) string {
	r := []rune(name)
	if len(r) <= n {
		return name
	}
	tail := (n - 1) / 2
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}
