package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/fairlease/fairlease/sidecar/loop"
)

// DefaultPath is the path of the file if none is given. Tests set another.
var DefaultPath = "/etc/fairlease/fairlease.yaml"

// Command is a command line; in the file a list of words, or one string with
// blanks between them.
type Command []string

// Problem is one error in a configuration.
type Problem struct {
	Place string // file:line, or "default", or a variable; "" = the file as a whole
	Key   string // dotted; "" = none
	Text  string // the error, and what to do
	line  int
	meant string // the key that an unknown one probably stands for; "" = none
}

func (p Problem) String() string {
	var parts []string
	for _, s := range []string{p.Place, p.Key, p.Text} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems is the error of an invalid configuration: all its problems, in the order of the file.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// sorted gives the problems in the order of the file.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int { return a.line - b.line })
	return p
}

// Load reads the file at path and the environment (KEY=value each) over the defaults, and the
// cells file if one is named, and checks the result. With path "" it reads the file named by
// FAIRLEASE_CONFIG, else DefaultPath, which alone may be missing. Invalid values are reported as
// Problems, and so is a file that sets nothing: such files come from full disks and broken copies.
func Load(path string, env []string) (*Config, error) {
	return alone(load(path, env))
}

// load gives the problems of the file and of those that it names, and a configuration beside them unless the file is unreadable.
func load(path string, env []string) (*Config, Problems, error) {
	c, problems, err := loadAlone(path, env)
	if err != nil {
		return nil, nil, err
	}
	if c != nil { // also beside problems, so that those of all files are found at once
		var of Problems
		for _, read := range []func() (Problems, Problems){c.readCells, c.readProfiles, func() (Problems, Problems) { return readLetters(c) }} {
			own, its := read()
			problems, of = append(problems, own...), append(of, its...)
		}
		problems = append(append(problems, c.cellBudgets()...).sorted(), of...)
	}
	return c, problems, nil
}

// LoadAlone is Load without the cells file, for commands that create or repair that file.
func LoadAlone(path string, env []string) (*Config, error) {
	return alone(loadAlone(path, env))
}

func alone(c *Config, problems Problems, err error) (*Config, error) {
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// loadAlone gives the problems of the file, and a configuration beside them unless the file is unreadable.
func loadAlone(path string, env []string) (*Config, Problems, error) {
	may := false
	if path == "" {
		path = lookup(env, "FAIRLEASE_CONFIG")
	}
	if path == "" {
		path, may = DefaultPath, true
	}
	text, err := os.ReadFile(path)
	if may && errors.Is(err, os.ErrNotExist) {
		c, problems := parse("", nil, env)
		return c, problems, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the configuration: %w", err)
	}
	if unset(text) {
		return nil, Problems{{Place: path, Text: "sets nothing: restore the file, or write `mode: observe` to have the defaults"}}, nil
	}
	c, problems := parse(path, text, env)
	return c, problems, nil
}

// Parse is LoadAlone for a text; name is the file's name in origins and problems.
func Parse(name string, text []byte, env []string) (*Config, error) {
	c, problems := parse(name, text, env)
	return alone(c, problems, nil)
}

// parse is loadAlone for a text.
func parse(name string, text []byte, env []string) (*Config, Problems) {
	c := Default()
	c.from.name, c.from.text, c.from.origins = name, text, map[string]Origin{}
	r := &reader{file: name, keys: Keys(), origins: c.from.origins}
	root := r.parse(text)
	if root != nil {
		r.section(reflect.ValueOf(c).Elem(), root, "")
	}
	if root == nil && len(r.problems) > 0 {
		return nil, r.problems
	}
	c.overlay(env)
	c.settle()
	problems := append(r.problems, r.apart(c.check())...)
	return c, append(problems, r.apart(c.prepare(problems))...).sorted()
}

// apart leaves out problems of values that could not be read, or that compare with one: the value in force is the default
// then, which nobody chose.
func (r *reader) apart(problems Problems) Problems {
	var bad []string
	for _, p := range r.problems {
		if p.Key != "" {
			bad = append(bad, p.Key)
		}
	}
	bad = append(bad, r.meant...)
	return slices.DeleteFunc(problems, func(p Problem) bool {
		return slices.ContainsFunc(bad, func(key string) bool {
			return under(p.Key, key) || under(key, p.Key) || strings.Contains(p.Text, key+" (")
		})
	})
}

// reader fills a Config from the nodes of a file and collects problems.
type reader struct {
	file     string
	keys     []string // all dotted keys of the file, for suggestions
	origins  map[string]Origin
	problems Problems
	meant    []string // keys that unknown ones probably stand for
}

func (r *reader) wrong(line int, key, format string, args ...any) {
	place := r.file
	if line > 0 {
		place = fmt.Sprintf("%s:%d", r.file, line)
	}
	r.problems = append(r.problems, Problem{Place: place, Key: key, Text: fmt.Sprintf(format, args...), line: line})
}

// parse gives the file's outermost mapping; nil for an empty file.
func (r *reader) parse(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		line, what := lineOf(err, string(text))
		r.wrong(line, "", "%s; check the indentation (blanks, no tabs) and the colons near that line", what)
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.wrong(more.Line, "", "a second document starts here; remove the line ---")
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// parserErrors are the errors of package yaml's parser. It numbers lines from 0 in them, where its scanner numbers from 1.
var parserErrors = []string{"did not find expected node content", "did not find expected key", "did not find expected ',' or '}'",
	"did not find expected ',' or ']'", "did not find expected '-' indicator", "did not find expected <document start>", "did not find expected <stream-start>"}

// lineOf returns the line of an error of package yaml, from 1, and its text without it. An error at the end of the text is of
// the last line; one that names no line is of the first, or of the line with the word that it quotes.
func lineOf(err error, text string) (int, string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		line, _ = strconv.Atoi(number)
		what = after
	}
	var anchor string
	switch {
	case slices.Contains(parserErrors, what):
		line++
	case line == 0 && strings.HasPrefix(what, "unknown anchor '"):
		anchor, _, _ = strings.Cut(strings.TrimPrefix(what, "unknown anchor '"), "'")
		line = 1 + slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "*"+anchor) })
	case line == 0 && strings.HasPrefix(what, "control characters"):
		line = 1 + slices.IndexFunc(lines, func(l string) bool {
			return strings.ContainsFunc(l, func(c rune) bool { return unicode.IsControl(c) && c != '\t' && c != '\r' })
		})
	}
	return min(max(line, 1), len(lines)), what
}

