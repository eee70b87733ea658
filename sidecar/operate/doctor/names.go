package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Unknown gives findings on names of a configuration that Slurm does not know, or the reason why that cannot be told.
func Unknown(ctx context.Context, cfg *config.Config) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	s := askSlurm(ctx, cfg)
	if err := cmp.Or(s.SetupErr, s.Err, s.LookErr); err != nil {
		return nil, err
	}
	f := &findings{area: "slurm"}
	checkNames(f, cfg.Named(), &s.Facts, s.Sighting)
	return f.list, nil
}

// checkNames finds names of partitions, accounts, users and QOS that Slurm does not know. Where Slurm lists none of a kind, no name of it is wrong,
// and without an operator's rights Slurm may hide accounts and users. seen is nil if there was no look.
func checkNames(f *findings, named config.Named, facts *slurm.Facts, seen *cluster.Observation) {
	var partitions, accounts, users []string
	if seen != nil {
		for i := range seen.Partitions {
			partitions = append(partitions, seen.Partitions[i].Name)
		}
	}
	if seen != nil && facts.RestDenied == "" {
		for i := range seen.Accounts {
			accounts = append(accounts, seen.Accounts[i].Name)
		}
		for i := range seen.Members {
			users = append(users, seen.Members[i].User)
		}
	}
	for _, x := range []struct {
		kind  string
		known []string
		named map[string][]string
		add   string
	}{
		{"partition", partitions, named.Partitions, "add it to slurm.conf"},
		{"account", accounts, named.Accounts, "add it: sacctmgr add account NAME"},
		{"user", users, named.Users, "add it to an account: sacctmgr add user NAME account=ACCOUNT"},
		{"QOS", facts.QOS, named.QOS, "add it: sacctmgr add qos NAME"},
	} {
		var missing []string
		for _, key := range slices.Sorted(maps.Keys(x.named)) {
			for _, name := range x.named[key] {
				if !slices.Contains(x.known, name) {
					missing = append(missing, fmt.Sprintf("%s (%s)", name, key))
				}
			}
		}
		if len(x.known) > 0 && missing != nil {
			f.add(Warn, x.kind, "Slurm has no "+x.kind+" "+strings.Join(missing, ", "), "no job can have it, so the setting has no effect", "correct the name, or "+x.add)
		}
	}
}
