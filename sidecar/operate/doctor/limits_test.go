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

// The doctor says which limits and lists are seen, fails where they cannot be read, and finds what lets users around them.
func TestLimits(t *testing.T) {
	gpus := func(tres string) []cluster.Cap {
		return []cluster.Cap{{Rule: cluster.GrpTRES, TRES: tres, Max: 4}}
	}
	seen := func() *cluster.Observation {
		return &cluster.Observation{
			Partitions: []cluster.Partition{{Name: "cpu"}, {Name: "gpu", Rules: cluster.Rules{AllowAccounts: []string{"nlp"}}}, {Name: "long", MaxTime: cluster.Hour}},
			Limits: cluster.Limits{Read: 1_800_000_000_000,
				Associations: []cluster.Association{{Account: "bio", Unread: 7}, {Account: "nlp", Caps: gpus("gres/gpu")}, {Account: "nlp", User: "ann", Caps: gpus("cpu")}},
				QOS:          []cluster.QOS{{Name: "free", Flags: []string{cluster.OverPartQOS}}, {Name: "high", Caps: gpus("gres/gpu")}}},
		}
	}
	const of = "of 2 accounts, 1 users and 1 QOS; 2 partitions with lists or limits; read at 2027-01-15T08:00:00.000Z"
	for _, c := range []struct {
		name    string
		enforce string
		change  func(*config.Config, *slurm.Facts, *cluster.Observation)
		want    string
	}{
		{"all is well", "associations,limits,qos", nil, "limits ok: " + of + "; AccountingStorageEnforce ok: associations,limits,qos"},
		{"safe limits", "safe", nil, "limits ok: " + of + "; AccountingStorageEnforce ok: safe"},
		{"not enforced", "associations", nil, "limits ok: Slurm enforces none (AccountingStorageEnforce=associations); 2 partitions with lists or limits; AccountingStorageEnforce ok: associations"},
		{"any account", "", nil, "limits ok: Slurm enforces none (AccountingStorageEnforce=(not set)); 2 partitions with lists or limits; AccountingStorageEnforce warn: AccountingStorageEnforce=(not set)"},
		{"any QOS", "limits", func(cfg *config.Config, _ *slurm.Facts, _ *cluster.Observation) {
			cfg.Jobs.UrgentQOS = []string{"urgent"}
		},
			"limits ok: " + of + "; AccountingStorageEnforce warn: AccountingStorageEnforce=limits"},
		{"not read", "limits,qos", func(_ *config.Config, _ *slurm.Facts, s *cluster.Observation) { s.Limits = cluster.Limits{} },
			"limits fail: those of accounts, users and QOS could not be read; AccountingStorageEnforce ok: limits,qos"},
		{"no rights", "limits,qos", func(_ *config.Config, f *slurm.Facts, _ *cluster.Observation) { f.RestDenied = "Access denied" },
			"limits ok: " + of + ", without an operator's rights: with PrivateData in slurmdbd.conf others' limits are hidden; AccountingStorageEnforce ok: limits,qos"},
		{"by model", "limits,qos", func(_ *config.Config, _ *slurm.Facts, s *cluster.Observation) {
			s.Limits.Associations[1].Caps, s.Limits.QOS[1].Caps = gpus("gres/gpu:h100"), append(gpus("gres/gpu"), gpus("gres/gpu:h100")...)
		}, "limits ok: " + of + "; AccountingStorageEnforce ok: limits,qos; limits by GPU model warn: account nlp GrpTRES=gres/gpu:h100=4"},
	} {
		cfg, facts, s := config.Default(), slurm.Facts{Conf: good()}, seen()
		if facts.Conf[slurm.ConfEnforce] = c.enforce; c.change != nil {
			c.change(cfg, &facts, s)
		}
		found := named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, Sighting: s}}), "limits", slurm.ConfEnforce)
		if d := cmp.Diff(c.want, strings.Join(told(t, found), "; ")); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		for _, x := range found {
			if x.Level != doctor.OK && (x.Means == "" || x.Do == "") {
				t.Errorf("%s: %s does not say what it means and what to do", c.name, x.Check)
			}
		}
	}
}
