// Package hostlist reads and writes lists of nodes as Slurm does: v[1-3,07],k1.
package hostlist

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a list. The largest Slurm clusters have a tenth of this number of nodes.
const (
	Max      = 200_000 // names
	longest  = 255     // letters of a name
	brackets = 8       // pairs in one name
)

// Expand expands a list in its order: "v[1-2,05],k1" gives v1 v2 v05 k1. Several brackets in one
// name multiply.
func Expand(list string) ([]string, error) {
	var out []string
	for _, part := range Split(list, "[]") {
		if strings.Count(part, "[") > brackets {
			return nil, fmt.Errorf("node list %.80q has more than %d brackets in one name", list, brackets)
		}
		names, err := spellOut(part)
		if err != nil {
			return nil, fmt.Errorf("node list %.80q: %w", list, err)
		}
		if out = append(out, names...); len(out) > Max {
			return nil, fmt.Errorf("node list %.80q names more than %d nodes", list, Max)
		}
	}
	return out, nil
}

// Split splits at commas outside the given brackets, "[]" or "()", and drops empty parts.
func Split(s, brackets string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ',' && depth == 0:
			if part := strings.TrimSpace(s[from:i]); part != "" {
				out = append(out, part)
			}
			from = i + 1
		case s[i] == brackets[0]:
			depth++
		case s[i] == brackets[1]:
			depth--
		}
	}
	return out
}

func spellOut(name string) ([]string, error) {
	head, rest, ranged := strings.Cut(name, "[")
	if !ranged {
		if len(name) > longest {
			return nil, fmt.Errorf("%.80q is too long a name", name)
		}
		return []string{name}, nil
	}
	inside, tail, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("%.80q has no closing bracket", name)
	}
	tails, err := spellOut(tail)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, span := range strings.Split(inside, ",") {
		first, last, width, err := numbers(span)
		if err != nil {
			return nil, err
		}
		if (last-first+1)*len(tails)+len(out) > Max {
			return nil, fmt.Errorf("%.80q is too long a range", span)
		}
		if len(head)+width+len(tails[0]) > longest {
			return nil, fmt.Errorf("%.80q gives too long names", name)
		}
		for n := first; n <= last; n++ {
			for _, t := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", head, width, n, t))
			}
		}
	}
	return out, nil
}

// numbers reads "001-010"; the digits' width is kept.
func numbers(span string) (first, last, width int, err error) {
	a, b, many := strings.Cut(span, "-")
	if !many {
		b = a
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || first < 0 || last < first || last > 1<<40 {
		return 0, 0, 0, fmt.Errorf("%.80q is no range of nodes", span)
	}
	return first, last, len(a), nil
}

// Compress shortens a list of node names in their order: v[1-3,7],w1.
func Compress(nodes []string) string {
	type group struct {
		prefix string
		width  int
		ranges []string
		from   int
		to     int
	}
	var out []string
	var g *group
	end := func() {
		if g == nil {
			return
		}
		g.ranges = append(g.ranges, span(g.from, g.to, g.width))
		if text := strings.Join(g.ranges, ","); strings.ContainsAny(text, ",-") {
			out = append(out, g.prefix+"["+text+"]")
		} else {
			out = append(out, g.prefix+text)
		}
		g = nil
	}
	for _, node := range nodes {
		prefix := strings.TrimRight(node, "0123456789")
		digits := node[len(prefix):]
		n, ok := number(digits)
		if !ok {
			end()
			out = append(out, node)
			continue
		}
		switch {
		case g == nil || g.prefix != prefix || g.width != len(digits) && (digits[0] == '0' || g.width > len(digits)):
			end()
			g = &group{prefix: prefix, width: len(digits), from: n, to: n}
		case n == g.to+1:
			g.to = n
		default:
			g.ranges = append(g.ranges, span(g.from, g.to, g.width))
			g.from, g.to = n, n
		}
	}
	end()
	return strings.Join(out, ",")
}

func span(from, to, width int) string {
	if from == to {
		return fmt.Sprintf("%0*d", width, from)
	}
	return fmt.Sprintf("%0*d-%0*d", width, from, width, to)
}

// number reads up to nine digits.
func number(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n, true
}

// Compare orders names naturally: v2 before v10.
func Compare(a, b string) int {
	x, y := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	n, _ := number(a[len(x):])
	m, _ := number(b[len(y):])
	return cmp.Or(strings.Compare(x, y), cmp.Compare(n, m), strings.Compare(a, b))
}
