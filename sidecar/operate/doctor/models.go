package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
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
	checkWorth(f, cfg, there)
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

// instance finds the profile of a MIG instance in the name of a GPU model, like a100_3g.40gb: compute slices of a compute instance, those of the GPU
// instance, and its memory in GB.
var instance = regexp.MustCompile(`(?i)(?:^|[^0-9a-z.])(?:([1-7])c\.)?([1-7])g\.([0-9]+)gb`)

// worthOf proposes what an instance counts as by the name of its model: its compute slices of all seven, or of all four of an A30; "" = it is no
// instance, or a whole GPU.
func worthOf(model string) string {
	m := instance.FindStringSubmatch(model)
	if m == nil {
		return ""
	}
	all := "7"
	if slices.Contains([]string{"1g.6gb", "2g.12gb", "4g.24gb"}, strings.ToLower(m[2]+"g."+m[3]+"gb")) {
		all = "4"
	}
	if used := cmp.Or(m[1], m[2]); used != all {
		return used + "/" + all
	}
	return ""
}

// checkWorth tells of models that look like MIG instances and count as whole GPUs, and of worths for models that no node has.
func checkWorth(f *findings, cfg *config.Config, there map[string]bool) {
	const check = "worth"
	var strangers, whole, propose []string
	for model := range cfg.Models.Worth {
		if !there[model] {
			strangers = append(strangers, model)
		}
	}
	if slices.Sort(strangers); len(strangers) > 0 {
		f.add(Warn, check, "no node has a GPU model "+view.Some(strangers, 5), "models.worth has no effect on it, and a device of the model that may be meant counts as one GPU",
			"correct it; Slurm's are "+strings.Join(slices.Sorted(maps.Keys(there)), ", "))
	}
	for _, model := range slices.Sorted(maps.Keys(there)) {
		if _, known := cfg.Models.Worth[model]; !known && worthOf(model) != "" {
			whole, propose = append(whole, model), append(propose, model+": "+worthOf(model))
		}
	}
	if len(whole) > 0 && config.TakesWorth(cfg) {
		f.add(Warn, check, "each device of "+view.Some(whole, 5)+" counts as one GPU, and these look like instances of GPUs that MIG splits", "a tenant with all instances of a GPU is charged several GPUs",
			"write models.worth: {"+strings.Join(propose, ", ")+"}; with 1 a device counts as a GPU, as now")
	}
}
