package cluster

import (
	compare "cmp"
	"slices"
)

// Mean is the mean of the samples of one counter. Count 0 means that no sample is known.
type Mean struct {
	Value float64 `json:"mean,omitempty"`
	Count int     `json:"count,omitempty"`
}

// Add takes one more sample.
func (m *Mean) Add(sample float64) {
	m.Count++
	m.Value += (sample - m.Value) / float64(m.Count)
}

// GPUUse is the activity of the GPUs of one model during one attempt of a job. Only GPUs that the job shares with
// no other job, and that have fresh counters, count. A sample is the mean over those GPUs at one look. Lists of it are
// sorted by Compare.
type GPUUse struct {
	Job   JobID   `json:"job"`
	Model string  `json:"model"`
	Start Instant `json:"start,omitzero"` // of the attempt
	GPUs  int     `json:"gpus"`           // with fresh counters at At
	// From and At are the times of the first and the newest sample; the age of all values is now - At.
	From Instant `json:"from,omitzero"`
	At   Instant `json:"at,omitzero"`
	// Ratios from 0 to 1: a kernel ran (Util), mean activity of the SMs, of the tensor pipes and of the memory's
	// interface.
	Util   Mean `json:"util,omitzero"`
	SM     Mean `json:"sm,omitzero"`
	Tensor Mean `json:"tensor,omitzero"`
	DRAM   Mean `json:"dram,omitzero"`
	// Power of one GPU in watts, clock of its SMs in hertz, and its PCIe reads in bytes per second.
	Power  Mean `json:"power,omitzero"`
	Clock  Mean `json:"clock,omitzero"`
	PCIeRX Mean `json:"pcie_rx,omitzero"`
	// Memory is the maximum in use on one GPU, in bytes; 0 = unknown.
	Memory int64 `json:"memory,omitempty"`
	// Idle is how many of the GPUs are idle at At. IdleSince is since when all of those have been idle without a
	// break; 0 = none is idle.
	Idle      int     `json:"idle,omitempty"`
	IdleSince Instant `json:"idle_since,omitempty"`
}

// Compare orders by job, then model.
func (u *GPUUse) Compare(o *GPUUse) int {
	return compare.Or(u.Job.Compare(o.Job), compare.Compare(u.Model, o.Model))
}

// MemoryUse is how much memory of a GPU jobs of a type used on one model. Lists of it are sorted by Compare.
type MemoryUse struct {
	Type  JobType `json:"type"`
	Model string  `json:"model"`
	Bytes int64   `json:"bytes"` // maximum on one GPU
	// Completed is true if a job completed there. Full is true if the last one failed while the memory was full, and none
	// has ever completed.
	Completed bool    `json:"completed,omitempty"`
	Full      bool    `json:"full,omitempty"`
	At        Instant `json:"at,omitzero"` // of the newest evidence
}

// Compare orders by type, then model.
func (u *MemoryUse) Compare(o *MemoryUse) int {
	return compare.Or(u.Type.Compare(o.Type), compare.Compare(u.Model, o.Model))
}

// MemoryOf gives the part of a sorted list that is of a type.
func MemoryOf(all []MemoryUse, kind JobType) []MemoryUse {
	from, _ := slices.BinarySearchFunc(all, kind, func(x MemoryUse, kind JobType) int { return x.Type.Compare(kind) })
	to := from
	for to < len(all) && all[to].Type == kind {
		to++
	}
	return all[from:to]
}

// GPUMemory is the memory of one GPU of a model.
type GPUMemory struct {
	Model string `json:"model"`
	Bytes int64  `json:"bytes"`
}
