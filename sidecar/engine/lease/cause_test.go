package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// stuckJob is a waiting job with a grant. reason is why Slurm does not start it.
func stuckJob(key cluster.JobKey, reason string) cluster.Case {
	return cluster.Case{Control: cluster.FullControl, Record: cluster.Record{Key: key, Tenant: "a"},
		Job: cluster.Job{State: cluster.Waiting, PendingReason: reason, User: "u", Account: "acc", QOS: "q", Partitions: []string{"gpu", "long"}, Request: cluster.Request{Size: cluster.Whole(2)}}}
}

// learn lets rounds pass: every case has a grant, that was made ago before now.
func learn(s *cluster.Snapshot, ago cluster.Span) []cluster.Cause {
	s.Settings = cluster.Settings{Term: 15 * cluster.Minute, GrantTimeout: cluster.Minute, Interval: 10 * cluster.Second}
	s.Ledger.At, s.Leases = s.Now.Add(-10*cluster.Second), nil
	if len(s.Nodes) == 0 {
		s.Nodes = []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 100}}}}
	}
	records := make([]cluster.Record, len(s.Cases))
	for i := range s.Cases {
		records[i] = s.Cases[i].Record
		l := lease(cluster.Granted)
		l.Job, l.Granted = s.Cases[i].Record.Key, s.Now.Add(-ago)
		s.Leases = append(s.Leases, *l)
	}
	var room Workspace
	Reconcile(s, records, &room)
	return Learn(s, &room)
}

// Slurm's reason tells which jobs it concerns, and whether time alone may end it.
func TestReasonsTellTheClass(t *testing.T) {
	request := cluster.Request{Size: cluster.Whole(2)}
	for _, c := range []struct {
		reason, licenses string
		want             cluster.CauseKey
		admits           int // after one failure; -1 = no cause
		early            bool
	}{
		{"QOSGrpGRES", "", cluster.CauseKey{QOS: "q"}, 1, true},
		{"QOSMaxJobsPerUserLimit", "", cluster.CauseKey{QOS: "q", User: "u"}, 1, true},
		{"QOSMaxGRESPerUser", "", cluster.CauseKey{QOS: "q", User: "u", Account: "acc"}, 1, true},
		{"MaxGRESPerAccount", "", cluster.CauseKey{QOS: "q", Account: "acc"}, 1, true},
		{"AssocGrpGRES", "", cluster.CauseKey{Account: "acc"}, 1, true},
		{"AssocMaxJobsLimit", "", cluster.CauseKey{Account: "acc", User: "u"}, 1, true},
		{"AccountNotAllowed", "", cluster.CauseKey{Account: "acc"}, 1, true},
		{"AccountNotAllowed: uid 2001 not in group permitted to use this partition (gpu). groups allowed: staff", "", cluster.CauseKey{User: "u", Partition: "gpu,long"}, 1, true},
		{"BadConstraints", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 1, true},
		{"PartitionNodeLimit: more words", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 1, true},
		{"Licenses", "matlab:1,ansys:2", cluster.CauseKey{Licenses: "ansys,matlab"}, 1, false},
		{"Licenses", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 0, false}, // our gate's
		{"Resources", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 0, false},
		{"Priority", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 0, false},
		{"", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 0, false},
		{"BurstBufferResources", "", cluster.CauseKey{User: "u", Partition: "gpu,long", Request: request}, 0, false},
		{"ReqNodeNotAvail, May be reserved for other job", "", cluster.CauseKey{}, -1, false},
		{"NodeDown", "", cluster.CauseKey{}, -1, false},
	} {
		t.Run(c.reason+" "+c.licenses, func(t *testing.T) {
			job := stuckJob(1, c.reason)
			job.Job.Licenses = c.licenses
			got := learn(&cluster.Snapshot{Now: at, Cases: []cluster.Case{job}}, cluster.Minute)
			if c.admits < 0 {
				if len(got) > 0 {
					t.Fatalf("causes %+v, want none: the nodes were at fault", got)
				}
				return
			}
			c.want.Tenant, c.want.Reason = "a", word(c.reason)
			if c.admits == 0 && (c.want.Reason == "" || c.want.Reason == "Priority") {
				c.want.Reason = "Resources"
			}
			if len(got) != 1 || got[0].CauseKey != c.want || got[0].Admits != c.admits || got[0].Last != 1 {
				t.Fatalf("causes %+v, want %+v, admitting %d", got, c.want, c.admits)
			}
			if early := len(learn(&cluster.Snapshot{Now: at, Cases: []cluster.Case{job}}, 11*cluster.Second)) > 0; early != c.early {
				t.Errorf("taken back after 11 s: %v, want %v", early, c.early)
			}
			if len(learn(&cluster.Snapshot{Now: at, Cases: []cluster.Case{job}}, 4*cluster.Second)) > 0 {
				t.Error("taken back after 4 s: the reason may be the old one")
			}
		})
	}
}