// section fills a struct from a mapping.
func (r *reader) section(into reflect.Value, node *yaml.Node, path string) {
	node = follow(node)
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.wrong(node.Line, path, "keys are expected here, as in `%s: value`", keysOf(into.Type())[0])
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := join(path, key.Value)
		if line, twice := seen[key.Value]; twice {
			r.wrong(key.Line, name, "stands here for the second time, first in line %d; keep one", line)
			continue
		}
		seen[key.Value] = key.Line
		field, ok := fieldOf(into, key.Value)
		if !ok {
			r.unknown(key, path, into.Type())
			continue
		}
		r.value(field, value, name, key.Line)
	}
}

// value fills one field.
func (r *reader) value(into reflect.Value, node *yaml.Node, name string, line int) {
	node = follow(node)
	if into.Type() == reflect.TypeFor[changes]() {
		into.Set(reflect.ValueOf(changes{node}))
		r.came(name, line)
		return
	}
	if into.Type() == reflect.TypeFor[loop.OptOuts]() && node.Kind == yaml.ScalarNode && !isNull(node) { // one word for all
		into.Set(reflect.ValueOf(loop.AllOut(loop.OptOut(node.Value))))
		walk(into, name, func(key string, _ reflect.Value) { r.came(key, line) })
		return
	}
	if into.Kind() == reflect.Struct {
		r.section(into, node, name)
		return
	}
	if isNull(node) {
		r.wrong(line, name, "has no value; write one, or remove the key to have the default")
		return
	}
	before := len(r.problems)
	switch {
	case into.Type() == reflect.TypeFor[Command]():
		r.command(into, node, name)
	case into.Type() == reflect.TypeFor[hosts]():
		r.hosts(into, node, name)
	case into.Kind() == reflect.Slice:
		r.list(into, node, name)
	case into.Kind() == reflect.Map:
		r.table(into, node, name)
	default:
		r.scalar(into, node, name)
	}
	if len(r.problems) == before {
		r.came(name, line)
	}
}

// came records the origin of a value.
func (r *reader) came(name string, line int) {
	r.origins[name] = Origin{Place: fmt.Sprintf("%s:%d", r.file, line), line: line}
}

