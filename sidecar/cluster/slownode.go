package cluster

import "fmt"

// NodeSpeeds compare the nodes by how fast jobs run on them.
type NodeSpeeds struct {
	Runs []NodeRun  `json:"runs,omitempty"` // by job, then start
	Slow []SlowNode `json:"slow,omitempty"` // by node, then model
	GPUs []SlowGPU  `json:"gpus,omitempty"` // by node, then model, then index; their nodes are not slow
}

// NodeRun is the speed of an attempt of a job that had whole GPUs of one node to itself, by its progress reports.
type NodeRun struct {
	Job   JobKey  `json:"job"`
	Start Instant `json:"start,omitzero"` // of the attempt
	Ended Instant `json:"ended,omitempty"`
	Node  string  `json:"node"`
	Model string  `json:"model"`
	User  string  `json:"user"`
	Kind  Kind    `json:"kind"`
	Gang  int     `json:"gang"`            // GPUs of the job
	Index []int   `json:"index,omitempty"` // of these, if Slurm reports them
	// Steps, At and Suspended are those of the report at which the next sample begins.
	Steps     float64 `json:"steps,omitempty"`
	At        Instant `json:"at,omitzero"`
	Suspended Span    `json:"suspended,omitempty"`
	// Did is the steps of the samples, and Ran the time that they took. Older samples fade.
	Did float64 `json:"did,omitempty"`
	Ran Span    `json:"ran,omitempty"`
}

// SlowNode is a node whose GPUs of a model are slower than those of other nodes.
type SlowNode struct {
	Node    string  `json:"node"`
	Model   string  `json:"model"`
	Percent int     `json:"percent"` // its speed, of what is usual on other nodes
	Jobs    int     `json:"jobs"`    // that were compared
	Users   int     `json:"users"`   // of these jobs
	Since   Instant `json:"since,omitzero"`
}

// Says words how slow the node is.
func (n *SlowNode) Says() string {
	return fmt.Sprintf("%d jobs of %d users ran on the %s GPUs of %s at %d %% of their usual speed on other nodes", n.Jobs, n.Users, n.Model, n.Node, n.Percent)
}

// Drain gives the command by which an operator drains the node. fairlease never does.
func (n *SlowNode) Drain() string {
	return fmt.Sprintf(`scontrol update nodename=%s state=drain reason="slow: %d %% of the usual speed"`, n.Node, n.Percent)
}

// SlowGPU is a GPU that slows its jobs down on a node that is not slow otherwise. Jobs, Users, Percent and Since are of it.
type SlowGPU struct {
	SlowNode
	Index int `json:"index"`
}

// Says words how slow the GPU is.
func (g *SlowGPU) Says() string {
	return fmt.Sprintf("%d jobs of %d users ran with GPU %d of %s (%s) at %d %% of their usual speed on other nodes", g.Jobs, g.Users, g.Index, g.Node, g.Model, g.Percent)
}

// Drain gives the command by which an operator drains the node of the GPU: Slurm drains no single GPU.
func (g *SlowGPU) Drain() string {
	return fmt.Sprintf(`scontrol update nodename=%s state=drain reason="slow: GPU %d has %d %% of the usual speed"`, g.Node, g.Index, g.Percent)
}
