package cluster

import compare "cmp"

// Completion is the run times of jobs of a kind that ended on one GPU model. Lists of it are sorted by CompareSubject.
type Completion struct {
	Kind  Kind   `json:"kind"`
	Model string `json:"model"`
	Gang  int    `json:"gang"` // GPUs of the job
	// Ran is the run times of the newest jobs, oldest first. A negative one is of a job whose work takes longer than
	// that: it was stopped, failed, or went on elsewhere. Replace it, never modify it.
	Ran []Span `json:"ran"`
	// Median is that of the time that the work takes, and Spread its standard error in the logarithm; 0 = too little is
	// known. Done counts the jobs in Ran that completed.
	Median Span    `json:"median,omitempty"`
	Spread float64 `json:"spread,omitempty"`
	Done   int     `json:"done,omitempty"`
	At     Instant `json:"at"` // of the newest job's end
}

// Usage is the GPU counters of jobs of a kind on one GPU model. Lists of it are sorted by CompareSubject.
type Usage struct {
	Kind  Kind    `json:"kind"`
	Model string  `json:"model"`
	Gang  int     `json:"gang"`
	At    Instant `json:"at"` // of the newest sample
	// Levels by counter, see GPUUse: PCIe reads, and the activity of the memory's interface and of the tensor pipes.
	PCIeRX Level `json:"pcie_rx,omitzero"`
	DRAM   Level `json:"dram,omitzero"`
	Tensor Level `json:"tensor,omitzero"`
}

// Level is the mean and standard deviation of the logarithm of a counter over jobs.
type Level struct {
	Jobs   int     `json:"jobs,omitempty"`
	Mean   float64 `json:"mean,omitempty"`
	Spread float64 `json:"spread,omitempty"`
}

// CompareSubject orders by kind, gang, model.
func (c *Completion) CompareSubject(o *Completion) int {
	return compare.Or(compare.Compare(c.Kind, o.Kind), compare.Compare(c.Gang, o.Gang), compare.Compare(c.Model, o.Model))
}

// CompareSubject orders by kind, gang, model.
func (u *Usage) CompareSubject(o *Usage) int {
	return compare.Or(compare.Compare(u.Kind, o.Kind), compare.Compare(u.Gang, o.Gang), compare.Compare(u.Model, o.Model))
}
