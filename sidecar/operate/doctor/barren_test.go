package doctor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
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
	capped := func(limit cluster.Cap) func(site) {
		return func(s site) {
			s.p.Rules.QOS, s.seen.Limits.QOS = "part", []cluster.QOS{{Name: "part", Caps: []cluster.Cap{limit}}}
		}
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
		}, "its QOS nogpu lets no job start: MaxTRESPerJob=gres/gpu=0", "sacctmgr modify qos nogpu set MaxTRESPerJob=gres/gpu=-1"},
		{"a QOS without jobs", capped(cluster.Cap{Rule: cluster.GrpJobs}), "its QOS part lets no job start: GrpJobs=0", "set GrpJobs=-1"},
		{"a QOS without jobs of a user", capped(cluster.Cap{Rule: cluster.MaxJobsPerUser}), "its QOS part lets no job start: MaxJobsPerUser=0", "set MaxJobsPerUser=-1"},
		{"a QOS without CPUs", capped(cluster.Cap{Rule: cluster.GrpTRES, TRES: "cpu"}), "its QOS part lets no job start: GrpTRES=cpu=0", "set GrpTRES=cpu=-1"},
		{"a QOS without nodes", capped(cluster.Cap{Rule: cluster.GrpTRES, TRES: "node"}), "its QOS part lets no job start: GrpTRES=node=0", "set GrpTRES=node=-1"},
		{"a QOS with one job", capped(cluster.Cap{Rule: cluster.GrpJobs, Max: 1}), "", ""},
		{"a QOS that has least GPUs", capped(cluster.Cap{Rule: cluster.MinTRESPerJob, TRES: "gres/gpu"}), "", ""},
		{"a QOS of jobs comes first", func(s site) {
			capped(cluster.Cap{Rule: cluster.GrpJobs})(s)
			s.seen.Limits.QOS = append(s.seen.Limits.QOS, cluster.QOS{Name: "long", Flags: []string{cluster.OverPartQOS}, Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 5}}})
		}, "", ""},
		{"a QOS that takes no jobs", rule(func(r *cluster.Rules) { r.QOS = "shut" }), "its QOS shut lets no job start: GrpSubmitJobs=0", "set GrpSubmitJobs=-1"},
		{"a QOS without its models", capped(cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu:h100"}), "its QOS part lets no job name one of their models (GrpTRES=gres/gpu:h100=0)", "limit gres/gpu"},
		{"a QOS without another model", capped(cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu:a100"}), "", ""},
		{"only in reservations", rule(func(r *cluster.Rules) { r.NamedOnly = true }), "ReqResv=YES: its jobs name a reservation, and fairlease leaves those alone", "ReqResv=NO"},
		{"all accounts excluded", func(s site) { s.cfg.Exclude.Accounts = []string{"a", "b", "sub"} }, "exclude.accounts has the accounts of all tenants", "exclude.accounts"},
		{"some accounts excluded", func(s site) { s.cfg.Exclude.Accounts = []string{"a", "b"} }, "", ""},
		{"all QOS excluded", func(s site) { s.cfg.Exclude.QOS = []string{"long", "normal"} }, "qos and exclude.qos leave no QOS that Slurm has", "exclude.qos"},
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
		facts := slurm.Facts{Conf: good(), QOS: []string{"long", "normal"}, NoSubmit: map[string]string{"shut": "GrpSubmitJobs"}}
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

// Nodes whose records make no sense are named as such: the partition is not one without GPUs.
func TestPartitionsOfUnreadableNodes(t *testing.T) {
	seen := &cluster.Observation{Partitions: []cluster.Partition{{Name: "gpu", Nodes: []string{"n1", "n2"}, Up: true}, {Name: "cpu", Nodes: []string{"c1"}, Up: true}},
		Nodes: []cluster.Node{{Name: "o1", Partitions: []string{"other"}, GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}}}
	facts := slurm.Facts{Conf: good(), Nodes: seen.Nodes, Unread: []cluster.Node{{Name: "n1", Partitions: []string{"gpu"}}, {Name: "n2"}}}
	cfg := config.Default()
	cfg.Partitions = []string{"gpu", "cpu"}
	found := doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, Sighting: seen}})
	for check, want := range map[string]string{
		"partition gpu": "partition gpu warn: the records of its nodes make no sense: n[1-2]",
		"partition cpu": "partition cpu warn: has no GPUs",
		"nodes":         "nodes warn: their records make no sense: n1, n2",
	} {
		f := named(found, check)
		if d := cmp.Diff([]string{want}, told(t, f)); d != "" || check != "partition cpu" && !strings.Contains(f[0].Do, "scontrol show node") {
			t.Errorf("%s: %s%+v", check, d, f)
		}
	}
}
