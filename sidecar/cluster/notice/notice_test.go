package notice_test

import (
	"net/mail"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
)

const now cluster.Instant = 1_800_000_000_000

// job is a case of a user's job.
func job(key cluster.JobKey, user string, was, is cluster.JobState) cluster.Case {
	return cluster.Case{Job: cluster.Job{ID: cluster.JobID{ID: 100 + int64(key)}, Name: "train", User: user, State: is, Start: now - 5000, Restarts: 2,
		Request: cluster.Request{Size: cluster.Whole(4)}}, Record: cluster.Record{Key: key, User: user, Tenant: "nlp", State: was}, Control: cluster.FullControl}
}

func TestCauses(t *testing.T) {
	s := &cluster.Snapshot{Round: 9, Now: now, Tenants: []cluster.Tenant{{Name: "bio"}, {Name: "nlp", Budget: cluster.TenantBudget{News: "tenant nlp has used 80 % of its budget"}}},
		Cases: []cluster.Case{
			job(1, "ann", cluster.Waiting, cluster.Running),     // starts
			job(2, "ann", cluster.Running, cluster.Running),     // has its notice in this round
			job(3, "bob", cluster.Running, cluster.Running),     // had it before
			job(4, "bob", cluster.Configuring, cluster.Running), // starts; Unmanaged
			job(5, "cid", "", cluster.Running),                  // ran when it was first seen
			job(6, "dan", cluster.Running, cluster.Running),     // is stopped without a notice
			job(7, "eve", cluster.Running, cluster.Running),     // observed
			job(8, "fay", cluster.Waiting, cluster.Done),
		},
		Leases: []cluster.Lease{{Job: 2, Term: 3, State: cluster.Active}, {Job: 3, Term: 1, State: cluster.Noticed}, {Job: 6, Term: 5, State: cluster.Active}, {Job: 7, Term: 1, State: cluster.Active}}}
	s.Cases[3].Control = cluster.Unmanaged
	p := &cluster.Plan{At: now, Actions: []cluster.Action{{Verb: cluster.Notify, Job: 2}, {Verb: cluster.Reclaim, Job: 3}, {Verb: cluster.Reclaim, Job: 6},
		{Verb: cluster.Notify, Job: 7, Suppressed: true}, {Verb: cluster.Gate, Job: 1}}}
	p.State.Leases = []cluster.Lease{{Job: 2, Term: 3, State: cluster.Noticed, End: now + 60_000}}
	var got []string
	for _, n := range notice.Of(s, p) {
		got = append(got, strings.Join([]string{n.Kind, n.Event, n.User, n.Facts.ID, n.Facts.At.String()}, " "))
	}
	at := cluster.Instant.String
	want := []string{"stop 3 ann 102 " + at(now+60_000), "stop 5 dan 106 " + at(now), "start 2 ann 101 " + at(now-5000),
		"budget nlp 9 ann  " + at(0), "budget nlp 9 bob  " + at(0), "budget nlp 9 cid  " + at(0), "budget nlp 9 dan  " + at(0), "budget nlp 9 eve  " + at(0)}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("notices:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Names of users give their own mailbox, or none: whatever they are, the address is of the site's domain, and has one mailbox.
func TestAddressesAreTheUsersOwn(t *testing.T) {
	for name, want := range map[string]string{"ann": "ann@example.org", "a.b-c_9": "a.b-c_9@example.org", "": "", "ann@evil.example": "", "ann\r\nBcc: eve@evil.example": "",
		"ann,eve": "", "ann>": "", "\"ann": "", "ann+eve": "", "-ann": "", ".ann": "", "ann.": "", "a..b": "", "DOMAIN\\ann": "", "änn": "", "ann%evil.example": "", "ann!evil": "",
		"{user}": "", "{{.User}}": "", "a b": "", "ann\x00": "", strings.Repeat("a", 65): ""} {
		got, err := notice.Address("{user}@example.org", name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q (%v), want %q", name, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab0.-_@,;:<>\"\\()[]%!+\r\n {}")), rapid.Rune())).Draw(t, "name")
		address, err := notice.Address("{user}@example.org", name)
		if err != nil {
			return
		}
		list, err := mail.ParseAddressList(address)
		if err != nil || len(list) != 1 || list[0].Address != name+"@example.org" {
			t.Fatalf("%q has the address %q, which is read as %v (%v)", name, address, list, err)
		}
	})
	for _, template := range []string{"{user}@example.org", "gpu-{user}@mail.example.org", "gpu+{user}@example.org"} {
		if err := notice.CheckAddress(template); err != nil {
			t.Error(err)
		}
	}
	for _, template := range []string{"", "{user}", "ann@example.org", "{user}@{user}.example.org", "all@{user}", "{user}@example.org, eve@example.org", "{user} <x@example.org>", "{user}{user}@example.org",
		"{user}@example.org\nBcc: eve@example.org", "<{user}@example.org>"} {
		if notice.CheckAddress(template) == nil {
			t.Errorf("%q is taken for a template", template)
		}
	}
}
