package doctor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// ofArea gives the findings of an area.
func ofArea(found []doctor.Finding, area string) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(x doctor.Finding) bool { return x.Area != area })
}

// named gives the findings of checks with these prefixes.
func named(found []doctor.Finding, names ...string) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(x doctor.Finding) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(x.Check, name) }) || x.Check == "submit plugin"
	})
}

// told gives findings as "check level: found". It fails unless each finding, except those of
// partitions and tenants, says what it means and what to do.
func told(t *testing.T, found []doctor.Finding) []string {
	t.Helper()
	var out []string
	for _, x := range found {
		out = append(out, fmt.Sprintf("%s %s: %s", x.Check, x.Level, x.Found))
		if x.Level != doctor.OK && (x.Means == "" || x.Do == "") {
			t.Errorf("%s does not say what it means and what to do", x.Check)
		}
	}
	return out
}

// levels lists checks with their levels, and fails unless each says what it means and what to do.
func levels(t *testing.T, found []doctor.Finding) string {
	t.Helper()
	told(t, found)
	var got []string
	for _, x := range found {
		got = append(got, x.Check+" "+x.Level)
	}
	return strings.Join(got, ", ")
}

// looked gives the findings about progress reports, with every service away.
func looked(t *testing.T, cfg *config.Config) []doctor.Finding {
	t.Helper()
	cfg.Slurm.Address, cfg.Slurm.Retries = "unix://"+t.TempDir()+"/none", 0
	return named(doctor.Check(cfg, doctor.Look(t.Context(), cfg, time.Now)), "progress")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each state of PostgreSQL and of the journal in it has its own finding.
func TestDatabase(t *testing.T) {
	good := doctor.Database{Version: 160002, User: "fairlease", Schema: 7, Rights: true}
	here := cluster.Observation{Cluster: "here"}
	is := here.Identity()
	for _, c := range []struct {
		name   string
		change func(*doctor.Database)
		want   string // without those that are ok
	}{
		{"good", func(*doctor.Database) {}, ""},
		{"away", func(d *doctor.Database) { *d = doctor.Database{Err: errors.New("refused")} }, "connection fail: refused"},
		{"old", func(d *doctor.Database) { d.Version = 140022 }, "version fail: PostgreSQL 14"},
		{"no schema", func(d *doctor.Database) { d.OpenErr = fmt.Errorf("%w: there is none", store.ErrSchema) }, "database schema fail: "},
		{"no rights", func(d *doctor.Database) { d.Rights = false }, "rights fail: user fairlease may not write the journal"},
		{"another clock", func(d *doctor.Database) { d.Skew = -3 * time.Second }, "clock warn: this host's clock is within 3 s of PostgreSQL's"},
		{"its cluster", func(d *doctor.Database) { d.Of = &is }, ""},
		{"another cluster", func(d *doctor.Database) { d.Of = &cluster.Identity{Name: "there"} }, "cluster fail: the journal belongs to cluster there, but Slurm is cluster here"},
		{"tripped", func(d *doctor.Database) {
			d.Tripped = &cluster.Trip{At: cluster.Instant(cluster.Day), Kind: cluster.Latency, Bound: 10_000, Count: 12_500}
		}, "breaker fail: it tripped at 1970-01-02T00:00:00.000Z: for a quarter of an hour looks at Slurm took 12.5 s each, and at most 10.0 s are allowed (breaker.latency)"},
		{"a slow node", func(d *doctor.Database) {
			d.Slow = []cluster.SlowNode{{Node: "n7", Model: "v100", Percent: 62, Jobs: 5, Users: 2}}
		}, "slow node warn: 5 jobs of 2 users ran on the v100 GPUs of n7 at 62 % of their usual speed on other nodes"},
		{"a slow GPU", func(d *doctor.Database) {
			d.SlowGPUs = []cluster.SlowGPU{{SlowNode: cluster.SlowNode{Node: "n7", Model: "v100", Percent: 62, Jobs: 5, Users: 2}, Index: 3}}
		}, "slow GPU warn: 5 jobs of 2 users ran with GPU 3 of n7 (v100) at 62 % of their usual speed on other nodes"},
		{"a standby", func(d *doctor.Database) { d.Standbys = []store.Standby{{Holder: "ctl2:7", Alive: true}} }, ""},
		{"a standby is gone", func(d *doctor.Database) {
			d.Standbys = []store.Standby{{Holder: "ctl2:7", Alive: true}, {Holder: "ctl3:8", Seen: time.Unix(60, 0)}}
		}, "standby warn: ctl3:8 was last seen at 1970-01-01T00:01:00.000Z, and did not end by itself"},
		{"somebody leading", func(d *doctor.Database) { d.Leader = &store.Leader{Holder: "login1:7"} }, ""},
	} {
		d := good
		c.change(&d)
		cfg := config.Default()
		cfg.Database.URL = "postgresql://u:secret@h/f"
		found := doctor.Check(cfg, &doctor.Seen{Database: d, Slurm: doctor.Slurm{Sighting: &here}})
		found = append(ofArea(found, "postgresql"), named(found, "database schema")...)
		found = slices.DeleteFunc(found, func(x doctor.Finding) bool { return x.Level == doctor.OK })
		if got := strings.Join(told(t, found), "\n"); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A folder that the daemon cannot write to is a failure if it acts, and a warning in observe
// mode.
func TestFolders(t *testing.T) {
	seen := &doctor.Seen{Folders: []doctor.Folder{{Check: "state", Path: "/var/lib/x", Means: "m", Err: os.ErrPermission}}, Loose: []config.Loose{{What: "token", Bad: true, Means: "m", Do: "d"}}}
	cfg := config.Default()
	for mode, want := range map[loop.Mode]string{loop.Observe: doctor.Warn, loop.Act: doctor.Fail} {
		cfg.Mode = mode
		if got := levels(t, named(doctor.Check(cfg, seen), "state", "mode")); got != "state "+want+", mode of token "+doctor.Fail {
			t.Errorf("mode %s: %s", mode, got)
		}
	}
}

// Findings are written by area, and counted.
func TestWrite(t *testing.T) {
	found := []doctor.Finding{{Area: "slurm", Check: "version", Level: doctor.OK, Found: "25.05"}, {Area: "slurm", Check: "gate", Level: doctor.Warn, Found: "f", Means: "m", Do: "d"}}
	for form, want := range map[view.Form]string{
		{}:                               "slurm\n  ok   version               25.05\n  warn gate                  f\n                             means: m\n                             do:    d\n\n1 ok, 1 warnings, 0 to repair\n",
		{Parsable: true, NoHeader: true}: "slurm|version|ok|25.05||\nslurm|gate|warn|f|m|d\n",
	} {
		var out bytes.Buffer
		if err := doctor.Write(&view.Page{Out: &out, Form: form}, found); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Errorf("%+v%s", form, d)
		}
	}
}
