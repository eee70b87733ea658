package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// shownKinds is the maximum number of kinds of jobs in a report.
const shownKinds = 10

// kindTable is a run's kinds of jobs on a page.
type kindTable struct {
	Scheduler string
	Summary   string
	Head      []string
	Rows      [][]string
	More      int // number of kinds not shown
}

// kinds gives the table of a run's kinds of jobs.
func kinds(s score.Scores) kindTable {
	t := kindTable{Scheduler: s.Scheduler, Head: []string{"user", "name", "GPUs", "jobs", "GPU h", "requeued", "lose work", "lost GPU h", "saves", "how known"}}
	var sum score.Kind
	for i, k := range s.Kinds {
		sum.Jobs += k.Jobs
		sum.Requeued += k.Requeued
		sum.Losers += k.Losers
		sum.Lost += k.Lost
		if i >= shownKinds {
			t.More++
			continue
		}
		t.Rows = append(t.Rows, []string{k.User, k.Name, strconv.Itoa(k.GPUs), strconv.Itoa(k.Jobs), fmt.Sprintf("%.1f", k.Held), strconv.Itoa(k.Requeued),
			strconv.Itoa(k.Losers), fmt.Sprintf("%.1f", k.Lost), k.Saves, k.Why})
	}
	t.Summary = fmt.Sprintf("Of %d jobs, %d are requeued at least once, and %d lose work: %.1f GPU h in all. Kinds of jobs, by GPU time:", sum.Jobs, sum.Requeued, sum.Losers, sum.Lost)
	return t
}

// advice says what to add to the scripts of jobs that are assumed never to save.
const advice = `Talk first to the users at the top whose jobs never save or lose work. A script that can be requeued at any time
  - traps USR1 (the notice) and TERM, saves, and goes on from its newest save when it starts
  - says so:     #SBATCH --comment=saves=notice     (or saves=term, or saves=1h where it saves every hour)
  - keeps logs:  #SBATCH --open-mode=append`

// kindLines writes a run's kinds of jobs for a terminal.
func kindLines(b *bytes.Buffer, s score.Scores) {
	if len(s.Kinds) == 0 {
		return
	}
	t := kinds(s)
	fmt.Fprintf(b, "\n%s. %s\n", plain(s.Scheduler), t.Summary)
	rows := append([][]string{t.Head}, t.Rows...)
	width := make([]int, len(t.Head))
	for _, row := range rows {
		row[1] = shorten(plain(row[1]), 40)
		for i := range row {
			row[i] = plain(row[i])
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i >= 2 && i <= 7 {
				line.WriteString("  " + pad + cell)
			} else {
				line.WriteString("  " + cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if t.More > 0 {
		fmt.Fprintf(b, "  and %d more kinds\n", t.More)
	}
	if slices.ContainsFunc(s.Kinds, func(k score.Kind) bool { return k.Saves == "never" || k.Losers > 0 }) {
		b.WriteString(advice + "\n")
	}
}

// Kinds gives the tables of the runs with kinds of jobs.
func (g group) Kinds() []kindTable {
	var out []kindTable
	for _, s := range g.Runs {
		if len(s.Kinds) > 0 {
			out = append(out, kinds(s))
		}
	}
	return out
}

// Advice is Advice, for pages.
func (t kindTable) Advice() string { return advice }
