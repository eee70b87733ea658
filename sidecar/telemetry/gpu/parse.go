package gpu

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// entry is a counter of the table, as the parser finds it.
type entry struct {
	meaning Meaning
	unit    Unit
	factor  float64
	rank    uint8 // place in the meaning's list, from 1
	// newer and older tell that only exporters from 4.9 on, or before 4.9, have the name.
	newer, older bool
}

// credible gives a value in the unit of the meaning; NaN if it cannot be.
func (e *entry) credible(value float64) float64 { return within(value*e.factor, mosts[e.meaning]) }

// Parser reads expositions in Prometheus' text format. It looks at the counters of its table only; other lines cost next
// to nothing. It is safe for concurrent use.
type Parser struct {
	entries map[string]*entry
	table   Table
}

// NewParser makes a parser for the counters of a table.
func NewParser(t Table) *Parser {
	p := &Parser{entries: map[string]*entry{}, table: t}
	def := DefaultTable()
	for m, list := range t {
		for i, c := range list {
			e := &entry{meaning: Meaning(m), unit: c.Unit, factor: units[c.Unit], rank: uint8(min(i+1, 255))}
			// In the default table the old name of a counter comes first, the new one second.
			if at := slices.Index(def[m], c); len(def[m]) == 2 && c.Unit != percentOrRatio && Meaning(m) != Capacity {
				e.older, e.newer = at == 0, at == 1
			}
			p.entries[c.Name] = e
		}
	}
	return p
}

// errNoCounter tells that an exposition has no counter of the table with a GPU.
var errNoCounter = errors.New("it has no GPU counter that telemetry.gpu knows; is it dcgm-exporter's /metrics? Other names can be set in telemetry.gpu.counters")

// Parse reads the exposition of one node. host is what the node is called in it; "" = it does not say. Lines that make no sense are left
// out. The error is of text that is cut off, where nothing counts, and of text without a GPU counter that makes sense.
func (p *Parser) Parse(text []byte) (rows []Row, host string, err error) {
	var g gather
	return p.parse(&g, text)
}

func (p *Parser) parse(g *gather, text []byte) (rows []Row, host string, err error) {
	g.reset()
	var at []byte // the node's name
	var last []byte
	var e *entry
	var odd error // of the first line that makes no sense
	for line := 1; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			if err = fmt.Errorf("line %d is cut off", line); len(g.rows) == 0 {
				err = cmp.Or(odd, err)
			}
			return nil, "", err
		}
		s := scanner{text: text[:end]}
		text = text[end+1:]
		s.blanks()
		switch c := s.peek(); {
		case c == 0 && s.done(), c == '{': // no exporter of GPUs writes the name inside the braces
			continue
		case c == '#':
			p.help(g, s.text[s.at:])
			continue
		case !letter(c):
			if odd == nil {
				odd = fmt.Errorf("line %d is no metric: %q", line, s.text[:min(len(s.text), 60)])
			}
			continue
		}
		if name := s.name(); !bytes.Equal(name, last) { // the samples of a counter follow each other
			e, last = p.entries[string(name)], name
		}
		if e == nil {
			continue
		}
		x := sample{entry: e, index: -1}
		here, err := s.sample(&x)
		if err != nil {
			if odd == nil {
				odd = fmt.Errorf("line %d: %w", line, err)
			}
			continue
		}
		if x.index >= 0 {
			if err := g.add(&x); err != nil {
				return nil, "", fmt.Errorf("line %d: %w", line, err)
			}
		}
		if len(here) > 0 {
			at = here
		}
	}
	if len(g.rows) == 0 {
		return nil, "", cmp.Or(odd, errNoCounter)
	}
	return g.finish(), string(at), nil
}

// help notes what HELP says of the scale of a counter that has had two.
func (p *Parser) help(g *gather, comment []byte) {
	rest, ok := bytes.CutPrefix(comment, []byte("# HELP "))
	if !ok {
		return
	}
	name, words, _ := bytes.Cut(rest, []byte(" "))
	if e := p.entries[string(name)]; e == nil || e.unit != percentOrRatio || len(words) == 0 {
		return
	}
	g.told = "ratio"
	if bytes.Contains(words, []byte("%")) || bytes.Contains(words, []byte("percent")) {
		g.told = "percent"
	}
}

