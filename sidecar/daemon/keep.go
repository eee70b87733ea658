package daemon

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// mostKept is the maximum number of kept snapshots on which the engine panicked: the newest.
const mostKept = 3

// keep stores a snapshot on which the engine panicked, or made a wrong plan, beside the state file, for `fairlease
// replay`. A repeated panic is not stored again.
func (x *rounds) keep(s cluster.Snapshot, b *loop.Breakdown) {
	if !x.report.broken(b) {
		return
	}
	path, err := KeepSnapshot(filepath.Dir(x.inForce().Files.State), s)
	if err != nil {
		x.report.log.Warn().Err(err).Msg("the snapshot over which the engine broke down could not be kept")
		return
	}
	x.report.log.Error().Str("file", path).Msg("the snapshot over which the engine broke down is kept: fairlease replay " + path)
}

// broken logs a panic, if it is news.
func (to *reporter) broken(b *loop.Breakdown) bool {
	if !to.said.is("engine", b.Cause) {
		return false
	}
	to.log.Error().Str("error", b.Cause).Str("stack", brief(b.Stack, 4000)).Msg("the engine broke down; please report it")
	return true
}

// KeepSnapshot writes a snapshot into a folder, replaces the oldest one there, and gives its
// path.
func KeepSnapshot(dir string, s cluster.Snapshot) (path string, err error) {
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	if err := json.NewEncoder(packed).Encode(s); err != nil {
		return "", fmt.Errorf("write the snapshot as JSON: %w", err)
	}
	if err := packed.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	old, err := filepath.Glob(filepath.Join(dir, "broken-*.json.gz"))
	if err != nil {
		return "", err
	}
	slices.SortFunc(old, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, name := range old[:max(len(old)-mostKept+1, 0)] {
		if err := os.Remove(name); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, fmt.Sprintf("broken-%d.json.gz", s.Round))
	return path, replaceFile(path, text.Bytes(), 0o640, true)
}

// ReadKept reads a kept snapshot, as JSON.
func ReadKept(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s is no snapshot that fairlease kept: %w", path, err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		return nil, fmt.Errorf("%s is no whole snapshot: %w", path, err)
	}
	return text, nil
}
