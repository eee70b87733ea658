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

// heartbeats are the files by which the submit plugin knows that somebody grants
// leases: one for each partition that is acted on, holding the second of its
// last touch.
type heartbeats struct {
	dir   string
	beats []string // partitions with a file of ours
}

// beat touches the files of the partitions and removes those of others.
func (h *heartbeats) beat(partitions []string, now time.Time) error {
	err := h.stop(partitions)
	for _, p := range partitions {
		if !slices.Contains(h.beats, p) {
			h.beats = append(h.beats, p)
		}
	}
	return errors.Join(err, h.touch(partitions, now))
}

// touch touches the files of the partitions.
func (h *heartbeats) touch(partitions []string, now time.Time) error {
	var err error
	for _, p := range partitions {
		if e := replaceFile(filepath.Join(h.dir, p), fmt.Appendf(nil, "%d\n", now.Unix()), 0o644, false); e != nil {
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

// replaceFile puts a file in the place of another in one step, so that readers see
// the old or the new one, whole; durable = after a crash of the machine, too.
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
