package slurm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

func facts(l *live) {
	f, err := l.client.Facts(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	if f.Cluster == "" || f.Release == "" || f.MinJobAge != 300*cluster.Second || f.Conf[slurm.ConfKillWait] != "3 sec" ||
		f.Conf[slurm.ConfSelectType] != "select/cons_tres" || !strings.Contains(f.Conf[slurm.ConfTRES], "gres/gpu:v100") || len(f.Nodes) != 4 {
		l.Errorf("facts: %+v", f)
	}
	if f.RestDenied != "" || f.ScontrolDenied != "" {
		l.Errorf("denied: %q, %q", f.RestDenied, f.ScontrolDenied)
	}
	want := "scontrol"
	if strings.HasPrefix(f.Release, "26") {
		want = "rest"
	}
	if f.Requeue != want || f.Reserve != want {
		l.Errorf("levers of %s: requeue by %s, reserve by %s", f.Release, f.Requeue, f.Reserve)
	}
	denied := l.another(func(c *slurm.Config) { c.Scontrol = l.slurm.Command("alice", "scontrol") })
	if f, err := denied.Facts(l.Context()); err != nil || f.ScontrolDenied == "" {
		l.Errorf("a plain user's scontrol may all: %q, %v", f.ScontrolDenied, err)
	}
}

func theCluster(l *live) {
	s := l.see()
	var nodes, parts []string
	for _, n := range s.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s %v %d %d %v %s%s", n.Name, n.GPUs, n.CPUs, n.MemoryMB, n.Partitions, n.Bad, n.Busy))
	}
	for _, p := range s.Partitions {
		parts = append(parts, fmt.Sprintf("%s %v %v", p.Name, p.Nodes, p.Up))
	}
	want := []string{"k1 [{k80 4}] 16 64000 [free gpu] ", "k2 [{k80 4}] 16 64000 [free gpu] ", "v1 [{v100 4}] 16 64000 [free gpu] ", "v2 [{v100 4}] 16 64000 [free gpu] "}
	if !slices.Equal(nodes, want) {
		l.Errorf("nodes %q; want %q", nodes, want)
	}
	if want := []string{"free [k1 k2 v1 v2] true", "gpu [k1 k2 v1 v2] true"}; !slices.Equal(parts, want) {
		l.Errorf("partitions %q; want %q", parts, want)
	}
	if !reflect.DeepEqual(s.Accounts, []cluster.Account{{Name: "nlp", Parent: "root", Shares: 1}, {Name: "root", Shares: s.Accounts[1].Shares}, {Name: "vision", Parent: "root", Shares: 1}}) {
		l.Errorf("accounts: %+v", s.Accounts)
	}
	if age := time.Since(s.Boot.Time()); s.Boot == 0 || age > 10*time.Minute || age < 0 {
		l.Errorf("booted %v ago", age)
	}
	l.exec("root", "sacctmgr", "--immediate", "modify", "account", "vision", "set", "fairshare=parent")
	defer l.exec("root", "sacctmgr", "--immediate", "modify", "account", "vision", "set", "fairshare=1")
	fresh, err := l.another(func(*slurm.Config) {}).Observe(l.Context(), 0)
	if err != nil || !fresh.Accounts[2].ViaParent || fresh.Accounts[2].Shares != 0 {
		l.Errorf("fairshare=parent: %+v, %v", fresh.Accounts, err)
	}

	if err := l.slurm.SetNode(l.Context(), "k2", "drain"); err != nil {
		l.Fatal(err)
	}
	if err := l.slurm.Maintenance(l.Context(), "m1", "k1", "now", 30); err != nil {
		l.Fatal(err)
	}
	l.eventually("k2 drained, k1 in maintenance", func() bool {
		s = l.see()
		return s.Nodes[1].Bad == "drained" && s.Nodes[0].Busy == "maintenance"
	}, func() string { return fmt.Sprintf("%+v", s.Nodes) })
	if len(s.Reservations) != 1 || s.Reservations[0].Name != "m1" || s.Reservations[0].Ours || !slices.Contains(s.Reservations[0].Flags, "MAINT") ||
		!slices.Equal(s.Reservations[0].Nodes, []string{"k1"}) || !slices.Equal(s.Reservations[0].Users, []string{"root"}) || s.Reservations[0].End.Sub(s.Reservations[0].Start) != 30*cluster.Minute {
		l.Errorf("reservations: %+v", s.Reservations)
	}
	if err := l.slurm.SetNode(l.Context(), "k2", "resume"); err != nil {
		l.Fatal(err)
	}
	l.exec("root", "scontrol", "delete", "reservation=m1")
	l.eventually("all nodes well", func() bool {
		s = l.see()
		return s.Nodes[1].Bad == "" && s.Nodes[0].Busy == "" && len(s.Reservations) == 0
	}, func() string { return fmt.Sprintf("%+v", s.Nodes) })
}
