package trace

import (
	"iter"
	"strconv"
)

// Anonymous gives the same jobs under neutral names: job 1 in the given order, tenant1, user1,
// name1. Equal names stay equal; only the jobs' behaviour could reveal them.
func Anonymous(jobs iter.Seq[Job]) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		known := map[string]map[string]string{}
		alias := func(what, name string) string {
			if name == "" {
				return ""
			}
			names := known[what]
			if names == nil {
				names = map[string]string{}
				known[what] = names
			}
			if names[name] == "" {
				names[name] = what + strconv.Itoa(len(names)+1)
			}
			return names[name]
		}
		n := 0
		for j := range jobs {
			n++
			j.ID = strconv.Itoa(n)
			j.Tenant, j.User, j.Name = alias("tenant", j.Tenant), alias("user", j.User), alias("name", j.Name)
			if !yield(j) {
				return
			}
		}
	}
}
