package doctor

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// PluginFile is the file with the submit plugin's settings, and the plugin itself.
type PluginFile struct {
	Path    string // "" = Slurm has no such plugin
	Text    string
	Err     error
	Users   map[string]string // names of the users in exclude_users that are there by number
	Openers []string          // names of the users that may open gates in spite of protect_gate; nil = not known
	Library *Library          // nil = this host does not have Slurm's configuration
}

// ReadPlugin reads both, if Slurm has the plugin.
func ReadPlugin(cfg *config.Config, slurmConf map[string]string) (p PluginFile) {
	c := conf(slurmConf)
	if !c.hasPlugin() {
		return p
	}
	p.Path = cfg.Gate.PluginConf
	if p.Path == "" {
		p.Path = c.beside("fairlease-plugin.conf")
	}
	text, err := os.ReadFile(p.Path)
	p.Text, p.Err, p.Library = string(text), err, readSubmit(c)
	set, _ := settingsOf(p.Text)
	for _, id := range strings.FieldsFunc(set["exclude_users"], func(r rune) bool { return r < '0' || r > '9' }) {
		if u, err := user.LookupId(id); err == nil {
			if p.Users == nil {
				p.Users = map[string]string{}
			}
			p.Users[id] = u.Username
		}
	}
	p.Openers = openers(cfg.Files.Heartbeats, c, set["operator_uids"])
	return p
}

// openers gives the names of the users that the plugin lets open gates: root, SlurmUser, the owner of the heartbeats, and the operators.
// That owner is the daemon's user, as whom the doctor runs, too, and has their folder. nil = this host does not have the heartbeats.
func openers(heartbeats string, c conf, operators string) []string {
	dir, err := os.Stat(heartbeats)
	if err != nil {
		return nil
	}
	name, _, _ := strings.Cut(c[slurm.ConfUser], "(") // slurm(64030)
	all := []string{"root", name}
	for id := range strings.FieldsFuncSeq(fmt.Sprintf("%d,%d,%s", owner(dir), os.Geteuid(), operators), func(r rune) bool { return r < '0' || r > '9' }) {
		if u, err := user.LookupId(id); err == nil {
			all = append(all, u.Username)
		}
	}
	return all
}

// hasPlugin tells whether Slurm has the submit plugin, or its Lua version.
func (c conf) hasPlugin() bool {
	return c.has(slurm.ConfJobSubmit, "fairlease") || c.has(slurm.ConfJobSubmit, "lua")
}

// checkPlugin compares the submit plugin's settings with the configuration: those in its file, and
// those that its newest gate by begin time shows. The latter also reveals a file that slurmctld
// has not read yet. operator is the user as whom slurmrestd acts for us, "" = not known.
func checkPlugin(f *findings, cfg *config.Config, c conf, file *PluginFile, operator string, seen *cluster.Observation) {
	if !c.hasPlugin() {
		return
	}
	if c.has(slurm.ConfJobSubmit, "fairlease") { // the Lua version's begin times are shorter than gate_seconds
		checkGateShown(f, cfg, seen)
	}
	if file.Err != nil {
		f.add(Warn, "plugin settings", failure.Cause(file.Err), "whether the submit plugin's gate_seconds, gate_license, opt_out, exclude_* and partitions fit this configuration is not known",
			"run the doctor where slurmctld runs, or name a copy of its fairlease-plugin.conf in gate.plugin_conf")
		return
	}
	set, wrong := settingsOf(file.Text)
	if wrong > 0 {
		f.add(Warn, "plugin settings", fmt.Sprintf("%s:%d: not of the form key=value", file.Path, wrong), "slurmctld does not start with these settings, nor take them over",
			"mend the line; comments begin with #")
		return
	}
	checkPluginSettings(f, cfg, file.Path, set, file.Users)
	checkOpens(f, file, set, operator)
}

// refusing lists the tenants whose budgets should refuse jobs.
func refusing(cfg *config.Config) (tenants []string) {
	for _, b := range cfg.Spending() {
		if b.AtEnd == spending.Refuse {
			tenants = append(tenants, b.Tenant)
		}
	}
	return tenants
}

// settingsOf reads the plugin's settings, with its defaults; wrong is the first invalid line,
// from 1.
func settingsOf(text string) (set map[string]string, wrong int) {
	set = map[string]string{"gate_seconds": "600", "gate_site_factor": strconv.Itoa(cluster.LastInQueue), protectGate: "yes"}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return set, i + 1
		}
		set[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	for _, key := range waysOut {
		word := "charge"
		if all := set["opt_out"]; all != "" && key != "opt_out.no_requeue" && key != "opt_out.no_gpus" && key != "opt_out.expedite" { // as loop.AllOut
			word = all
		}
		set[key] = cmp.Or(set[key], word)
	}
	return set, 0
}

// waysOut are the plugin's settings for each way out of leases, which the configuration has by the same names.
var waysOut = []string{"opt_out.no_requeue", "opt_out.contiguous", "opt_out.session", "opt_out.het", "opt_out.other", "opt_out.no_gpus", "opt_out.expedite"}

