package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Habit is how jobs of a type save. A job matches by user, GPUs, and, if both have one, command:
// equal, equal except for numbers, or, for a job with a name only, the file name of the program.
type Habit struct {
	User    string // "" or * = any
	Command string // "" or * = any
	GPUs    int    // 0 = any
	Manner
	Source cluster.SavingSource // "" = a file
}

func (h *Habit) fits(j *trace.Job) bool {
	if !anything(h.User) && h.User != userOf(j) || h.GPUs != 0 && h.GPUs != j.GPUs {
		return false
	}
	if anything(h.Command) {
		return true
	}
	own := j.Command
	if own == "" {
		own = j.Name
	}
	if own == "" {
		return false
	}
	if own == h.Command || nameKind(own) == nameKind(h.Command) {
		return true
	}
	program, _, _ := strings.Cut(h.Command, " ")
	return j.Command == "" && path.Base(program) == own
}

func anything(pattern string) bool { return pattern == "" || pattern == "*" }

// MannerOf gives the manner of a Saving; false if it has none.
func MannerOf(s cluster.Saving) (Manner, bool) {
	m := Manner{Every: s.Every, Takes: s.Takes}
	switch s.Manner {
	case cluster.SavesOnNotice:
		m.Saves = sim.AtNotice
	case cluster.SavesOnTerm:
		m.Saves = sim.OnTerm
	case cluster.SavesEvery:
		m.Saves = sim.Periodic
		return m, s.Every > 0
	case cluster.SavesNever:
		m.Saves = sim.Never
	default:
		return Manner{}, false
	}
	m.Every = 0
	return m, true
}

// Learnt gives how jobs of a type save by the evidence, as the engine judges it (stop.Resolve);
// false without evidence: no job of the type was judged after a requeue or has reported saves.
func Learnt(h *cluster.Habit) (Habit, bool) {
	m, ok := MannerOf(stop.Resolve(nil, h, cluster.Saving{}, cluster.Saving{}))
	return Habit{User: h.Type.User, Command: h.Type.Command, GPUs: h.Type.GPUs, Manner: m}, ok
}

// ReadHabits reads habits. The forms are lines user,command,gpus,manner[,interval[,save-time]]
// with manners as in parseManner; JSON objects in an array or a stream with these names
// (save_time, in JSON); or the journal's objects with type, and saving or the evidence, with
// times in milliseconds. Empty fields and * match any job. name is the file's name in errors.
func ReadHabits(r io.Reader, name string) ([]Habit, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	read := habitLines
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		read = habitObjects
	}
	out, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: says of no job how it saves: write lines like alice,train.sh,8,periodic,1h", name)
	}
	return out, nil
}

// habitLines reads CSV.
func habitLines(text []byte) ([]Habit, error) {
	c := csv.NewReader(bytes.NewReader(text))
	c.FieldsPerRecord, c.Comment, c.TrimLeadingSpace = -1, '#', true
	var out []Habit
	for first := true; ; first = false {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		if first && len(fields) > 0 && strings.EqualFold(strings.TrimSpace(fields[0]), "user") {
			continue // the header
		}
		if len(fields) < 4 || len(fields) > 6 {
			return nil, fmt.Errorf("line %d: %d fields: write user,command,gpus,manner[,interval[,save-time]]", line, len(fields))
		}
		fields = append(fields, "", "")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		h, err := newHabit(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		out = append(out, h)
	}
}

func newHabit(user, command, gpus, manner, interval, takes string) (Habit, error) {
	h := Habit{User: user, Command: command}
	var err error
	if !anything(gpus) {
		if h.GPUs, err = strconv.Atoi(gpus); err != nil || h.GPUs < 0 {
			return Habit{}, fmt.Errorf("%q is no number of GPUs: write 1 or more, or * for any", gpus)
		}
	}
	var every config.Duration
	if interval != "" {
		if every, err = config.ParseDuration(interval); err != nil {
			return Habit{}, fmt.Errorf("interval: %w", err)
		}
		if every.Span() < cluster.Second {
			return Habit{}, fmt.Errorf("interval: %q is too short: write 1s or more", interval)
		}
	}
	if h.Manner, err = parseManner(manner, every.Span()); err != nil {
		return Habit{}, err
	}
	if takes != "" {
		d, err := config.ParseDuration(takes)
		if err != nil || d < 0 {
			return Habit{}, fmt.Errorf("%q is no time to save: write it like 30s", takes)
		}
		h.Takes = d.Span()
	}
	return h, nil
}

// object is a habit in JSON, in both forms.
type object struct {
	User     string      `json:"user"`
	Command  string      `json:"command"`
	GPUs     json.Number `json:"gpus"`
	Manner   string      `json:"manner"`
	Interval string      `json:"interval"`
	SaveTime string      `json:"save_time"`

	Saving *cluster.Saving `json:"saving"`
	cluster.Habit
}

// habitObjects reads JSON.
func habitObjects(text []byte) ([]Habit, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	var objects []object
	for d.More() {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err != nil {
			return nil, fmt.Errorf("habit %d: %w", len(objects)+1, err)
		}
		list := []object{{}}
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &list)
		} else {
			err = json.Unmarshal(raw, &list[0])
		}
		if err != nil {
			return nil, fmt.Errorf("habit %d or one after it: %w", len(objects)+1, err)
		}
		objects = append(objects, list...)
	}
	var out []Habit
	for i := range objects {
		h, ok, err := objects[i].habit()
		if err != nil {
			return nil, fmt.Errorf("habit %d: %w", i+1, err)
		}
		if ok {
			out = append(out, h)
		}
	}
	return out, nil
}

// habit gives the habit of an object; false if it has no evidence.
func (o *object) habit() (Habit, bool, error) {
	if o.Manner != "" {
		t := o.Type
		if t != (cluster.JobType{}) {
			o.User, o.Command, o.GPUs = t.User, t.Command, json.Number(strconv.Itoa(t.GPUs))
		}
		interval, takes := o.Interval, o.SaveTime
		if interval == "" && o.Every > 0 && o.Manner == string(cluster.SavesEvery) {
			interval = config.Duration(o.Every).String()
		}
		h, err := newHabit(o.User, o.Command, o.GPUs.String(), o.Manner, interval, takes)
		return h, true, err
	}
	h, ok := Learnt(&o.Habit)
	if o.Saving != nil {
		var m Manner
		if m, ok = MannerOf(*o.Saving); ok {
			h = Habit{User: o.Type.User, Command: o.Type.Command, GPUs: o.Type.GPUs, Manner: m}
		}
	}
	if ok && h.Every != 0 && h.Every < cluster.Second || h.Takes < 0 || h.GPUs < 0 {
		return Habit{}, false, fmt.Errorf("user %s: a time between two saves below 1 s, or a number below 0", h.User)
	}
	if o.Type == (cluster.JobType{}) {
		return Habit{}, false, fmt.Errorf("neither a manner nor the type of a job: write {\"user\": \"alice\", \"command\": \"train.sh\", \"gpus\": 8, \"manner\": \"never\"}")
	}
	return h, ok, nil
}
