package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/build"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Parts are the parts of fairlease on this host, beside its plugins for Slurm.
type Parts struct {
	Program build.Info // this program
	Path    string     // its file
	Units   []Unit     // nil = systemd does not run here
	Library *Library   // of jobs, in Python; nil = not installed
}

// Library is a library of fairlease: the one of jobs, or a plugin of Slurm's.
type Library struct {
	File    string
	Version string // of fairlease; "" = it does not say
	Slurm   string // release that a plugin was built for, as "25.11.2"
	Err     error  // why it cannot be loaded
}

// Unit is a unit of systemd's.
type Unit struct {
	Name    string // "fairlease.service"
	Load    string // "loaded", "masked", "not-found", ...
	Active  string // "active", "inactive", "failed", ...
	Sub     string // "running", "auto-restart", ...
	File    string // "enabled", "disabled", ...
	Stale   bool   // its files have changed since systemd read them
	Program string // file that it runs
	Version string // of that program, if it is another file than this program
}

// unitNames are the packaged units.
var unitNames = []string{"fairlease.service", "fairlease-web.service", restUnit, thawUnit}

const (
	restUnit = "fairlease-slurmrestd.service"
	thawUnit = "fairlease-thaw.timer" // see checkSlices
)

// readParts looks for the parts on this host.
func readParts(ctx context.Context) Parts {
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	p := Parts{Program: build.Of(), Units: readUnits(ctx), Library: readPython(ctx)}
	p.Path, _ = os.Executable() // for display
	for i := range p.Units {
		if u := &p.Units[i]; u.Program != "" && u.Name != restUnit && !sameFile(u.Program, p.Path) {
			u.Version = versionOf(ctx, u.Program)
		}
	}
	return p
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// versionOf asks another program of fairlease for its version; "" = it does not answer.
func versionOf(ctx context.Context, program string) string {
	var is build.Info
	out, err := exec.CommandContext(ctx, program, "version", "--json").Output()
	if err != nil || json.Unmarshal(out, &is) != nil {
		return ""
	}
	return is.Version
}

// readUnits asks systemd for the units of fairlease.
func readUnits(ctx context.Context) []Unit {
	args := append([]string{"show", "--property=Id,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,ExecStart"}, unitNames...)
	out, err := exec.CommandContext(ctx, "systemctl", args...).Output()
	if err != nil {
		return nil
	}
	return ParseUnits(string(out))
}

// ParseUnits reads the output of systemctl show: lines of the form KEY=VALUE, with an empty line between units.
func ParseUnits(text string) (units []Unit) {
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var u Unit
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
			switch key {
			case "Id":
				u.Name = value
			case "LoadState":
				u.Load = value
			case "ActiveState":
				u.Active = value
			case "SubState":
				u.Sub = value
			case "UnitFileState":
				u.File = value
			case "NeedDaemonReload":
				u.Stale = value == "yes"
			case "ExecStart": // { path=/usr/bin/fairlease ; argv[]=... }
				_, path, _ := strings.Cut(value, "path=")
				u.Program, _, _ = strings.Cut(path, " ")
			}
		}
		if u.Name != "" {
			units = append(units, u)
		}
	}
	return units
}

// ask prints the version and the file of the library for jobs, if there is one.
const ask = `try:
    import fairlease
    print(getattr(fairlease, "__version__", ""), fairlease.__file__, sep="\n")
except ModuleNotFoundError:
    pass`

// readPython looks for the library where the programs of all users find it, with the Python of this host.
func readPython(ctx context.Context) *Library {
	const python = "/usr/bin/python3"
	if !exists(python) {
		return nil
	}
	var refused bytes.Buffer
	c := exec.CommandContext(ctx, python, "-I", "-c", ask)
	c.Stderr = &refused
	out, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(refused.String()), "\n")
		return &Library{File: python, Err: errors.New(cmp.Or(lines[len(lines)-1], err.Error()))}
	}
	version, file, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if !ok {
		return nil
	}
	return &Library{File: file, Version: version}
}

// unlike tells whether two versions are those of different releases. Builds between two releases, as 0.2.0~20270131.1a2b3c4d,
// count as the later one where the other does not name its build. A version that is none, as of a build by hand, is unlike no other.
func unlike(a, b string) bool {
	releaseA, buildA, _ := strings.Cut(a, "~")
	releaseB, buildB, _ := strings.Cut(b, "~")
	numbered := func(release string) bool { return release != "" && release[0] >= '0' && release[0] <= '9' }
	if !numbered(releaseA) || !numbered(releaseB) {
		return false
	}
	return releaseA != releaseB || buildA != buildB && buildA != "" && buildB != ""
}

// checkParts compares the versions of all parts that are installed, and the states of the units.
func checkParts(f *findings, cfg *config.Config, seen *Seen) {
	p := &seen.Parts
	f.ok("program", "%s in %s", p.Program, p.Path)
	checkSchema(f, &seen.Database, cfg.Database.Schema)
	checkSessions(f, &seen.Database, p)
	checkUnits(f, p, cfg.Slurm.Address)
	checkSubmitFile(f, &seen.Slurm, p)
	checkSpank(f, &seen.Slurm.Spank, seen.Slurm.Facts.Release, p.Program.Version)
	checkLibrary(f, p)
}

// checkSchema compares the schema of the journal with the one that this program knows.
func checkSchema(f *findings, d *Database, schema string) {
	const check = "database schema"
	switch latest := migrate.Latest(); {
	case d.Err != nil || d.Version == 0:
	case d.Owner != "":
		f.add(Fail, check, fmt.Sprintf("it belongs to user %s, and user %s may not use it", d.Owner, d.User), "the daemon does not start",
			fmt.Sprintf("run this as the daemon's user; if it is %[2]s: runuser -u %[1]s -- fairlease migrate --roles; psql -c 'grant %[3]s_daemon to %[2]s'; or, if the schema is new, drop it, and runuser -u %[2]s -- fairlease migrate",
				d.Owner, d.User, schema))
	case errors.Is(d.OpenErr, store.ErrSchema) && d.Schema > latest:
		f.add(Fail, check, failure.Cause(d.OpenErr), "the daemon does not start", "install that newer version of fairlease here; \"Upgrade\" in docs/install.md says how to go back to the version before")
	case errors.Is(d.OpenErr, store.ErrSchema):
		f.add(Fail, check, failure.Cause(d.OpenErr), "the daemon does not start", "runuser -u fairlease -- fairlease migrate")
	case d.OpenErr != nil:
		f.add(Fail, check, failure.Cause(d.OpenErr), "the daemon cannot work", "see the message")
	default:
		f.ok(check, "version %d", d.Schema)
	}
}

// checkSessions compares the versions of the daemons and web servers that are connected to the journal.
func checkSessions(f *findings, d *Database, p *Parts) {
	for _, x := range []struct{ command, check, unit string }{{connect.Serve, "daemon", "fairlease"}, {connect.Web, "web server", "fairlease-web"}} {
		for _, s := range d.Sessions {
			if s.Command != x.command {
				continue
			}
			f.must(!unlike(s.Version, p.Program.Version), Warn, x.check, fmt.Sprintf("%s on %s", s.Version, cmp.Or(s.Host, "some host")),
				"it is not the version of this program: the package was upgraded without a restart, or the hosts have different packages",
				fmt.Sprintf("install %s there, and run systemctl restart %s", p.Program.Version, x.unit))
		}
	}
}

// checkUnits checks that systemd starts what is in use.
func checkUnits(f *findings, p *Parts, address string) {
	for i := range p.Units {
		u := &p.Units[i]
		name := strings.TrimSuffix(u.Name, ".service")
		enabled, active := strings.HasPrefix(u.File, "enabled"), u.Active == "active" || u.Active == "reloading"
		switch {
		case u.Load == "not-found", u.Name == thawUnit, u.Name == restUnit && !strings.Contains(address, "/fairlease-slurmrestd/"):
		case u.Load != "loaded":
			f.add(Fail, u.Name, "systemd cannot load it: "+u.Load, "it does not start", "systemctl status "+name+"; to undo a mask: systemctl unmask "+name)
		case u.Active == "failed" || u.Sub == "auto-restart":
			f.add(Fail, u.Name, "it ended with an error", "it does not run", "journalctl -u "+name+" -n 50 says why; then systemctl restart "+name)
		case u.Stale:
			f.add(Warn, u.Name, "its files have changed since systemd read them", "systemd still runs what they said before", "systemctl daemon-reload, and systemctl restart "+name)
		case active && !enabled:
			f.add(Warn, u.Name, "runs, but is not enabled", "it does not run after the next boot of this host", "systemctl enable "+name)
		case enabled && !active:
			f.add(Warn, u.Name, "is enabled, but does not run", "it is missing until somebody starts it, or this host boots", "systemctl start "+name+"; journalctl -u "+name+" says why it ended")
		case unlike(u.Version, p.Program.Version):
			f.add(Warn, u.Name, fmt.Sprintf("runs %s, which is version %s; this is %s in %s", u.Program, u.Version, p.Program.Version, p.Path),
				"commands and the daemon may disagree", "remove the program that is not in use")
		case !active:
			f.ok(u.Name, "not in use: systemctl enable --now %s starts it", name)
		default:
			f.ok(u.Name, "enabled, and runs")
		}
	}
}

// checkSubmitFile checks that slurmctld can load the submit plugin at its next start.
func checkSubmitFile(f *findings, s *Slurm, p *Parts) {
	const check = "submit plugin's file"
	release, x := s.Facts.Release, s.Plugin.Library
	switch {
	case x == nil:
	case x.Err != nil && strings.HasSuffix(x.File, ".lua"):
		f.add(Warn, check, failure.Cause(x.Err), "new jobs are not gated at submission", "copy contrib/job_submit.lua there, or set JobSubmitPlugins=fairlease")
	case x.Err != nil:
		f.add(Fail, check, failure.Cause(x.Err), "slurmctld does not start again", "install fairlease-slurm-plugin for Slurm "+release+", or take fairlease out of JobSubmitPlugins in slurm.conf")
	case x.Slurm != "" && release != "" && x.Slurm != release:
		f.add(Fail, check, fmt.Sprintf("%s was built for Slurm %s, this is %s", x.File, x.Slurm, release), "slurmctld does not start again",
			"before you restart slurmctld install fairlease-slurm-plugin for Slurm "+release+", or take fairlease out of JobSubmitPlugins in slurm.conf")
	default:
		found := x.File
		if x.Slurm != "" {
			found += ", built for Slurm " + x.Slurm
		}
		checkVersion(f, check, found, x, p.Program.Version, "jobs are gated by the rules of that version", "install fairlease-slurm-plugin of the same version as fairlease, and restart slurmctld")
	}
}

// checkLibrary compares the library for jobs.
func checkLibrary(f *findings, p *Parts) {
	const check, install = "Python library", "install python3-fairlease of the same version, or pip install the wheel of that version, on all compute nodes"
	switch x := p.Library; {
	case x == nil:
		f.ok(check, "not installed on this host")
	case x.Err != nil:
		f.add(Warn, check, fmt.Sprintf("%s cannot import fairlease: %v", x.File, x.Err), "jobs that import it end with an error", install)
	default:
		checkVersion(f, check, x.File, x, p.Program.Version, "jobs on hosts with it may not understand what the daemon tells them", install)
	}
}

// checkVersion compares the version of a library that was found with this program's.
func checkVersion(f *findings, check, found string, x *Library, program, means, do string) {
	if x.Version != "" {
		found += ", of fairlease " + x.Version
	}
	if unlike(x.Version, program) {
		found += "; this program is " + program
	}
	f.must(!unlike(x.Version, program), Warn, check, found, means, do)
}

// luaVersion finds the version of contrib/job_submit.lua.
var luaVersion = regexp.MustCompile(`(?m)^-- fairlease (\d\S*):`)

// readSubmit looks at the submit plugin's file, where this host has Slurm's configuration.
func readSubmit(c conf) *Library {
	if !exists(c[slurm.ConfFile]) {
		return nil
	}
	if c.has(slurm.ConfJobSubmit, "fairlease") {
		x := readPlugin(c.pluginPath("job_submit_fairlease.so"))
		return &x
	}
	x := &Library{File: c.beside("job_submit.lua")}
	text, err := os.ReadFile(x.File)
	if err == nil && !bytes.Contains(text, []byte("fairlease")) {
		err = fmt.Errorf("%s does not call fairlease", x.File)
	}
	if x.Err = err; err == nil {
		if m := luaVersion.FindSubmatch(text); m != nil {
			x.Version = string(m[1])
		}
	}
	return x
}
