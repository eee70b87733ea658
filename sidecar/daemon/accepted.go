package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

// wish tells whether a configuration can be meant: an empty or cut file is nobody's wish. It is compared with what this
// process took over last, else with what the one before it did, unless an administrator has accepted it since.
func (d *Daemon) wish(c *config.Config) error {
	was := d.accepted
	if kept := config.ReadAccepted(d.path()); kept != nil && (was == nil || len(kept.Drops(c)) == 0) {
		was = kept
	}
	if was == nil {
		return nil
	}
	if drops := was.Drops(c); len(drops) > 0 {
		return fmt.Errorf("%w:\n%w\nif that is meant: fairlease config accept", ErrDropped, drops)
	}
	return nil
}

// taken notes that a configuration is in force.
func (d *Daemon) taken(c *config.Config) {
	a := c.Accept()
	d.accepted, d.refused = &a, nil
	if err := WriteAccepted(d.path(), a); err != nil {
		d.Log.Warn().Err(err).Msg("a start with an empty or cut configuration would not be noticed")
	}
}

// InForce gives the configuration in force, as JSON of its texts, for processes beside the daemon: the file may be another one by now.
func (d *Daemon) InForce() ([]byte, error) { return json.Marshal(d.config.Load().Texts()) }

// path is that of the file beside files.state of the start, which a reload does not change.
func (d *Daemon) path() string { return d.Config.AcceptedPath() }

// reconsider tells whether a configuration that was refused has been accepted since.
func (d *Daemon) reconsider() bool {
	if d.refused == nil {
		return false
	}
	info, err := os.Stat(d.path())
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().Equal(d.looked) {
		return false
	}
	if err == nil {
		d.looked = info.ModTime()
	}
	kept := config.ReadAccepted(d.path())
	return kept != nil && len(kept.Drops(d.refused)) == 0
}
