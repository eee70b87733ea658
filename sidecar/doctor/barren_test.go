package doctor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// A managed partition in which nothing will ever be leased is a finding that names the setting and what to do.
func TestPartitionsInWhichNothingWillBeLeased(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	type site struct {
		cfg  *config.Config
		seen *cluster.Observation
		p    *cluster.Partition
	}
	rule := func(change func(*cluster.Rules)) func(site) { return func(s site) { change(&s.p.Rules) } }
	kept := func(by ...cluster.Reservation) func(site) {
		return func(s site) { s.seen.Reservations = by }
	}
	reservation := func(name, flag string, end cluster.Span, nodes ...string) cluster.Reservation {
		return cluster.Reservation{Name: name, Users: []string{"root"}, Nodes: nodes, Start: now, End: now.Add(end), Flags: []string{flag}}
	}
	for _, x := range []struct {
		name   string
		change func(site)
		want   string // "" = jobs can be leased
		do     string
	}{
		{"plain", func(site) {}, "", ""},
		{"down", rule(func(r *cluster.Rules) { r.Closed = "DOWN" }), "State=DOWN", "State=UP"},
		{"inactive", rule(func(r *cluster.Rules) { r.Closed = "INACTIVE" }), "State=INACTIVE", "State=UP"},
		{"no nodes for a job", rule(func(r *cluster.Rules) { r.Closed = "MaxNodes=0" }), "MaxNodes=0", "MaxNodes=UNLIMITED"},
		{"no time for a job", rule(func(r *cluster.Rules) { r.Closed = "MaxTime=0" }), "MaxTime=0", "MaxTime=UNLIMITED"},
		{"drained", func(s site) { s.p.Up = false }, "State=DRAIN: Slurm takes no new jobs for it", "State=UP"},
		{"root only", func(s site) { s.p.RootOnly = true }, "RootOnly=YES: only root may submit jobs to it", "RootOnly=NO"},
		{"no tenant's account", rule(func(r *cluster.Rules) { r.AllowAccounts = []string{"hpc"} }), "AllowAccounts=hpc has no account of a tenant", "AllowAccounts=ALL"},
		{"an account below", rule(func(r *cluster.Rules) { r.AllowAccounts = []string{"sub"} }), "", ""},
		{"an account above", rule(func(r *cluster.Rules) { r.AllowAccounts = []string{"root"} }), "", ""},
		{"an excluded account", func(s site) {
			s.p.Rules.AllowAccounts, s.cfg.Exclude.Accounts = []string{"a"}, []string{"a", "sub"}
		}, "AllowAccounts=a has no account of a tenant", "exclude.accounts"},
		{"all denied", rule(func(r *cluster.Rules) { r.DenyAccounts = []string{"a", "b"} }), "DenyAccounts=a,b has the accounts of all tenants", "DenyAccounts="},
		{"one denied", rule(func(r *cluster.Rules) { r.DenyAccounts = []string{"a"} }), "", ""},
		{"no QOS that is there", rule(func(r *cluster.Rules) { r.AllowQOS = []string{"gone"} }), "AllowQos=gone has no QOS that Slurm has and fairlease manages", "AllowQos=ALL"},
		{"only an excluded QOS", func(s site) { s.p.Rules.AllowQOS, s.cfg.Exclude.QOS = []string{"long"}, []string{"long"} },
			"AllowQos=long has no QOS that Slurm has and fairlease manages", "exclude.qos"},
		{"another QOS is managed", func(s site) { s.p.Rules.AllowQOS, s.cfg.QOS = []string{"long", "normal"}, []string{"normal"} }, "", ""},
		{"all QOS denied", rule(func(r *cluster.Rules) { r.DenyQOS = []string{"long", "normal"} }), "DenyQos=long,normal has all QOS that Slurm has and fairlease manages", "DenyQos="},
		{"a QOS without GPUs", func(s site) {
			s.p.Rules.QOS = "nogpu"
			s.seen.Limits.QOS = []cluster.QOS{{Name: "nogpu", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerJob, TRES: "gres/gpu"}}}}
		}, "its QOS nogpu lets no job have a GPU", "sacctmgr modify qos nogpu"},
		{"bad nodes", func(s site) { s.seen.Nodes[0].Bad, s.seen.Nodes[1].Bad = "down", "drained" }, "all its nodes with GPUs are bad: n1 (down), n2 (drained)", "sinfo -R"},
		{"one bad node", func(s site) { s.seen.Nodes[0].Bad = "down" }, "", ""},
		{"more nodes than there are", rule(func(r *cluster.Rules) { r.MinNodes = 3 }), "MinNodes=3, and only 2 of its nodes have GPUs", "MinNodes=1"},
		{"maintenance without an end", kept(reservation("old", "MAINT", 365*cluster.Day-cluster.Hour, "n1", "n2")),
			"all its nodes with GPUs are kept for maintenance or for root for longer than 90 days, by reservation old", "scontrol delete ReservationName"},
		{"two reservations for root", kept(reservation("x", "SPEC_NODES", 365*cluster.Day, "n1"), reservation("y", "SPEC_NODES", 365*cluster.Day, "n2")),
			"all its nodes with GPUs are kept for maintenance or for root for longer than 90 days, by reservation x, y", "scontrol delete ReservationName"},
		{"of one node", kept(reservation("x", "MAINT", 365*cluster.Day, "n1")), "", ""},
		{"for a day", kept(reservation("x", "MAINT", cluster.Day, "n1", "n2")), "", ""},
		{"for a tenant", kept(cluster.Reservation{Name: "class", Accounts: []string{"a"}, Nodes: []string{"n1", "n2"}, Start: now, End: now.Add(365 * cluster.Day)}), "", ""},
	} {
		gpus := []cluster.GPUs{{Model: "h100", Count: 8}}
		s := site{config.Default(), &cluster.Observation{Now: now,
			Nodes:      []cluster.Node{{Name: "n1", Partitions: []string{"gpu"}, GPUs: gpus}, {Name: "n2", Partitions: []string{"gpu"}, GPUs: gpus}},
			Partitions: []cluster.Partition{{Name: "gpu", Nodes: []string{"n1", "n2"}, Up: true}},
			Accounts: []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}, {Name: "b", Parent: "root", Shares: 1},
				{Name: "sub", Parent: "a", Shares: 1}}}, nil}
		s.cfg.Partitions, s.p = []string{"gpu"}, &s.seen.Partitions[0]
		x.change(s)
		facts := slurm.Facts{Conf: good(), QOS: []string{"long", "normal"}}
		facts.Conf[slurm.ConfEnforce] = "associations,limits,qos"
		found := named(doctor.Check(s.cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, Sighting: s.seen}}), "partition gpu")
		want := "partition gpu ok: 16 GPUs"
		if x.want != "" {
			want = "partition gpu warn: 16 GPUs, but " + x.want
		}
		if d := cmp.Diff([]string{want}, told(t, found)); d != "" {
			t.Errorf("%s: %s", x.name, d)
			continue
		}
		if !strings.Contains(found[0].Do, x.do) || x.want != "" && found[0].Means == "" {
			t.Errorf("%s: do %q, want %q in it", x.name, found[0].Do, x.do)
		}
	}
}

// A managed partition for groups without a user of a tenant is a finding.
func TestPartitionsForNobodysGroups(t *testing.T) {
	for _, deserted := range []bool{false, true} {
		s := &cluster.Observation{Nodes: []cluster.Node{{Name: "n1", Partitions: []string{"gpu"}, GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}},
			Partitions: []cluster.Partition{{Name: "gpu", Nodes: []string{"n1"}, Up: true, Rules: cluster.Rules{AllowGroups: []string{"old", "gone"}}}}}
		seen, want := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: good()}, Sighting: s}}, "partition gpu ok: 8 GPUs"
		if deserted {
			seen.Slurm.Deserted, want = []string{"gpu"}, "partition gpu warn: 8 GPUs, but AllowGroups=old,gone has no user of a tenant"
		}
		cfg := config.Default()
		cfg.Partitions = []string{"gpu"}
		found := named(doctor.Check(cfg, seen), "partition gpu")
		if d := cmp.Diff([]string{want}, told(t, found)); d != "" || deserted && !strings.Contains(found[0].Do, "AllowGroups=ALL") {
			t.Errorf("%s: %+v", d, found)
		}
	}
}
