package slurm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// reader walks through a JSON stream and accepts values in any form that some version of Slurm
// writes. A value of the wrong kind is skipped and recorded in junk; broken JSON or a broken
// connection ends everything (err).
type reader struct {
	dec   *jsontext.Decoder
	words map[string]*word
	at    *word  // name of the current member
	junk  string // path of the first invalid value since the last reset
	odd   string // the same for values that cost their record nothing else
	err   error
}

// word is a JSON string that was seen. Records are alike: the next word is usually the one that
// followed last time, and is found without a lookup among all words.
type word struct {
	raw, text string
	child     *word // name of the first member of its value
	next      *word // name of the member after it
	value     *word // its value
}

func newReader(from io.Reader) *reader {
	r := &reader{dec: new(jsontext.Decoder), words: map[string]*word{}, at: new(word)}
	r.reset(from)
	return r
}

// reset makes r read another stream; the known words stay.
func (r *reader) reset(from io.Reader) {
	// Job names hold arbitrary bytes, and the check for duplicate names would cost a third of the
	// time.
	r.dec.Reset(from, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	r.junk, r.err = "", nil
}

func (r *reader) kind() jsontext.Kind {
	if r.err != nil {
		return 0
	}
	return r.dec.PeekKind()
}

// raw gives the next value verbatim; it is valid until the next read.
func (r *reader) raw() jsontext.Value {
	if r.err != nil {
		return nil
	}
	v, err := r.dec.ReadValue()
	r.fail(err)
	return v
}

func (r *reader) token() {
	if r.err == nil {
		_, err := r.dec.ReadToken()
		r.fail(err)
	}
}

func (r *reader) skip() {
	if r.err == nil {
		r.fail(r.dec.SkipValue())
	}
}

func (r *reader) fail(err error) {
	if err == nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the reply is cut short after %d bytes: %w", r.dec.InputOffset(), io.ErrUnexpectedEOF)
	}
	if r.err == nil {
		r.err = err
	}
}

// senseless skips a value of the wrong kind.
func (r *reader) senseless() {
	v := r.raw()
	r.junkAt(v)
}

func (r *reader) junkAt(v []byte) {
	if r.err != nil || r.junk != "" {
		return
	}
	const enough = 40
	if len(v) > enough {
		v = append(v[:enough:enough], "…"...)
	}
	r.junk = fmt.Sprintf("%s is %s", r.dec.StackPointer(), v)
}

// object calls field for each member; field must read exactly one value.
// null counts as an empty object.
func (r *reader) object(field func(name string)) {
	switch r.kind() {
	case '{':
	case 'n':
		r.skip()
		return
	default:
		r.senseless()
		return
	}
	r.token()
	outer := r.at
	next := &outer.child
	for r.kind() == '"' {
		name := r.raw()
		if len(name) < 2 {
			return
		}
		r.at = r.word(name, next)
		next = &r.at.next
		field(r.at.text)
	}
	r.at = outer
	r.token()
}

// members reads an object like reader.object. An invalid value costs only itself, and is in r.odd, unless its member is
// among the given ones: with essential those that the record cannot do without, else all others.
func members(r *reader, field func(name string), essential bool, these ...string) {
	r.object(func(name string) {
		was := r.junk
		field(name)
		if was == "" && r.junk != "" && slices.Contains(these, name) != essential {
			r.odd, r.junk = cmp.Or(r.odd, r.junk), ""
		}
	})
}

// array calls item for each element; item must read exactly one value. null
// counts as an empty array.
func (r *reader) array(item func()) {
	switch r.kind() {
	case '[':
	case 'n':
		r.skip()
		return
	default:
		r.senseless()
		return
	}
	r.token()
	for k := r.kind(); k != ']' && k != 0; k = r.kind() {
		item()
	}
	r.token()
}

// word gives the word of a raw JSON string; equal strings share one. guess is the word that
// followed last time.
func (r *reader) word(raw []byte, guess **word) *word {
	if w := *guess; w != nil && w.raw == string(raw) {
		return w
	}
	w, ok := r.words[string(raw)]
	if !ok {
		w = &word{raw: string(raw)}
		w.text = unquote(w.raw)
		if len(r.words) < 100_000 {
			r.words[w.raw] = w
		}
	}
	*guess = w
	return w
}

func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return strings.ToValidUTF8(raw[1:len(raw)-1], "\uFFFD")
	}
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}

// text reads a string; null is "". A number gives its digits.
func (r *reader) text() string {
	switch r.kind() {
	case '"':
		if raw := r.raw(); len(raw) >= 2 {
			return r.word(raw, &r.at.value).text
		}
	case 'n':
		r.skip()
	case '0':
		return string(r.raw())
	default:
		r.senseless()
	}
	return ""
}

// list reads a list of strings, or a comma-separated string. null is empty.
func (r *reader) list() []string {
	if r.kind() != '[' {
		return commas(r.text())
	}
	var out []string
	r.array(func() {
		if s := r.text(); s != "" {
			out = append(out, s)
		}
	})
	return out
}

func commas(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// flag reads true and false, also as 0 and 1. null is false.
func (r *reader) flag() bool {
	switch r.kind() {
	case 't', 'f':
		raw := r.raw()
		return len(raw) > 0 && raw[0] == 't'
	}
	return r.number().n != 0
}

// number is a number of Slurm's: a value, unset, or unlimited.
type number struct {
	n        int64
	set      bool
	infinite bool
}

// Slurm's values for "unset" and "unlimited" in 32 and 64 bits. An API version that forgets to
// translate one of them must not give us an age of 136 years.
const (
	noVal      = 0xfffffffe
	infinite   = 0xffffffff
	noVal64    = 0xfffffffffffffffe
	infinite64 = 0xffffffffffffffff
)

// number reads 5, "5", true, null, "Infinity" and {"set":…,"infinite":…,"number":…}.
func (r *reader) number() number {
	switch r.kind() {
	case '0', '"':
		raw := r.raw()
		n, ok := parseNumber(bytes.Trim(raw, `"`))
		if !ok {
			r.junkAt(raw)
		}
		return n
	case 't', 'f':
		raw := r.raw()
		if len(raw) > 0 && raw[0] == 't' {
			return number{n: 1, set: true}
		}
		return number{set: true}
	case 'n':
		r.skip()
		return number{}
	case '{':
		return r.numberObject()
	}
	r.senseless()
	return number{}
}

func (r *reader) numberObject() number {
	n, set, infinite := number{}, true, false
	r.object(func(name string) {
		switch name {
		case "set":
			set = r.flag()
		case "infinite":
			infinite = r.flag()
		case "number":
			n = r.number()
		default:
			r.skip()
		}
	})
	switch {
	case infinite || n.infinite:
		return number{infinite: true}
	case !set:
		return number{}
	}
	return n
}

func parseNumber(b []byte) (number, bool) {
	s := string(b)
	if s == "" {
		return number{}, true
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		switch u {
		case noVal, noVal64:
			return number{}, true
		case infinite, infinite64:
			return number{infinite: true}, true
		}
		return number{n: int64(u), set: true}, u <= math.MaxInt64
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return number{n: n, set: true}, true
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsInf(f, 0):
		return number{infinite: true}, true
	case err != nil || math.IsNaN(f) || math.Abs(f) >= 1<<62:
		return number{}, false
	}
	return number{n: int64(f), set: true}, true
}
