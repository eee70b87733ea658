package doctor_test

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
)

// munged is reachable if it rejects an invalid credential.
func TestDoctorOfMunge(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	cfg := config.Default()
	cfg.Models.Progress.Munge = "/run/munge/s"
	examine := func() string {
		return strings.Join(told(t, looked(t, cfg)), "\n")
	}
	if got := examine(); got != "" {
		t.Errorf("where no report is taken it says %s", got)
	}
	cfg.Models.Progress.Listen = "127.0.0.1:8765"
	if got := examine(); !strings.HasPrefix(got, "progress, munged fail: unmunge: ") || !strings.Contains(got, "not found") {
		t.Errorf("without unmunge: %s", got)
	}
	for script, want := range map[string]string{
		"exit 8": "progress, munged ok: answers at /run/munge/s",
		`echo "unmunge: Error: no socket $3" >&2; exit 6`: "progress, munged fail: unmunge: exit status 6: unmunge: Error: no socket --socket=/run/munge/s",
	} {
		if err := os.WriteFile(filepath.Join(dir, "unmunge"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := examine(); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// Without munged, jobs may report by tokens, which need TLS.
func TestDoctorOfTokens(t *testing.T) {
	const tokens, munged = "progress, tokens ok: checked through slurmrestd at unix:///s", "progress, munged ok: does not answer: jobs report by tokens only"
	for _, c := range []struct {
		listen, tls string
		fault       error
		want        string
	}{
		{"127.0.0.1:8765", "", nil, tokens + "\n" + munged},
		{":8765", "", nil, tokens + "\n" + munged + "\nprogress, TLS warn: models.progress.listen is :8765, without TLS"},
		{":8765", "/tls", nil, tokens + "\n" + munged},
		{":8765", "", errors.New("it looks at none"), "progress, tokens warn: it looks at none\nprogress, munged fail: no socket"},
	} {
		cfg := config.Default()
		cfg.Slurm.JWT, cfg.Models.Progress.Listen, cfg.Models.Progress.WebConfig = "unix:///s", c.listen, c.tls
		if got := strings.Join(told(t, named(doctor.Check(cfg, &doctor.Seen{Munge: errors.New("no socket"), Tokens: c.fault}), "progress")), "\n"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	cfg := config.Default()
	cfg.Slurm.JWT, cfg.Slurm.Retries = "unix://"+t.TempDir()+"/none", 0
	if got := doctor.Look(t.Context(), cfg, time.Now).Tokens; got == nil || !strings.Contains(got.Error(), "cannot reach slurmrestd") {
		t.Errorf("slurmrestd is away: %v", got)
	}
}

func TestDoctorOfTheFolderOfReports(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "reports")
	cfg := config.Default()
	cfg.Models.Progress.Folder = folder
	expect := func(what, want string) {
		t.Helper()
		if got := strings.Join(told(t, looked(t, cfg)), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("no folder", "progress, folder fail: stat "+folder+": no such file")
	write(t, folder, "")
	expect("a file", "progress, folder fail: "+folder+" is no folder")
	do(os.Remove(folder))
	do(os.Mkdir(folder, 0o755))
	expect("an empty folder", "progress, folder ok: "+folder+", of 0 users")
	do(os.Mkdir(filepath.Join(folder, me.Username), 0o755))
	expect("one of a user", "progress, folder ok: "+folder+", of 1 users")
	do(os.Chmod(filepath.Join(folder, me.Username), 0o777)) // independent of the umask
	expect("anybody's", "progress, folder warn: "+folder+": "+me.Username+" has mode 0777")
	do(os.Chmod(filepath.Join(folder, me.Username), 0o755))
	write(t, filepath.Join(folder, "notes"), "")
	do(os.Mkdir(filepath.Join(folder, "no user of this name"), 0o755))
	expect("strange ones", "progress, folder warn: "+folder+": no user of this name is no user's name here, notes is no folder")
	other := "root"
	if me.Uid == "0" {
		other = "nobody"
	}
	do(os.Mkdir(filepath.Join(folder, other), 0o755))
	expect("another's", other+" belongs to user "+me.Uid)
	do(os.Chmod(folder, 0o777))
	expect("everybody's", fmt.Sprintf("progress, folder warn: %s is user %s's, with mode 0777", folder, me.Uid))
}

// Models and tenants that Slurm does not know are named, beside those that it knows.
func TestDoctorOfProfiles(t *testing.T) {
	dir := t.TempDir()
	seen := &cluster.Observation{Accounts: []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}}, Nodes: []cluster.Node{{GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}, {GPUs: []cluster.GPUs{{Model: "k80", Count: 4}}}}}
	for _, c := range []struct {
		profiles, prices string
		want             []string
	}{
		{"", "{}", nil},
		{"kinds: [{kind: bert, tenant: nlp, name: 'b*'}]\nprofiles: [{kind: bert, rates: {v100: 3, k80: 1}}]\n", "{v100: 2}", []string{"profiles ok: 1 rules, 2 rates in " + dir + "/p.yaml"}},
		{"profiles: [{kind: bert, rates: {V100: 3, k80: 1}}, {kind: vit, rates: {V100: 2}}]\n", "{a100: 3, v100: 2}, reference: K80",
			[]string{"prices warn: no node has a GPU model a100", "reference warn: no node has a GPU model K80", "profiles warn: " + dir + "/p.yaml: no node has a GPU model V100"}},
		{"kinds: [{kind: bert, tenant: vison}, {kind: bert, tenant: 'n*'}]\nprofiles: [{kind: bert, tenant: nlq, rates: {v100: 3}}]\n", "{}",
			[]string{"profiles warn: " + dir + "/p.yaml: there is no tenant nlq, vison"}},
	} {
		name := ""
		if c.profiles != "" {
			name = filepath.Join(dir, "p.yaml")
			write(t, name, c.profiles)
		}
		write(t, filepath.Join(dir, "f.yaml"), fmt.Sprintf("models: {profiles: '%s', prices: %s}\n", name, c.prices))
		cfg, err := config.Load(filepath.Join(dir, "f.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := told(t, named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "prices", "reference", "profiles"))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s%s", c.profiles, d)
		}
	}
	write(t, filepath.Join(dir, "f.yaml"), "models: {profiles: none.yaml}\n")
	if got := doctor.Examine(t.Context(), filepath.Join(dir, "f.yaml"), nil, time.Now); len(got) != 1 || got[0].Level != doctor.Fail || !strings.Contains(got[0].Found, "f.yaml:1: models.profiles: ") || got[0].Do == "" {
		t.Errorf("of a file that is not there: %+v", got)
	}
}

// Models that look like MIG instances count as whole GPUs until models.worth says what they are worth.
func TestDoctorOfWorth(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, settings string
		models         []string
		want           []string
	}{
		{"whole GPUs", "", []string{"a100", "v100-32gb", "7g.80gb", "mi300x", "4g.24gb"}, nil},
		{"instances", "", []string{"1g.10gb", "a100", "nvidia_a100_80gb_pcie_3g.40gb"},
			[]string{"worth warn: each device of 1g.10gb, nvidia_a100_80gb_pcie_3g.40gb counts as one GPU, and these look like instances of GPUs that MIG splits; write models.worth: {1g.10gb: 1/7, nvidia_a100_80gb_pcie_3g.40gb: 3/7}; with 1 a device counts as a GPU, as now"}},
		{"those of an A30, and compute instances", "", []string{"2g.12gb", "a30_1g.6gb", "2c.3g.40gb"},
			[]string{"worth warn: each device of 2c.3g.40gb, 2g.12gb, a30_1g.6gb counts as one GPU, and these look like instances of GPUs that MIG splits; write models.worth: {2c.3g.40gb: 2/7, 2g.12gb: 2/4, a30_1g.6gb: 1/4}; with 1 a device counts as a GPU, as now"}},
		{"all have a worth", "models: {worth: {1g.10gb: 1/7, 3g.40gb: 1}}", []string{"1g.10gb", "3g.40gb"}, nil},
		{"a worth of no model", "models: {worth: {1g.20gb: 1/7}}", []string{"a100"}, []string{"worth warn: no node has a GPU model 1g.20gb; correct it; Slurm's are a100"}},
		{"where speedups say it", "preset: drf", []string{"1g.10gb"}, nil},
	} {
		seen := &cluster.Observation{Accounts: []cluster.Account{{Name: "root"}}}
		for _, model := range c.models {
			seen.Nodes = append(seen.Nodes, cluster.Node{GPUs: []cluster.GPUs{{Model: model, Count: 1}}})
		}
		write(t, filepath.Join(dir, "f.yaml"), "mode: observe\n"+c.settings+"\n")
		cfg, err := config.Load(filepath.Join(dir, "f.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "worth") {
			got = append(got, fmt.Sprintf("%s %s: %s; %s", x.Check, x.Level, x.Found, x.Do))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