// A grant whose GPUs others still hold says nothing of its class.
func TestOthersThatHaveNotLeft(t *testing.T) {
	leaves := stuckJob(3, "")
	leaves.Job.State, leaves.Job.Holds = cluster.Completing, []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(99)}}
	s := cluster.Snapshot{Now: at, Cases: []cluster.Case{stuckJob(1, "Resources"), stuckJob(2, "Resources"), leaves}}
	if got := learn(&s, cluster.Minute); len(got) != 0 {
		t.Errorf("causes %+v, want none", got)
	}
}

// A class has one probe. It waits twice as long after every failure, up to an hour, and opens step by step.
func TestAClassClosesAndOpens(t *testing.T) {
	s := cluster.Snapshot{Now: at}
	for i, minutes := range []cluster.Span{1, 2, 4, 8, 16, 32, 60, 60} {
		s.Cases = []cluster.Case{stuckJob(1, "AssocGrpGRES"), stuckJob(2, "AssocGrpGRES")} // of one round
		got := learn(&s, cluster.Minute)
		if len(got) != 1 || got[0].Admits != 1 || got[0].Failed != i+1 || got[0].Until != s.Now.Add(minutes*cluster.Minute) {
			t.Fatalf("failure %d: %+v, want one probe in %d minutes", i+1, got, minutes)
		}
		s.Causes, s.Now = got, got[0].Until
	}
	for admits := 2; admits <= opened; admits++ {
		running := stuckJob(1, "")
		running.Job.State, running.Job.Holds = cluster.Running, []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}
		s.Cases = []cluster.Case{running}
		if s.Causes = learn(&s, cluster.Minute); len(s.Causes) != 1 || s.Causes[0].Admits != admits || s.Causes[0].Until > s.Now {
			t.Fatalf("after a start: %+v, want %d at a time, at once", s.Causes, admits)
		}
	}
	if got := learn(&s, cluster.Minute); len(got) != 0 {
		t.Errorf("after %d starts: %+v, want it forgotten", opened, got)
	}
	s.Cases = []cluster.Case{stuckJob(3, "AssocGrpGRES")}
	if got := learn(&s, cluster.Minute); len(got) != 1 || got[0].Admits != 1 || got[0].Failed != 1 {
		t.Errorf("after another failure: %+v, want a probe again", got)
	}
}

// One job that does not start may be at fault itself. A second one like it is not.
func TestASecondJobClosesAClass(t *testing.T) {
	s := cluster.Snapshot{Now: at, Cases: []cluster.Case{stuckJob(1, "Resources")}}
	for range 3 {
		s.Causes = learn(&s, cluster.Minute)
		if s.Now += 1000; len(s.Causes) != 1 || s.Causes[0].Admits != 0 {
			t.Fatalf("one job failed again and again: %+v, want no limit for others", s.Causes)
		}
	}
	s.Cases = []cluster.Case{stuckJob(2, "Priority")}
	if s.Causes = learn(&s, cluster.Minute); len(s.Causes) != 1 || s.Causes[0].Admits != 1 {
		t.Errorf("a second job failed: %+v, want a probe", s.Causes)
	}
}

