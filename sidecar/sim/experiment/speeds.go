package experiment

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Speedbook gives the speeds of jobs on GPU models.
type Speedbook struct {
	patterns []string // in the order of the file
	Speeds   sim.Speeds
}

// mostSpeed is the maximum relative speed of a model.
const mostSpeed = 1000

// ReadSpeeds reads lines of a pattern, a model and a speed: resnet*,k80,0.25. A pattern matches a
// job's kind or name, with * and ? as in file names. A speed is relative to the model of the
// trace's run times, and 1 for missing models. Behind it may stand the parts of it, above 0 and at most 1, that
// gangs keep on more nodes than they need, and under more switches: bert*,v100,1,0.4,0.8; empty = all of it. It
// skips lines that begin with #, and a first line without a number, which is a header. name is the file's name in errors.
func ReadSpeeds(r io.Reader, name string) (Speedbook, error) {
	b := Speedbook{Speeds: sim.Speeds{}}
	in := csv.NewReader(r)
	in.Comment, in.TrimLeadingSpace, in.FieldsPerRecord = '#', true, -1
	for first := true; ; first = false {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return b, fmt.Errorf("%s: cannot be read: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		var speed float64
		if len(row) >= 3 && len(row) <= 5 {
			speed, err = strconv.ParseFloat(strings.TrimSpace(row[2]), 64)
			if err != nil && first {
				continue // the header
			}
		}
		if len(row) < 3 || len(row) > 5 || err != nil || row[0] == "" || !(speed >= 1e-3 && speed <= mostSpeed) {
			return b, fmt.Errorf("%s: line %d: %q is no speed: write a pattern, a model and how many times as fast, as in resnet*,k80,0.25, from 0.001 to %d",
				name, line, strings.Join(row, ","), mostSpeed)
		}
		rate := sim.Rate{Speed: sim.Speed(math.Round(speed * float64(sim.Reference)))}
		for k, to := range []*sim.Speed{&rate.Apart, &rate.Across}[:len(row)-3] {
			text := strings.TrimSpace(row[3+k])
			if text == "" {
				continue
			}
			part, err := strconv.ParseFloat(text, 64)
			if err != nil || !(part > 0 && part <= 1) {
				return b, fmt.Errorf("%s: line %d: %q is no part of a speed: write what gangs keep of it on more nodes than they need, and under more switches, as in bert*,v100,1,0.4,0.8, above 0 and at most 1",
					name, line, text)
			}
			*to = max(sim.Halt, sim.Speed(math.Round(part*float64(rate.Speed))))
		}
		pattern, model := row[0], strings.ToLower(strings.TrimSpace(row[1]))
		if _, err := path.Match(pattern, ""); err != nil {
			return b, fmt.Errorf("%s: line %d: %q is no pattern: %w", name, line, pattern, err)
		}
		task := sim.Task{Kind: pattern}
		if b.Speeds[task] == nil {
			b.Speeds[task] = map[string]sim.Rate{}
			b.patterns = append(b.patterns, pattern)
		}
		if b.Speeds[task][model].Speed > 0 {
			return b, fmt.Errorf("%s: line %d: %s has a speed on %s already", name, line, pattern, model)
		}
		b.Speeds[task][model] = rate
	}
	if len(b.patterns) == 0 {
		return b, fmt.Errorf("%s: names no speed: write lines like resnet*,k80,0.25", name)
	}
	return b, nil
}

// kind gives the first pattern that matches a job; "" = none. A job that names its model had its
// run time there.
func (b *Speedbook) kind(j *trace.Job) string {
	if j.Model != "" {
		return ""
	}
	for _, p := range b.patterns {
		for _, text := range [...]string{j.Kind, j.Name} {
			if ok, _ := path.Match(p, text); ok && text != "" {
				return p
			}
		}
	}
	return ""
}

// Sort sets the kinds of a load's jobs to their patterns, and counts the jobs with one.
func (b *Speedbook) Sort(l Load) (Load, int) {
	jobs := l.Jobs
	l.Jobs = iter.Seq[trace.Job](func(yield func(trace.Job) bool) {
		for j := range jobs {
			if j.Kind = b.kind(&j); !yield(j) {
				return
			}
		}
	})
	n := 0
	for j := range l.Jobs {
		if j.Kind != "" {
			n++
		}
	}
	return l, n
}

// SpeedsOf converts a table to speeds relative to the model of the run times. Tasks that do not
// run there have none.
func SpeedsOf(t *trace.Throughputs, reference string) sim.Speeds {
	out := sim.Speeds{}
	for _, task := range t.Tasks() {
		base := t.Alone(reference, task, false)
		if base == 0 {
			continue
		}
		rates := map[string]sim.Rate{}
		speed := func(model string, apart bool) sim.Speed {
			return max(sim.Halt, sim.Speed(math.Round(t.Alone(model, task, apart)/base*float64(sim.Reference))))
		}
		for _, m := range t.Models {
			rates[m] = sim.Rate{Speed: speed(m, false), Apart: speed(m, true)}
		}
		out[sim.Task{Kind: task.Kind, GPUs: task.GPUs}] = rates
	}
	return out
}
