package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// heartbeats are the files that tell the submit plugin that a daemon grants leases. There is one
// file for each partition that is acted on. Its lines are the second of its last update, the daemon's user id, and gate.ttl in seconds:
// the plugin gates no job for longer.
type heartbeats struct {
	dir   string
	beats []string // partitions with a file of ours
	list  bool     // there may be a list of budgets
}

// budgetList is the file beside the heartbeats that tells the submit plugin which budgets refuse jobs. No partition is named so.
const budgetList = ".budgets"

// budgets replaces the list of budgets, or removes it; nil = there is none.
func (h *heartbeats) budgets(text []byte) error {
	path := filepath.Join(h.dir, budgetList)
	var err error
	if text != nil {
		err = replaceFile(path, text, 0o644, false)
	} else if h.list {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list of budgets (jobs are not refused at submission without it): %w", err)
	}
	h.list = text != nil
	return nil
}

// beat touches the files of the partitions and removes those of others.
func (h *heartbeats) beat(partitions []string, ttl time.Duration, now time.Time) error {
	err := h.stop(partitions)
	for _, p := range partitions {
		if !slices.Contains(h.beats, p) {
			h.beats = append(h.beats, p)
		}
	}
	return errors.Join(err, h.touch(partitions, ttl, now))
}

// touch touches the files of the partitions.
func (h *heartbeats) touch(partitions []string, ttl time.Duration, now time.Time) error {
	var err error
	for _, p := range partitions {
		if e := replaceFile(filepath.Join(h.dir, p), fmt.Appendf(nil, "%d\n%d\n%d\n", now.Unix(), os.Geteuid(), ttl/time.Second), 0o644, false); e != nil {
			err = errors.Join(err, fmt.Errorf("heartbeat of partition %s (jobs are not gated at submission without it): %w", p, e))
		}
	}
	return err
}

// stop removes the files of all partitions but those in keep.
func (h *heartbeats) stop(keep []string) error {
	var err error
	h.beats = slices.DeleteFunc(h.beats, func(p string) bool {
		if slices.Contains(keep, p) {
			return false
		}
		if e := os.Remove(filepath.Join(h.dir, p)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove the heartbeat of partition %s: %w", p, e))
			return false
		}
		return true
	})
	return err
}

// replaceFile replaces a file in one step, so that readers see the complete old or new one.
// durable = it also survives a crash of the machine.
func replaceFile(path string, text []byte, mode fs.FileMode, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