// Jobs with ever different requests are no new class each.
func TestManyRequestsAreOneClass(t *testing.T) {
	s := cluster.Snapshot{Now: at}
	for i := range 100 {
		c := stuckJob(cluster.JobKey(i+1), "BadConstraints")
		c.Job.Request.MemoryMB, c.Job.Request.Size = int64(i), cluster.Whole(2+i%3)
		s.Cases = []cluster.Case{c}
		s.Causes = learn(&s, cluster.Minute)
		s.Now += 60_000
	}
	if len(s.Causes) != 1 || s.Causes[0].GPUs != 2 || s.Causes[0].User != "u" {
		t.Errorf("%d causes: %+v, want one for all of the user's jobs of 2 GPUs or more", len(s.Causes), s.Causes)
	}
	smaller := stuckJob(1, "")
	if smaller.Job.Request.Size = cluster.Whole(1); Concerns(&s.Causes[0], &smaller) {
		t.Error("a smaller job is of the class")
	}
}

// The end of a job that used the same limit or licence, and other nodes, let a class be tried early; lease.grant_timeout after
// the last failure at the soonest.
func TestEventsOpenAClass(t *testing.T) {
	ended := func(change func(*cluster.Case)) cluster.Case {
		c := stuckJob(9, "")
		c.Job.State, c.Record.State, c.Job.Licenses = cluster.Done, cluster.Running, "matlab:4"
		change(&c)
		return c
	}
	for _, c := range []struct {
		name, reason string
		event        cluster.Case
		nodes        []cluster.Node
		want         bool
	}{
		{"a job of the account", "AssocGrpGRES", ended(func(*cluster.Case) {}), nil, true},
		{"a job of another tenant", "AssocGrpGRES", ended(func(c *cluster.Case) { c.Record.Tenant = "b" }), nil, false},
		{"a job that runs on", "AssocGrpGRES", ended(func(c *cluster.Case) { c.Job.State = cluster.Running }), nil, false},
		{"a job of another tenant in the QOS", "QOSGrpGRES", ended(func(c *cluster.Case) { c.Record.Tenant = "b" }), nil, true},
		{"a job of another QOS", "QOSGrpGRES", ended(func(c *cluster.Case) { c.Job.QOS = "p" }), nil, false},
		{"a job of another user", "AssocMaxJobsLimit", ended(func(c *cluster.Case) { c.Job.User = "v" }), nil, false},
		{"a job with the licence", "Licenses", ended(func(c *cluster.Case) { c.Record.Tenant = "b" }), nil, true},
		{"a job with another licence", "Licenses", ended(func(c *cluster.Case) { c.Job.Licenses = "ansys" }), nil, false},
		{"any job", "BadConstraints", ended(func(*cluster.Case) {}), nil, false},
		{"a node that came", "BadConstraints", stuckJob(9, ""), []cluster.Node{{Name: "n2"}}, true},
	} {
		t.Run(c.name+" "+c.reason, func(t *testing.T) {
			job := stuckJob(1, c.reason)
			job.Job.Licenses = "matlab:1"
			s := cluster.Snapshot{Now: at, Cases: []cluster.Case{job}}
			for range 6 { // the back-off is 32 minutes
				s.Now += 1000
				s.Causes = learn(&s, cluster.Minute)
			}
			last := s.Now
			s.Cases, s.Leases, s.Nodes = []cluster.Case{c.event}, nil, append(s.Nodes, c.nodes...)
			for _, after := range []cluster.Span{cluster.Second, 2 * cluster.Minute} {
				s.Now = last.Add(after)
				want := last.Add(32 * cluster.Minute)
				if c.want {
					want = max(s.Now, last.Add(cluster.Minute))
				}
				if got := Learn(&s, &Workspace{}); len(got) != 1 || got[0].Until != want {
					t.Errorf("after %s: %+v, want it tried at %s", after, got, want)
				}
			}
		})
	}
}

