package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

func (p *program) replay() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "replay ROUND|FILE [--save DIR]", Short: "decide a round again and compare, byte for byte", Args: exactly("the number of a round, or a file"),
		Long: `Take what the engine knew in a round, decide again, and compare the plan with the one that was
written down, byte for byte. The exit code is 1 if they differ. Another version of fairlease may
decide otherwise. With --save the texts are left in a folder, as JSON.

A FILE is a snapshot over which the engine broke down: the daemon keeps it beside files.state, as
broken-ROUND.json.gz. It is decided again, and it is told how that ends.`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.HasSuffix(args[0], ".gz") {
				return p.replayKept(args[0])
			}
			round, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || round <= 0 {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is no round's number", args[0]), Next: "fairlease status tells the newest"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				snap, plan, err := s.Round(c.Context(), round)
				if errors.Is(err, store.ErrNone) {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d is not in the journal", round), Next: "it never was, or it is older than database.keep_rounds; rounds in which nothing changed are not written down"}
				}
				if err != nil {
					return err
				}
				again, err := decideAgain(snap)
				if err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d cannot be read", round), Err: err}
				}
				if dir != "" {
					if err := save(dir, round, map[string][]byte{"snapshot": snap, "plan": plan, "replayed": again}); err != nil {
						return &failure.Error{Code: failure.No, What: "the texts cannot be saved", Err: err}
					}
					p.printf("saved: %s\n", filepath.Join(dir, fmt.Sprintf("round-%d-*.json", round)))
				}
				if bytes.Equal(plan, again) {
					p.printf("round %d: the same plan, byte for byte (%d bytes from %d)\n", round, len(plan), len(snap))
					return nil
				}
				p.printf("round %d: the plan differs; first at %s\n", round, difference(plan, again))
				return failure.Quiet(failure.No)
			})
		}}
	c.Flags().StringVar(&dir, "save", "", "leave snapshot, plan and the replayed plan in the folder `DIR`")
	return c
}

// replayKept decides over a snapshot that the daemon kept.
func (p *program) replayKept(path string) (err error) {
	text, err := daemon.ReadKept(path)
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the snapshot cannot be read", Err: err}
	}
	defer func() {
		if cause := recover(); cause != nil {
			p.printf("%s: the engine breaks down: %v\n%s", path, cause, debug.Stack())
			err = failure.Quiet(failure.No)
		}
	}()
	plan, err := decideAgain(text)
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the snapshot cannot be read", Err: err}
	}
	p.printf("%s: the engine decides (%d bytes from %d)\n", path, len(plan), len(text))
	return nil
}

func decideAgain(snapshot []byte) ([]byte, error) {
	var s cluster.Snapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, err
	}
	return json.Marshal(engine.Decide(s))
}

func save(dir string, round int64, texts map[string][]byte) error {
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

// difference says where two JSON texts differ first, by the path of keys.
func difference(was, is []byte) string {
	a, err1 := loose(was)
	b, err2 := loose(is)
	if err1 != nil || err2 != nil {
		return "its form: one of them is no JSON"
	}
	if path, x, y, ok := differ("", a, b); ok {
		return fmt.Sprintf("%s:\n  was %s\n  is  %s", path, brief(x), brief(y))
	}
	return "the order of keys or the form of numbers"
}

// loose reads any JSON, with numbers as they are written.
func loose(text []byte) (v any, err error) {
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
