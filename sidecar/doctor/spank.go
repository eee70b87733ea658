package doctor

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// spankFile is the name of our SPANK plugin.
const spankFile = "spank_fairlease.so"

// Spank is what plugstack.conf says of our SPANK plugin, as this host has it.
type Spank struct {
	Conf     string // plugstack.conf; "" = this host does not have Slurm's configuration
	Line     string // where the plugin is named, as file:line; "" = it is not
	Required bool
	File     string // of the plugin
	Release  string // of Slurm that it was built for, as "25.11"
	Err      error
}

// ReadSpank reads plugstack.conf, the files that it includes, and the plugin that it names.
func ReadSpank(slurmConf map[string]string) (s Spank) {
	c := conf(slurmConf)
	if _, err := os.Stat(c[slurm.ConfFile]); err != nil {
		return s
	}
	if s.Conf = c[slurm.ConfPlugStack]; !filepath.IsAbs(s.Conf) {
		s.Conf = filepath.Join(filepath.Dir(c[slurm.ConfFile]), "plugstack.conf")
	}
	if s.Err = s.find(s.Conf, 8); s.Line == "" {
		return s
	}
	if !filepath.IsAbs(s.File) {
		name := s.File
		for _, dir := range filepath.SplitList(c[slurm.ConfPluginDir]) {
			if s.File = filepath.Join(dir, name); exists(s.File) {
				break
			}
		}
	}
	s.Release, s.Err = builtFor(s.File)
	return s
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// find searches a file for the plugin, and at most depth levels of files that it includes.
func (s *Spank) find(path string, depth int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan() && s.Line == ""; n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) < 2 || strings.HasPrefix(words[0], "#"):
		case strings.EqualFold(words[0], "include") && depth > 0:
			if !filepath.IsAbs(words[1]) {
				words[1] = filepath.Join(filepath.Dir(path), words[1])
			}
			included, _ := filepath.Glob(words[1]) // none: as if it were empty
			for _, p := range included {
				if err := s.find(p, depth-1); err != nil {
					return err
				}
			}
		case filepath.Base(words[1]) == spankFile:
			s.Line, s.Required, s.File = fmt.Sprintf("%s:%d", path, n), strings.EqualFold(words[0], "required"), words[1]
		}
	}
	return lines.Err()
}

// builtFor reads the release of Slurm in a plugin: its symbol plugin_version is the number of the release, a byte for each
// of its parts.
func builtFor(path string) (release string, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for _, x := range symbols {
		if x.Name != "plugin_version" || int(x.Section) >= len(file.Sections) {
			continue
		}
		from := file.Sections[x.Section]
		var number [4]byte
		if _, err := from.ReadAt(number[:], int64(x.Value-from.Addr)); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		n := file.ByteOrder.Uint32(number[:])
		return fmt.Sprintf("%02d.%02d", n>>16&0xff, n>>8&0xff), nil
	}
	return "", fmt.Errorf("%s is no plugin of Slurm's: it has no plugin_version", path)
}

// spank checks that the SPANK plugin, if it is installed, loads and can do no harm.
func (f *findings) spank(s *Spank, release string) {
	const check, build = "SPANK plugin", "build it against the headers of this release, on login and compute nodes (make -C slurmplugin install)"
	missing := "the option --fairlease does not exist: sbatch refuses it, and hints come by --comment, --wckey or FAIRLEASE_HINTS only"
	level := Warn
	if s.Required {
		level, missing = Fail, "Slurm cannot load a required plugin: submissions fail, and nodes are drained"
	}
	switch {
	case s.Conf == "":
	case s.Line == "" && (s.Err == nil || errors.Is(s.Err, fs.ErrNotExist)):
		f.ok(check, "not installed: hints come by --comment, --wckey or FAIRLEASE_HINTS")
	case s.Line == "":
		f.add(Warn, check, failure.Cause(s.Err), "whether the plugin is installed is not known", "run the doctor as a user who may read "+s.Conf)
	case errors.Is(s.Err, fs.ErrNotExist):
		f.add(level, check, fmt.Sprintf("%s names it, but %s does not exist", s.Line, s.File), missing, build)
	case s.Err != nil:
		f.add(level, check, failure.Cause(s.Err), missing, build)
	case !strings.HasPrefix(release+".", s.Release+"."):
		f.add(level, check, fmt.Sprintf("%s was built for Slurm %s, this is %s", s.File, s.Release, release), missing, build)
	case s.Required:
		f.add(Warn, check, s.Line+" names it as required", "if it ever fails to load, as after an upgrade of Slurm, submissions fail and nodes are drained", "write optional in place of required")
	default:
		f.ok(check, "optional in %s, built for Slurm %s", s.Line, s.Release)
	}
}