// Whatever fails and starts, causes are sorted, bounded, and say of every failed job that lasts that its class has one probe.
func TestCausesAreBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := cluster.Snapshot{Now: at}
		for round := range rapid.IntRange(1, 40).Draw(rt, "rounds") {
			s.Now += cluster.Instant(rapid.IntRange(1, 600_000).Draw(rt, "ms"))
			s.Cases = nil
			for i := range rapid.IntRange(0, 6).Draw(rt, "grants") {
				c := stuckJob(cluster.JobKey(100*round+i), rapid.SampledFrom([]string{"AssocGrpGRES", "QOSMaxJobsPerUserLimit", "BadConstraints", "Licenses", "Resources", ""}).Draw(rt, "reason"))
				c.Record.Tenant = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant")
				c.Job.User, c.Job.QOS = fmt.Sprint("u", rapid.IntRange(0, 30).Draw(rt, "user")), fmt.Sprint("q", rapid.IntRange(0, 3).Draw(rt, "QOS"))
				c.Job.Licenses = rapid.SampledFrom([]string{"", "x:1", "x:1,y:2"}).Draw(rt, "licences")
				c.Job.Request.Size = cluster.Whole(rapid.IntRange(1, 8).Draw(rt, "GPUs"))
				if rapid.IntRange(0, 3).Draw(rt, "starts") == 0 {
					c.Job.State, c.Job.Holds = cluster.Running, []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}
				}
				s.Cases = append(s.Cases, c)
			}
			was := slices.Clone(s.Causes)
			got := learn(&s, cluster.Minute)
			if !slices.Equal(was, s.Causes) {
				rt.Fatal("the snapshot's causes were changed")
			}
			if !slices.IsSortedFunc(got, func(a, b cluster.Cause) int { return a.Compare(&b.CauseKey) }) || len(got) > 2*mostCauses {
				rt.Fatalf("%d causes, or not sorted: %+v", len(got), got)
			}
			for i := range s.Cases {
				x, lasting, ok := causeOf(&s.Cases[i], unstarted)
				if s.Cases[i].Job.State == cluster.Waiting && ok && lasting && x.Request == (cluster.Request{}) && len(got) < mostCauses &&
					!slices.ContainsFunc(got, func(o cluster.Cause) bool { return o.CauseKey == x.CauseKey && o.Admits == 1 && o.Until > s.Now }) {
					rt.Fatalf("no closed class for %+v: %+v", x, got)
				}
			}
			s.Causes = got
		}
	})
}

