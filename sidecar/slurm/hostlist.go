package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts bounds what one host list may name; the largest Slurm clusters have
// a tenth of it.
const maxHosts = 200_000

// hosts spells out Slurm's node lists: "v[1-2,05],k1" gives v1 v2 v05 k1.
// Several brackets in one name multiply.
func hosts(list string) ([]string, error) {
	var out []string
	for _, part := range outsideBrackets(list, "[]") {
		names, err := spellOut(part)
		if err != nil {
			return nil, fmt.Errorf("node list %.80q: %w", list, err)
		}
		if out = append(out, names...); len(out) > maxHosts {
			return nil, fmt.Errorf("node list %.80q names more than %d nodes", list, maxHosts)
		}
	}
	return out, nil
}

// outsideBrackets splits at the commas that are not between the given brackets.
func outsideBrackets(s, brackets string) []string {
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
		first, last, width, err := hostRange(span)
		if err != nil {
			return nil, err
		}
		if (last-first+1)*len(tails)+len(out) > maxHosts {
			return nil, fmt.Errorf("%.80q is too long a range", span)
		}
		for n := first; n <= last; n++ {
			for _, t := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", head, width, n, t))
			}
		}
	}
	return out, nil
}

// hostRange reads "001-010"; the digits' width is kept.
func hostRange(span string) (first, last, width int, err error) {
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
