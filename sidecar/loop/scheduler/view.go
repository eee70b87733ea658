// Package scheduler asks the programs by which sites order the jobs of virtual clusters (HiveD §4). A program reads a View from its standard
// input and writes an answer to its standard output, both JSON. The answer is data for a later round, as an allocation is.
package scheduler

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// View is what a virtual cluster's own scheduler sees: its cells and its jobs. Times are Unix times in seconds, and spans are in seconds.
type View struct {
	Version int                `json:"version"` // of this format: 1
	VC      string             `json:"vc"`      // the tenant, too
	Now     int64              `json:"now"`
	Term    int64              `json:"term"` // length of a lease
	Cells   []cluster.CellView `json:"cells"`
	Nodes   []Node             `json:"nodes"` // with cells of the kinds that the virtual cluster has
	Jobs    []Job              `json:"jobs"`  // that run or could start, in order of arrival
}

// Node is a healthy node. Whether the virtual cluster may have GPUs of it depends on its cells.
type Node struct {
	Name  string           `json:"name"`
	Model string           `json:"model"`
	GPUs  int              `json:"gpus"`
	Own   cluster.GPUCount `json:"own"`   // held by guaranteed leases of this virtual cluster
	Taken cluster.GPUCount `json:"taken"` // held by others; lent GPUs are not counted
}

// Job is a job of the virtual cluster.
type Job struct {
	Job       cluster.JobKey     `json:"job"` // its name in the answer; unlike Slurm's id it is never used again
	ID        string             `json:"id"`  // in Slurm
	User      string             `json:"user"`
	Name      string             `json:"name,omitempty"`
	QOS       string             `json:"qos,omitempty"`
	Partition string             `json:"partition,omitempty"`
	Level     int                `json:"level"` // of its QOS
	GPUs      cluster.GPUCount   `json:"gpus"`
	Nodes     int                `json:"nodes,omitempty"`    // that it asks for; 0 = any number
	PerNode   int                `json:"per_node,omitempty"` // GPUs
	Model     string             `json:"model,omitempty"`    // that it asks for; "" = any
	Submitted int64              `json:"submitted"`          // when it could first have started
	Waited    int64              `json:"waited"`             // since then, without its run time
	Ran       int64              `json:"ran"`                // in all its attempts
	Received  int64              `json:"received"`           // GPU-seconds
	Limit     int64              `json:"limit,omitempty"`    // time limit; 0 = none
	Lease     cluster.LeaseClass `json:"lease,omitempty"`    // of the lease that it holds; "" = none
	On        []string           `json:"on,omitempty"`       // nodes of its lease
	OnModel   string             `json:"on_model,omitempty"`
	Ends      int64              `json:"ends,omitempty"` // end of its term
}

// Views returns the view of every virtual cluster that has a scheduler of its own, after the decision of a round.
func Views(s *cluster.Snapshot, p *cluster.Plan) []View {
	if s.Cells == nil || p.Cells == nil || !slices.ContainsFunc(s.Cells.VCs, func(x cluster.VC) bool { return x.Scheduler != nil }) {
		return nil
	}
	leases := make(map[cluster.JobKey]*cluster.Lease, len(p.State.Leases))
	for i := range p.State.Leases {
		leases[p.State.Leases[i].Job] = &p.State.Leases[i]
	}
	records := make(map[cluster.JobKey]*cluster.Record, len(p.State.Records))
	for i := range p.State.Records {
		records[p.State.Records[i].Key] = &p.State.Records[i]
	}
	held := holders(s, leases)
	var out []View
	for i := range s.Cells.VCs {
		x := &s.Cells.VCs[i]
		if x.Scheduler == nil {
			continue
		}
		v := View{Version: 1, VC: x.Name, Now: seconds(s.Now), Term: int64(s.Settings.Term / cluster.Second), Cells: []cluster.CellView{}, Nodes: []Node{}, Jobs: []Job{}}
		for _, c := range p.Cells.Views {
			if c.VC == x.Name {
				v.Cells = append(v.Cells, c)
			}
		}
		v.nodes(s, held)
		levels := x.Levels
		if levels == nil {
			levels = s.Settings.Levels
		}
		for k := range s.Cases {
			c := &s.Cases[k]
			if r := records[c.Record.Key]; r != nil && r.Tenant == x.Name && listed(c, s.Now) {
				v.Jobs = append(v.Jobs, jobOf(s.Now, c, r, leases[r.Key], levels))
			}
		}
		out = append(out, v)
	}
	return out
}

