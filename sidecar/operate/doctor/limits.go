package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// checkLimits says which of Slurm's admission rules are seen, and finds settings by which users get around them.
func checkLimits(f *findings, cfg *config.Config, facts *slurm.Facts, seen *cluster.Observation) {
	if len(facts.Conf) == 0 { // another check says so
		return
	}
	checkRules(f, facts, seen)
	checkEnforced(f, cfg, conf(facts.Conf))
	checkByModel(f, &seen.Limits)
}

// checkRules says which rules are seen.
func checkRules(f *findings, facts *slurm.Facts, seen *cluster.Observation) {
	const check = "limits"
	l, lists := &seen.Limits, 0
	for i := range seen.Partitions {
		if p := &seen.Partitions[i]; p.MaxTime > 0 || !p.Rules.None() {
			lists++
		}
	}
	accounts, users, qos := 0, 0, 0
	for i := range l.Associations {
		if l.Associations[i].User == "" {
			accounts++
		} else {
			users++
		}
	}
	for i := range l.QOS {
		if len(l.QOS[i].Caps) > 0 || l.QOS[i].Unread != 0 {
			qos++
		}
	}
	const means = "jobs that a limit does not let start are granted GPUs, which idle until the grants are taken back"
	enforced := slurm.EnforcesLimits(facts.Conf)
	switch found := fmt.Sprintf("of %d accounts, %d users and %d QOS; %d partitions with lists or limits; read at %s", accounts, users, qos, lists, l.Read); {
	case !enforced:
		f.ok(check, "Slurm enforces none (%s=%s); %d partitions with lists or limits", slurm.ConfEnforce, cmp.Or(facts.Conf[slurm.ConfEnforce], "(not set)"), lists)
	case l.Read == 0:
		f.add(Fail, check, "those of accounts, users and QOS could not be read", means+"; the daemon goes by the last ones that it knows",
			"see that slurmdbd runs (sacctmgr show association, sacctmgr show qos), and that the daemon's user may read both: sacctmgr modify user NAME set adminlevel=operator")
	case facts.RestDenied != "": // the finding on rights says what to do
		f.ok(check, "%s, without an operator's rights: with PrivateData in slurmdbd.conf others' limits are hidden", found)
	default:
		f.ok(check, "%s", found)
	}
}

// checkEnforced finds associations and QOS that Slurm does not check.
func checkEnforced(f *findings, cfg *config.Config, c conf) {
	const key = slurm.ConfEnforce
	words := strings.FieldsFunc(strings.ToLower(c[key]), func(r rune) bool { return r == ',' || r == ' ' })
	has := func(of ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(of, w) })
	}
	is := key + "=" + cmp.Or(c[key], "(not set)")
	const set = "set " + key + "=associations,limits,qos in slurm.conf"
	if !has("associations", "limits", "qos", "safe", "wckeys", "all", "1", "2") {
		f.add(Warn, key, is, "a user may submit jobs as any account, thus at the cost and in the turn of any tenant", set)
		return
	}
	var named []string
	for setting, list := range cfg.Named().QOS {
		if len(list) > 0 {
			named = append(named, fmt.Sprintf("%s (%s)", strings.Join(list, ","), setting))
		}
	}
	if slices.Sort(named); named != nil && !has("qos", "all") {
		f.add(Warn, key, is, "a user may submit jobs with any QOS, also with those that the configuration names: "+strings.Join(named, ", "), set)
		return
	}
	f.ok(key, "%s", c[key])
}

// checkByModel finds limits on GPUs of one model that jobs escape which name no model.
func checkByModel(f *findings, l *cluster.Limits) {
	open := map[string]bool{}
	find := func(of string, caps []cluster.Cap) {
		for _, c := range caps {
			all := slices.ContainsFunc(caps, func(o cluster.Cap) bool { return o.Rule == c.Rule && o.TRES == "gres/gpu" })
			if strings.HasPrefix(c.TRES, "gres/gpu:") && c.Rule != cluster.MinTRESPerJob && !all {
				open[of+" "+c.String()] = true
			}
		}
	}
	for i := range l.Associations {
		if a := &l.Associations[i]; a.User == "" {
			find("account "+a.Account, a.Caps)
		} else {
			find("user "+a.User+" in account "+a.Account, a.Caps)
		}
	}
	for i := range l.QOS {
		find("QOS "+l.QOS[i].Name, l.QOS[i].Caps)
	}
	if len(open) > 0 {
		f.add(Warn, "limits by GPU model", view.Some(slices.Sorted(maps.Keys(open)), 5), "jobs that name no model (--gres=gpu:1) start beyond these limits, on the same GPUs",
			"add a limit on gres/gpu, or have a submit plugin add the model to each job")
	}
}
