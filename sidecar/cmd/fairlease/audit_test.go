package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Administrators read who did what, by key and author; a tenant's user cannot read the record.
func TestAudit(t *testing.T) {
	s := tell(t)
	users := users(t, s)
	if r := run(t, s.end, users["operator"], "boost", "tenant:nlp", "--until", "2h", "--reason", "as agreed"); r.code != failure.OK {
		t.Fatal(r.err)
	}
	for _, c := range []struct {
		args []string
		want string // in the output; "" = nothing is recorded
	}{
		{nil, "as agreed"}, {[]string{"--key", "override"}, "tenant nlp"}, {[]string{"--key", "schema"}, "fairlease migrate"}, {[]string{"--key", "mode"}, ""},
		{[]string{"--by", "nobody-of-that-name"}, ""}, {[]string{"--limit", "1"}, "as agreed"},
	} {
		for _, role := range []string{"reader", "operator", "daemon"} {
			r := run(t, s.end, users[role], append([]string{"audit"}, c.args...)...)
			if want := c.want; r.code != failure.OK || want != "" && !strings.Contains(r.out, want) || want == "" && !strings.Contains(r.out, "Nothing is recorded") {
				t.Errorf("%s: audit %v: exit code %d\n%s%s", role, c.args, r.code, r.out, r.err)
			}
		}
		if r := run(t, s.end, users["tenant"], append([]string{"audit"}, c.args...)...); r.code != failure.No || strings.Contains(r.out+r.err, "as agreed") || !strings.Contains(r.err, "permission denied for table administration") {
			t.Errorf("a tenant: audit %v: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
	}
	var list []store.Act
	r := run(t, s.end, s.env, "audit", "--key", "override", "--json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) == 0 || list[0].DatabaseUser == "" || !strings.HasPrefix(list[0].DatabaseUser, "operator") || *list[0].After == "" || list[0].Before != nil {
		t.Errorf("%v: %s", err, r.out)
	}
	if r := run(t, s.end, s.env, "audit", "--key", "no.such", "--json"); strings.TrimSpace(r.out) != "[]" {
		t.Errorf("no rows as JSON: %s", r.out)
	}
	for key, misspelt := range map[string]bool{"lease.trem": true, "leases": true, "lease": false, "tenants.weights.nlp": false, "cells.file: nlp": false, "breaker": false} {
		if r := run(t, s.end, s.env, "audit", "--key", key); r.code != failure.OK || !strings.HasPrefix(r.out, "Nothing is recorded of ") || strings.Contains(r.out, "no key of the configuration") != misspelt {
			t.Errorf("--key %s: exit code %d: %s", key, r.code, r.out+r.err)
		}
	}
	if r := run(t, s.end, s.env, "audit", "--since", "2030-01-02", "--until", "2030-01-01"); r.code != failure.Misuse || !strings.Contains(r.err, "--since 2030-01-02 is not before --until 2030-01-01") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	if r := run(t, s.end, s.env, "audit", "--since", "yesterday"); r.code != failure.Misuse || !strings.Contains(r.err, "--since") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
