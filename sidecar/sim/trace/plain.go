package trace

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
)

// The columns of the plain CSV: required and optional ones, with durations in seconds.
var (
	plainColumns = []string{"job_id", "tenant", "user", "gpus", "submit_time", "duration_s", "state"}
	extraColumns = []string{"name", "nodes", "cpus", "memory_mb", "model", "kind", "limit_s"}
)

func readPlain(t *table, c *collector) (*Trace, error) {
	if err := t.header(); err != nil {
		return nil, err
	}
	if err := t.needs("job_id", "tenant", "gpus", "submit_time", "duration_s"); err != nil {
		return nil, err
	}
	err := t.each(c, func() error {
		text := func(column string) string { return chart.Text(t.get(column)) }
		j := Job{ID: text("job_id"), Tenant: text("tenant"), User: text("user"),
			Name: text("name"), Model: text("model"), Kind: text("kind"), Outcome: outcomeOf(t.get("state"))}
		var errs [7]error
		j.GPUs, errs[0] = must(t, "gpus", count)
		j.Submit, errs[1] = must(t, "submit_time", seconds)
		j.Runs, errs[2] = must(t, "duration_s", seconds)
		j.Nodes, errs[3] = value(t, "nodes", count)
		j.CPUs, errs[4] = value(t, "cpus", count)
		memory, err := value(t, "memory_mb", amount)
		j.MemoryMB, errs[5] = int64(memory), err
		j.Limit, errs[6] = value(t, "limit_s", seconds)
		if err := first(errs[:]); err != nil {
			return err
		}
		c.keep(j, note{}, t.name, t.line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.finish(false), nil
}

// needs checks that the header has the columns.
func (t *table) needs(columns ...string) error {
	var missing []string
	for _, col := range columns {
		if !t.has(col) {
			missing = append(missing, col)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: line %d: the header lacks the column %s", t.name, t.line, strings.Join(missing, ", "))
	}
	return nil
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Write writes jobs as plain CSV with its seven columns, so that any trace can be converted. The
// order is kept; Submit is in seconds since the epoch, which the file does not contain. Fields
// without a column are lost: see WriteFull. No text begins a formula where a spreadsheet opens the file: see chart.Cell.
func Write(w io.Writer, jobs iter.Seq[Job]) error { return write(w, jobs, false) }

// WriteFull is Write with a column for every field of Job.
func WriteFull(w io.Writer, jobs iter.Seq[Job]) error { return write(w, jobs, true) }

func write(w io.Writer, jobs iter.Seq[Job], full bool) error {
	out := csv.NewWriter(w)
	row := append([]string{}, plainColumns...)
	if full {
		row = append(row, extraColumns...)
	}
	err := out.Write(row)
	for j := range jobs {
		if err != nil {
			break
		}
		row = append(row[:0], chart.Cell(j.ID), chart.Cell(j.Tenant), chart.Cell(j.User), strconv.Itoa(j.GPUs), inSeconds(j.Submit), inSeconds(j.Runs), j.Outcome)
		if j.Outcome == "" {
			row[6] = "UNKNOWN"
		}
		if full {
			row = append(row, chart.Cell(j.Name), unlessZero(int64(j.Nodes)), unlessZero(int64(j.CPUs)), unlessZero(j.MemoryMB), chart.Cell(j.Model), chart.Cell(j.Kind), "")
			if j.Limit > 0 {
				row[13] = inSeconds(j.Limit)
			}
		}
		err = out.Write(row)
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

// inSeconds writes whole seconds without decimals, and others with three.
func inSeconds(s cluster.Span) string {
	if s%cluster.Second == 0 {
		return strconv.FormatInt(int64(s/cluster.Second), 10)
	}
	return strconv.FormatFloat(float64(s)/1000, 'f', 3, 64)
}

func unlessZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