// seconds is a Unix time in seconds; 0 = unknown.
func seconds(t cluster.Instant) int64 { return int64(t) / int64(cluster.Second) }

// listed reports whether a job runs or could start, under leases.
func listed(c *cluster.Case, now cluster.Instant) bool {
	if c.Gone || c.Control == cluster.Unmanaged {
		return false
	}
	return c.Job.Started() || c.Job.State == cluster.Waiting && c.Job.Inactive == "" && c.Record.UserBegin <= now
}

func jobOf(now cluster.Instant, c *cluster.Case, r *cluster.Record, l *cluster.Lease, levels []cluster.QOSLevel) Job {
	j, ran := &c.Job, r.Ran
	if j.Started() {
		ran += max(now.Sub(j.Start)-j.Suspend, 0)
	}
	out := Job{Job: r.Key, ID: r.ID.String(), User: r.User, Name: r.Name, QOS: j.QOS, GPUs: j.Request.Size.Count(), Nodes: j.Request.Nodes, PerNode: j.Request.PerNode,
		Model: j.Request.Model, Submitted: seconds(r.First), Ran: int64(ran / cluster.Second), Received: int64(r.Alloc) / int64(cluster.Second), Limit: int64(j.Limit / cluster.Second)}
	if r.First > 0 {
		out.Waited = int64(max(now.Sub(r.First)-ran, 0) / cluster.Second)
	}
	if len(j.Partitions) > 0 {
		out.Partition = j.Partitions[0]
	}
	for _, of := range levels {
		if of.QOS == j.QOS {
			out.Level = of.Level
		}
	}
	if l != nil {
		out.Lease, out.OnModel, out.Ends = l.Class, l.Pool, seconds(l.End)
		for _, h := range l.Nodes {
			out.On = append(out.On, h.Node)
		}
	}
	return out
}

// hold is a node and the virtual cluster whose guaranteed leases hold GPUs of it; "" = any holder, and jobs without a lease.
type hold struct{ node, vc string }

// holders counts GPUs by node and holder, without those that are lent.
func holders(s *cluster.Snapshot, leases map[cluster.JobKey]*cluster.Lease) map[hold]cluster.GPUCount {
	out := map[hold]cluster.GPUCount{}
	for i := range s.Cases {
		c := &s.Cases[i]
		holds, vc := c.Job.Holds, ""
		if l := leases[c.Record.Key]; l != nil {
			if l.Class == cluster.Opportunistic {
				continue
			}
			holds, vc = l.Nodes, c.Record.Tenant
		}
		for _, h := range holds {
			if out[hold{node: h.Node}] += h.Size.Count(); vc != "" {
				out[hold{h.Node, vc}] += h.Size.Count()
			}
		}
	}
	return out
}

// nodes lists the nodes in cells whose GPU model the virtual cluster has cells with.
func (v *View) nodes(s *cluster.Snapshot, held map[hold]cluster.GPUCount) {
	child, models := map[string]cluster.CellType{}, map[string]bool{}
	for _, t := range s.Cells.Types {
		child[t.Name] = t
	}
	for _, c := range v.Cells {
		t := child[c.Type]
		for t.Child != "" {
			t = child[t.Child]
		}
		models[t.Model] = true
	}
	for _, top := range s.Cells.Tops {
		for _, name := range top.Nodes {
			at, ok := slices.BinarySearchFunc(s.Nodes, name, func(n cluster.Node, name string) int { return strings.Compare(n.Name, name) })
			if !ok || s.Nodes[at].Bad != "" {
				continue
			}
			for _, g := range s.Nodes[at].GPUs {
				if own := held[hold{name, v.VC}]; models[g.Model] {
					v.Nodes = append(v.Nodes, Node{Name: name, Model: g.Model, GPUs: g.Count, Own: own, Taken: held[hold{node: name}] - own})
				}
			}
		}
	}
}
