package cluster

import (
	compare "cmp"
	"math"
	"slices"
)

// Completion is the run times of a kind's jobs that ended, and the rates by them. Lists of it are sorted by
// CompareSubject.
type Completion struct {
	Kind Kind `json:"kind"`
	Gang int  `json:"gang"` // GPUs of the job
	// Models are the GPU models on which they ran, sorted; see Spread. Rates are by model.
	Models []string  `json:"models"`
	Rates  []RunRate `json:"rates"`
	// Jobs are the jobs that began last on each model, in the order in which they ended. Replace it, never modify it.
	Jobs []JobRun `json:"jobs"`
	At   Instant  `json:"at,omitzero"` // of the newest job's end
}

// JobRun is the run time of a job on each model, without what stops cost it. Unless it is Done, its work takes longer.
// Since is when it began, had it run without a break. Began is the model on which it began, of a job that moved; Back
// tells whether it ended there again. Chosen jobs may be on their model by a choice of their users, who give some models more work: they count in no bounds.
type JobRun struct {
	Ran    []Span  `json:"ran"`
	Done   bool    `json:"done,omitempty"`
	Since  Instant `json:"since,omitempty"`
	Began  string  `json:"began,omitempty"`
	Back   bool    `json:"back,omitempty"`
	Chosen bool    `json:"chosen,omitempty"`
}

// Stayed tells whether the job did all its work on one model.
func (j *JobRun) Stayed() bool { return j.Done && j.Began == "" }

// First gives the index of the model on which the job began.
func (j *JobRun) First(models []string) int {
	if at := slices.Index(models, j.Began); at >= 0 {
		return at
	}
	return max(slices.IndexFunc(j.Ran, func(t Span) bool { return t > 0 }), 0)
}

// RunRate is the rate of a kind on a model by run times, in jobs per second; 0 = too little is known. Spread is its standard error
// in the logarithm, and Jobs the number of completed jobs that did a fair part of their work there.
type RunRate struct {
	Rate   float64 `json:"rate,omitempty"`
	Spread float64 `json:"spread,omitempty"`
	Jobs   int     `json:"jobs,omitempty"`
	// Least is the lower bound of its ratio to the rate on each model, by model, by two standard errors; jobs that still run are
	// considered. The upper one is 1 over the other model's. nil = unknown.
	Least []float64 `json:"least,omitempty"`
}

// Ratio gives the bounds of the ratio of the rates on two models, by their indices; false = they are not known.
func (c *Completion) Ratio(x, y int) (low, high float64, ok bool) {
	a, b := c.Rates[x].Least, c.Rates[y].Least
	if x == y || len(a) <= y || len(b) <= x || a[y] <= 0 || b[x] <= 0 {
		return 1, 1, x == y
	}
	return a[y], 1 / b[x], true
}

// Apart gives the standard error of the ratio of the rates on two models, in the logarithm, by their indices: both bounds are within two of it.
func (c *Completion) Apart(x, y int) float64 {
	low, high, ok := c.Ratio(x, y)
	if !ok { // from before running jobs counted
		return math.Hypot(c.Rates[x].Spread, c.Rates[y].Spread)
	}
	if x == y {
		return 0
	}
	gain := math.Log(c.Rates[x].Rate / c.Rates[y].Rate)
	return max(gain-math.Log(low), math.Log(high)-gain, 0) / 2
}

// Usage is the GPU counters of jobs of a kind on one GPU model. Lists of it are sorted by CompareSubject.
type Usage struct {
	Kind  Kind    `json:"kind"`
	Model string  `json:"model"`
	Gang  int     `json:"gang"`
	At    Instant `json:"at,omitzero"` // of the newest sample
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

// CompareSubject orders by kind, gang.
func (c *Completion) CompareSubject(o *Completion) int {
	return compare.Or(compare.Compare(c.Kind, o.Kind), compare.Compare(c.Gang, o.Gang))
}

// CompareSubject orders by kind, gang, model.
func (u *Usage) CompareSubject(o *Usage) int {
	return compare.Or(compare.Compare(u.Kind, o.Kind), compare.Compare(u.Gang, o.Gang), compare.Compare(u.Model, o.Model))
}

// FindCompletion gives the index of a kind's run times, or the place for them.
func FindCompletion(list []Completion, kind Kind, gang int) (int, bool) {
	of := Completion{Kind: kind, Gang: gang}
	return slices.BinarySearchFunc(list, &of, func(c Completion, of *Completion) int { return c.CompareSubject(of) })
}

// FindUsage gives the index of a kind's counters on a model, or the place for them.
func FindUsage(list []Usage, kind Kind, gang int, model string) (int, bool) {
	of := Usage{Kind: kind, Gang: gang, Model: model}
	return slices.BinarySearchFunc(list, &of, func(u Usage, of *Usage) int { return u.CompareSubject(of) })
}

// Fade adds a value, off from the mean, to the mean and the standard deviation of the last n values. Older ones fade.
func Fade(mean, spread, off, n float64) (float64, float64) {
	return mean + off/n, math.Sqrt((n - 1) / n * (spread*spread + off*off/n))
}