func (r *reader) scalar(into reflect.Value, node *yaml.Node, name string) {
	if node.Kind != yaml.ScalarNode {
		r.wrong(node.Line, name, "one value is expected here, not a list or keys")
		return
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(node.Value)); err != nil {
			r.wrong(node.Line, name, "%v", err)
		}
		return
	}
	if into.Kind() == reflect.String {
		into.SetString(node.Value)
		return
	}
	// yaml cuts 1.5 to 1 where an integer is wanted
	if err := node.Decode(into.Addr().Interface()); err != nil || into.CanInt() && node.ShortTag() != "!!int" {
		form := "a whole number"
		switch into.Kind() {
		case reflect.Bool:
			form = "true or false"
		case reflect.Float64:
			form = "a number"
		}
		r.wrong(node.Line, name, "%q cannot be used here; write %s", node.Value, form)
	}
}

// list reads a sequence, or a comma-separated string as in Slurm.
func (r *reader) list(into reflect.Value, node *yaml.Node, name string) {
	if node.Kind == yaml.ScalarNode && into.Type().Elem().Kind() == reflect.String {
		into.Set(reflect.ValueOf(strings.FieldsFunc(node.Value, func(c rune) bool { return c == ',' || c == ' ' })))
		return
	}
	if node.Kind != yaml.SequenceNode {
		r.wrong(node.Line, name, "a list is expected here, as in [a, b]")
		return
	}
	out := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, n := range node.Content {
		element := fmt.Sprintf("%s[%d]", name, i)
		r.came(element, n.Line)
		if n = follow(n); out.Index(i).Kind() == reflect.Struct {
			r.section(out.Index(i), n, element)
		} else {
			r.scalar(out.Index(i), n, element)
		}
	}
	into.Set(out)
}

// table reads a mapping whose keys the site chooses.
func (r *reader) table(into reflect.Value, node *yaml.Node, name string) {
	if node.Kind != yaml.MappingNode {
		r.wrong(node.Line, name, "names with values are expected here, as in {a: 1, b: 2}")
		return
	}
	out := reflect.MakeMap(into.Type())
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], follow(node.Content[i+1])
		element := reflect.New(into.Type().Elem()).Elem()
		if out.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			r.wrong(key.Line, join(name, key.Value), "stands here for the second time; keep one")
		}
		if r.came(join(name, key.Value), key.Line); element.Kind() == reflect.Struct {
			r.section(element, value, join(name, key.Value))
		} else {
			r.scalar(element, value, join(name, key.Value))
		}
		out.SetMapIndex(reflect.ValueOf(key.Value), element)
	}
	into.Set(out)
}

func (r *reader) command(into reflect.Value, node *yaml.Node, name string) {
	if node.Kind == yaml.ScalarNode {
		into.Set(reflect.ValueOf(Command(strings.Fields(node.Value))))
		return
	}
	r.list(into, node, name)
}

func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}

// inline is the tag of a struct whose fields are keys of the struct around it.
const inline = ",inline"

// fieldOf finds the field of a struct for a key of the file.
func fieldOf(s reflect.Value, key string) (reflect.Value, bool) {
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag.Get("yaml")
		if tag == inline {
			if field, ok := fieldOf(s.Field(i), key); ok {
				return field, true
			}
		} else if tag != "" && tag == key {
			return s.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// keysOf gives the keys of a struct, in order.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag == inline {
			keys = append(keys, keysOf(t.Field(i).Type)...)
		} else if tag != "" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// unknown notes a key that does not exist, and the one that was probably meant: a similar one in the same section, else a key of
// that name elsewhere in the file. Outside of all sections, a key of just that name elsewhere goes first: its section was forgotten.
func (r *reader) unknown(node *yaml.Node, path string, section reflect.Type) {
	key, here := node.Value, keysOf(section)
	best := nearest(key, here)
	forgotten := slices.IndexFunc(r.keys, func(k string) bool { return path == "" && strings.HasSuffix(k, "."+key) })
	switch {
	case forgotten >= 0:
		best = r.keys[forgotten]
	case best != "":
		best = join(path, best)
	default:
		var words, full []string
		for _, k := range r.keys {
			words, full = append(words, k[strings.LastIndex(k, ".")+1:], strings.ReplaceAll(k, ".", "_")), append(full, k, k)
		}
		if word := nearest(key, words); word != "" {
			best = full[slices.Index(words, word)]
		}
	}
	if best == "" {
		r.wrong(node.Line, join(path, key), "unknown key; the keys here are %s", strings.Join(here, ", "))
		return
	}
	r.meant = append(r.meant, best)
	r.wrong(node.Line, join(path, key), "unknown key; did you mean %s?", best)
	r.problems[len(r.problems)-1].meant = best
}

// nearest gives the first of the most similar words; "" if none is similar.
func nearest(word string, words []string) string {
	best, least := "", 1+len(word)/3
	for _, w := range words {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to change, add or remove between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := left
			if a[i] != b[j] {
				next = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
