package experiment

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Load is the arriving jobs, in order of Submit. They are iterated several times and must be the
// same each time.
type Load struct {
	Steps    bool // jobs say how many steps they have, a second of work on the reference model each
	Anywhere bool // gangs ask for GPUs alone (sbatch --gpus=8), on any number of nodes; else for their fewest
	Name     string
	Jobs     iter.Seq[trace.Job]
}

// Of makes a load of a trace.
func Of(t *trace.Trace) Load { return Load{Name: t.Name, Jobs: slices.Values(t.Jobs)} }

// Census summarises a load.
type Census struct {
	Jobs    int
	Last    cluster.Span // submission of the last
	Tenants []Resident   // by name
}

// Resident summarises a tenant's part of a load.
type Resident struct {
	Tenant string
	Jobs   int
	Demand cluster.GPUTime // of all its jobs
	Gang   int             // GPUs of its largest job
}

// Demand gives the GPU time of all jobs.
func (c Census) Demand() cluster.GPUTime {
	var sum cluster.GPUTime
	for _, t := range c.Tenants {
		sum += t.Demand
	}
	return sum
}

// Survey summarises a load.
func Survey(l Load) Census {
	var c Census
	tenants := map[string]*Resident{}
	for j := range l.Jobs {
		t := tenants[j.Tenant]
		if t == nil {
			t = &Resident{Tenant: j.Tenant}
			tenants[j.Tenant] = t
		}
		t.Jobs++
		t.Demand += cluster.Times(j.GPUs, j.Runs)
		t.Gang = max(t.Gang, j.GPUs)
		c.Jobs++
		c.Last = max(c.Last, j.Submit)
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		c.Tenants = append(c.Tenants, *tenants[name])
	}
	return c
}

// of gives the jobs of one tenant.
func (l Load) of(tenant string) Load {
	return Load{Name: l.Name, Jobs: func(yield func(trace.Job) bool) {
		for j := range l.Jobs {
			if j.Tenant == tenant && !yield(j) {
				return
			}
		}
	}}
}

// namedRefusals is the maximum number of refused jobs that are named.
const namedRefusals = 20

// Refused lists jobs that were not submitted because they could never run.
type Refused struct {
	Jobs   int
	Demand cluster.GPUTime // of them
	Named  []Refusal       // the first of them
}

// Refusal is a job that was not submitted, and why.
type Refusal struct{ Job, Tenant, Why string }

func (r Refusal) String() string { return fmt.Sprintf("job %s of %s %s", r.Job, r.Tenant, r.Why) }

func (r *Refused) add(j *trace.Job, why string) {
	r.Jobs++
	r.Demand += cluster.Times(j.GPUs, j.Runs)
	if len(r.Named) < namedRefusals {
		r.Named = append(r.Named, Refusal{Job: j.ID, Tenant: j.Tenant, Why: why})
	}
}
