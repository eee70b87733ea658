package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// records reads JSON record by record, with the memory of the longest record, and gives the line
// of each.
type records struct {
	name string
	text *newlines
	dec  *jsontext.Decoder
}

// Duplicate names and broken UTF-8 in unused fields are no reason to refuse a file.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func newRecords(name string, r io.Reader) *records {
	text := &newlines{r: r}
	return &records{name: name, text: text, dec: jsontext.NewDecoder(text, lenient)}
}

// list reads the elements of the next array. f gets each with its line; an error of f ends the
// reading.
func (r *records) list(f func(raw jsontext.Value, line int) error) error {
	if tok, err := r.dec.ReadToken(); err != nil {
		return r.fault(err)
	} else if tok.Kind() != '[' {
		return fmt.Errorf("%s: line %d: a list of jobs should stand here: is that the right file?", r.name, r.line(0))
	}
	for r.dec.PeekKind() != ']' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return r.fault(err)
		}
		if err := f(raw, r.line(len(raw))); err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.fault(err)
	}
	return nil
}

// end checks that only blanks are left.
func (r *records) end() error {
	_, err := r.dec.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = errors.New("there is more behind the end")
	}
	return r.fault(err)
}

// line gives the line where the last n bytes begin.
func (r *records) line(n int) int { return r.text.line(r.dec.InputOffset() - int64(n)) }

func (r *records) fault(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: line %d: this is no JSON: %w: the file is damaged: fetch it again", r.name, r.text.line(syntax.ByteOffset), syntax.Err)
	}
	return fault(r.name, r.text.line(r.text.read), err)
}

// unfit words why a record is invalid, without the decoder's own words: they differ between
// builds.
func unfit(err error) error {
	var s *json.SemanticError
	if !errors.As(err, &s) {
		return err
	}
	where := strings.ReplaceAll(strings.TrimPrefix(string(s.JSONPointer), "/"), "/", ".")
	var inner *json.SemanticError
	switch {
	case errors.As(s.Err, &inner):
		err = unfit(inner)
	case s.Err != nil:
		err = s.Err
	default:
		err = fmt.Errorf("a value that does not fit: %s", s.JSONKind)
	}
	if where == "" {
		return err
	}
	return fmt.Errorf("%.80s: %w", where, err)
}

// newlines passes bytes on and keeps the starts of lines that were not queried yet.
type newlines struct {
	r      io.Reader
	read   int64   // bytes so far
	starts []int64 // offsets of lines, ascending
	before int     // lines that begin before starts[0]
}

func (n *newlines) Read(p []byte) (int, error) {
	got, err := n.r.Read(p)
	for i, c := range p[:got] {
		if c == '\n' {
			n.starts = append(n.starts, n.read+int64(i)+1)
		}
	}
	n.read += int64(got)
	return got, err
}

// line gives the line of an offset, from 1; offsets must be queried in ascending order.
func (n *newlines) line(offset int64) int {
	done := 0
	for done < len(n.starts) && n.starts[done] <= offset {
		done++
	}
	n.before += done
	n.starts = n.starts[:copy(n.starts, n.starts[done:])]
	return n.before + 1
}