// Another limit or access list that concerns a class lets it be tried early; those of others do not, nor does what others use.
func TestChangedRulesOpenAClass(t *testing.T) {
	gpus := func(n int64) []cluster.Cap { return []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: n}} }
	rules := func() cluster.Admission {
		return cluster.Admission{
			Accounts: []cluster.Account{{Name: "acc", Parent: "dept"}, {Name: "dept", Parent: "root"}, {Name: "other", Parent: "root"}, {Name: "root"}},
			Partitions: []cluster.Partition{{Name: "cpu", Rules: cluster.Rules{MaxNodes: 4}}, {Name: "gpu", Rules: cluster.Rules{AllowAccounts: []string{"x", "y"}}},
				{Name: "long", Rules: cluster.Rules{QOS: "part"}}},
			Limits: cluster.Limits{
				Associations: []cluster.Association{{Account: "acc", Caps: gpus(4)}, {Account: "acc", User: "u", Caps: gpus(2)}, {Account: "acc", User: "v", Caps: gpus(2)},
					{Account: "dept", Caps: gpus(8)}, {Account: "dept", User: "u", Caps: gpus(8)}, {Account: "other", Caps: gpus(3)}},
				QOS:      []cluster.QOS{{Name: "part", Caps: gpus(9)}, {Name: "q", Caps: gpus(5)}, {Name: "s", Caps: gpus(5)}},
				Licenses: []cluster.LicenseCount{{Name: "ansys", Total: 4, Used: 4}, {Name: "matlab", Total: 4, Used: 4}},
			},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*cluster.Admission)
		opens  string // the reasons of the classes that it opens
	}{
		{"nothing", func(*cluster.Admission) {}, ""},
		{"use by others", func(a *cluster.Admission) { a.Others = []cluster.Use{{Account: "acc", Jobs: 1}} }, ""},
		{"the account", func(a *cluster.Admission) { a.Associations[0].Caps = gpus(5) }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"the account's only limit goes", func(a *cluster.Admission) { a.Associations = a.Associations[1:] }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"an unread limit of the account", func(a *cluster.Admission) { a.Associations[0].Unread = 7 }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"the user", func(a *cluster.Admission) { a.Associations[1].Caps = gpus(5) }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"another user", func(a *cluster.Admission) { a.Associations[2].Caps = gpus(5) }, "AssocGrpGRES"},
		{"the account above", func(a *cluster.Admission) { a.Associations[3].Caps = gpus(9) }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"a user of the account above", func(a *cluster.Admission) { a.Associations[4].Caps = gpus(9) }, ""},
		{"another account", func(a *cluster.Admission) { a.Associations[5].Caps = gpus(9) }, ""},
		{"the account moves", func(a *cluster.Admission) { a.Accounts[0].Parent = "root" }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"the QOS", func(a *cluster.Admission) { a.QOS[1].Caps = gpus(6) }, "AssocGrpGRES AssocMaxJobsLimit QOSGrpGRES"},
		{"an unread limit of the QOS", func(a *cluster.Admission) { a.QOS[1].Unread = 7 }, "AssocGrpGRES AssocMaxJobsLimit QOSGrpGRES"},
		{"another QOS", func(a *cluster.Admission) { a.QOS[2].Caps = gpus(6) }, "AssocGrpGRES AssocMaxJobsLimit"},
		{"a partition's QOS", func(a *cluster.Admission) { a.QOS[0].Caps = gpus(6) }, "AssocGrpGRES AssocMaxJobsLimit BadConstraints QOSGrpGRES"},
		{"a list", func(a *cluster.Admission) { a.Partitions[1].Rules.AllowAccounts = []string{"xy"} }, "AssocGrpGRES AssocMaxJobsLimit BadConstraints QOSGrpGRES"},
		{"another partition", func(a *cluster.Admission) { a.Partitions[0].Rules.MaxNodes = 5 }, "AssocGrpGRES AssocMaxJobsLimit QOSGrpGRES"},
		{"no rules are left", func(a *cluster.Admission) { *a = cluster.Admission{} }, "AssocGrpGRES AssocMaxJobsLimit BadConstraints Licenses QOSGrpGRES"},
		{"a licence is free", func(a *cluster.Admission) { a.Licenses[1].Used = 3 }, "Licenses"},
		{"another licence is free", func(a *cluster.Admission) { a.Licenses[0].Used = 3 }, ""},
		{"the groups of a partition", func(a *cluster.Admission) { a.Partitions[1].Rules.AllowGroups = []string{"staff"} }, "AssocGrpGRES AssocMaxJobsLimit BadConstraints QOSGrpGRES"},
	} {
		var opened []string
		for _, reason := range []string{"AssocGrpGRES", "AssocMaxJobsLimit", "BadConstraints", "Licenses", "QOSGrpGRES"} {
			job := stuckJob(1, reason)
			job.Job.Licenses = "matlab:1"
			a := rules()
			s := cluster.Snapshot{Now: at, Cases: []cluster.Case{job}, Admission: &a}
			for range 6 { // the back-off is 32 minutes
				s.Now += 1000
				s.Causes = learn(&s, cluster.Minute)
			}
			last := s.Now
			a = rules()
			c.change(&a)
			s.Cases, s.Leases, s.Now = nil, nil, last.Add(2*cluster.Minute)
			if got := Learn(&s, &Workspace{}); len(got) != 1 || got[0].Until != last.Add(32*cluster.Minute) && got[0].Until != s.Now {
				t.Fatalf("%s, %s: %+v", c.name, reason, got)
			} else if got[0].Until == s.Now {
				opened = append(opened, reason)
			}
		}
		if got := strings.Join(opened, " "); got != c.opens {
			t.Errorf("%s opens %q, want %q", c.name, got, c.opens)
		}
	}
}
