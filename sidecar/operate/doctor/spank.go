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

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// spankFile is the name of our SPANK plugin.
const spankFile = "spank_fairlease.so"

// Spank is what plugstack.conf says of our SPANK plugin, as this host has it.
type Spank struct {
	Conf     string // plugstack.conf; "" = this host does not have Slurm's configuration
	Line     string // where the plugin is named, as file:line; "" = it is not
	Required bool
	Library  // the plugin; its Err may be about plugstack.conf, too
}

// ReadSpank reads plugstack.conf, the files that it includes, and the plugin that it names.
func ReadSpank(slurmConf map[string]string) (s Spank) {
	c := conf(slurmConf)
	if !exists(c[slurm.ConfFile]) {
		return s
	}
	if s.Conf = c[slurm.ConfPlugStack]; !filepath.IsAbs(s.Conf) {
		s.Conf = c.beside("plugstack.conf")
	}
	if s.Err = s.find(s.Conf, 8); s.Line == "" {
		return s
	}
	s.Library = readPlugin(c.pluginPath(s.File))
	return s
}

// beside gives the path of a file in the folder of slurm.conf.
func (c conf) beside(name string) string { return filepath.Join(filepath.Dir(c[slurm.ConfFile]), name) }

// pluginPath gives the path of a plugin of Slurm's.
func (c conf) pluginPath(path string) string {
	name := path
	if filepath.IsAbs(name) {
		return path
	}
	for _, dir := range filepath.SplitList(c[slurm.ConfPluginDir]) {
		if path = filepath.Join(dir, name); exists(path) {
			break
		}
	}
	return path
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

// readPlugin reads the release of Slurm that a plugin was built for, and its version of fairlease. Its symbol plugin_version is the
// number of Slurm's release, a byte for each of its parts.
func readPlugin(path string) Library {
	x := Library{File: path}
	file, err := elf.Open(path)
	if err != nil {
		x.Err = fmt.Errorf("reading %s: %w", path, err)
		return x
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		text := make([]byte, min(s.Size, 64))
		if int(s.Section) >= len(file.Sections) || (s.Name != "plugin_version" || s.Size != 4) && s.Name != "fairlease_version" {
			continue
		}
		from := file.Sections[s.Section]
		if _, err = from.ReadAt(text, int64(s.Value-from.Addr)); err != nil {
			break
		}
		if s.Name == "fairlease_version" {
			x.Version, _, _ = strings.Cut(string(text), "\x00")
			continue
		}
		n := file.ByteOrder.Uint32(text)
		x.Slurm = fmt.Sprintf("%02d.%02d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
	}
	switch {
	case err != nil:
		x.Err = fmt.Errorf("%s: %w", path, err)
	case x.Slurm == "":
		x.Err = fmt.Errorf("%s is no plugin of Slurm's: it has no plugin_version", path)
	}
	return x
}

// checkSpank checks that the SPANK plugin, if it is installed, loads and can do no harm.
func checkSpank(f *findings, s *Spank, release, program string) {
	const check, build = "SPANK plugin", "install fairlease-slurm-plugin for this release on login and compute nodes, or build the plugin there (make -C slurmplugin install)"
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
	case !strings.HasPrefix(release+".", s.Slurm[:strings.LastIndexByte(s.Slurm, '.')+1]): // of SPANK plugins Slurm does not compare the last part
		f.add(level, check, fmt.Sprintf("%s was built for Slurm %s, this is %s", s.File, s.Slurm, release), missing, build)
	case s.Required:
		f.add(Warn, check, s.Line+" names it as required", "if it ever fails to load, as after an upgrade of Slurm, submissions fail and nodes are drained", "write optional in place of required")
	default:
		checkVersion(f, check, fmt.Sprintf("optional in %s, built for Slurm %s", s.Line, s.Slurm), &s.Library, program, "hints may be read by other rules than the daemon's", build)
	}
}
