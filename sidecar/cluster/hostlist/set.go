package hostlist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parts gives the parts of a list as written, v[1-2,05] and k1, after checking the list. A part
// may name thousands of nodes: it costs only its own length until it is expanded.
func Parts(list string) ([]string, error) {
	parts := Split(list, "[]")
	all := 0
	for _, part := range parts {
		n, err := count(part)
		if err != nil {
			return nil, fmt.Errorf("node list %.80q: %w", list, err)
		}
		if all += n; all > Max {
			return nil, fmt.Errorf("node list %.80q names more than %d nodes", list, Max)
		}
	}
	return parts, nil
}

// Readable gives the parts of a list as written, without those that make no sense, and tells whether there are any.
func Readable(list string) (parts []string, odd bool) {
	parts, err := Parts(list)
	if err == nil {
		return parts, false
	}
	for _, part := range Split(list, "[]") {
		if _, err := count(part); err == nil {
			parts = append(parts, part)
		}
	}
	return parts, true
}

// Few gives the names of a part of a list, if there are at most so many.
func Few(part string, most int) []string {
	if n, err := count(part); err != nil || n > most {
		return nil
	}
	names, _ := Expand(part)
	return names
}

// count gives the number of nodes that a part names.
func count(part string) (int, error) {
	if !strings.ContainsAny(part, "[]") {
		if len(part) > longest {
			return 0, fmt.Errorf("%.80q is too long a name", part)
		}
		return 1, nil
	}
	p, err := parse(part)
	if err != nil {
		return 0, err
	}
	all, length := 1, len(p.tail)
	for _, b := range p.brackets {
		n, width := 0, 0
		for _, r := range b.ranges {
			n, width = n+r.last-r.first+1, max(width, r.width, len(fmt.Sprint(r.last)))
			if n > Max {
				return 0, fmt.Errorf("%.80q is too long a range", part)
			}
		}
		if all, length = all*n, length+len(b.head)+width; all > Max {
			return 0, fmt.Errorf("%.80q is too long a range", part)
		}
	}
	if length > longest {
		return 0, fmt.Errorf("%.80q gives too long names", part)
	}
	return all, nil
}

// pattern is a part with brackets.
type pattern struct {
	brackets []bracket
	tail     string // after the last one
}

// bracket is the text before a pair of brackets, and the numbers in it.
type bracket struct {
	head   string
	ranges []numberRange
}

// numberRange is first to last, written with at least width digits.
type numberRange struct{ first, last, width int }

func parse(part string) (p pattern, err error) {
	rest := part
	for {
		head, after, ranged := strings.Cut(rest, "[")
		if !ranged {
			p.tail = rest
			return p, nil
		}
		if len(p.brackets) == brackets {
			return p, fmt.Errorf("%.80q has more than %d brackets in one name", part, brackets)
		}
		inside, tail, closed := strings.Cut(after, "]")
		if !closed {
			return p, fmt.Errorf("%.80q has no closing bracket", part)
		}
		b := bracket{head: head}
		for span := range strings.SplitSeq(inside, ",") {
			var r numberRange
			if r.first, r.last, r.width, err = numbers(span); err != nil {
				return p, err
			}
			b.ranges = append(b.ranges, r)
		}
		p.brackets, rest = append(p.brackets, b), tail
	}
}

// has tells whether a name matches the pattern, from a bracket on.
func (p *pattern) has(name string, from int) bool {
	if from == len(p.brackets) {
		return name == p.tail
	}
	b := &p.brackets[from]
	rest, ok := strings.CutPrefix(name, b.head)
	if !ok {
		return false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	for ; digits > 0; digits-- { // the following text may begin with digits, too
		n, err := strconv.Atoi(rest[:digits])
		if err != nil {
			continue
		}
		// Slurm pads to the width of the first number; longer numbers stay unpadded.
		hit := slices.ContainsFunc(b.ranges, func(r numberRange) bool {
			return r.first <= n && n <= r.last && digits == max(r.width, length(n))
		})
		if hit && p.has(rest[digits:], from+1) {
			return true
		}
	}
	return false
}

// length is the number of digits of a number.
func length(n int) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// Set tests names for membership in a list. It needs as much memory as the list's text.
type Set struct {
	few      []string
	many     map[string]bool // instead of few
	patterns []pattern
}

// SetOf gives the set of a list's parts, without invalid ones.
func SetOf(parts []string) *Set {
	s := &Set{}
	for _, part := range parts {
		if !strings.ContainsAny(part, "[]") {
			s.few = append(s.few, part)
		} else if p, err := parse(part); err == nil {
			s.patterns = append(s.patterns, p)
		}
	}
	const most = 8
	if len(s.few) > most {
		s.many = make(map[string]bool, len(s.few))
		for _, name := range s.few {
			s.many[name] = true
		}
		s.few = nil
	}
	return s
}

// Has tells whether a name is in the set.
func (s *Set) Has(name string) bool {
	return s.many[name] || slices.Contains(s.few, name) ||
		slices.ContainsFunc(s.patterns, func(p pattern) bool { return p.has(name, 0) })
}

// Same tells whether two lists of parts name the same nodes in the same order.
func Same(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	if !slices.ContainsFunc(a, isPattern) && !slices.ContainsFunc(b, isPattern) {
		return false
	}
	x, err := Expand(strings.Join(a, ","))
	if err != nil {
		return false
	}
	y, err := Expand(strings.Join(b, ","))
	return err == nil && slices.Equal(x, y)
}

func isPattern(part string) bool { return strings.Contains(part, "[") }
