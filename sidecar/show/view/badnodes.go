package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// longestHosts is the maximum length of a list of hosts in a line, in bytes.
const longestHosts = 200

// BadNodes words bad nodes, each given as "name (reason)", as lists of hosts by reason, such as "n[1-200]: down". The reason
// with most nodes comes first. A long list is cut, and says how many nodes it has.
func BadNodes(list []string) []string {
	of := map[string][]string{}
	for _, text := range list {
		name, why, _ := strings.Cut(text, " (")
		why = strings.TrimSuffix(why, ")")
		of[why] = append(of[why], name)
	}
	reasons := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(len(of[b]), len(of[a])) })
	out := make([]string, len(reasons))
	for i, why := range reasons {
		names := of[why]
		slices.SortFunc(names, hostlist.Compare)
		hosts := hostlist.Compress(names)
		if len(hosts) > longestHosts {
			hosts = fmt.Sprintf("%s… (%d nodes)", hosts[:max(strings.LastIndexByte(hosts[:longestHosts], ','), 1)], len(names))
		}
		out[i] = hosts
		if why != "" {
			out[i] += ": " + why
		}
	}
	return out
}
