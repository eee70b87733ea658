package trace

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// longestLine bounds the cost of one row. The longest real ones, jobs on thousands of nodes, have
// about 100 kB.
const longestLine = 1 << 20

// lines reads a text line by line. A row never extends beyond its line: a lone quote spoils one
// row, not the rest of the file.
type lines struct {
	r    *bufio.Reader
	line int // of the last line returned, from 1
	buf  []byte
	held *ahead
}

// ahead is a line that has been read, but not returned yet.
type ahead struct {
	text string
	long bool
	line int
}

// next gives the next non-empty line, without its end; io.EOF after the last. A line that is too
// long is truncated, with long set.
func (l *lines) next() (text string, long bool, err error) {
	if h := l.held; h != nil {
		l.held, l.line = nil, h.line
		return h.text, h.long, nil
	}
	for {
		l.buf, long = l.buf[:0], false
		for {
			var part []byte
			part, err = l.r.ReadSlice('\n')
			if room := longestLine - len(l.buf); len(part) > room {
				part, long = part[:room], true
			}
			l.buf = append(l.buf, part...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil && !errors.Is(err, io.EOF) || err != nil && len(l.buf) == 0 {
			return "", false, err
		}
		l.line++
		text = strings.TrimRight(string(l.buf), "\r\n")
		if strings.TrimSpace(text) != "" {
			return text, long, nil
		}
	}
}

// peek gives the line that next will give; ok = there is one.
func (l *lines) peek() (text string, ok bool) {
	if l.held == nil {
		at := l.line
		text, long, err := l.next()
		if err != nil { // next meets it again
			l.line = at
			return "", false
		}
		l.held, l.line = &ahead{text, long, l.line}, at
	}
	return l.held.text, !l.held.long
}

// table is a text with one row per line, mostly with a header.
type table struct {
	lines
	name    string // of the file
	comma   byte
	columns map[string]int
	width   int
	heading string
	free    int // the column whose text users choose, if there is one such column; -1 = none
	row     []string
}

// freeText are columns of sacct whose texts may contain its delimiter, and ends of lines.
var freeText = []string{"jobname", "comment", "admincomment", "systemcomment", "extra", "submitline", "workdir", "wckey", "reason", "failednode"}

// header reads the first line as column names, in lower case.
func (t *table) header() error {
	text, _, err := t.next()
	if err != nil {
		return t.fault(err)
	}
	if t.row, err = t.split(text); err != nil {
		return fmt.Errorf("%s: line %d: the header: %w", t.name, t.line, err)
	}
	t.columns, t.width, t.heading = map[string]int{}, len(t.row), text
	for i, name := range t.row {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := t.columns[name]; twice && name != "" {
			return fmt.Errorf("%s: line %d: the header names the column %.80q twice: leave one out", t.name, t.line, name)
		}
		t.columns[name] = i
	}
	t.free = -1
	if t.comma != '|' {
		return nil
	}
	for _, name := range freeText {
		i, ok := t.columns[name]
		if ok && t.free >= 0 {
			t.free = -1
			break
		}
		if ok {
			t.free = i
		}
	}
	return nil
}

// mend puts a row together whose free text contains delimiters or ends of lines. A row that cannot be mended stays as it is. A line that does not
// begin with a job's id, where that is the first column, belongs to the row before; so does a short line after a short row.
func (t *table) mend() {
	ids := t.has("jobid") && t.columns["jobid"] == 0 || t.has("jobidraw") && t.columns["jobidraw"] == 0
	for size := 0; len(t.row) > t.free && size < longestLine; {
		more, ok := t.peek()
		size += len(more)
		belongs := ok && more != t.heading && (ids && (more[0] < '0' || more[0] > '9') || len(t.row) < t.width && strings.Count(more, "|")+1 < t.width)
		if !belongs {
			break
		}
		t.append(more)
	}
	if extra := len(t.row) - t.width; extra > 0 && len(t.row) > t.free {
		t.row[t.free] = strings.Join(t.row[t.free:t.free+extra+1], "|")
		t.row = slices.Delete(t.row, t.free+1, t.free+extra+1)
	}
}

// append takes the next line as a part of the row. A space stands for the end of the line.
func (t *table) append(more string) {
	_, _, _ = t.next()
	fields := strings.Split(more, "|")
	t.row[len(t.row)-1] += " " + fields[0]
	t.row = append(t.row, fields[1:]...)
}

// each calls f for every remaining row, at t.row and t.line. The error of f says what is wrong
// with the row.
func (t *table) each(c *collector, f func() error) error {
	for {
		text, long, err := t.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return t.fault(err)
		}
		c.row()
		if long {
			c.bad(t.name, t.line, "longer than %d bytes", longestLine)
			continue
		}
		if t.row, err = t.split(text); err == nil && t.comma == '|' && t.free >= 0 {
			t.mend()
		}
		if err == nil && len(t.row) != t.width {
			err = fmt.Errorf("%d columns instead of %d", len(t.row), t.width)
		}
		if err == nil {
			err = f()
		}
		if err != nil {
			c.bad(t.name, t.line, "%v", err)
		}
	}
}

// split cuts a line into its fields; sacct's has no quotes.
func (t *table) split(text string) ([]string, error) {
	if t.comma == ',' && strings.IndexByte(text, '"') >= 0 {
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = -1
		row, err := r.Read()
		if err != nil {
			return nil, errors.New("a quote that is not closed or stands in the middle")
		}
		return row, nil
	}
	row := t.row[:0]
	for {
		i := strings.IndexByte(text, t.comma)
		if i < 0 {
			return append(row, text), nil
		}
		row, text = append(row, text[:i]), text[i+1:]
	}
}

// has tells whether a column exists.
func (t *table) has(column string) bool {
	_, ok := t.columns[column]
	return ok
}

// get gives the trimmed value of a column; "" if the column is missing.
func (t *table) get(column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(t.row[i])
}

// value reads a column; without a value it gives the zero value.
func value[T any](t *table, column string, read func(string) (T, error)) (T, error) {
	var zero T
	s := t.get(column)
	if none(s) {
		return zero, nil
	}
	v, err := read(s)
	if err != nil {
		return zero, fmt.Errorf("%s %.80q: %w", column, s, err)
	}
	return v, nil
}

// must is value for required columns.
func must[T any](t *table, column string, read func(string) (T, error)) (T, error) {
	if none(t.get(column)) {
		var zero T
		return zero, fmt.Errorf("no %s", column)
	}
	return value(t, column, read)
}

// fault words a read error.
func (t *table) fault(err error) error { return fault(t.name, t.line+1, err) }

func fault(name string, line int, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: line %d: the file ends too early: fetch it again", name, line)
	}
	return fmt.Errorf("%s: line %d: cannot go on reading: %w: check the disk, or fetch the file again", name, line, err)
}