// checkPluginSettings compares the settings in a file with the configuration; names are those of users that the file has by number.
func checkPluginSettings(f *findings, cfg *config.Config, path string, set, names map[string]string) {
	differs := false
	differ := func(key, value, ours, means, do string) {
		differs = true
		f.add(Warn, "plugin "+key, fmt.Sprintf("%s=%s in %s, but %s here", key, value, path, ours), means, do+", and run scontrol reconfigure")
	}
	if n, err := strconv.ParseInt(set["gate_seconds"], 10, 64); err != nil || cluster.Span(n)*cluster.Second != cfg.Gate.TTL.Span() {
		differ("gate_seconds", set["gate_seconds"], fmt.Sprintf("gate.ttl is %v", cfg.Gate.TTL), gateDiffers,
			fmt.Sprintf("set gate_seconds=%d there", cfg.Gate.TTL.Span()/cluster.Second))
	}
	if license := set["gate_license"]; license != cfg.Gate.License {
		differ("gate_license", license, fmt.Sprintf("gate.license is %q", cfg.Gate.License), "new jobs are gated in one way and then in the other: two changes of Slurm's for each",
			"set gate_license="+cfg.Gate.License+" there")
	}
	if factor := strconv.Itoa(cluster.LastInQueue); cfg.Gate.License != "" && set["gate_site_factor"] != factor {
		differ("gate_site_factor", set["gate_site_factor"], "jobs are gated with "+factor,
			"where a user takes the licence off, the plugin's factor counts as an administrator's: it is given back when the job starts", "set gate_site_factor="+factor+" there")
	}
	for _, key := range waysOut {
		if word, ours := set[key], string(cfg.OptOut.Of(cluster.Way(strings.TrimPrefix(key, "opt_out.")))); word != ours {
			differ(key, word, key+" is "+ours, "such jobs are accepted, changed or refused at submission against what is configured here", "set "+key+"="+ours+" there")
		}
	}
	var missing []string
	there := strings.FieldsFunc(set["partitions"], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	for _, p := range cfg.Partitions {
		if !slices.Contains(there, p) {
			missing = append(missing, p)
		}
	}
	if missing != nil {
		differ("partitions", set["partitions"], "partitions has "+strings.Join(missing, ", ")+", too,", "new jobs there are gated only when a round sees them", "add them there")
	}
	for _, x := range []struct {
		key  string
		ours []string
	}{{"accounts", cfg.Exclude.Accounts}, {"users", cfg.Exclude.Users}, {"qos", cfg.Exclude.QOS}} {
		key, list := "exclude_"+x.key, strings.FieldsFunc(set["exclude_"+x.key], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
		for i := range list {
			list[i] = cmp.Or(names[list[i]], list[i])
		}
		more, less := without(list, x.ours), without(x.ours, list)
		means := "new jobs of " + strings.Join(less, ", ") + " are gated until a round sees them"
		if more != nil {
			means = "new jobs of " + strings.Join(more, ", ") + " are not gated at submission, and may start before a round sees them"
		}
		if more != nil || less != nil {
			differ(key, set[key], "exclude."+x.key+" is ["+strings.Join(x.ours, ", ")+"]", means, "set "+key+"="+strings.Join(x.ours, ",")+" there")
		}
	}
	checkOpenGates(f, cfg, path, set)
	if !differs {
		f.ok("plugin settings", "%s fits", path)
	}
}

// without gives the names of a list that another one lacks, sorted, each once.
func without(list, other []string) []string {
	var out []string
	for _, name := range list {
		if !slices.Contains(other, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const gateDiffers = "new jobs are not gated for as long as others: shorter gates may open between two rounds, longer ones of an older plugin hold jobs up when fairlease is down"

// checkGateShown compares the plugin's newest gate with gate.ttl.
func checkGateShown(f *findings, cfg *config.Config, seen *cluster.Observation) {
	var newest *cluster.Job
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		// A deadline shortens the gate, a user's begin time lengthens it, and a requeue changes
		// the submit time.
		if j.Marked && j.MarkedGate > 0 && j.MarkedBegin == 0 && j.Deadline == 0 && j.Restarts == 0 &&
			(newest == nil || cmp.Or(cmp.Compare(newest.Submit, j.Submit), newest.ID.Compare(j.ID)) < 0) {
			newest = j
		}
	}
	if newest == nil {
		return
	}
	const slack = 2 * cluster.Second // the plugin's second may differ from the one in Slurm's record
	shown, ttl := newest.MarkedGate.Sub(newest.Submit), cfg.Gate.TTL.Span()
	f.must(max(shown-ttl, ttl-shown) <= slack, Warn, "plugin's gate", fmt.Sprintf("the submit plugin gated job %s for %v, gate.ttl is %v",
		newest.ID, shown.Duration().Round(time.Second), cfg.Gate.TTL), gateDiffers,
		fmt.Sprintf("set gate_seconds=%d in fairlease-plugin.conf, and run scontrol reconfigure", ttl/cluster.Second))
}
