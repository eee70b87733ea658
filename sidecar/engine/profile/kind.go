package profile

import (
	"cmp"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Rule assigns the jobs that match it to a kind.
type Rule = cluster.KindRule

// KindOf gives the kind of a job: the one that it declares, else that of the first rule which fits, else its user
// and work (see cluster.Job), else its user and its name with every number as #, for train-17 is like train-18.
func KindOf(rules []Rule, tenant, user, name, declared, work string) cluster.Kind {
	kind := declared
	for i := 0; i < len(rules) && kind == ""; i++ {
		r := &rules[i]
		if fits(r.Tenant, tenant) && fits(r.User, user) && fits(r.Name, name) {
			kind = r.Kind
		}
	}
	if kind == "" {
		kind = user + "." + cmp.Or(work, cluster.Numberless(name))
	}
	return cluster.KindOf(tenant, cluster.CleanName(kind))
}

// fits tells whether a pattern fits the whole of a text.
func fits(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	star, from := -1, 0 // the last * and up to where it reaches
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
