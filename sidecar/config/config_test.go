package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

var values = cmp.Options{cmpopts.IgnoreUnexported(config.Config{}, config.Tune{}), cmpopts.EquateEmpty()}

func parse(t *testing.T, text string, env ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("f.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The documented defaults are the program's.
func TestSampleIsTheDefault(t *testing.T) {
	text, err := os.ReadFile("../../etc/fairlease.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, string(text))
	if d := cmp.Diff(config.Default(), c, values); d != "" {
		t.Errorf("etc/fairlease.yaml differs from the defaults:\n%s", d)
	}
	if idle := c.NoEffect(); len(idle) > 0 {
		t.Errorf("etc/fairlease.yaml has the defaults, and of these it is said: %v", idle)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range config.Keys() {
		if !c.Origin(key).InFile() {
			t.Errorf("etc/fairlease.yaml does not have %s", key)
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if len(line) > 120 {
			t.Errorf("too long a line: %s", line)
		}
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "lease:\n", "---\n"} {
		if d := cmp.Diff(config.Default(), parse(t, text), values); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestSettings(t *testing.T) {
	c := parse(t, `
mode: act
partitions: gpu, a100
interval: 1s
lease: {term: 20s, min: 10s, notice: 5s, grant_timeout: 10s, signal: SIGUSR2, signal_to: batch,
  signals: [{qos: long, signal: none, to: steps}]}
gate: {ttl: 00:10}
burst: {max: 1.5}
jobs: {new_share: 25 %, weights: {low: 0.5, high: 2}}
tenants: {level: 2, weights: {nlp: 3, vision: 1}}
saves: [{qos: long, saves: 2h}, {partition: gpu, saves: term}]
preemptible: {qos: [scavenge], partitions: preempt}
`)
	s := c.Settings()
	got := []any{s.Interval, s.Term, s.MinLease, s.GateTTL, s.Signal, s.BurstMaxMilli, s.NewSharePercent, s.JobWeights, s.Signals,
		s.Saves}
	want := []any{cluster.Second, 20 * cluster.Second, 10 * cluster.Second, 10 * cluster.Second, "USR2", int64(1500), 25,
		[]cluster.JobWeight{{QOS: "high", Milli: 2000}, {QOS: "low", Milli: 500}},
		[]cluster.SignalRule{{QOS: "long", To: "steps"}},
		[]cluster.SavingRule{
			{QOS: "scavenge", Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration, Evidence: "QOS scavenge is preemptible here"},
			{Partition: "preempt", Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration, Evidence: "partition preempt is preemptible here"},
			{QOS: "long", Manner: cluster.SavesEvery, Every: 2 * cluster.Hour, Source: cluster.FromSite, Evidence: "the site's rule for QOS long"},
			{Partition: "gpu", Manner: cluster.SavesOnTerm, Source: cluster.FromSite, Evidence: "the site's rule for partition gpu"},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r := c.Rules()
	if d := cmp.Diff([]any{[]string{"gpu", "a100"}, 2, map[string]int64{"nlp": 3, "vision": 1}, []string{"gpu", "a100"}},
		[]any{r.Partitions, r.TenantLevel, r.Weights, r.Acting()}); d != "" {
		t.Error(d)
	}
}

// Each problem says where it is, what is wrong and what to do next.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"misspelled", "lease:\n  notcie: 60s\n", "f.yaml:2: lease.notcie: unknown key; did you mean lease.notice?"},
		{"misplaced", "notice: 60s\n", "f.yaml:1: notice: unknown key; did you mean lease.notice?"},
		{"joined", "gate_ttl: 60s\n", "f.yaml:1: gate_ttl: unknown key; did you mean gate.ttl?"},
		{"strange", "burst: {zebra: 1}\n", "f.yaml:1: burst.zebra: unknown key; the keys here are max"},
		{"twice", "mode: act\nmode: act\n", "f.yaml:2: mode: stands here for the second time, first in line 1; keep one"},
		{"no value", "interval:\n", "f.yaml:1: interval: has no value; write one, or remove the key to have the default"},
		{"list for one", "interval: [1s]\n", "f.yaml:1: interval: one value is expected here, not a list or keys"},
		{"one for keys", "lease: 15m\n", "f.yaml:1: lease: keys are expected here, as in `term: value`"},
		{"no time", "interval: soon\n", `f.yaml:1: interval: "soon" is no length of time: write it like 10s, 15m, 1h30m, 14d or, as Slurm does, 15 (minutes), 15:00, 1:30:00, 1-12:00:00`},
		{"no number", "reclaim: {max: many}\n", `f.yaml:1: reclaim.max: "many" cannot be used here; write a whole number`},
		{"no bool", "jobs: {new_first: perhaps}\n", `f.yaml:1: jobs.new_first: "perhaps" cannot be used here; write true or false`},
		{"no yaml", "lease: {\n", "f.yaml:1: did not find expected node content; check the indentation (blanks, no tabs) and the colons near that line"},
		{"two documents", "mode: act\n---\nmode: act\n", "f.yaml:2: a second document starts here; remove the line ---"},
		{"interval in minutes", "interval: 16\n", "f.yaml:1: interval: 16m between two rounds is longer than lease.term (15m, default); a number without a unit means minutes"},
		{"longest notice", "lease: {notice_min: 30s, notice_max: 6m}\n", "f.yaml:1: lease.notice_max: 6m is longer than lease.min (5m, default): the notice would come before the minimum lease ends; shorten it or lengthen lease.min"},
		{"bounds of the notice", "lease: {notice_min: 2m, notice_max: 3m}\n", "f.yaml:1: lease.notice_max: lease.notice (1m) must lie between lease.notice_min (2m) and lease.notice_max (3m)"},
		{"shortest notice", "lease: {notice_min: 5s, notice_max: 3m}\n", "f.yaml:1: lease.notice_min: 5s is shorter than interval (10s, default), so no round may fall between notice and end; lengthen it"},
		{"one bound", "lease: {notice_min: 20s}\n", "f.yaml:1: lease.notice_min: 20s has no effect without lease.notice_max; set both or neither"},
		{"turns without a notice", "lease: {notice: 0s, notice_concurrent: 2}\n", "f.yaml:1: lease.notice_concurrent: jobs cannot take turns without a notice; set lease.notice"},
		{"notice", "lease:\n  min: 2m\n  notice: 3m\n", "f.yaml:3: lease.notice: 3m is longer than lease.min (2m, f.yaml:2): the notice would come before the minimum lease ends; shorten it or lengthen lease.min"},
		{"min", "lease: {min: 20m}\n", "f.yaml:1: lease.min: 20m is longer than lease.term (15m, default); shorten one or lengthen the other"},
		{"gate", "gate: {ttl: 30s}\n", "f.yaml:1: gate.ttl: 30s is not longer than three times interval (10s, default): gates would lapse between rounds; lengthen it"},
		{"canary", "mode: canary\n", "default: canary: mode canary acts on the partitions listed here, and none is listed; add one, or select jobs (canary_jobs), or set mode: observe"},
		{"canary unknown", "canary: [x]\n", `f.yaml:1: canary: "x" is not managed; add it to partitions ([gpu], default) or remove it here`},
		{"preemption", "preemption: ignore\n", `f.yaml:1: preemption: "ignore" is not known; write one of observe, known`},
		{"canary of no jobs", "mode: canary\ncanary_jobs: {percent: 0}\n", "f.yaml:2: canary_jobs.percent: must be 1 to 100 percent, got 0"},
		{"canary without a name", "canary_jobs: {users: [\"\"]}\n", "f.yaml:1: canary_jobs.users: contains an empty name; remove it"},
		{"jobs on a GPU", "sharing: {slices: on, jobs: 4}\n", "f.yaml:1: sharing.jobs: must be 2 or 3, got 4"},
		{"three at the same time", "sharing: {slices: on, pairs: on, jobs: 3}\n", "f.yaml:1: sharing.jobs: sharing.pairs (on, f.yaml:1) lets two jobs of a GPU run at the same time, and three do not; write jobs: 2, or pairs: off"},
		{"mode", "mode: on\n", `f.yaml:1: mode: "on" is not known; write one of observe, canary, act`},
		{"signal", "lease: {signal: KILL}\n", `f.yaml:1: lease.signal: "KILL" cannot be sent as notice; write one of none, USR1, USR2, TERM, INT, HUP, QUIT, CONT, URG, WINCH, ALRM, PROF, VTALRM`},
		{"address", "slurm: {address: /run/x}\n", `f.yaml:1: slurm.address: "/run/x" is not an address; write unix:///path/of/the/socket, http://host:port or https://host:port`},
		{"token in clear", "slurm: {address: 'http://slurm.example.org:6820', user: u, token_file: /t}\n", "f.yaml:1: slurm.address: the token would cross the network in clear; use https, or a unix socket"},
		{"users' tokens in clear", "slurm: {jwt: 'http://slurm.example.org:6820'}\n", "f.yaml:1: slurm.jwt: the token would cross the network in clear; use https, or a unix socket"},
		{"users' tokens", "slurm: {jwt: yes}\n", `f.yaml:1: slurm.jwt: "yes" is not an address; write auto, none, unix:///path/of/the/socket, http://host:port or https://host:port`},
		{"TLS for reports", "models: {progress: {web_config: tls.yaml}}\n", `f.yaml:1: models.progress.web_config: must be an absolute path, got "tls.yaml"`},
		{"history", "models: {speedups: {history: 400d}}\n", "f.yaml:1: models.speedups.history: 400d: write a time from 0s (no history is read) to 365d, like 30d"},
		{"types of jobs", "models: {most_kinds: 0}\n", "f.yaml:1: models.most_kinds: 0 types of jobs of a tenant: write a number from 1 to 400"},
		{"preset", "preset: gavel\n", `f.yaml:1: preset: "gavel" is not known; write one of astraea, hived, ` + strings.Join(append(preset.Dividing(), preset.Papers()...), ", ")},
		{"hived without cells", "preset: hived\n", "default: cells.file: preset hived needs a file that describes virtual clusters; `fairlease cells init` writes one"},
		{"astraea with cells", "cells: {file: cells.yaml}\n", `f.yaml:1: cells.file: "cells.yaml" describes virtual clusters, which preset (astraea, default) does not use: nothing would be guaranteed; set preset: hived or one that divides GPU models, or remove it`},
		{"users", "users: fair\n", `f.yaml:1: users: "fair" is not known; write one of job, equal`},
		{"levels", "preset: hived\ncells: {file: c, levels: {urgent: 2000}}\n", `f.yaml:2: cells.levels: urgent: a level must be -1000 to 1000, got 2000`},
		{"order of jobs", "jobs: {order: best}\n", `f.yaml:1: jobs.order: "best" is not known; write one of rho, attained, expected`},
		{"chooser", "preset: hived\ncells: {file: c, chooser: best}\n", `f.yaml:2: cells.chooser: "best" is not known; write one of astraea, fifo, tiresias-l, gandiva-fair`},
		{"mechanism", "models: {chooser: best}\n", `f.yaml:1: models.chooser: "best" is not known; write one of nearest, debt, stride, gavel, oef, paper`},
		{"affinity", "cells: {affinity_wait: never}\n", `f.yaml:1: cells.affinity_wait: "never" is no length of time: write it like 10s, 15m, 1h30m, 14d or, as Slurm does, 15 (minutes), 15:00, 1:30:00, 1-12:00:00`},
		{"preemptible", "preemptible: {qos: [a, '']}\n", "f.yaml:1: preemptible.qos: contains an empty name; remove it"},
		{"saves", "saves: [{qos: long, saves: banana}]\n", "f.yaml:1: saves: rule 1: \"banana\" is no manner of saving: write notice, term, never, or an interval like 30m"},
		{"strict", "cells: {strict_qos: [a, '']}\n", "f.yaml:1: cells.strict_qos: contains an empty name; remove it"},
		{"several", "mode: x\nintervall: 1s\n", "f.yaml:2: intervall: unknown key; did you mean interval?\nf.yaml:1: mode: \"x\" is not known; write one of observe, canary, act"},
		{"wrong beside misspelt", "lease: {min: 20m, notcie: 1m}\nusers: 5\ngate: {ttl: soon}\n", "f.yaml:1: lease.notcie: unknown key; did you mean lease.notice?\n" +
			"f.yaml:1: lease.min: 20m is longer than lease.term (15m, default); shorten one or lengthen the other\n" +
			"f.yaml:2: users: \"5\" is not known; write one of job, equal\n" +
			"f.yaml:3: gate.ttl: \"soon\" is no length of time: write it like 10s, 15m, 1h30m, 14d or, as Slurm does, 15 (minutes), 15:00, 1:30:00, 1-12:00:00"},
		{"no comparison with a value that is not read", "partitons: [a]\ncanary: [a]\n", "f.yaml:1: partitons: unknown key; did you mean partitions?"},
		{"line of a wrong indentation", "mode: act\nlease:\n  term: 5m\n min: 3m\n", "f.yaml:4: did not find expected key; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of a tab", "mode: act\nlease:\n\tterm: 5m\n", "f.yaml:3: found character that cannot start any token; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of a bracket", "mode: act\n\n\nqos: ]\n", "f.yaml:4: did not find expected node content; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of an open bracket", "mode: act\nlease: {term: 5m\nusers: job\n", "f.yaml:2: did not find expected ',' or '}'; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of a list among keys", "mode: act\n- x\nusers: job\n", "f.yaml:2: did not find expected key; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of a first key", "mode: a: b\n", "f.yaml:1: mapping values are not allowed in this context; check the indentation (blanks, no tabs) and the colons near that line"},
		{"line of an anchor", "mode: act\nqos: *all\n", "f.yaml:2: unknown anchor 'all' referenced; check the indentation (blanks, no tabs) and the colons near that line"},
		{"several checks", "mode: x\nlease: {min: 1s}\n", "f.yaml:1: mode: \"x\" is not known; write one of observe, canary, act\n" +
			"default: lease.notice: 1m is longer than lease.min (1s, f.yaml:2): the notice would come before the minimum lease ends; shorten it or lengthen lease.min"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("f.yaml", []byte(c.text), nil)
			if err == nil {
				t.Fatal("was taken")
			}
			lines := strings.Split(err.Error(), "\n")
			want := strings.Split(c.want, "\n")
			for _, w := range want {
				found := false
				for _, l := range lines {
					found = found || l == w
				}
				if !found {
					t.Errorf("got\n%s\nwant\n%s", err, w)
				}
			}
			if len(want) == 1 && len(lines) != 1 {
				t.Errorf("more than one problem:\n%s", err)
			}
			if len(want) > 1 && len(lines) != len(want) {
				t.Errorf("%d problems, want %d:\n%s", len(lines), len(want), err)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"10s": "10s", "15m": "15m", "1h30m": "1h30m", "14d": "14d", "0": "0s", "0s": "0s", "500ms": "500ms",
		"15": "15m", "15:30": "15m30s", "1:30:00": "1h30m", "1-12": "36h", "1-12:30": "36h30m", "2-00:00:00": "2d", "24h": "1d",
	} {
		d, err := config.ParseDuration(text)
		if err != nil || d.String() != want {
			t.Errorf("%q gives %v, %v; want %s", text, d, err, want)
		}
		if again, err := config.ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%v reads back as %v, %v", d, again, err)
		}
	}
	for _, text := range []string{"", "-5s", "1-", "-1", "1:2:3:4", "1d2h", "5 s", "1us", "99999999999999999999", "999999999999d", "x", "1-1-1"} {
		if d, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q gives %v", text, d)
		}
	}
}

func TestOrigins(t *testing.T) {
	c := parse(t, "lease:\n  term: 20m\ndatabase: {url: postgresql://f:secret@db.example.org/f}\n")
	for key, want := range map[string]string{"lease.term": "f.yaml:2", "lease.min": "default", "database.url": "f.yaml:3"} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
	for _, v := range c.Values() {
		if v.Key == "database.url" && v.Value != "postgresql://f:xxxxx@db.example.org/f" {
			t.Errorf("database.url shows as %v", v.Value)
		}
	}
}

func TestEnvironment(t *testing.T) {
	file := "database: {url: postgresql://file.example.org/f}\n"
	for _, c := range []struct {
		name, text string
		env        []string
		url, from  string
	}{
		{"above the file", file, []string{"FAIRLEASE_DATABASE_URL=postgresql://env.example.org/f", "PGHOST=x"}, "postgresql://env.example.org/f", "environment FAIRLEASE_DATABASE_URL"},
		{"file above libpq's", file, []string{"PGHOST=x"}, "postgresql://file.example.org/f", "f.yaml:1"},
		{"libpq's", "", []string{"PGHOST=/run/postgresql", "PGUSER=o'brien", "PGDATABASE=f"}, `host='/run/postgresql' dbname='f' user='o\'brien'`, "environment PGHOST PGDATABASE PGUSER"},
		{"none", "", nil, "", "default"},
	} {
		got := parse(t, c.text, c.env...)
		if got.Database.URL != c.url || got.Origin("database.url").String() != c.from {
			t.Errorf("%s: %q from %v", c.name, got.Database.URL, got.Origin("database.url"))
		}
	}
}

func TestMask(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgresql://u:p@h/d":                 "postgresql://u:xxxxx@h/d",
		"postgresql://h/d?user=u&password=p":   "postgresql://h/d?password=xxxxx&user=u",
		"host=h password=p user=u":             "host=h password=xxxxx user=u",
		`host=h password = 'a \' b' user=u`:    "host=h password = xxxxx user=u",
		"postgresql:///f?host=/run/postgresql": "postgresql:///f?host=/run/postgresql",
		"host=/run/postgresql":                 "host=/run/postgresql",
	} {
		if got := config.Mask(dsn); got != want {
			t.Errorf("%s shows as %s, want %s", dsn, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(path, []byte("interval: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(path, nil); err != nil || c.Interval.String() != "5s" {
		t.Error(c, err)
	}
	if c, err := config.Load("", []string{"FAIRLEASE_CONFIG=" + path}); err != nil || c.Interval.String() != "5s" {
		t.Error(c, err)
	}
	if _, err := config.Load(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a missing file that was named is taken for an empty one")
	}
}

// The cells file is found beside the configuration, read with it and refused with it. Equal
// content gives the same description.
func TestLoadCells(t *testing.T) {
	dir := t.TempDir()
	path, vc := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "cells.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() *config.Config {
		c, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(want string) {
		if _, err := config.Load(path, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	write(path, "preset: hived\ncells: {file: cells.yaml, chooser: fifo, strict_qos: urgent}\n")
	refused(path + ":2: cells.file: read the file of cells: open " + vc + ": no such file or directory; `fairlease cells init` writes one")
	if c, err := config.LoadAlone(path, nil); err != nil || c.CellFile() != vc || c.VCs() != nil || c.Rules().Cells != nil {
		t.Errorf("%+v, %v", c, err)
	}
	write(vc, types+racks+vcs)
	was := load()
	if was.Rules().Cells == nil || was.VCs().Cells != was.Rules().Cells {
		t.Error("the rules have not the description of the file")
	}
	if s := was.Settings(); s.Preset != "hived" || s.Chooser != "fifo" || s.AffinityWait != 10*cluster.Minute || !slices.Equal(s.StrictQOS, []string{"urgent"}) {
		t.Errorf("%+v", s)
	}
	write(path, "preset: drf\ncells: {file: cells.yaml, chooser: fifo}\n")
	if s := load().Settings(); load().Rules().Cells == nil || s.Divide != "drf" || s.Chooser != "fifo" {
		t.Errorf("with a preset that divides models: %+v", s)
	}
	write(path, "preset: hived\ncells: {file: cells.yaml, chooser: fifo, strict_qos: urgent}\n")
	write(vc, "# a remark\n"+types+racks+vcs)
	if now := was.Keep(load()); now.Rules().Cells != was.Rules().Cells || now.VCs() == was.VCs() {
		t.Error("what says the same is another description, or a file that changed is the same")
	}
	write(vc, types+racks+strings.Replace(vcs, "number: 2", "number: 3", 1))
	if now := was.Keep(load()); now.Rules().Cells == was.Rules().Cells || now.Rules().Cells.VCs[0].Cells[1].Cells != 3 {
		t.Error("what changed is not taken over")
	}
	write(vc, types+racks+strings.Replace(vcs, "number: 2", "number: 0", 1))
	refused(vc + ":15: vcAssignment[0].cells[1].number: 0 is no number of cells")
	if s := parse(t, "cells: {chooser: fifo}").Settings(); s.Chooser != "" || s.AffinityWait != 0 {
		t.Errorf("without virtual clusters: %+v", s)
	}
}

// With models.chooser: paper, a preset has the mechanism of its own paper, and the listing of values names it.
func TestTheMechanismOfThePaper(t *testing.T) {
	for name, want := range map[string]string{"gandiva-fair": cluster.ByStride, "gandiva-fair:no-trade": cluster.ByStride, "gavel:las": cluster.ByGavel,
		"gavel:makespan": cluster.ByGavel, "oef:noncoop": cluster.ByOEF, "drf": cluster.Nearest} {
		c := parse(t, "preset: "+name+"\nmodels: {chooser: paper}\n")
		if got := c.Settings().Mechanism; got != want {
			t.Errorf("%s: %s chooses jobs, want %s", name, got, want)
		}
		for _, v := range c.Values() {
			if v.Key == "models.chooser" && v.Value != "paper ("+want+")" {
				t.Errorf("%s: the value is %v", name, v.Value)
			}
		}
		if got := parse(t, "preset: "+name+"\n").Settings().Mechanism; got != cluster.Nearest {
			t.Errorf("%s: without the setting %s chooses jobs", name, got)
		}
	}
}

func TestRestart(t *testing.T) {
	was := parse(t, "database: {url: 'postgresql://u:one@h/d'}\nslurm: {timeout: 20s}\n")
	now := parse(t, "database: {url: 'postgresql://u:two@h/d'}\nslurm: {timeout: 30s}\nlease: {term: 20m}\n")
	if d := cmp.Diff([]string{"slurm.timeout", "database.url"}, was.Restart(now)); d != "" {
		t.Error(d)
	}
	kept := was.Keep(now)
	if kept.Database.URL != was.Database.URL || kept.Slurm.Timeout != was.Slurm.Timeout || kept.Lease.Term != now.Lease.Term {
		t.Error("what needs a restart was changed, or what does not was not")
	}
	if len(was.Restart(was)) != 0 {
		t.Error("nothing changed, but a restart is asked for")
	}
}

// No text makes it panic. An accepted text is valid and reads back the same.
func FuzzParse(f *testing.F) {
	sample, err := os.ReadFile("../../etc/fairlease.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Add([]byte("lease: &a {signals: [{qos: x, signal: USR1, to: all}]}\ngate: *a\n"))
	f.Add([]byte("partitions: a,b\njobs: {weights: {x: 1.5}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.Parse("f.yaml", text, nil)
		if err != nil {
			return
		}
		if s := c.Settings(); s.Interval < cluster.Second || s.Term < s.MinLease || s.Notice > s.MinLease {
			t.Fatalf("took %+v", s)
		}
		c.Values()
		c.Warnings()
	})
}

// One look finds the problems of all files, each with its line: those of the configuration first, its schedules included.
func TestProblemsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.yaml": "lease: {notcie: 1m, min: 20m}\nschedules:\n- {name: night, at: '0 20 * * *', for: 10h, set: {lease: {notice: 1h}}}\ntune: {last: 1h}\npreset: hived\n" +
			"cells: {file: cells.yaml}\nmodels: {profiles: profiles.yaml}\n",
		"cells.yaml":    types + racks + "vcAssignment: [{vc: a, sells: []}]\n",
		"profiles.yaml": "\n\nprofiles: [{kind: 'a b', rates: {v100: 1}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (places []string) {
		t.Helper()
		_, err := config.Load(filepath.Join(dir, "f.yaml"), nil)
		var problems config.Problems
		if !errors.As(err, &problems) {
			t.Fatal(err)
		}
		for _, p := range problems {
			places = append(places, strings.TrimPrefix(p.Place, dir+"/")+" "+p.Key)
		}
		return places
	}
	got := load()
	for i, want := range []string{"f.yaml:1 lease.notcie", "f.yaml:1 lease.min", "f.yaml:3 schedules[0].set.lease.notice", "f.yaml:4 tune.last", "cells.yaml:", "profiles.yaml:3"} {
		if !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("%d: %q is missing in %q", i, want, got)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b string) int { return file(a) - file(b) }) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"cells.yaml", "profiles.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"f.yaml:1 lease.min", "f.yaml:6 cells.file", "f.yaml:7 models.profiles"} {
		if got := load(); !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// file orders the places of problems by their file.
func file(place string) int {
	return slices.IndexFunc([]string{"f.yaml", "cells.yaml", "profiles.yaml"}, func(name string) bool { return strings.HasPrefix(place, name) })
}

// A preset that knows no tenants says so; one that weighs them does not.
func TestTenantBlindPresetsSaySo(t *testing.T) {
	for _, name := range preset.Dividing() {
		if row, _ := preset.Of(name); row.Prices || row.Solver {
			continue
		}
		says := slices.ContainsFunc(parse(t, "preset: "+name+"\n").Warnings(), func(w string) bool { return strings.Contains(w, "ignores tenants and their weights") })
		weighs := !strings.HasPrefix(name, "gavel:") || name == "gavel:las" || name == "gavel:las-blind" || name == "gavel:las-fifo"
		if says == weighs {
			t.Errorf("%s weighs tenants: %t; it warns that it does not: %t", name, weighs, says)
		}
	}
}

// A device of some models counts as a part of a GPU: fractions and decimals say which.
func TestWorth(t *testing.T) {
	c := parse(t, "models: {worth: {1g.10gb: 1/7, 3g.40gb: 3/7, half: 0.5, a100: 1, tiny: 1e-6, spaced: ' 2 / 4 '}}")
	want := []cluster.Worth{{Model: "1g.10gb", Worth: 142857}, {Model: "3g.40gb", Worth: 428571}, {Model: "half", Worth: 500_000}, {Model: "spaced", Worth: 500_000}, {Model: "tiny", Worth: 1}}
	if d := cmp.Diff(want, c.Settings().Worths); d != "" {
		t.Error(d)
	}
	for _, w := range config.Words(c) {
		if w.Key == "models.worth.1g.10gb" && w.Value != "0.142857" {
			t.Errorf("1/7 reads %s", w.Value)
		}
	}
	for text, want := range map[string]string{
		"models: {worth: {1g.10gb: 0}}":                                             `f.yaml:1: models.worth.1g.10gb: "0" is no part of a GPU: write a fraction like 1/7, or a number above 0 and at most 1 like 0.5`,
		"models: {worth: {1g.10gb: 8/7}}":                                           `"8/7" is no part`,
		"models: {worth: {1g.10gb: -0.5}}":                                          `"-0.5" is no part`,
		"models: {worth: {1g.10gb: 1/}}":                                            `"1/" is no part`,
		"models: {worth: {1g.10gb: 1/0}}":                                           `"1/0" is no part`,
		"models: {worth: {1g.10gb: 0/0}}":                                           `"0/0" is no part`,
		"models: {worth: {1g.10gb: .nan}}":                                          `is no part`,
		"models: {worth: {1g.10gb: 1e-9}}":                                          `"1e-9" is no part`,
		"models: {worth: {1g.10gb: small}}":                                         `"small" is no part`,
		"preset: drf\nmodels: {worth: {1g.10gb: 1/7}}":                              `models.worth: preset (drf, f.yaml:1) divides GPU models by the speedups of jobs on their devices, which say what a device is worth; remove models.worth, or choose preset astraea`,
		"preset: hived\ncells: {file: cells.yaml}\nmodels: {worth: {1g.10gb: 1/7}}": `models.worth: the cells of cells.file (cells.yaml, f.yaml:2) are whole devices; remove models.worth or cells.file`,
	} {
		if _, err := config.Parse("f.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
