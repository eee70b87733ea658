package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// engine is what decides and simulates: its sources, and the commit that has them.
type engine struct {
	key    string // of the sources
	commit string
}

// engineNow reads the sources of all packages that a simulated run is made of.
func engineNow(ctx context.Context) (engine, error) {
	list, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", "./sidecar/sim/experiment", "./research/papers").Output()
	if err != nil {
		return engine{}, fmt.Errorf("go list: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOARCH)
	dirs := strings.Fields(string(list))
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return engine{}, err
		}
		for _, path := range files { // sorted
			if !slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return engine{}, err
			}
			fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(path), len(text), text)
		}
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return engine{}, fmt.Errorf("git rev-parse: %w", err)
	}
	e := engine{key: fmt.Sprintf("%x", hash.Sum(nil)[:6]), commit: strings.TrimSpace(string(commit))}
	changed, err := exec.CommandContext(ctx, "git", append([]string{"status", "--porcelain", "--"}, dirs...)...).Output()
	if err != nil {
		return engine{}, fmt.Errorf("git status: %w", err)
	}
	for line := range strings.Lines(string(changed)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "_test.go") {
			e.commit += " with changes"
			break
		}
	}
	return e, nil
}