func sortRows(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int { return byPlace(&a, &b) })
}

// scanner reads one line.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) done() bool { return s.at == len(s.text) }

// peek gives the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.done() {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) blanks() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
}

func (s *scanner) name() []byte {
	from := s.at
	for s.at < len(s.text) && (letter(s.text[s.at]) || s.text[s.at] >= '0' && s.text[s.at] <= '9') {
		s.at++
	}
	return s.text[from:s.at]
}

// token reads up to the next blank.
func (s *scanner) token() []byte {
	s.blanks()
	from := s.at
	for s.at < len(s.text) && s.text[s.at] != ' ' && s.text[s.at] != '\t' {
		s.at++
	}
	return s.text[from:s.at]
}

// sample reads the labels and the value after a counter's name. host is the node's name in it.
func (s *scanner) sample(x *sample) (host []byte, err error) {
	s.blanks()
	if s.peek() == '{' {
		s.at++
		if host, err = s.labels(x); err != nil {
			return nil, err
		}
	}
	value := s.token()
	number, ok := decimal(value)
	if !ok {
		if number, err = strconv.ParseFloat(string(value), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%q is no number", value[:min(len(value), 40)])
		}
	}
	x.value = number
	if stamp := s.token(); len(stamp) > 0 {
		if _, err := strconv.ParseInt(string(stamp), 10, 64); err != nil {
			return nil, fmt.Errorf("%q after the value is no time", stamp[:min(len(stamp), 40)])
		}
	}
	if rest := s.token(); len(rest) > 0 {
		return nil, fmt.Errorf("%q after the value", rest[:min(len(rest), 40)])
	}
	return host, nil
}

// labels reads up to the closing brace.
func (s *scanner) labels(x *sample) (host []byte, err error) {
	for {
		s.blanks()
		if s.peek() == '}' {
			s.at++
			return host, nil
		}
		name := s.name()
		s.blanks()
		if len(name) == 0 || s.peek() != '=' {
			return nil, errors.New("a label is malformed")
		}
		s.at++
		s.blanks()
		value, err := s.quoted()
		if err != nil {
			return nil, err
		}
		switch string(name) {
		case "gpu", "minor_number":
			if x.index, err = index(value); err != nil {
				return nil, err
			}
		case "GPU_I_ID":
			x.instance = value
		case "modelName":
			x.model = value
		case "hpc_job":
			x.job = value
		case "hostname", "Hostname":
			host = value
		}
		s.blanks()
		switch s.peek() {
		case ',':
			s.at++
		case '}':
		default:
			return nil, errors.New("labels are malformed")
		}
	}
}

// index reads the index of a GPU. Other numbers of devices, such as those of CPUs, stand in other labels.
func index(value []byte) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n >= mostRows {
		return -1, fmt.Errorf("%q is no index of a GPU", value[:min(len(value), 40)])
	}
	return n, nil
}

// quoted reads a label's value.
func (s *scanner) quoted() ([]byte, error) {
	if s.peek() != '"' {
		return nil, errors.New("a label's value is not quoted")
	}
	s.at++
	rest := s.text[s.at:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, errors.New("a label's value has no end")
	}
	if bytes.IndexByte(rest[:end], '\\') < 0 {
		s.at += end + 1
		return rest[:end], nil
	}
	var out []byte
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			s.at += i + 1
			return out, nil
		case c != '\\':
			out = append(out, c)
		case i+1 == len(rest):
			return nil, errors.New("a label's value has no end")
		default:
			i++
			switch rest[i] {
			case '\\', '"':
				out = append(out, rest[i])
			case 'n':
				out = append(out, '\n')
			default:
				return nil, fmt.Errorf("a label's value has the unknown escape \\%c", rest[i])
			}
		}
	}
	return nil, errors.New("a label's value has no end")
}

// decimal reads a number of at most 15 digits with an optional point, exactly; false = read it another way.
func decimal(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 16 {
		return 0, false
	}
	n, digits, after := int64(0), 0, -1
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
			digits++
			if after >= 0 {
				after++
			}
		case c == '.' && after < 0:
			after = 0
		default:
			return 0, false
		}
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	if after > 0 {
		return float64(n) / powers[after], true // both are exact, so the quotient is the nearest float64
	}
	return float64(n), true
}

var powers = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}
