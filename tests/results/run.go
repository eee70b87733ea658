package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/tests/traces"
)

// run is a simulated run. The zero values of the fields after Round are fairlease's defaults.
type run struct {
	Scene     string
	Scheduler string
	Round     int    // seconds from one round to the next
	MadeUp    bool   // jobs of the trace's shape stand for it
	Saves     string // as for fairlease simulate, drawn by job; "" = when leases end
	Seed      uint64 // of that
	Order     string // jobs.order
	Scattered bool   // compact.max_cost is 0
	Term      int    // of leases, in seconds
	Window    int    // days of the trace that count; 0 = all
	Days      int    // when the run ends; 0 = with the last job
}

// scene finds a run's scene: a name and a number of nodes.
func (r *run) scene() traces.Scene {
	var nodes int
	if _, err := fmt.Sscanf(r.Scene, "venus%d", &nodes); err == nil {
		return traces.Venus(nodes)
	}
	_, _ = fmt.Sscanf(r.Scene, "philly%d", &nodes)
	return traces.Philly(nodes)
}

func (r *run) setup(dir string) (experiment.Setup, error) {
	x := r.scene()
	s, err := x.MadeUp()
	if !r.MadeUp {
		s, err = x.Setup(dir)
	}
	if err != nil {
		return s, err
	}
	s.Scheduler, s.Seed, s.Until = r.Scheduler, max(r.Seed, 1), cluster.Span(r.Days)*cluster.Day
	if s.Saves, err = experiment.ParseMixture(cmp.Or(r.Saves, "at-end"), 0); err != nil {
		return s, err
	}
	s.Saves.ByJob = true
	set := &s.Settings
	set.Interval = cluster.Span(r.Round) * cluster.Second
	switch r.Order {
	case "":
	case "rho":
		set.JobOrder = cluster.ByRho
	default:
		set.JobOrder = cluster.JobOrder(r.Order)
	}
	if r.Scattered {
		set.CompactPercent = 0
	}
	if r.Term > 0 {
		set.Term = cluster.Span(r.Term) * cluster.Second
	}
	s.Settings = experiment.Fit(s.Settings)
	if r.Window > 0 {
		s.Load = traces.Between(s.Load, 0, cluster.Span(r.Window)*cluster.Day)
	}
	return s, nil
}

// bank keeps the scores of runs as files, in a folder for each engine.
type bank struct {
	dir, traces, engine string

	files map[string][]byte // hashes of the traces' files
	due   []run
	has   map[run]*score.Scores
}

// path is where a run's scores are. A changed trace is another run.
func (b *bank) path(r run) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, _ = hash.Write(text)
	if x := r.scene(); !r.MadeUp {
		for _, name := range x.Files() {
			if b.files[name] == nil {
				content, err := os.ReadFile(filepath.Join(b.traces, name))
				if err != nil {
					return "", fmt.Errorf("name the folder of the traces with TRACES=DIR: %w", err)
				}
				sum := sha256.Sum256(content)
				if b.files == nil {
					b.files = map[string][]byte{}
				}
				b.files[name] = sum[:]
			}
			_, _ = hash.Write(b.files[name])
		}
	}
	name := fmt.Sprintf("%s-%s-%ds-%x.json", r.Scene, strings.ReplaceAll(r.Scheduler, ":", "-"), r.Round, hash.Sum(nil)[:6])
	return filepath.Join(b.dir, b.engine, name), nil
}

// missing reads the scores of runs that are kept, and notes the others as due.
func (b *bank) missing(runs []run) error {
	if b.has == nil {
		b.has = map[run]*score.Scores{}
	}
	for _, r := range runs {
		if b.has[r] != nil || slices.Contains(b.due, r) {
			continue
		}
		path, err := b.path(r)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			b.due = append(b.due, r)
			continue
		}
		if err != nil {
			return err
		}
		var s score.Scores
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w; remove it", path, err)
		}
		b.has[r] = &s
	}
	return nil
}

// work runs all that is due, so many at a time, and keeps each result when it is there. An end of ctx leaves those that are done.
func (b *bank) work(ctx context.Context, workers int) error {
	fmt.Fprintf(os.Stderr, "%d runs are kept, %d are due\n", len(b.has), len(b.due))
	inner, stop := context.WithCancel(ctx)
	defer stop()
	begin, done, next := time.Now(), 0, 0
	var first error
	var lock sync.Mutex
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() {
			for {
				lock.Lock()
				k := next
				next++
				lock.Unlock()
				if k >= len(b.due) || inner.Err() != nil {
					return
				}
				r := b.due[k]
				s, err := b.one(inner, r)
				lock.Lock()
				if err != nil {
					if first == nil {
						first = fmt.Errorf("%+v: %w", r, err)
					}
					stop()
				} else if s != nil {
					b.has[r] = s
					done++
					left := time.Since(begin) / time.Duration(done) * time.Duration(len(b.due)-done)
					fmt.Fprintf(os.Stderr, "%d of %d runs, about %v left: %s by %s, rounds of %d s\n", done, len(b.due), left.Round(time.Second), r.Scene, r.Scheduler, r.Round)
				}
				lock.Unlock()
			}
		})
	}
	all.Wait()
	if first != nil {
		return first
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %d of %d runs are done and kept; start again to go on", done, len(b.due))
	}
	return nil
}

// one runs a run and keeps its scores; nil if ctx ended before.
func (b *bank) one(ctx context.Context, r run) (*score.Scores, error) {
	s, err := r.setup(b.traces)
	if err != nil {
		return nil, err
	}
	result, err := experiment.Run(ctx, s, nil)
	if err != nil || result.CutShort {
		return nil, err
	}
	path, err := b.path(r)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result.Scores)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path+".part", text, 0o644); err != nil {
		return nil, err
	}
	return &result.Scores, os.Rename(path+".part", path)
}
