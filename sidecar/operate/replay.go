package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// Replay decides on a snapshot and returns the plan, both as JSON.
func Replay(snapshot []byte) ([]byte, error) {
	var s cluster.Snapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, err
	}
	return json.Marshal(engine.Decide(s))
}

// SaveReplay writes a round's texts into a folder.
func SaveReplay(dir string, round int64, texts map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var b bytes.Buffer
		if err := json.Indent(&b, texts[name], "", " "); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("round-%d-%s.json", round, name)), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Difference gives the path of the first difference between two JSON texts.
func Difference(was, is []byte) string {
	a, err1 := parseLoose(was)
	b, err2 := parseLoose(is)
	if err1 != nil || err2 != nil {
		return "its form: one of them is no JSON"
	}
	if path, x, y, ok := differ("", a, b); ok {
		return fmt.Sprintf("%s:\n  was %s\n  is  %s", path, brief(x), brief(y))
	}
	return "the order of keys or the form of numbers"
}

// parseLoose parses any JSON, and keeps numbers as written.
func parseLoose(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func differ(path string, a, b any) (string, any, any, bool) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path, a, b, true
		}
		keys := slices.Sorted(maps.Keys(x))
		for k := range maps.Keys(y) {
			if _, ok := x[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			if p, u, v, no := differ(path+"."+k, x[k], y[k]); no {
				return p, u, v, true
			}
		}
		return "", nil, nil, false
	case []any:
		y, ok := b.([]any)
		for i := 0; ok && i < min(len(x), len(y)); i++ {
			if p, u, v, no := differ(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]); no {
				return p, u, v, true
			}
		}
		if !ok || len(x) != len(y) {
			return path, a, b, true
		}
		return "", nil, nil, false
	}
	return path, a, b, !reflect.DeepEqual(a, b)
}

func brief(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 200
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// ReplayKept replays a snapshot that the daemon kept, and describes the result. It is an error if the
// engine panics.
func ReplayKept(path string) (said string, err error) {
	text, err := daemon.ReadKept(path)
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "the snapshot cannot be read", Err: err}
	}
	defer func() {
		if cause := recover(); cause != nil {
			said, err = fmt.Sprintf("%s: the engine fails: %v\n%s", path, cause, debug.Stack()), failure.Quiet(failure.No)
		}
	}()
	plan, err := Replay(text)
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "the snapshot cannot be read", Err: err}
	}
	return fmt.Sprintf("%s: the engine decides (%d bytes from %d)\n", path, len(plan), len(text)), nil
}
