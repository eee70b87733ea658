package slurm_test

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// limits reads what Slurm says of accounts, users and QOS without limits, and with limits of all kinds.
func limits(l *live) {
	read := func() cluster.Limits {
		l.Helper()
		s, err := l.another(func(*slurm.Config) {}).Observe(l.Context(), 0)
		if err != nil {
			l.Fatal(err)
		}
		if s.Limits.Read != s.Now {
			l.Errorf("limits of %s, seen at %s", s.Limits.Read, s.Now)
		}
		return s.Limits
	}
	small := cluster.QOS{Name: "small", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 1}}}
	none := read()
	if d := cmp.Diff([]cluster.QOS{small}, none.QOS); d != "" || len(none.Associations) > 0 {
		l.Errorf("limits that nobody set: %s, %+v", d, none.Associations)
	}
	l.exec("root", "sacctmgr", "--immediate", "modify", "account", "nlp", "set", "MaxSubmitJobs=500", "GrpTRES=gres/gpu=3")
	l.exec("root", "sacctmgr", "--immediate", "modify", "qos", "small", "set", "MaxSubmitJobsPerUser=500")
	some := read()
	at := slices.IndexFunc(some.Associations, func(a cluster.Association) bool { return a.Account == "nlp" && a.User == "" })
	if at < 0 || some.Associations[at].Unread == 0 || !slices.Equal(some.Associations[at].Caps, []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 3}}) {
		l.Fatalf("limits of nlp: %+v", some.Associations)
	}
	if q := some.QOS; len(q) != 1 || q[0].Unread == 0 {
		l.Errorf("limits of the QOS: %+v", q)
	}
	l.exec("root", "sacctmgr", "--immediate", "modify", "account", "nlp", "set", "MaxSubmitJobs=501")
	if other := read(); len(other.Associations) <= at || other.Associations[at].Unread == some.Associations[at].Unread {
		l.Errorf("another limit of submitted jobs is not seen: %+v", other.Associations)
	}
	l.exec("root", "sacctmgr", "--immediate", "modify", "account", "nlp", "set", "MaxSubmitJobs=-1", "GrpTRES=gres/gpu=-1")
	l.exec("root", "sacctmgr", "--immediate", "modify", "qos", "small", "set", "MaxSubmitJobsPerUser=-1")
	if d := cmp.Diff(none.QOS, read().QOS); d != "" || len(read().Associations) > 0 {
		l.Errorf("limits that were taken away: %s", d)
	}
}
