package testcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Suites are the Debian suites that a cluster can be made of, oldest Slurm first.
var Suites = []string{"trixie", "forky"} // Slurm 24.11, 26.05

// Options say what the cluster looks like; the zero value is a good one (see withDefaults).
type Options struct {
	// Name tells clusters on one machine apart; empty means a fresh, unused one.
	Name string `json:"name,omitempty"`
	// Suite is a Debian suite, one of Suites; default forky.
	Suite string `json:"suite,omitempty"`
	// Dir is where clusters keep their run-time files, one folder each; default <temp>/fairlease. Keep it short: a unix socket's path ends at 107 bytes.
	Dir string `json:"dir,omitempty"`
	// Cache is where base trees are kept; default $XDG_CACHE_HOME/fairlease-test or /var/cache/fairlease-test.
	Cache string `json:"cache,omitempty"`

	Nodes      []NodeGroup `json:"nodes,omitempty"`      // default v[1-2] with 4 v100 and k[1-2] with 4 k80 each
	Partitions []Partition `json:"partitions,omitempty"` // default gpu (the default one) and free, both on all nodes
	Accounts   []Account   `json:"accounts,omitempty"`   // default nlp (alice, carol) and vision (bob), 1 share each; parents come before children
	QOS        []QOS       `json:"qos,omitempty"`        // added to normal and allowed to all accounts

	Plugin     Plugin `json:"plugin,omitempty"`      // default PluginNone
	PluginConf string `json:"plugin_conf,omitempty"` // text of fairlease-plugin.conf; empty: partitions=gpu and short times

	// JWT has slurmrestd accept tokens of auth/jwt, and nothing else.
	JWT bool `json:"jwt,omitempty"`

	// Backup adds a second slurmctld, on a host of its own name, that takes over from the first.
	Backup bool `json:"backup,omitempty"`
	// Clock has slurmctld read a clock that MoveClock moves.
	Clock bool `json:"clock,omitempty"`
	// Freezer has slurmd freeze the processes of suspended jobs (proctrack/cgroup), on a machine that HasFreezer.
	Freezer bool `json:"freezer,omitempty"`

	ClusterName string `json:"cluster_name,omitempty"` // of slurm.conf; default fairlease

	KillWait  int       `json:"kill_wait,omitempty"`   // seconds between SIGTERM and SIGKILL; default 3
	MinJobAge int       `json:"min_job_age,omitempty"` // seconds that a finished job stays listed; default 300
	Scheduler string    `json:"scheduler,omitempty"`   // SchedulerParameters; default has short intervals
	Tres      string    `json:"tres,omitempty"`        // AccountingStorageTRES; default gres/gpu, every gres/gpu:MODEL, and gres/shard and gres/mps where there are some
	Topology  string    `json:"topology,omitempty"`    // text of topology.conf, for topology/tree; empty: no topology
	ExtraConf string    `json:"extra_conf,omitempty"`  // further lines of slurm.conf
	Attached  bool      `json:"-"`                     // the cluster ends with this process, however that ends
	Progress  io.Writer `json:"-"`                     // lines about slow steps; nil: silent
}

// NodeGroup is Count like nodes named Prefix1 to PrefixCount.
type NodeGroup struct {
	Prefix   string `json:"prefix"`
	Count    int    `json:"count"`
	Model    string `json:"model"`               // GRES type of the GPUs
	GPUs     int    `json:"gpus"`                // on each node; 0: a node without GPUs
	Shards   int    `json:"shards,omitempty"`    // on each node; default two on each GPU, -1: none
	MPS      int    `json:"mps,omitempty"`       // gres/mps on each node; such nodes have no shards by default
	CPUs     int    `json:"cpus,omitempty"`      // default 16
	MemoryMB int    `json:"memory_mb,omitempty"` // default 64000
	Extra    string `json:"extra,omitempty"`     // more words of the NodeName line, as Feature=nvlink
}

// Partition of slurm.conf.
type Partition struct {
	Name    string `json:"name"`
	Nodes   string `json:"nodes,omitempty"` // host list; default ALL
	Default bool   `json:"default,omitempty"`
	Extra   string `json:"extra,omitempty"` // more words of its line
}

// Account with its users, each of whom gets a unix user and a home in the cluster.
type Account struct {
	Name   string   `json:"name"`
	Parent string   `json:"parent,omitempty"` // default root
	Shares int      `json:"shares,omitempty"` // default 1
	Users  []string `json:"users,omitempty"`  // one may be named in several accounts; the first is its default
}

// QOS with its limits as sacctmgr words, as "Priority=1000 GrpTRES=gres/gpu=4".
type QOS struct {
	Name  string `json:"name"`
	Words string `json:"words,omitempty"`
}

// Plugin is what the cluster's slurmctld loads as its job_submit plugin, and with PluginC the SPANK plugin beside it.
type Plugin string

// The plugins that there are.
const (
	PluginNone Plugin = "none"
	PluginC    Plugin = "c"   // those in slurmplugin, built against this cluster's Slurm
	PluginLua  Plugin = "lua" // contrib/job_submit.lua
)

// Operator is the cluster's user that slurmrestd runs as: operator in Slurm, nobody elsewhere.
const Operator = "restd"

// PluginConf is what fairlease-plugin.conf has by default. Users may open gates, since fairlease must stand that, too.
const PluginConf = `partitions=gpu
default_partition=gpu
gate_seconds=600
heartbeat_dir=/run/fairlease
heartbeat_max_age=60
protect_gate=no
`

