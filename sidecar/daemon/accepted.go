package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
)

// ErrDropped says that a configuration leaves out without a word what was in force before.
var ErrDropped = errors.New("the configuration leaves out what was in force before")

// WriteAccepted replaces the file that config.ReadAccepted reads, in one step.
func WriteAccepted(path string, a config.Accepted) error {
	text, err := json.MarshalIndent(a, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = replaceFile(path, append(text, '\n'), 0o644, true) // root accepts, the daemon's user reads
	}
	if err != nil {
		return fmt.Errorf("write down which configuration was taken over: %w", err)
	}
	return nil
}

// acceptance decides whether a configuration can be meant: an empty or cut file is nobody's wish.
type acceptance struct {
	path string // of the file that config.ReadAccepted reads: beside files.state of the start, which a reload does not change

	was     *config.Accepted // the configuration that was taken over last; nil = none
	refused *config.Config   // one that was refused for what it leaves out; nil = none
	looked  time.Time        // change of the file, when it was read last
	waits   string           // digest of one that waits to be accepted; "" = none
}

// wish compares a configuration with what this process took over last, else with what the one before it did, unless an
// administrator has accepted it since.
func (a *acceptance) wish(c *config.Config) error {
	was := a.was
	if kept := config.ReadAccepted(a.path); kept != nil && (was == nil || len(kept.Drops(c)) == 0) {
		was = kept
	}
	if was == nil {
		return nil
	}
	if drops := was.Drops(c); len(drops) > 0 {
		a.refused = c
		return fmt.Errorf("%w:\n%w\nif that is meant: fairlease config accept", ErrDropped, drops)
	}
	return nil
}

// taken notes that a configuration is in force.
func (a *acceptance) taken(c *config.Config) error {
	now := c.Accept()
	a.was, a.refused, a.waits = &now, nil, ""
	return WriteAccepted(a.path, now)
}

// hold notes that a configuration waits to be accepted; nil = none does any more.
func (a *acceptance) hold(w *config.Waiting) error {
	if a.was == nil {
		return nil
	}
	now := *a.was
	now.Waiting, a.waits, a.refused = w, "", nil
	if w != nil {
		a.waits = w.Digest
	}
	return WriteAccepted(a.path, now)
}

// answer gives what an administrator has said to a configuration; nil = nothing.
func (a *acceptance) answer(digest string) *config.Answer {
	kept := config.ReadAccepted(a.path)
	if kept == nil || kept.Answer == nil || kept.Answer.Digest != digest {
		return nil
	}
	return kept.Answer
}

// reconsider tells whether a configuration that was refused, or waits, has been answered since.
func (a *acceptance) reconsider() bool {
	if a.refused == nil && a.waits == "" {
		return false
	}
	info, err := os.Stat(a.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().Equal(a.looked) {
		return false
	}
	if err == nil {
		a.looked = info.ModTime()
	}
	if a.waits != "" {
		return a.answer(a.waits) != nil
	}
	kept := config.ReadAccepted(a.path)
	return kept != nil && len(kept.Drops(a.refused)) == 0
}
