package admit

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

var accounts = []cluster.Account{{Name: "nlp", Parent: "root"}, {Name: "root"}, {Name: "speech", Parent: "nlp"}, {Name: "vision", Parent: "root"}}

// open makes the book of a site with the rules of partitions; partition free has none.
func open(partitions ...cluster.Partition) *Book {
	var b Book
	b.Open(cluster.Admit(partitions, accounts))
	return &b
}

func gpu(r cluster.Rules) cluster.Partition { return cluster.Partition{Name: "gpu", Rules: r} }

func job(account string) *cluster.Job {
	return &cluster.Job{Account: account, QOS: "normal", Partitions: []string{"gpu"}, Limit: cluster.Hour, Request: cluster.Request{GPUs: 1, Nodes: 1, CPUs: 4}}
}

// Each rule of a partition, for a job of account speech, below nlp: one hour, one node or more, 4 CPUs.
func TestRulesOfAPartition(t *testing.T) {
	for _, c := range []struct {
		name string
		p    cluster.Partition
		job  func(*cluster.Job)
		why  string // "" = it may start
	}{
		{"none", gpu(cluster.Rules{}), nil, ""},
		{"down", gpu(cluster.Rules{Closed: "DOWN"}), nil, "State=DOWN"},
		{"for reservations", gpu(cluster.Rules{NamedOnly: true}), nil, "ReqResv=YES"},
		{"its account is allowed", gpu(cluster.Rules{AllowAccounts: []string{"speech"}}), nil, ""},
		{"the account above it is allowed", gpu(cluster.Rules{AllowAccounts: []string{"nlp"}}), nil, ""},
		{"another is allowed", gpu(cluster.Rules{AllowAccounts: []string{"vision"}}), nil, "AllowAccounts=vision"},
		{"an unknown account", gpu(cluster.Rules{AllowAccounts: []string{"vision"}}), func(j *cluster.Job) { j.Account = "new" }, "AllowAccounts=vision"},
		{"its account is denied", gpu(cluster.Rules{DenyAccounts: []string{"speech"}}), nil, "DenyAccounts=speech"},
		{"the account above it is denied", gpu(cluster.Rules{DenyAccounts: []string{"nlp"}}), nil, "DenyAccounts=nlp"},
		{"allowed and denied: only the former counts", gpu(cluster.Rules{AllowAccounts: []string{"nlp"}, DenyAccounts: []string{"speech"}}), nil, ""},
		{"its QOS is allowed", gpu(cluster.Rules{AllowQOS: []string{"high", "normal"}}), nil, ""},
		{"another QOS is allowed", gpu(cluster.Rules{AllowQOS: []string{"high"}}), nil, "AllowQos=high"},
		{"its QOS is denied", gpu(cluster.Rules{DenyQOS: []string{"high", "normal"}}), nil, "DenyQos=high,normal"},
		{"no QOS", gpu(cluster.Rules{AllowQOS: []string{"high"}}), func(j *cluster.Job) { j.QOS = "" }, ""},
		{"as long as may be", cluster.Partition{Name: "gpu", MaxTime: cluster.Hour}, nil, ""},
		{"too long", cluster.Partition{Name: "gpu", MaxTime: 59 * cluster.Minute}, nil, "MaxTime=00:59:00"},
		{"without a limit", cluster.Partition{Name: "gpu", MaxTime: cluster.Hour}, func(j *cluster.Job) { j.Limit = 0 }, "MaxTime=01:00:00"},
		{"too wide", gpu(cluster.Rules{MaxNodes: 2}), func(j *cluster.Job) { j.Request.Nodes = 3 }, "MaxNodes=2"},
		{"too narrow", gpu(cluster.Rules{MinNodes: 2}), nil, "MinNodes=2"},
		{"may be wide enough", gpu(cluster.Rules{MinNodes: 2}), func(j *cluster.Job) { j.Request.MaxNodes = 2 }, ""},
		{"too many CPUs on its node", gpu(cluster.Rules{CPUsPerNode: 3}), func(j *cluster.Job) { j.Request.MaxNodes = 1 }, "MaxCPUsPerNode=3"},
		{"its CPUs may be spread", gpu(cluster.Rules{CPUsPerNode: 3}), nil, ""},
		{"too many CPUs for its GPUs on a node", gpu(cluster.Rules{CPUsPerNode: 3}), func(j *cluster.Job) { j.Request.GPUs, j.Request.PerNode, j.Request.CPUs = 4, 2, 8 }, "MaxCPUsPerNode=3"},
	} {
		j := job("speech")
		if c.job != nil {
			c.job(j)
		}
		b := open(c.p, cluster.Partition{Name: "other", MaxTime: cluster.Minute})
		for range 2 { // the second answer comes from the cache
			gate, why := b.Of(j)
			switch {
			case c.why == "" && (why != "" || gate != nil && len(gate.Partitions) != 1):
				t.Errorf("%s: %q, %+v; want that it may start", c.name, why, gate)
			case c.why != "" && (gate != nil || !strings.HasPrefix(why, "partition gpu has "+c.why+"; ") || !strings.Contains(why, "scontrol")):
				t.Errorf("%s: %q, want partition gpu's %s", c.name, why, c.why)
			}
		}
	}
}

// A job that names several partitions may start in those that let it in, with the width that these allow.
func TestSeveralPartitions(t *testing.T) {
	b := open(cluster.Partition{Name: "closed", Rules: cluster.Rules{Closed: "DOWN"}}, cluster.Partition{Name: "narrow", Rules: cluster.Rules{MaxNodes: 1}},
		cluster.Partition{Name: "short", MaxTime: cluster.Minute, Rules: cluster.Rules{MaxNodes: 4}})
	for _, c := range []struct {
		names, limit, want string
		nodes              int
	}{
		{"closed,narrow", "", "narrow", 1},
		{"closed,narrow,short", "", "narrow", 1},
		{"narrow,short", "00:01", "narrow,short", 4},
		{"free,narrow", "", "free,narrow", 0},
		{"closed,free", "", "free", 0},
		{"closed", "", "", 0},
	} {
		j := job("nlp")
		if j.Partitions = strings.Split(c.names, ","); c.limit != "" {
			j.Limit = cluster.Minute
		}
		gate, why := b.Of(j)
		if c.want == "" {
			if gate != nil || why == "" {
				t.Errorf("-p %s: %+v", c.names, gate)
			}
			continue
		}
		if why != "" || gate == nil || strings.Join(gate.Partitions, ",") != c.want || gate.MaxNodes != c.nodes {
			t.Errorf("-p %s: %+v, %q; want %s, at most %d nodes", c.names, gate, why, c.want, c.nodes)
		}
	}
}

// Without rules no job costs anything.
func TestNoRules(t *testing.T) {
	b := open(gpu(cluster.Rules{}))
	if gate, why := b.Of(job("nlp")); gate != nil || why != "" || b.rules != nil {
		t.Errorf("%+v, %q", gate, why)
	}
	b = open(cluster.Partition{Name: "gpu", MaxTime: cluster.Day})
	j := job("nlp")
	if n := testing.AllocsPerRun(100, func() { b.Of(j) }); n > 0 {
		t.Errorf("a job that is like others costs %v allocations", n)
	}
}

// An account tree with a cycle ends.
func TestABrokenTree(t *testing.T) {
	var b Book
	b.Open(cluster.Admit([]cluster.Partition{gpu(cluster.Rules{AllowAccounts: []string{"vision"}})}, []cluster.Account{{Name: "a", Parent: "b"}, {Name: "b", Parent: "a"}}))
	if _, why := b.Of(job("a")); why == "" {
		t.Error("it may start")
	}
}