func (o Options) withDefaults() (Options, error) {
	setDefault(&o.Suite, "forky")
	setDefault(&o.Dir, filepath.Join(os.TempDir(), "fairlease"))
	if o.Cache == "" {
		o.Cache = DefaultCache()
	}
	if o.Nodes == nil {
		o.Nodes = []NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}, {Prefix: "k", Count: 2, Model: "k80", GPUs: 4}}
	}
	o.Nodes = slices.Clone(o.Nodes)
	for i := range o.Nodes {
		n := &o.Nodes[i]
		setDefault(&n.CPUs, 16)
		setDefault(&n.MemoryMB, 64000)
		if n.MPS == 0 {
			setDefault(&n.Shards, 2*n.GPUs)
		}
	}
	if o.Partitions == nil {
		o.Partitions = []Partition{{Name: "gpu", Default: true}, {Name: "free"}}
	}
	if o.Accounts == nil {
		o.Accounts = []Account{{Name: "nlp", Users: []string{"alice", "carol"}}, {Name: "vision", Users: []string{"bob"}}}
	}
	setDefault(&o.Plugin, PluginNone)
	setDefault(&o.PluginConf, PluginConf)
	setDefault(&o.ClusterName, "fairlease")
	setDefault(&o.KillWait, 3)
	setDefault(&o.MinJobAge, 300)
	setDefault(&o.Scheduler, "sched_interval=5,bf_interval=5,bf_continue,bf_max_job_test=2000,default_queue_depth=2000")
	if o.Tres == "" {
		o.Tres = defaultTres(o.Nodes)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o, o.check()
}

// DefaultCache is the folder of base trees when Options name none.
func DefaultCache() string {
	if xdg := os.Getenv("XDG_CACHE_HOME"); xdg != "" {
		return filepath.Join(xdg, "fairlease-test")
	}
	return "/var/cache/fairlease-test"
}

func defaultTres(groups []NodeGroup) string {
	tres := []string{"gres/gpu"}
	for _, g := range groups {
		if typed := "gres/gpu:" + g.Model; g.GPUs > 0 && !slices.Contains(tres, typed) {
			tres = append(tres, typed)
		}
	}
	if slices.ContainsFunc(groups, func(g NodeGroup) bool { return g.Shards > 0 }) {
		tres = append(tres, "gres/shard")
	}
	if slices.ContainsFunc(groups, func(g NodeGroup) bool { return g.MPS > 0 }) {
		tres = append(tres, "gres/mps")
	}
	return strings.Join(tres, ",")
}

// Names end up in shell words, host lists and slurm.conf: keep them plain.
var plain = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`)

// model is a GPU model as Slurm names it: also 1g.10gb, an instance of a GPU.
var model = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,30}$`)

func (o Options) check() error {
	var errs []error
	name := func(what, s string) {
		if !plain.MatchString(s) {
			errs = append(errs, fmt.Errorf("%s %q: use lower case letters, digits, - and _, at most 31, a letter first", what, s))
		}
	}
	if o.Name != "" {
		name("cluster name", o.Name)
	}
	if !slices.Contains(Suites, o.Suite) {
		errs = append(errs, fmt.Errorf("suite %q: use one of %s", o.Suite, strings.Join(Suites, ", ")))
	}
	if !slices.Contains([]Plugin{PluginNone, PluginC, PluginLua}, o.Plugin) {
		errs = append(errs, fmt.Errorf("plugin %q: use none, c or lua", o.Plugin))
	}
	for _, n := range o.Nodes {
		name("node prefix", n.Prefix)
		if n.GPUs > 0 && !model.MatchString(n.Model) {
			errs = append(errs, fmt.Errorf("GPU model %q: use lower case letters, digits, -, _ and ., at most 31, a letter or digit first", n.Model))
		}
		if n.Count < 1 || n.GPUs < 0 {
			errs = append(errs, fmt.Errorf("node group %q: needs one node or more and no negative GPUs", n.Prefix))
		}
		if n.GPUs > 0 && n.Shards > 0 && n.Shards%n.GPUs != 0 {
			errs = append(errs, fmt.Errorf("node group %q: %d shards do not spread evenly over %d GPUs", n.Prefix, n.Shards, n.GPUs))
		}
		if n.MPS < 0 || n.MPS > 0 && (n.GPUs == 0 || n.MPS%n.GPUs != 0) {
			errs = append(errs, fmt.Errorf("node group %q: gres/mps of %d does not spread evenly over %d GPUs", n.Prefix, n.MPS, n.GPUs))
		}
	}
	for _, p := range o.Partitions {
		name("partition", p.Name)
	}
	for _, a := range o.Accounts {
		name("account", a.Name)
		for _, u := range a.Users {
			name("user", u)
		}
	}
	for _, q := range o.QOS {
		name("QOS", q.Name)
	}
	return errors.Join(errs...)
}

// users are the people of all accounts, each once, in the order named.
func (o Options) users() []string {
	var users []string
	for _, a := range o.Accounts {
		for _, u := range a.Users {
			if !slices.Contains(users, u) {
				users = append(users, u)
			}
		}
	}
	return users
}

// nodeNames lists every node of every group.
func (o Options) nodeNames() []string {
	var names []string
	for _, g := range o.Nodes {
		for i := range g.Count {
			names = append(names, fmt.Sprintf("%s%d", g.Prefix, i+1))
		}
	}
	return names
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
