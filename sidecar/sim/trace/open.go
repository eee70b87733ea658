package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PAI's tables by the names that their publisher gave them.
const (
	paiJobTable  = "pai_job_table"
	paiTaskTable = "pai_task_table"
)

// known ends the error about an unknown file.
const known = "known are Philly's cluster_job_log, Helios' cluster_log.csv, PAI's job and task tables, sacct -P, " +
	"slurmdbd's JSON, Gavel's jobs, and CSV with the header job_id,tenant,user,gpus,submit_time,duration_s,state"

// Open reads the trace in a file, gzipped or not; for PAI in the folder with both tables, or in
// either of them. An error names the file and line that cannot be read; invalid rows are no
// errors but in the trace's Bad and Counts.
func Open(path string, o Options) (*Trace, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info.IsDir() {
		table, err := paiFile(path, paiJobTable)
		if err != nil {
			return nil, fmt.Errorf("%s is a folder without the tables of PAI: %w: name the file to read", path, err)
		}
		path = table
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	s, err := newSource(f, path, o)
	if err != nil {
		return nil, err
	}
	if s.format != FormatPAI {
		return s.read(o)
	}
	return openPAI(s, o)
}

// Read reads the trace in a stream, gzipped or not, as Open does; name is the file's name. It refuses PAI's tables, which come in two.
func Read(r io.Reader, name string, o Options) (*Trace, error) {
	s, err := newSource(r, name, o)
	if err != nil {
		return nil, err
	}
	return s.read(o)
}

func unreadable(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: cannot be read: %w: check the name and who may read it", path, err)
}

// openPAI reads the open table and the other one beside it.
func openPAI(s *source, o Options) (*Trace, error) {
	mine, other := paiJobTable, paiTaskTable
	if s.tasks {
		mine, other = other, mine
	}
	path, err := paiFile(filepath.Dir(s.name), other)
	if err != nil {
		return nil, fmt.Errorf("%s is PAI's %s, which needs %s beside it: %w", s.name, mine, other, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	o.Format = FormatPAI
	second, err := newSource(f, path, o)
	if err != nil {
		return nil, err
	}
	if second.tasks == s.tasks && second.sure {
		return nil, fmt.Errorf("%s and %s are the same table of PAI: one must be the job table, the other the task table", s.name, path)
	}
	if s.tasks {
		s, second = second, s
	}
	c := newCollector(o)
	c.trace.Name, c.trace.Format = "pai", FormatPAI
	return readPAI(s.table(), second.table(), c)
}

func paiFile(dir, name string) (string, error) {
	for _, end := range []string{".csv", ".csv.gz"} {
		path := filepath.Join(dir, name+end)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s.csv and no %s.csv.gz in %s", name, name, dir)
}

// source is a stream whose start was inspected.
type source struct {
	name   string
	r      *bufio.Reader
	format Format
	tasks  bool // PAI's task table
	sure   bool // certain by the content
}

// newSource unpacks the stream and detects its format.
func newSource(r io.Reader, name string, o Options) (*source, error) {
	s := &source{name: name, r: bufio.NewReaderSize(r, 1<<16)}
	if head, _ := s.r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(s.r)
		if err != nil {
			return nil, fmt.Errorf("%s: not a whole gzip file: %w: fetch it again", name, err)
		}
		s.r = bufio.NewReaderSize(z, 1<<16)
	}
	head, err := s.r.Peek(1 << 16)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fault(name, 1, err)
	}
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, bom) {
		head = head[len(bom):]
		_, _ = s.r.Discard(len(bom))
	}
	if what := packed(head); what != "" {
		return nil, fmt.Errorf("%s: %s: unpack it and name the file to read; only gzip is read as it is", name, what)
	}
	s.format, s.tasks, err = detect(head)
	s.sure = err == nil
	if o.Format != "" {
		s.format, err = o.Format, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// packed names the compression of a file that needs another tool; "" = none.
func packed(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "packed with zip"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "packed with zstd"
	case bytes.HasPrefix(head, []byte("\xfd7zXZ")):
		return "packed with xz"
	case bytes.HasPrefix(head, []byte("BZh")):
		return "packed with bzip2"
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "a tar archive"
	}
	return ""
}

// detect detects the format by the start of a file.
func detect(head []byte) (f Format, tasks bool, err error) {
	text := strings.TrimSpace(string(head))
	switch {
	case text == "":
		return "", false, errors.New("the file is empty: look whether the command that wrote it had an error")
	case text[0] == '[':
		return FormatPhilly, false, nil
	case text[0] == '{':
		return FormatSlurmdb, false, nil
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	lower := strings.ToLower(line)
	columns := map[string]bool{}
	for _, col := range strings.FieldsFunc(lower, func(r rune) bool { return r == '|' || r == ',' }) {
		columns[strings.Trim(col, `" `)] = true
	}
	row := strings.Split(line, ",")
	switch {
	case strings.Contains(line, "|") && (columns["jobid"] || columns["jobidraw"]):
		return FormatSacct, false, nil
	case columns["job_id"] && columns["gpu_num"]:
		return FormatHelios, false, nil
	case columns["job_id"] && columns["gpus"]:
		return FormatPlain, false, nil
	case columns["job_type"] && columns["unit_arrival"]:
		return FormatGavel, false, nil
	case lower == strings.Join(paiJobColumns, ",") || len(row) == len(paiJobColumns) && numeric(row[4]) && numeric(row[5]):
		return FormatPAI, false, nil
	case lower == strings.Join(paiTaskColumns, ",") || len(row) == len(paiTaskColumns) && numeric(row[2]) && numeric(row[4]) && numeric(row[8]):
		return FormatPAI, true, nil
	}
	if strings.Contains(line, "|") || strings.HasPrefix(lower, "jobid") || strings.Contains(lower, ",jobid") {
		return "", false, fmt.Errorf("line 1 %.120q is not the header of sacct -P (without -n): run %s", line, SacctCommand)
	}
	return "", false, fmt.Errorf("line 1 %.120q is the start of no trace that can be read: %s", line, known)
}

func numeric(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return s == "" || err == nil
}

// table gives the stream as rows of a text format.
func (s *source) table() *table {
	t := &table{lines: lines{r: s.r}, name: s.name, comma: ','}
	if s.format == FormatSacct {
		t.comma = '|'
	}
	return t
}

func (s *source) read(o Options) (*Trace, error) {
	c := newCollector(o)
	c.trace.Name, c.trace.Format = title(s.name), s.format
	switch s.format {
	case FormatPlain:
		return readPlain(s.table(), c)
	case FormatHelios:
		return readHelios(s.table(), c)
	case FormatSacct:
		return readSacct(s.table(), c)
	case FormatGavel:
		return readGavel(s.table(), c)
	case FormatPhilly:
		return readPhilly(newRecords(s.name, s.r), c)
	case FormatSlurmdb:
		return readSlurmdb(newRecords(s.name, s.r), c)
	case FormatPAI:
		return nil, fmt.Errorf("%s is one of PAI's tables, which come in two: name the folder with both", s.name)
	}
	return nil, fmt.Errorf("%s: there is no format %q: %s", s.name, s.format, known)
}

// title gives a file's name without folder and extensions.
func title(name string) string {
	name = filepath.Base(name)
	for _, end := range []string{".gz", ".csv", ".json", ".txt"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}
