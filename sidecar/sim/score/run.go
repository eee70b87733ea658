package score

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Setting identifies a run.
type Setting struct {
	Scheduler string          `json:"scheduler"`
	Trace     string          `json:"trace"`
	Nodes     int             `json:"nodes"`
	GPUs      int             `json:"gpus"`
	Interval  cluster.Span    `json:"interval_ms"`      // between two rounds
	Term      cluster.Span    `json:"term_ms"`          // of a lease; 0 = no leases
	From      cluster.Instant `json:"from_ms,omitzero"` // start of the first period
	// Saves says how jobs are assumed to save; "" = recorded behaviour.
	Saves string `json:"saves,omitempty"`
	// Models are the GPU models of the cluster, if there are several.
	Models []Model `json:"models,omitempty"`
}

// Model is a GPU model of a cluster.
type Model struct {
	Model string `json:"model"`
	GPUs  int    `json:"gpus"`
}

// Run is a whole run in memory. Long runs use a Meter instead.
type Run struct {
	Setting
	To      cluster.Instant
	Jobs    []Job
	Samples []Sample
}

// Job is the result of one job.
type Job struct {
	ID, Tenant, User string
	GPUs             int
	Submit           cluster.Instant
	Start            cluster.Instant // the first start; 0 = none yet
	End              cluster.Instant // 0 = not yet
	Runs             cluster.Span    // its run time alone on its GPUs, nothing added
	Held             cluster.Span    // total time with GPUs, all attempts, overhead included
	Overhead         cluster.Span    // part of Held that was no work: saves, loads, cold starts, lost work
	Lost             cluster.Span    // part of Overhead that was lost work
	Alloc, Due       cluster.GPUTime // received and due (ASTRAEA eq. 2 and 14)
	Preemptions      int
	Outcome          string
}

// completion gives the time from submission to the end, for a job that has one.
func (j Job) completion() cluster.Span { return j.End.Sub(j.Submit) }

// Wait gives the queueing delay: all the time until end in which the job held no GPU, before its
// first start and after each preemption. It is never negative, although GPUs may be held slightly
// longer than the job runs.
func (j Job) Wait(end cluster.Instant) cluster.Span { return max(0, end.Sub(j.Submit)-j.Held) }

func (j Job) check() error {
	switch {
	case j.End != 0 && (j.End < j.Submit || j.Start > j.End):
		return fmt.Errorf("job %s: ends at %s, before its submission at %s or its start at %s", j.ID, j.End, j.Submit, j.Start)
	case j.Start != 0 && j.Start < j.Submit:
		return fmt.Errorf("job %s: starts at %s, before its submission at %s", j.ID, j.Start, j.Submit)
	case j.Runs < 0 || j.Held < 0 || j.Overhead < 0 || j.Lost < 0 || j.Alloc < 0 || j.Due < 0:
		return fmt.Errorf("job %s: a time below zero", j.ID)
	}
	return nil
}

// Sample is the state of the cluster from At until the next sample.
type Sample struct {
	At         cluster.Instant
	Capacity   int // healthy GPUs
	Used       int // GPUs held, shared ones as a whole
	Fragmented int // idle GPUs that no waiting job can use although their sum suffices
	Bound      int // idle GPUs that wait for absent tenants although jobs that cannot be stopped would fit (bind.max)
	Tenants    []TenantSample
}

// TenantSample is a tenant's part of a Sample. Alloc and DueTotal are sums since the start of the
// run, so that rho is exact for any distance of samples.
type TenantSample struct {
	Tenant   string
	Holds    cluster.MicroGPU   // GPUs
	On       []cluster.MicroGPU // the same by model, as in Setting.Models; nil without that
	Due      cluster.MicroGPU   // rate, min(demand, quota): ASTRAEA eq. 8
	Alloc    cluster.GPUTime    // received until At
	DueTotal cluster.GPUTime    // due until At
	Repaid   cluster.GPUTime    // part of it that others received as repayment
}
