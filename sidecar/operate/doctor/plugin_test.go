package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// The submit plugin's settings are compared with the configuration, wherever they are visible.
func TestPluginSettings(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, "fairlease-plugin.conf")
	packaged, err := os.ReadFile("../../../slurmplugin/fairlease-plugin.conf")
	if err != nil {
		t.Fatal(err)
	}
	good := strings.Replace(string(packaged), "\ngate_license=\n", "\ngate_license=fairlease\n", 1)
	for _, c := range []struct {
		name, plugin, text string
		change             func(*config.Config)
		want               string
	}{
		{"packaged, with the licence", "fairlease", good, nil, "plugin settings ok"},
		{"as packaged: begin times", "fairlease", string(packaged), nil, "plugin gate_license warn"},
		{"as packaged, and so here", "lua", string(packaged), func(c *config.Config) { c.Gate.License = "" }, "plugin settings ok"},
		{"another gate.ttl", "fairlease", good, func(c *config.Config) { c.Gate.TTL = config.Duration(5 * cluster.Minute) }, "plugin gate_seconds warn"},
		{"another gate.ttl, and the twin", "lua", good, func(c *config.Config) { c.Gate.TTL = config.Duration(5 * cluster.Minute) }, "plugin gate_seconds warn"},
		{"other gate_seconds", "fairlease", "partitions = gpu\n gate_license =fairlease\ngate_seconds = 300 \n", nil, "plugin gate_seconds warn"},
		{"its defaults", "fairlease", "partitions=gpu\ngate_license=fairlease\n#gate_seconds=300\n", nil, "plugin settings ok"},
		{"another site factor", "lua", strings.Replace(good, "gate_site_factor=-1000000000", "gate_site_factor=-50", 1), nil, "plugin gate_site_factor warn"},
		{"a site factor without a licence", "fairlease", strings.Replace(string(packaged), "gate_site_factor=-1000000000", "gate_site_factor=-50", 1),
			func(c *config.Config) { c.Gate.License = "" }, "plugin settings ok"},
		{"another opt_out", "fairlease", good, func(c *config.Config) { c.OptOut.Het = "refuse" }, "plugin opt_out.het warn"},
		{"an account is excluded there", "fairlease", strings.Replace(good, "\nexclude_accounts=\n", "\nexclude_accounts=ops\n", 1), nil, "plugin exclude_accounts warn"},
		{"an account is excluded here", "lua", good, func(c *config.Config) { c.Exclude.Accounts = []string{"ops"} }, "plugin exclude_accounts warn"},
		{"a QOS and a user are excluded there", "fairlease", strings.NewReplacer("exclude_qos=\n", "exclude_qos=debug\n", "exclude_users=\n", "exclude_users=dave\n").Replace(good), nil,
			"plugin exclude_users warn, plugin exclude_qos warn"},
		{"the same are excluded", "fairlease", strings.NewReplacer("exclude_qos=\n", "exclude_qos=debug, free\n", "exclude_users=\n", "exclude_users=0,dave,987654\n").Replace(good),
			func(c *config.Config) {
				c.Exclude.QOS, c.Exclude.Users = []string{"free", "debug"}, []string{"root", "dave", "987654"}
			}, "plugin settings ok"},
		{"a partition more here", "fairlease", good, func(c *config.Config) { c.Partitions = []string{"gpu", "big"} }, "plugin partitions warn"},
		{"a partition more there", "fairlease", strings.Replace(good, "\npartitions=gpu\n", "\npartitions=big, gpu\n", 1), nil, "plugin settings ok"},
		{"a comment without its #", "fairlease", good + "so they are\n", nil, "plugin settings warn"},
		{"no file", "fairlease", "", nil, "plugin settings warn"},
		{"a copy of it", "fairlease", "", func(c *config.Config) { c.Gate.PluginConf = filepath.Join(dir, "copy") }, "plugin settings ok"},
		{"no plugin", "(null)", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, filepath.Join(dir, "copy"), good)
			if c.text == "" {
				_ = os.Remove(beside)
			} else {
				write(t, beside, c.text)
			}
			cfg := config.Default()
			if c.change != nil {
				c.change(cfg)
			}
			conf := map[string]string{slurm.ConfJobSubmit: c.plugin, slurm.ConfFile: filepath.Join(dir, "slurm.conf")}
			seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: conf}, Plugin: doctor.ReadPlugin(cfg, conf), Sighting: &cluster.Observation{}}}
			found := named(doctor.Check(cfg, seen), "plugin")
			if d := cmp.Diff(c.want, levels(t, found)); d != "" {
				t.Errorf("%s\n%+v", d, found)
			}
		})
	}
}

// The plugin's actual gate is visible in the newest job that it gated by a begin time.
func TestPluginsGateAsJobsShowIt(t *testing.T) {
	const at cluster.Instant = 1_800_000_000_000
	gated := func(id int64, submit, gate cluster.Span, change func(*cluster.Job)) cluster.Job {
		j := cluster.Job{ID: cluster.JobID{ID: id}, Submit: at.Add(submit), Marked: true, MarkedGate: at.Add(submit + gate)}
		if change != nil {
			change(&j)
		}
		return j
	}
	ttl := config.Default().Gate.TTL.Span()
	odd := []cluster.Job{
		gated(50, cluster.Hour, ttl/2, func(j *cluster.Job) { j.Marked = false }),
		gated(51, cluster.Hour, ttl/2, func(j *cluster.Job) { j.Deadline = at.Add(2 * cluster.Hour) }),
		gated(52, cluster.Hour, 2*ttl, func(j *cluster.Job) { j.MarkedBegin = at.Add(cluster.Hour + 2*ttl) }),
		gated(53, cluster.Hour, -ttl, func(j *cluster.Job) { j.Restarts = 1 }),
	}
	for _, c := range []struct {
		name string
		jobs []cluster.Job
		want string
	}{
		{"nobody was gated", nil, ""},
		{"only such as tell nothing", odd, ""},
		{"as configured", append([]cluster.Job{gated(1, 0, ttl, nil)}, odd...), "plugin's gate ok"},
		{"a second later", []cluster.Job{gated(1, 0, ttl-cluster.Second, nil)}, "plugin's gate ok"},
		{"shorter", []cluster.Job{gated(1, 0, ttl/2, nil)}, "plugin's gate warn"},
		{"longer", []cluster.Job{gated(1, 0, 2*ttl, nil)}, "plugin's gate warn"},
		{"shorter until a reconfigure", []cluster.Job{gated(2, cluster.Minute, ttl, nil), gated(1, 0, ttl/2, nil)}, "plugin's gate ok"},
		{"shorter since a reconfigure", []cluster.Job{gated(2, cluster.Minute, ttl/2, nil), gated(1, 0, ttl, nil)}, "plugin's gate warn"},
	} {
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: good()}, Sighting: &cluster.Observation{Jobs: c.jobs}}}
		if d := cmp.Diff(c.want, levels(t, named(doctor.Check(config.Default(), seen), "plugin's gate"))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
