package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// checkProgress checks the ways by which jobs report their progress.
func checkProgress(f *findings, cfg *config.Config, seen *Seen) {
	p := &cfg.Models.Progress
	if p.Listen != "" {
		const check = "progress, munged"
		tokens := checkTokens(f, "progress, tokens", cfg, seen.Tokens, seen.Munge == nil)
		switch {
		case seen.Munge == nil:
			f.ok(check, "answers at %s", cmp.Or(p.Munge, "its default socket"))
		case tokens:
			f.ok(check, "does not answer: jobs report by tokens only")
		default:
			f.add(Fail, check, failure.Cause(seen.Munge), "jobs' reports are answered with 503 and lost (models.progress.listen)",
				"install munge and start munged with the nodes' key; set models.progress.munge if its socket is elsewhere; without MUNGE set slurm.jwt")
		}
		if tokens && p.WebConfig == "" && !local(p.Listen) {
			f.add(Warn, "progress, TLS", "models.progress.listen is "+p.Listen+", without TLS", "tokens are refused from other hosts, since whoever reads one can use it", "name a file with TLS in models.progress.web_config, and give jobs FAIRLEASE_PROGRESS_URL=https://…")
		}
	}
	if p.Folder != "" {
		checkReports(f, p.Folder, &seen.Reports, seen.UID)
	}
}

// checkTokens tells whether users' tokens of auth/jwt are taken, and can be checked. Where nobody asked for tokens and MUNGE serves, no
// fault matters.
func checkTokens(f *findings, check string, cfg *config.Config, fault error, munge bool) bool {
	at := cfg.Slurm.Checker()
	if at == "" {
		return false
	}
	found := "checked through slurmrestd at " + at
	if fault != nil {
		found = failure.Cause(fault)
	}
	if munge && fault != nil && cfg.Slurm.JWT == config.JWTAuto {
		f.ok(check, "none are taken: %s", found)
		return false
	}
	f.must(fault == nil, Warn, check, found, "users' tokens of auth/jwt are not taken (slurm.jwt)",
		"start a slurmrestd with -a rest_auth/jwt, with AuthAltTypes=auth/jwt in slurm.conf, and name it in slurm.jwt; or set slurm.jwt: none")
	return fault == nil
}

// checkReports checks the folder of reports, and its users' folders.
func checkReports(f *findings, folder string, r *Reports, uid int) {
	const check = "progress, folder"
	switch {
	case r.Err != nil:
		f.add(Fail, check, failure.Cause(r.Err), "what jobs leave there is not heard (models.progress.folder)",
			"make it for root with mode 0755, on a file system that the nodes share, and in it a folder for each user, as install -d -o alice -m 0755 "+filepath.Join(folder, "alice"))
	case r.Mode&0o022 != 0 || r.Owner != 0 && r.Owner != uid:
		f.add(Warn, check, fmt.Sprintf("%s is user %d's, with mode %#o", folder, r.Owner, r.Mode), "others than the administrator may take or move the folder of another user, whose jobs are then not heard",
			"chown root "+folder+"; chmod go-w "+folder)
	case len(r.Wrong) > 0:
		f.add(Warn, check, folder+": "+view.Some(r.Wrong, 5), "these users' jobs are not heard, or others speak in their place",
			"give each folder to the user of its name, with mode 0755: chown alice "+filepath.Join(folder, "alice"))
	default:
		f.ok(check, "%s, of %d users", folder, r.Good)
	}
}

// checkModels compares the profiles file, and prices, with the existing GPU models and tenants.
func checkModels(f *findings, cfg *config.Config, seen *cluster.Observation, snap *cluster.Snapshot) {
	there := map[string]bool{}
	for i := range seen.Nodes {
		for _, g := range seen.Nodes[i].GPUs {
			there[g.Model] = true
		}
	}
	known := "Slurm's are " + strings.Join(slices.Sorted(maps.Keys(there)), ", ")
	var strangers []string
	for model := range cfg.Models.Prices {
		if !there[model] {
			strangers = append(strangers, model)
		}
	}
	if slices.Sort(strangers); len(strangers) > 0 {
		f.add(Warn, "prices", "no node has a GPU model "+view.Some(strangers, 5), "models.prices has no effect on it, and a model without a price costs 1", "correct it; "+known)
	}
	if model := cfg.Models.Reference; model != "" && !there[model] {
		f.add(Warn, "reference", "no node has a GPU model "+model, "models.reference has no effect: speedups are relative to the slowest model that most tenants can use", "correct it; "+known)
	}
	file := cfg.ProfileFile()
	if file == nil {
		return
	}
	strangers = nil
	tenants := map[string]bool{}
	for i := range snap.Tenants {
		tenants[snap.Tenants[i].Name] = true
	}
	var nobody []string
	tenant := func(name string) {
		if name != "" && !tenants[name] && !strings.ContainsAny(name, "*?") && !slices.Contains(nobody, name) {
			nobody = append(nobody, name)
		}
	}
	for i := range file.Profiles {
		p := &file.Profiles[i]
		if !there[p.Model] && !slices.Contains(strangers, p.Model) {
			strangers = append(strangers, p.Model)
		}
		tenant(p.Kind.Tenant())
	}
	for _, r := range file.Rules {
		tenant(r.Tenant)
	}
	const check = "profiles"
	if len(strangers) > 0 {
		f.add(Warn, check, fmt.Sprintf("%s: no node has a GPU model %s", file.Name, view.Some(strangers, 5)), "its rates are of no use, and those of the model that may be meant are not known", "correct it; "+known)
	}
	if len(nobody) > 0 {
		f.add(Warn, check, fmt.Sprintf("%s: there is no tenant %s", file.Name, view.Some(nobody, 5)), "what is said of its jobs holds for none", "correct it; fairlease tenants has them, at tenants.level of the account tree")
	}
	if len(strangers)+len(nobody) == 0 {
		f.ok(check, "%d rules, %d rates in %s", len(file.Rules), len(file.Profiles), file.Name)
	}
}
