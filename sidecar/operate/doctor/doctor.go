// Package doctor finds faults in everything that fairlease depends on (its own files, Slurm,
// PostgreSQL and the clock), and jobs that lose work when they stop.
//
// Look collects the facts in a Seen, and Check compares a Seen with the configuration. Check is a
// pure function: each finding says what was found, what it means and what to do. The package
// changes nothing, except that it makes and removes a file to test a folder.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The levels of findings.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Finding is the result of one check.
type Finding struct {
	Area  string `json:"area"`
	Check string `json:"check"`
	Level string `json:"level"` // OK, Warn or Fail
	Found string `json:"found"`
	Means string `json:"means,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Examine reads the configuration, looks at everything that it names and returns the findings.
func Examine(ctx context.Context, file string, env []string, clock func() time.Time) []Finding {
	cfg, err := config.Load(file, env)
	if err != nil {
		return unusable(err)
	}
	return Check(cfg, Look(ctx, cfg, clock))
}

// unusable words why the configuration is missing.
func unusable(err error) []Finding {
	f := &findings{area: "configuration"}
	var problems config.Problems
	if !errors.As(err, &problems) {
		f.add(Fail, "file", failure.Cause(err), "the daemon does not start without it", "check the path and its rights")
		return f.list
	}
	for _, x := range problems {
		f.add(Fail, "file", x.String(), "the daemon does not start with it", "correct it; etc/fairlease.yaml explains every key")
	}
	return f.list
}

// Check compares what was seen with a configuration.
func Check(cfg *config.Config, seen *Seen) []Finding {
	f := &findings{area: "configuration"}
	f.ok("file", "good: mode %s, partitions %s", cfg.Mode, strings.Join(cfg.Partitions, ", "))
	for _, w := range cfg.Warnings() {
		found, do, _ := strings.Cut(w, "; ")
		f.add(Warn, "file", found, "", do)
	}
	checkAccepted(f, cfg, seen.Accepted)
	checkFolders(f, cfg, seen.Folders)
	checkModes(f, seen.Loose)
	checkProgress(f, cfg, seen)
	f.area = "parts"
	checkParts(f, cfg, seen)
	f.area = "slurm"
	checkSlurm(f, cfg, &seen.Slurm)
	checkSlices(f, cfg, seen)
	f.area = "gpus"
	checkGPUs(f, seen.GPUs, seen.Slurm.Sighting)
	f.area = "postgresql"
	checkDatabase(f, cfg, &seen.Database, seen.Slurm.Sighting)
	f.area = "forecasts"
	checkForecasts(f, cfg, seen.Database.Kept)
	f.area = "notices"
	checkNotices(f, cfg, seen.Database.Notices)
	f.area = "audit"
	checkSyslog(f, cfg, seen.Syslog, seen.Database.Syslog, seen.At)
	f.area = "web"
	checkWeb(f, cfg, seen)
	f.area = "jobs"
	checkSaves(f, cfg, seen.Database.Past, seen.Slurm.Sighting)
	checkRemarks(f, seen.Database.Remarks)
	return f.list
}

// checkAccepted names what the file leaves out that the daemon of this host acts by: it refuses such a file.
func checkAccepted(f *findings, cfg *config.Config, was *config.Accepted) {
	if was == nil {
		return
	}
	if w := was.Waiting; w != nil && w.Digest == config.Digest(cfg) {
		f.add(Warn, "waiting", "the daemon has not taken the file over: "+w.Says, "it goes on with the configuration before, until an administrator has answered; a start takes the file over",
			fmt.Sprintf("look at it with fairlease config accept; then run fairlease config accept %.12s or fairlease config reject", w.Digest))
	}
	for _, x := range was.Drops(cfg) {
		f.add(Fail, "accepted", x.String(), "a running daemon goes on with the file that it took over before, and none starts with this one: an empty or cut file is nobody's wish",
			"restore the file; if it is meant as it is: fairlease config accept")
	}
}

// findings collects them.
type findings struct {
	area string
	list []Finding
}

func (f *findings) ok(check, format string, args ...any) {
	f.list = append(f.list, Finding{Area: f.area, Check: check, Level: OK, Found: fmt.Sprintf(format, args...)})
}

func (f *findings) add(level, check, found, means, do string) {
	f.list = append(f.list, Finding{Area: f.area, Check: check, Level: level, Found: found, Means: means, Do: do})
}

// must records ok if holds, else a finding.
func (f *findings) must(holds bool, level, check, found, means, do string) {
	if holds {
		f.ok(check, "%s", found)
		return
	}
	f.add(level, check, found, means, do)
}

// checkFolders checks the folders that the daemon writes to.
func checkFolders(f *findings, cfg *config.Config, folders []Folder) {
	rules := cfg.Rules()
	level := Warn
	if len(rules.Acting()) > 0 {
		level = Fail
	}
	for _, x := range folders {
		found := x.Path + " can be written to"
		if x.Err != nil {
			found = failure.Cause(x.Err)
		}
		f.must(x.Err == nil, level, x.Check, found, x.Means, "make "+x.Path+" for the daemon's user (the packaged tmpfiles.d does), and run the doctor as that user")
	}
}

// checkModes checks which other users can read or write the daemon's files.
func checkModes(f *findings, loose []config.Loose) {
	for _, x := range loose {
		f.add(map[bool]string{true: Fail, false: Warn}[x.Bad], "mode of "+x.What, x.Found, x.Means, x.Do)
	}
	if len(loose) == 0 {
		f.ok("modes", "no file of fairlease has permissions that are too wide")
	}
}

// clockSkew is the tolerated difference between our clock and PostgreSQL's.
const clockSkew = 2 * time.Second

func checkDatabase(f *findings, cfg *config.Config, d *Database, slurm *cluster.Observation) {
	if cfg.Database.URL == "" {
		f.add(Fail, "address", "none is configured", "the daemon has no journal, and does not start", "set database.url, or FAIRLEASE_DATABASE_URL")
		return
	}
	if d.Err != nil {
		f.add(Fail, "connection", failure.Cause(d.Err), "rounds pause while PostgreSQL is away", connect.DatabaseNext(cfg, d.Err))
		return
	}
	f.must(d.Version >= 150000, Fail, "version", fmt.Sprintf("PostgreSQL %d", d.Version/10000), "fairlease needs 15 or newer", "upgrade it")
	if d.OpenErr != nil {
		return // see parts
	}
	f.must(d.Rights, Fail, "rights", fmt.Sprintf("user %s %s", d.User, map[bool]string{true: "may write the journal", false: "may not write the journal"}[d.Rights]),
		"rounds cannot be recorded, so none is made",
		"run this as the daemon's user (runuser -u fairlease -- fairlease doctor); that user must own the schema, or have the role fairlease_daemon (docs/database.md)")
	skew := d.Skew.Round(10 * time.Millisecond)
	f.must(skew.Abs() <= clockSkew, Warn, "clock", fmt.Sprintf("this host's clock is within %s of PostgreSQL's", cluster.SpanOf(max(skew.Abs(), 10*time.Millisecond)).Exact()),
		"overrides, terms and leadership follow different clocks", "synchronise the clocks (chrony, systemd-timesyncd)")
	checkIdentity(f, d, slurm)
	if d.Tripped != nil {
		f.add(Fail, "breaker", "it tripped at "+d.Tripped.At.String()+": "+d.Tripped.Says(), "fairlease only observes until an operator resumes",
			"look at the jobs and at slurmctld's log (docs/runbook.md, FairleaseBreakerTripped); then: fairlease resume --reason TEXT")
	}
	for i := range d.Slow {
		n := &d.Slow[i]
		f.add(Warn, "slow node", n.Says(), "jobs are slower there, and gangs avoid it where others are free", "look at its GPUs (docs/runbook.md, FairleaseSlowNode); if it is at fault: "+n.Drain())
	}
	for i := range d.SlowGPUs {
		g := &d.SlowGPUs[i]
		f.add(Warn, "slow GPU", g.Says(), "jobs are slower with it, and gangs avoid the node while no job holds it, where others are free", "look at it (docs/runbook.md, FairleaseSlowGPU); if it is at fault: "+g.Drain())
	}
	checkStandbys(f, d.Standbys)
	switch {
	case d.LeaderErr != nil:
		f.add(Fail, "leader", failure.Cause(d.LeaderErr), "", "")
	case d.Leader == nil:
		f.ok("leader", "no daemon leads")
	default:
		f.ok("leader", "%s leads, seen %v ago", d.Leader.Holder, cluster.SpanOf(d.Leader.Silent))
		found := "the last round had those of this file"
		if len(d.InForce) > 0 {
			found = "the last round had others than this file: " + view.Some(d.InForce, 5)
		}
		f.must(len(d.InForce) == 0, Warn, "settings in force", found,
			"the daemon that leads has read another file, or has not read this one since it changed",
			"systemctl reload fairlease on its host; give a standby the same file")
	}
}

// checkStandbys tells which other daemons would take over, and which are gone.
func checkStandbys(f *findings, list []store.Standby) {
	for _, x := range list {
		if x.Alive {
			f.ok("standby", "%s stands by; it runs since %v, and was seen %v ago", x.Holder, cluster.InstantOf(x.Since), max(cluster.SpanOf(x.Silent), 0))
			continue
		}
		f.add(Warn, "standby", fmt.Sprintf("%s was last seen at %v, and did not end by itself", x.Holder, cluster.InstantOf(x.Seen)), "it takes over from no other daemon",
			"systemctl start fairlease on that host, and journalctl -u fairlease; a host that was taken away is forgotten after a day")
	}
}

// checkIdentity compares the journal's cluster with the one that was seen.
func checkIdentity(f *findings, d *Database, slurm *cluster.Observation) {
	switch {
	case d.OfErr != nil:
		f.add(Fail, "cluster", failure.Cause(d.OfErr), "", "")
	case d.Of == nil:
		f.ok("cluster", "the journal belongs to no cluster yet; the first round gives it to this one")
	case slurm != nil && !d.Of.Is(slurm.Identity()):
		f.add(Fail, "cluster", fmt.Sprintf("the journal belongs to cluster %v, but Slurm is cluster %v", *d.Of, slurm.Identity()), "the daemon does not start",
			"set database.schema to a schema of its own and run fairlease migrate, or correct slurm.address; if it is the same cluster, renamed or installed again: fairlease repair cluster")
	default:
		f.ok("cluster", "the journal belongs to cluster %v", *d.Of)
	}
}
