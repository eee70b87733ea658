package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// progress checks the ways by which jobs report their progress, as the user that runs the doctor.
func (f *findings) progress(ctx context.Context, cfg *config.Config) {
	p := &cfg.Models.Progress
	if p.Listen != "" {
		f.munge(ctx, p.Munge)
	}
	if p.Folder != "" {
		f.drop(p.Folder)
	}
}

// munge asks munged to open what is no credential: it says so, if it can be asked.
func (f *findings) munge(ctx context.Context, socket string) {
	const check, means = "progress, munged", "jobs' reports are answered with 503 and lost (models.progress.listen)"
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	_, _, err := telemetry.Munge{Socket: socket}.Open(ctx, []byte("MUNGE::"))
	var refused *telemetry.Refused
	if err == nil || errors.As(err, &refused) {
		f.ok(check, "answers at %s", cmp.Or(socket, "its default socket"))
		return
	}
	f.add(bad, check, failure.Cause(err), means, "install munge and start munged with the nodes' key; set models.progress.munge if its socket is elsewhere")
}

// drop checks the folder of reports, and its users' folders.
func (f *findings) drop(folder string) {
	const check = "progress, folder"
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", folder)
	}
	var users []os.DirEntry
	if err == nil {
		users, err = os.ReadDir(folder)
	}
	if err != nil {
		f.add(bad, check, failure.Cause(err), "what jobs leave there is not heard (models.progress.folder)",
			"make it for root with mode 0755, on a file system that the nodes share, and in it a folder for each user, as install -d -o alice -m 0755 "+filepath.Join(folder, "alice"))
		return
	}
	if mode, owner := info.Mode().Perm(), owner(info); mode&0o022 != 0 || owner != 0 && owner != os.Getuid() {
		f.add(warn, check, fmt.Sprintf("%s is user %d's, with mode %#o", folder, owner, mode), "others than the administrator may take or move the folder of another user, whose jobs are then not heard",
			"chown root "+folder+"; chmod go-w "+folder)
		return
	}
	var wrong []string
	good := 0
	for _, u := range users {
		if why := userFolder(filepath.Join(folder, u.Name()), u.Name()); why != "" {
			wrong = append(wrong, u.Name()+" "+why)
		} else {
			good++
		}
	}
	if len(wrong) > 0 {
		f.add(warn, check, folder+": "+some(wrong, 5), "these users' jobs are not heard, or others speak in their place",
			"give each folder to the user of its name, with mode 0755: chown alice "+filepath.Join(folder, "alice"))
		return
	}
	f.ok(check, "%s, of %d users", folder, good)
}

// userFolder says what is wrong with a user's folder of reports; "" = nothing.
func userFolder(path, name string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return failure.Cause(err)
	}
	if !info.IsDir() {
		return "is no folder"
	}
	u, err := user.Lookup(name)
	switch {
	case err != nil:
		return "is no user's name here"
	case u.Uid != strconv.Itoa(owner(info)):
		return fmt.Sprintf("belongs to user %d", owner(info))
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("has mode %#o", info.Mode().Perm())
	}
	dir, err := os.Open(path)
	if err != nil {
		return "cannot be read by this user"
	}
	_ = dir.Close()
	return ""
}

// owner gives the id of a file's owner.
func owner(info os.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// models holds the file of profiles, and prices, against the GPU models and tenants that there are.
func (f *findings) models(cfg *config.Config, seen *cluster.Sighting, snap *cluster.Snapshot) {
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
		f.add(warn, "prices", "no node has a GPU model "+some(strangers, 5), "models.prices has no effect on it, and a model without a price costs 1", "correct it; "+known)
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
		f.add(warn, check, fmt.Sprintf("%s: no node has a GPU model %s", file.Name, some(strangers, 5)), "its rates are of no use, and those of the model that may be meant are not known", "correct it; "+known)
	}
	if len(nobody) > 0 {
		f.add(warn, check, fmt.Sprintf("%s: there is no tenant %s", file.Name, some(nobody, 5)), "what is said of its jobs holds for none", "correct it; fairlease tenants has them, at tenants.level of the account tree")
	}
	if len(strangers)+len(nobody) == 0 {
		f.ok(check, "%d rules, %d rates in %s", len(file.Rules), len(file.Profiles), file.Name)
	}
}
