package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
)

// A delta encodes a JSON text as changes to another one. Both are cut into pieces where the
// elements of lists of objects begin: a job, a lease, a node. Most pieces of two rounds differ
// only in a few numbers, and those by little. So a piece is encoded as the number of a piece of
// the old text with additions to some of its numbers, or else literally:
//
//	piece   = 0 length letters | distance+1 count { gap sum }
//
// All are varints. distance, from the piece after the previous one, and sum may be negative; gap
// counts the unchanged numbers before the next change.
//
// A compressor with the old text as its dictionary does the same until the texts exceed its
// tables (about a megabyte). Then it loses its place, and a difference gets as long as the whole.

// cut gives the pieces of a text. Joined they are the text, whatever it is.
func cut(text []byte) [][]byte {
	var pieces [][]byte
	start := 0
	for i := 1; i < len(text); i++ {
		if text[i] == '{' && (text[i-1] == ',' || text[i-1] == '[') {
			pieces = append(pieces, text[start:i])
			start = i
		}
	}
	return append(pieces, text[start:])
}

// original is the text that deltas refer to.
type original struct {
	pieces [][]byte
	named  map[string]int // by the beginning of a piece
}

func newOriginal(text []byte) *original {
	o := &original{pieces: cut(text)}
	o.named = make(map[string]int, len(o.pieces))
	for i, piece := range o.pieces {
		o.named[string(nameOf(piece))] = i
	}
	return o
}

// nameOf gives the beginning of a piece, up to its first number: a job's id or key, or a node's
// name before it.
func nameOf(piece []byte) []byte {
	piece = piece[:min(len(piece), 48)]
	for n := 0; n < len(piece); {
		_, length, number := token(piece[n:])
		n += length
		if number {
			return piece[:n]
		}
	}
	return piece
}

// delta encodes the text.
func (o *original) delta(text []byte) []byte {
	var out, sums []byte
	next := 0
	for _, piece := range cut(text) {
		at := next
		if at >= len(o.pieces) || !bytes.Equal(nameOf(o.pieces[at]), nameOf(piece)) {
			if found, ok := o.named[string(nameOf(piece))]; ok {
				at = found
			}
		}
		count, ok := 0, false
		if at < len(o.pieces) {
			sums, count, ok = changes(sums[:0], o.pieces[at], piece)
		}
		if !ok {
			out = binary.AppendUvarint(out, 0)
			out = binary.AppendUvarint(out, uint64(len(piece)))
			out = append(out, piece...)
			continue
		}
		out = binary.AppendUvarint(out, 1+zigzag(int64(at-next)))
		out = binary.AppendUvarint(out, uint64(count))
		out = append(out, sums...)
		next = at + 1
	}
	return out
}

// changes appends the additions to numbers of old that give text. It fails if they differ in
// anything else.
func changes(out, old, text []byte) (_ []byte, count int, ok bool) {
	if bytes.Equal(old, text) {
		return out, 0, true
	}
	gap := uint64(0)
	for len(old) > 0 && len(text) > 0 {
		a, aLen, aNumber := token(old)
		b, bLen, bNumber := token(text)
		switch {
		case aNumber != bNumber, !aNumber && !bytes.Equal(old[:aLen], text[:bLen]):
			return out, 0, false
		case aNumber && a == b:
			gap++
		case aNumber:
			out = binary.AppendUvarint(out, gap)
			out = binary.AppendUvarint(out, zigzag(b-a))
			gap = 0
			count++
		}
		old, text = old[aLen:], text[bLen:]
	}
	return out, count, len(old) == len(text)
}

// token gives the length of the text's first token: its leading digits, or all before the next
// digit. Digits are a number if they are its only spelling; then value is its value.
func token(text []byte) (value int64, length int, number bool) {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n == 0 {
		for n < len(text) && (text[n] < '0' || text[n] > '9') {
			n++
		}
		return 0, n, false
	}
	if n > 18 || n > 1 && text[0] == '0' {
		return 0, n, false
	}
	for _, digit := range text[:n] {
		value = value*10 + int64(digit-'0')
	}
	return value, n, true
}

// appendDelta appends the text's length, the delta's length, and the delta.
func (o *original) appendDelta(out, text []byte) []byte {
	delta := o.delta(text)
	return append(appendNumbers(out, uint64(len(text)), uint64(len(delta))), delta...)
}

// appendChange appends the difference from another text: a delta, or length 0 if they are equal.
func appendChange(out, old, text []byte) []byte {
	if bytes.Equal(old, text) {
		return appendNumbers(out, uint64(len(text)), 0)
	}
	return newOriginal(old).appendDelta(out, text)
}

// mostText bounds the output of a broken delta, in bytes.
const mostText = 1 << 28

// text reads the output of appendChange.
func (r *reader) text(old []byte) []byte {
	length, delta := r.number(), r.bytes(r.number())
	if r.broken || length > mostText {
		r.broken = true
		return nil
	}
	if len(delta) == 0 && length == uint64(len(old)) {
		return old
	}
	text, err := newOriginal(old).apply(delta, int64(length))
	r.broken = err != nil
	return text
}

var errDelta = errors.New("the difference is broken, or is not to this keyframe")

// apply decodes a delta to a text of limit bytes.
func (o *original) apply(delta []byte, limit int64) ([]byte, error) {
	in := reader{left: delta}
	out := make([]byte, 0, min(limit, int64(len(delta))*64))
	next := 0
	for len(in.left) > 0 && !in.broken {
		distance := in.number()
		if distance == 0 {
			out = append(out, in.bytes(in.number())...)
		} else {
			at := int64(next) + unzigzag(distance-1)
			if at < 0 || at >= int64(len(o.pieces)) {
				return nil, errDelta
			}
			out = in.change(out, o.pieces[at])
			next = int(at) + 1
		}
		if int64(len(out)) > limit {
			return nil, errDelta
		}
	}
	if in.broken || int64(len(out)) != limit {
		return nil, errDelta
	}
	return out, nil
}

// reader reads a delta. Once it is broken it reads zeros.
type reader struct {
	left   []byte
	broken bool
}

func (r *reader) number() uint64 {
	value, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.broken, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return value
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.broken, r.left = true, nil
		return nil
	}
	out := r.left[:n]
	r.left = r.left[n:]
	return out
}

// fail gives the part of a broken sheet that was read.
func (r *reader) fail(so *sheet) *sheet {
	r.broken, r.left = true, nil
	return so
}

func appendNumbers(out []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		out = binary.AppendUvarint(out, n)
	}
	return out
}

// change appends the old piece with its changes.
func (r *reader) change(out, old []byte) []byte {
	for count := r.number(); count > 0 && !r.broken; count-- {
		gap := r.number()
		sum := unzigzag(r.number())
		for {
			value, length, number := token(old)
			if length == 0 {
				r.broken = true // no such number
				return out
			}
			if number && gap == 0 {
				out = strconv.AppendInt(out, value+sum, 10)
				old = old[length:]
				break
			}
			if number {
				gap--
			}
			out = append(out, old[:length]...)
			old = old[length:]
		}
	}
	return append(out, old...)
}

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }
