// Package build tells which build of fairlease this is.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// version and commit are set by the linker in packages.
var version, commit string

// Info is a build.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // of the sources; with "+" if they were changed
	Go      string `json:"go"`
	System  string `json:"system"`
	CLP     string `json:"clp,omitempty"` // version of COIN-OR CLP; "" = a build without it
	Schema  int64  `json:"schema"`        // of the journal, which this build reads and writes
}

// Of gives this build.
func Of() Info {
	i := Info{Version: version, Commit: commit, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CLP: lp.Version(), Schema: migrate.Latest()}
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	changed := ""
	for _, s := range built.Settings {
		switch {
		case s.Key == "vcs.revision":
			i.Commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if i.Commit != "" {
		i.Commit += changed
	}
	if i.Version == "" {
		i.Version = built.Main.Version
	}
	if i.Version == "" || i.Version == "(devel)" {
		i.Version = "unreleased"
	}
	return i
}

func (i Info) String() string {
	text := "fairlease " + i.Version + " ("
	if i.Commit != "" {
		text += "commit " + i.Commit + ", "
	}
	clp := "no CLP"
	if i.CLP != "" {
		clp = "CLP " + i.CLP
	}
	return text + fmt.Sprintf("schema %d, %s, %s %s)", i.Schema, clp, i.Go, i.System)
}
