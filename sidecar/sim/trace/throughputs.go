package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Task is a kind of work with the GPUs of a job.
type Task struct {
	Kind string
	GPUs int
}

// String writes a task as Gavel's tables do: ('LM (batch size 5)', 2).
func (t Task) String() string { return fmt.Sprintf("('%s', %d)", t.Kind, t.GPUs) }

// Throughputs gives the steps/s of tasks on GPU models: of the whole gang, alone or beside
// another job on the same GPUs (Gavel's throughput tables).
type Throughputs struct {
	Models []string // sorted
	alone  map[spot]float64
	pairs  map[couple][2]float64
}

// spot is a model and a task; apart is for gangs on more nodes than they need.
type spot struct {
	model string
	apart bool
	task  Task
}

// couple is two tasks on the same GPUs.
type couple struct {
	spot
	other Task
}

// Alone gives a task's throughput by itself, in steps/s; 0 = it does not run there, or is
// unknown. Without data, a gang that is apart is as fast as together.
func (t *Throughputs) Alone(model string, task Task, apart bool) float64 {
	if v, ok := t.alone[spot{model, apart, task}]; ok || !apart {
		return v
	}
	return t.alone[spot{model, false, task}]
}

// Beside gives the throughputs of two tasks that share their GPUs, consolidated; 0 and 0 =
// impossible, or unknown.
func (t *Throughputs) Beside(model string, own, other Task) (float64, float64) {
	if v, ok := t.pairs[couple{spot{model, false, own}, other}]; ok {
		return v[0], v[1]
	}
	v := t.pairs[couple{spot{model, false, other}, own}]
	return v[1], v[0]
}

// Tasks lists the tasks that run alone on some model, by kind, then GPUs.
func (t *Throughputs) Tasks() []Task {
	there := map[Task]bool{}
	for s, v := range t.alone {
		if v > 0 {
			there[s.task] = true
		}
	}
	return slices.SortedFunc(maps.Keys(there), func(a, b Task) int {
		if a.Kind != b.Kind {
			return strings.Compare(a.Kind, b.Kind)
		}
		return a.GPUs - b.GPUs
	})
}

// The maximum table and throughput.
const (
	mostTable = 64 << 20
	mostSteps = 1e9
)

// unconsolidated ends the name of a model whose entries are for gangs that are apart.
const unconsolidated = "_unconsolidated"

// OpenThroughputs reads a table from a file, gzipped or not.
func OpenThroughputs(path string) (*Throughputs, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	return readThroughputs(f, path)
}

// readThroughputs reads a table in the form of Gavel's authors, gzipped or not: an object of GPU
// models, each with tasks like "('LM (batch size 5)', 2)". A task has its steps/s alone under
// "null", and those of both under another task's name. name is the file's name in errors; they
// give the line.
func readThroughputs(r io.Reader, name string) (*Throughputs, error) {
	in := bufio.NewReader(r)
	var text io.Reader = in
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: not a whole gzip file: %w: fetch it again", name, err)
		}
		text = z
	}
	data, err := io.ReadAll(io.LimitReader(text, mostTable+1))
	if err != nil {
		return nil, fault(name, 1+bytes.Count(data, []byte("\n")), err)
	}
	if len(data) > mostTable {
		return nil, fmt.Errorf("%s: larger than %d bytes: that is no table of throughputs", name, mostTable)
	}
	p := paper{json.NewDecoder(bytes.NewReader(data))}
	t := &Throughputs{alone: map[spot]float64{}, pairs: map[couple][2]float64{}}
	if err := p.table(t); err != nil {
		line := 1 + bytes.Count(data[:p.dec.InputOffset()], []byte("\n"))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fault(name, 1+bytes.Count(data, []byte("\n")), err)
		}
		return nil, fmt.Errorf("%s: line %d: %w", name, line, err)
	}
	slices.Sort(t.Models)
	if t.Models = slices.Compact(t.Models); len(t.alone) == 0 {
		return nil, fmt.Errorf("%s: no task runs alone on any model: there is nothing to go by", name)
	}
	return t, nil
}

// paper is a table that is being read.
type paper struct{ dec *json.Decoder }

// object calls f for each name in an object; f reads the value.
func (p *paper) object(what string, f func(name string) error) error {
	open, err := p.dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("%v instead of an object of %s", open, what)
	}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		name := token.(string) // JSON allows nothing else
		if seen[name] {
			return fmt.Errorf("%.80q is there twice", name)
		}
		seen[name] = true
		if err := f(name); err != nil {
			return err
		}
	}
	_, err = p.dec.Token()
	return err
}

func (p *paper) table(t *Throughputs) error {
	err := p.object("GPU models", func(model string) error {
		model, apart := strings.CutSuffix(model, unconsolidated)
		if model == "" {
			return errors.New("a model without a name")
		}
		t.Models = append(t.Models, strings.ToLower(model))
		return p.object("tasks", func(name string) error {
			task, err := parseTask(name)
			if err != nil {
				return err
			}
			return p.task(t, spot{strings.ToLower(model), apart, task})
		})
	})
	if err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the table")
	}
	return nil
}

// task reads the throughputs of one task.
func (p *paper) task(t *Throughputs, s spot) error {
	return p.object("throughputs", func(name string) error {
		if name == "null" {
			var v float64
			if err := p.dec.Decode(&v); err != nil {
				return err
			}
			t.alone[s] = v
			return believe(v)
		}
		other, err := parseTask(name)
		if err != nil {
			return err
		}
		var v []float64
		if err := p.dec.Decode(&v); err != nil {
			return err
		}
		if len(v) != 2 {
			return fmt.Errorf("%s beside %s: %d throughputs instead of two", s.task, other, len(v))
		}
		t.pairs[couple{s, other}] = [2]float64{v[0], v[1]}
		return errors.Join(believe(v[0]), believe(v[1]))
	})
}

func believe(v float64) error {
	if !(v >= 0 && v <= mostSteps) {
		return fmt.Errorf("%v steps a second: from 0 to %g", v, mostSteps)
	}
	return nil
}

// parseTask reads ('LM (batch size 5)', 2).
func parseTask(text string) (Task, error) {
	inner, open := strings.CutPrefix(text, "('")
	inner, closed := strings.CutSuffix(inner, ")")
	i := strings.LastIndex(inner, "', ")
	if open && closed && i > 0 {
		if n, err := strconv.Atoi(inner[i+3:]); err == nil && n > 0 && n <= mostGPUs {
			return Task{Kind: inner[:i], GPUs: n}, nil
		}
	}
	return Task{}, fmt.Errorf("%.80q is no task: write it like ('LM (batch size 5)', 2)", text)
}
